"""python -m jax_plugins.capibara: reports the installed JAX, whether the plugin works in it, and the owner of each platform's devices.

`capibara doctor --jax` prints the same.
"""

import os
import sys

_WIDTH = 13


def _line(name, text):
    print(f"  {name:{_WIDTH}} {text}")


def _owner(client):
    version = [line for line in client.platform_version.splitlines() if line != "PJRT C API"] or [client.platform]
    return version[0] if version[0].startswith("capibara") else f"jaxlib: {version[0]}"


def _print_platform(jax, name):
    """Prints who provides a platform's devices, or why there are none."""
    try:
        devices = jax.devices(name)
    except RuntimeError as error:
        _line(name, f"no devices: {str(error).splitlines()[0]}")
        return
    _line(name, f"{len(devices)} of {_owner(devices[0].client)}")


def main():
    try:
        import jax
        import jaxlib
    except ImportError as error:
        print(f"JAX: not installed for {sys.executable} ({error})\nHint: pip install jax, or name another Python in CAPIBARA_PYTHON")
        return 1
    if "capibara" in jax.__name__ or not hasattr(jax, "_src"):
        print("JAX: the module jax is capibara's own here; run the doctor outside of python -m capibara")
        return 1
    from jax_plugins import capibara as plugin

    variable, as_cpu = os.environ.get("JAX_PLATFORMS", ""), plugin._as_cpu()
    print(f"JAX {jax.__version__} with jaxlib {jaxlib.__version__}, {sys.executable}")
    _line("JAX_PLATFORMS", repr(variable) if variable else "not set")
    try:
        _line("plugin", plugin.library_path())
    except ImportError as error:
        _line("plugin", str(error).splitlines()[0])
        return 1
    chosen = as_cpu or "capibara" in plugin._requested()
    if not chosen:
        jax.config.update("jax_platforms", "capibara")  # to check whether it would work
    try:
        default = jax.devices()[0]
    except RuntimeError as error:
        print(f"  no devices: {error}")
        return 1
    for name in ["cpu"] if as_cpu else ["capibara", "cpu"]:
        _print_platform(jax, name)
    value = jax.jit(lambda x: x + 1)(jax.numpy.arange(3.0))
    works = value.tolist() == [1.0, 2.0, 3.0]
    _line("x + 1", f"on {default}: {'works' if works else f'gives {value.tolist()}, expected [1.0, 2.0, 3.0]'}")
    if not chosen:
        _line("hint", "your programs run on it with JAX_PLATFORMS=capibara; without it, nothing changes")
    return 0 if works else 1


if __name__ == "__main__":
    sys.exit(main())
