"""The public headers have the library table's sentence for each function, and the site's page of them shows it."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("header_sentences", ROOT / "tools" / "check" / "header_sentences.py")
tool = importlib.util.module_from_spec(specification)
sys.modules["header_sentences"] = tool
specification.loader.exec_module(tool)

REMAKE = "run: python3 tools/check/header_sentences.py --write"


def test_every_function_has_its_sentence():
    assert tool.problems(tool.headers(), tool.table()) == [], REMAKE


def test_the_page_shows_every_function_of_the_headers():
    page = tool.page(tool.headers())
    for header in tool.headers():
        section = page.partition(f"\n## {tool.title(header)}\n")[2].partition("\n## ")[0]
        names = {function.name for function in header.functions if not function.name.startswith("operator")}
        assert {name for name in names if f"{name}(" not in section} == set(), header.path


def test_no_function_escapes_the_reader():
    # Counts functions without parsing: lines that begin a declaration with a plain return type.
    paths = [ROOT / "include" / "capibara" / name for name in ("lax.h", "collective.h")]
    text = "\n".join(path.read_text() for path in paths)
    plain = {line.split("(")[0].split()[-1] for line in text.splitlines() if line.startswith(("Array ", "Arrays ", "Shape ", "Padding "))}
    read = {function.name for path in paths for function in tool.read(path).functions}
    assert len(plain) > 170
    assert plain - read == set()


def test_one_header_includes_all():
    public = ROOT / "include" / "capibara"
    reached, waiting = set(), ["capibara/capibara.h"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += re.findall(r"#include <(capibara/[^>]*)>", (public.parent / name).read_text())
    assert {f"capibara/{path.name}" for path in public.glob("*.h")} - reached == set()


@pytest.fixture
def header(tmp_path, monkeypatch):
    """Parses this text as a header."""
    def write(text):
        path = tmp_path / "include" / "capibara" / "some.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        monkeypatch.setattr(tool, "ROOT", tmp_path)
        monkeypatch.setattr(tool, "INCLUDE", path.parent)
        return path
    return write


DECLARATIONS = """// Some functions.
#pragma once
namespace capibara::jax::numpy {
// ---- a part of the file ----
Array first(const Array& x, const Options& options = {});
// The old sentence.
Array second(const Array& x);
Array second(const Array& x, int64_t n);  // an overload
template <class T>
  requires std::integral<T>
Array third(T x) {
  return first(x);
}
struct Options {
  int64_t axis = 0;
  int64_t get() const { return axis; }
};
using Function = std::function<Array(const Array&)>;
inline constexpr int limit = std::max(1, 2);
namespace detail {
Array hidden(const Array& x);
}
}  // namespace capibara::jax::numpy
"""
SENTENCES = {("capibara::jax::numpy", "first"): "What first does.", ("capibara::jax::numpy", "second"): "What second does."}


def test_missing_and_differing_sentences_are_found(header):
    header(DECLARATIONS)
    found = tool.problems(tool.headers(), SENTENCES)
    assert [line.split(": ")[1] for line in found] == ["first", "second", "third"]
    assert "has no sentence" in found[2]


def test_writing_puts_the_table_s_sentence_first_and_is_idempotent(header):
    path = header(DECLARATIONS)
    tool.write_sentences(tool.headers(), SENTENCES, {})
    once = path.read_text()
    assert "----\n// What first does.\nArray first(" in once
    assert "// What second does.\n// The old sentence.\nArray second(" in once
    tool.write_sentences(tool.headers(), SENTENCES, {})
    assert path.read_text() == once
    assert [line.split(": ")[1] for line in tool.problems(tool.headers(), SENTENCES)] == ["third"]


def test_a_changed_sentence_takes_the_place_of_the_old_one(header):
    path = header(DECLARATIONS.replace("// The old sentence.", "// The old sentence. More."))
    tool.write_sentences(tool.headers(), SENTENCES, {("capibara::jax::numpy", "second"): "The old sentence."})
    assert "// What second does. More.\nArray second(" in path.read_text()


def test_the_page_lists_overloads_and_options(header):
    header(DECLARATIONS)
    text = tool.page(tool.headers())
    assert "`Array second(const Array& x)`<br>`Array second(const Array& x, int64_t n)`" in text
    assert "int64_t axis = 0;" in text
    assert "hidden" not in text
