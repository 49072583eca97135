"""The commands of the page on objects in C programs, as written there, and the output of the C programs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "objects"
PAGE = (ROOT / "docs" / "lessons-objects.md").read_text()
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))


def commands(title):
    """The commands of a section: its indented lines."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^    ((?:python|capibara|cc|\./).*)$", section, re.MULTILINE)


def run(folder, title, **replaced):
    """Runs the commands in a separate folder; returns the output of the last one."""
    (folder / "bin").mkdir()
    for name, target in (("python", sys.executable), ("capibara", shutil.which(COMMAND) or COMMAND)):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{os.path.abspath(target)}" "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "EXAMPLES": str(EXAMPLES)}
    lines = commands(title)
    assert len(lines) == 4
    for line in lines:
        for old, new in replaced.items():
            line = line.replace(old, new)
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def length_of(name):
    return len((EXAMPLES / name).read_text().splitlines())


def test_the_controller_balances_the_pole(tmp_path):
    printed = run(tmp_path, "A controller")
    found = re.search(r"after 6 s: cart ([-+.\d]+) m, pole ([-+.\d]+) rad", printed)
    assert abs(float(found[1])) < 0.1 and abs(float(found[2])) < 0.02
    assert "0.0 s: cart +0.001 m, pole +0.299 rad, force +7.53 N" in printed


def test_the_surrogate_gives_the_temperatures_of_the_formula(tmp_path):
    printed = run(tmp_path, "A surrogate in a numerical code")
    assert float(re.search(r"largest difference: ([.\d]+)", printed)[1]) < 0.02
    assert float(re.search(r"cell +0: ([.\d]+)", printed)[1]) == 2.5


def test_the_language_model_writes_what_jax_writes(tmp_path):
    printed = run(tmp_path, "The decode step of a language model", **{"prejudice.txt 400": "prejudice.txt 60"})
    import jax
    from jax import export
    step = jax.jit(export.deserialize(bytearray((tmp_path / "language_model.exported").read_bytes())).call)
    cache, written, prompt = [[np.zeros((64, 4, 16), np.float32)] * 2] * 2, [], b"It is a truth "
    following = 0
    for place in range(64):
        letter = prompt[place] if place < len(prompt) else int(following)
        written.append(letter)
        following, cache = step(cache, np.int32(letter), np.int32(place))
    assert printed.encode() == bytes(written) + b"\n"


@pytest.mark.parametrize("name", ["controller.c", "surrogate.c", "language_model.c"])
def test_the_c_programs_are_short(name):
    assert length_of(name) <= 66
