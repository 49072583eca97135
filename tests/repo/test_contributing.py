"""CONTRIBUTING.md and the pages keep their word: the files they name exist, every test folder has its row, links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"}


def named_paths(text):
    """What stands between backticks and begins with a folder of the tree; `<...>` stands for any name."""
    for quoted in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        for word in quoted.split():
            if "/" in word and word.split("/")[0] in TOP:
                yield word.rstrip(",.:")


def exists(word):
    # Pages may name a pair of files without their ending: `src/core/processes/key_value_store`.
    pattern = re.sub(r"<[^>]*>", "*", word).rstrip("/")
    return any(ROOT.glob(pattern)) or any(ROOT.glob(pattern + ".*"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    words = sorted(set(named_paths(page.read_text())))
    assert not [word for word in words if not exists(word)]


def test_a_path_that_does_not_exist_is_found():
    assert list(named_paths("see `src/no_such_room/file.cpp`")) == ["src/no_such_room/file.cpp"]
    assert not exists("src/no_such_room/file.cpp")
    assert exists("src/library/table/<module>/<family>.cpp")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        assert target.startswith("https://") or (page.parent / target).exists(), target


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
