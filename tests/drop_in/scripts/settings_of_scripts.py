"""Settings that a script puts in its own environment: those of jax before its import, those of XLA before the first device is asked for."""
import importlib.util
import os
import sys

print(importlib.util.find_spec("jax") is not None, "jax" in sys.modules)
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"

import jax
import jax.numpy as jnp

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
print(jax.device_count(), jnp.ones(2).dtype, jax.config.jax_default_matmul_precision)

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
spread = jax.device_put(jnp.arange(8.).reshape(4, 2), jax.NamedSharding(mesh, jax.P("x", "y")))
print([shard.data.shape for shard in spread.addressable_shards], jax.jit(lambda x: (x @ x.T).sum())(spread))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # too late
print(jax.device_count())
