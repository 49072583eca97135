"""Builds the documentation site: `site_builder.py OUT` writes the pages to OUT/pages and the site to OUT/html, and checks its links.

Exit status 1 where Sphinx warns or a link, an anchor or a picture of the site does not exist.
"""

import argparse
import functools
import html.parser
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pages

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "check"))

import class_page  # noqa: E402
import header_sentences  # noqa: E402

# Pages made of the public headers, under the names that links give them; the tree does not hold them.
MADE = {"docs/cpp.md": lambda: header_sentences.page(header_sentences.headers()), "docs/classes.md": class_page.page}
# Pages outside of docs/, and long pages that become a folder with one page for each section.
ADDED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
SPLIT = {"docs/cpp.md": "cpp", "docs/library.md": "library"}
LEFT_OUT = {"docs/README.md"}  # the list of pages, which the side bar shows
# The side bar: {caption: pages}.
CONTENTS = {
    "Start": ["start", "tour", "lessons/index"],
    "Guides": ["guides", "coming-from", "sharp-bits", "errors"],
    "By subject": ["packages", "python", "jax-plugin", "cpu", "accelerators", "sharding", "processes", "kernels", "training", "serving",
                   "models", "operate", "files", "objects", "Lessons in C <lessons-objects>", "foreign", "tpu", "tpu-kernels",
                   "Facts of TPUs <tpu-facts>"],
    "Reference": ["library/index", "cpp/index", "classes", "primitives", "ignored"],
    "Performance": ["performance", "performance/x86_64", "performance/aarch64", "kernels-measured", "cpu_math"],
    "Inside": ["how-it-works", "verification", "contributing", "notes/measurements", "notes/gpu-kernels", "notes/tpu-model", "notes/moves"],
    "Release notes": ["changelog"],
}
LESSONS = sorted(path.stem for path in (ROOT / "examples").glob("[0-9]*.py"))


@functools.cache
def text_of(file):
    """The Markdown of a page of the tree, or of one made."""
    return MADE[file]() if file in MADE else (ROOT / file).read_text()


def known_pages():
    """{path in the tree: file of the site}; `path#anchor` for the sections of split pages."""
    known = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs"))
             for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".svg", ".png")}
    known |= {file: posixpath.relpath(file, "docs") for file in MADE}
    known |= ADDED | {"docs/README.md": "index.md", "docs": "index.md", "examples": "lessons/index.md"}
    for stem in LESSONS:
        known |= {f"examples/{stem}{end}": f"lessons/{stem}.md" for end in (".cpp", ".py")}
    for file, folder in SPLIT.items():
        known[file] = f"{folder}/index.md"
        for title in pages.parts(text_of(file))[1]:
            known[f"{file}#{pages.anchor_of(title)}"] = f"{folder}/{pages.page_name(title)}.md"
    return known


def lesson_pages(output):
    """{page: text} for the examples; `output` holds what each printed."""
    made, rows = {}, []
    for stem in LESSONS:
        cpp, python = ((ROOT / "examples" / f"{stem}{end}").read_text() for end in (".cpp", ".py"))
        printed = output / f"{stem}.txt"
        made[f"lessons/{stem}.md"] = pages.lesson(stem, cpp, python, printed.read_text() if printed.exists() else "")
        rows.append(f"| [{pages.lesson_title(stem)}]({stem}.md) | {pages.opening(python)[0]} |\n")
    head = "# Lessons\n\nShort programs, each in C++ and in Python, in the order in which to read them.\n\n| lesson | |\n|---|---|\n"
    return {"lessons/index.md": head + "".join(rows) + pages.contents({"": LESSONS}), **made}


def split_pages():
    """{page: text} for the sections of long pages."""
    made = {}
    for file, folder in SPLIT.items():
        head, sections = pages.parts(text_of(file))
        names = [pages.page_name(title) for title in sections]
        rows = [f"| [{title}]({name}.md) |\n" for title, name in zip(sections, names)]
        made[f"{folder}/index.md"] = f"{head}\n| part |\n|---|\n{''.join(rows)}" + pages.contents({"": names})
        made |= {f"{folder}/{name}.md": f"# {title}\n{body}" for name, (title, body) in zip(names, sections.items())}
    for page, title in ((f"library/{pages.page_name(title)}.md", title) for title in pages.parts(text_of("docs/library.md"))[1]):
        made[page] += pages.examples(title)
    return made


