"""What JAX's test support needs of jaxlib and jax's internals, built on capibara: settings, devices, counters. Nothing here computes."""
import contextlib
import enum
import functools
import importlib
import importlib.util
import threading
import types
import typing

import absent
import modules
import numpy as np

import capibara.jax as jax
from capibara import _core

define = modules.define
Value = typing.TypeVar("Value")
KNOWN = {"jax_" + name for name in _core.config_values()}
SHARED = KNOWN | {"jax_traceback_filtering", "jax_debug_key_reuse"}  # settings with the same names in capibara
SCOPED = KNOWN - {"jax_num_cpu_devices"}


class Unset:
    """Marks a setting that a thread has not set."""

    def __repr__(self):
        return "<unset>"


UNSET = Unset()


def _as_setting(value):
    return value.name.lower() if isinstance(value, enum.Enum) else value


class Setting(typing.Generic[Value]):
    """jaxlib's class of settings: one value for the process and one per thread; settings that capibara has are forwarded to it."""

    def __init__(self, name, default, *, include_in_jit_key=False, include_in_trace_context=False):
        self._own_name, self._own_process, self._own_thread, self._own_scopes = name, default, threading.local(), []
        self._own_kind = type(default) if isinstance(default, enum.Enum) else None

    @property
    def value(self):
        if self._own_name in SHARED:
            value = getattr(jax.config, self._own_name)
            return self._own_kind[value.upper()] if self._own_kind and isinstance(value, str) else value
        own = self.get_local()
        return self._own_process if own is UNSET else own

    def get_local(self):
        return getattr(self._own_thread, "value", UNSET)

    def get_global(self):
        return self.value if self._own_name in SHARED else self._own_process

    def set_global(self, value):
        self._own_process = value
        if self._own_name in SHARED:
            jax.config.update(self._own_name, _as_setting(value))

    def swap_local(self, value):
        before = self.get_local()
        if self._own_name in SCOPED:
            scope = _core.ConfigScope({self._own_name.removeprefix("jax_"): _as_setting(value)})
            scope.__enter__()
            self._own_scopes.append(scope)
        elif self._own_name in SHARED:
            self._own_scopes.append(getattr(jax.config, self._own_name))
            jax.config.update(self._own_name, _as_setting(value))
        self._own_thread.value = value
        return before

    def set_local(self, before):
        if self._own_scopes and self._own_name in SCOPED:
            self._own_scopes.pop().__exit__(None, None, None)
        elif self._own_scopes and self._own_name in SHARED:
            jax.config.update(self._own_name, self._own_scopes.pop())
        self._own_thread.value = before


def nothing(*args, **kwargs):
    return None


def _columns(what, sequences):
    lists = [list(sequence) for sequence in sequences]
    for number, one in enumerate(lists[1:], 2):
        if len(one) != len(lists[0]):
            raise ValueError(f"{what}() argument {number} is {'longer' if len(one) > len(lists[0]) else 'shorter'} than argument 1")
    return list(zip(*lists))


def safe_map(function, *sequences):
    if not sequences:
        raise TypeError("safe_map requires at least 2 arguments")
    return [function(*column) for column in _columns("safe_map", sequences)]


def safe_zip(*sequences):
    return _columns("safe_zip", sequences)


class Mutex:
    """jaxlib's reader-writer lock, as a single lock for both."""

    def __init__(self):
        lock = threading.RLock()
        self.writer_lock = self.reader_lock = lock.acquire
        self.writer_unlock = self.reader_unlock = lock.release


def define_jaxlib():
    """The parts of jaxlib that JAX's test support uses."""
    levels = dict(ALLOW=0, LOG=1, DISALLOW=2, LOG_EXPLICIT=3, DISALLOW_EXPLICIT=4, FATAL=2)
    define("jax._src.lib", version=(0, 10, 2), version_str="0.10.2", jaxlib_extension_version=467, ifrt_version=100, cuda_versions=None,
           cuda_path=None, jaxlib=None, gpu_solver=None, has_cpu_sparse=False)
    settings = types.SimpleNamespace(Config=Setting, unset=UNSET, trace_context=tuple, trace_context_names=tuple)
    no = lambda: False  # noqa: E731
    define("jax._src.lib._jax", config=settings, is_asan=no, is_msan=no, is_tsan=no, is_sanitized=no, is_optimized_build=lambda: True,
           RuntimeTracebackMode=types.SimpleNamespace(OFF=0, ON=1, FULL=2), ArrayImpl=_core.ArrayImpl, Device=jax.Device,
           **dict.fromkeys(("set_send_traceback_to_runtime_global", "set_send_traceback_to_runtime_thread_local", "set_valid_dtypes",
                            "set_invalid_input_exception", "register_canonicalize_value_handler"), nothing))
    define("jax._src.lib.guard_lib", thread_local_state=types.SimpleNamespace, global_state=types.SimpleNamespace,
           update_thread_guard_global_state=nothing, TransferGuardLevel=types.SimpleNamespace(**levels),
           GarbageCollectionGuardLevel=types.SimpleNamespace(**levels))
    define("jax._src.lib.jax_jit", set_enable_x64_state=nothing, set_disable_jit_state=nothing)
    define("jax._src.lib.xla_client", Device=jax.Device, ArrayImpl=_core.ArrayImpl)
    define("jax._src.lib.pytree")
    define("jax._src.lib.weakref_lru_cache")
    define("jax._src.lib.utils", safe_map=safe_map, safe_zip=safe_zip, foreach=safe_map, Mutex=Mutex,
           topological_sort=absent.absent("jaxlib.utils.topological_sort"), install_failure_signal_handler=nothing)


