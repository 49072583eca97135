"""Rules for the tree: first lines, public headers, no machine-specific paths, no markers of unfinished work."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = {".cpp", ".h", ".py", ".sh", ".cmake", ".txt", ".toml"}
SKIPPED = {"build", ".git", "__pycache__", ".cache", ".pytest_cache"}


def files(*suffixes):
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        for entry in sorted(set(names) - SKIPPED):  # .git is a file in a linked work tree
            path = Path(folder) / entry
            if not suffixes or path.suffix in suffixes:
                yield path


def name(path):
    return str(path.relative_to(ROOT))


def first_sentence(path):
    lines = path.read_text().splitlines()
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    return lines[0] if lines else ""


def test_every_source_file_begins_with_a_sentence():
    starts = {".cpp": "// ", ".h": "// ", ".py": '"""', ".sh": "# ", ".cmake": "# ", ".toml": "# "}
    wrong = []
    for path in files(*starts):
        if path.name == "__init__.py" and not path.read_text().strip():
            continue
        start = first_sentence(path)
        if not start.startswith((starts[path.suffix], "# ") if path.suffix == ".py" else starts[path.suffix]):
            wrong.append(name(path))
    assert not wrong


def test_no_machine_paths():
    # Spelled in parts, so that this file contains none itself.
    folders = re.compile(r"(?<![\w.])/(?:" + "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me", "fa" + "rm")) + r")/\w")
    wrong = []
    for path in files(*CODE, ".md", ".json", ".mlir", ""):
        text = path.read_text(errors="ignore")
        wrong += [f"{name(path)}: {match.group()}" for match in folders.finditer(text)]
    assert not wrong


def test_nothing_is_read_from_beside_the_repository():
    beside = re.compile(r"\bROOT\.pare" + r"nt\b|\.\./sha" + "red/")  # in parts, as above
    wrong = [name(path) for path in files(*CODE, ".md", "") if beside.search(path.read_text(errors="ignore"))]
    assert not wrong


def test_no_unfinished_words():
    words = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
    assert not [name(path) for path in files(".cpp", ".h", ".py", ".sh", ".md") if words.search(path.read_text())]


def test_no_rooms_for_leftovers():
    # Modules that libraries import by these names.
    jaxs_own = {"python/capibara/jax/_src/util.py", "python/capibara/jax/experimental/sparse/util.py"}
    wrong = [name(path) for path in files(".cpp", ".h", ".py") if re.fullmatch(r"(utils?|common|misc|helpers?)", path.stem)]
    wrong = [path for path in wrong if path not in jaxs_own]
    assert not wrong


INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.MULTILINE)


def test_nothing_includes_tools_or_python():
    wrong = []
    for folder in ("src", "include"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h"):
                wrong += [f"{name(path)} includes {included}" for included in INCLUDE.findall(path.read_text())
                          if included.split("/")[0] in ("tools", "python")]
    assert not wrong


def test_public_headers_include_only_public_headers():
    wrong = []
    for path in (ROOT / "include").rglob("*.h"):
        for included in INCLUDE.findall(path.read_text()):
            if "/" in included and not included.startswith("capibara/") and not included.startswith("sys/"):
                wrong.append(f"{name(path)} includes {included}")
            if included.endswith(".h") and not included.startswith("capibara/"):
                wrong.append(f"{name(path)} includes {included}")
    assert not wrong


def test_public_headers_are_guarded():
    assert not [name(path) for path in (ROOT / "include").rglob("*.h") if "#pragma once" not in path.read_text()]
