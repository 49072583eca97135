"""Runs every code block of the original proposal's pages unchanged, each in its own process, and prints the outcomes.

usage: build/venv/bin/python tools/check/seed_blocks.py FOLDER [PAGE[/BLOCK] ...] [--build BUILD] [--seconds N]

FOLDER holds the pages, 000_*.txt to 004_*.txt. tests/seeds/blocks.py defines what each block leaves open and how to see that it did
something. A block works as pasted, or ends in one line that names what this machine lacks or what is wrong in the page; anything
else is a failure, and the exit status is 1.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "seeds"))
from blocks import BLOCKS  # noqa: E402

WORKS, MACHINE, PAGE = "works as pasted", "names what the machine lacks", "names what the page has wrong"


def blocks_of(text):
    """[(line, language, code)]: fenced blocks with a language, and code-block directives."""
    lines, found, at = text.splitlines(), [], 0
    while at < len(lines):
        fence = re.match(r"^(\s*)```(\w+)\s*$", lines[at])
        directive = re.match(r"^\.\. code-block:: (\w+)", lines[at])
        begin = at + 1
        if fence:
            end = next(i for i in range(begin, len(lines)) if lines[i].strip() == "```")
            found.append((begin, fence[2], textwrap.dedent("\n".join(lines[begin:end]))))
            at = end
        elif re.match(r"^\s*```\s*$", lines[at]):  # a listing of folders
            at = next(i for i in range(begin, len(lines)) if lines[i].strip() == "```")
        elif directive:
            end = next((i for i in range(begin, len(lines)) if lines[i].strip() and not lines[i].startswith(" ")), len(lines))
            found.append((begin, directive[1], textwrap.dedent("\n".join(lines[begin:end])).strip("\n")))
            at = end - 1
        at += 1
    return found


def run(page, number, language, code, build, seconds):
    """(verdict or None, one line)"""
    row = BLOCKS[page].get(number, {})
    environment = {**os.environ, "PYTHONPATH": str(build / "python"), "JAX_NUM_CPU_DEVICES": str(row.get("devices", 1))}
    for name in ("JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "XLA_FLAGS"):
        environment.pop(name, None)
    own = [sys.executable, "-m", "capibara"]
    with tempfile.TemporaryDirectory() as folder:
        if language in ("bash", "sh", "shell"):
            program = [f'python() {{ {" ".join(own)} "$@"; }}', 'pip() { echo "pip $*: not needed"; }', code, row.get("then", "")]
            command = ["bash", "-c", "\n".join(program)]
        else:
            file = pathlib.Path(folder) / "block.py"
            file.write_text("\n".join([row.get("before", ""), code, row.get("after", "")]) + "\n")
            command = [sys.executable, str(file)] if row.get("plain") else [*own, str(file)]
        try:
            limit = row.get("seconds", seconds)
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, f"not over after {limit} s"
    lines = done.stderr.strip().splitlines()
    errors = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception)\b", line)]
    said = (errors or lines or [""])[-1]
    if "says" in row:
        if done.returncode == 0:
            return None, f"ended well, where it should say {row['says']!r}"
        if row["says"].lower() not in said.lower() or row.get("prints", "") not in done.stdout:
            return None, said
        return (MACHINE if row["why"] == "machine" else PAGE), said
    if done.returncode != 0:
        return None, said
    if row.get("prints", "") not in done.stdout:
        return None, f"did not print {row['prints']!r}: {' '.join(done.stdout.split())[:120]}"
    if row.get("said", "") not in done.stderr:
        return None, f"did not say {row['said']!r} on the standard error"
    shown = [line for line in (done.stdout if "prints" in row else done.stderr if "said" in row else "").splitlines()
             if row.get("prints", row.get("said", "")) in line]
    return WORKS, shown[0].strip() if shown else ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("wanted", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    counts = {}
    print("| page | block | line | verdict | what it shows |\n|---|---|---|---|---|")
    for file in sorted(options.folder.glob("00[0-4]_*.txt")):
        page = file.name[:3]
        for number, (line, language, code) in enumerate(blocks_of(file.read_text()), 1):
            if options.wanted and not {page, f"{page}/{number}"} & set(options.wanted):
                continue
            verdict, said = run(page, number, language, code, options.build.resolve(), options.seconds)
            counts[verdict] = counts.get(verdict, 0) + 1
            said = said.replace("|", "\\|")
            print(f"| {page} | {number} | {line} | {verdict or '**fails**'} | {said[:200]} |", flush=True)
    print(f"\n{sum(counts.values())} blocks: " + ", ".join(f"{count} {verdict or 'fail'}" for verdict, count in counts.items()))
    return 1 if None in counts else 0


if __name__ == "__main__":
    sys.exit(main())
