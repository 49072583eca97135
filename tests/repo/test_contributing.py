"""CONTRIBUTING.md keeps its word: every test folder has its row."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_test_folder_has_its_row():
    rows = set(re.findall(r"^\| `(tests/[^`]+|python/tests)` \|", CONTRIBUTING, re.MULTILINE))
    folders = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    folders |= {f"tests/backends/{path.name}" for path in (ROOT / "tests" / "backends").iterdir() if path.is_dir()}
    assert folders - rows == set()
    assert {row for row in rows if not (ROOT / row).is_dir()} - {"tests/<room>"} == set()
