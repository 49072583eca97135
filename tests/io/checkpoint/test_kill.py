"""A training run killed at any moment: the next start finds the newest committed step intact."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["CAPIBARA_BUILD"]) / "tests" / "checkpoint_program"
KILLS = int(os.environ.get("CAPIBARA_KILLS", "12"))


def killed_once(folder, keep, mode, seconds):
    """Trains until it is killed; returns the newest step that it reported as committed."""
    with subprocess.Popen([PROGRAM, "train", folder, str(keep), mode], stdout=subprocess.PIPE, text=True) as training:
        first = training.stdout.readline()  # it is running
        time.sleep(seconds)
        training.kill()
        lines = [first, *training.stdout.read().split("\n")]
    return max((int(line) for line in lines if line.strip()), default=0)


@pytest.mark.parametrize("keep, mode", [(0, "sync"), (2, "sync"), (1, "async")])
def test_the_newest_committed_step_survives(tmp_path, keep, mode):
    draw = random.Random(keep)
    committed = 0
    for _ in range(KILLS):
        committed = max(committed, killed_once(tmp_path, keep, mode, draw.uniform(0, 0.15)))
        found = subprocess.run([PROGRAM, "check", tmp_path], capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr
        assert int(found.stdout) >= committed
        committed = int(found.stdout)
        if keep == 0:  # otherwise the disk fills up
            for step in sorted(int(path.name) for path in tmp_path.iterdir() if path.name.isdigit())[:-1]:
                shutil.rmtree(tmp_path / str(step))
    # Leftovers of killed runs are removed when the next one saves.
    killed_once(tmp_path, keep, mode, 0.2)
    leftovers = [path.name for path in tmp_path.iterdir() if not path.name.isdigit()]
    assert len(leftovers) <= 2, leftovers  # from the last run


@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="strace is not installed")
def test_nothing_is_renamed_before_it_is_synced(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "steps"
    traced = ["strace", "-f", "-y", "-e", "trace=openat,fsync,rename,renameat2", "-o", log]
    training = subprocess.Popen([*traced, PROGRAM, "train", folder, "2", "sync"], stdout=subprocess.PIPE, text=True)
    for _ in range(4):
        training.stdout.readline()
    training.stdout.close()  # printing its next line kills it
    training.wait()
    written, synced, renames = set(), set(), 0
    for line in log.read_text().splitlines():
        if "O_CREAT" in line and ".orbax-checkpoint-tmp-" in line and " = " in line:
            written.add(line.split('"')[1])
        elif "fsync(" in line and line.rstrip().endswith("= 0"):
            synced.add(line.split("<")[1].split(">")[0])
        elif "renameat2(" in line and line.rstrip().endswith("= 0"):
            renames += 1
            assert written and written <= synced, written - synced
            temporary = line.split('"')[1]
            assert temporary in synced
            written.clear()
    assert renames >= 3
