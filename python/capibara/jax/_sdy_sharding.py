"""Shardy's form of shardings."""
from capibara._records import FrozenRecord
from capibara.jax._mesh import Unconstrained


class SdyDim(FrozenRecord):
    """The axes that split a dimension; an open dimension may be split by more."""

    __match_args__ = ("axes", "is_open")

    def __init__(self, axes, is_open):
        super().__init__(axes, is_open)

    def _text(self):
        return "{" + ", ".join([*map(repr, self.axes), *(["?"] if self.is_open else [])]) + "}"

    def __repr__(self):
        return f"SdyDim({self._text()})"


class SdyArray(FrozenRecord):
    """Shardy's form of a sharding."""

    __match_args__ = ("mesh_shape", "dim_shardings", "logical_device_ids", "replicated_axes", "unreduced_axes")

    def __init__(self, mesh_shape, dim_shardings, logical_device_ids=None, replicated_axes=frozenset(), unreduced_axes=frozenset()):
        super().__init__(mesh_shape, dim_shardings, logical_device_ids, replicated_axes, unreduced_axes)

    def __repr__(self):
        devices = "" if self.logical_device_ids is None else f", device_ids={self.logical_device_ids}"
        replicated = f", replicated_axes={self.replicated_axes}" if self.replicated_axes else ""
        return f"SdyArray([{', '.join(dim._text() for dim in self.dim_shardings)}]{devices}{replicated})"


def sdy_of_named(sharding, rank):
    """Shardy's form of a mesh and a specification, for arrays of this rank."""
    dims = [SdyDim(() if entry is None or isinstance(entry, Unconstrained) else entry if isinstance(entry, tuple) else (entry,),
                   isinstance(entry, Unconstrained)) for entry in sharding.spec]
    return SdyArray(sharding.mesh.shape_tuple, (*dims, *[SdyDim((), False)] * (rank - len(dims))), unreduced_axes=sharding.spec.unreduced)
