"""The functions of jax.experimental.colocated_python."""
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from capibara._modules import explain_missing
from capibara.jax._devices import Device, devices
from capibara.jax._mesh import Mesh
from capibara.jax.experimental.colocated_python.func import ColocatedFunction
from capibara.jax.experimental.colocated_python.obj import wrap_class


@overload
def colocated_cpu_devices(devices_or_mesh: Sequence[Device]) -> Sequence[Device]: ...


@overload
def colocated_cpu_devices(devices_or_mesh: Mesh) -> Mesh: ...


def colocated_cpu_devices(devices_or_mesh: Sequence[Device] | Mesh) -> Sequence[Device] | Mesh:
    """The CPU devices on the hosts of the given devices, in the same order; CPU devices map to themselves, a mesh to a mesh."""
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        own = np.empty(mesh.devices.size, dtype=object)
        own[:] = colocated_cpu_devices(tuple(mesh.devices.flat))
        return Mesh(own.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)
    given = list(devices_or_mesh)
    free = [device for device in devices("cpu") if device not in given]
    result = []
    for device in given:
        if device.platform == "cpu":
            result.append(device)
            continue
        own = next((cpu for cpu in free if cpu.process_index == device.process_index), None)
        if own is None:
            raise ValueError(f"Process {device.process_index} does not have enough local CPU devices: raise jax_num_cpu_devices")
        free.remove(own)
        result.append(own)
    return result


def colocated_python(fun: Callable[..., Any]) -> ColocatedFunction:
    """Makes a function run on the host of its arguments' devices."""
    return ColocatedFunction(fun)


def colocated_python_class(cls: type) -> type:
    """A class whose objects are created on the host of the first method call's arguments."""
    return wrap_class(cls)


explain_missing(__name__)