def define_dtypes():
    """JAX's own dtypes module, with capibara's functions wherever it has them."""
    define("jax._src.traceback_util", **{name: value for name, value in vars(modules.capibara_module("jax._src.traceback_util")).items()
                                         if not name.startswith("__")})
    importlib.import_module("jax._src.util")
    spec = importlib.util.spec_from_file_location("jax._src.dtypes", modules.source_of("jax._src.dtypes"))
    dtypes = importlib.util.module_from_spec(spec)
    modules.sys.modules["jax._src.dtypes"] = dtypes
    spec.loader.exec_module(dtypes)
    for own in (modules.capibara_module("jax._src.dtypes"), modules.capibara_module("jax.dtypes")):
        for name, value in vars(own).items():
            home = getattr(value, "__module__", "").split(".")[0]
            if not name.startswith("_") and hasattr(dtypes, name) and home in ("capibara", "ml_dtypes", "numpy"):
                setattr(dtypes, name, value)
    dtypes.float0 = jax.float0
    return define("jax._src.dtypes")


class Backend:
    """The only backend: capibara's on the CPU."""

    platform, platform_version = "cpu", "capibara"
    devices, local_devices = staticmethod(jax.devices), staticmethod(jax.local_devices)
    device_count, process_index = staticmethod(jax.device_count), staticmethod(lambda: 0)
    live_arrays = staticmethod(jax.live_arrays)

    def __getattr__(self, name):
        return absent.absent("xla backend." + name)


@functools.lru_cache
def get_backend(platform=None):
    if platform not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend: '{platform}' requested, but no platforms that are instances of {platform} are present. "
                           "Platforms present are: cpu")
    return Backend()


class DeviceCount:
    """The number of devices that the CPU is split into."""

    value = property(lambda self: getattr(jax.config, "jax_num_cpu_devices", 1))


class NoCache:
    """A cache that stores nothing."""

    cache_clear = staticmethod(nothing)
    cache_info = staticmethod(lambda: types.SimpleNamespace(misses=0, hits=0, currsize=0))


def define_backends():
    """Devices and caches, under the names that test support uses."""
    define("jax._src.xla_bridge", get_backend=get_backend, num_cpu_devices=DeviceCount(), _backends={},
           backends=lambda: {"cpu": get_backend()}, backend_pjrt_c_api_version=nothing, backend_stablehlo_version=nothing,
           devices=jax.devices, local_devices=jax.local_devices,
           CPU_ENABLE_ASYNC_DISPATCH=types.SimpleNamespace(value=False), backends_are_initialized=lambda: True,
           known_platforms=lambda: {"cpu"})
    define("jax._src.cloud_tpu_init", running_in_cloud_tpu_vm=False)
    define("jax._src.compilation_cache", _cache=None, reset_cache=nothing, is_persistent_cache_enabled=lambda: False)
    define("jax._src.interpreters.mlir", _platforms_with_donation=["cpu", "cuda", "rocm", "tpu", "neuron"])
    define("jax._src.dispatch", xla_primitive_callable=NoCache(),
           runtime_tokens=types.SimpleNamespace(clear=nothing, block_until_ready=jax.effects_barrier))
    define("jax._src.sharding_impls", make_single_device_sharding=lambda device, memory_kind=None: jax.sharding.SingleDeviceSharding(
        device, memory_kind=memory_kind))


