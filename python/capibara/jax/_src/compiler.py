"""jax._src.compiler: where libraries look for functions of XLA, of which there are none here."""
from capibara._modules import explain_missing

explain_missing(__name__)
