"""jax._src: the few private names of jax that libraries import and that mean something here."""
from capibara._modules import explain_missing

explain_missing(__name__, later=dict.fromkeys(("compiler", "core", "dispatch", "dtypes", "traceback_util", "xla_bridge")))
