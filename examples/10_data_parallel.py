"""Data-parallel training: each device has all parameters and its part of the batch, and gradients are averaged."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
keys = jax.random.split(jax.random.key(0), 4)
x = jax.random.normal(keys[0], (64, 16))
y = jnp.tanh(x @ jax.random.normal(keys[1], (16, 4)))
up, down = jax.random.normal(keys[2], (16, 32)) / 4.0, jax.random.normal(keys[3], (32, 4)) / 6.0


def loss(up, down, x, y):
    return jnp.mean(jnp.square(jnp.tanh(x @ up) @ down - y))


def step(up, down, x, y):
    # pmean gives the loss of the whole batch; differentiating it inserts the sum of gradients over the devices.
    value, (d_up, d_down) = jax.value_and_grad(lambda u, d: jax.lax.pmean(loss(u, d, x, y), "data"), (0, 1))(up, down)
    return value, up - 0.5 * d_up, down - 0.5 * d_down


mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data"), P("data")), out_specs=(P(), P(), P())))
alone = jax.jit(jax.value_and_grad(loss, (0, 1)))

worst = 0.0
for i in range(5):
    expected, _ = alone(up, down, x, y)
    value, up, down = train(up, down, x, y)
    worst = max(worst, abs(float(value) - float(expected)))
    print(f"step {i}: loss {float(value):.4f}")
print(f"8 devices have the loss of one: {'yes' if worst < 1e-6 else 'no'}")