def define_values(dtypes):
    """The private helpers with which tests make values: promotion, weak types, keys."""
    core = modules.capibara_module("jax._src.core")
    define("jax._src.core", subjaxprs=core.subjaxprs, jaxprs_in_params=core.jaxprs_in_params, reset_trace_state=core.trace_state_clean)

    def promote(*values, inexact=False):
        with jax.numpy_dtype_promotion("standard"):
            dtype = jax.numpy.result_type(*values)
            dtype = dtypes.to_inexact_dtype(dtype) if inexact else dtype
        return [jax.numpy.asarray(value).astype(dtype) for value in values]

    def promote_complex(*values):
        return [value.astype(jax.numpy.promote_types(value.dtype, np.complex64)) for value in promote(*values, inexact=True)]
    define("jax._src.numpy.util", promote_dtypes=promote, promote_dtypes_inexact=functools.partial(promote, inexact=True),
           promote_dtypes_complex=promote_complex)

    def convert(operand, new_dtype=None, weak_type=False, sharding=None, warn_on_complex_to_real_cast=True):
        if new_dtype is None:
            new_dtype = getattr(operand, "dtype", None) or jax.numpy.result_type(operand)
        if not weak_type:
            return jax.lax.convert_element_type(operand, new_dtype)
        return jax.lax.convert_element_type_p.bind(jax.numpy.asarray(operand), new_dtype=dtypes.canonicalize_dtype(new_dtype),
                                                   weak_type=True, sharding=None)
    define("jax._src.lax.lax", _convert_element_type=convert)
    define("jax._src.array", ArrayImpl=_core.ArrayImpl)
    define("jax._src.debugging", debug_print=jax.debug.print, debug_callback=jax.debug.callback)
    define("jax._src.pretty_printer")

    class IsKey(type):
        def __instancecheck__(cls, value):
            return isinstance(value, jax.Array) and dtypes.issubdtype(value.dtype, dtypes.prng_key)
    words = {"threefry2x32": 2, "rbg": 4, "unsafe_rbg": 4}
    generators = {name: types.SimpleNamespace(name=name, key_shape=(count,)) for name, count in words.items()}
    for name in ("jax._src.random.prng", "jax._src.prng"):
        define(name, PRNGKeyArray=IsKey("PRNGKeyArray", (), {}), prngs=generators,
               KeyTy=modules.capibara_module("jax._src.dtypes").ExtendedDType)


class Counter(contextlib.AbstractContextManager):
    """A counter of events in jax's pipeline; querying one without a counterpart fails the test."""

    TRACE, COMPILE = "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"
    # A call of a jitted function that has to be traced is a cache miss; the other counters count compilations.
    KNOWN = {"count_jit_tracing_cache_miss": TRACE, "count_pjit_cpp_cache_miss": TRACE, "count_jit_and_pmap_lowerings": COMPILE,
             "count_jit_compilation_cache_miss": COMPILE, "count_compilation_after_persistent_cache_miss": COMPILE,
             "count_aot_jit_cpp_cache_miss": None}  # compiled functions are never called through Python

    def __init__(self, event):
        self.event, self.seen = event, 0

    def __enter__(self):
        if self.event in self.KNOWN:
            jax.monitoring.register_event_duration_secs_listener(self._hear)
        return self._count

    def __exit__(self, *error):
        if self.event in self.KNOWN:
            jax.monitoring.unregister_event_duration_listener(self._hear)

    def _hear(self, event, duration, **metadata):
        self.seen += event == self.KNOWN[self.event]

    def _count(self):
        if self.event not in self.KNOWN:
            raise absent.InternalCounter(f"counter of XLA pipeline events: {self.event}")
        return self.seen


def define_test_support():
    """JAX's own test_util, with our counters, which fail if an event is not counted; check_grads is JAX's, too."""
    support = importlib.import_module("jax._src.test_util")
    events = ("count_device_put count_device_put_fast_path_hit count_pjit_cpp_cache_miss count_jit_tracing_cache_miss "
              "count_aot_jit_cpp_cache_miss count_jit_and_pmap_lowerings count_jit_compilation_cache_miss "
              "count_compilation_after_persistent_cache_miss count_jax_array_shard_arg_calls count_primitive_compiles "
              "count_internal_device_puts")
    for event in events.split():
        setattr(support, event, functools.partial(Counter, event))
    support.count_subjaxpr_to_hlo_conversion = lambda fun_name: Counter("count_subjaxpr_to_hlo_conversion")
    support.collect_lowered_jaxprs = lambda: Counter("collect_lowered_jaxprs")
    theirs, ours = importlib.import_module("jax._src.public_test_util"), importlib.import_module("capibara.jax.test_util")
    for name in ("check_grads", "check_jvp", "check_vjp"):
        setattr(ours, name, getattr(theirs, name))
    define("jax._src").test_util = support


def install():
    """Installs everything above, in order of dependencies."""
    modules.install()
    with absent.importing():
        define_jaxlib()
        config = importlib.import_module("jax._src.config")
        define("jax._src").config = config
        config.bool_state(name="jax_pprint_use_color", default=True, help="of jax's printer of programs")
        dtypes = define_dtypes()
        count = config.config._value_holders.setdefault("jax_num_cpu_devices", Setting("jax_num_cpu_devices", -1))
        count._set = count.set_global
        define_backends()
        define_values(dtypes)
        define_test_support()
