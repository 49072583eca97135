"""jax.lib: the version of the library behind jax."""
from capibara._modules import explain_missing
from capibara.jax.version import __version__  # noqa: F401

explain_missing(__name__)
