"""TPUConfig in both of its forms."""
import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
from capibara.config.tpu_config import TPUConfig as ConfigOfConfigurations  # noqa: E402
from capibara.core.tpu import (  # noqa: E402
    MemoryOptimizer, PartitionSpec as P, TPUConfig, TPUError, analyze_bottlenecks, diagnose_performance, enable_gradient_checkpointing,
    enable_xla_optimizations, estimate_step, find_optimal_batch_size, set_xla_flags)
from capibara.jax.tpu_v4.tpu_optimization import setup_tpu_v4  # noqa: E402


def test_both_paths_are_one_class():
    assert ConfigOfConfigurations is TPUConfig


def test_a_logical_mesh_is_told_from_the_slice():
    config = TPUConfig(num_chips=32, topology="4x8", memory_per_chip=32 * 1024**3, flops_per_chip=275e12)
    assert config.validate() == ["32 v4 chips are v4-64 = 2x4x4; the topology 4x8 is taken as the logical mesh"]
    assert config.get_total_tflops() == 8800
    assert TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8").validate() == []


@pytest.mark.parametrize("arguments, says", [
    ({"tpu_version": "v9"}, "there are v2, v3, v4"), ({"num_chips": 5}, "v4-8 = 4 chips"),
    ({"num_chips": 16, "topology": "4x8"}, "has 32 chips"),
    ({"precision": "half"}, "bfloat16, float32, mixed"), ({"memory_optimization": "most"}, "none, normal, aggressive"),
    ({"memory_per_chip": "much"}, "'32GB'"), ({"enable_xla_fusion": 1}, "True or False"), ({"mesh_shape": (3, 3)}, "9 chips")])
def test_wrong_values_name_the_choices(arguments, says):
    with pytest.raises(TPUError, match=says.replace("(", r"\(")):
        TPUConfig(**arguments)


def test_assigned_fields_are_checked_again():
    config = TPUConfig(tpu_version="v6e", num_chips=64)
    config.mesh_shape = (4, 16)
    config.memory_optimization = "aggressive"
    assert config.remat_policy() == "full"
    with pytest.raises(TPUError, match="64"):
        config.mesh_shape = (4, 4)
    with pytest.raises(AttributeError, match="did you mean 'gradient_checkpointing'"):
        config.gradient_checkpoint = True


def test_explicit_figures_win():
    config = TPUConfig(tpu_version="v6e", num_chips=4, memory_per_chip="16GB", flops_per_chip=1e14)
    assert config.get_total_tflops() == 400
    assert config.get_memory_config()["memory_per_chip"] == 16e9
    assert len(config.validate()) == 2


def test_unmeasured_figures_say_so():
    metrics = TPUConfig(tpu_version="v5e", num_chips=16).get_performance_metrics()
    assert metrics["total_tflops"] == 16 * 197 and metrics["memory_bandwidth_gb_s"] == 16 * 819
    assert metrics["measured_utilization"] is None
    assert 0.1 < metrics["utilization"] < 1 and "modelled" in metrics["utilization"].origin
    assert "nothing was run on a TPU" in metrics["throughput_samples_s"].origin


def test_modelled_figures_say_so_where_they_are_printed():
    metrics = TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8").get_performance_metrics()
    shown = f"{metrics['utilization']:.1%} {metrics['throughput_samples_s']:.1f} {metrics['utilization']}"
    assert shown.count("(modelled)") == 3 and shown.startswith(f"{float(metrics['utilization']):.1%} (modelled)")
    assert f"{metrics['total_tflops']:.1f}" == "58752.0"  # from the vendor's table


@pytest.mark.parametrize("chip, count, topology, links", [("v4", 4, "2x2x1", 4), ("v4", 8, "2x2x2", 12), ("v4", 64, "4x4x4", 192),
                                                          ("v6e", 64, "8x8", 112), ("v6e", 256, "16x16", 512), ("v5e", 1, "1x1", 0)])
def test_interconnect_counts_the_links_that_are_wired(chip, count, topology, links):
    metrics = TPUConfig(tpu_version=chip, num_chips=count, topology=topology).get_performance_metrics()
    one_way = {"v4": 45, "v5e": 45, "v6e": 90}[chip]
    assert metrics["interconnect_bandwidth_gb_s"] == pytest.approx(2 * one_way * links)


