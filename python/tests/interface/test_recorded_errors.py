"""Errors recorded by traced functions, mutable arrays and views of them as arguments, promotion of all pairs of dtypes: as in jax."""
import copy
import importlib
import itertools
import pickle
import traceback

import jax as oracle
import ml_dtypes
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


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_mutable_arrays_are_passed_once(module):
  ref = module.new_ref(module.numpy.zeros((3, 3)))
  twice = "only one reference to a mutable array may be passed as an argument to a function"
  with pytest.raises(ValueError, match=rf"{twice}.* for vmap .*Ref\{{float32\[3,3\]\}} appeared at both a\[0\] and c\['k'\]"):
    module.vmap(lambda a, *b, c: b)([ref], c={"k": ref})
  assert module.vmap(lambda a, b: a[0] + b)(ref, module.numpy.arange(3.0)).tolist() == [0, 1, 2]

  @module.custom_vjp
  def f(x_ref, y_ref):
    return x_ref[0, 0]
  f.defvjp(lambda x_ref, y_ref: (x_ref[0, 0], None), lambda _, g: (None, None))
  with pytest.raises(ValueError, match=f"{twice}.*custom_vjp.* at x_ref and y_ref"):
    f(ref, ref)


def returning(module, kind):
  new, lax = module.new_ref, module.lax
  return {
      "jit": lambda: module.jit(lambda x: {"hi": [x, new(x)]})(1.0),
      "jit of an argument": lambda: module.jit(lambda x_ref: x_ref)(new(1.0)),
      "scan": lambda: lax.scan(lambda c, x: (new(c), x), 0, module.numpy.arange(3)),
      "scan of an argument": lambda: lax.scan(lambda c, _: (c, None), new(1.0), length=1),
      "while_body": lambda: lax.while_loop(lambda c: False, lambda c: new(c), 0.0),
      "cond": lambda: lax.cond(True, lambda: new(1.0), lambda: new(2.0)),
      "switch": lambda: lax.switch(1, [lambda x: x, lambda x: x], new(1.0)),
      "checkpoint / remat": lambda: module.checkpoint(lambda x: new(x))(1.0),
      "make_jaxpr": lambda: module.make_jaxpr(lambda x: (x, new(x)))(1.0),
      "eval_shape": lambda: module.eval_shape(lambda x: x, new(1.0)),
  }[kind]


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
@pytest.mark.parametrize("kind, path, origin", [
    ("jit", r"\['hi'\]\[1\]", None), ("jit of an argument", None, "x_ref"), ("scan", r"\[0\]", None),
    ("scan of an argument", r"\[0\]", "c"), ("while_body", None, None), ("cond", None, None), ("switch", None, "x"),
    ("checkpoint / remat", None, None), ("make_jaxpr", r"\[1\]", None), ("eval_shape", None, "x")])
