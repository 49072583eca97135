"""Errors recorded by traced functions, views of mutable arrays as arguments, and functions of mutable arrays on values: as in jax."""
import importlib
import traceback

import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

PEERS = [pytest.param(module, importlib.import_module(f"{module.__name__}._src.error_check"), id=module.__name__)
         for module in (jax, oracle)]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("module, errors", PEERS)
def test_the_first_error_is_raised_when_it_is_asked_for(module, errors, jitted):
  def step_with_a_check(x, limit):
    errors.set_error_if(x > limit, "x is too large")
    return x + 1

  step = module.jit(step_with_a_check) if jitted else step_with_a_check
  step(np.arange(3), 5)
  errors.raise_if_error()
  module.lax.fori_loop(0, 4, lambda i, x: step(x, 2), np.int32(0))
  step(np.arange(3), 9)
  with pytest.raises(errors.JaxValueError, match="x is too large") as caught:
    errors.raise_if_error()
  assert "step_with_a_check" in "".join(traceback.format_tb(caught.tb))
  errors.raise_if_error()
  with pytest.raises(ValueError, match="traced context"):
    module.jit(errors.raise_if_error)()


@pytest.mark.parametrize("module, errors", PEERS)
def test_exported_functions_carry_their_errors(module, errors):
  export = importlib.import_module(f"{module.__name__}.export")

  def checked(x):
    errors.set_error_if(x < 0, "x is negative")
    return x + 1
  exported = export.export(module.jit(errors.wrap_for_export(checked)))(module.ShapeDtypeStruct((), np.float32))
  errors.raise_if_error()
  again = errors.unwrap_from_import(export.deserialize(exported.serialize()).call)
  assert again(np.float32(-3)) == -2
  with pytest.raises(errors.JaxValueError, match="x is negative\nThe original traceback"):
    errors.raise_if_error()


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
@pytest.mark.parametrize("wrap", ["jit", "checkpoint", "cond"])
def test_views_are_arguments(module, wrap):
  def body(view):
    view[...] = view[...] + 2.0
    return view[0]

  def f(start):
    ref = module.new_ref(module.numpy.arange(6.0))
    view = ref.at[module.numpy.array([4, 1])] if start is None else ref.at[start:5]
    out = module.lax.cond(True, body, body, view) if wrap == "cond" else getattr(module, wrap)(body)(view)
    return out, ref[...]
  for start, expected in ((2, [0, 1, 4, 5, 6, 5]), (None, [0, 3, 2, 3, 6, 5])):
    out, values = module.jit(lambda: f(start))()
    assert values.tolist() == expected and out == (4 if start else 6)


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_functions_of_mutable_arrays_on_values(module):
  state = importlib.import_module(f"{module.__name__}._src.state.discharge")
  primitives = importlib.import_module(f"{module.__name__}._src.state.primitives")

  def swap(refs):
    a, b = refs
    old = primitives.ref_swap(a, (), primitives.ref_get(b, ()))
    primitives.ref_addupdate(b, (), old)
  a, b = module.jit(state.run_state(swap))((np.float32(1), np.float32(5)))
  assert (a, b) == (5, 6)
  if module is jax:  # only capibara differentiates this, jax does not
    assert module.grad(lambda x: state.run_state(swap)((x * x, x))[1])(3.0) == 7


def test_a_view_is_no_sequence():
  view = jax.new_ref(jax.numpy.zeros(3)).at[1:]
  assert view.shape == (2,) and view.dtype == np.float32
  with pytest.raises(TypeError):
    jax.numpy.sin(view)
  with pytest.raises(TypeError):
    iter(view)
