"""Wrong uses of models and trainers, each with the argument, the expected and the actual value; test_wrong_uses.py runs them."""
import functools

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

import capibara  # noqa: E402
import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara import training  # noqa: E402
from capibara.core import tpu  # noqa: E402
from capibara.operate.checkpointer import TPUCheckpointer  # noqa: E402

PARAMS = {"w": np.ones((3, 1), np.float32), "b": np.zeros(1, np.float32)}
X, Y = np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)


class Line:
    """A model without layers."""

    params = PARAMS

    def apply(self, params, x):
        return x @ params["w"] + params["b"]

    def loss(self, params, x, y):
        return jnp.mean((self.apply(params, x) - y) ** 2)


class Tower:
    """A model of two layers."""

    params = {"0": np.ones((3, 3), np.float32), "1": np.ones((3, 3), np.float32)}
    layer_count = 2

    def start(self, params, x):
        return x

    def run_layer(self, params, layer, x):
        return x @ params[str(layer)]

    def finish(self, params, x, batch):
        return jnp.mean(x)

    def loss(self, params, x):
        return jnp.mean(self.run_layer(params, 1, self.run_layer(params, 0, x)))


def line(**changes):
    made = Line()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def config(**fields):
    return training.TrainerConfig(**{**dict(steps=4, batch=4, length=8, learning_rate=1e-2), **fields})


def trainer(model=None, **fields):
    return training.Trainer(config(**fields), model or Line())


def language(vocabulary=32):
    return training.LanguageModel(vocabulary=vocabulary, width=16, layers=["attention+mlp"], heads=2, hidden=16)


def mesh():
    return jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])


SLICE = {"num_chips": 64, "tpu_version": "v6e"}


@functools.cache
def planned():
    return training.TPUTrainer(tpu.TPUConfig(**SLICE), language())


@functools.cache
def coded():
    return training.quantize_model({"params": {"w": np.ones((3, 2), np.float32)}, "apply": lambda params, x: x @ params["w"]})


@functools.cache
def weights():
    return language().init(jax.random.key(0))


def set_params(params):
    trainer().params = params


# Function, argument: [(wrong value, expected text, got text)]; if the latter is None, it is how the value is printed.
MODELS = [None, 3, 2.5, b"bytes", object(), Line, len, [], {}, {"w": "text"}]
OF_MODELS = {
    "as_model": capibara.as_model,
    "Trainer": lambda model: training.Trainer(config(), model),
    "TPUTrainer": lambda model: training.TPUTrainer(config(), model),
    "enable_gradient_checkpointing": training.enable_gradient_checkpointing,
    "shard_model": lambda model: tpu.shard_model(model, mesh()),
    "sharding_table": lambda model: tpu.sharding_table(model, mesh()),
    "reorder_experts": lambda model: tpu.reorder_experts(model, "layers.0.", [0, 1]),
    "reshard": lambda model: tpu.reshard(model, mesh(), tpu.PartitionSpec(None, "data")),
    "quantize_for_tpu": tpu.quantize_for_tpu,
    "estimate_step": tpu.estimate_step,
    "analyze_bottlenecks": tpu.analyze_bottlenecks,
    "find_optimal_batch_size": lambda model: tpu.find_optimal_batch_size(model, 128),
    "diagnose_performance": tpu.diagnose_performance,
    "MemoryOptimizer.estimate_memory": lambda model: tpu.MemoryOptimizer().estimate_memory(model, 8, 128),
    "MemoryOptimizer.optimize": tpu.MemoryOptimizer().optimize,
    "MemoryOptimizer.optimize of none": tpu.MemoryOptimizer("none").optimize,
    "quantize_model": lambda model: tpu.TPUv6VQIntegration().quantize_model(model, [X]),
}

