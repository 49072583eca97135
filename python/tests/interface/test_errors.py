"""Errors: jax's classes under JAXError, helpful messages, names that do not exist."""
import gc
import traceback
import weakref

import numpy as np
import pytest

core = pytest.importorskip("capibara._core", reason="the Python extension is not built")
import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara.jax import errors  # noqa: E402


def test_library_errors_are_jax_errors_and_builtin_ones():
  with pytest.raises(errors.JAXError) as caught:
    jnp.reshape(jnp.arange(3), (2, 2))
  assert isinstance(caught.value, TypeError)
  assert "test_errors.py" in caught.value.get_traceback()


def fail(*_):
  raise ZeroDivisionError("the user's own")


def raised_by(call):
  with pytest.raises(Exception) as caught:
    call()
  return caught.value


def frames_of(error):
  return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


CALLS_OF_USER_FUNCTIONS = {
  "jit": lambda: jax.jit(fail)(1.0),
  "grad": lambda: jax.grad(fail)(1.0),
  "vmap": lambda: jax.vmap(fail)(jnp.arange(3.0)),
  "scan": lambda: jax.lax.scan(fail, 0.0, jnp.arange(3.0)),
  "while_loop": lambda: jax.lax.while_loop(fail, fail, 0.0),
  "fori_loop": lambda: jax.lax.fori_loop(0, 3, fail, 0.0),
  "cond": lambda: jax.lax.cond(True, fail, fail, 1.0),
  "checkpoint": lambda: jax.checkpoint(fail)(1.0),
  "hessian": lambda: jax.hessian(fail)(1.0),
  "linearize": lambda: jax.linearize(fail, 1.0),
  "eval_shape": lambda: jax.eval_shape(fail, 1.0),
  "make_jaxpr": lambda: jax.make_jaxpr(fail)(1.0),
  "tree.map": lambda: jax.tree.map(fail, [1, 2]),
  "vectorize": lambda: jnp.vectorize(fail)(jnp.arange(3.0)),
  "jit of vmap of grad": lambda: jax.jit(jax.vmap(jax.grad(fail)))(jnp.arange(3.0)),
}


@pytest.mark.parametrize("name", CALLS_OF_USER_FUNCTIONS)
def test_tracebacks_show_the_frames_of_the_user_only(name):
  frames = frames_of(raised_by(CALLS_OF_USER_FUNCTIONS[name]))
  assert frames == ["raised_by", "<lambda>", "fail"]


def test_rules_of_custom_derivatives_show_the_frames_of_the_user_only():
  square = jax.custom_jvp(lambda x: x * x)
  square.defjvp(fail)
  assert frames_of(raised_by(lambda: jax.grad(square)(1.0))) == ["raised_by", "<lambda>", "fail"]


def test_arguments_refused_by_the_library_show_the_frames_of_the_user_only():
  assert frames_of(raised_by(lambda: jax.grad(3))) == ["raised_by", "<lambda>"]
  assert frames_of(raised_by(lambda: jnp.add(jnp.ones(2), jnp.ones(3)))) == ["raised_by", "<lambda>"]
  assert frames_of(raised_by(lambda: jnp.ones(2).reshape(3))) == ["raised_by", "<lambda>"]


@pytest.fixture
def traceback_filtering():
  yield lambda mode: jax.config.update("jax_traceback_filtering", mode)
  jax.config.update("jax_traceback_filtering", "auto")


def test_a_note_says_that_frames_were_left_out(traceback_filtering):
  error = raised_by(lambda: jax.vmap(jax.grad(fail))(jnp.arange(3.0)))
  assert len(error.__notes__) == 1 and "JAX_TRACEBACK_FILTERING=off" in error.__notes__[0]
  assert error.__cause__ is None


def test_filtering_can_be_switched_off(traceback_filtering):
  traceback_filtering("off")
  error = raised_by(lambda: jax.grad(fail)(1.0))
  assert "grad_f" in frames_of(error) and not hasattr(error, "__notes__")


