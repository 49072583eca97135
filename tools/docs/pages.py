"""Turns the Markdown of the tree into that of the documentation site: tabs, links, lessons, long pages in parts."""

import posixpath
import re
import runpy
from pathlib import Path

EXAMPLES = runpy.run_path(str(Path(__file__).resolve().parents[2] / "python" / "capibara" / "_examples.py"))
LANGUAGES = {"cpp": "C++", "python": "Python"}
TITLES = {"first": "A first program", "grad": "Derivatives", "vmap and jit": "Batching and compiling", "random": "Random numbers",
          "processes": "Several processes", "fsdp": "FSDP", "mesh of processes": "A mesh of processes", "tpu plan": "A plan for a TPU",
          "own model": "A model of your own"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]+)?\)")


def tabs(bodies):
    """A box with one tab for each language; all boxes of a page show the same one."""
    items = [f":::{{tab-item}} {LANGUAGES[language]}\n:sync: {language}\n\n```{language}\n{bodies[language]}```\n:::\n"
             for language in LANGUAGES if language in bodies]
    return "::::{tab-set}\n:sync-group: language\n\n" + "\n".join(items) + "::::\n"


def with_tabs(text):
    """A page whose neighbouring blocks of C++ and Python, with nothing but blank lines between them, are tabs of one box."""
    result, end = [], 0
    fences = list(FENCE.finditer(text))
    for first, second in zip(fences, fences[1:]):
        languages = {first[1], second[1]}
        if first.start() < end or languages != set(LANGUAGES) or text[first.end():second.start()].strip():
            continue
        result += [text[end:first.start()], "\n", tabs({first[1]: first[2], second[1]: second[2]}), "\n"]
        end = second.end()
    return "".join([*result, text[end:]])


def outside_of_code(text, change):
    """A page with `change` applied to all of it but its programs."""
    result, end = [], 0
    for fence in FENCE.finditer(text):
        result += [change(text[end:fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*result, change(text[end:])])


def with_links(text, file, known):
    """The page `file` of the tree, whose links go to pages of the site where `known` ({path in the tree: page}) has their target.

    Links to other files of the tree, which the site does not hold, become their text.
    """
    here = posixpath.dirname(known[file])

    def link(match):
        picture, label, target, anchor = match.groups()
        if not target or re.match(r"\w+:", target):
            return match.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        page = known.get(path + (anchor or "")) or known.get(path)
        if page is None:
            return label if label.startswith("`") else f"`{label}`" if "/" in label else label
        at_top = path + (anchor or "") in known  # a part of a long page that is a page here
        return f"{picture}[{label}]({posixpath.relpath(page, here or '.')}{'' if at_top else anchor or ''})"

    return outside_of_code(text, lambda part: LINK.sub(link, part))


def anchor_of(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def parts(text):
    """The introduction of a page without its list of contents, and {heading: text} of its sections."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    head = re.sub(r"^- \[[^\]]*\]\(#[^)]*\)\n", "", head, flags=re.MULTILINE).rstrip() + "\n"
    named = dict(section.split("\n", 1) for section in sections)
    return head, {title: re.sub(r"^###", "##", body, flags=re.MULTILINE) for title, body in named.items()}


def page_name(title):
    """The file of a part of a long page: `capibara/nn/softmax.h` -> `nn_softmax`, `scipy.stats` -> `scipy.stats`."""
    return re.sub(r"\.h$", "", title.removeprefix("capibara/")).replace("/", "_")


def opening(source):
    """The first sentence of an example, and its program without it."""
    if source.startswith('"""'):
        sentence, _, program = source[3:].partition('"""')
        return sentence.strip(), program.lstrip("\n")
    comment = re.match(r"(?:// .*\n)+", source)
    return " ".join(re.findall(r"^// (.*)$", comment.group(), re.MULTILINE)), source[comment.end():].lstrip("\n")


def lesson_title(stem):
    """`05_vmap_and_jit` -> `Batching and compiling`, `06_control_flow` -> `Control flow`."""
    words = stem.partition("_")[2].replace("_", " ")
    return TITLES.get(words, words.capitalize())


def lesson(stem, cpp, python, output):
    """The page of an example: its sentence, its program in both languages, and what it printed."""
    sentence, python_program = opening(python)
    text = [f"# {lesson_title(stem)}\n\n{sentence}\n", tabs({"cpp": opening(cpp)[1], "python": python_program})]
    if output:
        text.append(f"It prints:\n\n```text\n{output.rstrip()}\n```\n")
    text.append(f"The programs are `examples/{stem}.cpp` and `examples/{stem}.py`; the tests run both and compare what they print.\n")
    return "\n".join(text)


def examples(module):
    """The examples of a module's functions as one session, as their docstrings have them; empty if there are none."""
    blocks = ["\n".join(EXAMPLES["lines_of"](f"jax.{module}", name)) for name in EXAMPLES["names"](f"jax.{module}")]
    imports = "\n".join(f">>> {line}" for line in ("import numpy as np", "import capibara.jax as jax",
                                                   "import capibara.jax.numpy as jnp", "from capibara.jax import lax"))
    return "\n## Examples\n\n```pycon\n" + "\n\n".join([imports, *blocks]) + "\n```\n" if blocks else ""


def contents(groups):
    """Tables of contents, which only the side bar shows: {caption: pages}."""
    made = []
    for caption, listed in groups.items():
        options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
        made.append(f"\n```{{toctree}}\n{options}\n" + "".join(f"{page}\n" for page in listed) + "```\n")
    return "".join(made)
