"""jax.config: process-wide settings, and thread-local scopes that change them."""
import contextlib
import importlib
import os
import threading

from capibara import _core, _tracebacks
from capibara.jax import _key_reuse
from capibara.jax._devices import Device, devices, find_plugins
from capibara.jax._flags import WITHOUT_EFFECT, check as _check_flag
from capibara.jax._user_context import UserContext

# jax_<name>: settings held by the core, or held in Python with their allowed values.
_CORE = tuple(_core.config_values())
_OWN = {
    "platform_name": (None, None),
    "platforms": (None, None),
    "traceback_filtering": ("auto", _tracebacks.MODES),
    "debug_mode": (False, (True, False)),
    "debug_key_reuse": (False, (True, False)),
    "transfer_guard": (None, None),
    "transfer_guard_host_to_device": (None, None),
    "transfer_guard_device_to_device": (None, None),
    "transfer_guard_device_to_host": (None, None),
    "default_device": (None, None),
    "logging_level": ("NOTSET", ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
    "debug_log_modules": ("", None),
    "explain_cache_misses": (False, (True, False)),
    "cpu_enable_async_dispatch": (True, (True, False)),
    "captured_constants_warn_bytes": (2000000000, None),
    "compilation_cache_dir": (None, None),
    "compilation_cache_max_size": (-1, None),
    "enable_compilation_cache": (True, (True, False)),
    "optimization_level": ("UNKNOWN", ("UNKNOWN", "O0", "O1", "O2", "O3")),
    "disable_most_optimizations": (False, (True, False)),
    "explicit_x64_dtypes": ("warn", ("warn", "error", "allow")),
    "export_calling_convention_version": (10, None),
    "disable_bwd_checks": (False, (True, False)),
    "check_static_indices": (False, (True, False)),
    **{f"error_checking_behavior_{_name}": ("ignore", ("ignore", "raise")) for _name in ("nan", "divide", "oob")},
}
_warned = set()  # settings without effect that have been changed once


_checking = 0  # how many settings and scopes check the numbers of jax.numpy
_checking_lock = threading.Lock()


def _count_checks(before, after):
    """Calls of jax.numpy go through check_call as long as a setting or scope of any thread needs it."""
    global _checking
    with _checking_lock:
        _checking += (after == "raise") - (before == "raise")
        check_call = importlib.import_module("capibara.jax._src.numpy.error").check_call if _checking else None
        _core.set_number_hook(check_call)


NUMBER_CHECKS = {name: UserContext("ignore", _count_checks) for name in ("nan", "divide", "oob")}
_NATIVE = _core.platform()  # this build's default platform


def choose_platform(value):
    """Sets the platform: 'cuda', or a list such as 'cuda,cpu', whose first entry is used; 'cpu' or empty is the native backend."""
    if not isinstance(value, (str, type(None))):
        raise ValueError(f"jax_platforms must be None or a string such as 'cuda,cpu', got {value!r} of type {type(value)}")
    first = (value or "cpu").split(",")[0].strip()
    if first == "capibara":  # jax's name for this library's plugin; here the native backend
        first = "cpu"
    if first not in ("cpu", "reference") and not _core.is_plugin_platform(first):
        raise RuntimeError(f"Unable to initialize backend '{first}': Backend '{first}' is not in the list of known backends: "
                           "['cpu', 'reference', 'pjrt', 'cuda', 'rocm', 'tpu', 'gpu', 'xla_cpu']")
    find_plugins()
    _core.set_platform(_NATIVE if first == "cpu" else first)


class Config:
    """The class of `jax.config`: attributes jax_..., and update."""

    def __init__(self):
        object.__setattr__(self, "_own", {name: value for name, (value, _) in _OWN.items()})
        object.__setattr__(self, "_without_effect", {name: value for name, (value, _) in WITHOUT_EFFECT.items()})

    def update(self, name, value):
        """Changes a process-wide setting: config.update('jax_enable_x64', True)."""
        short = name.removeprefix("jax_")
        if name in WITHOUT_EFFECT:
            self._without_effect[name] = _check_flag(name, value)
            _warn_without_effect(name, self._without_effect[name])
            return
        if not name.startswith("jax_") or (short not in _CORE and short not in _OWN):
            raise AttributeError(f"Unrecognized config option: {name}")
        if short in _CORE:
            _check(short, value)
            _core.config_update(short, value)
            return
        allowed = _OWN[short][1]
        if short == "explicit_x64_dtypes":  # jax's values are enum members
            value = getattr(value, "name", value).lower() if value is not None else value
        if allowed is not None and value not in allowed:
            raise ValueError(f"config.update: {name} must be one of {allowed}, got {value!r}")
        if short in _SETTERS:
            value = _SETTERS[short](value)
        elif short.startswith("transfer_guard"):
            from capibara.jax._transfer_guards import set_default
            set_default(short, value)
        self._own[short] = value

    def read(self, name):
        return getattr(self, name)

    _read = read

    @property
    def values(self):
        return {name: getattr(self, name) for name in (*(f"jax_{short}" for short in (*_CORE, *_OWN)), *WITHOUT_EFFECT)}

    @property
    def x64_enabled(self):
        return self.jax_enable_x64

    def __getattr__(self, name):
        short = name.removeprefix("jax_")
        if name.startswith("jax_") and short in _CORE:
            return _core.config_values()[short]
        if name == "jax_debug_key_reuse":
            return _key_reuse.is_on()
        if short.startswith("error_checking_behavior_") and short in _OWN:
            return NUMBER_CHECKS[short.rpartition("_")[2]].value
        if name.startswith("jax_") and short in _OWN:
            return self._own[short]
        if name in WITHOUT_EFFECT:
            return self._without_effect[name]
        raise AttributeError(f"Unrecognized config option: {name}")

    def __setattr__(self, name, value):
        self.update(name, value)

    def parse_flags_with_absl(self):
        """Does nothing: no absl flags are defined here."""


def _warn_without_effect(name, value):
    if value == WITHOUT_EFFECT[name][0] or name in _warned:
        return
    import warnings
    _warned.add(name)
    warnings.warn(f"{name} has no effect in capibara, got {value!r}; docs/ignored.md lists what has none", stacklevel=3)


def device_named(value):
    """The device of jax_default_device: a Device, a platform's name for its first device, or None."""
    if value is None or isinstance(value, Device):
        return value
    if isinstance(value, str):
        return devices(value)[0]
    raise ValueError(f"jax.default_device must be passed a Device object (e.g. `jax.devices('cpu')[0]`) or a platform name string like "
                     f"'cpu' or 'gpu', got: {value!r}")


def _set_default_device(value):
    device = device_named(value)
    _core.set_default_device(None if device is None else (device.platform, device.id))
    return value


def _set_platform(value):
    choose_platform(value)
    return value


def _set_traceback_filtering(value):
    _tracebacks.set_mode(value)
    return value


def _set_key_reuse(value):
    _key_reuse.set_default(value)
    return value


def _set_debug_mode(value):
    for flag in ("debug_nans", "debug_infs", "check_tracer_leaks"):
        _core.config_update(flag, bool(value))
    return value


def _set_logging_level(value):
    import logging
    logging.getLogger("jax").setLevel(value)
    return value


def _set_debug_modules(value):
    import logging
    for name in filter(None, (value or "").split(",")):
        logging.getLogger(name.strip()).setLevel(logging.DEBUG)
    return value


def _set_explain_cache_misses(value):
    from capibara.jax._cache_misses import set_explaining
    return set_explaining(value)


def _set_optimization_level(value):
    options = [] if value == "UNKNOWN" else [("xla_backend_optimization_level", int(value[1:]))]
    _core.set_default_compiler_options(options)
    _core.clear_caches()  # drops programs compiled with the old setting
    return value


def _set_few_optimizations(value):
    _set_optimization_level("O0" if value else config.jax_optimization_level)
    return bool(value)


def _set_captured_constants(value):
    if not isinstance(value, int):
        raise TypeError(f"jax_captured_constants_warn_bytes must be a number of bytes, got {value!r}")
    _core.warn_of_captured_constants_above(value if value >= 0 else 2**62)  # -1: never
    return value


_usual_cache = []  # the cache's folder before a setting moved it


def _cache_setter(name):
    """A setter for one of the three settings that together determine the location of the disk cache."""

    def set_one(value):
        own = {short: getattr(config, f"jax_{short}") for short in ("compilation_cache_dir", "compilation_cache_max_size", "enable_compilation_cache")}
        own[name] = value
        if not _usual_cache:
            _usual_cache.append(_core.disk_cache_folder())
        folder = (own["compilation_cache_dir"] or _usual_cache[0]) if own["enable_compilation_cache"] else ""
        _core.move_disk_cache(os.fspath(folder), int(own["compilation_cache_max_size"]))
        return value

    return set_one


def _set_async_dispatch(value):
    _core.set_async_dispatch(bool(value))
    return bool(value)


def _set_explicit_x64(value):
    _core.set_explicit_x64_dtypes(value)
    return value


def _set_static_indices(value):
    _core.check_static_indices(bool(value))
    return bool(value)


def _set_backward_checks(value):
    _core.check_backward_rules(not value)
    return bool(value)


def _set_number_check(category):
    return lambda value: NUMBER_CHECKS[category].set_global(value)


_SETTERS = {
    **{f"error_checking_behavior_{_name}": _set_number_check(_name) for _name in NUMBER_CHECKS},
    "platforms": _set_platform, "platform_name": _set_platform, "traceback_filtering": _set_traceback_filtering,
    "debug_key_reuse": _set_key_reuse, "debug_mode": _set_debug_mode, "default_device": _set_default_device, "logging_level": _set_logging_level,
    "debug_log_modules": _set_debug_modules, "explain_cache_misses": _set_explain_cache_misses,
    **{_name: _cache_setter(_name) for _name in ("compilation_cache_dir", "compilation_cache_max_size", "enable_compilation_cache")},
    "captured_constants_warn_bytes": _set_captured_constants, "cpu_enable_async_dispatch": _set_async_dispatch, "optimization_level": _set_optimization_level, "disable_most_optimizations": _set_few_optimizations,
    "explicit_x64_dtypes": _set_explicit_x64, "disable_bwd_checks": _set_backward_checks, "check_static_indices": _set_static_indices,
}
_CHOICES = {
    "numpy_dtype_promotion": ("standard", "strict"),
    "numpy_rank_promotion": ("allow", "warn", "raise"),
    "default_matmul_precision": (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
                                 "bfloat16_3x", "fastest", "ANY_F8_ANY_F8_F32", "F32_F32_F32", "BF16_BF16_F32", "TF32_TF32_F32"),
    "default_prng_impl": ("threefry2x32", "rbg", "unsafe_rbg"),
    "legacy_prng_key": ("allow", "warn", "error"),
}


def _check(name, value):
    if name in _CHOICES and value not in _CHOICES[name]:
        raise ValueError(f"new enum value for jax_{name} must be in {_CHOICES[name]}, got {value!r}")
    if isinstance(_core.config_values()[name], bool) and not isinstance(value, bool) and value not in (0, 1):
        raise ValueError(f"jax_{name} must be True or False, got {value!r}")


config = Config()
_set_captured_constants(config.jax_captured_constants_warn_bytes)


def _from_environment():
    """Reads settings from environment variables such as JAX_ENABLE_X64=1, named after the setting in capitals."""
    for name, now in config.values.items():
        text = os.environ.get(name.upper())
        if text is None or name == "jax_platform_name":
            continue
        kind = WITHOUT_EFFECT[name][1] if name in WITHOUT_EFFECT else type(now)
        if kind is bool:
            value = text.lower() in ("1", "true", "t", "yes", "y", "on")
        elif kind in (int, float):
            value = kind(text)
        else:
            value = text
        config.update(name, value)


_from_environment()


def scope(name, *default):
    """A context manager for one setting: scope('enable_x64')(True)."""
    keyword = "disable" if name == "disable_jit" else "new_val"  # jax's name of the argument

    def make(*given, **named):
        given += tuple(named.pop(keyword) for _ in range(keyword in named))
        if named or len(given) > 1 or not (given or default):
            raise TypeError(f"{name}: expected the new value as the only argument '{keyword}', got {[*given, *named]}")
        value = given[0] if given else default[0]
        _check(name, value)
        return _Scope({name: value})

    make.__name__ = name
    make.__doc__ = f"Sets jax_{name} on this thread while the context lasts."
    return make


class _Scope(contextlib.ContextDecorator):
    def __init__(self, changes):
        self._changes = changes
        self._open = []

    def __enter__(self):
        inner = _core.ConfigScope(self._changes)
        inner.__enter__()
        self._open.append(inner)

    def __exit__(self, *exception):
        self._open.pop().__exit__(*exception)
        return False


class default_device(contextlib.ContextDecorator):
    """A context in which computations on uncommitted arguments run on this device."""

    def __init__(self, device):
        self._device = device_named(device)
        self._open = []

    def __enter__(self):
        scope_of_device = _core.DefaultDeviceScope(None if self._device is None else (self._device.platform, self._device.id))
        scope_of_device.__enter__()
        self._open.append(scope_of_device)
        return self._device

    def __exit__(self, *exception):
        self._open.pop().__exit__(*exception)
        return False


class _FlagScope(contextlib.ContextDecorator):
    def __init__(self, name, value):
        self._name, self._value, self._before = name, value, []

    def __enter__(self):
        self._before.append(getattr(config, self._name))
        config.update(self._name, self._value)

    def __exit__(self, *exception):
        config.update(self._name, self._before.pop())
        return False


def flag_scope(name, *default):
    """A context manager for a setting that the core does not hold."""

    def make(*given):
        if len(given) > 1 or not (given or default):
            raise TypeError(f"{name}: expected the new value as the only argument, got {len(given)}")
        return _FlagScope(name, given[0] if given else default[0])

    make.__name__ = name.removeprefix("jax_")
    make.__doc__ = f"Sets {name} while the context lasts."
    return make
