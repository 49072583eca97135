"""A monitored training run: live rates and loss, an alert when the loss has fallen, a machine-readable log."""

import json
import sys
import tempfile

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.operate import Monitor

x = jax.random.normal(jax.random.key(0), (256, 64))
y = x @ jax.random.normal(jax.random.key(1), (64, 1))
w = jnp.zeros((64, 1))


def loss(weights):
    return jnp.mean(jnp.square(x @ weights - y))


@jax.jit
def step(weights):
    value, slope = jax.value_and_grad(loss)(weights)
    return value, weights - 0.1 * slope


# With enable_prometheus=True a browser shows curves at http://127.0.0.1:9090, and Prometheus scrapes /metrics.
folder = tempfile.TemporaryDirectory()
monitor = Monitor(update_frequency_seconds=0.05, log_file=f"{folder.name}/monitor.jsonl")
told: list[bool] = []
monitor.set_alert("loss", "<", 0.5, lambda: told.append(True))
monitor.start()
steps = 0
while steps < 5000 or (not told and steps < 1000000):
    value, w = step(w)
    monitor.step(loss=value, tokens=x.shape[0])  # does not wait for the loss
    steps += 1
w.block_until_ready()
seen = monitor.get_current_metrics()
monitor.stop()

print("steps and tokens counted:", "yes" if seen["steps"] == steps and seen["tokens"] == 256 * steps else "no")
print("told that the loss is below 0.5:", "yes" if told else "no")
print("programs compiled:", "yes" if seen["compilations"] >= 1 else "no")
print(f"{seen['steps_per_second']:.0f} steps/s, {1000 * seen['current_tflops']:.2f} GFLOP/s, "
      f"{100 * seen['utilization']:.1f} % of this machine's peak", file=sys.stderr)  # differs from run to run

with open(f"{folder.name}/monitor.jsonl") as log:
    last = log.readlines()[-1]
print("the last line of the log holds the loss:", "yes" if "loss" in json.loads(last) else "no")
folder.cleanup()
