"""Where the time of a training run goes: a profile of five steps, its table, and the share of matmuls."""

import sys
import tempfile

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import profiler, profiling

x = jax.random.normal(jax.random.key(0), (256, 512))
w = jax.random.normal(jax.random.key(1), (512, 512)) * 0.04


def loss(weights):
    with jax.named_scope("network"):
        return jnp.mean(jnp.square(jnp.tanh(jnp.matmul(x, weights))))


step = jax.jit(lambda weights: weights - 0.1 * jax.grad(loss)(weights))
w = step(w).block_until_ready()  # compiles

with profiling.profile("five steps"):
    for number in range(5):
        with profiler.StepTraceAnnotation("train", step_num=number):
            w = step(w)
            with profiler.TraceAnnotation("wait for the weights"):
                w.block_until_ready()

(_, taken), = profiling.profiles()
kinds = [event["kind"] for event in taken.events()]
print(f"{kinds.count('step')} steps, {kinds.count('module execution')} executions")
(_, summary), = profiling.summaries()
rows = summary["rows"]
print(f"shares sum to {sum(row['share'] for row in rows):.2f}")
matmuls = sum(row["share"] for row in rows if row["kind"] == "matmul")
print("matmuls have rows of their own:", "yes" if matmuls > 0 else "no")
profiling.print_summary(file=sys.stderr)  # times differ from run to run

with tempfile.TemporaryDirectory() as folder:
    profiling.save(f"{folder}/profile.json")  # capibara profile FILE shows it again
    profiling.load(f"{folder}/profile.json")
(_, again) = profiling.summaries()[-1]
print(f"read back: {len(rows) if len(again['rows']) == len(rows) else 0} sites")
