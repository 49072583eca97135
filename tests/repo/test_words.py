"""Pages use the field's words: none of the words that the project's table replaces occur outside code and quotations."""

import re
from pathlib import Path

import pytest
from test_pages import PAGES, ROOT

# Written by commands, from sentences in other files; verification.md quotes words of reports.
LEFT_OUT = {"docs/library.md", "docs/cpp.md", "docs/primitives.md", "docs/ignored.md", "docs/verification.md",
            "docs/performance/aarch64.md", "docs/performance/x86_64.md"}
CHECKED = [page for page in PAGES if str(page.relative_to(ROOT)) not in LEFT_OUT]

# Pattern: replacement, for each row of the table that a pattern can find.
WORDS = {
    r"turns?": "iteration, trip count; become, switch off",
    r"lies?(?! groups)|lay": "is placed, is laid out, layout",
    r"(?:sum|add|gather)(?:s|med|ed)? up": "accumulate, add",
    r"most_\w+|fewest_\w+": "max_, min_, limit",
    r"fixed and moving": "static and dynamic arguments",
    r"where (?:was|it was) looked": "which paths were searched",
    r"as the compiler likes": "placed by the compiler",
    r"slopes?": "gradient, cotangent, derivative",
    r"brains?": "bfloat16",
    r"asked|asks? for": "requested, required, target, prefetch",
    r"wanted": "requested, required",
    r"further": "other, remaining, the rest, more",
    r"(?:no|some|any)body": "no one, or name who",
    r"kin": "similar ones, and related functions",
    r"divided (?!by\b)": "partitioned, split",
    r"(?<!by the )(?<!on the )ways?": "variant, path, implementation; how",
}


def prose(text):
    """A page without programs, code and quotations; line numbers are kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    text = re.sub(r"^```.*?^```", blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", blank, text, flags=re.MULTILINE) if "```" not in text else text
    text = re.sub(r"`[^`\n]*`", blank, text)
    return re.sub(r"\"[^\"\n]*\"", blank, text)


def found(text):
    """Line, word and replacement, for every word of the table on a page."""
    text = prose(text)
    return [(text.count("\n", 0, match.start()) + 1, match.group(), instead) for pattern, instead in WORDS.items()
            for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)]


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_the_words_of_the_field(page):
    assert found(page.read_text()) == []


def test_a_word_of_the_table_is_found():
    text = "The loop runs\nfor as many turns as it has slopes, divided among devices in some way.\n"
    assert sorted((line, word.strip()) for line, word, _ in found(text)) == [(2, "divided"), (2, "slopes"), (2, "turns"), (2, "way")]


def test_code_and_quotations_are_left_alone():
    assert found("The option `slope` and the message \"nobody asked\" stay; so does what is divided by two.\n") == []
    assert found("A command:\n\n    turn(slope)\n") == []
    assert found("```\nfor each turn\n```\n") == []


def test_the_pages_left_out_exist():
    assert all((Path(ROOT) / name).exists() for name in LEFT_OUT)