def test_mutable_arrays_are_not_returned(module, kind, path, origin):
  purpose = "jit" if kind in ("make_jaxpr", "eval_shape") else kind.removesuffix(" of an argument")
  at = f" at output tree path result{path}" if path else ""
  made = f"was passed in as the argument {origin}\\." if origin else f"was created on line {__file__}:"
  with pytest.raises(ValueError, match=rf"traced for {purpose} returned a mutable array reference of type Ref\{{(int|float)32\[\]\}}{at}, "
                                       rf"but mutable array references cannot be returned\.\n\nThe returned mutable array {made}"):
    returning(module, kind)()


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_traced_functions_get_a_mutable_array_once(module):
  ref, lax = module.new_ref(0.0), module.lax
  twice = r"only one reference to a mutable array may be passed as an argument to a function, but when tracing .* for {} the mutable " \
          r"array reference of type Ref\{{float32\[\]\}} appeared at both {} and {}\."
  with pytest.raises(ValueError, match=twice.format("jit", "x_ref", r"rest\['y'\]")):
    module.jit(lambda x_ref, rest: x_ref[...])(ref, {"y": ref})
  with pytest.raises(ValueError, match=twice.format("scan", r"c\[0\]", r"c\[1\]")):
    lax.scan(lambda c, _: (None, None), (ref, ref), None, length=1)
  with pytest.raises(ValueError, match=twice.format("cond", "a", "b")):
    lax.cond(True, lambda a, b: 1.0, lambda x, y: 2.0, ref, ref)

  def f(y_ref):  # with two cells for one ref, this would return 1 and leave 2
    ref[...] = 1.0
    y_ref[...] += 2.0
    return ref[...]
  jitted = module.jit(f)
  for _ in range(2):
    with pytest.raises(ValueError, match=r"for jit, a mutable array reference .* was both closed over and passed as the argument y_ref"):
      jitted(ref)
  other = module.new_ref(5.0)
  assert jitted(other) == 1 and (ref[...], other[...]) == (1, 7)
  with pytest.raises(ValueError if module is jax else module.errors.JaxRuntimeError) as raised:  # the runtime of jax refuses it
    jitted(ref)
  assert module is not jax or "both closed over and passed as the argument y_ref" in str(raised.value)
  assert ref[...] == 1


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
@pytest.mark.parametrize("use", ["get", "swap", "free"])
def test_programs_do_not_use_freed_mutable_arrays(module, use):
  def f(x, freed):
    ref = module.new_ref(x)
    if freed:
      module.free_ref(ref)
    if use == "swap":
      ref[...] = x + 1.0
    return ref[...] if use != "free" else module.freeze(ref)
  assert module.jit(lambda x: f(x, False))(1.0) == (2 if use == "swap" else 1)
  worded = module is jax or use != "free"  # jax raises an error of its own code for a second free
  with pytest.raises(ValueError if worded else KeyError, match="must be called on `Ref` types" if worded else None):
    module.jit(lambda x: f(x, True))(1.0)


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_forward_rules_return_no_new_mutable_array(module):
  def pullback(fwd):
    f = module.custom_vjp(lambda x, ref: x)
    f.defvjp(fwd, lambda ref, g: (g, None))
    return module.vjp(f, 3.0, module.new_ref(0.0))
  value, _ = pullback(lambda x, ref: (x, ref))
  assert value == 3
  with pytest.raises(ValueError, match=r"custom_vjp fwd .* a mutable array reference .* path \[1\]\['a'\] that was not an argument"):
    pullback(lambda x, ref: (x, {"a": module.new_ref(x)}))
  with pytest.raises(ValueError, match=r"custom_vjp fwd function .* path \[0\], but mutable array references cannot be returned there"):
    pullback(lambda x, ref: (ref, None))


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_functions_are_traced_for_types_of_mutable_arrays(module):
  def f(x):
    x[...] += 1.0
    x[0] += 5.0
    return x[1:]
  kind = module.ShapeDtypeStruct((3,), "float32", is_ref=True)
  compiled = module.jit(f).lower(kind).compile()
  ref = module.new_ref(module.numpy.zeros(3))
  assert compiled(ref).tolist() == [1, 1] and ref[...].tolist() == [6, 1, 1]
  assert module.eval_shape(f, kind).shape == (2,)
  program = module.make_jaxpr(f)(kind)
  assert str(program.jaxpr.invars[0].aval) == "Ref{float32[3]}"


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_mutable_arrays_are_where_their_value_is(module):
  value = module.numpy.zeros(3)
  ref = module.new_ref(value)
  assert ref.sharding == value.sharding and ref.format.sharding == value.sharding
  with pytest.raises(AttributeError, match="'sharding' attribute is not available on traced array"):
    module.jit(lambda ref: ref.sharding)(ref)


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_mutable_arrays_are_read_in_another_shape(module):
  @module.jit
  def f(x):
    ref = module.new_ref(x)
    return ref.reshape(2, -1)[...], ref.at[:2].reshape((3, 2))[...], ref.reshape(12)[...]
  x = np.arange(12.0, dtype=np.float32).reshape(4, 3)
  for got, expected in zip(f(x), (x.reshape(2, 6), x[:2].reshape(3, 2), x.ravel()), strict=True):
    np.testing.assert_array_equal(got, expected)
  with pytest.raises((TypeError, ValueError)):
    module.jit(lambda x: module.new_ref(x).reshape(5, 2)[...])(x)


