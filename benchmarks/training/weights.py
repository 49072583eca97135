"""Quantized weights: how much quality a trained text model loses, and how fast models decode with them.

    PYTHONPATH=build/release/python python3 benchmarks/training/weights.py [--seconds 120] [--text FILE] [--decode 31m 124m 1b] [--rounds 5]

First a model of 30 million parameters learns the demo's text for that many seconds (0: skipped), and its perplexity on held-out text is
printed for each kind of weights, next to float32's. Then models with random weights decode, all kinds interleaved in each round:
bytes of the parameters and the median of tokens/s with minimum and maximum. Batch 1 is `training.Generator`, with its cache; batch
8 is `LanguageModel.apply` of one token for each of eight rows, without earlier tokens. "int8 x int8" has int8 activations too, with
scales calibrated on the training text, "int8 x rows" with a scale for each row of activations; both are compared over prompts of 512
tokens, where they matter. Exit code 1 if int8, with int8 activations or without, loses more than 1 % or int4 more than 4 % of
perplexity, or int4 is not 1.6 times as fast as int8 at batch 1 in a model of 100 million parameters or more.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import training
from capibara.model import as_model

KINDS = ("float32", "bfloat16", "int8", "int4", "vq")
BOOK = Path(__file__).resolve().parents[2] / "examples/data/pride_and_prejudice.txt"
LEAST_SPEEDUP, LOSSES = 1.6, {"int8": 0.01, "int8 x int8": 0.01, "int8 x rows": 0.01, "int4": 0.04}
PROMPT = 512  # tokens


def shape(name):
    """A model by its number of parameters; 1b has the shape of a Llama."""
    if name == "124m":
        return training.LanguageModel(vocabulary=50257, width=768, layers=["attention+mlp"] * 12, heads=12, key_heads=12, hidden=3072,
                                      norm="layer", positions="learned", activation="gelu", bias=True)
    if name == "1b":
        return training.LanguageModel(vocabulary=32000, width=2048, layers=["attention+mlp"] * 20, heads=32, key_heads=8, hidden=5632,
                                      tied=False)
    return training.LanguageModel(vocabulary=2048, width=512, layers=["attention+mlp"] * 9, heads=8, key_heads=8, hidden=1408)


def trained(path, seconds):
    """The model, its parameters and held-out batches of tokens."""
    text = path.read_bytes()
    tokenizer = training.Tokenizer.train(text, 2048)
    tokens = np.asarray(tokenizer.encode(text), np.int32)
    model, held = shape("30m"), len(tokens) // 10
    config = training.TrainerConfig(steps=100000, batch=8, length=128, warmup=20, learning_rate=6e-4)
    trainer = training.Trainer(config, model)
    draw, start, steps = np.random.default_rng(0), time.monotonic(), 0
    while time.monotonic() - start < seconds:
        first = draw.integers(0, len(tokens) - held - 129, 8)
        trainer.step(jnp.asarray(np.stack([tokens[i:i + 129] for i in first])))
        steps += 1
    print(f"{model.parameter_count / 1e6:.1f} million parameters, {steps} steps in {time.monotonic() - start:.0f} s")
    rows = tokens[-held:][:held // 129 * 129].reshape(-1, 129)[:64]
    seen = [tokens[i * 8 * 129:(i + 1) * 8 * 129].reshape(8, 129) for i in range(4)]
    return model, trainer.params, rows.reshape(-1, 8, 129), seen


def with_activations(model, params, batches, count):
    """int8 codes with int8 activations: calibrated, and by rows."""
    coded = as_model(model, training.convert_weights(params, "int8"))
    return {"int8 x int8": training.quantize_activations(coded, batches, batches=count).params,
            "int8 x rows": training.quantize_activations(coded).params}


def print_perplexity(path, seconds):
    model, params, batches, seen = trained(path, seconds)
    loss = jax.jit(lambda p, tokens: model.cross_entropy(p, tokens))
    found, missed = {}, []
    rounded = with_activations(model, params, seen, len(seen))
    for kind in (*KINDS, *rounded):
        weights = rounded[kind] if kind in rounded else training.convert_weights(params, kind)
        found[kind] = float(np.exp(np.mean([float(loss(weights, jnp.asarray(batch))) for batch in batches])))
        lost = found[kind] / found["float32"] - 1
        size = sum(leaf.nbytes for leaf in weights.values())
        print(f"  {kind:11} {size / 2**20:8.1f} MiB  perplexity {found[kind]:8.3f}  {lost:+.2%}", flush=True)
        if lost > LOSSES.get(kind, 1):
            missed.append(f"{kind} loses {lost:.2%}")
    return missed


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def print_decoding(name, rounds, tokens):
    model = shape(name)
    params = model.init(jax.random.key(0))
    apply = jax.jit(lambda p, rows: model.apply(p, rows))
    rows = jnp.asarray(np.arange(8, dtype=np.int32).reshape(8, 1))
    sizes, generators, stored = {}, {}, {}
    for kind in KINDS:
        stored[kind] = training.convert_weights(params, kind)
        sizes[kind] = sum(leaf.nbytes for leaf in stored[kind].values())
    print_prompts(name, model, params, rounds)
    del params
    speeds = {(kind, batch): [] for kind in KINDS for batch in (1, 8)}
    for kind in KINDS:
        generators[kind] = training.Generator(model, stored[kind], 16 + tokens)
        generators[kind].generate([1, 2, 3], 2)
        apply(stored[kind], rows).block_until_ready()
    for _ in range(rounds):
        for kind in KINDS:
            speeds[kind, 1].append(tokens / timed(lambda: generators[kind].generate([1, 2, 3], tokens)))
            speeds[kind, 8].append(8 / timed(lambda: apply(stored[kind], rows).block_until_ready()))
    print(f"{name}: {model.parameter_count / 1e6:.1f} million parameters")
    for kind in KINDS:
        parts = [f"batch {batch} {statistics.median(found):7.1f} tokens/s ({min(found):.1f} to {max(found):.1f})"
                 for batch in (1, 8) for found in [speeds[kind, batch]]]
        print(f"  {kind:9} {sizes[kind] / 2**20:8.1f} MiB  {'  '.join(parts)}", flush=True)
    ratio = statistics.median(four / eight for four, eight in zip(speeds["int4", 1], speeds["int8", 1]))
    print(f"  int4 is {ratio:.2f}x int8 at batch 1")
    return [f"{name}: int4 is {ratio:.2f}x int8"] if ratio < LEAST_SPEEDUP and model.parameter_count >= 1e8 else []


def print_prompts(name, model, params, rounds):
    """Prints tokens/s of a prompt: float32, int8 codes, and these with int8 activations."""
    tokens = np.random.default_rng(0).integers(0, model.shapes()["embedding"][0], (4, 1, PROMPT)).astype(np.int32)
    stored = {"float32": params, "int8": training.convert_weights(params, "int8"),
              **with_activations(model, params, [jnp.asarray(batch) for batch in tokens], 1)}
    apply = jax.jit(lambda p, rows: model.apply(p, rows))
    speeds, prompt = {kind: [] for kind in stored}, jnp.asarray(tokens[1])
    for kind in stored:
        apply(stored[kind], prompt).block_until_ready()
    for _ in range(rounds):
        for kind in stored:
            speeds[kind].append(PROMPT / timed(lambda: apply(stored[kind], prompt).block_until_ready()))
    print(f"{name}: a prompt of {PROMPT} tokens")
    for kind, found in speeds.items():
        print(f"  {kind:11} {statistics.median(found):8.1f} tokens/s ({min(found):.1f} to {max(found):.1f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--text", type=Path, default=BOOK)
    parser.add_argument("--decode", nargs="*", default=["31m", "124m"], choices=["31m", "124m", "1b"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16)
    options = parser.parse_args()
    missed = print_perplexity(options.text, options.seconds) if options.seconds > 0 else []
    for name in options.decode:
        missed += print_decoding(name, options.rounds, options.tokens)
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
