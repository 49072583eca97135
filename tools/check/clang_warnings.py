"""Runs clang over the sources of a build: repeats each of its compilations, for syntax and warnings only.

    python3 tools/check/clang_warnings.py [--build build/release] [PATTERN...]

A PATTERN is searched for in the names of the files compiled; batches have names such as src_lax_0. Prints each
diagnostic once and exits with 1 where there was one. A batch takes some seconds.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITH_VALUE = ("-o", "-c", "-include")  # of g++'s precompiled header, too
OF_GCC_ALONE = ("-fpch-preprocess", "-Winvalid-pch", "-Wno-subobject-linkage", "-Wno-maybe-uninitialized", "-fno-gnu-unique")
DIAGNOSTIC = re.compile(r"^(\S+:\d+:\d+: (?:warning|error|fatal error): .*)$", re.MULTILINE)


def options(command):
    """The options of a compilation that clang accepts too."""
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word in WITH_VALUE:
            next(words)
        elif word.startswith("-") and word not in OF_GCC_ALONE and not word.startswith("-E"):
            kept += [word, next(words)] if word == "-isystem" else [word]
    return kept


def diagnostics(compilation):
    command = ["clang++", "-fsyntax-only", "-Wno-unknown-warning-option", *options(compilation["command"]), compilation["file"]]
    said = subprocess.run(command, cwd=compilation["directory"], capture_output=True, text=True)
    return DIAGNOSTIC.findall(said.stderr) or ([f"{compilation['file']}: {said.stderr}"] if said.returncode else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    chosen = parser.parse_args()
    compilations = [one for one in json.loads((chosen.build / "compile_commands.json").read_text())
                    if one["file"].endswith((".cpp", ".cxx")) and "/site-packages/" not in one["file"]
                    and (not chosen.patterns or any(re.search(pattern, one["file"]) for pattern in chosen.patterns))]
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for found in pool.map(diagnostics, compilations):
            for line in found:
                if line not in seen:
                    print(line, flush=True)
                seen.add(line)
    print(f"{len(compilations)} compilations, {len(seen)} diagnostics")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