def test_fields_about_types_act_whenever_they_are_set():
    types = lambda config: (config.compute_dtype, config.param_dtype, config.use_mixed_precision, config.fp32_params)
    assert types(TPUConfig()) == ("bfloat16", "float32", True, True)
    assert types(TPUConfig(precision="bfloat16")) == ("bfloat16", "bfloat16", False, False)
    assert types(TPUConfig(precision="bfloat16", fp32_params=True)) == ("bfloat16", "float32", True, True)
    config = TPUConfig(tpu_version="v6e", num_chips=4)
    whole, kept = config.get_total_tflops(), config.training()["state_bytes"]
    config.fp32_params = False
    assert types(config) == ("bfloat16", "bfloat16", False, False) and config.training()["state_bytes"] == kept - 2
    config.precision = "float32"
    assert types(config) == ("float32", "float32", False, True) and config.get_total_tflops() == pytest.approx(whole / 6)
    metrics = config.get_performance_metrics()
    assert f"{metrics['utilization']:.1%}" == "-" and not metrics["throughput_samples_s"] and "float32" in repr(metrics["utilization"])
    config.precision = "mixed"
    assert types(config) == ("bfloat16", "float32", True, True) and config.get_total_tflops() == whole
    config.use_mixed_precision = False
    assert config.compute_dtype == "float32"
    config.compute_dtype = "int8"
    assert config.get_total_tflops() > whole
    with pytest.raises(TPUError, match="assign those first"):
        TPUConfig(fp32_params=False, use_mixed_precision=True)
    with pytest.raises(TPUError, match="v3 has no units for int8"):
        TPUConfig(tpu_version="v3", compute_dtype="int8")
    assert config.compute_dtype == "int8"
    with pytest.raises(TPUError, match="param_dtype is one of bfloat16, float32, got None"):
        config.param_dtype = None


def test_what_is_refused_changes_nothing():
    config = TPUConfig(num_chips=4)
    before = dict(vars(config))
    for name, value in (("num_chips", 5), ("mesh_shape", (3, 3)), ("precision", "half")):
        with pytest.raises(TPUError):
            setattr(config, name, value)
    assert vars(config) == before


def test_a_mesh_that_does_not_divide_the_heads_is_planned_with_what_does():
    config = TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8")
    config.mesh_shape = (4, 16)
    metrics = config.get_performance_metrics()
    assert 0 < metrics["utilization"] < 1 and "mesh fsdp=32,tensor=2" in metrics["utilization"].origin
    note, = config.validate()
    assert "16 does not divide the heads of the preset 1b" in note and "fsdp=32,tensor=2" in note


def test_sharding_specs_split_what_divides():
    config = TPUConfig(num_chips=32, topology="4x8")
    assert config.get_sharding_spec((8, 16)) == P("data", "model")
    assert config.get_sharding_spec((8, 3, 16)) == P("data", None, "model")
    assert config.get_sharding_spec((7, 16)) == P(None, "model")
    assert config.get_sharding_spec((8,)) == P("data")
    assert config.get_sharding_spec(()) == P()


def test_hotspots_are_above_the_threshold():
    config = TPUConfig(num_chips=32, topology="4x8")
    load = np.zeros((4, 8))
    load[:3, 5] = 0.9
    assert config.detect_hotspots(load) == [(0, 5), (1, 5), (2, 5)]
    assert config.optimize_sharding() == P(("data", "model"), None)
    config.scaling_config.load_threshold = 0.95
    assert config.detect_hotspots(load) == []
    assert config.optimize_sharding(load.T[:4]) == P(None, ("data", "model"))


