"""The blocks of seeds 000, 001 and 003 about profiling, each as a test."""

from typing import Any, Dict

import capibara.jax as jax
import capibara.jax.numpy as jnp
import pytest
from capibara.jax import profiling


@pytest.fixture(autouse=True)
def fresh():
    profiling.clear()
    yield
    profiling.clear()


def readable(path):
    """The planes of a file, as read by the peer."""
    import jax as peer
    return {plane.name for plane in peer.profiler.ProfileData.from_file(str(path)).planes}


# --- 000, Profiling ----------------------------------------------------------------------------------------------------


def test_000_profiling(tmp_path, capsys):
    inputs = jnp.ones((512, 512))  # large enough to run in the background
    expensive_computation = jax.jit(lambda x: jnp.tanh(x @ x))

    from capibara.jax import profiling

    # Profiling de operaciones
    with profiling.profile("my_operation"):
        result = expensive_computation(inputs)

    # Ver resultados
    profiling.print_summary()

    # Export a TensorBoard
    paths = profiling.export_tensorboard(str(tmp_path / "logs/profile/"))

    assert result.shape == (512, 512)
    assert "my_operation" in capsys.readouterr().out
    (_, summary), = profiling.summaries()
    assert sum(row["calls"] for row in summary["rows"]) > 0 and summary["rows"][0]["nanoseconds"] > 0
    path, = tmp_path.glob("logs/profile/plugins/profile/*/*.xplane.pb")
    assert paths == [str(path)] and "/host:CPU" in readable(path)


# --- 001, Profiling and Bottleneck Analysis ----------------------------------------------------------------------------


def test_001_profiler_and_bottlenecks(tmp_path, capsys):
    params, batch = {"w": jnp.ones((512, 512))}, jnp.ones((256, 512))  # large enough to run in the background
    train_step = jax.jit(lambda params, batch: jnp.mean(jnp.tanh(batch @ params["w"])))  # not called before: as on the page

    from capibara.core.tpu import TPUProfiler

    # Profiler TPU
    profiler = TPUProfiler(
        output_dir=str(tmp_path / "profiles/"),
        capture_memory=True,
        capture_compute=True
    )

    # Profile training step
    with profiler.profile("train_step"):
        loss = train_step(params, batch)

    # Generar reporte
    profiler.generate_report()
    # Ver en TensorBoard: tensorboard --logdir profiles/

    # Analizar bottlenecks
    analysis = profiler.analyze_bottlenecks()

    print(f"Compute bound: {analysis['compute_bound']:.1%}")
    print(f"Memory bound: {analysis['memory_bound']:.1%}")
    print(f"Communication bound: {analysis['communication_bound']:.1%}")

    # Recomendaciones
    for recommendation in analysis['recommendations']:
        print(f"- {recommendation}")

    assert loss.shape == ()
    report = (tmp_path / "profiles/report.txt").read_text()
    assert any("dot_general" in line and "test_seed_profiling.py" in line for line in report.splitlines()) and "compiling: " in report
    assert analysis["compilation"] > 0 and analysis["compute_bound"] + analysis["memory_bound"] + analysis["overhead_bound"] > 0
    path, = tmp_path.glob("profiles/plugins/profile/*/*.xplane.pb")
    assert "/device:TPU:0" in readable(path)
    shares = [value for value in analysis.values() if isinstance(value, float)]
    assert sum(shares) == pytest.approx(1) and min(shares) >= 0
    assert "Communication bound: 0.0%" in capsys.readouterr().out
    assert all(0 < advice.expected_gain <= 1 for advice in analysis["recommendations"])


# --- 003, Profiling ----------------------------------------------------------------------------------------------------


def test_003_profile_tpu_usage(tmp_path):
    x = jnp.ones((256, 256))
    x.block_until_ready()

    def profile_tpu_usage(self) -> Dict[str, Any]:
        with jax.profiler.trace(str(tmp_path / "tpu_trace")):
            memory_stats = jax.device_memory_allocated()
            memory_peak = jax.device_memory_peak()
            device_count = len(jax.devices())  # the page requests 'tpu', and there is none here
            device_utilization = jax.device_get(jax.device_count())

            return {
                'memory_allocated': memory_stats,
                'memory_peak': memory_peak,
                'device_count': device_count,
                'device_utilization': device_utilization
            }

    written = profile_tpu_usage(None)
    assert written["memory_allocated"] >= x.nbytes and written["memory_peak"] >= written["memory_allocated"]
    assert len(list(tmp_path.glob("tpu_trace/plugins/profile/*/*.xplane.pb"))) == 1

    from capibara.config.tpu_config import TPUConfig
    measured = TPUConfig(num_chips=32, topology='4x8').profile_tpu_usage(jax.jit(lambda x: x @ x), x, trace_dir=str(tmp_path / "measured"))
    assert measured.keys() == written.keys()
    assert measured["device_count"] == jax.device_count() and 0 < measured["device_utilization"] < 2
    # The page's call passes no function: nothing is counted, and the result is None.
    assert TPUConfig(num_chips=32, topology='4x8').profile_tpu_usage(trace_dir=str(tmp_path / "idle"))["device_utilization"] is None
    assert len(list(tmp_path.glob("measured/plugins/profile/*/*.xplane.pb"))) == 1
