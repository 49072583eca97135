"""Statements on the pages are true: those that a command can decide are checked, and new ones of this kind need an entry."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import statements

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = {"library.md", "primitives.md", "performance.md", "kernels-measured.md", "ignored.md"}  # written by commands
# Phrases of statements that are true when written and often false a month later.
ABSENT = re.compile(r"\b(?:do(?:es)? not exist|(?<!where )[Tt]here (?:is|are) no\b|not (?:there )?yet\b|has one device|no such|"
                    r"(?:is|are) not here|later: )")


def plain(text):
    return " ".join(text.split())


def page_of(name):
    return plain((ROOT / name).read_text())


@pytest.fixture(scope="module")
def decided():
    if not list((statements.BUILD / "python").glob("capibara/_core*")):
        pytest.skip("the Python extension is not built")
    path = os.environ.get("CAPIBARA_PYTHON_PATH", str(statements.BUILD / "python"))
    done = subprocess.run([sys.executable, ROOT / "tests" / "repo" / "statements.py"], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=path, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu"))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def label(number):
    page, sentence, function = statements.STATEMENTS[number]
    return f"{Path(page).stem}-{function.__name__}"


@pytest.mark.parametrize("number", range(len(statements.STATEMENTS)), ids=label)
def test_what_a_page_says_is_so(number, decided):
    page, sentence, _ = statements.STATEMENTS[number]
    assert plain(sentence) in page_of(page), f"{page} does not say this any more: remove or change its entry in statements.py"
    assert decided[str(number)] is None, f"{page} says '{sentence}':\n{decided[str(number)]}"


@pytest.mark.parametrize("page, sentence", statements.OTHER)
def test_what_no_command_decides_is_still_said(page, sentence):
    assert plain(sentence) in page_of(page)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in MADE], ids=lambda page: page.name)
def test_what_is_said_to_be_absent_has_an_entry(page):
    name = str(page.relative_to(ROOT))
    text = page_of(name)
    entries = [*((where, sentence) for where, sentence, _ in statements.STATEMENTS), *statements.OTHER]
    known = [plain(sentence) for where, sentence in entries if where == name]
    covered = [(start.start(), start.start() + len(sentence)) for sentence in known for start in re.finditer(re.escape(sentence), text)]
    wrong = [text[max(0, match.start() - 60):match.end() + 60] for match in ABSENT.finditer(text)
             if not any(begin <= match.start() and match.end() <= end for begin, end in covered)]
    assert not wrong


def test_a_sentence_about_what_is_absent_is_found():
    assert ABSENT.search("`lax.ragged_all_to_all` does not exist yet.") and ABSENT.search("The native CPU backend has one device;")
    assert not ABSENT.search("A step that exists is kept.")
