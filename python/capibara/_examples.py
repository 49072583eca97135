"""Examples of functions for their docstrings: {module: {function: (statement, ..., what the last one prints in jax)}}."""
import functools
import sys
import types

from capibara import _core

_EXAMPLES = {
    "jax.numpy": {
        "abs": ("jnp.abs(jnp.array([-2, 0, 3]))", "Array([2, 0, 3], dtype=int32)"),
        "absolute": ("jnp.absolute(jnp.array([-1.5, 2.0]))", "Array([1.5, 2. ], dtype=float32)"),
        "add": ("jnp.add(jnp.arange(3), 10)", "Array([10, 11, 12], dtype=int32)"),
        "all": ("jnp.all(jnp.array([[True, False], [True, True]]), axis=1)", "Array([False,  True], dtype=bool)"),
        "allclose": ("jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))", "Array(True, dtype=bool)"),
        "any": ("jnp.any(jnp.array([[False, False], [True, False]]), axis=1)", "Array([False,  True], dtype=bool)"),
        "append": ("jnp.append(jnp.array([1, 2]), jnp.array([3, 4]))", "Array([1, 2, 3, 4], dtype=int32)"),
        "arange": ("jnp.arange(2, 10, 3)", "Array([2, 5, 8], dtype=int32)"),
        "arctan2": ("jnp.arctan2(jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]))", "Array([0.       , 1.5707964], dtype=float32)"),
        "argmax": ("jnp.argmax(jnp.array([[1, 9, 3], [7, 2, 5]]), axis=1)", "Array([1, 0], dtype=int32)"),
        "argmin": ("jnp.argmin(jnp.array([[1, 9, 3], [7, 2, 5]]), axis=1)", "Array([0, 1], dtype=int32)"),
        "argsort": ("jnp.argsort(jnp.array([30, 10, 20]))", "Array([1, 2, 0], dtype=int32)"),
        "argwhere": ("jnp.argwhere(jnp.array([[0, 5], [6, 0]]))",
                     "Array([[0, 1],\n"
                     "       [1, 0]], dtype=int32)"),
        "array": ("jnp.array([[1, 2], [3, 4]], dtype=float)",
                  "Array([[1., 2.],\n"
                  "       [3., 4.]], dtype=float32)"),
        "array_equal": ("jnp.array_equal(jnp.arange(3), jnp.array([0, 1, 2]))", "Array(True, dtype=bool)"),
        "array_split": ("jnp.array_split(jnp.arange(5), 2)", "[Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]"),
        "asarray": ("jnp.asarray(np.arange(3))", "Array([0, 1, 2], dtype=int32)"),
        "atleast_2d": ("jnp.atleast_2d(jnp.arange(3))", "Array([[0, 1, 2]], dtype=int32)"),
        "average": ("jnp.average(jnp.array([1.0, 2.0, 3.0]), weights=jnp.array([3.0, 0.0, 1.0]))", "Array(1.5, dtype=float32)"),
        "bincount": ("jnp.bincount(jnp.array([0, 1, 1, 3]))", "Array([1, 2, 0, 1], dtype=int32)"),
        "bitwise_and": ("jnp.bitwise_and(jnp.array([6, 5]), 3)", "Array([2, 1], dtype=int32)"),
        "block": ("jnp.block([[jnp.eye(2), jnp.zeros((2, 1))]])",
                  "Array([[1., 0., 0.],\n"
                  "       [0., 1., 0.]], dtype=float32)"),
        "broadcast_arrays": ("[x.shape for x in jnp.broadcast_arrays(jnp.ones((3, 1)), jnp.ones(4))]", "[(3, 4), (3, 4)]"),
        "broadcast_to": ("jnp.broadcast_to(jnp.arange(3), (2, 3))",
                         "Array([[0, 1, 2],\n"
                         "       [0, 1, 2]], dtype=int32)"),
        "ceil": ("jnp.ceil(jnp.array([-1.5, 0.2, 2.0]))", "Array([-1.,  1.,  2.], dtype=float32)"),
        "clip": ("jnp.clip(jnp.arange(6), 1, 4)", "Array([1, 1, 2, 3, 4, 4], dtype=int32)"),
        "column_stack": ("jnp.column_stack([jnp.arange(3), jnp.arange(3) + 10])",
                         "Array([[ 0, 10],\n"
                         "       [ 1, 11],\n"
                         "       [ 2, 12]], dtype=int32)"),
        "concatenate": ("jnp.concatenate([jnp.zeros((1, 2)), jnp.ones((2, 2))], axis=0)",
                        "Array([[0., 0.],\n"
                        "       [1., 1.],\n"
                        "       [1., 1.]], dtype=float32)"),
        "conj": ("jnp.conj(jnp.array([1 + 2j]))", "Array([1.-2.j], dtype=complex64)"),
        "convolve": ("jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]))", "Array([1., 3., 5., 3.], dtype=float32)"),
        "copysign": ("jnp.copysign(jnp.array([1.0, 2.0]), jnp.array([-1.0, 1.0]))", "Array([-1.,  2.], dtype=float32)"),
        "cos": ("jnp.cos(jnp.array([0.0, jnp.pi]))", "Array([ 1., -1.], dtype=float32)"),
        "count_nonzero": ("jnp.count_nonzero(jnp.array([0, 3, 0, 5]))", "Array(2, dtype=int32)"),
        "cross": ("jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))", "Array([0, 0, 1], dtype=int32)"),
        "cumprod": ("jnp.cumprod(jnp.array([1, 2, 3, 4]))", "Array([ 1,  2,  6, 24], dtype=int32)"),
        "cumsum": ("jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)",
                   "Array([[1, 2],\n"
                   "       [4, 6]], dtype=int32)"),
        "deg2rad": ("jnp.deg2rad(jnp.array([0.0, 180.0]))", "Array([0.       , 3.1415927], dtype=float32)"),
        "diag": ("jnp.diag(jnp.array([1, 2]))",
                 "Array([[1, 0],\n"
                 "       [0, 2]], dtype=int32)"),
        "diagonal": ("jnp.diagonal(jnp.arange(9).reshape(3, 3))", "Array([0, 4, 8], dtype=int32)"),
        "diff": ("jnp.diff(jnp.array([1, 4, 9, 16]))", "Array([3, 5, 7], dtype=int32)"),
        "digitize": ("jnp.digitize(jnp.array([0.5, 1.5, 9.0]), jnp.array([1.0, 2.0]))", "Array([0, 1, 2], dtype=int32)"),
        "divide": ("jnp.divide(jnp.array([1, 2, 3]), 2)", "Array([0.5, 1. , 1.5], dtype=float32)"),
        "divmod": ("jnp.divmod(jnp.array([7, -7]), 3)", "(Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))"),
        "dot": ("jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))", "Array([21, 43], dtype=int32)"),
        "einsum": ('jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))', "Array([21, 43], dtype=int32)"),
        "empty": ("jnp.empty((2, 3)).shape", "(2, 3)"),
        "equal": ("jnp.equal(jnp.array([1, 2, 3]), 2)", "Array([False,  True, False], dtype=bool)"),
        "exp": ("jnp.exp(jnp.array([0.0, 1.0]))", "Array([1.       , 2.7182817], dtype=float32)"),
        "expand_dims": ("jnp.expand_dims(jnp.arange(3), axis=0).shape", "(1, 3)"),
        "expm1": ("jnp.expm1(jnp.array([0.0, 1.0]))", "Array([0.       , 1.7182817], dtype=float32)"),
        "eye": ("jnp.eye(2)",
                "Array([[1., 0.],\n"
                "       [0., 1.]], dtype=float32)"),
        "fill_diagonal": ("jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)",
                          "Array([[5., 0.],\n"
                          "       [0., 5.]], dtype=float32)"),
        "flatnonzero": ("jnp.flatnonzero(jnp.array([0, 3, 0, 5]))", "Array([1, 3], dtype=int32)"),
        "flip": ("jnp.flip(jnp.arange(3))", "Array([2, 1, 0], dtype=int32)"),
        "floor": ("jnp.floor(jnp.array([-1.5, 0.2, 2.0]))", "Array([-2.,  0.,  2.], dtype=float32)"),
        "floor_divide": ("jnp.floor_divide(jnp.array([7, -7]), 2)", "Array([ 3, -4], dtype=int32)"),
        "fmod": ("jnp.fmod(jnp.array([7, -7]), 3)", "Array([ 1, -1], dtype=int32)"),
        "full": ("jnp.full((2, 2), 7)",
                 "Array([[7, 7],\n"
                 "       [7, 7]], dtype=int32, weak_type=True)"),
        "full_like": ("jnp.full_like(jnp.arange(3), 9)", "Array([9, 9, 9], dtype=int32)"),
        "gcd": ("jnp.gcd(jnp.array([12, 18]), 8)", "Array([4, 2], dtype=int32)"),
        "geomspace": ("jnp.geomspace(1, 1000, 4)", "Array([   1.      ,   10.000003,  100.00005 , 1000.      ], dtype=float32)"),
        "gradient": ("jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))", "Array([1. , 1.5, 2.5, 3. ], dtype=float32)"),
        "greater": ("jnp.greater(jnp.array([1, 2, 3]), 2)", "Array([False, False,  True], dtype=bool)"),
        "greater_equal": ("jnp.greater_equal(jnp.array([1, 2, 3]), 2)", "Array([False,  True,  True], dtype=bool)"),
        "histogram": ("jnp.histogram(jnp.array([0.0, 1.0, 1.0, 2.0]), bins=2)",
                      "(Array([1., 3.], dtype=float32), Array([0., 1., 2.], dtype=float32))"),
        "hstack": ("jnp.hstack([jnp.arange(2), jnp.arange(3)])", "Array([0, 1, 0, 1, 2], dtype=int32)"),
        "hypot": ("jnp.hypot(jnp.array([3.0]), jnp.array([4.0]))", "Array([5.], dtype=float32)"),
        "identity": ("jnp.identity(2, dtype=int)",
                     "Array([[1, 0],\n"
                     "       [0, 1]], dtype=int32)"),
        "imag": ("jnp.imag(jnp.array([1 + 2j, 3 - 4j]))", "Array([ 2., -4.], dtype=float32)"),
        "inner": ("jnp.inner(jnp.array([1, 2, 3]), jnp.array([0, 1, 10]))", "Array(32, dtype=int32)"),
        "insert": ("jnp.insert(jnp.array([1, 2, 4]), 2, 3)", "Array([1, 2, 3, 4], dtype=int32)"),
        "interp": ("jnp.interp(jnp.array([0.5, 1.5]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 40.0]))",
                   "Array([ 5., 25.], dtype=float32)"),
        "invert": ("jnp.invert(jnp.array([True, False]))", "Array([False,  True], dtype=bool)"),
        "isclose": ("jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))", "Array([ True, False], dtype=bool)"),
        "isfinite": ("jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))", "Array([ True, False, False], dtype=bool)"),
        "isin": ("jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 3, 5]))", "Array([False,  True,  True], dtype=bool)"),
        "isinf": ("jnp.isinf(jnp.array([1.0, jnp.inf, jnp.nan]))", "Array([False,  True, False], dtype=bool)"),
        "isnan": ("jnp.isnan(jnp.array([1.0, jnp.inf, jnp.nan]))", "Array([False, False,  True], dtype=bool)"),
        "kron": ("jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))", "Array([ 1,  2, 10, 20], dtype=int32)"),
        "less": ("jnp.less(jnp.array([1, 2, 3]), 2)", "Array([ True, False, False], dtype=bool)"),
        "less_equal": ("jnp.less_equal(jnp.array([1, 2, 3]), 2)", "Array([ True,  True, False], dtype=bool)"),
        "linspace": ("jnp.linspace(0, 1, 5)", "Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)"),
        "log": ("jnp.log(jnp.array([1.0, jnp.e]))", "Array([0., 1.], dtype=float32)"),
        "log10": ("jnp.log10(jnp.array([1.0, 1000.0]))", "Array([0., 3.], dtype=float32)"),
        "log1p": ("jnp.log1p(jnp.array([0.0, 1.0]))", "Array([0.       , 0.6931472], dtype=float32)"),
        "log2": ("jnp.log2(jnp.array([1.0, 8.0]))", "Array([0., 3.], dtype=float32)"),
        "logaddexp": ("jnp.logaddexp(0.0, jnp.array([0.0]))", "Array([0.6931472], dtype=float32)"),
        "logical_and": ("jnp.logical_and(jnp.array([True, True]), jnp.array([True, False]))", "Array([ True, False], dtype=bool)"),
        "logical_not": ("jnp.logical_not(jnp.array([True, False]))", "Array([False,  True], dtype=bool)"),
        "logical_or": ("jnp.logical_or(jnp.array([False, True]), jnp.array([False, False]))", "Array([False,  True], dtype=bool)"),
        "logspace": ("jnp.logspace(0, 2, 3)", "Array([  1.,  10., 100.], dtype=float32)"),
        "matmul": ("jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 10]]))",
                   "Array([[ 1, 20],\n"
                   "       [ 3, 40]], dtype=int32)"),
        "matrix_transpose": ("jnp.matrix_transpose(jnp.zeros((5, 2, 3))).shape", "(5, 3, 2)"),
        "max": ("jnp.max(jnp.array([[1, 9], [7, 2]]), axis=0)", "Array([7, 9], dtype=int32)"),
        "maximum": ("jnp.maximum(jnp.array([-1, 2]), 0)", "Array([0, 2], dtype=int32)"),
        "mean": ("jnp.mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)", "Array([2., 3.], dtype=float32)"),
        "median": ("jnp.median(jnp.array([3.0, 1.0, 10.0]))", "Array(3., dtype=float32)"),
        "meshgrid": ("x, y = jnp.meshgrid(jnp.arange(2), jnp.arange(3))",
                     "x",
                     "Array([[0, 1],\n"
                     "       [0, 1],\n"
                     "       [0, 1]], dtype=int32)"),
        "min": ("jnp.min(jnp.array([[1, 9], [7, 2]]), axis=0)", "Array([1, 2], dtype=int32)"),
        "minimum": ("jnp.minimum(jnp.array([-1, 2]), 0)", "Array([-1,  0], dtype=int32)"),
        "mod": ("jnp.mod(jnp.array([7, -7]), 3)", "Array([1, 2], dtype=int32)"),
        "moveaxis": ("jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape", "(3, 4, 2)"),
        "multiply": ("jnp.multiply(jnp.arange(3), 10)", "Array([ 0, 10, 20], dtype=int32)"),
        "nan_to_num": ("jnp.nan_to_num(jnp.array([1.0, jnp.nan]), nan=0.0)", "Array([1., 0.], dtype=float32)"),
        "nanmean": ("jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))", "Array(2., dtype=float32)"),
        "nansum": ("jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))", "Array(4., dtype=float32)"),
        "negative": ("jnp.negative(jnp.array([1, -2]))", "Array([-1,  2], dtype=int32)"),
        "nonzero": ("jnp.nonzero(jnp.array([0, 3, 0, 5]))", "(Array([1, 3], dtype=int32),)"),
        "not_equal": ("jnp.not_equal(jnp.array([1, 2, 3]), 2)", "Array([ True, False,  True], dtype=bool)"),
        "ones": ("jnp.ones((2, 3))",
                 "Array([[1., 1., 1.],\n"
                 "       [1., 1., 1.]], dtype=float32)"),
        "ones_like": ("jnp.ones_like(jnp.arange(3))", "Array([1, 1, 1], dtype=int32)"),
        "outer": ("jnp.outer(jnp.array([1, 2]), jnp.array([1, 10, 100]))",
                  "Array([[  1,  10, 100],\n"
                  "       [  2,  20, 200]], dtype=int32)"),
        "pad": ("jnp.pad(jnp.array([1, 2]), (1, 2), constant_values=9)", "Array([9, 1, 2, 9, 9], dtype=int32)"),
        "percentile": ("jnp.percentile(jnp.array([0.0, 1.0, 2.0, 3.0]), 50)", "Array(1.5, dtype=float32)"),
        "polyfit": ("jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)", "Array([2., 1.], dtype=float32)"),
        "polyval": ("jnp.polyval(jnp.array([2, 0, 1]), 3)", "Array(19, dtype=int32)"),
        "power": ("jnp.power(jnp.array([1, 2, 3]), 2)", "Array([1, 4, 9], dtype=int32)"),
        "prod": ("jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)", "Array([ 2, 12], dtype=int32)"),
        "ptp": ("jnp.ptp(jnp.array([3, 9, 4]))", "Array(6, dtype=int32)"),
        "quantile": ("jnp.quantile(jnp.array([0.0, 1.0, 2.0, 3.0]), 0.5)", "Array(1.5, dtype=float32)"),
        "ravel": ("jnp.ravel(jnp.array([[1, 2], [3, 4]]))", "Array([1, 2, 3, 4], dtype=int32)"),
        "real": ("jnp.real(jnp.array([1 + 2j, 3 - 4j]))", "Array([1., 3.], dtype=float32)"),
        "reciprocal": ("jnp.reciprocal(jnp.array([2.0, 4.0]))", "Array([0.5 , 0.25], dtype=float32)"),
        "remainder": ("jnp.remainder(jnp.array([7, -7]), 3)", "Array([1, 2], dtype=int32)"),
        "repeat": ("jnp.repeat(jnp.array([1, 2]), 3)", "Array([1, 1, 1, 2, 2, 2], dtype=int32)"),
        "reshape": ("jnp.reshape(jnp.arange(6), (2, -1))",
                    "Array([[0, 1, 2],\n"
                    "       [3, 4, 5]], dtype=int32)"),
        "roll": ("jnp.roll(jnp.arange(5), 2)", "Array([3, 4, 0, 1, 2], dtype=int32)"),
        "rot90": ("jnp.rot90(jnp.array([[1, 2], [3, 4]]))",
                  "Array([[2, 4],\n"
                  "       [1, 3]], dtype=int32)"),
        "round": ("jnp.round(jnp.array([0.126, 2.5]), 1)", "Array([0.1, 2.5], dtype=float32)"),
        "searchsorted": ("jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 6]))", "Array([0, 1, 3], dtype=int32)"),
        "select": ("x = jnp.arange(4)", "jnp.select([x < 1, x > 2], [x, x * 10], default=-1)", "Array([ 0, -1, -1, 30], dtype=int32)"),
        "sign": ("jnp.sign(jnp.array([-3.0, 0.0, 2.0]))", "Array([-1.,  0.,  1.], dtype=float32)"),
        "sin": ("jnp.sin(jnp.array([0.0, jnp.pi / 2]))", "Array([0., 1.], dtype=float32)"),
        "sinc": ("jnp.sinc(jnp.array([0.0, 0.5]))", "Array([1.        , 0.63661975], dtype=float32)"),
        "sort": ("jnp.sort(jnp.array([[3, 1, 2], [9, 8, 7]]), axis=1)",
                 "Array([[1, 2, 3],\n"
                 "       [7, 8, 9]], dtype=int32)"),
        "split": ("jnp.split(jnp.arange(6), [2, 5])",
                  "[Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32), Array([5], dtype=int32)]"),
        "sqrt": ("jnp.sqrt(jnp.array([4.0, 9.0]))", "Array([2., 3.], dtype=float32)"),
        "square": ("jnp.square(jnp.array([2, -3]))", "Array([4, 9], dtype=int32)"),
        "squeeze": ("jnp.squeeze(jnp.ones((1, 3, 1))).shape", "(3,)"),
        "stack": ("jnp.stack([jnp.arange(3), jnp.arange(3) + 10])",
                  "Array([[ 0,  1,  2],\n"
                  "       [10, 11, 12]], dtype=int32)"),
        "std": ("jnp.std(jnp.array([1.0, 3.0, 5.0, 7.0]), ddof=0)", "Array(2.236068, dtype=float32)"),
        "subtract": ("jnp.subtract(jnp.array([5, 6]), 2)", "Array([3, 4], dtype=int32)"),
        "sum": ("jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)", "Array([4, 6], dtype=int32)"),
        "swapaxes": ("jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape", "(4, 3, 2)"),
        "take": ("jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))", "Array([30, 10], dtype=int32)"),
        "take_along_axis": ("x = jnp.array([[3, 1, 2]])",
                            "jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)",
                            "Array([[1, 2, 3]], dtype=int32)"),
        "tan": ("jnp.tan(jnp.array([0.0, jnp.pi / 4]))", "Array([0., 1.], dtype=float32)"),
        "tanh": ("jnp.tanh(jnp.array([0.0, 1.0]))", "Array([0.       , 0.7615942], dtype=float32)"),
        "tensordot": ("jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5)), axes=2).shape", "(2, 5)"),
        "tile": ("jnp.tile(jnp.array([1, 2]), 3)", "Array([1, 2, 1, 2, 1, 2], dtype=int32)"),
        "trace": ("jnp.trace(jnp.array([[1, 2], [3, 4]]))", "Array(5, dtype=int32)"),
        "transpose": ("jnp.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape", "(4, 2, 3)"),
        "tri": ("jnp.tri(3, dtype=int)",
                "Array([[1, 0, 0],\n"
                "       [1, 1, 0],\n"
                "       [1, 1, 1]], dtype=int32)"),
        "tril": ("jnp.tril(jnp.ones((3, 3), int))",
                 "Array([[1, 0, 0],\n"
                 "       [1, 1, 0],\n"
                 "       [1, 1, 1]], dtype=int32)"),
        "triu": ("jnp.triu(jnp.ones((3, 3), int))",
                 "Array([[1, 1, 1],\n"
                 "       [0, 1, 1],\n"
                 "       [0, 0, 1]], dtype=int32)"),
        "true_divide": ("jnp.true_divide(jnp.array([1, 2, 3]), 2)", "Array([0.5, 1. , 1.5], dtype=float32)"),
        "trunc": ("jnp.trunc(jnp.array([-1.5, 1.5]))", "Array([-1.,  1.], dtype=float32)"),
        "unique": ("jnp.unique(jnp.array([3, 1, 3, 2]))", "Array([1, 2, 3], dtype=int32)"),
        "unravel_index": ("jnp.unravel_index(5, (2, 3))", "(Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))"),
        "var": ("jnp.var(jnp.array([1.0, 3.0, 5.0, 7.0]))", "Array(5., dtype=float32)"),
        "vdot": ("jnp.vdot(jnp.array([1, 2, 3]), jnp.array([1, 10, 100]))", "Array(321, dtype=int32)"),
        "vectorize": ('norm = jnp.vectorize(lambda v: jnp.sum(v * v), signature="(n)->()")',
                      "norm(jnp.array([[1, 2], [3, 4]]))",
                      "Array([ 5, 25], dtype=int32)"),
        "vstack": ("jnp.vstack([jnp.arange(3), jnp.arange(3) + 10])",
                   "Array([[ 0,  1,  2],\n"
                   "       [10, 11, 12]], dtype=int32)"),
        "where": ("x = jnp.array([-2, 0, 3])", "jnp.where(x > 0, x, 0)", "Array([0, 0, 3], dtype=int32)"),
        "zeros": ("jnp.zeros((2, 2), dtype=int)",
                  "Array([[0, 0],\n"
                  "       [0, 0]], dtype=int32)"),
        "zeros_like": ("jnp.zeros_like(jnp.arange(3.0))", "Array([0., 0., 0.], dtype=float32)"),
    },
    "jax.numpy.linalg": {
        "cholesky": ("jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))",
                     "Array([[2., 0.],\n"
                     "       [1., 2.]], dtype=float32)"),
        "det": ("jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))", "Array(-2., dtype=float32)"),
        "eigh": ("values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))", "values", "Array([1., 2.], dtype=float32)"),
        "inv": ("jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])) @ jnp.array([2.0, 4.0])", "Array([1., 1.], dtype=float32)"),
        "lstsq": ("x = jnp.linalg.lstsq(jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), jnp.array([1.0, 3.0, 5.0]))[0]",
                  "x.round(3)",
                  "Array([1., 2.], dtype=float32)"),
        "matrix_power": ("jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)",
                         "Array([[1, 5],\n"
                         "       [0, 1]], dtype=int32)"),
        "norm": ("jnp.linalg.norm(jnp.array([3.0, 4.0]))", "Array(5., dtype=float32)"),
        "qr": ("q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))",
               "abs(q @ r - jnp.array([[3.0, 1.0], [4.0, 2.0]])).max() < 1e-5",
               "Array(True, dtype=bool)"),
        "solve": ("jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))", "Array([1., 2.], dtype=float32)"),
        "svd": ("jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 2.0]]), compute_uv=False)", "Array([3., 2.], dtype=float32)"),
    },
    "jax.numpy.fft": {
        "fft": ("jnp.fft.fft(jnp.array([1.0, 0.0, -1.0, 0.0])).real", "Array([0., 2., 0., 2.], dtype=float32)"),
        "fftfreq": ("jnp.fft.fftfreq(4)", "Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)"),
        "ifft": ("jnp.fft.ifft(jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))).real", "Array([1., 2., 3., 4.], dtype=float32)"),
        "rfft": ("jnp.fft.rfft(jnp.ones(4)).real", "Array([4., 0., 0.], dtype=float32)"),
    },
    "jax.lax": {
        "abs": ("lax.abs(jnp.array([-2.0, 3.0]))", "Array([2., 3.], dtype=float32)"),
        "add": ("lax.add(jnp.array([1, 2]), jnp.array([10, 20]))", "Array([11, 22], dtype=int32)"),
        "all_gather": ('jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(3))',
                       "Array([[0, 1, 2],\n"
                       "       [0, 1, 2],\n"
                       "       [0, 1, 2]], dtype=int32)"),
        "associative_scan": ("lax.associative_scan(jnp.add, jnp.array([1, 2, 3, 4]))", "Array([ 1,  3,  6, 10], dtype=int32)"),
        "axis_index": ('jax.vmap(lambda x: x * lax.axis_index("i"), axis_name="i")(jnp.array([5, 6, 7]))',
                       "Array([ 0,  6, 14], dtype=int32)"),
        "bitcast_convert_type": ("lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32)", "Array(1065353216, dtype=int32)"),
        "broadcast": ("lax.broadcast(jnp.arange(3), (2,))",
                      "Array([[0, 1, 2],\n"
                      "       [0, 1, 2]], dtype=int32)"),
        "broadcast_in_dim": ("lax.broadcast_in_dim(jnp.arange(2), (2, 3), broadcast_dimensions=(0,))",
                             "Array([[0, 0, 0],\n"
                             "       [1, 1, 1]], dtype=int32)"),
        "clamp": ("lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)", "Array([0. , 0.5, 1. ], dtype=float32)"),
        "concatenate": ("lax.concatenate([jnp.array([1, 2]), jnp.array([3])], dimension=0)", "Array([1, 2, 3], dtype=int32)"),
        "cond": ("lax.cond(jnp.array(True), lambda x: x + 1, lambda x: x - 1, 10)", "Array(11, dtype=int32, weak_type=True)"),
        "conv": ('lax.conv(jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 3, 3)), (1, 1), "VALID")',
                 "Array([[[[9., 9.],\n"
                 "         [9., 9.]]]], dtype=float32)"),
        "conv_general_dilated": ("x, kernel = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3))",
                                 'lax.conv_general_dilated(x, kernel, window_strides=(1,), padding="SAME")',
                                 "Array([[[2., 3., 3., 2.]]], dtype=float32)"),
        "convert_element_type": ("lax.convert_element_type(jnp.array([1.7, -1.7]), jnp.int32)", "Array([ 1, -1], dtype=int32)"),
        "cumsum": ("lax.cumsum(jnp.array([1, 2, 3]), reverse=True)", "Array([6, 5, 3], dtype=int32)"),
        "dot": ("lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))", "Array([21, 43], dtype=int32)"),
        "dot_general": ("x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))",
                        "lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape",
                        "(5, 2, 4)"),
        "dynamic_index_in_dim": ("lax.dynamic_index_in_dim(jnp.array([10, 20, 30]), 1, keepdims=False)", "Array(20, dtype=int32)"),
        "dynamic_slice": ("lax.dynamic_slice(jnp.arange(6), (2,), (3,))", "Array([2, 3, 4], dtype=int32)"),
        "dynamic_slice_in_dim": ("lax.dynamic_slice_in_dim(jnp.arange(6), 2, 3)", "Array([2, 3, 4], dtype=int32)"),
        "dynamic_update_slice": ("lax.dynamic_update_slice(jnp.zeros(4, int), jnp.array([7, 8]), (1,))",
                                 "Array([0, 7, 8, 0], dtype=int32)"),
        "erf": ("lax.erf(jnp.array([0.0, 1.0]))", "Array([0.        , 0.84270084], dtype=float32)"),
        "exp": ("lax.exp(jnp.array([0.0, 1.0]))", "Array([1.       , 2.7182817], dtype=float32)"),
        "expand_dims": ("lax.expand_dims(jnp.arange(3), (0, 2)).shape", "(1, 3, 1)"),
        "fori_loop": ("lax.fori_loop(0, 5, lambda i, total: total + i, 0)", "Array(10, dtype=int32, weak_type=True)"),
        "full": ("lax.full((2, 3), 7)",
                 "Array([[7, 7, 7],\n"
                 "       [7, 7, 7]], dtype=int32, weak_type=True)"),
        "integer_pow": ("lax.integer_pow(jnp.array([2.0, 3.0]), 3)", "Array([ 8., 27.], dtype=float32)"),
        "iota": ("lax.iota(jnp.int32, 4)", "Array([0, 1, 2, 3], dtype=int32)"),
        "map": ("lax.map(lambda x: x * x, jnp.arange(4))", "Array([0, 1, 4, 9], dtype=int32)"),
        "max": ("lax.max(jnp.array([1, 5]), jnp.array([3, 2]))", "Array([3, 5], dtype=int32)"),
        "mul": ("lax.mul(jnp.array([1, 2]), jnp.array([10, 20]))", "Array([10, 40], dtype=int32)"),
        "pad": ("lax.pad(jnp.array([1, 2]), 0, [(1, 1, 1)])", "Array([0, 1, 0, 2, 0], dtype=int32)"),
        "pmean": ('jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0, 6.0]))', "Array([3., 3., 3.], dtype=float32)"),
        "ppermute": ('jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(jnp.arange(3))',
                     "Array([2, 0, 1], dtype=int32)"),
        "psum": ('jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 1.0, 2.0]))',
                 "Array([0.25, 0.25, 0.5 ], dtype=float32)"),
        "reduce": ("lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, (1,))", "Array([3, 7], dtype=int32)"),
        "reduce_window": ('lax.reduce_window(jnp.array([1.0, 5.0, 2.0, 4.0]), -jnp.inf, lax.max, (2,), (2,), "VALID")',
                          "Array([5., 4.], dtype=float32)"),
        "reshape": ("lax.reshape(jnp.arange(6), (2, 3))",
                    "Array([[0, 1, 2],\n"
                    "       [3, 4, 5]], dtype=int32)"),
        "rev": ("lax.rev(jnp.arange(3), (0,))", "Array([2, 1, 0], dtype=int32)"),
        "rsqrt": ("lax.rsqrt(jnp.array([4.0, 16.0]))", "Array([0.5 , 0.25], dtype=float32)"),
        "scan": ("lax.scan(lambda total, x: (total + x, total), 0, jnp.array([1, 2, 3]))",
                 "(Array(6, dtype=int32), Array([0, 1, 3], dtype=int32, weak_type=True))"),
        "select": ("lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))", "Array([ 1, 20], dtype=int32)"),
        "slice": ("lax.slice(jnp.arange(10), (2,), (9,), (3,))", "Array([2, 5, 8], dtype=int32)"),
        "slice_in_dim": ("lax.slice_in_dim(jnp.arange(10), 2, 5)", "Array([2, 3, 4], dtype=int32)"),
        "sort": ("lax.sort(jnp.array([3, 1, 2]))", "Array([1, 2, 3], dtype=int32)"),
        "sqrt": ("lax.sqrt(jnp.array([4.0, 9.0]))", "Array([2., 3.], dtype=float32)"),
        "squeeze": ("lax.squeeze(jnp.ones((1, 3)), (0,)).shape", "(3,)"),
        "stop_gradient": ("jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)", "Array(3., dtype=float32, weak_type=True)"),
        "sub": ("lax.sub(jnp.array([5, 6]), jnp.array([1, 2]))", "Array([4, 4], dtype=int32)"),
        "switch": ("lax.switch(1, [lambda x: x, lambda x: x * 10, lambda x: -x], 4)", "Array(40, dtype=int32, weak_type=True)"),
        "tanh": ("lax.tanh(jnp.array([0.0, 1.0]))", "Array([0.       , 0.7615942], dtype=float32)"),
        "top_k": ("lax.top_k(jnp.array([3, 9, 1, 7]), 2)", "[Array([9, 7], dtype=int32), Array([1, 3], dtype=int32)]"),
        "transpose": ("lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape", "(4, 2, 3)"),
        "while_loop": ("lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1)", "Array(128, dtype=int32, weak_type=True)"),
    },
    "jax.nn": {
        "celu": ("jax.nn.celu(jnp.array([-1.0, 0.0, 2.0]))", "Array([-0.63212055,  0.        ,  2.        ], dtype=float32)"),
        "dot_product_attention": ("q = jnp.ones((2, 5, 4, 8))  # batch, length, heads, dimensions of a head",
                                  "jax.nn.dot_product_attention(q, q, q, is_causal=True).shape",
                                  "(2, 5, 4, 8)"),
        "elu": ("jax.nn.elu(jnp.array([-1.0, 0.0, 2.0]))", "Array([-0.63212055,  0.        ,  2.        ], dtype=float32)"),
        "gelu": ("jax.nn.gelu(jnp.array([-1.0, 0.0, 2.0]))", "Array([-0.15880796,  0.        ,  1.9545977 ], dtype=float32)"),
        "glu": ("jax.nn.glu(jnp.array([1.0, 2.0, 0.0, 0.0]))", "Array([0.5, 1. ], dtype=float32)"),
        "hard_tanh": ("jax.nn.hard_tanh(jnp.array([-3.0, 0.5, 3.0]))", "Array([-1. ,  0.5,  1. ], dtype=float32)"),
        "leaky_relu": ("jax.nn.leaky_relu(jnp.array([-100.0, 0.0, 2.0]))", "Array([-1.,  0.,  2.], dtype=float32)"),
        "log_sigmoid": ("jax.nn.log_sigmoid(jnp.array([0.0, 2.0]))", "Array([-0.6931472, -0.126928 ], dtype=float32)"),
        "log_softmax": ("jax.nn.log_softmax(jnp.array([1.0, 1.0]))", "Array([-0.6931472, -0.6931472], dtype=float32)"),
        "logsumexp": ("jax.nn.logsumexp(jnp.array([0.0, 0.0]))", "Array(0.6931472, dtype=float32)"),
        "one_hot": ("jax.nn.one_hot(jnp.array([0, 2]), 3)",
                    "Array([[1., 0., 0.],\n"
                    "       [0., 0., 1.]], dtype=float32)"),
        "relu": ("jax.nn.relu(jnp.array([-2.0, 0.0, 3.0]))", "Array([0., 0., 3.], dtype=float32)"),
        "relu6": ("jax.nn.relu6(jnp.array([-2.0, 3.0, 9.0]))", "Array([0., 3., 6.], dtype=float32)"),
        "selu": ("jax.nn.selu(jnp.array([-1.0, 0.0, 2.0]))", "Array([-1.1113307,  0.       ,  2.101402 ], dtype=float32)"),
        "sigmoid": ("jax.nn.sigmoid(jnp.array([0.0, 2.0]))", "Array([0.5     , 0.880797], dtype=float32)"),
        "silu": ("jax.nn.silu(jnp.array([0.0, 2.0]))", "Array([0.      , 1.761594], dtype=float32)"),
        "softmax": ("jax.nn.softmax(jnp.array([[1.0, 1.0], [0.0, 50.0]]), axis=-1)",
                    "Array([[5.0000000e-01, 5.0000000e-01],\n"
                    "       [1.9287499e-22, 1.0000000e+00]], dtype=float32)"),
        "softplus": ("jax.nn.softplus(jnp.array([0.0, 2.0]))", "Array([0.6931472, 2.126928 ], dtype=float32)"),
        "standardize": ("jax.nn.standardize(jnp.array([1.0, 3.0]))", "Array([-0.99999505,  0.99999505], dtype=float32)"),
        "swish": ("jax.nn.swish(jnp.array([0.0, 2.0]))", "Array([0.      , 1.761594], dtype=float32)"),
    },
    "jax.random": {
        "bernoulli": ("jax.random.bernoulli(jax.random.key(0), 0.5, (4,))", "Array([False, False,  True,  True], dtype=bool)"),
        "beta": ("jax.random.beta(jax.random.key(0), 2.0, 3.0, (2,))", "Array([0.23627362, 0.49045965], dtype=float32)"),
        "bits": ("jax.random.bits(jax.random.key(0), (2,))", "Array([4070199207, 4202968722], dtype=uint32)"),
        "categorical": ("jax.random.categorical(jax.random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(5,))",
                        "Array([1, 1, 1, 1, 1], dtype=int32)"),
        "choice": ("jax.random.choice(jax.random.key(0), jnp.array([10, 20, 30]), (4,))", "Array([20, 10, 30, 20], dtype=int32)"),
        "dirichlet": ("jax.random.dirichlet(jax.random.key(0), jnp.ones(3)).sum().round(3)", "Array(1., dtype=float32)"),
        "exponential": ("jax.random.exponential(jax.random.key(0), (2,))", "Array([2.950128 , 3.8434246], dtype=float32)"),
        "fold_in": ("jax.random.normal(jax.random.fold_in(jax.random.key(0), 7))", "Array(-0.06259047, dtype=float32)"),
        "gamma": ("jax.random.gamma(jax.random.key(0), 2.0, (2,))", "Array([1.5897877, 1.7599413], dtype=float32)"),
        "gumbel": ("jax.random.gumbel(jax.random.key(0), (2,))", "Array([2.9233725, 3.8326178], dtype=float32)"),
        "key": ("jax.random.normal(jax.random.key(0))", "Array(1.6226422, dtype=float32)"),
        "key_data": ("jax.random.key_data(jax.random.key(42))", "Array([ 0, 42], dtype=uint32)"),
        "laplace": ("jax.random.laplace(jax.random.key(0), (2,))", "Array([-2.2569816, -3.1502788], dtype=float32)"),
        "multivariate_normal": ("jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2))",
                                "Array([1.6226422, 2.0252647], dtype=float32)"),
        "normal": ("jax.random.normal(jax.random.key(0), (3,))", "Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)"),
        "permutation": ("jax.random.permutation(jax.random.key(0), 5)", "Array([0, 1, 4, 3, 2], dtype=int32)"),
        "poisson": ("jax.random.poisson(jax.random.key(0), 3.0, (4,))", "Array([0, 0, 4, 4], dtype=int32)"),
        "PRNGKey": ("jax.random.PRNGKey(42)", "Array([ 0, 42], dtype=uint32)"),
        "randint": ("jax.random.randint(jax.random.key(0), (4,), 0, 10)", "Array([9, 0, 2, 3], dtype=int32)"),
        "split": ("key, subkey = jax.random.split(jax.random.key(0))", "jax.random.normal(subkey)", "Array(-2.4424558, dtype=float32)"),
        "truncated_normal": ("jax.random.truncated_normal(jax.random.key(0), -1.0, 1.0, (2,))",
                             "Array([0.8618594, 0.9412883], dtype=float32)"),
        "uniform": ("jax.random.uniform(jax.random.key(0), (3,), minval=-1.0)",
                    "Array([ 0.895334  ,  0.95715976, -0.33541703], dtype=float32)"),
    },
    "jax": {
        "checkpoint": ("jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)", "Array(1., dtype=float32, weak_type=True)"),
        "device_get": ('jax.device_get({"x": jnp.arange(3)})', "{'x': array([0, 1, 2], dtype=int32)}"),
        "device_put": ("jax.device_put(np.arange(3))", "Array([0, 1, 2], dtype=int32)"),
        "eval_shape": ('jax.eval_shape(lambda x: x @ x.T, jax.ShapeDtypeStruct((100, 3), "float32"))',
                       "ShapeDtypeStruct(shape=(100, 100), dtype=float32)"),
        "grad": ("jax.grad(lambda x: x**3)(2.0)", "Array(12., dtype=float32, weak_type=True)"),
        "hessian": ("jax.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]))",
                    "Array([[ 6.,  0.],\n"
                    "       [ 0., 12.]], dtype=float32)"),
        "jacfwd": ("jax.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))",
                   "Array([[2., 0.],\n"
                   "       [0., 4.]], dtype=float32)"),
        "jacrev": ("jax.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))",
                   "Array([[2., 0.],\n"
                   "       [0., 4.]], dtype=float32)"),
        "jit": ("jax.jit(lambda x: x * 2 + 1)(jnp.arange(3))", "Array([1, 3, 5], dtype=int32)"),
        "jvp": ("jax.jvp(lambda x: x**2, (3.0,), (1.0,))",
                "(Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))"),
        "linearize": ("y, f_jvp = jax.linearize(lambda x: x**2, 3.0)", "f_jvp(1.0)", "Array(6., dtype=float32, weak_type=True)"),
        "make_jaxpr": ("jax.make_jaxpr(lambda x: x * 2)(1.0)", "{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }"),
        "value_and_grad": ("jax.value_and_grad(lambda x: x**2)(3.0)",
                           "(Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))"),
        "vjp": ("y, f_vjp = jax.vjp(lambda x: x**2, 3.0)", "f_vjp(1.0)", "(Array(6., dtype=float32, weak_type=True),)"),
        "vmap": ("jax.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((3, 2)))", "Array([2., 2., 2.], dtype=float32)"),
    },
}