def test_filtering_can_keep_the_whole_traceback_as_the_cause(traceback_filtering):
  traceback_filtering("remove_frames")
  error = raised_by(lambda: jax.vmap(jax.grad(fail))(jnp.arange(3.0)))
  assert frames_of(error) == ["raised_by", "<lambda>", "fail"]
  assert type(error.__cause__).__name__ == "UnfilteredStackTrace"
  assert {"vmap_f", "grad_f", "fail"} <= set(frames_of(error.__cause__))


def test_filtering_can_mark_frames_as_hidden(traceback_filtering):
  traceback_filtering("tracebackhide")
  error = raised_by(lambda: jax.grad(fail)(1.0))
  hidden = [f.f_code.co_name for f, _ in traceback.walk_tb(error.__traceback__) if f.f_locals.get("__tracebackhide__")]
  assert "grad_f" in hidden and "fail" not in hidden


def test_filtering_refuses_other_modes():
  with pytest.raises(ValueError, match="jax_traceback_filtering must be one of"):
    jax.config.update("jax_traceback_filtering", "loud")


def test_a_missing_name_suggests_the_nearest():
  with pytest.raises(AttributeError, match="'arrange'. Did you mean: 'arange'"):
    jnp.arrange(3)
  with pytest.raises(AttributeError, match="has no attribute 'vmapp'. Did you mean: 'vmap'"):
    jax.vmapp


def test_truth_of_a_tracer():
  with pytest.raises(errors.TracerBoolConversionError, match="Attempted boolean conversion of traced array"):
    jax.jit(lambda x: 1 if x > 0 else 2)(1.0)


def truth(x, y):
  z = jnp.sin(x) * 2
  return 1 if z + y > 0 else 2


def place(function):
  return f"{function.__name__} at {__file__}:{function.__code__.co_firstlineno}"


def pick(i, *rest, table):
  return [1, 2, 3][i + rest[0]["a"][1]]


ERRORS_AND_ARGUMENTS = {
  "one argument": (lambda: jax.jit(lambda x, y: float(jnp.sin(y)))(1.0, 2.0), "jit", "the value of the argument y"),
  "two arguments": (lambda: jax.jit(truth)(1.0, 2.0), "jit", "the values of the arguments x and y"),
  "trees": (lambda: jax.jit(pick)(1, {"a": [1, 1]}, table=1), "jit", "the values of the arguments i and rest[0]['a'][1]"),
  "three": (lambda: jax.jit(lambda x, y, z: np.asarray(x + y * z))(1, 2, 3), "jit", "the arguments x, y, and z"),
  "static ones": (lambda: jax.jit(lambda n, x: float(x), static_argnums=0)(1, 2.0), "jit", "the argument x"),
  "keywords": (lambda: jax.jit(lambda *, x: float(x))(x=2.0), "jit", "the argument x"),
  "scan": (lambda: jax.lax.scan(lambda c, x: (c, float(c)), 0.0, jnp.ones(2)), "scan", "the argument c"),
  "cond": (lambda: jax.lax.cond(True, lambda x: float(x), lambda x: x, 1.0), "cond", "the argument x"),
  "while_loop": (lambda: jax.lax.while_loop(lambda x: bool(x), lambda x: x, 1.0), "while_cond", "the argument x"),
  "checkpoint": (lambda: jax.checkpoint(lambda x: float(x))(1.0), "checkpoint / remat", "the argument x"),
  "arange": (lambda: jax.jit(lambda n: jnp.arange(n))(3), "jit", "the argument n"),
}


@pytest.mark.parametrize("name", ERRORS_AND_ARGUMENTS)
def test_an_unknown_value_says_which_arguments_it_depends_on(name):
  call, purpose, arguments = ERRORS_AND_ARGUMENTS[name]
  text = str(raised_by(call))
  assert f"for {purpose}. This concrete value was not available in Python because it depends on" in text
  assert arguments in text


def test_an_unknown_value_says_which_function_was_traced():
  text = str(raised_by(lambda: jax.jit(truth)(1.0, 2.0)))
  assert f"The error occurred while tracing the function {place(truth)} for jit." in text


