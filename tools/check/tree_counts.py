"""Counts over the tree at two commits, side by side: rooms and their edges, folders, files, lines, headers with one reader.

    python3 tools/check/tree_counts.py [BEFORE [NOW]]      (7fa1d0d7, the last commit of 24 rooms, and HEAD)

prints one row for each count. Commits are read with git archive; nothing is checked out.
"""
import argparse
import io
import re
import subprocess
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = (".cpp", ".h", ".cu")
INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.MULTILINE)
MAP_FAMILY = re.compile(r"^(shard_map|mesh_map)")


class Commit:
    """The files of a commit: bytes by name."""

    def __init__(self, name):
        archive = subprocess.run(["git", "archive", "--format=tar", name], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            self.files = {member.name: files.extractfile(member).read() for member in files if member.isfile()}
        self.sources = {name: content.decode(errors="replace") for name, content in self.files.items()
                        if name.startswith("src/") and name.endswith(CPP)}
        self.included = {name: INCLUDE.findall(text) for name, text in self.sources.items()}

    def order(self):
        """The rooms in CONTRIBUTING.md's order of includes."""
        text = self.files["CONTRIBUTING.md"].decode()
        return re.findall(r"`(\w+)`", re.search(r"A room includes only rooms that stand before it in this order of `src`:\s*(.*)", text)[1])

    def edges(self):
        """(room, room that it includes), each once."""
        rooms = {name.split("/")[1] for name in self.sources if name.count("/") > 1}
        return {(name.split("/")[1], other) for name, found in self.included.items() for included in found
                if (other := included.split("/")[0]) in rooms and "/" in included and other != name.split("/")[1]}

    def edges_up(self):
        order = self.order()
        return sum(order.index(other) > order.index(room) for room, other in self.edges())

    def flat(self, *tops):
        """(files, folder) of the folder with the most files of its own."""
        return max((count, folder) for folder, count in Counter(name.rpartition("/")[0] for name in self.files
                                                                if name.startswith(tops)).items())

    def lines(self):
        return sum(content.count(b"\n") for name, content in self.files.items() if b"\0" not in content[:8000])

    def shard_map_readers(self):
        """Files outside shard_map's family that name prim::shard_map()."""
        return sum("prim::shard_map()" in text for name, text in self.sources.items() if not MAP_FAMILY.match(name.rpartition("/")[2]))

    def single_reader_headers(self):
        """Headers of src that are included by one file and have no source of the same name."""
        readers = defaultdict(set)
        for name, found in self.included.items():
            for included in found:
                readers["src/" + included].add(name)
        for name, content in self.files.items():
            if name.endswith(CPP) and not name.startswith("src/"):
                for included in INCLUDE.findall(content.decode(errors="replace")):
                    readers["src/" + included].add(name)
        return sum(len(readers[name]) == 1 and not any(name[:-2] + end in self.sources for end in (".cpp", ".cu"))
                   for name in self.sources if name.endswith(".h"))


def counts(commit):
    largest = {top: commit.flat(top) for top in ("src/", "tests/", "python/tests")}
    return {
        "rooms of `src`": len(commit.order()),
        "edges between rooms": len(commit.edges()),
        "of these, edges that go up": commit.edges_up(),
        **{f"largest flat folder of `{top.rstrip('/')}`": f"{count} ({folder})" for top, (count, folder) in largest.items()},
        "files outside of its family that compare `prim::shard_map()`": commit.shard_map_readers(),
        "headers of `src` with one reader and no source": commit.single_reader_headers(),
        "files in git": len(commit.files),
        "lines of text in git": f"{commit.lines():,}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", nargs="?", default="7fa1d0d7")
    parser.add_argument("now", nargs="?", default="HEAD")
    options = parser.parse_args()
    before, now = (counts(Commit(name)) for name in (options.before, options.now))
    print("| count | before | now |\n|---|---|---|")
    for name in now:
        print(f"| {name} | {before[name]} | {now[name]} |")


if __name__ == "__main__":
    main()
