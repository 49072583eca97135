"""Tests of the recipes of packages: version, wheels' files, manual page, completions; the command line inside of the Python extension."""

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))
sys.path.insert(0, str(ROOT / "tools" / "packages"))

import archives  # noqa: E402
import wheels  # noqa: E402

def test_the_version_stands_in_cmake_alone():
    assert re.fullmatch(r"\d+\.\d+\.\d+", wheels.version())
    project = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in project and not re.search(r'^version = "', project, re.M)
    pattern = re.search(r"regex = '(.*)'", project)[1]
    assert re.search(pattern, (ROOT / "CMakeLists.txt").read_text())["value"] == wheels.version()


def test_a_wheel_lists_its_files_with_their_hashes(tmp_path):
    files = {"capibara/__init__.py": (b"x = 1\n", 0o644), "capibara/_core.so": (b"\x7fELF", 0o755),
             "capibara-9.9.9.dist-info/METADATA": (b"Metadata-Version: 2.4\nName: capibara\nVersion: 9.9.9\n", 0o644)}
    wheel = wheels.write_wheel(tmp_path / "capibara-9.9.9-py3-none-any.whl", files)
    with zipfile.ZipFile(wheel) as archive:
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read("capibara-9.9.9.dist-info/RECORD").decode()))}
        assert set(rows) == set(archive.namelist()) == {*files, "capibara-9.9.9.dist-info/RECORD"}
        for name, (content, mode) in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert rows[name] == [f"sha256={digest}", str(len(content))]
            assert archive.getinfo(name).external_attr >> 16 & 0o777 == mode
    assert wheels.read_wheel(wheel) == files


def test_the_plugin_leaves_the_wheel_with_its_entry_point():
    info = "capibara-9.9.9.dist-info"
    points = b"[console_scripts]\ncapibara = capibara._command:main\n\n[jax_plugins]\ncapibara = jax_plugins.capibara\n"
    files = {f"{info}/entry_points.txt": (points, 0o644), f"{info}/licenses/libstdc++.txt": (b"", 0o644),
             "capibara/libcapibara_pjrt.so": (b"pjrt", 0o755), "capibara/libcapibara_cpu.so": (b"cpu", 0o755),
             "jax_plugins/capibara/__init__.py": (b"", 0o644)}
    own, plugin = wheels.without_plugin(files, info), wheels.plugin_files(files, info, "py3-none-linux_x86_64")
    assert own[f"{info}/entry_points.txt"][0] == b"[console_scripts]\ncapibara = capibara._command:main\n"
    moved = {"capibara/libcapibara_pjrt.so", "jax_plugins/capibara/__init__.py"}
    assert moved.isdisjoint(own) and moved <= set(plugin) and "capibara/libcapibara_cpu.so" in set(own) - set(plugin)
    metadata = plugin[f"capibara_jax_plugin-{wheels.version()}.dist-info/METADATA"][0].decode()
    assert f"Requires-Dist: capibara=={wheels.version()}\n" in metadata


def inside_python(*words):
    code = "import sys; from capibara import _command; sys.argv = ['capibara', *sys.argv[1:]]; sys.exit(_command.main())"
    return subprocess.run([sys.executable, "-c", code, *words], text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": str(BUILD / "python")})


@pytest.mark.skipif(not (BUILD / "python" / "capibara" / "_command.py").exists(), reason="the Python extension is not built")
def test_the_command_line_runs_inside_of_the_extension():
    assert inside_python("--version").stdout.split() == ["capibara", wheels.version()]
    wrong = inside_python("dance")
    assert wrong.returncode == 2 and "unknown command 'dance'" in wrong.stderr
