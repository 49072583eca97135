"""Findings on simulated machines: PCI devices, nodes, holders, locks, metadata."""
import http.server
import os
import threading

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
from capibara.core.tpu import diagnose_tpu  # noqa: E402


def write(root, path, text=""):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def machine(root, chips=4, device="0x0063", nodes=True):
    for number in range(chips):
        folder = f"sys/bus/pci/devices/0000:00:0{number}.0"
        write(root, f"{folder}/vendor", "0x1ae0\n")
        write(root, f"{folder}/device", f"{device}\n")
        if nodes:
            write(root, f"dev/vfio/{number}")
    return root


def findings(root, **options):
    answer = diagnose_tpu(root=str(root), libraries=False, **options)
    return answer, {(row["subject"], row["state"]): row for row in answer["findings"]}


def test_a_machine_without_a_tpu(tmp_path):
    answer, rows = findings(tmp_path)
    assert answer["summary"].startswith("no TPU here") and answer["chips"] == []
    assert ("PCI", "missing") in rows


@pytest.mark.parametrize("device, chip", [("0x005e", "v4"), ("0x0062", "v5p"), ("0x0063", "v5e"), ("0x006f", "v6e"), ("0x0076", "tpu7x")])
def test_generations_by_pci_id(tmp_path, device, chip):
    answer, rows = findings(machine(tmp_path, 2, device))
    assert answer["chips"] == [chip] * 2
    assert rows["device nodes", "ok"]["finding"] == "/dev/vfio/0, /dev/vfio/1"


def test_chips_without_nodes_have_a_remedy(tmp_path):
    _, rows = findings(machine(tmp_path, nodes=False))
    assert "container" in rows["device nodes", "problem"]["remedy"]


def test_the_process_that_holds_a_chip_is_named(tmp_path):
    machine(tmp_path)
    write(tmp_path, "proc/4242/comm", "python3\n")
    (tmp_path / "proc/4242/fd").mkdir()
    os.symlink("/dev/vfio/0", tmp_path / "proc/4242/fd/7")
    write(tmp_path, "tmp/libtpu_lockfile")
    os.symlink("/tmp/libtpu_lockfile", tmp_path / "proc/4242/fd/8")
    answer, rows = findings(tmp_path)
    assert "4242 (python3)" in rows["device nodes", "problem"]["finding"]
    assert "4242 (python3)" in rows["lock", "problem"]["finding"]
    assert "held by process 4242" in answer["summary"]


def test_metadata_is_asked_on_googles_machines_alone(tmp_path):
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Metadata-Flavor"]))
            known = {"accelerator-type": "v5litepod-16", "agent-worker-number": "2"}.get(self.path.rpartition("/")[2])
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write((known or "").encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    try:
        _, rows = findings(machine(tmp_path), metadata=address)
        assert not asked and ("metadata", "note") in rows
        write(tmp_path, "sys/devices/virtual/dmi/id/product_name", "Google Compute Engine\n")
        _, rows = findings(tmp_path, metadata=address)
        assert rows["metadata", "ok"]["finding"] == "v5litepod-16, worker 2"
        assert asked[0] == ("/computeMetadata/v1/instance/attributes/accelerator-type", "Google")
    finally:
        server.shutdown()
    _, rows = findings(tmp_path, metadata=address)  # the server is gone
    assert ("metadata", "note") in rows


def test_flags_in_the_wrong_variable_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_enable_data_parallelism=true")
    monkeypatch.setenv("XLA_FLAGS", "--xla_tpu_enable_megacore_fusion=true")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    answer = diagnose_tpu(root=str(tmp_path), libraries=False)
    texts = " ".join(row["finding"] + row["remedy"] for row in answer["findings"] if row["subject"] == "environment")
    assert "no compiler has it" in texts and "LIBTPU_INIT_ARGS" in texts and "setting of GPUs" in texts
