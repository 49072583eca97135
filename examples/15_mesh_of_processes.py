"""One mesh over the devices of all processes: capibara launch -n 4 --devices 2 -- python 15_mesh_of_processes.py"""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.sharding import NamedSharding, PartitionSpec as P

try:
    jax.distributed.initialize()
except ValueError:
    jax.config.update("jax_num_cpu_devices", 8)  # not started by capibara launch: this process has all devices

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
keys = jax.random.split(jax.random.key(5), 4)
x = jax.random.normal(keys[0], (32, 16))
y = jnp.tanh(x @ jax.random.normal(keys[1], (16, 4)))
up, down = jax.random.normal(keys[2], (16, 32)) / 4.0, jax.random.normal(keys[3], (32, 4)) / 6.0


def step(up, down, x, y):
    def loss(up, down):
        out = lax.psum(jnp.tanh(x @ up) @ down, "model")
        return lax.pmean(jnp.mean(jnp.square(out - y)), "data")

    value, (d_up, d_down) = jax.value_and_grad(loss, (0, 1))(up, down)
    return value, up - 0.5 * d_up, down - 0.5 * d_down


specs = (P(None, "model"), P("model"), P("data"), P("data"))
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=(P(), *specs[:2])))
up, down, x, y = (jax.device_put(value, NamedSharding(mesh, spec)) for value, spec in zip((up, down, x, y), specs))
for i in range(5):
    value, up, down = train(up, down, x, y)  # every process runs every step
    if jax.process_index() == 0:
        print(f"step {i}: loss {float(value):.6f}")
if jax.process_index() == 0:
    print(f"{jax.device_count()} devices")
if jax.process_count() > 1:
    jax.distributed.shutdown()
