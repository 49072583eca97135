"""Arrays made of known values inside jit are traced, as in jax; arrays from outside are not."""
import gc

import jax as oracle
import numpy as np
import pytest
from jax.core import Tracer as OracleTracer

import capibara.jax as jax
from capibara.jax.core import Tracer

MAKERS = {
    "array of a number": lambda m: m.numpy.array(0),
    "array of a float": lambda m: m.numpy.array(0.5),
    "array of a truth value": lambda m: m.numpy.array(True),
    "array of a dtype": lambda m: m.numpy.array(1, dtype="float32"),
    "array of a list": lambda m: m.numpy.array([1, 2]),
    "array of an ndarray": lambda m: m.numpy.array(np.arange(3)),
    "array of a NumPy scalar": lambda m: m.numpy.array(np.float32(2)),
    "asarray of a number": lambda m: m.numpy.asarray(0),
    "asarray of an ndarray": lambda m: m.numpy.asarray(np.ones(2, np.float32)),
    "dtype called": lambda m: m.numpy.float32(3),
    "bool_ called": lambda m: m.numpy.bool_(False),
    "zeros": lambda m: m.numpy.zeros(()),
    "zeros of a shape": lambda m: m.numpy.zeros((2, 3)),
    "ones": lambda m: m.numpy.ones((), "int32"),
    "full": lambda m: m.numpy.full((), 7),
    "full_like": lambda m: m.numpy.full_like(np.float32(1), 2.0),
    "zeros_like": lambda m: m.numpy.zeros_like(np.float32(1)),
    "arange": lambda m: m.numpy.arange(3),
    "arange of floats": lambda m: m.numpy.arange(0.0, 1.0, 0.25),
    "arange with a start": lambda m: m.numpy.arange(2, 9, 3),
    "eye": lambda m: m.numpy.eye(2),
    "linspace": lambda m: m.numpy.linspace(0, 1, 3),
    "reshape": lambda m: m.numpy.reshape(3.0, ()),
    "convert_element_type": lambda m: m.lax.convert_element_type(1, "float32"),
    "lax.full": lambda m: m.lax.full((), 1.0),
    "PRNGKey": lambda m: m.random.PRNGKey(0),
    "initializer": lambda m: m.nn.initializers.zeros(m.random.key(0), ()),
    "device_put": lambda m: m.device_put(3.0),
    "asarray of an array from outside": lambda m, x: m.numpy.asarray(x),
    "reshape of an array from outside to its shape": lambda m, x: m.numpy.reshape(x, (2,)),
    "array of an array from outside": lambda m, x: m.numpy.array(x),
    "reshape of an ndarray": lambda m: m.numpy.reshape(np.arange(4), (2, -1)),
    "reshape of an ndarray by keyword": lambda m: m.numpy.reshape(np.arange(4), shape=(4, 1), order="F"),
    "ravel of an ndarray": lambda m: m.numpy.ravel(np.arange(4)),
    "pi": lambda m: m.numpy.pi,
}


def traced_names(module, tracer, wrap):
  """Whether each maker returns a traced value inside the function that `wrap` runs."""
  seen = {}
  outside = module.numpy.arange(2.0)

  def function(x):
    for name, make in MAKERS.items():
      made = make(module, outside) if make.__code__.co_argcount == 2 else make(module)
      seen[name] = isinstance(made, tracer)
    return x + 0

  wrap(module, function)
  return {name for name, is_traced in seen.items() if is_traced}


WRAPS = {
    "jit": lambda m, f: m.jit(f)(1.0),
    "vmap of jit": lambda m, f: m.jit(m.vmap(f))(np.ones(2)),
    "jit of grad": lambda m, f: m.jit(m.grad(f))(1.0),
    "make_jaxpr": lambda m, f: m.make_jaxpr(f)(1.0),
    "eval_shape": lambda m, f: m.eval_shape(f, 1.0),
    "grad": lambda m, f: m.grad(f)(1.0),
    "vmap": lambda m, f: m.vmap(f)(np.ones(2)),
    "scan": lambda m, f: m.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2),
    "compile-time evaluation": lambda m, f: m.jit(lambda x: evaluated(m, f, x))(1.0),
    "nothing": lambda m, f: f(1.0),
}


