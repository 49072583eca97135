"""What jax.numpy says of calls that it refuses or warns of: the words that programs and tests look for."""
import copy
import warnings

import jax
import jax.numpy as jnp
import numpy as np


def told(words, function, *args):
    try:
        function(*args)
    except Exception as error:
        print(type(error).__name__, words in str(error))
    else:
        print("nothing was raised")


def warned(words, function, *args):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args)
    print({one.category.__name__ for one in found if words in str(one.message)})


told("It arose in the jnp.arange argument 'stop'", jax.jit(jnp.arange), 3)
told("jnp.hypot is not well defined for complex-valued inputs", jnp.hypot, 1j, 2.0)
told("unsupported keyword arguments for mode 'constant'", lambda: jnp.pad(jnp.ones(2), 1, mode="constant", stat_length=1))
told("repeated axis", lambda: jnp.size(jnp.ones((2, 3)), axis=(0, -2)))
told("take_along_axis indices must be of integer type, got float32", lambda: jnp.take_along_axis(jnp.ones(2), jnp.ones(1), 0))
told("non-empty jnp.take", lambda: jnp.take(jnp.ones((2, 0)), 0, axis=1))
told("invalid entry", lambda: jnp.choose(jnp.array([3]), [jnp.ones(1), jnp.ones(1)]))
told("jnp.choose was jit-compiled with mode='raise'", jax.jit(lambda i: jnp.choose(i, [jnp.ones(1), jnp.ones(1)])), np.array([0]))
told("invalid entry", lambda: jnp.ravel_multi_index((jnp.array([5]),), (3,)))
told("ravel_multi_index was jit-compiled with mode='raise'", jax.jit(lambda i: jnp.ravel_multi_index((i,), (3,))), np.array([0]))
told("Number of tensordot axes", lambda: jnp.tensordot(jnp.ones((2, 2)), jnp.ones(2), axes=2))
told("axis1 and axis2 can not be same", lambda: jnp.trace(jnp.ones((2, 2)), axis1=1, axis2=-1))
told("rot90 requires its first argument to have ndim at least two", lambda: jnp.rot90(jnp.ones(2)))
told("when you meant `jax.numpy.zeros((2, 3))`", lambda: jnp.zeros(2, 3))
told("Shapes must be 1D sequences of concrete values of integer type", lambda: jnp.zeros(1.0))
told("Shapes must be 1D sequences of concrete values of integer type", jax.jit(jnp.zeros), 2)
told("Abstract tracer value encountered where concrete value is expected", jax.jit(lambda i: jnp.split(jnp.zeros((4, 2)), i)), 2)
told("The tolist() method was called on traced array", jax.jit(lambda x: x.tolist()), 2.0)
told("The tobytes() method was called on traced array", jax.jit(lambda x: x.tobytes()), 2.0)
warned("Passing the copy, order, and ndmin arguments to jnp.array", lambda: jnp.array(jnp.ones(2), None, False))
warned("Casting from complex to real dtypes", lambda: jnp.array(1j).astype("float32"))
for measure in (jnp.ndim, jnp.shape, jnp.size):
    warned("requires ndarray or scalar arguments", measure, [1, 2, 3])

print(jnp.array(bytearray(b"\x2a\xf3")).dtype, jnp.array(bytearray(b"\x2a\xf3"), ndmin=2))
for grid in (jnp.r_, jnp.c_):
    print(grid["r", [1, 2, 3], [4, 5, 6]].tolist(), grid["c", [1, 2, 3], [4, 5, 6]].tolist())
with jax.numpy_dtype_promotion("strict"):
    print(jnp.mgrid[1:6:8j, 2:4].dtype)
with jax.transfer_guard("disallow"):
    print([jnp.iscomplexobj(value) for value in (np.int32(0), np.complex64(1), np.arange(5))])
x = jnp.ones(3)
print([made.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() for made in (copy.copy(x), copy.deepcopy(x), jnp.asarray(x), jax.jit(copy.copy)(x))])

jax.config.update("jax_explicit_x64_dtypes", "error")
told("Explicitly requested dtype", lambda: jnp.zeros(3, "int64"))
jax.config.update("jax_explicit_x64_dtypes", "allow")
print(jnp.array(1, dtype="int64").dtype, jnp.zeros(3, "float64").dtype)
jax.config.update("jax_explicit_x64_dtypes", "warn")
warned("Explicitly requested dtype", lambda: jnp.zeros(3, "int64"))

jax.config.update("jax_check_static_indices", True)
for index in (4, -4, (slice(None), 4), (..., -4)):
    told("out of bounds for axis", lambda: jnp.zeros((2, 3))[index])
print(float(jnp.zeros((2, 3))[1, -3]))
jax.config.update("jax_check_static_indices", False)
print(float(jnp.zeros((2, 3))[4, -4]))


class Scalar:
    """A shape that is a sequence by its length and items alone."""

    def __len__(self):
        return 0

    def __getitem__(self, position):
        raise IndexError(position)


print(jnp.reshape(jnp.ones(1), Scalar()).shape)
told("Shapes must be 1D sequences of concrete values of integer type", lambda: jax.lax.reshape(np.ones(3), (1.5, 2.0)))
told("cannot be interpreted as an integer", lambda: jax.lax.squeeze(np.ones((1, 2)), (None,)))

first = jax.custom_vjp(lambda x, y: x)
first.defvjp(lambda x, y: (x, None), lambda _, g: (jnp.zeros(3), jnp.zeros(3)))
jax.config.update("jax_disable_bwd_checks", True)
print(jax.grad(lambda x, y: first(x, y).sum(), 1)(jnp.ones(3), jnp.ones(4)).tolist())
