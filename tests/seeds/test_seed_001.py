"""The blocks of seed 001, capibara/core/tpu, each as a test; README.md says which block is where. Nothing runs on a TPU."""

import copy
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara.core.tpu import TPUError  # noqa: E402


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")


def make_model(seed=0):
    """Two layers of a small network as {"params", "apply"}."""
    keys = jax.random.split(jax.random.key(seed), 2)
    params = {"first": jax.random.normal(keys[0], (32, 64)) / 6, "second": jax.random.normal(keys[1], (64, 16)) / 8}
    return {"params": params, "apply": lambda p, x: jnp.tanh(x @ p["first"]) @ p["second"]}


@pytest.fixture
def config():
    from capibara.core.tpu import TPUConfig
    return TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8")


def test_block_1_basic_configuration():
    from capibara.core.tpu import TPUConfig, configure_tpu_environment

    configure_tpu_environment()
    config = TPUConfig(
        tpu_version="v6e",       # v4, v5e, v6e
        num_chips=64,            # 4, 8, 32, 64, 256
        topology="8x8"           # Mesh topology
    )
    config.validate()
    assert f"{config.tpu_version}-{config.num_chips}" == "v6e-64"
    assert f"{config.get_total_tflops():.1f}" == "58752.0"  # the vendor's; the seed prints 21,000


def test_block_2_training(config, tmp_path, capsys):
    """On the available devices, with the plan for the slice; a folder of text instead of the bucket, twenty steps of 100000."""
    from capibara import training
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "text.txt").write_text("It is a truth universally acknowledged, that a man must be in want of a wife. " * 200)
    model = training.LanguageModel(vocabulary=260, width=32, layers=["attention+mlp"] * 2, heads=2, key_heads=2, hidden=64)

    from capibara.core.tpu import TPUTrainer

    # Crear trainer optimizado para TPU
    trainer = TPUTrainer(
        config=config,
        model=model,
        mesh_shape=(8, 8),       # Para v6e-64: 8x8
        use_bf16=True,
        enable_xla_optimizations=True
    )

    # Entrenar
    losses = trainer.train(
        train_data=str(tmp_path / "data"),
        num_steps=20,
        batch_size_per_chip=4   # Batch size por chip TPU
    )

    assert len(losses) == 20 and losses[-1] < losses[0]
    said = capsys.readouterr().out
    assert "modelled for v6e-64" in said and "nothing runs on a TPU" in said
    with pytest.raises(ValueError, match=r"mesh_shape \(4, 4\) is for 16 devices, v6e-64 has 64"):
        TPUTrainer(config=config, model=model, mesh_shape=(4, 4))


def test_block_3_whole_configuration():
    from capibara.core.tpu import TPUConfig

    config = TPUConfig(
        tpu_version="v6e", num_chips=64, topology="8x8", memory_per_chip="32GB",
        precision="bfloat16", use_mixed_precision=True, fp32_params=True,
        xla_optimization_level=3, enable_xla_fusion=True, enable_async_collective=True,
        memory_optimization="aggressive", enable_rematerialization=True, gradient_checkpointing=True,
        communication_optimization=True, use_collective_matmul=True,
        enable_profiling=False, log_device_placement=False
    )
    assert config.validate() == [] and config.remat_policy() == "full"
    assert config.get_memory_config() == {"use_mixed_precision": True, "compute_dtype": "bfloat16", "param_dtype": "float32",
                                          "memory_per_chip": 32e9, "usable_gib_per_device": 31.24, "remat_policy": "full",
                                          "memory_optimization": "aggressive"}
    flags = config.xla_flags()
    assert flags["xla_tpu_enable_async_collective_fusion"] == "true" and flags["xla_enable_profiler"] == "false"
    assert flags["xla_jf_spmd_threshold_for_windowed_einsum_mib"] == "0" and flags["xla_tpu_enable_data_parallel_all_reduce_opt"] == "true"
    # Each field has an effect: another value changes the compiler's flags, the plan or the memory estimate.
    asked = lambda changed: (changed.xla_flags(), changed.training(), changed.get_memory_config(), changed.get_total_tflops())
    for name, value in (("precision", "float32"), ("use_mixed_precision", False), ("fp32_params", False), ("xla_optimization_level", 0),
                        ("enable_xla_fusion", False), ("enable_async_collective", False), ("memory_optimization", "none"),
                        ("communication_optimization", False), ("use_collective_matmul", False), ("enable_profiling", True),
                        ("memory_per_chip", "16GB")):
        changed = copy.copy(config)
        setattr(changed, name, value)
        assert asked(changed) != asked(config), name
    config.memory_optimization, config.gradient_checkpointing = "normal", False
    assert config.remat_policy() == "minimal"
    config.enable_rematerialization = False
    assert config.remat_policy() == "none"