SHORT = np.zeros((4, 5), np.int32)
TOKENS = np.zeros((4, 9), np.int32)
CASES = {
    "as_model": [
        (lambda: capibara.as_model(line(apply=3)), "apply", "function", "3"),
        (lambda: capibara.as_model(line(loss="mean")), "loss", "function", "'mean'"),
        (lambda: capibara.as_model(line(evaluate=[1])), "evaluate", "function", "[1]"),
        (lambda: capibara.as_model(Line(), {"w": "text"}).types(), "params", "arrays", "'text'"),
        (lambda: capibara.as_model(Line(), loss=3), "loss", "function", "3"),
        (lambda: capibara.as_model(Line(), apply="x"), "apply", "function", "'x'"),
        (lambda: capibara.as_model(Line(), logical_axes=3), "logical_axes", "names", "3"),
        (lambda: capibara.as_model(Line(), sizes=[3]), "sizes", "dict", "[3]"),
        (lambda: capibara.as_model(Line(), sizes={"wide": 3}), "sizes", "width", "'wide'"),
        (lambda: capibara.as_model(Line(), batch=["x"]), "batch", "compiled named model", "Line"),
        (lambda: capibara.as_model({"params": PARAMS, "apply": len, "size": 3}), "model", "apply", "'size'"),
        (lambda: capibara.as_model(language(), loss=len), "loss", "its own", "loss"),
    ],
    "Model": [
        (lambda: capibara.as_model(PARAMS).apply(PARAMS, X), "apply", "function", "tree of arrays"),
        (lambda: capibara.as_model(PARAMS).loss(PARAMS, X), "loss", "function", "tree of arrays"),
        (lambda: capibara.as_model(Line()).by_name({"w": 1}), "params", "structure", "'w'"),
        (lambda: capibara.as_model(Line()).tree({"w": 1}), "named", "b", "w"),
        (lambda: capibara.as_model(language()).loss({}, TOKENS), "parameters", "embedding", "0 names"),
        (lambda: capibara.as_model(language()).apply(3, TOKENS), "params", "dict", "3"),
        (lambda: capibara.as_model(language()).loss(PARAMS, TOKENS), "parameters", "embedding", "2 names"),
        (lambda: capibara.as_model(Line()).with_params({"v": "text"}).types(), "params", "arrays", "'text'"),
        (lambda: capibara.as_model(Line()).with_params(None).init(3), "init", "params", "Line"),
        (lambda: capibara.as_model(lambda p, x: x, {"n": 3}).types(), "params", "arrays", "3"),
    ],
    "TrainerConfig": [
        (lambda: trainer(steps=0), "steps", "positive", "0"),
        (lambda: trainer(steps="ten"), "steps", "number", "ten"),
        (lambda: trainer(batch=-1), "batch", "positive", "-1"),
        (lambda: trainer(length=2.5), "length", "whole number", "2.5"),
        (lambda: trainer(accumulate=0), "accumulate", "positive", "0"),
        (lambda: trainer(optimizer="best"), "optimizer", "adamw", "'best'"),
        (lambda: trainer(learning_rate="fast"), "learning_rate", "number", "fast"),
        (lambda: trainer(learning_rate=-1.0), "learning_rate", "0 or more", "-1"),
        (lambda: trainer(warmup=-3), "warmup", "0 or more", "-3"),
        (lambda: trainer(checkpoint_every=0), "checkpoint_every", "positive", "0"),
        (lambda: trainer(keep=0), "keep", "positive", "0"),
        (lambda: trainer(num_workers=0), "num_workers", "positive", "0"),
        (lambda: trainer(held_out=0.9), "held_out", "between 0 and 0.5", "0.9"),
        (lambda: trainer(seed=-1), "seed", "number", "-1"),
        (lambda: trainer(weight_decay=None), "weight_decay", "number", "null"),
        (lambda: trainer(mesh=8), "mesh", "text", "8"),
        (lambda: trainer(mesh={"rows": 2}), "mesh", "data", "rows=2"),
        (lambda: trainer(gradient_checkpointing=True), "model", "layers", "Line"),
        (lambda: training.Trainer({"steps": 3}, Line()), "config", "TrainerConfig", "{'steps': 3}"),
        (lambda: training.Trainer(Line(), config()), "config", "before", "Line"),
    ],
    "Trainer": [
        (lambda: training.Trainer(config(), Line(), mesh_shape=8), "mesh_shape", "tuple", "8"),
        (lambda: training.Trainer(config(), Line(), mesh_shape=(0,)), "mesh_shape", "positive", "(0,)"),
        (lambda: training.Trainer(config(), Line(), mesh_shape=("data",)), "mesh_shape", "sizes", "('data',)"),
        (lambda: training.Trainer(config(), Line(), mesh_shape=(1, 1, 1)), "mesh_shape", "data and tensor", "(1, 1, 1)"),
        (lambda: training.Trainer(config(), Line(), mesh_shape=(4096,)), "mesh_shape", "4096", "devices"),
        (lambda: training.Trainer(config(mesh="data=2"), Line(), mesh_shape=(1,)), "mesh_shape", "give one", "data=2"),
        (lambda: training.Trainer(config(), Line(), folder=3), "folder", "path", "3"),
        (lambda: training.Trainer(config(), Line(), use_bf16="yes"), "use_bf16", "bool", "'yes'"),
        (lambda: training.Trainer(config(), capibara.as_model(PARAMS)), "model", "loss", "tree of arrays"),
        (lambda: training.Trainer(config(), capibara.as_model(Line().loss, {"n": np.arange(3)})), "model", "floating", "int32"),
        (lambda: training.Trainer(config(), capibara.as_model(Line().loss, {"w": np.ones(2), "rate": 0.5})), "params", "arrays", "0.5"),
    ],
    "Trainer.params": [
        (lambda: set_params(3), "params", "structure", "*"),
        (lambda: set_params(None), "params", "structure", "None"),
        (lambda: set_params({}), "params", "structure", "{}"),
        (lambda: set_params({"w": PARAMS["w"]}), "params", "structure", "{'w': *}"),
        (lambda: set_params({**PARAMS, "c": X}), "params", "structure", "'c'"),
        (lambda: set_params([PARAMS["w"], PARAMS["b"]]), "params", "structure", "[*, *]"),
        (lambda: set_params({"w": Y, "b": PARAMS["b"]}), "w", "float32[3,1]", "float32[4,1]"),
        (lambda: set_params({"w": PARAMS["w"], "b": np.zeros(1, np.int32)}), "b", "float32[1]", "int32[1]"),
        (lambda: set_params({"w": PARAMS["w"], "b": "text"}), "'b'", "valid JAX type", "'text'"),
        (lambda: set_params({"w": PARAMS["w"], "b": object()}), "'b'", "valid JAX type", "object"),
    ],
    "Trainer.device_bytes": [
        *[(lambda wrong=wrong: trainer().device_bytes(wrong), "gradients", "structure", got) for wrong, got in [
            (3, "*"), ("text", "*"), (X, "*"), ([], "[]"), ({}, "{}"), ({"w": PARAMS["w"]}, "{'w': *}"), ([X, X], "[*, *]"),
            ({**PARAMS, "c": X}, "'c'")]],
        (lambda: trainer().device_bytes({"w": Y, "b": PARAMS["b"]}), "w", "float32[3,1]", "float32[4,1]"),
        (lambda: trainer().device_bytes({"w": PARAMS["w"], "b": np.zeros(1, np.int32)}), "b", "float32[1]", "int32[1]"),
        (lambda: trainer().device_bytes({"w": PARAMS["w"], "b": "text"}), "'b'", "valid JAX type", "'text'"),
    ],
    "TPUTrainer": [
        (lambda: training.TPUTrainer({"steps": 3}, language()), "config", "TrainerConfig", "{'steps': 3}"),
        *[(lambda wrong=wrong: training.TPUTrainer(config(), language(), **wrong), name, expected, got) for wrong, name, expected, got in [
            ({"mesh_shape": 8}, "mesh_shape", "tuple", "8"), ({"mesh_shape": (0,)}, "mesh_shape", "positive", "(0,)"),
            ({"mesh_shape": (4096,)}, "mesh_shape", "4096", "devices"), ({"folder": 3}, "folder", "path", "3"),
            ({"use_bf16": "yes"}, "use_bf16", "bool", "'yes'"),
            ({"enable_xla_optimizations": "yes"}, "enable_xla_optimizations", "bool", "'yes'")]],
        *[(lambda wrong=wrong: training.TPUTrainer(tpu.TPUConfig(**SLICE), language(), mesh_shape=wrong), "mesh_shape", expected, got)
          for wrong, expected, got in [(64, "tuple", "64"), ("8x8", "tuple", "'8x8'"), ((2, 2), "v6e-64 has 64", "4 devices")]],
    ],
    "TPUTrainer.plan": [
        (lambda: training.TPUTrainer(config(), language()).plan(), "configuration", "TPUConfig", "no TPU"),
        *[(lambda wrong=wrong: planned().plan(wrong), "batch_size_per_chip", expected, got) for wrong, expected, got in [
            (0, "1 or more", "0"), (-1, "1 or more", "-1"), ("x", "number", "'x'"), (2.5, "whole number", "2.5"), (True, "number", "True"),
            ([4], "number", "[4]"), (b"4", "number", "b'4'"), ({}, "number", "{}"), (object(), "number", "object")]],
    ],
    "Generator": [
        *[(lambda wrong=wrong: training.Generator(*wrong()), name, expected, got) for wrong, name, expected, got in [
            (lambda: (3, weights(), 8), "model", "LanguageModel", "3"), (lambda: (None, weights(), 8), "model", "LanguageModel", "None"),
            (lambda: (Line(), PARAMS, 8), "model", "LanguageModel", "Line"), (lambda: (language(), 3, 8), "params", "dict", "3"),
            (lambda: (language(), None, 8), "params", "dict", "None"), (lambda: (language(), {}, 8), "params", "dict", "{}"),
            (lambda: (language(), {"w": X}, 8), "parameters", "embedding", "w"), (lambda: (language(), weights(), 0), "capacity", "2", "0"),
            (lambda: (language(), weights(), "x"), "capacity", "number", "'x'"),
            (lambda: (language(), weights(), 2.5), "capacity", "whole number", "2.5")]],
    ],
    "Generator.generate": [
        *[(lambda wrong=wrong: training.Generator(language(), weights(), 8).generate(**{"prompt": [1], **wrong}), name, expected, got)
          for wrong, name, expected, got in [
              ({"prompt": 3}, "prompt", "sequence", "3"), ({"prompt": "ab"}, "prompt", "sequence", "'ab'"),
              ({"prompt": [1.5]}, "prompt", "sequence", "[1.5]"), ({"prompt": []}, "prompt", "one token", "at least"),
              ({"prompt": [99]}, "prompt", "vocabulary of 32", "99"), ({"prompt": [1] * 9}, "prompt", "capacity of 8", "9"),
              ({"max_new_tokens": -1}, "max_new_tokens", "0 or more", "-1"), ({"temperature": -0.5}, "temperature", "0 or more", "-0.5"),
              ({"top_k": -2}, "top_k", "0 or more", "-2"), ({"seed": "x"}, "seed", "number", "'x'"),
              ({"stop": 3}, "stop", "sequence", "3")]],
    ],
    "convert_weights": [
        *[(lambda wrong=wrong: training.convert_weights(wrong, "int8"), "params", "dict", got) for wrong, got in [
            (3, "3"), (None, "None"), ("text", "'text'"), ([X], "array"), ({}, "{}")]],
        (lambda: training.convert_weights({"w": "text"}, "int8"), "'w'", "valid JAX type", "'text'"),
        (lambda: training.convert_weights({"n": np.arange(3)}, "int8"), "'n'", "floats", "int32[3]"),
        *[(lambda wrong=wrong: training.convert_weights(PARAMS, wrong), "weights", expected, got) for wrong, expected, got in [
            ("int3", "int8", "'int3'"), ("INT8", "int8", "'INT8'"), (8, "text", "8"), (None, "text", "None")]],
    ],
    "quantize_model": [
        *[(lambda wrong=wrong: training.quantize_model({"w": X}, wrong), "format", "'int8', 'int4' or 'vq'", repr(wrong))
          for wrong in ("int5", "INT8", 8, None, "", ["int8"], "float32")],
        (lambda: training.quantize_model({"bias": np.zeros(3)}), "model", "matrix", "tree of arrays"),
        (lambda: training.quantize_model({"w": np.zeros((4, 4), np.float32)}, "vq"), "model", "matrix", "tree of arrays"),
        (lambda: training.quantize_model(language()), "model", "parameters", "LanguageModel"),
        (lambda: training.quantize_model({"w": np.full((64, 64), np.nan, np.float32)}), "matrix", "finite", "nan"),
    ],
    "quantize_activations": [
        (lambda: training.quantize_activations({"w": X}), "model", "int8 codes", "none"),
        (lambda: training.quantize_activations(training.quantize_model({"w": X}, "int4")), "model", "int8 codes", "none"),
        (lambda: training.quantize_activations(language()), "model", "parameters", "LanguageModel"),
        (lambda: training.quantize_activations(training.quantize_model({"w": X}), [X]), "loss", "apply", "tree of arrays"),
        *[(lambda loader=loader, options=options: training.quantize_activations(coded(), loader, **options), name, expected, got)
          for loader, options, name, expected, got in [
              (3, {}, "loader", "iterable", "3"), ([], {}, "loader", "16 batches", "got 0: the loader is empty"),
              ([X, X], {"batches": 3}, "loader", "3 batches", "got 2"), ([X], {"batches": 0}, "batches", "1 or more", "0"),
              ([X], {"batches": "x"}, "batches", "number", "'x'"), ([X * np.nan], {"batches": 1}, "loader", "finite", "nan"),
              ([X, X + np.inf], {"batches": 2}, "batch 1", "finite", "inf"), ([X], {"percentile": 0}, "percentile", "more than 0", "0"),
              ([X], {"percentile": 101}, "percentile", "100", "101"), ([X], {"percentile": "all"}, "percentile", "number", "'all'"),
              ([X], {"function": "loss"}, "model", "loss", "no loss"), ([X], {"function": "call"}, "function", "'apply'", "'call'"),
              ([X], {"function": 3}, "function", "text", "3"), (["x"], {"batches": 1}, "batch", "array", "'x'"),
              ([X[:, :2]], {"batches": 1}, "contracting", "3", "2")]],
    ],
    "Trainer.train": [
        (lambda: trainer().train(None), "train_data", "iterable", "None"),
        (lambda: trainer().train(3), "train_data", "iterable", "3"),
        (lambda: trainer().train(object()), "train_data", "iterable", "object"),
        (lambda: trainer().train("book.txt"), "train_data", "text", "'book.txt'"),
        (lambda: training.Trainer(config(), language()).train("no/such/book.txt"), "train_data", "file", "no/such/book.txt"),
        (lambda: trainer().train([(X, Y)], num_steps=0), "num_steps", "1 or more", "0"),
        (lambda: trainer().train([(X, Y)], num_steps="ten"), "num_steps", "number", "'ten'"),
        (lambda: trainer().train([(X, Y)], batch_size_per_chip=4), "batch_size_per_chip", "sizes", "4"),
        (lambda: training.Trainer(config(), language()).train("x", batch_size_per_chip=-1), "batch_size_per_chip", "1 or more", "-1"),
        (lambda: trainer().train([(X, Y)], on_step=3), "on_step", "function", "3"),
        (lambda: trainer().train([("x", "y")]), "batch", "arrays", "'x'"),
        (lambda: trainer().train([(X, Y, Y)]), "batch", "x, y", "3"),
    ],
    "Trainer.sample": [
        (lambda: trainer().sample("x"), "model", "LanguageModel", "Line"),
        (lambda: training.Trainer(config(), language()).sample("x"), "tokenizer", "train", "x"),
        *[(lambda changes=changes: sampler().sample(**{"prompt": "ab", "max_new_tokens": 2, **changes}), name, expected, got)
          for changes, name, expected, got in [
              ({"prompt": 3}, "prompt", "str", "3"), ({"prompt": None}, "prompt", "str", "None"),
              ({"max_new_tokens": -1}, "max_new_tokens", "0 or more", "-1"),
              ({"max_new_tokens": "many"}, "max_new_tokens", "number", "many"),
              ({"temperature": -0.5}, "temperature", "0 or more", "-0.5"), ({"temperature": "hot"}, "temperature", "number", "hot"),
              ({"top_k": -2}, "top_k", "0 or more", "-2"), ({"weights": "int3"}, "weights", "int8", "int3"),
              ({"seed": -1}, "seed", "number", "-1"), ({"weights": 8}, "weights", "int8", "8")]],
    ],
    "enable_gradient_checkpointing": [
        (lambda: training.enable_gradient_checkpointing(Tower(), 0), "checkpoint_every_n_layers", "at least 1", "0"),
        (lambda: training.enable_gradient_checkpointing(Tower(), -1), "checkpoint_every_n_layers", "at least 1", "-1"),
        (lambda: training.enable_gradient_checkpointing(Tower(), 0.5), "checkpoint_every_n_layers", "a number of layers", "0.5"),
        (lambda: training.enable_gradient_checkpointing(Tower(), "all"), "checkpoint_every_n_layers", "a number of layers", "'all'"),
        (lambda: training.enable_gradient_checkpointing(Tower(), True), "checkpoint_every_n_layers", "a number of layers", "True"),
        (lambda: training.enable_gradient_checkpointing(Tower(), 1, "some"), "checkpoint_policy", "minimal", "'some'"),
        (lambda: training.enable_gradient_checkpointing(Tower(), 1, None), "checkpoint_policy", "minimal", "None"),
        (lambda: training.enable_gradient_checkpointing(Tower(), 1, ["minimal"]), "checkpoint_policy", "minimal", "['minimal']"),
        (lambda: training.enable_gradient_checkpointing(Line()), "model", "layers", "Line"),
        (lambda: training.enable_gradient_checkpointing([jnp.tanh, 3]), "model", "function", "3"),
    ],
}
BATCHES = [((), "batch", "x, y", "0"), ((X,), "batch", "x, y", "1"), ((X, Y, Y), "batch", "x, y", "3"),
           (("x", "y"), "batch", "arrays", "'x'"),
           ((object(), Y), "batch", "arrays", "object"), (({"x": "t"}, Y), "batch", "arrays", "'t'"),
           ((b"x", Y), "batch", "arrays", "b'x'"),
           ((X[:, :2], Y), "dot", "3", "2")]
