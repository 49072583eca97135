"""Keeps one sentence above every function of the public headers; `page` makes the site's C++ reference of them.

usage: tools/check/header_sentences.py           lists what is missing or differs; exit status 1 if anything does
       tools/check/header_sentences.py --write   writes the sentences of the library's table into the headers

A function of the library's table has the table's sentence (read from docs/library.md, which a test keeps equal to the table):
the comment above its first declaration begins with it, and may continue. Every other function has a sentence of its own.
"""
import argparse
import itertools
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "capibara"
COLUMNS = 120
# For authors of custom primitives; its records are described in docs/how-it-works.md.
LEFT_OUT = {"primitive.h"}


@dataclass
class Function:
    """A declaration at namespace scope: its first line, the comment above it, and its text without the body."""

    header: Path
    namespace: str
    name: str
    line: int  # from 0, of the first line of the declaration
    comment: list
    signature: str


@dataclass
class Header:
    """The declarations of a header for its users."""

    path: Path
    functions: list = field(default_factory=list)
    types: list = field(default_factory=list)  # (comment lines, text) of structs and enumerations


# ---- reading C++ -----------------------------------------------------------------------------------------------------


def blanked(text):
    """The text with comments and literals replaced by blanks of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def matching(code, start, opening, closing):
    """The position of the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += (code[position] == opening) - (code[position] == closing)
        if depth == 0:
            return position
    raise ValueError("unbalanced " + opening)


def end_of_declaration(code, start):
    """The end of a declaration: (position of its ';' or of the '{' of its body, whether it has a body)."""
    depth = 0
    for position in range(start, len(code)):
        character = code[position]
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character in ";{":
            return position, character == "{"
    raise ValueError("a declaration without end")


def without_template(text):
    """(whether it is a template, the declaration without its template<...> and requires clause)."""
    is_template = False
    while text.startswith("template"):
        is_template = True
        text = text[matching(text, text.index("<"), "<", ">") + 1:].lstrip()
    if text.startswith("requires"):
        rest = text[len("requires"):].lstrip()
        if rest.startswith("("):
            text = rest[matching(rest, 0, "(", ")") + 1:].lstrip()
        else:  # a concept's name with its arguments, possibly several joined by &&
            concept = r"[\w:]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?\s*(?:&&|\|\|)?\s*"
            text = re.sub(rf"^(?:{concept})+?(?=inline |constexpr |const |auto|[A-Z]\w*[ &<])", "", rest)
    return is_template, text


def function_name(text):
    """The name of the function that a declaration without template and body declares; None if it declares something else."""
    if re.match(r"(using|typedef|static_assert|friend|extern|namespace)\b", text):
        return None
    operator = re.search(r"\boperator\s*([^\w\s(][^(]*|\(\))\s*\(", text)
    if operator:
        return "operator" + operator.group(1).strip()
    opening = text.find("(")
    if opening < 0 or "=" in text[:opening]:
        return None
    name = re.search(r"((?:\w+::)*[A-Za-z_]\w*)\s*$", text[:opening])
    if not name or not text[:name.start()].strip() or name.group(1).isupper():
        return None
    return name.group(1)


