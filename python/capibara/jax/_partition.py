"""Placing by specification alone: names that jax does not have."""
from capibara import _tracebacks
from capibara.jax._api import jit
from capibara.jax._devices import devices
from capibara.jax._mesh import Mesh, PartitionSpec, current_mesh
from capibara.jax._placing import device_put
from capibara.jax._sharding import NamedSharding


def partition(array, spec, mesh=None):
    """The array, split over a mesh as the specification says.

    Without a mesh, the one of `set_mesh` or `with mesh:` counts; where there is none, all devices, as a grid that is as square
    as possible over the axes that the specification names.
    """
    spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
    return device_put(array, NamedSharding(mesh or current_mesh() or _mesh_of_all_devices(spec), spec))


def _mesh_of_all_devices(spec):
    names = [name for entry in spec for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)]
    return Mesh(devices(), tuple(names) or ("devices",))


def pjit(fun=None, *, in_axis_resources=None, out_axis_resources=None, **options):
    """jit under its older name, with the older names of in_shardings and out_shardings. Without a function it is a decorator."""
    for old, new, value in (("in_axis_resources", "in_shardings", in_axis_resources),
                            ("out_axis_resources", "out_shardings", out_axis_resources)):
        if value is not None and options.setdefault(new, value) is not value:
            raise ValueError(f"pjit: {old} is the older name of {new}; give one of them, got both")
    return (lambda function: jit(function, **options)) if fun is None else jit(fun, **options)


_tracebacks.guard(__name__)
