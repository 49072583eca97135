"""A training step of the demo's language model: attention, Mamba and experts, with AdamW, all in one program."""

import sys
from pathlib import Path

import numpy

from . import language_model_torch
from .row import Row

SHAPE = {"vocabulary": 512, "width": 128, "layers": ["attention+mlp", "mamba+mlp", "attention+moe"], "hidden": 256}
BATCH, LENGTH = 16, 128
RATE, B1, B2, EPSILON, DECAY = 1e-3, 0.9, 0.99, 1e-8, 0.1
OPERATIONS = 1_491_968  # per token in a forward pass: LanguageModel(**SHAPE).flops_per_token(LENGTH)
TESTS = Path(__file__).resolve().parents[2] / "python" / "tests" / "training"


def sizes(prefix, layer, width=128, hidden=256, inner=256, state=16, rank=8, experts=4):
    """The parameters of one layer, as returned by training.LanguageModel(**SHAPE).shapes()."""
    mixer, feed = layer.split("+")
    yield from ((prefix + "mixer_norm.scale", (width,)), (prefix + "feed_norm.scale", (width,)))
    if mixer == "attention":
        yield from ((prefix + "attention.qkv.weight", (width, 3 * width)), (prefix + "attention.out.weight", (width, width)))
    else:
        for name, shape in (("in.weight", (width, 2 * inner)), ("conv", (4, inner)), ("conv_bias", (inner,)),
                            ("x.weight", (inner, rank + 2 * state)), ("dt.weight", (rank, inner)), ("dt_bias", (inner,)),
                            ("A_log", (inner, state)), ("D", (inner,)), ("out.weight", (inner, width))):
            yield prefix + "mamba." + name, shape
    if feed == "mlp":
        yield from ((prefix + "mlp.gate_up.weight", (width, 2 * hidden)), (prefix + "mlp.down.weight", (hidden, width)))
    else:
        for name, shape in (("router", (width, experts)), ("gate", (experts, width, hidden)), ("up", (experts, width, hidden)),
                            ("down", (experts, hidden, width))):
            yield prefix + "moe." + name, shape


def inputs(random):
    shapes = {"embedding": (512, 128), "norm.scale": (128,)}
    for number, layer in enumerate(SHAPE["layers"]):
        shapes.update(sizes(f"layers.{number}.", layer))
    params = {name: (random.standard_normal(shape) * 0.05).astype(numpy.float32) for name, shape in sorted(shapes.items())}
    zeros = {name: numpy.zeros_like(value) for name, value in params.items()}
    state = {"params": params, "means": zeros, "squares": {name: value.copy() for name, value in zeros.items()}}
    return state, random.integers(0, 512, (BATCH, LENGTH + 1), dtype=numpy.int32)


def loss_of(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import training
        return training.LanguageModel(**SHAPE).loss
    sys.path.insert(0, str(TESTS))
    import plain_language_model as plain
    config = {**SHAPE, "heads": 4, "key_heads": 4, "state": 16, "experts_per_token": 2, "positions": "rotary", "activation": "silu",
              "tied": True, "norm_epsilon": 1e-5, "rope_base": 10000.0, "load_weight": 0.01}
    return lambda params, tokens: plain.loss(params, tokens, config)


def step(jax):
    loss = loss_of(jax)

    def run(state, tokens):
        value, gradient = jax.value_and_grad(loss)(state["params"], tokens)
        means = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, state["means"], gradient)
        squares = jax.tree.map(lambda s, g: B2 * s + (1 - B2) * g * g, state["squares"], gradient)

        def moved(p, m, s):
            return p - RATE * (m / (1 - B1) / (jax.numpy.sqrt(s / (1 - B2)) + EPSILON) + DECAY * p)

        params = jax.tree.map(moved, state["params"], means, squares)
        return {"params": params, "means": means, "squares": squares}, value

    return run


def rows():
    # A step counts as three forward passes; docs/training.md explains how operations are counted.
    return [Row("language model step", f"{BATCH} x {LENGTH} tokens, 0.9 million parameters, attention, Mamba and experts", inputs, step,
                torch=language_model_torch.step_of(SHAPE["layers"], RATE, B1, B2, EPSILON, DECAY),
                state=True, limit=("f32", 3 * OPERATIONS * BATCH * LENGTH), least={"jax": 1.0, "torch": 1.0}, tolerance=1e-3,
                checked=lambda outputs: [outputs[1]])]
