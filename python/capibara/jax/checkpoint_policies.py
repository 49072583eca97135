"""jax.checkpoint_policies: which values a checkpointed function may save."""
from typing import NamedTuple

from capibara import _core
from capibara._core import (  # noqa: F401
    CheckpointPolicy,
    dots_saveable,
    dots_with_no_batch_dims_saveable,
    everything_saveable,
    nothing_saveable,
)
from capibara._modules import explain_missing


class SaveableType:
    """A policy's answer: the value is saved."""


class RecomputeType:
    """A policy's answer: the value is recomputed."""

    def __bool__(self):
        return False


class Offloadable(NamedTuple):
    """A policy's answer: the value is saved in another memory space; the host has only one."""

    src: str
    dst: str


Saveable, Recompute = SaveableType(), RecomputeType()
checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def save_anything_except_these_names(*names_not_to_save):
    """Saves everything but the values with these names."""
    return _core.save_anything_except_these_names(list(names_not_to_save))


def save_any_names_but_these(*names_not_to_save):
    """Saves named values, except those with these names."""
    return _core.save_any_names_but_these(list(names_not_to_save))


def save_only_these_names(*names_which_can_be_saved):
    """Saves only the values with these names."""
    return _core.save_only_these_names(list(names_which_can_be_saved))


def offload_dot_with_no_batch_dims(offload_src, offload_dst):
    """Offloads matmuls without batch dimensions; everything else is recomputed."""
    def policy(primitive, *avals, **params):
        kept = dots_with_no_batch_dims_saveable(primitive, *avals, **params)
        return Offloadable(offload_src, offload_dst) if kept else Recompute
    return policy


def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst):
    """Saves some names in place and offloads others; everything else is recomputed."""
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(f"save_and_offload_only_these_names: {sorted(saved & offloaded)} are to be saved and offloaded")

    def policy(primitive, *avals, **params):
        name = params.get("name") if primitive.name == "name" else None
        if name in saved:
            return Saveable
        return Offloadable(offload_src, offload_dst) if name in offloaded else Recompute
    return policy


def save_from_both_policies(policy_1, policy_2):
    """Saves what either of two policies saves."""
    if isinstance(policy_1, CheckpointPolicy) and isinstance(policy_2, CheckpointPolicy):
        return _core.save_from_both_policies(policy_1, policy_2)

    def policy(primitive, *avals, **params):
        answers = [p(primitive, *avals, **params) for p in (policy_1, policy_2)]
        if not all(isinstance(answer, bool) for answer in answers):
            raise ValueError(f"save_from_both_policies: the policies must answer True or False, got {answers}")
        return any(answers)
    return policy


explain_missing(__name__)
