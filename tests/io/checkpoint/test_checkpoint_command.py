"""capibara checkpoint: list, show, verify, diff, convert."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ["CAPIBARA_BUILD"])
PROGRAM, COMMAND = BUILD / "tests" / "checkpoint_program", os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara")


def command(*words):
    done = subprocess.run([COMMAND, "checkpoint", *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """A folder with steps 1 to 3."""
    folder = tmp_path_factory.mktemp("steps")
    with subprocess.Popen([PROGRAM, "train", folder, "0", "sync"], stdout=subprocess.PIPE, text=True) as training:
        while training.stdout.readline() != "3\n":
            pass
        training.kill()
    for path in folder.iterdir():
        if path.name not in "123":
            shutil.rmtree(path)
    return folder


def test_list_and_show(steps):
    code, out, _ = command("list", steps)
    assert code == 0 and [line.split()[:3] for line in out.splitlines()] == [[str(step), "3", "arrays"] for step in (1, 2, 3)]
    code, out, _ = command("show", steps, "--step", 2)
    assert code == 0 and out.splitlines()[0] == "step 2: 3 arrays, 273 KiB"
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["params.frozen", "float32[20000]"], ["params.moving", "float32[50000]"],
                                                                     ["params.step", "int32[1]"]]


def test_verify_names_what_is_damaged(steps, tmp_path):
    copy = shutil.copytree(steps, tmp_path / "copy")
    assert command("verify", copy)[:2] == (0, "".join(f"step {step}: 3 arrays are whole\n" for step in (1, 2, 3)))
    data = copy / "2" / "params" / "moving" / "c.0"
    data.write_bytes(data.read_bytes()[:-1])
    code, out, _ = command("verify", copy)
    assert code == 1 and "step 2: DAMAGED: checkpoint: array params.moving, file " in out and out.count("whole") == 2


def test_diff(steps):
    code, out, _ = command("diff", steps / "1", steps / "3")
    assert code == 1
    assert out.splitlines() == ["~ params.moving float32[50000], largest difference 2", "~ params.step int32[1], largest difference 2",
                                "1 arrays are equal, 2 differ"]
    assert command("diff", steps / "1", steps / "1")[:2] == (0, "3 arrays are equal, 0 differ\n")


def test_convert_copies_a_step_under_another_number(steps, tmp_path):
    code, out, _ = command("convert", steps / "2", tmp_path / "other", "--step", 7)
    assert (code, out) == (0, f"saved step 7 in {tmp_path / 'other'}\n")
    assert command("diff", steps / "2", tmp_path / "other" / "7")[0] == 0


def test_convert_to_safetensors_and_back(steps, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    file = tmp_path / "step.safetensors"
    assert command("convert", steps, file, "--step", 2)[:2] == (0, f"saved 3 arrays in {file}\n")
    arrays = safetensors.load_file(file)
    assert sorted(arrays) == ["params.frozen", "params.moving", "params.step"]
    assert arrays["params.step"].tolist() == [2] and (arrays["params.moving"][:3] == [2, 2.5, 3]).all()
    safetensors.save_file({"w.a": arrays["params.moving"], "b": arrays["params.step"]}, file)
    assert command("convert", file, tmp_path / "back", "--step", 4)[0] == 0
    assert [line.split()[:2] for line in command("show", tmp_path / "back")[1].splitlines()[1:]] == [["params.b", "int32[1]"],
                                                                                                  ["params.w.a", "float32[50000]"]]


def test_wrong_words_are_named(tmp_path):
    assert command("burn", tmp_path)[0] == 2
    code, _, err = command("list", tmp_path / "nowhere")
    assert code == 1 and "no step is saved in" in err
    code, _, err = command("show", tmp_path, "--step", "x")
    assert code == 2 and "--step needs a number, got 'x'" in err
