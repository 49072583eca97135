"""The benchmark suite itself: its rows, its workers, its evaluation of figures, and the page written from them."""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "benchmarks"))

bench = pytest.importorskip("bench")
import report  # noqa: E402
import suite  # noqa: E402


def a_record(**changes):
    record = {"family": "contractions", "name": "product", "what": "small", "threads": 2, "unit": "s", "least": {}, "failed": {},
              "error": {}, "others": 0.01, "value": {"capibara": 1e-3, "jax": 2e-3, "numpy": 4e-3}, "limit": ["f32", 5e6]}
    record.update(changes)
    return record


def test_rows_have_names_of_their_own_and_inputs():
    rows = suite.all_rows()
    assert len(rows) > 90
    for family, row in rows:
        assert row.what and "," not in row.name, row.name
        assert family in report.TITLES


def test_a_figure_is_judged_by_ratio_limit_and_best_peer():
    record = a_record(least={"jax": 1.5, "numpy": 5, "limit": 0.6, "best": 3, "most": 2e-3})
    bench.judge(record, {"f32": {"2": 1e10}})
    assert record["ratio"] == {"jax": 2.0, "numpy": 4.0}
    assert record["share"] == pytest.approx(0.5)
    assert record["missed"] == ["4.00x numpy, not 5x", "50% of the limit, not 60%", "2.00x the best peer, not 3x"]


def test_differences_are_shares_of_the_largest_value():
    ours, truth = [numpy.array([1.0, 100.0])], [numpy.array([1.5, 100.0])]
    assert bench.difference(ours, truth, False) == pytest.approx(0.005)
    assert bench.difference(ours, truth, True) == 1
    assert bench.difference([numpy.array([numpy.nan])], [numpy.array([1.0])], False) == float("inf")
    assert bench.difference([numpy.zeros(2)], [numpy.zeros(3)], False) == float("inf")


def test_workers_answer_and_a_missing_peer_is_named(monkeypatch):
    pytest.importorskip("jax")
    if not (BUILD / "python" / "capibara").exists():
        pytest.skip("the Python extension was not built")
    options = argparse.Namespace(peers=["jax", "numba"], repeat=1, build=str(BUILD), check=True)
    row = next(row for _, row in suite.all_rows() if row.name == "matmul f32 64 (1 thread)")
    row.numba = lambda numba: None
    real = bench.Process

    def process(library, *rest):
        # numba may be installed here, so a library that cannot exist replaces it.
        return real("no_such_library" if library == "numba" else library, *rest)
    monkeypatch.setattr(bench, "Process", process)
    runner = bench.Bench(options)
    try:
        record = runner.run("contractions", row)
    finally:
        runner.close()
    assert record["value"]["capibara"] > 0 and record["value"]["jax"] > 0
    assert 0 <= record["others"] <= 1
    assert record["error"]["capibara"] < 1e-5
    assert "numba" in runner.missing and "numba" in record["failed"]


def test_the_page_is_written_from_the_figures(tmp_path, monkeypatch):
    record = a_record(least={"numpy": 5})
    bench.judge(record, {"f32": {"2": 1e10}})
    results = {"machine": {"processor": "p", "processors": 2, "memory GiB": 1.0, "system": "s", "load at start": 0.1, "date": "d"},
               "limits": {"f32": {"1": 5e9, "2": 1e10}}, "versions": {"jax": "0.10.2"}, "missing": {}, "rows": [record]}
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(report, "ROOT", tmp_path)
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert report.write(tmp_path / "results.json") == 0
    assert "[p](performance/p.md)" in (tmp_path / "docs" / "performance.md").read_text()
    page = (tmp_path / "docs" / "performance" / "p.md").read_text()
    assert "**product**: small | 2 | 1 ms | 2 ms (2.00x) | 4 ms (4.00x) | 50% of f32" in page
    assert "| product | 4.00x numpy, not 5x |" in page
    drawing = (tmp_path / "docs" / "performance" / "p.svg").read_text()
    assert drawing.startswith("<svg") and "<title>product: 2x jax</title>" in drawing
    kept = (tmp_path / "docs" / "performance" / "p.json").read_text()
    assert json.loads(kept) == results
    assert sum(line.startswith('{"family"') for line in kept.splitlines()) == 1  # one line for each row


@pytest.mark.parametrize("load, others, why", [(1.4, 0.0, "load at the start was 1.40"), (0.1, 0.3, "30% during 'product'"), (0.1, None, "does not say")])
def test_no_page_is_written_from_figures_of_a_loaded_machine(tmp_path, monkeypatch, capsys, load, others, why):
    record = a_record(others=others)
    if others is None:
        del record["others"]
    results = {"machine": {"processor": "p", "processors": 2, "load at start": load}, "rows": [record]}
    monkeypatch.setattr(report, "ROOT", tmp_path)
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert report.write(tmp_path / "results.json") == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


def test_the_backward_rows_of_torch_run_the_forward_pass_once():
    torch = pytest.importorskip("torch")
    from suite.elementwise import torch_gradient
    calls = []

    def square(module):
        return lambda x: calls.append(1) or x * x
    run = torch_gradient(square)(torch)
    x, cotangent = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    for _ in range(3):
        assert run(x, cotangent)[0].tolist() == [2.0, 40.0]
    assert len(calls) == 1
    assert run(x + 1, cotangent)[0].tolist() == [4.0, 60.0]


def test_rows_whose_code_changed_since_are_known(monkeypatch):
    import subprocess

    import changes
    assert set(changes.SOURCES) <= set(report.TITLES)
    assert changes.changed_families(None, report.TITLES) == set()

    def diff(*arguments, **options):
        return subprocess.CompletedProcess(arguments, 0, stdout="src/backends/cpu/kernels/fft/fft_line.cpp\nsrc/tpu/plan.cpp\n")

    monkeypatch.setattr(changes.subprocess, "run", diff)
    assert changes.changed_families("abc", ["fourier", "contractions", "linear_algebra", "transformer"]) == {"fourier", "transformer"}


def test_patterns_of_sources_name_files():
    import fnmatch

    import changes
    files = [str(path.relative_to(changes.ROOT)) for folder in ("src", "python") for path in (changes.ROOT / folder).rglob("*")]
    unknown = [pattern for patterns in changes.SOURCES.values() for pattern in patterns if not fnmatch.filter(files, pattern)]
    assert not unknown
