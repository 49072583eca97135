"""Checks specifications against meshes and shapes, and defines the errors raised."""
from capibara.jax._axes import AxisType


class IndivisibleError(ValueError):
    """A dimension's size is not divisible by the number of shards that a sharding requires."""


class DuplicateSpecError(Exception):
    """An axis of a mesh cannot split two dimensions."""


def check_once(what, spec):
    """Raises if an axis would split two dimensions."""
    seen = set()
    for name in (name for entry in spec for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)):
        if name in seen:
            raise DuplicateSpecError(f"A single {what} specification can map every mesh axis to at most one positional dimension, but "
                                     f"{spec} "
                                     f"has duplicate entries for `{name}`")
        seen.add(name)


def check_rank(shown, spec, shape):
    """Raises if this shape has too few dimensions for a specification."""
    if len(spec) > len(shape):
        hint = "" if shape else " For scalars the PartitionSpec should be P()"
        raise ValueError(f"{'Sharding' if shown is not spec else 'PartitionSpec'} {shown} is only valid for values of rank at least "
                         f"{len(spec)}, but was applied to a value of rank {len(shape)}.{hint}")


def check_sums(mesh, spec):
    for word, names in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in names:
            if name not in mesh.axis_names:
                raise ValueError(f"{word} axes {name} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}")
            if mesh.type_of(name) is not AxisType.Explicit:
                raise ValueError(f"{word} axes can only refer to mesh axes that is of type `Explicit`. Got {word.lower()} axes: {names} "
                                 "and "
                                 f"mesh: {mesh}")