def evaluated(module, function, x):
  with module.ensure_compile_time_eval():
    function(1.0)
  return x


@pytest.mark.parametrize("wrap", WRAPS)
def test_arrays_are_traced_where_jax_traces_them(wrap):
  assert traced_names(jax, Tracer, WRAPS[wrap]) == traced_names(oracle, OracleTracer, WRAPS[wrap])


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_a_branch_on_a_made_array_is_refused_and_on_a_number_of_numpy_taken(module):
  def of_array(x):
    return x if module.numpy.array(0) == 0 else -x

  def of_numpy(x):
    return x if np.array(0) == 0 else -x

  with pytest.raises(module.errors.TracerBoolConversionError):
    module.jit(of_array)(1.0)
  with pytest.raises(module.errors.ConcretizationTypeError):
    module.jit(lambda x: x + int(module.numpy.array(3)))(1.0)
  assert module.jit(of_numpy)(1.0) == 1.0


PROGRAMS = {
    "literal": lambda m, x: x + m.numpy.array(2.0),
    "literal of a dtype": lambda m, x: x * m.numpy.float32(3),
    "converted literal": lambda m, x: x + m.numpy.array(2).astype("float32"),
    "constant": lambda m, x: x + m.numpy.array([1.0, 2.0]),
    "constant read twice": lambda m, x: (lambda c: x * c + c)(m.numpy.asarray(np.array([1.0, 2.0], np.float32))),
    "unread constants": lambda m, x: (m.numpy.array([1.0, 2.0]), m.numpy.array(1.0), x * 2)[2],
    "returned literal": lambda m, x: (x, m.numpy.array(1.0)),
    "carry of a loop": lambda m, x: m.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2.0), (m.numpy.array(0), x)),
    "captured by a loop": lambda m, x: (lambda half: m.lax.scan(lambda c, _: (c * half, None), x, None, length=3)[0])(m.numpy.array(0.5)),
    "captured by a branch": lambda m, x: (lambda one: m.lax.cond(x[0] > 0, lambda: one + x, lambda: one - x))(m.numpy.array(1.0)),
    "captured by jit": lambda m, x: (lambda one: m.jit(lambda y: y + one)(x))(m.numpy.array(1.0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_made_arrays_are_those_of_jax(name):
  x = np.array([1.0, 2.0], np.float32)
  body = PROGRAMS[name]
  got, expected = (str(m.make_jaxpr(lambda x: body(m, x))(x)) for m in (jax, oracle))
  assert got == expected
  for a, b in zip(jax.tree.leaves(jax.jit(lambda x: body(jax, x))(x)), oracle.tree.leaves(oracle.jit(lambda x: body(oracle, x))(x))):
    np.testing.assert_array_equal(a, b)
    assert a.dtype == b.dtype and a.weak_type == b.weak_type


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_a_function_that_is_converted_lists_what_it_closes_over(module):
  counts = []

  def outer(x):
    known = module.numpy.array(2.0)
    converted, hoisted = module.closure_convert(lambda y: y * known * x, 1.0)
    counts.append(len(hoisted))
    return converted(3.0, *hoisted)

  assert module.jit(outer)(5.0) == 30.0
  assert counts == [2]


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_a_tracer_that_only_garbage_holds_is_no_leak(module):
  class Node:
    pass

  def function(x):
    node = Node()
    node.itself, node.value = node, x * 2
    return x + 1

  enabled = gc.isenabled()
  gc.disable()
  try:
    with module.checking_leaks():
      assert module.jit(function)(1.0) == 2.0
  finally:
    if enabled:
      gc.enable()
