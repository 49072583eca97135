"""Shardings as Shardy writes them."""
import dataclasses

from capibara.jax._mesh import Unconstrained


@dataclasses.dataclass(frozen=True)
class SdyDim:
    """The axes that split a dimension; an open one may be split further."""
    axes: tuple
    is_open: bool

    def _text(self):
        return "{" + ", ".join([*map(repr, self.axes), *(["?"] if self.is_open else [])]) + "}"

    def __repr__(self):
        return f"SdyDim({self._text()})"


@dataclasses.dataclass(frozen=True)
class SdyArray:
    """A sharding as Shardy writes it."""
    mesh_shape: tuple | None
    dim_shardings: tuple
    logical_device_ids: tuple | None = None
    replicated_axes: frozenset = frozenset()
    unreduced_axes: frozenset = frozenset()

    def __repr__(self):
        devices = "" if self.logical_device_ids is None else f", device_ids={self.logical_device_ids}"
        replicated = f", replicated_axes={self.replicated_axes}" if self.replicated_axes else ""
        return f"SdyArray([{', '.join(dim._text() for dim in self.dim_shardings)}]{devices}{replicated})"


def sdy_of_named(sharding, rank):
    """Shardy's form of a mesh and a specification, for arrays of this rank."""
    dims = [SdyDim(() if entry is None or isinstance(entry, Unconstrained) else entry if isinstance(entry, tuple) else (entry,),
                   isinstance(entry, Unconstrained)) for entry in sharding.spec]
    return SdyArray(sharding.mesh.shape_tuple, (*dims, *[SdyDim((), False)] * (rank - len(dims))), unreduced_axes=sharding.spec.unreduced)
