"""jax.checkpoint_policies: what a checkpointed function may keep."""
from capibara import _core
from capibara._core import (  # noqa: F401
    dots_saveable,
    dots_with_no_batch_dims_saveable,
    everything_saveable,
    nothing_saveable,
    offload_dot_with_no_batch_dims,
    save_from_both_policies,
)
from capibara._modules import explain_missing

checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def save_anything_except_these_names(*names_not_to_save):
    """Everything but the values with these names."""
    return _core.save_anything_except_these_names(list(names_not_to_save))


def save_any_names_but_these(*names_not_to_save):
    """Named values, but not those with these names."""
    return _core.save_any_names_but_these(list(names_not_to_save))


def save_only_these_names(*names_which_can_be_saved):
    """Only the values with these names."""
    return _core.save_only_these_names(list(names_which_can_be_saved))


def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst):
    """Some names saved where they are, some offloaded."""
    return _core.save_and_offload_only_these_names(
        list(names_which_can_be_saved), list(names_which_can_be_offloaded), offload_src, offload_dst)


explain_missing(__name__)
