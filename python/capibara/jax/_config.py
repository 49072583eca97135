"""jax.config: settings of the process, and scopes that change them on this thread."""
import contextlib
import os
import sys

from capibara import _core, _tracebacks

# jax_<name>: settings that the core holds, or that the Python face holds itself with what they may be.
_CORE = tuple(_core.config_values())
_OWN = {
    "platform_name": (None, None),
    "platforms": (None, None),
    "traceback_filtering": ("auto", _tracebacks.MODES),
    "debug_mode": (False, (True, False)),
    "debug_key_reuse": (False, (False,)),
    "transfer_guard": (None, None),
    "transfer_guard_host_to_device": (None, None),
    "transfer_guard_device_to_device": (None, None),
    "transfer_guard_device_to_host": (None, None),
}


_NATIVE = _core.platform()  # what this build runs programs on by itself
_search_begun = False


def choose_platform(value):
    """'cuda', or a list such as 'cuda,cpu' whose first member programs run on; 'cpu' or nothing is the native backend."""
    first = (value or "cpu").split(",")[0].strip()
    if first not in ("cpu", "reference") and not _core.is_plugin_platform(first):
        raise RuntimeError(f"Unable to initialize backend '{first}': Backend '{first}' is not in the list of known backends: "
                           "['cpu', 'reference', 'pjrt', 'cuda', 'rocm', 'tpu', 'gpu', 'xla_cpu']")
    find_plugins()
    _core.set_platform(_NATIVE if first == "cpu" else first)


def find_plugins():
    """Tells the core where this interpreter keeps its packages: plugins lie among them."""
    global _search_begun
    if not _search_begun:
        _search_begun = True
        _core.add_package_folders([folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))])


class Config:
    """What `jax.config` is: attributes jax_..., and update."""

    def __init__(self):
        object.__setattr__(self, "_own", {name: value for name, (value, _) in _OWN.items()})

    def update(self, name, value):
        """Changes a setting of the process: config.update('jax_enable_x64', True)."""
        short = name.removeprefix("jax_")
        if not name.startswith("jax_") or (short not in _CORE and short not in _OWN):
            raise AttributeError(f"Unrecognized config option: {name}")
        if short in _CORE:
            _check(short, value)
            _core.config_update(short, value)
            return
        if short in ("platforms", "platform_name"):
            choose_platform(value)
            self._own[short] = value
            return
        if short.startswith("transfer_guard"):
            from capibara.jax._transfer_guards import set_default
            set_default(short, value)
            self._own[short] = value
            return
        allowed = _OWN[short][1]
        if value not in allowed:
            raise ValueError(f"config.update: {name} must be one of {allowed}, got {value!r}")
        self._own[short] = value
        if short == "traceback_filtering":
            _tracebacks.set_mode(value)
        if short == "debug_mode":
            for flag in ("debug_nans", "debug_infs", "check_tracer_leaks"):
                _core.config_update(flag, bool(value))

    def read(self, name):
        return getattr(self, name)

    @property
    def values(self):
        return {f"jax_{name}": getattr(self, f"jax_{name}") for name in (*_CORE, *_OWN)}

    def __getattr__(self, name):
        short = name.removeprefix("jax_")
        if short in _CORE:
            return _core.config_values()[short]
        if short in _OWN:
            return self._own[short]
        raise AttributeError(f"Unrecognized config option: {name}")

    def __setattr__(self, name, value):
        self.update(name, value)

    def parse_flags_with_absl(self):
        """Flags of absl are read by jax programs; none of them is defined here."""


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

for _name in (*_CORE, "traceback_filtering", "platforms", *(_own for _own in _OWN if _own.startswith("transfer_guard"))):
    _text = os.environ.get(f"JAX_{_name.upper()}")
    if _text is not None:
        _now = getattr(config, f"jax_{_name}")
        if isinstance(_now, bool):
            config.update(f"jax_{_name}", _text.lower() in ("1", "true", "yes", "on"))
        elif isinstance(_now, int):
            config.update(f"jax_{_name}", int(_text))
        else:
            config.update(f"jax_{_name}", _text)


def scope(name, *default):
    """A context manager of one setting: scope('enable_x64')(True)."""

    def make(*given):
        if len(given) > 1 or not (given or default):
            raise TypeError(f"{name}: expected the new value as the only argument, got {len(given)}")
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
