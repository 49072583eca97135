"""Tests of ./run itself: its verbs, its usage errors, and that it works from any folder."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, folder=ROOT, environment=None, **options):
    return subprocess.run([ROOT / "run", *arguments], cwd=folder, text=True, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})), **options)


def test_help_lists_every_verb():
    text = run("help").stdout
    for verb in ("demo", "test", "golden", "jaxtests", "build", "bench", "sanitize", "fuzz", "emulate", "wheel", "package", "release",
                 "lint", "help"):
        assert re.search(rf"^  {verb}\b", text, re.MULTILINE), verb


def test_no_verb_is_help():
    assert run().stdout == run("help").stdout


def test_works_from_any_folder(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "run")
    assert run("help", folder=tmp_path).returncode == 0
    through_link = subprocess.run([tmp_path / "link", "help"], cwd=tmp_path, text=True, capture_output=True)
    assert through_link.stdout == run("help").stdout


def test_unknown_verb_exits_2_with_a_hint():
    result = run("frobnicate")
    assert result.returncode == 2
    assert "unknown verb 'frobnicate'" in result.stderr
    assert "./run help" in result.stderr


def test_unknown_preset_names_the_presets():
    result = run("build", "nonesuch")
    assert result.returncode == 2
    for preset in ("release", "debug", "minimal", "asan-ubsan", "tsan"):
        assert preset in result.stderr


def test_bad_job_count_is_refused():
    assert run("--jobs", "none", "build").returncode == 2


def test_unknown_sanitizer_is_refused():
    assert run("sanitize", "nonesuch").returncode == 2


def test_golden_needs_a_folder_that_exists(tmp_path):
    assert "takes one folder" in run("golden").stderr
    result = run("golden", str(tmp_path / "none"))
    assert result.returncode == 2 and "no folder" in result.stderr


def test_jaxtests_needs_a_git_directory(tmp_path):
    assert "takes a git directory" in run("jaxtests").stderr
    result = run("jaxtests", str(tmp_path / "none"))
    assert result.returncode == 2 and "no folder" in result.stderr


def test_emulate_refuses_what_is_no_suite():
    result = run("emulate", "array", "nonesuch")
    assert result.returncode != 0
    assert "no suite 'nonesuch'" in result.stderr


def test_unknown_benchmark_is_refused():
    assert run("bench", "nonesuch").returncode == 2


def tools_without(tmp_path, *absent):
    """A folder of links to every program on PATH except the absent ones."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if not Path(place).is_dir():
            continue
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.name not in absent and not link.is_symlink():
                link.symlink_to(program)
    return folder


def test_missing_tool_is_listed_and_not_installed_unasked(tmp_path):
    folder = tools_without(tmp_path, "ninja")
    result = run("build", environment={"PATH": str(folder), "CI": ""})
    assert result.returncode == 2
    assert "ninja-build" in result.stdout
    assert "apt-get install" in result.stderr or "no apt-get here" in result.stderr


def test_without_root_the_exact_command_is_printed(tmp_path):
    folder = tools_without(tmp_path, "ninja", "id")
    (folder / "id").write_text("#!/bin/sh\necho 1000\n")
    (folder / "id").chmod(0o755)
    result = run("build", "--yes", environment={"PATH": str(folder)})
    assert result.returncode == 2
    assert "sudo apt-get install -y --no-install-recommends ninja-build" in result.stderr


def test_list_names_suites():
    names = run("test", "--list").stdout.split()
    for name in ("repo", "examples", "check", "cmake_project", "minimal"):
        assert name in names
