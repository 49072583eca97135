"""Names of primitives in the code exist in the catalog, and there are neither lists of names nor comparisons with them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Words that are also names of primitives: operations of the loop language, functions of numpy and lax, exports of a module.
OTHER_WORDS = {"src/backends/cpu/loops/loops.cpp", "src/backends/cpu/llvm/function_emitter_operations.cpp",
               "src/library/random/random_continuous.cpp",
               "python/capibara/jax/numpy/_ufuncs.py", "python/capibara/jax/lax/_control.py", "python/capibara/jax/lax/__init__.py",
               "python/capibara/jax/lax/linalg.py", "python/capibara/jax/tpu_v4/neuromorphic_kernels.py"}
# Tables with one Python rule for each primitive.
TABLES = {"python/capibara/jax/experimental/_check_rules.py", "python/capibara/jax/experimental/roofline/rooflines.py",
          "python/capibara/jax/experimental/sparse/_rules.py"}
NAME = r'"([a-z][a-z0-9_-]*)"'
USES = [r"\bprimitive\(" + NAME, r"CAPIBARA_HANDLE\(\w+, " + NAME, r"\bprimitive\.name [!=]= " + NAME, r"\bcall<" + NAME,
        r"formula<\d>\(" + NAME]
# Comparisons with a primitive's name; handles of src/program/ir/handles.h and traits replace them.
COMPARISONS = [r'\.is\("', r"primitive(?:\(\))?\.name\(\) *[!=]=", r"& name = [\w.>-]*primitive\.name\(\);",
               r"(?:count|contains)\([\w.]*primitive\.name\(\)\)", r"primitive\.name\(\)\.starts_with"]
LIST = re.compile(r"[{(\[]([^{}()\[\]]*)[})\]]")


def catalog():
    """The names from docs/primitives.md, which is made from the catalog."""
    rows = (ROOT / "docs" / "primitives.md").read_text().splitlines()
    return {row.split("`")[1] for row in rows if row.startswith("| `")}


def sources():
    for folder in ("src", "python/src", "python/capibara"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".py") and str(path.relative_to(ROOT)) not in OTHER_WORDS:
                yield path


def lists(text, known):
    """Positions of lists of at least three words, more than two thirds of which are primitives."""
    for match in LIST.finditer(text):
        words = re.findall(r'"([A-Za-z][\w-]*)"', match[1])
        words += [word for phrase in re.findall(r'"([a-z][\w -]* [\w -]*)"', match[1]) for word in phrase.split()]
        if len(words) >= 3 and 3 * sum(word in known for word in words) > 2 * len(words):
            yield match.start(), words


def place(path, text, position):
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, position) + 1}"


@pytest.mark.parametrize("use", USES)
def test_names_that_are_looked_up_are_in_the_catalog(use):
    known, wrong = catalog() | {"check", "assert_consumed_value"}, []  # the two are primitives of Python modules
    for path in sources():
        text = path.read_text()
        wrong += [f"{place(path, text, match.start())}: {match[1]}" for match in re.finditer(use, text) if match[1] not in known]
    assert not wrong


def found_lists():
    known = catalog()
    for path in sources():
        text = path.read_text()
        for position, words in lists(text, known):
            yield path, place(path, text, position), [word for word in words if word not in known]


def test_facts_about_primitives_are_traits_and_no_lists_of_names():
    assert [where for path, where, _ in found_lists() if str(path.relative_to(ROOT)) not in TABLES] == []


def test_tables_of_rules_name_primitives_of_the_catalog():
    assert [(where, unknown) for _, where, unknown in found_lists() if set(unknown) - {"check"}] == []


def test_primitives_are_compared_by_handle():
    wrong = []
    for folder in ("src", "python/src", "tools/capibara"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                text = path.read_text()
                wrong += [place(path, text, match.start()) for one in COMPARISONS for match in re.finditer(one, text)]
    assert wrong == []


def test_every_handle_is_used():
    handles = re.findall(r"CAPIBARA_HANDLE\((\w+), \"", (ROOT / "src" / "program" / "ir" / "handles.h").read_text())
    text = "".join(path.read_text() for folder in ("src", "python/src", "tools") for path in (ROOT / folder).rglob("*.cpp"))
    text += "".join(path.read_text() for path in (ROOT / "src").rglob("*.h"))
    assert [one for one in handles if f"prim::{one}()" not in text] == []
