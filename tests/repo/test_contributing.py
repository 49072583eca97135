"""CONTRIBUTING.md is complete: every test folder has its row."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_test_folder_has_its_row():
    rows = set(re.findall(r"^\| `(tests/[^`]+|python/tests)` \|", CONTRIBUTING, re.MULTILINE))
    tests = ROOT / "tests"
    top = [path for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"]
    mirrored = [path for path in top if (ROOT / "src" / path.name).is_dir()]  # rooms: a row for each of their folders
    folders = {f"tests/{path.name}" for path in top if any(one.is_file() for one in path.iterdir())}
    folders |= {str(folder.relative_to(ROOT)) for path in mirrored for folder in path.iterdir()
                if folder.is_dir() and any(one.match("test_*.py") or one.match("*_test.cpp") for one in folder.iterdir())}
    assert folders - rows == set()
    assert {row for row in rows if not (ROOT / row).is_dir()} - {"tests/<room>"} == set()
