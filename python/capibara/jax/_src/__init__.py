"""jax._src: the few private names of jax that libraries import and that mean something here."""
from capibara._modules import explain_missing

explain_missing(__name__, later=dict.fromkeys((
    "ad_util", "api_util", "checkify", "compiler", "core", "dispatch", "distributed", "dtypes", "flatten_util", "interpreters", "lax",
    "mesh", "shard_map", "state", "traceback_util", "tree_util", "util", "xla_bridge")))
