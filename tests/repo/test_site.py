"""The documentation site: how tools/docs turns pages of the tree into pages of the site, and that its side bar has all of them."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "docs"))

import pages  # noqa: E402
import site_builder  # noqa: E402


def test_neighbouring_blocks_of_two_languages_become_tabs():
    text = "before\n```python\nx = 1\n```\n\n```cpp\nint x = 1;\n```\nafter\n```cpp\nalone();\n```\n"
    made = pages.with_tabs(text)
    parts = ["before", "{tab-item} C++", "int x", "{tab-item} Python", "x = 1\n```", "after"]
    assert [made.index(part) for part in parts] == sorted(made.index(part) for part in parts)
    assert made.endswith("after\n```cpp\nalone();\n```\n")
    assert made.count("{tab-set}") == 1 and made.count("{tab-item}") == 2


@pytest.mark.parametrize("text", [
    "```cpp\na\n```\nbetween\n```python\nb\n```\n",
    "```cpp\na\n```\n```cpp\nb\n```\n",
    "```sh\na\n```\n```python\nb\n```\n",
])
def test_other_blocks_stay_as_they_are(text):
    assert pages.with_tabs(text) == text


KNOWN = {"README.md": "index.md", "docs/cpu.md": "cpu.md", "docs/notes/moves.md": "notes/moves.md", "docs/loss.svg": "loss.svg",
         "docs/cpp.md": "cpp/index.md", "docs/cpp.md#capibarajith": "cpp/jit.md", "examples/04_grad.py": "lessons/04_grad.md"}


@pytest.mark.parametrize("file, link, made", [
    ("README.md", "[CPU](docs/cpu.md#loops)", "[CPU](cpu.md#loops)"),
    ("README.md", "![The loss](docs/loss.svg)", "![The loss](loss.svg)"),
    ("docs/notes/moves.md", "[CPU](../cpu.md)", "[CPU](../cpu.md)"),
    ("docs/cpu.md", "[jit](cpp.md#capibarajith)", "[jit](cpp/jit.md)"),
    ("docs/cpu.md", "[all](cpp.md)", "[all](cpp/index.md)"),
    ("docs/cpu.md", "[a lesson](../examples/04_grad.py)", "[a lesson](lessons/04_grad.md)"),
    ("docs/cpu.md", "[the source](../src/core)", "the source"),
    ("docs/cpu.md", "[src/core](../src/core)", "`src/core`"),
    ("docs/cpu.md", "[here](#loops) and [there](https://example.org/x.md)", "[here](#loops) and [there](https://example.org/x.md)"),
    ("docs/cpu.md", "```cpp\na[i](docs/cpu.md);\n```\n", "```cpp\na[i](docs/cpu.md);\n```\n"),
])
def test_links_go_to_pages_of_the_site(file, link, made):
    assert pages.with_links(link, file, KNOWN) == made


def test_a_long_page_is_split_by_its_sections():
    head, sections = pages.parts("# Long\n\nAbout it.\n\n- [one.h](#oneh)\n\n## one.h\n\n### f\ntext\n\n## two.h\nmore\n")
    assert head == "# Long\n\nAbout it.\n"
    assert sections == {"one.h": "\n## f\ntext\n\n", "two.h": "more\n"}
    assert pages.page_name("capibara/nn/softmax.h") == "nn_softmax" and pages.page_name("scipy.stats") == "scipy.stats"


def test_a_page_of_the_library_ends_with_its_examples():
    made = site_builder.split_pages()
    assert ">>> jnp.add(jnp.arange(3), 10)\nArray([10, 11, 12], dtype=int32)\n\n" in made["library/numpy.md"]
    assert made["library/random.md"].count("\n## Examples\n") == 1 and "## Examples" not in made["library/scipy.signal.md"]


def test_a_lesson_has_both_programs_and_what_they_print():
    cpp, python = "// Derivatives: of\n// functions.\n#include <a>\n", '"""Derivatives: of functions."""\n\nimport a\n'
    made = pages.lesson("04_grad", cpp, python, "1.0\n")
    assert made.startswith("# Derivatives\n\nDerivatives: of functions.\n")
    assert made.index("#include <a>") < made.index("import a") < made.index("```text\n1.0\n```")


def test_every_page_is_in_the_side_bar():
    listed = {entry.rpartition("<")[2].rstrip(">") for entries in site_builder.CONTENTS.values() for entry in entries}
    made = {page.removesuffix(".md") for page in site_builder.all_pages(ROOT / "no_output")}
    in_folders = {page for page in made if page.partition("/")[0] in ("lessons", "library", "cpp") and not page.endswith("/index")}
    assert made - in_folders - listed == {"index"}
    assert listed <= made


def test_broken_links_and_silent_pictures_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><a href="b.html#missing">x</a><a href="c.html">x</a><img src="p.svg">')
    (tmp_path / "b.html").write_text('<p id="there">x</p><a href="https://example.org/">x</a><a href="a.html">x</a>')
    (tmp_path / "p.svg").write_text("<svg/>")
    count, broken = site_builder.broken_links(tmp_path)
    assert count == 5
    assert broken == ["a.html: no text for the picture p.svg", "a.html: nothing at b.html#missing", "a.html: nothing at c.html"]


def test_pages_that_are_gone_are_removed_and_others_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(site_builder, "all_pages", lambda output: {"index.md": "# One\n"})
    (tmp_path / "old.md").write_text("gone")
    assert site_builder.write_pages(tmp_path, tmp_path) == 1
    assert (tmp_path / "index.md").read_text() == "# One\n" and not (tmp_path / "old.md").exists()


def test_pages_have_levels_names_and_keyboard_access():
    made = {'<p class="caption" role="heading">A</p>': '<p class="caption" role="heading" aria-level="2">A</p>',
            '<aside class="sidebar-drawer"></aside>': '<aside class="sidebar-drawer" aria-label="Pages"></aside>',
            '<aside class="toc-drawer no-toc"></aside>': '<aside aria-label="Sections" class="toc-drawer no-toc"></aside>',
            '<table class="docutils align-default"><th class="head"><p></p></th></table>':
                '<table tabindex="0" class="docutils align-default"><td></td></table>',
            '<pre id="x"></pre><pre></pre>': '<pre tabindex="0" id="x"></pre><pre tabindex="0"></pre>', "<predicate>": "<predicate>"}
    assert {before: site_builder.readable(before) for before in made} == made
