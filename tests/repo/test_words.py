"""Pages and comments use the field's words: those that the project's table of words replaces occur only in code and quotations."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest
from test_pages import PAGES, ROOT
from test_tree import files

# Written by commands, from sentences that stand elsewhere; verification.md has words of reports that it repeats.
LEFT_OUT = {"docs/library.md", "docs/primitives.md", "docs/ignored.md", "docs/verification.md",
            "docs/performance/aarch64.md", "docs/performance/x86_64.md"}
CHECKED = [page for page in PAGES if str(page.relative_to(ROOT)) not in LEFT_OUT]

# What is written instead of what: one row for each row of the table that a pattern can find.
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
    """A page without programs, code and quotations; lines keep their numbers."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    text = re.sub(r"^```.*?^```", blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", blank, text, flags=re.MULTILINE) if "```" not in text else text
    text = re.sub(r"`[^`\n]*`", blank, text)
    return re.sub(r"\"[^\"\n]*\"", blank, text)


def found(text, words=WORDS):
    """Line, word and what is written instead of it, for every word of the table that a page has."""
    text = prose(text)
    return [(text.count("\n", 0, match.start()) + 1, match.group(), instead) for pattern, instead in words.items()
            for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)]


# Comments speak of hardware and of algorithms too: caches have ways, programs are on their way to machine code, signs are divided out.
ORDINARY = [r"(?<=in )turn",
            r"turn(?:s|ed|ing)? (?:\S+ ){0,12}(?:into|on|off)",
            r"(?:the same|this|its|their|the best|along the|half-|has|number of) ?-?ways?",
            r"divided (?:by|out|evenly)"]


def without_ordinary(text):
    return re.sub("|".join(rf"\b{phrase}\b" for phrase in ORDINARY), lambda match: " " * len(match.group()), text, flags=re.IGNORECASE)


def comments(file):
    """The comments of a source, and the docstrings of Python, one text with the lines of the file."""
    text = file.read_text()
    lines = [""] * (text.count("\n") + 2)
    if file.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                lines[token.start[0] - 1] = token.string
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
                first = node.body[0].value.lineno - 1
                for number, line in enumerate(node.body[0].value.value.split("\n")):
                    lines[first + number] = line
    else:
        begins = r"#" if file.suffix in (".sh", ".cmake", ".txt") or file.name == "run" else r"//"
        for number, line in enumerate(text.split("\n")):
            match = re.match(rf'^((?:[^"/#]|"(?:[^"\\]|\\.)*"|/(?!/)|(?!{begins})#)*)({begins}.*)$', line)
            lines[number] = match[2] if match else ""
    return "\n".join(lines)


ANY = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def found_in_comments(file):
    text = file.read_text()
    if not ANY.search(text):
        return []
    words = dict(WORDS)
    if re.search(r"\bslopes?\b", text.replace(comments(file), "")) and re.search(r"surrogate|neutral|line search", text):
        words.pop("slopes?")  # of a surrogate, of a surface: the quantity itself
    return found(without_ordinary(comments(file)), words)


# Recordings of jax are named by the bytes of these files.
HASHED = ("tests/differential/", "tests/drop_in/")
SOURCES = {folder: [file for file in files(".cpp", ".h", ".cu", ".c", ".py", ".sh", ".cmake") if file.relative_to(ROOT).parts[0] == folder]
           for folder in ("src", "include", "python", "tests", "benchmarks", "tools", "examples", "cmake")}


@pytest.mark.parametrize("folder", SOURCES)
def test_comments_have_the_words_of_the_field(folder):
    assert [f"{file.relative_to(ROOT)}:{line}: {word}: {instead}" for file in SOURCES[folder]
            if file.name != "test_words.py" and not str(file.relative_to(ROOT)).startswith(HASHED)
            for line, word, instead in found_in_comments(file)] == []


def test_a_word_in_a_comment_is_found(tmp_path):
    file = tmp_path / "a.cpp"
    file.write_text('int turns = 1;  // the loop makes three turns\nconst char* text = "// nobody";\n'
                    "// turns text into numbers, each in turn\n")
    assert [(line, word) for line, word, _ in found_in_comments(file)] == [(1, "turns")]
    file = tmp_path / "b.py"
    file.write_text('"""What\nis asked of it."""\nasked = 1  # further\n')
    assert [(line, word) for line, word, _ in found_in_comments(file)] == [(2, "asked"), (3, "further")]


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