@pytest.mark.parametrize("run", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_mutable_arrays_are_written_in_another_shape(run):  # jax only reads them
  def f(x):
    ref = jax.new_ref(x)
    wide = ref.reshape(6, -1)
    wide[1] = -jax.numpy.arange(2.0)
    wide.reshape(-1)[10:] = jax.numpy.array([7.0, 8.0])
    ref.at[:2].reshape((3, 2))[:, 1] += 100.0
    wide.addupdate(1.0, (5, 0))
    wide.at[0][...] = wide.at[0][...] - 1.0
    return ref[...], wide.reshape(2, 3, 2)[1]
  flat = np.arange(12.0, dtype=np.float32)
  flat[2:4], flat[10:] = [0, -1], [7, 8]
  flat[1:6:2] += 100
  flat[10] += 1
  flat[:2] -= 1
  whole, last = run(f)(jax.numpy.arange(12.0).reshape(4, 3))
  np.testing.assert_array_equal(np.ravel(whole), flat)
  np.testing.assert_array_equal(last, flat.reshape(2, 3, 2)[1])
  for wrong in (np.zeros(3, np.float32), np.zeros(2, np.int32)):
    with pytest.raises(ValueError, match=r"swap: the value must have shape \(2,\) and dtype float32"):
      jax.new_ref(jax.numpy.zeros(4)).reshape(2, 2)[0] = wrong


def test_a_view_is_no_sequence():
  view = jax.new_ref(jax.numpy.zeros(3)).at[1:]
  assert view.shape == (2,) and view.dtype == np.float32
  with pytest.raises(TypeError):
    jax.numpy.sin(view)
  with pytest.raises(TypeError):
    iter(view)


def promoted(module, a, b):
  try:
    return module.numpy.promote_types(a, b)
  except module.dtypes.TypePromotionError as error:
    return type(error).__name__


DTYPES = [np.dtype(getattr(ml_dtypes, name, name)) for name in (
    "bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 float4_e2m1fn float8_e3m4 float8_e4m3fn float8_e5m2 "
    "bfloat16 float16 float32 float64 complex64 complex128").split()] + [int, float, complex, bool, np.int64, np.float64, "int64"]


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("x64", [False, True])
def test_every_pair_of_dtypes_promotes_as_in_jax(mode, x64):
  with jax.enable_x64(x64), oracle.enable_x64(x64), jax.numpy_dtype_promotion(mode), oracle.numpy_dtype_promotion(mode):
    for a, b in itertools.product(DTYPES, DTYPES):
      assert promoted(jax, a, b) == promoted(oracle, a, b), (a, b)
    # numpy's dtype of 64-bit integers equals Python's int, but is no Python number
    assert promoted(jax, "int8", np.dtype("int64")) == (np.int64 if mode == "standard" else "TypePromotionError")


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_equal_types_of_manual_axes_are_one_object(module):
  kind = type(module.typeof(module.numpy.ones(2)).manual_axis_type)
  one = kind(varying={"x"}, unreduced={"y"})
  assert copy.deepcopy(one) is one and pickle.loads(pickle.dumps(one)) is one and kind(unreduced={"y"}, varying={"x"}) is one
  assert one.update(varying={"z"}).varying == {"z"} and one.varying == {"x"}
  with pytest.raises(AttributeError):
    one.varying = frozenset()
  with pytest.raises(AttributeError):
    del one.varying


def checks(module):
  return importlib.import_module(f"{module.__name__}._src.numpy.error").error_checking_behavior


# (function, arguments, setting, what jax 0.10.2 records); both modules are compared with the last column.
NUMBER_CHECKS = [
    (lambda jnp: jnp.log, (-1.0,), "nan", "NaN"), (lambda jnp: jnp.exp, (np.float32("nan"),), "nan", None),
    (lambda jnp: jnp.sqrt, (np.float32([4, -4]),), "nan", "NaN"), (lambda jnp: jnp.sqrt, (4.0,), "nan", None),
    (lambda jnp: jnp.add, (np.inf, -np.inf), "nan", "NaN"), (lambda jnp: jnp.multiply, (np.inf, 0.0), "nan", None),
    (lambda jnp: lambda x, y: x - y, (np.float32("inf"), np.float32("inf")), "nan", "NaN"),
    (lambda jnp: lambda x: x ** 2, (np.float32("nan"),), "nan", None), (lambda jnp: lambda x: x ** 0.5, (np.float32(-1),), "nan", "NaN"),
    (lambda jnp: jnp.divmod, (1.0, 0.0), "divide", "Division by zero"), (lambda jnp: jnp.fmod, (1.0, 0.0), "divide", None),
    (lambda jnp: lambda x, y: x / y, (np.float32(1), np.float32(0)), "divide", "Division by zero"),
    (lambda jnp: lambda x, y: x % y, (np.int32(1), np.int32([1, 0])), "divide", "Division by zero"),
    (lambda jnp: lambda x, i: x[i], (np.arange(5), np.array([4, 5])), "oob", "Out of bounds"),
    (lambda jnp: lambda x, i: x[i], (np.arange(5), np.array([4, -5])), "oob", None),
    (lambda jnp: lambda x, i: x[..., None, i], (np.ones((9, 5)), np.array([[5]])), "oob", "Out of bounds"),
]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("case", NUMBER_CHECKS, ids=range(len(NUMBER_CHECKS)))
@pytest.mark.parametrize("module, errors", PEERS)
def test_numbers_are_checked_while_a_setting_lasts(module, errors, case, jitted):
  function, args, setting, expected = case
  function = function(module.numpy)
  args = [module.numpy.asarray(arg) for arg in args]
  run = module.jit(function) if jitted else function
  run(*args)
  errors.raise_if_error()
  with checks(module)(**{setting: "raise"}):
    run(*args)
    if expected is None:
      errors.raise_if_error()
    else:
      with pytest.raises(errors.JaxValueError, match=expected):
        errors.raise_if_error()
  with checks(module)(all="raise", **{setting: "ignore"}):
    assert getattr(module.config, f"jax_error_checking_behavior_{setting}") == "ignore"
  run(*args)
  errors.raise_if_error()


def test_number_checks_can_be_enabled_for_the_process():
  from capibara.jax._src import error_check
  jax.config.update("jax_error_checking_behavior_nan", "raise")
  try:
    jax.numpy.log(-1.0)
    with pytest.raises(error_check.JaxValueError, match="NaN encountered"):
      error_check.raise_if_error()
  finally:
    jax.config.update("jax_error_checking_behavior_nan", "ignore")
  jax.numpy.log(-1.0)
  error_check.raise_if_error()
  with checks(jax)(oob="raise"):  # jax compares every index with the size of every dimension, and records an error
    jax.numpy.ones((1, 9, 3))[0, None, :2, np.array([2])]
    error_check.raise_if_error()
  with pytest.raises(ValueError, match="'ignore' or 'raise', got 'explode'"):
    checks(jax)(nan="explode")
  with pytest.raises(ValueError, match="must be one of"):
    jax.config.update("jax_error_checking_behavior_oob", "explode")


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_a_function_is_traced_again_under_another_user_context(module):
  context, seen = module.make_user_context("a"), []

  @module.jit
  def step(x):
    seen.append(context.value)
    return x + 1

  for _ in range(2):
    step(1.0)
    with context("b"):
      step(1.0)
      with context(-1):
        step(1.0)
      with context(-2):  # equal hashes in Python
        step(1.0)
      assert context.value == "b"
  assert seen == ["a", "b", -1, -2]
  context.set_global("c")
  step(1.0)
  assert seen[-1] == context.get_global() == "c"
  with pytest.raises(TypeError, match="unhashable"):
    with context([]):
      step(1.0)
