"""TPUMonitor: metrics, alerts, the log, the server, and capibara top."""

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUMonitor

BUILD = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[3] / "build" / "release"))
COMMAND = os.environ.get("CAPIBARA_COMMAND") or str(BUILD / "capibara")


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def get(monitor, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}{path}", timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.fixture
def serving():
    with TPUMonitor(0.05, enable_prometheus=True, prometheus_port=0) as monitor:
        yield monitor


def test_metrics_count_what_happens():
    step = jax.jit(lambda x: x @ x)
    x = jnp.ones((64, 64))
    with TPUMonitor(update_frequency_seconds=1000) as monitor:
        before = monitor.get_current_metrics()
        assert not {"loss", "steps", "steps_per_second", "tokens", "tokens_per_second"} & set(before)  # before any step
        for i in range(5):
            monitor.step(loss=step(x)[0, 0] + i, tokens=128)
        until(lambda: monitor.get_current_metrics().get("loss") == 68)
        after = monitor.get_current_metrics()
    assert after["steps"] == 5 and after["tokens"] == 640
    assert after["executions"] - before["executions"] >= 5
    assert after["compilations"] > before["compilations"] and after["compile_seconds"] > before["compile_seconds"]
    assert {"utilization", "memory_usage_gb", "current_tflops"} <= set(after)
    assert after["resident_gb"] > 0.01 and after["steps_per_second"] > 0


def test_flops_are_those_of_the_program():
    step = jax.jit(lambda x: x @ x)
    x = jnp.ones((128, 128))
    step(x)
    with TPUMonitor(1000) as monitor:
        for _ in range(10):
            step(x)
        metrics = monitor.get_current_metrics()
    assert metrics["current_tflops"] * 1e12 * metrics["uptime_seconds"] == pytest.approx(10 * 2 * 128**3, rel=0.3)


def test_operations_outside_of_jit_count_once():
    from capibara import _core

    def counted(work):
        before = _core.executed_flops()
        work()
        after = _core.executed_flops()
        return {name: flops - before.get(name, 0) for name, flops in after.items() if flops > before.get(name, 0)}

    x, half, wide = jnp.ones((32, 48)), jnp.ones((16, 16), jnp.bfloat16), np.ones((4, 4))
    assert counted(lambda: x @ x.T) == {"float32": 2 * 32 * 32 * 48}
    assert counted(lambda: x + x) == {"float32": 32 * 48}
    assert counted(lambda: half @ half) == {"bfloat16": 2 * 16**3}
    with jax.enable_x64():
        assert counted(lambda: jnp.asarray(wide) @ jnp.asarray(wide)) == {"float64": 2 * 4**3}
    assert counted(lambda: jnp.transpose(x).block_until_ready()) == {}
    square = lambda a: a @ a
    y = jnp.ones((32, 32))
    once = counted(lambda: jax.jit(square)(y))
    assert once == counted(lambda: square(y)) == {"float32": 2 * 32**3}
    # Parts of a counted operation are counted in it: a loop of five matmuls, and a rule that calls a jitted function.
    looped = counted(lambda: jax.lax.scan(lambda c, _: (c @ y, None), y, None, length=5))
    assert looped == {"float32": 5 * 2 * 32**3}
    ruled = jax.custom_jvp(lambda a: jax.jit(square)(a))
    ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0]))
    assert counted(lambda: ruled(y)) == {"float32": 2 * 32**3}