def test_block_4_environment_variables(config):
    done = config.setup_environment_variables()
    assert os.environ["LIBTPU_INIT_ARGS"].startswith("--xla_") and "data_parallelism" not in os.environ["LIBTPU_INIT_ARGS"]
    assert "GPUs" in done["XLA_PYTHON_CLIENT_PREALLOCATE"] and "jaxlib ends the process" in done["XLA_FLAGS"]


def test_block_7_xla_optimizations():
    from capibara.core.tpu import enable_xla_optimizations

    done = enable_xla_optimizations(level=3, enable_fusion=True, enable_async_collective=True, enable_megacore=True,
                                    enable_latency_hiding=True)
    assert done["refused"] == {} and "xla_tpu_enable_latency_hiding_scheduler" in done["defaults"]


def test_block_8_custom_flags():
    from capibara.core.tpu import set_xla_flags

    flags = {
        "xla_tpu_enable_data_parallelism": True,
        "xla_tpu_enable_async_collective_fusion": True,
        "xla_tpu_enable_megacore_fusion": True,
        "xla_gpu_enable_triton_softmax_fusion": True,
        "xla_gpu_triton_gemm_any": True,
        "xla_tpu_megacore_fusion_allow_ags": True,
        "xla_tpu_enable_ag_backward_pipelining": True
    }
    with pytest.raises(TPUError, match="no compiler has it"):  # libtpu would abort the process
        set_xla_flags(flags)
    done = set_xla_flags(flags, skip_unknown=True)
    assert set(done["refused"]) == {"xla_tpu_enable_data_parallelism", "xla_gpu_enable_triton_softmax_fusion", "xla_gpu_triton_gemm_any"}
    assert done["defaults"] == ["xla_tpu_enable_async_collective_fusion"]


def test_block_9_jit_and_ahead_of_time():
    model = make_model()

    with pytest.raises(ValueError, match="both a device and a backend"):  # as jax: the page gives both
        jax.jit(donate_argnums=(0,), backend="tpu", device=jax.devices()[0])(model["apply"])

    @jax.jit(donate_argnums=(0,), backend="cpu")  # the page says "tpu"
    def optimized_forward(params, inputs):
        return model["apply"](params, inputs)

    inputs = jnp.ones((4, 32))
    expected = np.asarray(model["apply"](model["params"], inputs))
    compiled = jax.jit(model["apply"]).lower(model["params"], inputs).compile()
    np.testing.assert_allclose(compiled(model["params"], inputs), expected, rtol=1e-5)
    np.testing.assert_allclose(optimized_forward(model["params"], inputs), expected, rtol=1e-5)


def test_block_10_memory_optimizer():
    from capibara.core.tpu import MemoryOptimizer
    from capibara.training import LanguageModel

    mem_opt = MemoryOptimizer(strategy="aggressive", enable_rematerialization=True, gradient_checkpointing=True,
                              activation_checkpointing_layers=2)
    model = LanguageModel(vocabulary=64, width=16, layers=["attention+mlp"] * 4, heads=2, hidden=32)
    optimized = mem_opt.optimize(model)
    params, tokens = model.init(jax.random.key(0)), jnp.arange(18).reshape(2, 9)
    np.testing.assert_allclose(optimized.loss(params, tokens), model.loss(params, tokens), rtol=1e-6)
    assert '"checkpoint_every_n_layers":2' in optimized.to_json().replace(" ", "")
    with pytest.raises(TypeError, match="has no layers"):
        mem_opt.optimize(make_model())
    memory_estimate = mem_opt.estimate_memory(model="1.3b", batch_size=128, sequence_length=2048)
    assert f"Estimated HBM: {memory_estimate['total_gb']:.1f}GB".endswith("GB") and memory_estimate["origin"] == "modelled"


