"""jax._src.state.discharge: functions of mutable arrays as functions of their values."""
from capibara import _core, _lifting
from capibara._modules import explain_missing
from capibara.jax import ref as _ref
from capibara.jax import tree_util


def run_state(f):
    """A function of values that makes a mutable array of each, calls f with these, and returns their final values."""
    def wrapped(init):
        leaves, structure = tree_util.tree_flatten(init)
        refs = [_ref.new_ref(leaf if _lifting.is_hi(leaf) else _core.as_array(leaf)) for leaf in leaves]
        f(structure.unflatten(refs))
        return structure.unflatten([_ref.freeze(ref) for ref in refs])
    return wrapped


run_state_reference = run_state
explain_missing(__name__)
