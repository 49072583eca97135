"""A small training run on the native backend: profiled into a folder, or run until stopped while a server answers captures.

usage: training_program.py profile FOLDER | serve FOLDER
"""
import json
import pathlib
import sys
import time

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import profiler, profiling


def make_step():
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["w1"] + params["b1"])
        return jnp.mean((hidden @ params["w2"] - y) ** 2)

    @jax.jit
    def step(params, x, y):
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value

    keys = jax.random.split(jax.random.key(0), 4)
    params = {"w1": jax.random.normal(keys[0], (256, 512)) * 0.05, "b1": jnp.zeros(512),
              "w2": jax.random.normal(keys[1], (512, 256)) * 0.05}
    return step, params, jax.random.normal(keys[2], (256, 256)), jax.random.normal(keys[3], (256, 256))


def take_profile(folder):
    step, params, x, y = make_step()
    params, _ = step(params, x, y)
    times = []
    with profiling.profile("training"):
        for i in range(10):
            outside = time.perf_counter_ns()
            with profiler.StepTraceAnnotation("train", step_num=100 + i):
                inside = time.perf_counter_ns()
                params, value = step(params, x, y)
                value.block_until_ready()
                inside = time.perf_counter_ns() - inside
            times.append([inside, time.perf_counter_ns() - outside])
    path, = profiling.export_tensorboard(folder)
    (_, summary), = profiling.summaries()
    print(json.dumps({"path": path, "summary": summary, "times": times}))


def serve(folder):
    step, params, x, y = make_step()
    params, _ = step(params, x, y)
    server = profiler.start_server(0)
    print(server.port, flush=True)
    end, i = time.monotonic() + 60, 0
    while time.monotonic() < end and not (pathlib.Path(folder) / "stop").exists():
        with profiler.StepTraceAnnotation("train", step_num=i):
            params, value = step(params, x, y)
            value.block_until_ready()
        i += 1
    profiler.stop_server()


if __name__ == "__main__":
    {"profile": take_profile, "serve": serve}[sys.argv[1]](sys.argv[2])