def read(path):
    text = path.read_text()
    code, lines = blanked(text), text.split("\n")
    header, scopes, position = Header(path), [], 0

    def line_of(offset):
        return text.count("\n", 0, offset)

    def comment_above(line):
        first = line
        while first > 0 and lines[first - 1].startswith("//") and not is_rule(lines[first - 1]):
            first -= 1
        return [entry[2:].strip() for entry in lines[first:line]]

    while True:
        blank = re.compile(r"\s*").match(code, position)
        position = blank.end()
        if position >= len(code):
            return header
        if code[position] == "#":
            while lines[line_of(position)].endswith("\\"):
                position = code.index("\n", position) + 1
            position = code.find("\n", position) + 1 or len(code)
            continue
        if code[position] in "};":
            if code[position] == "}":
                scopes.pop()
            position += 1
            continue
        opened = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*\{").match(code, position)
        if opened:
            scopes.append(opened.group(1))
            position = opened.end()
            continue
        start, line = position, line_of(position)
        end, has_body = end_of_declaration(code, start)
        is_template, declaration = without_template(code[start:end])
        is_type = re.match(r"(struct|class|enum|union)\b", declaration)
        hidden = any(part in ("detail", "") for scope in scopes for part in scope.split("::"))
        name = None if is_type else function_name(declaration)
        position = end + 1
        if has_body:  # a function ends at its brace, a variable or type with braces at a semicolon
            close = matching(code, end, "{", "}")
            position = close + 1 if name else code.index(";", close) + 1
        if hidden:
            continue
        if is_type and has_body and not is_template and not declaration.startswith("class"):
            header.types.append((comment_above(line), text[start:position]))
        if name and "::" not in name:  # else a member defined outside its class
            signature = re.sub(r"\s+", " ", text[start:end]).strip()
            header.functions.append(Function(path, "::".join(scopes), name, line, comment_above(line), signature))


def is_rule(line):
    """A section line: // ---- keys ----."""
    return bool(re.match(r"//\s*-{4}", line))


def headers():
    return [read(path) for path in sorted(INCLUDE.rglob("*.h")) if path.name not in LEFT_OUT]


# ---- the sentences ---------------------------------------------------------------------------------------------------


def table(text=None):
    """{(namespace, name): sentence} of docs/library.md, or of another text of that page."""
    sentences, namespace = {}, ""
    for line in ((ROOT / "docs" / "library.md").read_text() if text is None else text).splitlines():
        title = re.match(r"## ([\w.]+)$", line)
        if title:
            full = title.group(1) if title.group(1).startswith("capibara.") else "capibara.jax." + title.group(1)
            namespace = full.replace(".", "::")
        row = re.match(r"\| `(\w+)\(.*?\)` \| (.*) \|$", line)
        if row:
            sentences[namespace, row.group(1)] = row.group(2).replace("\\|", "|")
    return sentences


def committed_table():
    """The table as of the last commit: sentences still in the headers, to be replaced."""
    done = subprocess.run(["git", "-C", str(ROOT), "show", "HEAD:docs/library.md"], capture_output=True, text=True)
    return table(done.stdout)


def row_of(function, sentences):
    """The table's sentence of a function; `delete_` is Python's `delete`."""
    return sentences.get((function.namespace, function.name)) or sentences.get((function.namespace, function.name.rstrip("_")))


def wrapped(sentence):
    return textwrap.wrap(sentence, COLUMNS - 3, break_long_words=False, break_on_hyphens=False)


def firsts(functions):
    """The first declaration of each name: overloads share its sentence."""
    seen = set()
    for function in functions:
        key = function.namespace, function.name
        if key not in seen and not function.name.startswith("operator"):
            seen.add(key)
            yield function


def sentence_of(function):
    """The comment up to the end of its first sentence."""
    text = " ".join(function.comment)
    end = re.search(r"[.](?=\s|$)", text)
    return text[:end.end()] if end else text


def problems(all_headers, sentences):
    found = []
    for header in all_headers:
        for function in firsts(header.functions):
            where = f"{function.header.relative_to(ROOT)}:{function.line + 1}: {function.name}"
            expected = row_of(function, sentences)
            if expected and not " ".join(function.comment).startswith(expected):
                found.append(f"{where}: the comment must begin with the table's sentence: {expected}")
            elif not expected and not function.comment:
                found.append(f"{where}: has no sentence")
            elif len(sentence_of(function)) > 160:
                found.append(f"{where}: its first sentence is longer than 160 characters")
            opening = function.comment[0].split()[:3] if function.comment else []
            if any(line.split()[:3] == opening for line in function.comment[1:]):
                found.append(f"{where}: a later line of its comment begins as the first one")
    return found


def write_sentences(all_headers, sentences, old_sentences):
    for header in all_headers:
        lines = header.path.read_text().split("\n")
        for function in reversed(list(firsts(header.functions))):
            expected = row_of(function, sentences)
            text = " ".join(function.comment)
            if not expected or text.startswith(expected):
                continue
            begin = function.line - len(function.comment)
            old = row_of(function, old_sentences)
            if old and text.startswith(old):
                lines[begin:function.line] = ["// " + part for part in wrapped(expected + text[len(old):])]
            else:
                lines[begin:begin] = ["// " + part for part in wrapped(expected)]
        header.path.write_text("\n".join(lines))


# ---- the page --------------------------------------------------------------------------------------------------------


def cell(text):
    return text.replace("|", "\\|")


def prose(text):
    """A sentence escaped for Markdown, so that nothing in it becomes a tag or emphasis."""
    return re.sub(r"[<*]", lambda match: "\\" + match.group(), cell(text))


def title(header):
    return str(header.path.relative_to(INCLUDE.parent))


def section(header):
    """The part of the page about one header: its first sentences, tables of functions, and their options."""
    head = itertools.takewhile(lambda line: line.startswith("//") and line[2:].strip(), header.path.read_text().splitlines())
    lines = ["", f"## {title(header)}", "", prose(" ".join(line[2:].strip() for line in head))]
    namespace = None
    for function in firsts(header.functions):
        if function.namespace != namespace:
            namespace = function.namespace
            lines += ["", f"`namespace {namespace}`", "", "| function | |", "|---|---|"]
        overloads = [other for other in header.functions if (other.namespace, other.name) == (namespace, function.name)]
        signatures = "<br>".join(f"`{cell(other.signature)}`" for other in overloads)
        lines.append(f"| {signatures} | {prose(' '.join(function.comment))} |")
    if header.types:
        lines += ["", "```cpp"]
        for comment, text in header.types:
            lines += ["// " + part for part in comment] + text.split("\n")
        lines += ["```"]
    return lines


def page(all_headers):
    shown = [header for header in all_headers if header.functions]
    lines = ["# The C++ interface", "",
             "What the public headers declare. Overloads share a row; the option structs and enumerations of a header are below its",
             "table. `#include <capibara/capibara.h>` includes the usual headers.", ""]
    lines += [f"- [{title(header)}](#{re.sub(r'[^a-z0-9_-]', '', title(header))})" for header in shown]
    for header in shown:
        lines += section(header)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table's sentences into the headers")
    options = parser.parse_args()
    if options.write:
        write_sentences(headers(), table(), committed_table())
    found = problems(headers(), table())
    print("\n".join(found) if found else "every function has its sentence")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
