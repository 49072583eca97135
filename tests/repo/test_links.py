"""src/lax links without the library above it: no object file of the library defines a symbol that lax's object files lack."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))


def objects(room):
    """Object files of a room in the build: of single sources, or of a folder's batches."""
    rules = BUILD / "build.ninja"
    listed = re.findall(r"^build (\S+\.o):", rules.read_text(), re.MULTILINE) if rules.exists() else []
    paths = [BUILD / name for name in listed if f"/src/{room}/" in name or f"_src_{room}_" in name]
    return [path for path in paths if path.exists()]


def symbols(paths, kinds):
    listed = subprocess.run(["nm", "-g", "-P", *map(str, paths)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {row[0] for row in rows if len(row) > 1 and row[1] in kinds}


def test_lax_needs_nothing_of_the_library():
    below, above = objects("lax"), objects("library")
    if not below or not above:
        pytest.skip("no object files of both rooms in the build")
    needed = symbols(below, "U") & symbols(above, "TDBR")
    assert sorted(needed) == []
