"""jax.ad_checkpoint: checkpointing, names for policies, and saved residuals."""
from capibara import _core
from capibara._modules import explain_missing
from capibara._origins import argument_name as _argument_name
from capibara.jax import checkpoint_policies  # noqa: F401
from capibara.jax._api import checkpoint, remat  # noqa: F401


def checkpoint_name(x, name):
    """The same values under a name that policies can refer to."""
    leaves, tree = _core.tree_flatten(x)
    return tree.unflatten([_core.checkpoint_name(leaf, name) for leaf in leaves])


def saved_residuals(f, *args, **kwargs):
    """The residuals that f would keep for its backward pass: pairs of a type and a description of the value's origin."""
    leaves, tree = _core.tree_flatten((args, kwargs))
    numbered = tree.unflatten(list(range(len(leaves))))

    def in_words(origin):
        kind, _, rest = origin.partition(" ")
        if kind == "argument":
            return f"from the argument {_argument_name(f, numbered, int(rest))}"
        if kind == "named":
            name, _, line = rest.partition(" from ")
            return f"named '{name}'" + (f" from {line}" if line else "")
        return "from a constant" if kind == "constant" else origin

    return [(aval, in_words(origin)) for aval, origin in _core.saved_residuals(f, args, kwargs)]


def print_saved_residuals(f, *args, **kwargs):
    """Prints the residuals that f would keep for its backward pass."""
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(True)} {origin}")


explain_missing(__name__)
