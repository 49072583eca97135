"""Wrong uses of models, trainers, loaders and functions of models: each error names the argument, the expected and the actual value."""
import inspect

import numpy as np
import pytest
import wrong_uses_of_trainers
from wrong_uses_of_trainers import MODELS, OF_MODELS, PARAMS, X, checkpointer, folders, language, mesh, saved, tokens

import capibara
import capibara.jax as jax
from capibara import kernels, training
from capibara.core import tpu
from capibara.operate.checkpointer import TPUCheckpointer
from capibara.operate.monitor import TPUMonitor
from capibara.operate.profiler import TPUProfiler

CASES = wrong_uses_of_trainers.CASES | {
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


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    folders.append(tmp_path_factory.mktemp("wrong"))


def text_of(use):
    with pytest.raises(Exception) as caught:
        use()
    assert isinstance(caught.value, (TypeError, ValueError, KeyError, RuntimeError, FileNotFoundError)), repr(caught.value)
    assert "incompatible function arguments" not in str(caught.value)
    return str(caught.value)


# Functions of text and files, tested in test_training_data.py, test_pretrained.py and, for codes, test_decoding.py.
OF_FILES = {"PublishedTokenizer", "Tokenizer", "TokenFile", "bigram_bits_per_byte", "load_pretrained", "load_weights", "save_weights",
            "write_tokens"}


def public(module):
    """The public functions and classes of one of our modules, including those that it imports by name from another one."""
    return {name: value for name, value in vars(module).items()
            if not name.startswith(("_", "require_")) and callable(value) and (value.__module__ or "").startswith("capibara")}


def test_every_function_has_ten_wrong_uses():
    assert all(len(cases) >= 10 for cases in CASES.values()) and len(MODELS) == 10


def test_every_public_function_is_among_them():
    names = set(public(training)) - OF_FILES | set(capibara.model.__all__)
    names |= {name for name, value in public(tpu).items() if inspect.isfunction(value) and "model" in inspect.signature(value).parameters}
    for kind in (training.Trainer, training.TPUTrainer, training.Generator):
        names |= {f"{kind.__name__}.{name}" for name, value in vars(kind).items()
                  if inspect.isfunction(value) and not name.startswith("_") and len(inspect.signature(value).parameters) > 1}
    names -= {"TPUTrainer.train"}  # prints the plan, then calls Trainer.train
    assert len(names) > 25 and not names - set(CASES) - set(OF_MODELS), names - set(CASES) - set(OF_MODELS)


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
