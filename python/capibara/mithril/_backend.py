"""JaxBackend: creates tensors and operates on them, with a common dtype and device."""
import contextlib
import functools
import math

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.mithril import models as _models
from capibara.mithril import _dtypes

# Functions of jax.numpy and jax.nn that the backend offers under the same or another name.
_FUNCTIONS = {
    **{name: name for name in (
        "add", "subtract", "multiply", "divide", "power", "matmul", "sum", "mean", "max", "min", "prod", "var", "std", "abs", "sign",
        "sin", "cos", "tanh", "exp", "log", "sqrt", "square", "where", "reshape", "transpose", "expand_dims", "squeeze", "stack",
        "argmax", "argmin", "cumsum", "sort", "argsort", "any", "all", "isnan", "unique", "maximum", "minimum", "clip", "take",
        "zeros_like", "ones_like", "ravel", "swapaxes", "broadcast_to", "tile", "outer", "einsum", "floor", "dot", "isfinite")},
    "concat": "concatenate", "concatenate": "concatenate", "flatten": "ravel", "cat": "concatenate",
}
_ACTIVATIONS = ("relu", "sigmoid", "softmax", "log_softmax", "gelu", "leaky_relu", "softplus", "silu", "elu")


class JaxBackend:
    """Where models run: a dtype for floats, a device (`"cpu"`, `"gpu:0"`), a mesh of devices, and the precision of matmuls.

    `jit` compiles every model, `precision` is that of matmuls, `debug` raises if a result is NaN, `platform` is another
    name for the kind of device.
    """

    backend_type = "jax"

    def __init__(self, dtype=_dtypes.float32, device=None, device_mesh=None, jit=False, precision=None, debug=False, platform=None):
        self.dtype = jnp.dtype(dtype)
        if not jnp.issubdtype(self.dtype, jnp.floating):
            raise ValueError(f"JaxBackend: dtype is a floating-point type, got {self.dtype}")
        if device is not None and platform is not None and str(device).split(":")[0] != platform:
            raise ValueError(f"JaxBackend: device {device!r} is not of platform {platform!r}")
        self.device = _find_device(device if device is not None else platform)
        self.device_mesh = tuple(device_mesh) if device_mesh is not None else None
        self._mesh = _make_mesh(self.device_mesh) if self.device_mesh else None
        self.jit = jit
        self.precision = precision
        self._precision_name = "" if precision is None else getattr(precision, "name", str(precision)).lower()
        self.debug = debug
        self._operations = {}
        self._seeds = 0
        self.set_seed(0)

    @contextlib.contextmanager
    def _scope(self):
        """A context with the settings of this backend, around everything that it runs."""
        with contextlib.ExitStack() as scopes:
            if self.dtype == jnp.dtype("float64"):
                scopes.enter_context(jax.enable_x64(True))
            if self.debug:
                scopes.enter_context(jax.debug_nans(True))
            scopes.enter_context(jax.default_device(self.device))
            yield

    # ---- creation ---------------------------------------------------------------------------------------------------

    def _place(self, array, tensor_split, mesh_shape=None):
        """Splits an array over the mesh: tensor_split[i] is the mesh axis that splits dimension i."""
        mesh = self._mesh if mesh_shape is None else _make_mesh(tuple(mesh_shape))
        if mesh is None:
            return array
        names = [None] * array.ndim
        for axis, dim in enumerate(tensor_split or ()):
            if dim is not None:
                names[dim] = mesh.axis_names[axis]
        return jax.device_put(array, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names)))

    def _create(self, make, dtype, device_mesh, tensor_split):
        with self._scope():
            array = make(self.dtype if dtype is None else dtype)
        if device_mesh is None and tensor_split is None:
            return array
        return self._place(array, (0,) if tensor_split is None else tensor_split, device_mesh)

    def zeros(self, *shape, dtype=None, device_mesh=None, tensor_split=None):
        """Zeros; device_mesh and tensor_split distribute them over devices, by default along the first dimension."""
        return self._create(lambda dt: jnp.zeros(_shape(shape), dt), dtype, device_mesh, tensor_split)

    def ones(self, *shape, dtype=None, device_mesh=None, tensor_split=None):
        """Ones; device_mesh and tensor_split distribute them over devices, by default along the first dimension."""
        return self._create(lambda dt: jnp.ones(_shape(shape), dt), dtype, device_mesh, tensor_split)

    def full(self, *shape, value, dtype=None, device_mesh=None, tensor_split=None):
        """An array filled with a value."""
        return self._create(lambda dt: jnp.full(_shape(shape), value, dt), dtype, device_mesh, tensor_split)

    def array(self, values, dtype=None, device_mesh=None, tensor_split=None):
        """A tensor from numbers, lists or arrays of other libraries; floats get the dtype of the backend."""
        def make(default):
            array = jnp.asarray(values) if dtype is None else jnp.asarray(values, dtype)
            return array.astype(default) if dtype is None and jnp.issubdtype(array.dtype, jnp.floating) else array
        return self._create(make, None, device_mesh, tensor_split)

    def arange(self, *args, dtype=None):
        """Evenly spaced numbers, as numpy.arange."""
        with self._scope():
            return jnp.arange(*args, dtype=dtype)

    def linspace(self, start, stop, steps, dtype=None):
        """`steps` numbers from start to stop."""
        with self._scope():
            return jnp.linspace(start, stop, steps, dtype=dtype or self.dtype)

    def eye(self, N, M=None, dtype=None):
        """Ones on the diagonal."""
        with self._scope():
            return jnp.eye(N, M, dtype=dtype or self.dtype)

    # ---- random numbers ---------------------------------------------------------------------------------------------

    def set_seed(self, seed):
        """Restarts the sequence of random numbers."""
        self._key = jax.random.key(seed)
        self._seeds = seed

    def _next_seed(self):
        self._seeds += 1
        return self._seeds - 1

    def get_random_key(self):
        """A key that no other call gets."""
        self._key, key = jax.random.split(self._key)
        return key

    def split_key(self, key, num=2):
        """Splits a key into new keys."""
        return jax.random.split(key, num)

    def random_normal(self, key, shape, dtype=None):
        """Standard normal numbers from a key."""
        with self._scope():
            return jax.random.normal(key, tuple(shape), dtype or self.dtype)

    def random_uniform(self, key, shape, dtype=None):
        """Uniform numbers in [0, 1) from a key."""
        with self._scope():
            return jax.random.uniform(key, tuple(shape), dtype or self.dtype)

    def randn(self, *shape, dtype=None, key=None):
        """Standard normal numbers."""
        return self.random_normal(self._key_or_next(key), _shape(shape), dtype)

    def rand(self, *shape, dtype=None, key=None):
        """Uniform numbers in [0, 1)."""
        return self.random_uniform(self._key_or_next(key), _shape(shape), dtype)

    def randint(self, low, high, *shape, key=None):
        """Integers in [low, high)."""
        return jax.random.randint(self._key_or_next(key), _shape(shape), low, high)

    def _key_or_next(self, key):
        if key is None:
            return self.get_random_key()
        return jax.random.key(key) if isinstance(key, int) else key

    # ---- user operations --------------------------------------------------------------------------------------------

    def register_op(self, name):
        """A decorator: the function becomes an operation of this backend, and `backend.op(name)` a model of it."""
        def register(function):
            self._operations[name] = function
            return function
        return register

    def op(self, name):
        """A model of a registered operation: `model |= backend.op("gelu")(input="x", output="y")`."""
        if name not in self._operations:
            known = ", ".join(sorted(self._operations)) or "none"
            raise KeyError(f"JaxBackend.op: no operation {name!r} is registered; there are: {known}")
        return _models.operation(self._operations[name], name=name)

    def to_numpy(self, array):
        """The tensor as a NumPy array."""
        import numpy

        return numpy.asarray(array)

    def __getattr__(self, name):
        operations = self.__dict__.get("_operations", {})
        if name in operations:
            return operations[name]
        raise AttributeError(f"JaxBackend has no attribute {name!r}")

    def __repr__(self):
        return f"JaxBackend(dtype={self.dtype}, device={self.device})"


