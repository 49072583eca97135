"""The rooms in docs/how-it-works.md and its picture are those of the tree."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "check"))
import lint  # noqa: E402
import rooms  # noqa: E402

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the tree is no git repository")


def test_the_page_and_the_picture_are_what_the_tree_says():
    assert rooms.problems(lint.Tree()) == [], "run: python3 tools/check/rooms.py --write"


def test_there_are_thirteen_rooms_and_few_edges_between_them():
    found = rooms.rooms(lint.Tree())
    assert len(found) == 13
    assert sum(len(room.includes) for room in found) <= 45


def test_a_new_folder_is_noticed():
    tree = lint.Tree()
    tree.names = sorted([*tree.names, "src/core/attic/box.h"])
    tree._texts["src/core/attic/box.h"] = ""
    assert rooms.problems(tree) == ["docs/rooms.svg is not what the tree says"]


def test_a_new_include_is_noticed():
    tree = lint.Tree()
    name = next(file for file in tree.files(".cpp", under="src/tpu/"))
    tree._texts[name] = tree.text(name) + '#include "library/table/table.h"\n'
    assert rooms.problems(tree) == ["docs/how-it-works.md is not what the tree says", "docs/rooms.svg is not what the tree says"]
