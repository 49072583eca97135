"""The list of jax tests that are left out is well-formed, and tools/check/jax_tests.py counts results correctly."""

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "check" / "jax_tests.py"
sys.path.append(str(SCRIPT.parent))

import jax_tests  # noqa: E402


def test_the_list_names_each_test_once_with_its_reason_and_in_order():
    rows = [line.split("\t") for line in jax_tests.LIST.read_text().splitlines()]
    assert all(len(row) == 3 and all(row) for row in rows)
    assert rows == sorted(rows)
    assert [key for key, count in collections.Counter((row[0], row[1]) for row in rows).items() if count > 1] == []
    known = {file for files in jax_tests.GROUPS.values() for file in files}
    assert {row[0] for row in rows} <= known


def write_results(folder, **outcomes):
    folder.mkdir(exist_ok=True)
    lines = [{"k": "ids", "ids": [f"T::{name}" for name in outcomes]}]
    lines += [{"k": "end", "id": f"T::{name}", "out": out} for name, out in outcomes.items()]
    (folder / "nn_test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_results_are_counted_without_those_left_out(tmp_path):
    write_results(tmp_path, test_a="passed", test_b="passed", test_c="passed", test_d="failed", test_e="failed", test_f="skipped")
    found = jax_tests.outcomes([tmp_path])
    lines, _ = jax_tests.table(found, {("nn_test", "T::test_e"): "private"})
    assert lines[2] == "| numbers | 6 | 3 | 1 | 0 | 1 | 1 | 75.0 |"


def test_later_folders_replace_what_earlier_ones_say(tmp_path):
    write_results(tmp_path / "first", test_a="failed", test_b="crash")
    write_results(tmp_path / "second", test_a="passed")
    found = jax_tests.outcomes([tmp_path / "first", tmp_path / "second"])
    assert found == {("nn_test", "T::test_a"): "passed", ("nn_test", "T::test_b"): "crash"}


def test_what_is_left_out_and_passes_is_an_error(tmp_path):
    left_out = next(iter(jax_tests.left_out()))
    (tmp_path / f"{left_out[0]}.jsonl").write_text(json.dumps({"k": "end", "id": left_out[1], "out": "passed"}) + "\n")
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"left out, but passes: {' '.join(left_out)}" in done.stdout


@pytest.mark.parametrize("omitted, wrong", [(1, []), (2, ["numbers: 2 tests are left out, more than 8% of 20"])])
def test_a_group_may_leave_out_few(omitted, wrong):
    found = {("nn_test", f"T::test_{number}"): "failed" for number in range(20)}
    assert jax_tests.table(found, dict.fromkeys(list(found)[:omitted], "private"))[1] == wrong
