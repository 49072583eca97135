"""jax._src: the few private names of jax that libraries import and that have a meaning here."""
from capibara._modules import explain_missing

explain_missing(__name__, later=dict.fromkeys((
    "ad_util", "api", "api_util", "array", "checkify", "compiler", "core", "debugger", "dispatch", "distributed", "dtypes", "flatten_util",
    "interpreters", "lax", "layout", "lib", "mesh", "mesh_utils", "named_sharding", "op_shardings", "partition_spec", "pjit", "random",
    "scipy", "shard_map", "sharding", "sharding_impls", "state", "traceback_util", "tree_util", "util", "xla_bridge")))
