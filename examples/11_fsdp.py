"""Fully sharded training: each device keeps a part of every parameter and all-gathers a layer's when it needs them."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.sharding import NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
keys = jax.random.split(jax.random.key(1), 5)
x = jax.random.normal(keys[0], (64, 16))
y = jnp.sin(x @ jax.random.normal(keys[1], (16, 16)))
layers = [jax.random.normal(key, (16, 16)) / 4.0 for key in keys[2:]]


def loss(layers, x, y, gathered=lambda w: w):
    for w in layers:
        x = x + jnp.tanh(x @ gathered(w))
    return jnp.mean(jnp.square(x - y))


def step(layers, x, y):
    # The transpose of all_gather is psum_scatter: each device receives only the gradient of its own part. Recomputing
    # the all_gather in the backward pass keeps at most one layer unsharded.
    gathered = jax.checkpoint(lambda w: lax.all_gather(w, "data", tiled=True))
    value, grads = jax.value_and_grad(lambda ws: lax.pmean(loss(ws, x, y, gathered), "data"))(layers)
    return value, [w - 0.5 * g for w, g in zip(layers, grads)]


mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rows = P("data")
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(rows, rows, rows), out_specs=(P(), rows)))
layers = jax.device_put(layers, NamedSharding(mesh, rows))
shard = layers[0].addressable_shards[0].data
print(f"a layer of {layers[0].size} numbers, {shard.size} on each device")

worst = 0.0
for i in range(5):
    expected = loss(layers, x, y)
    value, layers = train(layers, x, y)
    worst = max(worst, abs(float(value) - float(expected)))
    print(f"step {i}: loss {float(value):.4f}")
print(f"8 devices have the loss of one: {'yes' if worst < 1e-5 else 'no'}")
