"""Every name of a primitive that the code spells out is a name of the catalog."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Words that are also names of primitives: operations of the loop language, functions of numpy and lax.
OTHER_WORDS = {"src/backends/cpu/loops.cpp", "src/backends/cpu/llvm/operations.cpp", "python/capibara/jax/numpy/_ufuncs.py",
               "python/capibara/jax/lax/_control.py", "python/capibara/jax/lax/__init__.py"}
NAME = r'"([a-z][a-z0-9_-]*)"'
USES = [r"\.is\(" + NAME, r"\bprimitive\(" + NAME, r"\bprimitive\.name [!=]= " + NAME]
LIST = re.compile(r"[{(\[]([^{}()\[\]]*)[})\]]")


def catalog():
    """The names, as docs/primitives.md has them, which is made from the catalog."""
    rows = (ROOT / "docs" / "primitives.md").read_text().splitlines()
    return {row.split("`")[1] for row in rows if row.startswith("| `")}


def sources():
    for folder in ("src", "python/src", "python/capibara"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".py") and str(path.relative_to(ROOT)) not in OTHER_WORDS:
                yield path


def lists(text, known):
    """Where lists of at least three words stand, more than two thirds of which are primitives."""
    for match in LIST.finditer(text):
        words = re.findall(r'"([A-Za-z][\w-]*)"', match[1])
        words += [word for phrase in re.findall(r'"([a-z][\w -]* [\w -]*)"', match[1]) for word in phrase.split()]
        if len(words) >= 3 and 3 * sum(word in known for word in words) > 2 * len(words):
            yield match.start(), words


def place(path, text, position):
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, position) + 1}"


@pytest.mark.parametrize("use", USES)
def test_names_that_are_compared_or_looked_up_are_in_the_catalog(use):
    known, wrong = catalog() | {"check", "assert_consumed_value"}, []  # the two are primitives of Python modules
    for path in sources():
        text = path.read_text()
        wrong += [f"{place(path, text, match.start())}: {match[1]}" for match in re.finditer(use, text) if match[1] not in known]
    assert not wrong


def test_lists_of_names_are_in_the_catalog():
    known, wrong = catalog(), []
    for path in sources():
        text = path.read_text()
        for position, words in lists(text, known):
            wrong += [f"{place(path, text, position)}: {word}" for word in words if word not in known]
    assert not wrong