def lines_of(module, name):
    """The example of a function as a Python session; empty if it has none. `module` is its name in this package."""
    *statements, printed = _EXAMPLES.get(module.removeprefix("capibara."), {}).get(name, ("",))
    return [f">>> {statement}" for statement in statements] + printed.splitlines()


def names(module):
    """The functions of a module that have an example."""
    return list(_EXAMPLES.get(module, ()))


@functools.cache
def shown(module, name):
    """What follows the description of a function in its docstring."""
    lines = lines_of(module, name)
    return "\n\nExample:\n\n" + "\n".join("    " + line for line in lines) + "\n" if lines else ""


def complete_library():
    """Lets the docstrings of the library's functions, a signature and a sentence each, end with their examples."""
    text = vars(_core.LibraryFunction)["__doc__"]
    _core.LibraryFunction.__doc__ = property(lambda self: text.__get__(self) + shown(self.__module__, self.__name__))


def complete(module_name):
    """Adds the examples to the docstrings of a module's functions in Python; those of the library's table have them already."""
    for name in names(module_name.removeprefix("capibara.")):
        function, example = vars(sys.modules[module_name]).get(name), shown(module_name, name)
        if isinstance(function, types.FunctionType) and example not in (function.__doc__ or ""):
            first, *others = (function.__doc__ or "").rstrip().split("\n")
            function.__doc__ = "\n".join([first, *(line.removeprefix("    ") for line in others)]) + example
