"""The cost of a save during training: a step of GPT-2 124M (float32, Adam, 1.5 GB of state) with a save every 50 steps.

benchmarks/checkpoint/training.py [ROUNDS] [LENGTH] [FOLDER], in build/venv. A step on one sequence of LENGTH tokens takes seconds on two
hardware threads, so 50 of them with and without a save would take minutes for one number. Each round takes STEPS steps without a
save, then a save and the steps until it has been committed, at least STEPS. The time of the second stretch beyond as many steps without
a save (their median) is the cost of one save, including the call of `save` and the copies that donated state needs while it is held; a
save every 50 steps makes them slower by this cost over 50 steps. Both stretches alternate, so that they see the machine in
the same state; the median of the rounds is the result.
"""

import shutil
import statistics
import sys
import tempfile
import time

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUCheckpointer

WIDTH, LAYERS, HEADS, VOCABULARY, POSITIONS = 768, 12, 12, 50257, 1024
STEPS, EVERY = 6, 50


def parameters(draw):
    def normal(*shape):
        return jnp.asarray((draw.standard_normal(shape) * 0.02).astype(np.float32))

    def norm():
        return {"scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)}

    def linear(inputs, outputs):
        return {"weight": normal(inputs, outputs), "bias": jnp.zeros(outputs)}

    layers = [{"norm": norm(), "qkv": linear(WIDTH, 3 * WIDTH), "out": linear(WIDTH, WIDTH), "feed_norm": norm(),
               "up": linear(WIDTH, 4 * WIDTH), "down": linear(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"tokens": normal(VOCABULARY, WIDTH), "positions": normal(POSITIONS, WIDTH), "layers": layers, "norm": norm()}


def normalised(x, norm):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * norm["scale"] + norm["shift"]


def linear(x, layer):
    return x @ layer["weight"] + layer["bias"]


def loss(params, tokens):
    given, expected = tokens[:-1], tokens[1:]
    length = given.shape[0]
    x = params["tokens"][given] + params["positions"][:length]
    below = jnp.tril(jnp.ones((length, length), bool))
    for layer in params["layers"]:
        q, k, v = jnp.split(linear(normalised(x, layer["norm"]), layer["qkv"]), 3, -1)
        q, k, v = (part.reshape(length, HEADS, -1).swapaxes(0, 1) for part in (q, k, v))
        scores = jnp.where(below, q @ k.swapaxes(1, 2) / (WIDTH // HEADS) ** 0.5, -1e30)
        mixed = (jax.nn.softmax(scores) @ v).swapaxes(0, 1).reshape(length, WIDTH)
        x = x + linear(mixed, layer["out"])
        x = x + linear(jax.nn.gelu(linear(normalised(x, layer["feed_norm"]), layer["up"])), layer["down"])
    logits = normalised(x, params["norm"]) @ params["tokens"].T
    return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, expected[:, None], 1)[:, 0]).mean()


def adam_step(state, tokens):
    value, gradients = jax.value_and_grad(loss)(state["params"], tokens)
    count = state["count"] + 1
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["means"], gradients)
    squares = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["squares"], gradients)
    rate = 3e-4 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), state["params"], means, squares)
    return {"params": params, "means": means, "squares": squares, "count": count}, value


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    length = int(sys.argv[2]) if len(sys.argv) > 2 else 128
    draw = np.random.default_rng(0)
    params = parameters(draw)
    state = {"params": params, "means": jax.tree.map(jnp.zeros_like, params), "squares": jax.tree.map(jnp.zeros_like, params),
             "count": jnp.zeros(())}
    del params
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    count = sum(leaf.size for leaf in jax.tree.leaves(state["params"]))
    print(f"{count / 1e6:.1f} M parameters, {size / 1e9:.2f} GB of state, {length} tokens per step", flush=True)
    tokens = jnp.asarray(draw.integers(0, VOCABULARY, length + 1).astype(np.int32))
    step = jax.jit(adam_step, donate_argnums=0)

    def timed(state):
        begin = time.perf_counter()
        state, value = step(state, tokens)
        value.block_until_ready()
        return state, time.perf_counter() - begin, float(value)

    for _ in range(3):  # the first one compiles
        state, seconds, value = timed(state)
        print(f"warming up: {seconds:.2f} s, loss {value:.3f}", flush=True)
    folder = tempfile.mkdtemp(dir=sys.argv[3] if len(sys.argv) > 3 else None)
    saver = TPUCheckpointer(folder, max_to_keep=1)
    costs, medians = [], []
    try:
        for number in range(rounds):
            without = []
            for _ in range(STEPS):
                state, seconds, value = timed(state)
                without.append(seconds)
            usual = statistics.median(without)
            begin = time.perf_counter()
            saver.save(number, state=state)
            returned, during = time.perf_counter() - begin, []
            while len(during) < STEPS or saver.is_saving():
                state, seconds, value = timed(state)
                during.append(seconds)
            cost = returned + sum(during) - usual * len(during)
            costs.append(cost / (EVERY * usual))
            medians.append(usual)
            print(f"round {number}: step {usual:.3f} s, save returns in {returned * 1e3:.1f} ms, {len(during)} steps beside it took "
                  f"{sum(during):.2f} s, the slowest {max(during):.3f} s; cost {cost:+.2f} s = {costs[-1]:+.1%} of {EVERY} steps; "
                  f"loss {value:.3f}", flush=True)
            saver.wait()
    finally:
        shutil.rmtree(folder)
    print(f"a step {statistics.median(medians):.3f} s; with a save every {EVERY} steps {statistics.median(costs):+.1%} "
          f"(rounds {min(costs):+.1%} to {max(costs):+.1%})")


if __name__ == "__main__":
    main()