def _forward(name, function):
    @functools.wraps(function)
    def method(self, *args, **kwargs):
        with self._scope():
            return function(*args, **kwargs)
    method.__name__ = name
    return method


for _name, _source in _FUNCTIONS.items():
    setattr(JaxBackend, _name, _forward(_name, getattr(jnp, _source)))
for _name in _ACTIVATIONS:
    setattr(JaxBackend, _name, _forward(_name, getattr(jax.nn, _name)))


def _shape(shape):
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def _find_device(device):
    if device is None:
        return jax.devices()[0]
    if not isinstance(device, str):
        return device
    kind, _, number = device.partition(":")
    kind = {"cuda": "gpu"}.get(kind, kind)
    available = {}
    for platform in ("cpu", "gpu", "tpu"):
        try:
            available[platform] = jax.devices(platform)
        except RuntimeError:
            continue
    devices = available.get(kind, [])
    index = int(number) if number else 0
    if index >= len(devices):
        names = ", ".join(f"{platform}:{i}" for platform, found in available.items() for i in range(len(found)))
        raise RuntimeError(f"JaxBackend: there is no device {device!r}; there are: {names}")
    return devices[index]


def _make_mesh(shape):
    count = math.prod(shape)
    devices = jax.devices()
    if count > len(devices):
        raise RuntimeError(f"JaxBackend: a mesh of {shape} needs {count} devices, there are {len(devices)}; on the CPU set "
                           f"jax.config.update('jax_num_cpu_devices', {count}) first")
    # Auto: the compiler places results of batches and weights that are split over the same axis.
    types = (jax.sharding.AxisType.Auto,) * len(shape)
    return jax.make_mesh(shape, tuple(f"axis_{i}" for i in range(len(shape))), types, devices=devices[:count])
