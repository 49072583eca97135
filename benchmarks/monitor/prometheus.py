"""Lets Prometheus scrape a training run for a minute: benchmarks/monitor/prometheus.py [SECONDS], in build/venv with the extension.

Compares its answers with the JSON lines of the monitor, and checks the text with promtool. Debian's `prometheus` and `promtool` must be
on the path, or in the folder PROMETHEUS_FOLDER (`apt-get download prometheus; dpkg-deb -x FILE FOLDER` needs no service).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

BUILD = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[2] / "build" / "release"))
sys.path.insert(0, str(BUILD / "python"))


def program(name):
    folder = os.environ.get("PROMETHEUS_FOLDER")
    found = shutil.which(name, path=f"{folder}/usr/bin:{folder}" if folder else None)
    if not found:
        sys.exit(f"skipped: {name} is not installed")
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    prometheus, promtool = program("prometheus"), program("promtool")
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    from capibara.core.tpu import TPUMonitor
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        monitor = TPUMonitor(1, enable_prometheus=True, prometheus_port=0, log_file=log).start()
        text = urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}/metrics").read()
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
        print("promtool:", (checked.stdout + checked.stderr).decode().strip() or "silent")
        config = Path(folder) / "prometheus.yml"
        config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: capibara, static_configs: "
                          f"[{{targets: ['127.0.0.1:{monitor.port}']}}]}}]\n")
        port = free_port()
        server = subprocess.Popen([prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            step, x = jax.jit(lambda x: x @ x / 64), jnp.ones((64, 64))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                x = step(x)
                monitor.step(loss=x[0, 0], tokens=64)
                time.sleep(0.005)
            monitor.stop()
            lines = [json.loads(line) for line in log.read_text().splitlines()]

            def query(expression):
                address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}"
                result = json.load(urllib.request.urlopen(address))["data"]["result"]
                return float(result[0]["value"][1])

            samples = query(f"count_over_time(capibara_steps_total[{int(seconds) + 30}s])")
            most = query(f"max_over_time(capibara_steps_total[{int(seconds) + 30}s])")
            loss = query(f"last_over_time(capibara_loss[{int(seconds) + 30}s])")
            rates = [line["steps_per_second"] for line in lines[2:-1]]
            rate = query(f"max_over_time(capibara_steps_per_second[{int(seconds) + 30}s])")
            print(f"{samples:.0f} scrapes, {len(lines)} JSON lines; steps {most:.0f} of {lines[-1]['steps']:.0f}; loss {loss} and "
                  f"{lines[-1]['loss']}; steps/s at most {rate:.1f} and {max(rates):.1f}")
            agrees = samples >= seconds * 0.5 and lines[0]["steps"] <= most <= lines[-1]["steps"] and loss == lines[-1]["loss"]
            sys.exit(0 if agrees and not checked.stdout + checked.stderr else "they differ")
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
