"""Every page of the tree: table rows match their heads, no paragraph is repeated, and everything it names or links to exists."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "data"))
sys.path.append(str(ROOT / "tests" / "repo"))

import recordings  # noqa: E402
from test_tree import files  # noqa: E402

PAGES = sorted(path for path in files(".md") if path.relative_to(ROOT).parts[0] != "shared")
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(text):
    """A page without its programs; line numbers are kept."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def columns(row):
    """The columns of a row as GitHub counts them: bars split cells even in code, unless preceded by a backslash."""
    return len(re.findall(r"(?<!\\)\|", row.strip())) - 1


def broken_rows(text):
    """Line and text of rows outside a table, or with another number of columns than its head."""
    found, table = [], []
    for number, line in enumerate([*prose(text).splitlines(), ""], 1):
        if line.lstrip().startswith("|"):
            table.append((number, line))
        elif table:
            is_table = len(table) > 1 and re.fullmatch(r"\s*\|(\s*:?-+:?\s*\|)+\s*", table[1][1])
            width = columns(table[0][1])
            found += [row for row in table if columns(row[1]) != width or not row[1].rstrip().endswith("|")] if is_table else table[:1]
            table = []
    return found


def named_paths(text):
    """Words in backticks that begin with a folder of the tree; `<...>` matches any name."""
    for quoted in re.findall(r"`([^`\n]+)`", prose(text)):
        for word in quoted.split():
            if "/" in word and word.split("/")[0] in TOP:
                yield word.rstrip(",.:")


def exists(word):
    # Pages may name a pair of files without their extensions: `src/core/processes/key_value_store`.
    pattern = re.sub(r"<[^>]*>", "*", word).rstrip("/")
    return any(ROOT.glob(pattern)) or any(ROOT.glob(pattern + ".*"))


def repeated(text):
    """Paragraphs of at least 60 characters that occur twice."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", prose(text))]
    return sorted({part for part in paragraphs if len(part) >= 60 and paragraphs.count(part) > 1})


@every_page
def test_rows_have_the_columns_of_their_heads(page):
    assert broken_rows(page.read_text()) == []


@pytest.mark.parametrize("text, rows", [
    ("| a | b |\n|---|---|\n| 1 | x \\| y |\n", []),
    ("| a | b |\n|---|---|\n| 1 | \\|x\\| | 2 |\n", [3]),
    ("| a | b |\n|---|---|\n| 1 | `|x|` |\n", [3]),
    ("a row of no table:\n\n| 1 | 2 |\n", [3]),
    ("```\n| not a table\n```\n", []),
])
def test_a_broken_row_is_found(text, rows):
    assert [number for number, _ in broken_rows(text)] == rows


@every_page
def test_no_paragraph_stands_twice(page):
    assert repeated(page.read_text()) == []


def test_a_paragraph_that_stands_twice_is_found():
    one = "A paragraph of more than sixty characters, which a merge has kept\nfrom both sides."
    assert repeated(f"# Head\n\n{one}\n\nanother\n\n{one.replace(chr(10), ' ')}\n") == [one.replace("\n", " ")]


@every_page
def test_headings_and_words_are_english(page):
    assert re.findall(r"\S*[áéíóúñÁÉÍÓÚÑ¿¡]\S*", page.read_text()) == []


@every_page
def test_named_files_exist(page):
    if page.name in ("CHANGELOG.md", "moves.md"):  # describe former files
        return
    assert [word for word in sorted(set(named_paths(page.read_text()))) if not exists(word)] == []


def test_a_path_that_does_not_exist_is_found():
    assert list(named_paths("see `src/no_such_room/file.cpp`")) == ["src/no_such_room/file.cpp"]
    assert not exists("src/no_such_room/file.cpp")
    assert exists("src/library/table/<module>/<family>.cpp")


@every_page
def test_links_and_their_headings_exist(page):
    def anchors(text):
        heads = re.findall(r"^#+ +(.*)$", prose(text), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}

    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose(page.read_text())):
        if target.startswith("https://"):
            continue
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text()), f"{target}#{anchor}"


def test_counts_of_recordings_are_those_of_the_page():
    text = (ROOT / "tests" / "data" / "README.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| `(.*?)` \|", text, re.MULTILINE)
    assert sorted(name for names, *_ in rows for name in re.findall(r"`([^`]+)`", names)) == recordings.names()
    assert f"{len(recordings.members('sharded'))} programs over eight devices" in text
    assert len(recordings.members("cudnn")) == 6 and "six programs of attention" in text
    for _, _, script in rows:
        assert (ROOT / script).exists(), script


def test_an_anonymous_namespace_is_not_closed_to_be_opened_again():
    again = re.compile(r"^\}  // namespace\n+namespace \{", re.MULTILINE)
    assert again.search("}  // namespace\n\nnamespace {\n")
    assert [str(file.relative_to(ROOT)) for file in files(".cpp", ".h", ".cu") if again.search(file.read_text())] == []
