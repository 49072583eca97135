"""jax._src.lib: the few names of jaxlib that mean something here."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"xla_client": None})
