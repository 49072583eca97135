"""Makes the list of src's rooms in docs/how-it-works.md and docs/rooms.svg from CONTRIBUTING.md's table and the tree.

    python3 tools/check/rooms.py            what differs
    python3 tools/check/rooms.py --write    writes both
"""

import argparse
import re
import sys
from collections import Counter
from html import escape
from pathlib import Path

import lint

PAGE, PICTURE = "docs/how-it-works.md", "docs/rooms.svg"
BEGIN, END = "<!-- made by tools/check/rooms.py --write -->", "<!-- until here -->"
# Layout of the picture: the path of a program from left to right in two rows, the other rooms below.
ROWS = [["core", "program", "lax", "compiler", "kernels"], ["backends", "transforms", "library", "models"],
        ["io", "operate", "tpu", "assembly"]]
COLOURS = ["#d6e6fa", "#d9f0dd", "#e8e8e4"]
WIDTH, LEFT, GAP, LINE = 900, 20, 16, 15


class Room:
    """A room of the tree: its folders, and the rooms that it includes."""

    def __init__(self, tree, name, order):
        self.name = name
        files = tree.files(*lint.CPP, under=f"src/{name}/")
        self.folders = sorted({file.split("/")[2] for file in files if file.count("/") > 2})
        included = {found.split("/")[0] for file in files for found in lint.INCLUDE.findall(tree.text(file)) if "/" in found}
        self.includes = [other for other in order if other in included and other != name]


def rooms(tree):
    order = lint.room_order(tree)
    return [Room(tree, name, order) for name in order]


def sentences(tree):
    """The sentence for each folder in CONTRIBUTING.md's table, with links relative to docs/."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| [^|]*\|$", tree.text("CONTRIBUTING.md"), re.MULTILINE)
    return {folder: sentence.replace("](docs/", "](") for folder, sentence in rows}


def table(tree):
    said = sentences(tree)
    lines = [BEGIN, "| room | what it holds | includes |", "|---|---|---|"]
    lines += [f"| `src/{room.name}` | {said['src/' + room.name]} | {', '.join(room.includes) or 'nothing'} |" for room in rooms(tree)]
    return "\n".join([*lines, END])


def page(tree):
    text = tree.text(PAGE)
    return text[:text.index(BEGIN)] + table(tree) + text[text.index(END) + len(END):]


def wrapped(words, width):
    """Lines of words that are at most `width` characters long."""
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        lines[-1:] = [joined] if len(joined) <= width or not lines[-1] else [lines[-1], word]
    return [line for line in lines if line]


def picture(tree):
    known, parts, top = {room.name: room for room in rooms(tree)}, [], 14
    for number, (row, colour) in enumerate(zip(ROWS, COLOURS)):
        width = (WIDTH - 2 * LEFT - GAP * (len(row) - 1)) // len(row)
        texts = {name: wrapped([f"{folder}," for folder in known[name].folders[:-1]] + known[name].folders[-1:], width // 7)
                 + wrapped(("includes " + ", ".join(known[name].includes or ["nothing"])).split(), width // 7) for name in row}
        inside = {name: len(wrapped([f"{folder}," for folder in known[name].folders[:-1]] + known[name].folders[-1:], width // 7))
                  for name in row}
        height = 34 + LINE * max(map(len, texts.values()))
        for at, name in enumerate(row):
            x = LEFT + at * (width + GAP)
            parts.append(f'<rect x="{x}" y="{top}" width="{width}" height="{height}" rx="6" fill="{colour}" stroke="#6b7280"/>')
            parts.append(f'<text class="t" x="{x + width // 2}" y="{top + 20}">{escape(name)}</text>')
            for line, text in enumerate(texts[name]):
                style = ' class="i"' if line >= inside[name] else ""
                parts.append(f'<text{style} x="{x + width // 2}" y="{top + 38 + LINE * line}">{escape(text)}</text>')
            if at and number < 2:
                parts.append(f'<path d="M{x - GAP} {top + 16}H{x - 2}" class="a"/>')
        if number == 0:
            middle = top + height + 14
            parts.append(f'<path d="M{WIDTH - LEFT - 60} {top + height}V{middle}H{LEFT + 60}V{top + height + 26}" class="a"/>')
        top += height + 28
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - 14}" width="{WIDTH}" height="{top - 14}" role="img" '
            'aria-label="The rooms of capibara, their folders, and what they include">')
    style = ("<style>text{font:12px sans-serif;fill:#1f2937;text-anchor:middle}.t{font:bold 14px monospace}.i{fill:#6b7280}"
             ".a{stroke:#8b93a1;stroke-width:2;fill:none;marker-end:url(#e)}</style>")
    arrow = ('<defs><marker id="e" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
             '<path d="M0 0L8 4L0 8z" fill="#8b93a1"/></marker></defs>')
    return "\n".join([head, style, arrow, *parts, "</svg>"]) + "\n"


MADE = {PAGE: page, PICTURE: picture}


def problems(tree):
    """The files that do not match the tree, and rooms missing from the picture."""
    drawn = Counter(name for row in ROWS for name in row)
    found = [f"the picture must draw {name} once" for name in lint.room_order(tree) if drawn[name] != 1]
    return found or [f"{name} is not what the tree says" for name, make in MADE.items() if tree.text(name) != make(tree)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE} and {PICTURE}")
    tree = lint.Tree()
    if parser.parse_args().write:
        for name, make in MADE.items():
            Path(tree.root / name).write_text(make(tree))
        return 0
    found = problems(tree)
    print("\n".join(found) or "rooms: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
