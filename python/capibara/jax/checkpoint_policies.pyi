"""Types of jax.checkpoint_policies: what a checkpointed function may keep."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from capibara._core import CheckpointPolicy as CheckpointPolicy

class SaveableType:
    """The answer of a policy that a value is kept."""

class RecomputeType:
    """The answer of a policy that a value is computed again."""

    def __bool__(self) -> bool: ...

class Offloadable(NamedTuple):
    """The answer of a policy that a value is kept in another memory; on the host all memory is one."""

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
    """Everything but the values with these names."""
def save_any_names_but_these(*names_not_to_save: str) -> CheckpointPolicy:
    """Named values, but none with these names."""
def save_only_these_names(*names_which_can_be_saved: str) -> CheckpointPolicy:
    """The values with these names."""
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """The results of products without batch dimensions, in another memory."""
def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str], offload_src: str, offload_dst: str
) -> Callable[..., Any]:
    """The values with these names, some of them in another memory."""
def save_from_both_policies(policy_1: _Policy, policy_2: _Policy) -> _Policy:
    """What either policy keeps."""