def all_pages(output):
    """{file of the site: its Markdown}."""
    known = known_pages()
    kept = {f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")}
    kept = (kept | set(MADE)) - set(SPLIT) - LEFT_OUT
    made = {known[file]: pages.with_tabs(pages.with_links(text_of(file), file, known)) for file in sorted(kept | set(ADDED))}
    made["index.md"] += pages.contents(CONTENTS)
    return {**made, **lesson_pages(output), **split_pages()}


def write_pages(folder, output):
    """Writes the pages and pictures that are new or changed, and removes those that it wrote before and that are gone."""
    made = {page: text.encode() for page, text in all_pages(output).items()}
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".svg", ".png")]
    made |= {str(path.relative_to(ROOT / "docs")): path.read_bytes() for path in pictures}
    for page, text in made.items():
        file = folder / page
        if not file.exists() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
    for file in [file for file in folder.rglob("*") if file.is_file() and str(file.relative_to(folder)) not in made]:
        file.unlink()
    return sum(page.endswith(".md") for page in made)


# What the theme leaves to readers of screens: levels and names of its parts, keyboard access to what scrolls.
READABLE = {'<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
            '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
            '<aside class="toc-drawer': '<aside aria-label="Sections" class="toc-drawer',
            '<th class="head"><p></p></th>': '<td></td>',
            '<table class="docutils': '<table tabindex="0" class="docutils',
            '<div id="search-results">': '<h1>Search</h1><div id="search-results">'}


def readable(text):
    """A page of the site as screen readers and keyboards need it."""
    for before, after in READABLE.items():
        text = text.replace(before, after)
    return re.sub(r"<pre(?=[ >])", '<pre tabindex="0"', text)


def make_readable(folder):
    """Applies `readable` to the pages that Sphinx has just written."""
    for file in folder.rglob("*.html"):
        file.write_text(readable(file.read_text()))


class Links(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and pictures without a text in their place."""

    def __init__(self, file):
        super().__init__()
        self.anchors, self.targets, self.silent = set(), set(), []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors.add(named.get("id"))
        self.targets |= {named[name] for name in ("href", "src") if named.get(name)}
        if tag == "img" and not named.get("alt"):
            self.silent.append(named.get("src"))


def broken_links(folder):
    """Number of links between pages of the site, and a line for each that leads nowhere and each picture that has no text."""
    read = {str(file.relative_to(folder)): Links(file) for file in folder.rglob("*.html")}
    count, broken = 0, []
    for page, links in read.items():
        broken += [f"{page}: no text for the picture {source}" for source in links.silent]
        for target in sorted(links.targets):
            if re.match(r"[\w+-]+:", target):
                continue
            count += 1
            path, _, anchor = unquote(target.partition("?")[0] if "#" not in target else target).partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path.partition("?")[0])) if path else page
            if not (folder / path).exists() or (anchor and path in read and anchor not in read[path].anchors):
                broken.append(f"{page}: nothing at {target}")
    return count, broken


def run_lessons(output):
    """Runs the examples that have no newer output and keeps what they print."""
    output.mkdir(parents=True, exist_ok=True)
    build = ROOT / "build" / "release"
    environment = {**os.environ, "PYTHONPATH": str(build / "python"), "CAPIBARA_COMMAND": str(build / "capibara")}
    for number, stem in enumerate(LESSONS, 1):
        program, printed = ROOT / "examples" / f"{stem}.py", output / f"{stem}.txt"
        if printed.exists() and printed.stat().st_mtime > max(program.stat().st_mtime, (build / "python/capibara").stat().st_mtime):
            continue
        print(f"\r  running the lessons: {number} of {len(LESSONS)}", end="", flush=True)
        done = subprocess.run([ROOT / "build/venv/bin/python", program], cwd=output, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"\n{program.relative_to(ROOT)} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
        printed.write_text(done.stdout)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of the site, build/docs")
    parser.add_argument("--sphinx", default="sphinx-build", help="the command sphinx-build")
    options = parser.parse_args()
    run_lessons(options.out / "output")
    written = write_pages(options.out / "pages", options.out / "output")
    done = subprocess.run([options.sphinx, "-q", "-a", "-W", "--keep-going", "-j", "auto", "-c", ROOT / "tools" / "docs", "-d",
                           options.out / "sphinx", options.out / "pages", options.out / "html"])
    if done.returncode:
        sys.exit("sphinx-build failed: its warnings above name the page and the line")
    make_readable(options.out / "html")
    count, broken = broken_links(options.out / "html")
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{written} pages, {count} links between them, {len(broken)} broken: {options.out / 'html' / 'index.html'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