WINDOWS = {"step": "int32[4,9]", "evaluate": "integers [batch, length", "gradient": "integers [batch, length"}
for operation, window in WINDOWS.items():
    of_two = (window, "1 more") if operation == "step" else ("one array", "2 arrays")
    wrong_tokens = [((TOKENS.astype(np.float32),), "tokens", window, "float32[4,9]"), ((TOKENS[0],), "tokens", window, "int32[9]"),
                    ((TOKENS, TOKENS), "tokens", *of_two)]
    CASES[f"Trainer.{operation}"] = [
        (lambda operation=operation, batch=batch: getattr(trainer(), operation)(*batch), *words) for batch, *words in BATCHES] + [
        (lambda operation=operation, batch=batch: getattr(training.Trainer(config(), language()), operation)(*batch), *words)
        for batch, *words in wrong_tokens]

folders = []


@functools.cache
def sampler():
    text = folders[0] / "text.txt"
    text.write_text("abc " * 200)
    made = training.Trainer(config(steps=1), language(256))
    made.train(text)
    return made


def tokens():
    text = folders[0] / "tokens.txt"
    text.write_text("abc " * 50)
    width = training.write_tokens(str(text), training.Tokenizer(), str(folders[0] / "tokens.bin"))
    return training.TokenFile(str(folders[0] / "tokens.bin"), width)


def checkpointer(**options):
    return TPUCheckpointer(folders[0] / "empty", async_checkpointing=False, **options)


def saved():
    made = TPUCheckpointer(folders[0] / "saved", async_checkpointing=False)
    if not made.all_steps():
        made.save(1, params=PARAMS)
    return made
