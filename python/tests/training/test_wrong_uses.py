"""Wrong uses of models, trainers, loaders and what takes models: each error names the argument, what was expected and what was got."""
import functools

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

import capibara  # noqa: E402
import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara import kernels, training  # noqa: E402
from capibara.core import tpu  # noqa: E402
from capibara.operate.checkpointer import TPUCheckpointer  # noqa: E402
from capibara.operate.monitor import TPUMonitor  # noqa: E402
from capibara.operate.profiler import TPUProfiler  # noqa: E402

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


def set_params(params):
    trainer().params = params


# Function, argument: [(wrong value, what was expected, what was got)]; `got` is how the value shows in the text where it is None.
MODELS = [None, 3, 2.5, b"bytes", object(), Line, len, [], {}, {"w": "text"}]
OF_MODELS = {
    "as_model": capibara.as_model,
    "Trainer": lambda model: training.Trainer(config(), model),
    "TPUTrainer": lambda model: training.TPUTrainer(config(), model),
    "enable_gradient_checkpointing": training.enable_gradient_checkpointing,
    "shard_model": lambda model: tpu.shard_model(model, mesh()),
    "sharding_table": lambda model: tpu.sharding_table(model, mesh()),
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
    "shard_model": [
        *[(lambda wrong=wrong: tpu.shard_model(PARAMS, wrong), "mesh", "Mesh", repr(wrong)[:20])
          for wrong in (None, 3, "data=8", (8,), {"data": 8}, jax.devices()[0])],
        (lambda: tpu.shard_model(PARAMS, mesh(), "some"), "strategy", "megatron", "'some'"),
        (lambda: tpu.shard_model(PARAMS, mesh(), None), "strategy", "megatron", "None"),
        (lambda: tpu.shard_model(PARAMS, mesh(), rules=3), "rules", "Rule", "3"),
        (lambda: tpu.shard_model(PARAMS, mesh(), rules=["w"]), "rules", "Rule", "'w'"),
        (lambda: tpu.shard_model(language(), mesh()), "model", "params", "LanguageModel"),
    ],
    "sharding_table": [
        *[(lambda wrong=wrong: tpu.sharding_table(PARAMS, wrong), "mesh", "Mesh", repr(wrong)[:20])
          for wrong in (None, 3, "data=8", (8,), {"data": 8}, jax.devices()[0])],
        (lambda: tpu.sharding_table(PARAMS, mesh(), "some"), "strategy", "megatron", "'some'"),
        (lambda: tpu.sharding_table(PARAMS, mesh(), 3), "strategy", "megatron", "3"),
        (lambda: tpu.sharding_table(PARAMS, mesh(), rules="w"), "rules", "Rule", "'w'"),
        (lambda: tpu.sharding_table(PARAMS, mesh(), rules=[3]), "rules", "Rule", "3"),
    ],
    "quantize_for_tpu": [
        *[(lambda bits=bits: tpu.quantize_for_tpu({"w": X}, bits=bits), "bits", "4 or 8", repr(bits))
          for bits in (3, 0, -8, 16, "8", None, 4.5, [8])],
        (lambda: tpu.quantize_for_tpu({"bias": np.zeros(3)}), "model", "matrix", "tree of arrays"),
        (lambda: tpu.quantize_for_tpu(language()), "model", "parameters", "LanguageModel"),
    ],
    "estimate_step": [
        (lambda: tpu.estimate_step("no such preset"), "model", "1.3b", "no such preset"),
        (lambda: tpu.estimate_step("1.3b", tpu="v9-8"), "tpu", "v4", "v9-8"),
        (lambda: tpu.estimate_step("1.3b", tpu=3), "tpu", "slice", "3"),
        (lambda: tpu.estimate_step("1.3b", sequence_length=0), "sequence_length", "positive", "0"),
        (lambda: tpu.estimate_step("1.3b", sequence_length="long"), "sequence_length", "positive", "'long'"),
        (lambda: tpu.estimate_step("1.3b", batch_size=-1), "batch_size", "positive", "-1"),
        (lambda: tpu.estimate_step("1.3b", batch_size=True), "batch_size", "positive", "True"),
        (lambda: tpu.estimate_step("1.3b", mesh="rows=2"), "mesh", "fsdp", "rows"),
        (lambda: tpu.estimate_step("1.3b", mesh=3), "mesh", "text", "3"),
        (lambda: tpu.estimate_step("1.3b", remat="some"), "remat", "full", "some"),
        (lambda: tpu.estimate_step({"layers": 2, "width": "wide"}), "model", "number", "wide"),
    ],
    "analyze_bottlenecks": [
        (lambda: tpu.analyze_bottlenecks("no such preset"), "model", "1.3b", "no such preset"),
        (lambda: tpu.analyze_bottlenecks("1.3b", tpu="v9-8"), "tpu", "v4", "v9-8"),
        (lambda: tpu.analyze_bottlenecks("1.3b", tpu=3), "tpu", "slice", "3"),
        (lambda: tpu.analyze_bottlenecks("1.3b", sequence_length=-5), "sequence_length", "positive", "-5"),
        (lambda: tpu.analyze_bottlenecks("1.3b", sequence_length=[1]), "sequence_length", "positive", "[1]"),
        (lambda: tpu.analyze_bottlenecks("1.3b", batch_size=0), "batch_size", "positive", "0"),
        (lambda: tpu.analyze_bottlenecks("1.3b", batch_size="all"), "batch_size", "positive", "'all'"),
        (lambda: tpu.analyze_bottlenecks("1.3b", mesh="data=x"), "mesh", "fsdp", "data=x"),
        (lambda: tpu.analyze_bottlenecks("1.3b", mesh=[4]), "mesh", "text", "[4]"),
        (lambda: tpu.analyze_bottlenecks("1.3b", remat=None), "remat", "full", "None"),
    ],
    "find_optimal_batch_size": [
        (lambda: tpu.find_optimal_batch_size("no such preset", 128), "model", "1.3b", "no such preset"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 0), "sequence_length", "positive", "0"),
        (lambda: tpu.find_optimal_batch_size("1.3b", "long"), "sequence_length", "positive", "'long'"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, 0), "target_utilization", "above 0 and at most 1", "0"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, 1.5), "target_utilization", "above 0 and at most 1", "1.5"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, "most"), "target_utilization", "above 0 and at most 1", "'most'"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, available_memory_gb=-1), "available_memory_gb", "whole chips", "-1"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, available_memory_gb="all"), "available_memory_gb", "whole chips", "'all'"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, tpu="v9-8"), "tpu", "v4", "v9-8"),
        (lambda: tpu.find_optimal_batch_size("1.3b", 128, tpu_version="v9"), "tpu_version", "v4", "v9"),
    ],
    "diagnose_performance": [
        (lambda: tpu.diagnose_performance("no such preset"), "model", "1.3b", "no such preset"),
        (lambda: tpu.diagnose_performance("1.3b", 3), "dataloader", "iterable", "3"),
        (lambda: tpu.diagnose_performance("1.3b", object()), "dataloader", "iterable", "object"),
        (lambda: tpu.diagnose_performance("1.3b", target_tflops=0), "target_tflops", "positive", "0"),
        (lambda: tpu.diagnose_performance("1.3b", target_tflops="all"), "target_tflops", "positive", "'all'"),
        (lambda: tpu.diagnose_performance("1.3b", tpu="v9-8"), "tpu", "v4", "v9-8"),
        (lambda: tpu.diagnose_performance("1.3b", tpu=8), "tpu", "slice", "8"),
        (lambda: tpu.diagnose_performance("1.3b", sequence_length=0), "sequence_length", "positive", "0"),
        (lambda: tpu.diagnose_performance("1.3b", batch_size=-2), "batch_size", "positive", "-2"),
        (lambda: tpu.diagnose_performance("1.3b", batch_size="x"), "batch_size", "positive", "'x'"),
    ],
    "MemoryOptimizer": [
        (lambda: tpu.MemoryOptimizer("most"), "strategy", "aggressive", "'most'"),
        (lambda: tpu.MemoryOptimizer(None), "strategy", "aggressive", "None"),
        (lambda: tpu.MemoryOptimizer(["none"]), "strategy", "aggressive", "['none']"),
        (lambda: tpu.MemoryOptimizer(activation_checkpointing_layers=0), "activation_checkpointing_layers", "at least 1", "0"),
        (lambda: tpu.MemoryOptimizer(activation_checkpointing_layers="x"), "activation_checkpointing_layers", "at least 1", "'x'"),
        (lambda: tpu.MemoryOptimizer().estimate_memory("1.3b", 0, 128), "batch_size", "positive", "0"),
        (lambda: tpu.MemoryOptimizer().estimate_memory("1.3b", 8, -1), "sequence_length", "positive", "-1"),
        (lambda: tpu.MemoryOptimizer().estimate_memory("1.3b", 8, 128, tpu="v9-8"), "tpu", "v4", "v9-8"),
        (lambda: tpu.MemoryOptimizer().estimate_memory("1.3b", 8, 128, mesh="rows=2"), "mesh", "fsdp", "rows"),
        (lambda: tpu.MemoryOptimizer().estimate_memory("no such preset", 8, 128), "model", "1.3b", "no such preset"),
    ],
    "LanguageModel": [
        (lambda: training.LanguageModel(size=3), "size", "vocabulary", "'size'"),
        (lambda: training.LanguageModel(vocabulary=0), "vocabulary", "positive", "0"),
        (lambda: training.LanguageModel(width="wide"), "width", "number", "wide"),
        (lambda: training.LanguageModel(width=30, heads=4), "width", "even multiple", "30"),
        (lambda: training.LanguageModel(layers=[]), "layers", "at least one", "layers"),
        (lambda: training.LanguageModel(layers=["convolution"]), "layer", "attention", "convolution"),
        (lambda: training.LanguageModel(layers=3), "layers", "list", "3"),
        (lambda: training.LanguageModel(heads=4, key_heads=3), "heads", "multiple", "3"),
        (lambda: training.LanguageModel(experts=2, experts_per_token=3), "experts_per_token", "between 1 and", "3"),
        (lambda: training.LanguageModel(norm="batch"), "norm", "rms", "batch"),
        (lambda: training.LanguageModel(positions=None), "positions", "text", "null"),
        (lambda: training.LanguageModel(checkpoint_policy="some"), "checkpoint_policy", "minimal", "some"),
    ],
    "DataLoader": [
        (lambda: training.DataLoader(3), "source", "arrays", "3"),
        (lambda: training.DataLoader(None), "source", "arrays", "None"),
        (lambda: training.DataLoader({}), "source", "arrays", "{}"),
        (lambda: training.DataLoader("book.txt"), "source", ".npy", "book.txt"),
        (lambda: training.DataLoader("none.npy"), "source", "file", "none.npy"),
        (lambda: training.DataLoader((X, np.ones(3))), "array", "number of rows", "float32[3]"),
        (lambda: training.DataLoader(X, 0), "batch_size", "1 or more", "0"),
        (lambda: training.DataLoader(X, "all"), "batch_size", "whole number", "'all'"),
        (lambda: training.DataLoader(X, num_workers=0), "num_workers", "1 or more", "0"),
        (lambda: training.DataLoader(X, prefetch=-1), "prefetch", "1 or more", "-1"),
        (lambda: training.DataLoader(X, seed=-1), "seed", "0 or more", "-1"),
        (lambda: training.DataLoader(X, seed=0.5), "seed", "whole number", "0.5"),
        (lambda: training.DataLoader(X, start=-1), "start", "0 or more", "-1"),
        (lambda: training.DataLoader(X, processes=True), "processes", "__getitem__", "arrays"),
        (lambda: training.DataLoader(iter([X]), num_workers=2), "num_workers", "one", "2"),
    ],
    "Loader": [
        (lambda: training.Loader(3), "tokens", "TokenFile", "3"),
        (lambda: training.Loader("tokens.bin"), "tokens", "TokenFile", "'tokens.bin'"),
        *[(lambda name=name, value=value: training.Loader(tokens(), **{"batch": 2, "length": 4, name: value}), name, expected, got)
          for name, value, expected, got in [
              ("batch", 0, "positive", "0"), ("batch", "x", "whole number", "'x'"), ("length", -1, "positive", "-1"),
              ("length", 2.5, "whole number", "2.5"), ("first", -2, "between", "-2"), ("last", 10**6, "between", "1000000"),
              ("seed", -1, "0 or more", "-1"), ("next", -1, "negative", "-1"), ("num_workers", 0, "positive", "0"),
              ("length", 10**6, "tokens", "1000000")]],
    ],
    "TPUCheckpointer": [
        (lambda: TPUCheckpointer(3), "checkpoint_dir", "path", "3"),
        (lambda: TPUCheckpointer(None), "checkpoint_dir", "path", "None"),
        (lambda: checkpointer(max_to_keep=0), "max_to_keep", "from 1", "0"),
        (lambda: checkpointer(max_to_keep="all"), "max_to_keep", "from 1", "'all'"),
        (lambda: checkpointer(save_interval_steps=0), "save_interval_steps", "from 1", "0"),
        (lambda: checkpointer(save_interval_steps=None), "save_interval_steps", "from 1", "None"),
        (lambda: checkpointer(chunk_bytes=0), "chunk_bytes", "64 or more", "0"),
        (lambda: checkpointer(chunk_bytes="big"), "chunk_bytes", "number", "'big'"),
        (lambda: checkpointer().save(-1, params=PARAMS), "step", "0 or more", "-1"),
        (lambda: checkpointer().save("ten", params=PARAMS), "step", "number", "ten"),
        (lambda: checkpointer().save(1, params={"w": object()}), "params", "array", "object"),
        (lambda: checkpointer().save(1, metadata={"m": object()}, params=PARAMS), "metadata", "JSON", "object"),
    ],
    "TPUCheckpointer.restore": [
        (lambda: checkpointer().restore(), "step", "saved", "no step"),
        *[(lambda wrong=wrong: saved().restore(**wrong), name, expected, got) for wrong, name, expected, got in [
            ({"step": 7}, "step", "1", "7"), ({"step": "ten"}, "step", "number", "ten"), ({"like": 3}, "like", "dictionary", "int"),
            ({"like": {"other": PARAMS}}, "like", "params", "other"),
            ({"like": {"params": {"w": X, "b": PARAMS["b"]}}}, "w", "float32[4,3]", "float32[3,1]"),
            ({"like": {"params": {"v": X}}}, "like", "params", "v"), ({"only": ["other"]}, "only", "params", "other"),
            ({"only": 3}, "only", "names", "3"), ({"on_corruption": "ignore"}, "on_corruption", "previous", "'ignore'"),
            ({"shardings": {"other": None}}, "shardings", "params", "'other'"), ({"shardings": 3}, "shardings", "sharding", "3")]],
    ],
    "TPUProfiler": [
        (lambda: TPUProfiler(3), "output_dir", "path", "3"),
        (lambda: TPUProfiler(None), "output_dir", "path", "None"),
        (lambda: TPUProfiler(capture_memory=False, capture_compute=False), "capture_memory", "expected", "both off"),
        (lambda: TPUProfiler().stop(), "start", "before", "no profile"),
        (lambda: TPUProfiler().summary(), "profile", "with profiler.profile", "no profile"),
        (lambda: TPUProfiler().generate_report(), "profile", "with profiler.profile", "no profile"),
        (lambda: TPUProfiler().analyze_bottlenecks(), "profile", "with profiler.profile", "no profile"),
        (lambda: TPUProfiler().start(3), "name", "text", "3"),
        (lambda: TPUProfiler().start(None), "name", "text", "None"),
        (lambda: TPUProfiler(capture_memory="yes"), "capture_memory", "bool", "'yes'"),
    ],
    "TPUMonitor": [
        (lambda: TPUMonitor(0), "update_frequency_seconds", "from 0.001", "0"),
        (lambda: TPUMonitor("often"), "update_frequency_seconds", "number", "'often'"),
        (lambda: TPUMonitor(1, True, -1), "prometheus_port", "65535", "-1"),
        (lambda: TPUMonitor(1, True, "http"), "prometheus_port", "number", "'http'"),
        (lambda: TPUMonitor(1, hosts="here"), "hosts", "list", "'here'"),
        (lambda: TPUMonitor(1, hosts=[3]), "hosts", "names", "3"),
        (lambda: TPUMonitor(1, address=3), "address", "text", "3"),
        (lambda: TPUMonitor(1, log_file=3), "log_file", "path", "3"),
        (lambda: TPUMonitor(1).step(loss="low"), "loss", "number", "'low'"),
        (lambda: TPUMonitor(1).step(tokens="many"), "tokens", "number", "'many'"),
    ],
    "TPUMonitor.set_alert": [
        *[(lambda wrong=wrong: TPUMonitor(1).set_alert(*wrong), name, expected, got) for wrong, name, expected, got in [
            (("speed", ">", 1, print), "metric", "did you mean 'steps'", "speed"), ((3, ">", 1, print), "metric", "text", "3"),
            (("loss", "over", 1, print), "condition", ">=", "over"), (("loss", None, 1, print), "condition", "text", "None"),
            (("loss", ">", "high", print), "threshold", "number", "'high'"), (("loss", ">", None, print), "threshold", "number", "None"),
            (("loss", ">", 1, 3), "action", "function", "3"), (("loss", ">", 1, None), "action", "function", "None"),
            (("loss", ">", 1, print, -1), "for_seconds", "0 or more", "-1"),
            (("loss", ">", 1, print, "long"), "for_seconds", "number", "'long'")]],
    ],
    "flash_attention": [
        *[(lambda wrong=wrong: kernels.flash_attention(*(wrong.get(name, np.ones((1, 4, 2, 8), np.float32)) for name in ("q", "k", "v")),
                                                       **{name: value for name, value in wrong.items() if name not in "qkv"}),
           name, expected, got) for wrong, name, expected, got in [
               ({"q": np.ones((4, 8), np.float32)}, "q", "[batch", "float32[4,8]"),
               ({"q": "text"}, "position 0", "ndarray or scalar", "str"),
               ({"k": np.ones((1, 4, 2, 4), np.float32)}, "k", "8", "float32[1,4,2,4]"),
               ({"v": np.ones((1, 3, 2, 8), np.float32)}, "v", "4", "float32[1,3,2,8]"),
               ({"k": np.ones((1, 4, 2, 8), np.int32)}, "k", "floating", "int32[1,4,2,8]"),
               ({"causal": "yes"}, "causal", "True or False", "str"),
               ({"sequence_parallel": "yes"}, "sequence_parallel", "True or False", "str"), ({"window": -1}, "window", "0 or more", "-1"),
               ({"scale": "big"}, "scale", "number", "str"),
               ({"attention_mask": np.ones((3, 3), bool)}, "attention_mask", "broadcasts to [1,4,2,2]", "bool[1,1,3,3]")]],
    ],
    "adaptive_matmul": [
        *[(lambda wrong=wrong: kernels.adaptive_matmul(wrong.get("a", X), wrong.get("b", np.ones((3, 2), np.float32)),
                                                       **{name: value for name, value in wrong.items() if name not in "ab"}),
           name, expected, got) for wrong, name, expected, got in [
               ({"a": "text"}, "position 0", "ndarray or scalar", "str"), ({"b": None}, "position 1", "ndarray or scalar", "NoneType"),
               ({"b": np.ones((4, 2), np.float32)}, "b", "3", "4"), ({"tpu_strategy": "some"}, "tpu_strategy", "collective", "'some'"),
               ({"tpu_strategy": 3}, "tpu_strategy", "string", "int"), ({"precision": "some"}, "precision", "high", "some"),
               ({"precision": 3}, "precision", "string", "int"), ({"a": np.float32(1)}, "a", "rank 1", "float32[]"),
               ({"tpu_strategy": None}, "tpu_strategy", "collective", "''"),
               ({"a": object()}, "position 0", "ndarray or scalar", "object")]],
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


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    folders.append(tmp_path_factory.mktemp("wrong"))


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


def text_of(use):
    with pytest.raises(Exception) as caught:
        use()
    assert isinstance(caught.value, (TypeError, ValueError, KeyError, RuntimeError, FileNotFoundError)), repr(caught.value)
    assert "incompatible function arguments" not in str(caught.value)
    return str(caught.value)


def test_every_function_has_ten_wrong_uses():
    assert all(len(cases) >= 10 for cases in CASES.values()) and len(MODELS) == 10


@pytest.mark.parametrize("function", OF_MODELS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model!r:.12}")
def test_what_is_no_model_is_refused(function, model):
    text = text_of(lambda: OF_MODELS[function](model))
    shown = getattr(model, "__name__", None) or ("object" if type(model) is object else type(model).__name__ if not model else "")
    assert "argument 'model'" in text and "got" in text, text
    assert shown in text or repr(model) in text, text


@pytest.mark.parametrize(("function", "number"), [(name, number) for name, cases in CASES.items() for number in range(len(cases))])
def test_the_argument_what_is_expected_and_what_was_got_are_named(function, number):
    use, argument, expected, got = CASES[function][number]
    text = text_of(use)
    missing = [word for word in (argument, expected, got) if word not in text]
    assert not missing, f"no {missing} in: {text}"
