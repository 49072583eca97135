"""Errors: jax's classes under JAXError, sentences that help, names that do not exist."""
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


def test_a_missing_name_suggests_the_nearest():
  with pytest.raises(AttributeError, match="'arrange'. Did you mean: 'arange'"):
    jnp.arrange(3)
  with pytest.raises(AttributeError, match="has no attribute 'pmap'"):
    jax.pmap


def test_truth_of_a_tracer():
  with pytest.raises(errors.TracerBoolConversionError, match="Attempted boolean conversion of traced array"):
    jax.jit(lambda x: 1 if x > 0 else 2)(1.0)


def test_numpy_of_a_tracer():
  with pytest.raises(errors.TracerArrayConversionError, match="__array__"):
    jax.jit(lambda x: np.asarray(x))(1.0)
  with pytest.raises(errors.TracerIntegerConversionError):
    jax.jit(lambda i: [1, 2, 3][i])(1)
  with pytest.raises(errors.ConcretizationTypeError, match="`float` function"):
    jax.jit(lambda x: float(x))(1.0)


def test_a_leaked_tracer():
  leaked = []
  jax.jit(lambda x: leaked.append(x) or x)(1.0)
  with pytest.raises(errors.UnexpectedTracerError, match="leaked"):
    leaked[0] + 1


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
