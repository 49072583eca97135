"""Training runs that are stopped, killed, extended, monitored, whose disk is full, whose text or files have changed."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from operating import FEW_SAVES, TEXT, content, losses, number_in, run, start, steps_of, wait_for_step

BUILD = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[3] / "build" / "release"))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "apples.txt").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = run("train", text, "--folder", folder, *FEW_SAVES)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=["TERM", "HUP", "INT"])
def test_signals_save_and_are_the_exit_code(number, finished, text, tmp_path):
    folder = tmp_path / "stopped"
    command = ["train", text, "--folder", folder, *FEW_SAVES, "--steps", "20000", "--checkpoint-every", "1000000"]
    process = start(*command)
    wait_for_step(process)
    process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait() == 128 + number, rest
    step = int(number_in(r"stopped \(.*\) after step (\d+) and saved", rest))
    assert len(losses(folder)) == step and steps_of(folder)[0] == 0
    again = start(*command)
    first = next(line for line in again.stdout if "continues after" in line)
    assert f"continues after step {step}" in first
    again.kill()
    again.communicate()


def test_a_training_that_went_well_exits_with_0(text, tmp_path):
    short = run("train", text, "--folder", tmp_path / "short", *FEW_SAVES, "--steps", "3")
    assert short.returncode == 0 and "margin -" in short.stdout, short  # even if the model is bad
    unmeasured = run("train", text, "--folder", tmp_path / "none", *FEW_SAVES, "--steps", "3", "--held-out", "0")
    assert unmeasured.returncode == 0 and "held-out text: not measured" in unmeasured.stdout, unmeasured


def test_a_finished_run_is_extended(finished, text, copied):
    longer = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "80")
    assert longer.returncode == 0, longer
    assert "continues after step 60" in longer.stdout and "extended from 60 to 80 steps: the learning rate follows" in longer.stdout
    assert losses(copied)[:60] == losses(finished) and len(losses(copied)) == 80
    again = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "80")
    assert again.returncode == 0 and "continues after step 80" in again.stdout and "extended" not in again.stdout
    shorter = run("train", text, "--folder", copied, *FEW_SAVES)
    assert shorter.returncode == 1 and "steps is 80 there and 60 now" in shorter.stderr
    other = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "90", "--width", "32")
    assert other.returncode == 1 and "width is 16 there and 32 now" in other.stderr


# ---- the source text of the tokens -----------------------------------------------------------------------------------

CHANGES = {
    "shorter": lambda folder: (folder / "apples.txt").write_text(TEXT[:-500]),
    "other letters": lambda folder: (folder / "apples.txt").write_text(TEXT.replace("fox", "cat")),
    "one more file": lambda folder: (folder / "pears.txt").write_text("And pears."),
    "split": lambda folder: [(folder / name).write_text(part) for name, part in (("apples.txt", TEXT[:99]), ("b.txt", TEXT[99:]))],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_text_is_noticed(change, tmp_path):
    texts, folder = tmp_path / "texts", tmp_path / "run"
    texts.mkdir()
    (texts / "apples.txt").write_text(TEXT)
    assert run("train", texts, "--folder", folder, *FEW_SAVES, "--steps", "4").returncode == 0
    change(texts)
    before = content(folder)
    for steps in ("4", "8"):
        done = run("train", texts, "--folder", folder, *FEW_SAVES, "--steps", steps)
        assert done.returncode == 1 and f"the text {texts} has changed" in done.stderr and "name another folder" in done.stderr, done
    before.pop("run.lock"), (after := content(folder)).pop("run.lock")
    assert after == before
    assert run("sample", folder, "--tokens", "3").returncode == 0
    (texts / "apples.txt").write_text(TEXT)
    for added in ("pears.txt", "b.txt"):
        (texts / added).unlink(missing_ok=True)
    assert run("train", texts, "--folder", folder, *FEW_SAVES, "--steps", "4").returncode == 0


def test_a_text_that_is_gone_is_a_warning(tmp_path):
    text, folder = tmp_path / "text.txt", tmp_path / "run"
    text.write_text(TEXT)
    assert run("train", text, "--folder", folder, *FEW_SAVES, "--steps", "4").returncode == 0
    text.unlink()
    done = run("train", text, "--folder", folder, *FEW_SAVES, "--steps", "6")
    assert done.returncode == 0 and f"the text {text} cannot be compared" in done.stderr, done
    assert len(losses(folder)) == 6


# ---- damage ----------------------------------------------------------------------------------------------------------

def flip(path, dice):
    written = bytearray(path.read_bytes())
    written[dice.randrange(len(written))] ^= 1 << dice.randrange(8)
    path.write_bytes(written)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.txt", "tokens.bin", "manifest.json", "losses.txt", "loss.svg"])
def test_a_flipped_bit_is_named_with_its_file(name, text, copied):
    dice, whole = random.Random(name), content(copied)[name]
    for _ in range(8):
        flip(copied / name, dice)
        train = run("train", text, "--folder", copied, *FEW_SAVES)
        assert f"{name} is damaged" in train.stderr, train
        assert (train.returncode == 1) == (name != "loss.svg"), train  # which is redrawn
        (copied / name).write_bytes(whole)
    flip(copied / name, dice)
    sample = run("sample", copied, "--tokens", "2")
    assert f"{name} is damaged" in sample.stderr, sample
    assert (sample.returncode == 1) == (name not in ("losses.txt", "loss.svg")), sample  # which it does not read


def test_a_file_that_is_cut_or_missing_is_named(text, copied):
    for name in ("tokens.bin", "tokenizer.txt", "config.json"):
        whole = (copied / name).read_bytes()
        (copied / name).write_bytes(whole[:-1])
        assert f"{name} is damaged" in run("train", text, "--folder", copied, *FEW_SAVES).stderr
        (copied / name).write_bytes(whole)
    (copied / "tokens.bin").rename(copied.parent / "tokens.bin")
    assert "tokens.bin is missing" in run("sample", copied).stderr
    (copied.parent / "tokens.bin").rename(copied / "tokens.bin")
    (copied / "losses.txt").unlink()
    done = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "62")
    assert done.returncode == 0 and "losses.txt is missing" in done.stderr, done
    assert losses(copied)[:60] == ["nan"] * 60 and "nan" not in losses(copied)[60:]
    again = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "64")
    assert again.returncode == 0 and len(losses(copied)) == 64 and losses(copied)[60:62].count("nan") == 0


def test_flips_in_checkpoints_lose_no_step_silently(finished, text, tmp_path):
    dice = random.Random(3)
    newest = finished / "checkpoints" / "60"
    files = sorted(path.relative_to(newest) for path in newest.rglob("*") if path.is_file())
    for chosen in dice.sample(files, min(6, len(files))):
        copy = shutil.copytree(finished, tmp_path / str(chosen).replace("/", "_"))
        (copy / "checkpoints" / "60" / chosen).write_bytes((newest / chosen).read_bytes())  # breaks the link shared with step 40
        flip(copy / "checkpoints" / "60" / chosen, dice)
        done = run("train", text, "--folder", copy, *FEW_SAVES)
        assert done.returncode == 0 and "continues after step 40" in done.stdout, (chosen, done)
        assert "60" in done.stderr, (chosen, done.stderr)
        assert losses(copy) == losses(finished)


def test_a_run_of_an_older_version_goes_on_and_is_protected_from_then(finished, text, copied):
    (copied / "manifest.json").unlink()
    (copied / "run.lock").unlink()
    done = run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "64")
    assert done.returncode == 0 and "a run of an older version, without checksums" in done.stderr, done
    assert losses(copied)[:60] == losses(finished)
    flip(copied / "tokens.bin", random.Random(1))
    assert "tokens.bin is damaged" in run("train", text, "--folder", copied, *FEW_SAVES, "--steps", "64").stderr


# ---- the machine -----------------------------------------------------------------------------------------------------

def mount(folder, kilobytes, *flags):
    options = ",".join(["size=%dk" % kilobytes, *flags])
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True).returncode == 0


def test_a_full_disk_is_said_and_loses_nothing(finished, text, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    small = sum(path.stat().st_size for path in (finished / "checkpoints" / "60").rglob("*")) // 1024
    if not mount(disk, 2 * small + 300):
        pytest.skip("no small file system can be mounted here: that needs root")
    command = ["train", text, "--folder", disk / "run", *FEW_SAVES, "--keep", "40", "--checkpoint-every", "2"]
    try:
        full = run(*command)
        assert full.returncode == 1 and "No space left on device" in full.stderr, full
        assert "--keep" in full.stderr or "the same command continues" in full.stderr, full.stderr
        code, verified = steps_of(disk / "run")
        assert code == 0, verified
        left = [name for name in content(disk) if ".partial" in name or "tmp-" in name]
        assert not left, left
        assert mount(disk, 64 * 1024, "remount"), "the disk cannot be made larger"
        done = run(*command)
        assert done.returncode == 0 and "continues after step" in done.stdout, done
        assert losses(disk / "run") == losses(finished)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@pytest.mark.skipif(not (BUILD / "lib" / "libcapibara_http.so").exists(), reason="the monitor's server is not built")
def test_a_training_feeds_the_monitor(text, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start("train", text, "--folder", tmp_path / "run", *FEW_SAVES, "--steps", "20000", "--checkpoint-every", "1000000",
                    env={**os.environ, "CAPIBARA_MONITOR": str(port)})
    try:
        wait_for_step(process)
        page, end = "", time.monotonic() + 60
        while time.monotonic() < end and "capibara_steps_per_second" not in page:
            time.sleep(0.1)
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        steps, tokens = number_in(r"\ncapibara_steps_total (\S+)", page), number_in(r"\ncapibara_tokens_total (\S+)", page)
        assert steps > 0 and abs(tokens - 32 * steps) <= 32, page  # there may be a step between the two readings
        assert 0 < number_in(r"\ncapibara_loss (\S+)", page) < 6
        assert number_in(r"\ncapibara_tokens_per_second (\S+)", page) > 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_log_is_never_silent_for_long(text, tmp_path):
    # With a line every 5 % of the steps the first would come after many minutes.
    process = start("train", text, "--folder", tmp_path / "run", *FEW_SAVES, "--steps", "900000000", "--checkpoint-every", "1000000")
    try:
        assert wait_for_step(process) and wait_for_step(process)
    finally:
        process.kill()
        process.communicate()


def test_help_says_what_each_option_is_for():
    for name in ("train", "demo", "sample", "chat"):
        lines = run("help", name).stdout.splitlines()
        rows = [line.split(maxsplit=2) for line in lines if line.startswith("  --")]
        assert len(rows) >= 5 and all(len(row) == 3 for row in rows), lines
        for option in ("--folder", "--keep", "--learning-rate") if name == "train" else ():
            row = next(line for line in lines if line.split()[:1] == [option])
            assert row.endswith(")"), row  # with its default
