"""capibara train, sample and chat: training on text from the command line, killed at any moment and resumed exactly."""

import os
import random
import signal
import subprocess
import time

import pytest
from operating import COMMAND, SMALL, TEXT, losses, run


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "apples.txt").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = run("train", str(text), "--folder", str(folder), *SMALL)
    assert done.returncode == 0 and "bits per byte" in done.stdout, done.stdout + done.stderr
    return folder, done.stdout


def test_train_writes_what_it_names(finished):
    folder, output = finished
    assert "step 60/60" in output and "a bigram model of bytes" in output
    assert len(losses(folder)) == 60 and float(losses(folder)[-1]) < float(losses(folder)[0])
    assert (folder / "loss.svg").read_text().startswith("<svg")
    assert str(folder / "loss.svg") in output and str(folder / "checkpoints") in output


def test_killed_many_times_it_ends_with_the_same_losses(finished, text, tmp_path):
    folder = tmp_path / "killed"
    dice = random.Random(0)
    planned = max(5, 20 // int(os.environ.get("CAPIBARA_SHARE", 1)))
    command = [COMMAND, "train", str(text), "--folder", str(folder), *SMALL]
    kills = 0
    for _ in range(60):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        # The first line of a step proves progress; then the kill comes at any point of steps, losses and checkpoints.
        started = next((line for line in process.stdout if line.startswith("  step")), None)
        if started is None:
            process.wait()
            break
        if kills < planned:
            time.sleep(dice.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.stdout.read()
        process.wait()
        if process.returncode != -signal.SIGKILL:
            break
    assert process.returncode == 0, "the last start comes to the end"
    assert kills >= planned // 2
    assert losses(folder) == losses(finished[0])


def test_ctrl_c_saves_and_the_same_command_goes_on(finished, text, tmp_path):
    folder = tmp_path / "stopped"
    command = [COMMAND, "train", str(text), "--folder", str(folder), *SMALL, "--checkpoint-every", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    next(line for line in process.stdout if line.startswith("  step"))
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait() in (130, 0), rest
    if process.returncode == 130:
        assert "the same command continues from there" in rest
    done = run(*command[1:])
    assert "continues after step" in done.stdout
    assert losses(folder) == losses(finished[0])


def test_sample_and_chat_go_on_from_a_prompt(finished):
    folder = str(finished[0])
    first = run("sample", folder, "--prompt", "The fox", "--tokens", "20", "--seed", "3")
    again = run("sample", folder, "--prompt", "The fox", "--tokens", "20", "--seed", "3")
    assert first.returncode == 0 and first.stdout.startswith("The fox") and len(first.stdout) > 20
    assert first.stdout == again.stdout
    talk = run("chat", folder, "--tokens", "5", input="The goat\n\n")
    assert talk.returncode == 0 and talk.stdout.count("> ") == 2


def test_wrong_settings_do_not_bind_the_next_start(finished, text, tmp_path):
    folder = str(tmp_path / "run")
    wrong = run("train", str(text), "--folder", folder, *SMALL, "--optimizer", "adamv")
    assert wrong.returncode == 1 and "optimizer is one of" in wrong.stderr
    assert "bits per byte" in run("train", str(text), "--folder", folder, *SMALL).stdout  # the corrected command
    assert losses(folder) == losses(finished[0])


def test_errors_say_what_to_do(finished, text, tmp_path):
    missing = run("sample", str(tmp_path / "nothing"))
    assert missing.returncode == 1 and "has no config.json; 'capibara train' makes one" in missing.stderr
    other = run("train", str(text), "--folder", str(finished[0]), *SMALL, "--seed", "5")
    assert other.returncode == 1 and "holds a run with other settings: seed is 0 there and 5 now" in other.stderr
    larger = run("train", str(text), "--folder", str(finished[0]), *SMALL, "--vocabulary", "300")  # the last value counts
    assert larger.returncode == 1 and "other settings: vocabulary is 256 there and 300 now" in larger.stderr
    short = tmp_path / "short.txt"
    short.write_text("too short")
    tiny = run("train", str(short), "--folder", str(tmp_path / "short"), *SMALL)
    assert tiny.returncode == 1 and "shorter than one window" in tiny.stderr
    assert "there is no file or folder" in run("train", str(tmp_path / "absent"), "--folder", str(tmp_path / "absent_run")).stderr
    assert run("train").returncode == 2
    assert "--steps needs a number" in run("train", str(text), "--steps", "many").stderr
