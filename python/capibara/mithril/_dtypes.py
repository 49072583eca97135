"""The dtypes of models, by the names that Mithril gives them."""
import capibara.jax.numpy as jnp

uint8, int8, int16, int32, int64 = jnp.uint8, jnp.int8, jnp.int16, jnp.int32, jnp.int64
float16, bfloat16, float32, float64 = jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64
bool = jnp.bool_
