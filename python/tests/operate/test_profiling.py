"""capibara.jax.profiling, TPUProfiler and jax.monitoring: consistent shares, advice with a gain, and compilation events."""

import json

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUProfiler
from capibara.jax import monitoring, profiler, profiling


@pytest.fixture(autouse=True)
def fresh():
    profiling.clear()
    yield
    profiling.clear()


def test_profiles_inside_of_profiles_are_spans():
    step = jax.jit(lambda x: x @ x)
    with profiling.profile("outer"):
        with profiling.profile("inner"):
            step(jnp.ones((32, 32))).block_until_ready()
    (name, taken), = profiling.profiles()
    spans = {event["name"]: event for event in taken.events() if event["kind"] == "span"}
    assert name == "outer" and spans.keys() >= {"outer", "inner"}
    assert spans["outer"]["start"] <= spans["inner"]["start"]
    assert spans["inner"]["duration"] <= spans["outer"]["duration"] <= taken.duration


def test_nothing_profiled_is_said(capsys, tmp_path):
    profiling.print_summary()
    assert "nothing has been profiled" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="nothing has been profiled"):
        profiling.export_tensorboard(tmp_path)
    with pytest.raises(RuntimeError, match="no profile has been taken"):
        TPUProfiler(tmp_path).generate_report()
    with pytest.raises(RuntimeError, match="call start before stop"):
        TPUProfiler(tmp_path).stop()
    with pytest.raises(ValueError, match="both off"):
        TPUProfiler(tmp_path, capture_memory=False, capture_compute=False)


def test_shares_of_a_matmul_are_those_of_its_table(tmp_path):
    x = jnp.ones((512, 512))
    product = jax.jit(lambda x: x @ x)
    product(x).block_until_ready()
    taker = TPUProfiler(tmp_path / "profiles")
    taker.start("products")
    with pytest.raises(RuntimeError, match="'products' is being taken"):
        taker.start()
    for _ in range(20):
        product(x).block_until_ready()
    taker.stop()
    analysis = taker.analyze_bottlenecks()
    shares = {name: value for name, value in analysis.items() if name != "recommendations"}
    assert sum(shares.values()) == pytest.approx(1) and min(shares.values()) >= 0
    report = json.loads((tmp_path / "profiles" / "report.json").read_text()) if taker.generate_report() else None
    rows = report["profiles"][0]["rows"]
    expected = sum(row["nanoseconds"] for row in rows if row["bound"] == "compute") / report["profiles"][0]["duration"]
    assert shares["compute_bound"] == pytest.approx(expected, rel=1e-6)
    assert report["bottlenecks"]["recommendations"] == analysis["recommendations"]
    gains = [advice.expected_gain for advice in analysis["recommendations"]]
    assert gains == sorted(gains, reverse=True) and all(f"{gain:.0%}" in advice for gain, advice in zip(gains, analysis["recommendations"]))


def test_a_compilation_has_its_share():
    taker = TPUProfiler("unused")
    with taker.profile():
        jax.jit(lambda x: jnp.sin(x) * 3)(jnp.ones(8)).block_until_ready()
    analysis = taker.analyze_bottlenecks()
    assert analysis["compilation"] > 0
    if analysis["compilation"] >= 0.01:
        assert any("compilations take" in advice for advice in analysis["recommendations"])


def test_what_is_not_captured_is_not_written(tmp_path):
    def planes(memory, compute):
        taker = TPUProfiler(tmp_path / f"{memory}{compute}", capture_memory=memory, capture_compute=compute)
        with taker.profile():
            jax.jit(lambda x: x @ x)(jnp.ones((256, 256))).block_until_ready()
        taker.generate_report()
        path, = (tmp_path / f"{memory}{compute}").glob("plugins/profile/*/*.xplane.pb")
        lines = [(line.name, [event.name for event in line.events])
                 for plane in profiler.ProfileData.from_file(path).planes for line in plane.lines]
        return any("MemoryAllocation" in names for _, names in lines), any(names for name, names in lines if name == "XLA Ops")
    assert planes(True, True) == (True, True)
    assert planes(False, True) == (False, True)
    assert planes(True, False) == (True, False)


def test_monitoring_hears_of_traces_and_compilations_as_in_jax():
    import jax as peer
    import jax.numpy as peer_numpy

    def heard(module, numpy):
        events = []
        module.monitoring.register_event_duration_secs_listener(lambda event, duration, **words: events.append((event, duration, words)))
        spans = []
        module.monitoring.register_event_time_span_listener(lambda event, start, end, **words: spans.append((event, end - start, words)))
        try:
            def hear_me(x):
                return numpy.sin(x) + 1
            function = module.jit(hear_me)
            x = np.ones(5, np.float32)
            function(x)
            function(x)
        finally:
            module.monitoring.clear_event_listeners()
        count = len(events)
        module.jit(lambda x: x + 2)(np.ones(3, np.float32))
        assert len(events) == count
        assert [(event, words) for event, _, words in events] == [(event, words) for event, _, words in spans]
        assert all(duration >= 0 for _, duration, _ in events)
        return [(event, words) for event, _, words in events if "hear_me" in words.get("fun_name", "") and "mlir" not in event]

    assert heard(jax, jnp) == heard(peer, peer_numpy)
    assert len(heard(jax, jnp)) == 2


def test_a_listener_that_fails_does_not_stop_the_compilation(capsys):
    import sys
    said = []
    previous, sys.unraisablehook = sys.unraisablehook, lambda report: said.append(report.exc_type)
    monitoring.register_event_duration_secs_listener(lambda *event, **words: 1 / 0)
    try:
        assert float(jax.jit(lambda x: x * 5)(jnp.float32(2))) == 10
    finally:
        monitoring.clear_event_listeners()
        sys.unraisablehook = previous
    assert ZeroDivisionError in said
