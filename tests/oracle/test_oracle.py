"""Tests of the oracle itself: scripts reproduce their recordings, the judge finds mistakes, jax's texts are readable."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import expected  # noqa: E402
import judge  # noqa: E402
import texts  # noqa: E402
from expected import recordings  # noqa: E402

pytest.importorskip("jax")

MODULE = """
func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def start(script, *arguments):
    return subprocess.run([sys.executable, HERE / script, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["rules", "residuals"])
def test_the_script_writes_the_same_file_again(name, tmp_path):
    output = tmp_path / "again"
    done = start(f"make_{name}.py", output)
    assert done.returncode == 0, done.stderr
    assert output.read_text() == recordings.read(f"{name}.expected")


@pytest.mark.remake
@pytest.mark.parametrize("script, name", [
    ("core/array/make_format_cases.py", "format_cases.tsv"),
    ("core/array/make_small_float_cases.py", "small_float_cases.tsv"),
    ("library/make_indexing_cases.py", "indexing_cases.txt"),
    ("lax/make_linalg_programs.py", "linalg_programs.txt"),
])
def test_the_script_of_a_room_writes_the_same_cases_again(script, name, tmp_path):
    output = tmp_path / "again"
    done = start(HERE.parent / script, output)
    assert done.returncode == 0, done.stderr
    assert output.read_text() == recordings.read(name)


@pytest.mark.slow
@pytest.mark.remake
def test_the_script_writes_the_same_cases_of_mathematics_again(tmp_path):
    # Between machines, last bits differ in one case of a hundred, and so do signs of NaN.
    pytest.importorskip("mpmath", reason="mpmath, which knows the true results, is not installed")
    output = tmp_path / "again"
    done = start(HERE.parent / "lax" / "make_math_cases.py", output)
    assert done.returncode == 0, done.stderr
    nan = re.compile(r"\b(?:[7f]f[89a-f][0-9a-f]{5}|[7f]ff[89a-f][0-9a-f]{12})\b")
    again, kept = (nan.sub("nan", text).splitlines() for text in (output.read_text(), recordings.read("math_cases.txt")))
    assert len(again) == len(kept) and [line for line in again if "=" not in line] == [line for line in kept if "=" not in line]
    assert sum(new != old for new, old in zip(again, kept)) < 0.03 * len(kept)


def test_every_recording_is_packed_as_its_script_packs_it(tmp_path):
    for name in recordings.names():
        again = tmp_path / recordings.path(name).name
        files = recordings.members(name)
        recordings.pack(again, files)
        assert recordings.members(again) == files
        assert all(file.split("/")[0] == name for file in files)
        with tarfile.open(recordings.path(name)) as archive:
            assert all((entry.mtime, entry.uid, entry.uname) == (0, 0, "") for entry in archive)


def test_only_folders_with_files_are_packed(tmp_path):
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "empty").mkdir()
    for name, problem in (("file.txt", "expected a folder"), ("none", "expected a folder"), ("empty", "there are none")):
        with pytest.raises(SystemExit, match=problem):
            recordings.main(["--pack", str(tmp_path / name)])
        assert not list(tmp_path.glob("*.tar.xz"))
    (tmp_path / "empty" / "file").write_bytes(b"some")
    recordings.main(["--pack", str(tmp_path / "empty")])
    assert recordings.members(tmp_path / "empty.tar.xz") == {"empty/file": b"some"}


@pytest.mark.remake
def test_the_script_writes_the_same_tables_of_promotion_again(tmp_path):
    done = start("make_promotion.py", tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("promotion_x32.tsv", "promotion_x64.tsv"):
        assert (tmp_path / name).read_text() == recordings.read(name)


@pytest.mark.remake
def test_jax_writes_the_same_calls_of_cudnn_again(tmp_path):
    maker = HERE.parent / "backends" / "pjrt" / "make_cudnn_texts.py"
    subprocess.run([sys.executable, maker, tmp_path / "cudnn"], check=True, env=dict(os.environ, JAX_PLATFORMS="cpu"))
    kept = recordings.texts("cudnn")
    assert len(kept) == 6 and {path.name: path.read_text() for path in (tmp_path / "cudnn").iterdir()} == kept


@pytest.mark.slow
@pytest.mark.remake  # minutes of jax: ./run test oracle
@pytest.mark.parametrize("name", ["random", "transforms", "optimizers"])
def test_the_script_writes_the_same_records_again(name, tmp_path):
    # Byte for byte on one machine; between machines only jaxlib's last bits may differ.
    output = tmp_path / "again"
    done = start(f"make_{name}.py", output)
    assert done.returncode == 0, done.stderr
    again, kept = (list(expected.read(path)) for path in (output, f"{name}.expected"))
    assert [r.name for r in again] == [r.name for r in kept]
    for new, old in zip(again, kept):
        assert new.fields == old.fields, new.name
        assert new.texts == old.texts, new.name
        assert [key for key, _ in new.arrays] == [key for key, _ in old.arrays], new.name
        if "flips" not in new.fields:
            for (_, got), (_, want) in zip(new.arrays, old.arrays):
                assert judge.difference(got, want, "close 1e-3 1e-4") is None, new.name


def write_case(folder, output):
    folder.mkdir(exist_ok=True)
    (folder / "twice.mlir").write_text(MODULE)
    (folder / "twice.arrays").write_text(
        f"record twice\narray input float32[3] strong 0000803f0000004000004040\n"
        f"array output float32[3] strong {output}\nend\n")


def test_the_judge_accepts_right_values_and_refuses_wrong_ones(tmp_path):
    write_case(tmp_path / "right", "00000040000080400000c040")
    write_case(tmp_path / "wrong", "000000400000804001e0c040")
    assert start("judge.py", tmp_path / "right").returncode == 0
    done = start("judge.py", tmp_path / "right", tmp_path / "wrong", "--share", 1)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert "output 0: 1 of 3 elements differ, first at [2]" in done.stdout


def test_the_judge_refuses_text_that_does_not_verify(tmp_path):
    (tmp_path / "bad.mlir").write_text(MODULE.replace("%arg0, %arg0 : tensor<3xf32>", "%arg0, %arg0 : tensor<4xf32>"))
    done = start("judge.py", tmp_path)
    assert done.returncode == 1 and "expects different type" in done.stdout


@pytest.fixture(scope="session")
def stablehlo_folder():
    """jax's own texts with inputs and values, written once into the build folder."""
    return texts.folder(Path(os.environ.get("CAPIBARA_BUILD", HERE.parents[1] / "build")))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["mlir", "generic", "located"])
def test_every_text_of_jax_is_judged_right(stablehlo_folder, key):
    done = start("judge.py", stablehlo_folder / "stablehlo.bundle", "--text", key)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[-6]) >= 150
