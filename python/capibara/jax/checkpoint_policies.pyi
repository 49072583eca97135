"""Types of jax.checkpoint_policies: which values a checkpointed function may save."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from capibara._core import CheckpointPolicy as CheckpointPolicy

class SaveableType:
    """A policy's answer: the value is saved."""

class RecomputeType:
    """A policy's answer: the value is recomputed."""

    def __bool__(self) -> bool: ...

class Offloadable(NamedTuple):
    """A policy's answer: the value is saved in another memory space; the host has only one."""

    src: str
    dst: str

_Policy: TypeAlias = CheckpointPolicy | Callable[..., Any]
Saveable: SaveableType
Recompute: RecomputeType
everything_saveable: CheckpointPolicy
nothing_saveable: CheckpointPolicy
dots_saveable: CheckpointPolicy
dots_with_no_batch_dims_saveable: CheckpointPolicy
checkpoint_dots: CheckpointPolicy
checkpoint_dots_with_no_batch_dims: CheckpointPolicy

def save_anything_except_these_names(*names_not_to_save: str) -> CheckpointPolicy:
    """Saves everything but the values with these names."""
def save_any_names_but_these(*names_not_to_save: str) -> CheckpointPolicy:
    """Saves named values, except those with these names."""
def save_only_these_names(*names_which_can_be_saved: str) -> CheckpointPolicy:
    """Saves only the values with these names."""
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """Saves the results of matmuls without batch dimensions in another memory space."""
def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str], offload_src: str, offload_dst: str
) -> Callable[..., Any]:
    """Saves the values with these names, some of them in another memory space."""
def save_from_both_policies(policy_1: _Policy, policy_2: _Policy) -> _Policy:
    """Saves what either policy saves."""
