"""Writes optimizers.expected: parameters after ten steps of optax's optimizers, and values of its schedules.

    python make_optimizers.py [OUTPUT]          (default: tests/data/optimizers.expected.tar.xz)

An optimizer's record has the arrays 'parameter' (before), 'gradient' (one set for each step, in the order of the parameters) and
'after'. A schedule's record has 'value', at steps 0, 1, 2 ... 29.
"""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

import expected  # noqa: E402
from expected import recordings  # noqa: E402

STEPS = 10
SHAPES = [(6, 4), (5,)]


def optimizers():
  schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 3, 10, end_value=0.005)
  return {
      "sgd": optax.sgd(0.05), "momentum": optax.sgd(0.05, momentum=0.9), "nesterov": optax.sgd(0.05, momentum=0.9, nesterov=True),
      "adam": optax.adam(0.01), "adamw": optax.adamw(schedule, b2=0.99, weight_decay=0.1), "lion": optax.lion(0.01),
      "adafactor": optax.adafactor(0.01), "clip": optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1)),
  }


def schedules():
  return {
      "linear": optax.linear_schedule(0.1, 0.9, 12, 4), "cosine": optax.cosine_decay_schedule(0.5, 20, alpha=0.1),
      "warmup_cosine": optax.warmup_cosine_decay_schedule(0.0, 1.0, 5, 25, end_value=0.1),
      "exponential": optax.exponential_decay(0.3, 7, 0.5), "polynomial": optax.polynomial_schedule(1.0, 0.2, 2.0, 15, 3),
      "joined": optax.join_schedules([optax.linear_schedule(0.0, 1.0, 5), optax.constant_schedule(0.25)], [10]),
  }


def records():
  random = np.random.default_rng(16)
  parameters = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]
  gradients = [[random.standard_normal(p.shape).astype(np.float32) for p in parameters] for _ in range(STEPS)]
  for name, optimizer in optimizers().items():
    params = [jax.numpy.asarray(p) for p in parameters]
    state = optimizer.init(params)
    lines = [expected.array_line("parameter", p) for p in parameters]
    for gradient in gradients:
      updates, state = optimizer.update([jax.numpy.asarray(g) for g in gradient], state, params)
      params = optax.apply_updates(params, updates)
      lines += [expected.array_line("gradient", g) for g in gradient]
    yield name, lines + [expected.array_line("after", p) for p in params]
  for name, schedule in schedules().items():
    values = np.asarray([schedule(jax.numpy.int32(step)) for step in range(30)], np.float32)
    yield f"schedule/{name}", [expected.array_line("value", values)]


def main():
  comment = f"Optimizers and schedules, made by tests/oracle/make_optimizers.py with optax {optax.__version__}; see there."
  expected.write(recordings.output("optimizers.expected"), comment, records())


if __name__ == "__main__":
  main()