def test_utilization_is_absent_until_something_was_counted(tmp_path):
    program = """
import json, sys
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUMonitor
with TPUMonitor(1000, log_file=sys.argv[1]) as monitor:
    before = monitor.get_current_metrics()
    try:
        before["utilization"]
    except KeyError as error:
        print(error)
    x = jnp.ones((64, 64))
    (x @ x).block_until_ready()
    after = monitor.get_current_metrics()
print("utilization" in before, "current_tflops" in before, after["utilization"] > 0, after["current_tflops"] > 0)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "log")], capture_output=True, text=True, timeout=120)
    absent = "'utilization: absent, nothing was counted yet, or a type that the device multiplies at no known rate'"
    assert done.stdout.splitlines() == [absent, "False False True True"], done.stderr
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["utilization"] > 0


def test_peaks_are_by_type_and_measured_once():
    from capibara import _core
    peaks = {name: _core.peak_flops(name) for name in ("float32", "float64", "bfloat16", "int8")}
    assert all(peak > 1e6 for peak in peaks.values())
    assert peaks == {name: _core.peak_flops(name) for name in peaks}
    assert peaks["float32"] == _core.machine_peaks()[0] and _core.peak_flops("complex128") == peaks["float64"]
    with pytest.raises(ValueError, match="no element type 'half'"):
        _core.peak_flops("half")


def test_use_of_the_device_is_none_where_nothing_was_counted(tmp_path):
    from capibara.core.tpu import TPUConfig
    config, x = TPUConfig(), jnp.ones((128, 128))
    assert config.profile_tpu_usage(trace_dir=str(tmp_path / "1"))["device_utilization"] is None
    assert config.profile_tpu_usage(lambda: jnp.transpose(x), trace_dir=str(tmp_path / "2"))["device_utilization"] is None
    assert config.profile_tpu_usage(lambda: x @ x, trace_dir=str(tmp_path / "3"))["device_utilization"] > 0  # outside jit, too


def test_alerts_call_once_and_name_wrong_metrics():
    called = []
    with TPUMonitor(0.01) as monitor:
        monitor.set_alert(metric="steps", condition=">=", threshold=3, action=lambda: called.append("steps"))
        monitor.set_alert("steps", ">", 3, lambda: called.append("later"), for_seconds=1000)
        monitor.set_alert("resident_gb", ">", 0, lambda: 1 / 0)
        time.sleep(0.05)
        assert "steps" not in called
        for _ in range(5):
            monitor.step()
        until(lambda: called == ["steps"])
        assert "steps >= 3" in monitor.raised_alerts
        time.sleep(0.05)
    assert called == ["steps"]
    with pytest.raises(ValueError, match="there is no metric 'utilisation' .argument 'metric'.; did you mean 'utilization'"):
        monitor.set_alert("utilisation", "<", 0.7, print)
    with pytest.raises(ValueError, match="a condition is <, <=, >, >=, == or !=, got '=>'"):
        monitor.set_alert("utilization", "=>", 0.7, print)
    with pytest.raises(TypeError, match="action is a function without arguments, got 'print'"):
        monitor.set_alert("utilization", "<", 0.7, "print")


def test_a_loss_is_never_waited_for():
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 300_000_000, lambda i, c: c + x * i, x))
    value = slow(1.0)
    with TPUMonitor(1000) as monitor:
        monitor.step(loss=value)
        assert "loss" not in monitor.get_current_metrics() or value.is_ready()


def test_the_log_has_a_line_per_sample(tmp_path):
    log = tmp_path / "log.jsonl"
    with TPUMonitor(0.02, log_file=log) as monitor:
        monitor.step(tokens=7)
        until(lambda: log.exists() and len(log.read_text().splitlines()) >= 3)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[-1]["tokens"] == 7 and all(line.get("steps") in (None, 1) for line in lines)


def test_the_server_answers(serving):
    serving.step(tokens=5)
    kind, text = get(serving, "/metrics")
    assert kind.startswith("text/plain; version=0.0.4")
    assert "# TYPE capibara_tokens_total counter\ncapibara_tokens_total 5\n" in text
    answer = json.loads(get(serving, "/metrics.json")[1])
    assert {row["name"]: row["value"] for row in answer["metrics"]}["tokens"] == 5
    kind, page = get(serving, "/")
    assert kind.startswith("text/html") and "//" not in page.replace("// ", "").split("<script>")[0].replace("</", "")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(serving, "/../etc/passwd")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{serving.port}/metrics", data=b"x", method="POST"), timeout=10)
    with pytest.raises(RuntimeError, match=f"cannot listen on 127.0.0.1:{serving.port} .*choose another port"):
        TPUMonitor(1, enable_prometheus=True, prometheus_port=serving.port).start()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_say(serving):
    serving.step(loss=jnp.float32(2), tokens=5)
    done = subprocess.run(["promtool", "check", "metrics"], input=get(serving, "/metrics")[1], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not Path(COMMAND).exists(), reason="the command line is not built")
def test_top_shows_them(serving):
    serving.step(tokens=12345)
    done = subprocess.run([COMMAND, "top", str(serving.port), "--once"], capture_output=True, text=True)
    assert done.returncode == 0 and "tokens                        12345   Tokens\n" in done.stdout
    done = subprocess.run([COMMAND, "top", "1", "--once"], capture_output=True, text=True)
    assert done.returncode == 1 and "nothing listens on 127.0.0.1:1" in done.stderr


def test_the_environment_monitors_any_program(serving):
    script = textwrap.dedent("""
        import urllib.request, os
        import capibara.jax as jax
        jax.jit(lambda x: x + 1)(1.0)
        print(urllib.request.urlopen(f"http://127.0.0.1:{os.environ['CAPIBARA_MONITOR']}/metrics", timeout=10).read().decode())
    """)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "CAPIBARA_MONITOR": str(port)})
    assert "capibara_compilations_total" in done.stdout, done.stderr
    program = "import capibara.jax as jax; print(jax.jit(lambda x: x + 1)(1.0))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "CAPIBARA_MONITOR": "x"})
    assert done.stdout == "2.0\n" and "CAPIBARA_MONITOR is a port from 0 to 65535, got 'x'" in done.stderr


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="expected a number from .*update_frequency_seconds.*got 0"):
        TPUMonitor(0)
    with pytest.raises(ValueError, match="expected a whole number from 0 to 65535 .argument 'prometheus_port'., got 70000"):
        TPUMonitor(1, True, 70000)
    monitor = TPUMonitor(10)
    with pytest.raises(ValueError, match="expected a number of 0 or more .argument 'tokens'., got -1"):
        monitor.step(tokens=-1)
    with pytest.raises(RuntimeError, match="the log /nowhere/log cannot be opened"):
        TPUMonitor(10, log_file="/nowhere/log").start()


def test_names_without_tpu_are_the_same_classes():
    import capibara.operate as operate
    from capibara.core import tpu
    from capibara.operate import Checkpointer, Monitor, Profiler
    assert (Checkpointer, Monitor, Profiler) == (tpu.TPUCheckpointer, tpu.TPUMonitor, tpu.TPUProfiler)
    assert {"Checkpointer", "Monitor", "Profiler"} <= set(dir(operate))
    with pytest.raises(AttributeError, match="no attribute 'Trainer'; it has Checkpointer, Monitor, Profiler"):
        operate.Trainer
