"""Tensor-parallel training on a mesh of two axes: one splits the batch, the other each layer's hidden units."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
keys = jax.random.split(jax.random.key(2), 6)
x = jax.random.normal(keys[0], (32, 16))
y = jnp.sin(x @ jax.random.normal(keys[1], (16, 16)))
params = [(jax.random.normal(keys[i], (16, 32)) / 4.0, jax.random.normal(keys[i + 1], (32, 16)) / 8.0) for i in (2, 4)]


def loss(params, x, y, summed=lambda h: h):
    for up, down in params:
        # Each device has some columns of `up` and the same rows of `down`: one psum per layer.
        x = x + summed(jnp.tanh(x @ up) @ down)
    return jnp.mean(jnp.square(x - y))


def step(params, x, y):
    def of_all(params):
        return lax.pmean(loss(params, x, y, lambda h: lax.psum(h, "model")), "data")

    value, grads = jax.value_and_grad(of_all)(params)
    return value, jax.tree.map(lambda p, g: p - 0.5 * g, params, grads)


mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
split = [(P(None, "model"), P("model"))] * 2
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(split, P("data"), P("data")), out_specs=(P(), split)))

worst = 0.0
for i in range(5):
    expected = loss(params, x, y)
    value, params = train(params, x, y)
    worst = max(worst, abs(float(value) - float(expected)))
    print(f"step {i}: loss {float(value):.4f}")
shard = params[0][0].addressable_shards[0].data
print(f"each device has {shard.shape[0]} x {shard.shape[1]} of {params[0][0].shape[0]} x {params[0][0].shape[1]}")
print(f"8 devices have the loss of one: {'yes' if worst < 1e-5 else 'no'}")
