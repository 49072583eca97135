"""jax._src.tree_util: names of jax.tree_util."""
from capibara._modules import explain_missing
from capibara.jax.tree_util import *  # noqa: F401,F403
from capibara.jax.tree_util import _containers as _registry  # noqa: F401

explain_missing(__name__)