def test_block_11_gradient_checkpointing():
    from capibara.core.tpu import enable_gradient_checkpointing

    layers = [jnp.tanh, jnp.sin, jnp.exp, jnp.cos]
    checkpointed = enable_gradient_checkpointing(layers, checkpoint_every_n_layers=2, checkpoint_policy="nothing_saveable")
    assert "remat" in str(jax.make_jaxpr(checkpointed)(1.0))
    whole = jax.grad(lambda x: jnp.cos(jnp.exp(jnp.sin(jnp.tanh(x)))))(0.3)
    np.testing.assert_allclose(jax.grad(checkpointed)(0.3), whole, rtol=1e-6)


def test_block_12_buffer_donation():
    @jax.jit(donate_argnums=(0, 1))
    def train_step(params, state, batch):
        return params - 0.1 * batch, state + 1

    params, state = train_step(jnp.ones(4), jnp.zeros(()), jnp.ones(4))
    np.testing.assert_allclose(params, 0.9 * np.ones(4), rtol=1e-6)
    assert state == 1


def test_block_13_vector_quantization():
    from capibara.core.tpu import TPUv6VQIntegration

    vq_integration = TPUv6VQIntegration(quantization_bits=8, vector_length=4, codebook_size=64, enable_hardware_acceleration=True,
                                        distance_metric="euclidean")
    model, calibration = make_model(), [jax.random.normal(jax.random.key(i), (8, 32)) for i in range(3)]
    quantized = vq_integration.quantize_model(model=model, calibration_data=calibration, target_accuracy_retention=0.5,
                                              num_calibration_batches=100)
    metrics = vq_integration.get_metrics()
    got = np.concatenate([quantized["apply"](quantized["params"], batch) for batch in calibration])
    expected = np.concatenate([model["apply"](model["params"], batch) for batch in calibration])
    assert 1 - np.linalg.norm(got - expected) / np.linalg.norm(expected) >= 0.45 and metrics["accuracy_retention"] >= 0.5
    codes = quantized["params"]["first"]
    assert codes.codes.shape == (64, 8, 1) and str(codes.codes.dtype) == "uint8" and codes.codebook.shape == (1, 1, 64, 4)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(quantized["params"]))
    assert metrics["compression_ratio"] == sum(leaf.nbytes for leaf in model["params"].values()) / size > 1
    assert metrics["inference_speedup"] > 0 and metrics["inference_speedup"].spread[0] <= metrics["inference_speedup"]
    with pytest.warns(UserWarning, match="nothing was quantized"):
        strict = vq_integration.quantize_model(model, calibration, target_accuracy_retention=1.0)
    assert "vectors shorter than 4" in vq_integration.get_metrics()["reason"]
    assert vq_integration.get_metrics()["layers_quantized"] == 0
    assert all(np.array_equal(a, b) for a, b in zip(strict["params"].values(), model["params"].values()))
    with pytest.raises(TPUError, match="measured, not assumed"):
        vq_integration.quantize_model(model)


def _distances(vectors, codes):
    wide, own = vectors.astype("f8"), codes.astype("f8")
    return (wide**2).sum(1)[:, None] - 2 * wide @ own.T + (own**2).sum(1)