def test_environment_variables(monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    config = TPUConfig(tpu_version="v6e", num_chips=64, use_collective_matmul=True, enable_async_collective=False)
    done = config.setup_environment_variables()
    assert "--xla_jf_spmd_threshold_for_windowed_einsum_mib=0" in done["LIBTPU_INIT_ARGS"]
    assert "--xla_tpu_enable_async_collective_fusion=false" in done["LIBTPU_INIT_ARGS"]
    assert "GPUs" in done["XLA_PYTHON_CLIENT_ALLOCATOR"]


def test_memory_optimizer_orders_its_strategies():
    totals = [MemoryOptimizer(strategy).estimate_memory("1.3b", 128, 2048, "v4-8")["total_gb"]
              for strategy in ("none", "normal", "aggressive")]
    assert totals == sorted(totals, reverse=True)
    halved = MemoryOptimizer("aggressive", activation_checkpointing_layers=2).estimate_memory("1.3b", 128, 2048, "v4-8")["total_gb"]
    assert halved < totals[2]


def test_checkpointed_layers_compute_the_same_gradient():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    layers = [lambda x, k=k: jnp.tanh(x * k) for k in range(1, 6)]
    plain = jax.grad(lambda x: jnp.sum(layers[4](layers[3](layers[2](layers[1](layers[0](x)))))))
    x = jnp.linspace(0.1, 0.5, 4)
    for policy in ("everything", "nothing_saveable", "minimal", "offload"):
        wrapped = enable_gradient_checkpointing(layers, 2, policy)
        np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(wrapped(x)))(x), plain(x), rtol=1e-6)
    with pytest.raises(ValueError, match="everything, nothing_saveable, minimal, offload"):
        enable_gradient_checkpointing(layers, 2, "all")
    assert MemoryOptimizer("none").optimize(layers) is layers


def test_batches_and_bottlenecks():
    batch = find_optimal_batch_size("1.3b", 2048, available_memory_gb=32 * 64)
    assert batch & (batch - 1) == 0 and batch >= 1
    analysis = analyze_bottlenecks("llama3.1-8b", "v6e-64", 8192, 256)
    assert analysis["compute_bound"] + analysis["memory_bound"] + analysis["communication_bound"] == pytest.approx(1, abs=1e-6)
    assert estimate_step("llama3.1-8b", "v6e-64", 8192, 256)["origin"] == "modelled"
    issues = diagnose_performance("llama3.1-8b", [0] * 3, 1e6, "v6e-64", 8192, 256)["issues"]
    assert [set(issue) for issue in issues] and all({"problem", "impact", "solution"} == set(issue) for issue in issues)
    with pytest.raises(TPUError, match="larger slice"):
        find_optimal_batch_size("llama3.1-405b", 8192, tpu="v5e-4")


def test_a_models_sizes_are_read_off_its_parameters():
    layer = {name: np.zeros((64, 64)) for name in "qkvo"} | {"up": np.zeros((64, 256)), "down": np.zeros((256, 64))}
    parameters = {"embed": np.zeros((1000, 64)), "layers": [layer] * 3}
    plan = MemoryOptimizer("aggressive").estimate_memory(parameters, 8, 128, "v4-8")
    assert plan["fits"] and plan["origin"] == "modelled"
    from capibara.core.tpu._models import describe
    found = describe(parameters)
    assert (found["layers"], found["width"], found["hidden"], found["vocab"], found["inferred"]) == (3, 64, 256, 1000, True)
    with pytest.raises(TypeError, match="preset's name"):
        describe(3)


@pytest.mark.parametrize("flags", [None, 3, "xla_tpu_scoped_vmem_limit_kib=3", ["--xla_tpu_scoped_vmem_limit_kib=3"], {3: "x"}])
def test_flags_that_are_no_dict_are_one_line(flags):
    with pytest.raises(TPUError, match="flags are a dict such as"):
        set_xla_flags(flags)


def test_numbers_that_no_slice_has_are_one_line():
    with pytest.raises(TPUError, match="num_chips is below"):
        TPUConfig(num_chips=10**30)
    for memory in (-1, 0, 0.001, float("nan")):
        with pytest.raises(TPUError, match="available_memory_gb is that of whole chips"):
            find_optimal_batch_size("1.3b", 2048, available_memory_gb=memory)
    with pytest.raises(ValueError, match="level must be from 0 to 3, got 'high'"):
        enable_xla_optimizations(level="high")
    for shape in ("x", (), (-2, -4), (2, 2, 2, 2)):
        with pytest.raises(TPUError, match="mesh_shape is one to three positive integers"):
            setup_tpu_v4(mesh_shape=shape, enable_xla_flags=False)