def test_an_unknown_value_without_arguments_says_which_operations_made_it():
  text = str(raised_by(lambda: jax.jit(lambda: float(jnp.sin(1.0)))()))
  assert "due to JAX operations on these lines" in text and "operation sin from line" in text


def test_a_value_of_vmap_says_where_it_was_made():
  text = str(raised_by(lambda: jax.vmap(truth)(jnp.ones(2), jnp.ones(2))))
  assert f"was created on line:\n  {__file__}:{truth.__code__.co_firstlineno + 2}" in text


def test_numpy_of_a_tracer():
  with pytest.raises(errors.TracerArrayConversionError, match="__array__"):
    jax.jit(lambda x: np.asarray(x))(1.0)
  with pytest.raises(errors.TracerIntegerConversionError):
    jax.jit(lambda i: [1, 2, 3][i])(1)
  with pytest.raises(errors.ConcretizationTypeError, match="`float` function"):
    jax.jit(lambda x: float(x))(1.0)


def test_a_leaked_tracer():
  leaked = []

  def store(x):
    leaked.append(jnp.sin(x))
    return x

  line = store.__code__.co_firstlineno + 1
  for transform in (jax.jit, jax.vmap):
    leaked.clear()
    transform(store)(jnp.ones(2))
    with pytest.raises(errors.UnexpectedTracerError, match="Encountered an unexpected tracer") as caught:
      leaked[0] + 1
    assert f"when the value leaked was {place(store)} traced for {transform.__name__}" in str(caught.value)
    assert f"was created on line {__file__}:{line}" in str(caught.value)


def test_a_leaked_tracer_keeps_nothing_alive_that_the_function_closes_over():
  class Resource:
    pass

  leaked, resource = [], Resource()
  gone = weakref.ref(resource)

  def store(x, resource=resource):
    leaked.append(x)
    return x

  jax.jit(store)(1.0)
  del store, resource
  gc.collect()
  assert gone() is None and leaked


def test_a_user_primitive_says_which_rule_it_lacks():
  thrice = jax.core.Primitive("thrice")
  thrice.def_impl(lambda x: x * 3)
  thrice.def_abstract_eval(lambda x: x)
  assert float(thrice.bind(2.0)) == 6.0
  assert float(jax.jit(thrice.bind)(2.0)) == 6.0
  with pytest.raises(NotImplementedError, match="Differentiation rule for 'thrice' not implemented"):
    jax.grad(thrice.bind)(2.0)
  with pytest.raises(NotImplementedError, match="Batching rule for 'thrice' not implemented"):
    jax.vmap(thrice.bind)(jnp.arange(3.0))
  thrice.def_jvp(lambda primals, tangents: (thrice.bind(*primals), thrice.bind(*tangents)))
  with pytest.raises(NotImplementedError, match="Transpose rule"):
    jax.grad(thrice.bind)(2.0)
  thrice.def_transpose(lambda cotangent, x: [thrice.bind(cotangent)])
  thrice.def_batch(lambda args, dims: (thrice.bind(*args), dims[0]))
  assert float(jax.jit(jax.grad(lambda x: thrice.bind(x) * x))(2.0)) == 12.0
  assert jax.vmap(jax.grad(lambda x: thrice.bind(x) * x))(jnp.arange(3.0)).tolist() == [0.0, 6.0, 12.0]


def test_nans_are_found_where_they_arise():
  with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
    jnp.log(jnp.float32(-1))


def test_unhashable_static_arguments():
  with pytest.raises(ValueError, match="Non-hashable static arguments"):
    jax.jit(lambda x, n: x, static_argnums=1)(1.0, [2])


def test_unknown_settings():
  with pytest.raises(AttributeError, match="Unrecognized config option: jax_no_such"):
    jax.config.update("jax_no_such", True)


def test_arrays_are_unhashable_and_immutable():
  with pytest.raises(TypeError, match="unhashable"):
    hash(jnp.arange(3))
  with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set"):
    jnp.arange(3)[0] = 1