def test_block_14_codebooks(tmp_path):
    from capibara.core.tpu.tpu_v6_vq_integration import TPUv6VQIntegration

    # The page's codebook; five of its 1000 passes, which take seconds.
    vq_integration = TPUv6VQIntegration(quantization_bits=8, vector_length=512, codebook_size=1024)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(64, 512)).astype(np.float32) * 10
    train_vectors = np.repeat(centres, 32, 0) + rng.normal(size=(2048, 512)).astype(np.float32) * 0.01
    codebook = vq_integration.train_codebook(training_data=train_vectors, num_iterations=5, batch_size=1024)
    assert codebook.shape == (1024, 512)
    codes = np.asarray(vq_integration.encode(train_vectors))
    found = np.asarray(codebook)[codes]
    distances = _distances(train_vectors, np.asarray(codebook))
    np.testing.assert_allclose(distances[np.arange(2048), codes], distances.min(1), rtol=1e-3, atol=0.5)  # some codes are equally close
    assert np.linalg.norm(found - train_vectors, axis=1).max() < 0.02 * np.linalg.norm(train_vectors, axis=1).min()
    path = str(tmp_path / "codebooks" / "model_vq.pkl")  # the folder is created
    vq_integration.save_codebook(path)
    other = TPUv6VQIntegration(vector_length=512, codebook_size=1024)
    np.testing.assert_array_equal(other.load_codebook(path), codebook)
    (tmp_path / "evil.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(TPUError, match="pickles are not executed"):
        other.load_codebook(str(tmp_path / "evil.pkl"))


def test_block_15_optimal_batch_size():
    from capibara.core.tpu import find_optimal_batch_size

    optimal_bs = find_optimal_batch_size(model="1b", sequence_length=2048, target_utilization=0.90, available_memory_gb=32 * 64)
    # Typically 128 to 256 for v6e-64, says the page; the model of its slice takes more.
    assert optimal_bs == 512 and f"Optimal batch size: {optimal_bs}" == "Optimal batch size: 512 (modelled for v6e:8x8)"


def test_block_17_bottlenecks_of_a_modelled_step():
    from capibara.core.tpu import analyze_bottlenecks

    analysis = analyze_bottlenecks("llama3.1-8b", tpu="v6e-64", sequence_length=2048, batch_size=64)
    shown = f"{analysis['compute_bound']:.1%} {analysis['memory_bound']:.1%} {analysis['communication_bound']:.1%}"
    assert shown.count("%") == 3
    assert all("predicted" in recommendation for recommendation in analysis["recommendations"])


def test_block_19_performance_metrics(config):
    perf_metrics = config.get_performance_metrics()
    assert f"{perf_metrics['total_tflops']:.1f}" == "58752.0"
    assert f"{perf_metrics['memory_bandwidth_gb_s']:.1f}" == "104832.0"
    # 8 x 7 links along each of two dimensions, 90 GB/s in each direction: 8x8 is not a ring.
    assert f"{perf_metrics['interconnect_bandwidth_gb_s']:.1f}" == "20160.0"
    shown = f"{perf_metrics['utilization']:.1%}"
    assert re.fullmatch(r"[2-6]\d\.\d% \(modelled\)", shown), shown  # of the model's choice; published runs reach 30 to 60 %
    assert f"{perf_metrics['throughput_samples_s']:.1f}".endswith(" (modelled)")


def test_block_21_diagnosis():
    from capibara.core.tpu import diagnose_tpu

    diagnosis = diagnose_tpu()
    assert jax.devices() and "no TPU" in diagnosis["summary"]
    subjects = {finding["subject"]: finding["state"] for finding in diagnosis["findings"]}
    assert subjects["PCI"] == "missing" and diagnosis["chips"] == []


def test_block_22_out_of_memory(config):
    config.batch_size_per_chip = 8
    config.gradient_checkpointing = True
    config.memory_optimization = "aggressive"
    config.mesh_shape = (4, 16)
    from capibara.core.tpu import quantize_for_tpu

    model = make_model()
    x = jax.random.normal(jax.random.key(3), (5, 32))
    for bits, tolerance in ((8, 0.02), (4, 0.25)):
        quantized_model = quantize_for_tpu(model["params"], bits=bits)
        got, expected = model["apply"](quantized_model, x), model["apply"](model["params"], x)
        assert np.linalg.norm(got - expected) <= tolerance * np.linalg.norm(expected)
        assert quantized_model["first"].nbytes <= 32 * 64 * bits // 8 + 4 * 64
    with pytest.raises(TPUError, match="4 or 8"):
        quantize_for_tpu(model["params"], bits=3)


def test_block_23_slow_training():
    from capibara.core.tpu import diagnose_performance

    perf_diagnosis = diagnose_performance(model="llama3.1-8b", dataloader=[np.zeros(4)] * 4, target_tflops=1e6)
    assert perf_diagnosis["origin"] == "modelled" and perf_diagnosis["issues"]
    for issue in perf_diagnosis["issues"]:
        assert issue["problem"] and issue["impact"] and issue["solution"]


def test_block_24_debugging(config):
    names = ("jax_debug_nans", "jax_debug_infs", "jax_log_compiles", "jax_disable_jit")
    before = {name: getattr(jax.config, name) for name in names}
    try:
        config.enable_debugging_mode()
        jax.config.update("jax_disable_jit", True)
        assert all(getattr(jax.config, name) for name in names)
        with pytest.raises(FloatingPointError):
            jnp.log(jnp.zeros(())) * 0
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
