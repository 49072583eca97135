"""Several processes train one model, each on its own share of the data: capibara launch -n 4 -- python 09_processes.py"""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.experimental import multihost_utils

try:
    jax.distributed.initialize()
except ValueError:
    pass  # not started by capibara launch: this is the only process

rows = 64 // jax.process_count()
first = rows * jax.process_index()
x = jnp.reshape(jnp.arange(128.0), (64, 2))[first:first + rows] / 128.0
y = x @ jnp.array([3.0, -2.0]) + 0.5


def loss(params):
    return jnp.mean(jnp.square(x @ params["w"] + params["b"] - y))


def mean_over_processes(value):
    return jnp.mean(jnp.array(multihost_utils.process_allgather(value)), axis=0)


params = {"w": jnp.zeros(2), "b": jnp.array(0.0)}
step = jax.jit(jax.value_and_grad(loss))
for i in range(5):
    value, grads = step(params)
    grads = {name: mean_over_processes(grad) for name, grad in grads.items()}
    params = {name: params[name] - 0.5 * grads[name] for name in params}
    if jax.process_index() == 0:
        print(f"step {i}: loss {float(mean_over_processes(value)):.4f}")
    else:
        mean_over_processes(value)  # a collective: every process has to call it

multihost_utils.sync_global_devices("end")
if jax.process_index() == 0:
    print(f"w {params['w'][0]:.3f} {params['w'][1]:.3f} b {params['b']:.3f}")
jax.distributed.shutdown()
