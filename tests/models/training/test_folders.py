"""Folders of training runs: foreign ones are never touched, a failed start leaves nothing, a second run is refused."""

import json
import os
import shutil
import signal

import pytest
from operating import FEW_SAVES, TEXT, content, losses, run, start, wait_for_step


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "apples.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = run("train", text, "--folder", folder, *FEW_SAVES)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


STRANGERS = {
    "a model": {"config.json": '{"model_type": "gpt2", "n_layer": 12}', "model.safetensors": "weights", "thesis.tex": "years"},
    "an extension": {"config.json": "{}", "manifest.json": '{"manifest_version": 3}'},
    "tokens": {"tokens.bin": "not yours", "tokenizer.txt": "nor this"},
    "a lock": {"run.lock": "of another program"},
    "no JSON": {"config.json": "[not json"},
    "notes": {"notes.txt": "mine"},
}


@pytest.mark.parametrize("command", ["train", "demo"])
@pytest.mark.parametrize("files", STRANGERS.values(), ids=STRANGERS)
def test_a_strangers_folder_is_refused_and_left_as_it_was(command, files, text, tmp_path):
    folder = tmp_path / "theirs"
    (folder / "checkpoints" / "2024").mkdir(parents=True)
    (folder / "checkpoints" / "2024" / "photo.jpg").write_bytes(b"\xff\xd8")
    for name, written in files.items():
        (folder / name).write_text(written)
    before = content(folder)
    done = run(command, *([text] if command == "train" else []), "--folder", folder, *FEW_SAVES)
    assert done.returncode == 1 and str(folder) in done.stderr, done
    assert "is not empty and holds no training run" in done.stderr and "--folder" in done.stderr
    assert content(folder) == before


def test_the_working_directory_is_no_folder_to_train_in(text, tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    done = run("demo", "--folder", ".", *FEW_SAVES, cwd=tmp_path)
    assert done.returncode == 1 and "'thesis.tex'" in done.stderr
    assert content(tmp_path) == {"thesis.tex": b"years"}


def test_a_demo_removes_no_run_that_it_has_not_made(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    (folder / "notes.txt").write_text("mine")
    before = content(folder)
    done = run("demo", "--folder", folder, *FEW_SAVES)
    assert done.returncode == 1 and "'capibara demo' has not made ('capibara train' has)" in done.stderr, done
    assert content(folder) == before
    (folder / "manifest.json").unlink()  # a run of an older version
    before = content(folder)
    done = run("demo", "--folder", folder, *FEW_SAVES)
    assert done.returncode == 1 and "has no manifest.json" in done.stderr
    assert content(folder) == before


def test_a_demo_begins_its_own_run_again_but_keeps_other_files(tmp_path):
    folder = tmp_path / "demo"
    few = ["--folder", folder, *FEW_SAVES, "--steps", "3"]
    assert run("demo", *few).returncode == 1  # three steps are worse than a bigram model, which the demo reports
    assert json.loads((folder / "manifest.json").read_text().splitlines()[0])["made_by"] == "demo"
    again = run("demo", *few, "--seed", "5")
    assert "continues after" not in again.stdout and "no better than a bigram model" in again.stderr, again
    assert json.loads((folder / "config.json").read_text())["seed"] == 5
    for place in (folder, folder / "checkpoints"):
        (place / "notes.txt").write_text("mine")
        before = content(folder)
        refused = run("demo", *few, "--seed", "6")
        assert refused.returncode == 1 and str(place / "notes.txt") in refused.stderr, refused
        assert content(folder) == before
        (place / "notes.txt").unlink()


WRONG = {
    "no text": (["absent.txt"], "there is no file or folder"),
    "an empty text": (["empty.txt"], "shorter than one window"),
    "a short text": (["short.txt"], "shorter than one window"),
    "an optimizer": (["good.txt", "--optimizer", "adamv"], "optimizer is one of"),
    "layers": (["good.txt", "--layers", "attention+cake"], "cake"),
    "steps": (["good.txt", "--steps", "0"], "steps must be positive"),
    "heads": (["good.txt", "--heads", "3"], "heads"),
    "a share": (["good.txt", "--held-out", "0.9"], "held_out"),
    "a vocabulary": (["good.txt", "--vocabulary", "12"], "vocabulary"),
}


@pytest.mark.parametrize("words, expected", WRONG.values(), ids=WRONG)
def test_a_failed_start_leaves_nothing(words, expected, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, written in (("empty.txt", ""), ("short.txt", "too short"), ("good.txt", TEXT)):
        (texts / name).write_text(written)
    there = tmp_path / "there"
    there.mkdir()
    for folder in (tmp_path / "new" / "deep" / "run", there):
        done = run("train", texts / words[0], "--folder", folder, *FEW_SAVES, *words[1:])
        assert done.returncode == 1 and expected in done.stderr, done
    assert not (tmp_path / "new").exists() and content(there) == {}


def test_more_text_in_the_same_file_helps_as_the_error_says(tmp_path):
    growing = tmp_path / "growing.txt"
    growing.write_text("")
    command = ["train", growing, "--folder", tmp_path / "run", *FEW_SAVES, "--steps", "2"]
    assert "use more text" in run(*command).stderr
    growing.write_text(TEXT)
    assert run(*command).returncode == 0


def test_the_folder_without_an_option_is_none_that_a_source_tree_has(text, tmp_path):
    (tmp_path / "run").write_text("#!/bin/sh\n")
    done = run("train", text, *FEW_SAVES, "--steps", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "capibara-run" / "config.json").exists()
    refused = run("train", text, "--folder", "run", *FEW_SAVES, cwd=tmp_path)
    assert refused.returncode == 1 and "run is a file, not a folder" in refused.stderr


def test_a_second_training_in_a_folder_is_refused_and_told_of_the_first(finished, text, tmp_path):
    folder = tmp_path / "run"
    command = ["train", text, "--folder", folder, *FEW_SAVES, "--steps", "4000"]
    first = start(*command)
    wait_for_step(first)
    second = run(*command)
    assert second.returncode == 1, second
    assert f"is in use by process {first.pid} on {os.uname().nodename}, since 20" in second.stderr, second.stderr
    assert run("sample", folder, "--tokens", "3").returncode == 0  # reading is allowed
    first.kill()  # the lock is released with the process
    first.stdout.read()
    assert first.wait() == -signal.SIGKILL
    third = start(*command)
    assert wait_for_step(third)
    third.send_signal(signal.SIGTERM)
    third.stdout.read()
    assert third.wait() == 128 + signal.SIGTERM


def test_two_that_start_at_once_in_a_new_folder_leave_one(finished, text, tmp_path):
    folder = tmp_path / "run"
    both = [start("train", text, "--folder", folder, *FEW_SAVES) for _ in range(2)]
    said = [process.communicate(timeout=300)[0] for process in both]
    codes = sorted(process.returncode for process in both)
    if codes == [0, 0]:
        assert any("continues after step 60" in text for text in said)  # the second started after the first had finished
    else:
        assert codes == [0, 1] and any("is in use by process" in text for text in said), said
    assert losses(folder) == losses(finished)
