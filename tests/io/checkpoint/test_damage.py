"""Flipped bits, full disks and read-only folders: each is reported, and earlier steps are kept."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ["CAPIBARA_BUILD"])
PROGRAM = BUILD / "tests" / "checkpoint_program"


def test_no_flipped_bit_passes_in_silence():
    pytest.importorskip("orbax.checkpoint", reason="orbax-checkpoint is not installed")
    done = subprocess.run([sys.executable, Path(__file__).with_name("flips.py"), "60"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    ours = [row for row in rows if row[0] == "capibara"]
    assert len(ours) >= 5 and all(row[-1] == "0" for row in ours), done.stdout
    assert ["capibara", "all", "told", "60", "harmless", "0", "silent", "0"] in ours, done.stdout


def run(*words, before=None):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, preexec_fn=before)
    return done.returncode, done.stdout, done.stderr


def test_a_file_that_may_not_grow_is_named_and_the_step_before_stays(tmp_path):
    assert run("save", tmp_path, 1)[0] == 0

    def limit():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    code, _, err = run("save", tmp_path, 2, before=limit)
    assert code == 1 and "checkpoint: writing" in err and "File too large" in err and "params/" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1"]
    assert run("check", tmp_path)[:2] == (0, "1\n")


def test_a_full_disk_is_named_and_the_step_before_stays(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=440k", "capibara", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        assert run("save", disk, 1)[0] == 0
        code, _, err = run("save", disk, 2)
        assert code == 1 and "No space left on device; free space, or save fewer steps" in err
        assert run("check", disk)[:2] == (0, "1\n")
        assert [path.name for path in disk.iterdir()] == ["1"]
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/usr/bin/setpriv").exists(), reason="root writes everywhere, and there is no setpriv")
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    folder = tmp_path / "steps"
    assert run("save", folder, 1)[0] == 0
    folder.chmod(0o555)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    words = [PROGRAM, "save", folder, "2"]
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", *words]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    finally:
        folder.chmod(0o755)
    if "failed to execute" in done.stderr:
        pytest.skip("another user may not start programs of this tree")
    assert done.returncode == 1 and "Permission denied; name a folder that this user may write" in done.stderr
    assert run("check", folder)[:2] == (0, "1\n")
