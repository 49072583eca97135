"""Unmodified JAX on capibara's compiler for CPUs: JAX_PLATFORMS=capibara python train.py.

JAX imports this module and calls `initialize` when it first looks for devices. Nothing happens unless capibara is selected
by JAX_PLATFORMS, jax.config.update("jax_platforms", ...), or CAPIBARA_AS_CPU=1, which makes it replace XLA:CPU.
"""

import concurrent.futures
import ctypes
import importlib.util
import os
import re
import traceback

__all__ = ["initialize", "library_path"]

_LIBRARY = "libcapibara_pjrt.so"
_STAGES = ("instantiate", "prepare", "initialize", "execute")


def library_path():
    """The path of the plugin: next to the package if installed, otherwise in the build tree."""
    spec = importlib.util.find_spec("capibara")
    folder = spec.submodule_search_locations[0] if spec else os.path.dirname(__file__)
    places = [os.path.join(folder, _LIBRARY), os.path.join(folder, "..", "..", "lib", _LIBRARY)]
    for place in places:
        if os.path.exists(place):
            return os.path.normpath(place)
    raise ImportError(f"capibara's plugin for JAX, {_LIBRARY}, is not installed: it was looked for at {', '.join(places)}\n"
                      "Hint: it is built where LLVM is found; see the page docs/jax-plugin.md")


def _device_count():
    import jax

    count = getattr(jax.config, "jax_num_cpu_devices", -1)
    if count is not None and count > 0:
        return count
    flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(flag.group(1)) if flag else 1


def _as_cpu():
    return os.environ.get("CAPIBARA_AS_CPU", "") not in ("", "0")


def _requested():
    """The platforms that jax is configured to use."""
    import jax

    return [name.strip() for name in (jax.config.jax_platforms or "").split(",")]


# ---- callbacks -----------------------------------------------------------------------------------------------------


def _array(description):
    """A view of the memory in a value's description, as an array; None for a token."""
    import ml_dtypes
    import numpy

    if description == "-":
        return None
    name, address, sizes = description.split(":")
    dtype = numpy.dtype(getattr(ml_dtypes, name, name))
    shape = tuple(int(size) for size in sizes.split(",")) if sizes else ()
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return numpy.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(address))
    return numpy.frombuffer(memory, dtype).reshape(shape)


def _descriptions(text):
    return text.split(";") if text else []


def _handlers(name):
    """The addresses of a target's functions registered with jax.ffi, by stage, and of the deleters of each type of state.

    "0,0,0,140737:4=140738" has one function, for the last stage, and a deleter for states of type 4; empty if there is no such target.
    """
    capsules = _targets.get(name)
    if capsules is None or name.startswith("xla_"):  # jaxlib's own callbacks, which need its own client
        return ""
    stages = capsules if isinstance(capsules, dict) else {"execute": capsules}
    types = (f"{ctypes.c_int64.from_address(number).value}={deleter}" for number, deleter in _types.values())
    return ":".join([",".join(str(_address(stages.get(stage))) for stage in _STAGES), *types])


def _has_mesh():
    from jax._src import mesh

    return not (mesh.get_abstract_mesh().empty and mesh.get_concrete_mesh().empty)


def _elsewhere(function, operands):
    """Calls a function on a separate thread, where no mesh is set, like XLA:CPU."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *operands).result()


def _call(function, values):
    """Calls a function on operands in memory and writes its results there; returns the text of its error, if any.

    For a name instead of a function, returns the addresses of its handlers.
    """
    if isinstance(function, str):
        return _handlers(function)
    try:
        given, expected = values.split("|")
        operands = []
        for description in _descriptions(given):
            view = _array(description)
            operands.append(view if view is None else view.copy())  # the function may keep it
            if view is not None:
                operands[-1].flags.writeable = False
        results = _elsewhere(function, operands) if _has_mesh() else function(*operands)
        places = _descriptions(expected)
        if len(results) != len(places):
            return f"expected {len(places)} results, got {len(results)}"
        for description, result in zip(places, results):
            place = _array(description)
            if place is not None:
                place.flags.writeable = True
                place[...] = result
        return ""
    except BaseException:  # the caller is not Python: every error is returned as text
        return traceback.format_exc()


# ---- user handlers -------------------------------------------------------------------------------------------------


_targets, _types = {}, {}  # capsules, and (address of the number, address of the deleter), by name
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _address(capsule):
    return 0 if capsule is None else _pointer_of(capsule, _name_of(capsule))


def _keep_registrations():
    """Records jax.ffi's registrations for the CPU, earlier and later ones, and forwards them to XLA:CPU."""
    from jaxlib import xla_client

    def keep_type(name, capsules):
        xla_client._xla.register_custom_type(name, capsules)  # which chooses the number
        parts = capsules if isinstance(capsules, dict) else {"type_id": capsules}
        info = _address(parts.get("type_info"))  # its size, an extension, and the deleter
        deleter = ctypes.c_void_p.from_address(info + 2 * ctypes.sizeof(ctypes.c_void_p)).value if info else None
        _types[name] = (_address(parts["type_id"]), deleter or 0)

    def keep_target(name, capsules, platform, api_version, traits):
        xla_client._xla.register_custom_call_target(name, capsules, platform, api_version, traits)
        if api_version == 1:
            _targets[name] = capsules

    xla_client.register_custom_type_handler("cpu", keep_type)  # types first: handlers may name them
    xla_client.register_custom_call_handler("cpu", keep_target)


# ---- registration --------------------------------------------------------------------------------------------------


def _options():
    return {"cpu_device_count": _device_count(), "python_call": id(_call)}


def initialize():
    """Registers the platform `capibara` with JAX if it is selected."""
    import jax
    from jax._src import xla_bridge

    requested, as_cpu = _requested(), _as_cpu()
    if "capibara" not in requested and not as_cpu:
        return
    _keep_registrations()
    xla_bridge._nonexperimental_plugins.add("capibara")
    xla_bridge.register_plugin("capibara", priority=400, library_path=library_path(), options=_options)
    if as_cpu:
        # One client for both names.
        client = []

        def make_client():
            if not client:
                client.append(xla_bridge.make_pjrt_c_api_client("capibara", _options))
            return client[0]

        xla_bridge.register_backend_factory("cpu", make_client, priority=0, fail_quietly=False)
        if "capibara" not in requested:
            xla_bridge._backend_factories.pop("capibara", None)
    elif requested == ["capibara"]:
        # Callbacks and jax.devices("cpu") need a platform named cpu: XLA:CPU, at lower priority.
        jax.config.update("jax_platforms", "capibara,cpu")
