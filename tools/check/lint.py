"""./run lint: width and length of files, size of folders, order of rooms, homes of functions, circles of imports, unused names, layout.

Files that exceeded a limit when it was introduced are in lint_exceptions.txt with figures that may only fall: `--shrink` lowers them.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import definitions

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = "tools/check/lint_exceptions.txt"
CPP = (".cpp", ".h", ".cu")
WIDTHS = {**dict.fromkeys(CPP, 120), ".py": 140, ".sh": 140, ".cmake": 140}  # C++ as .clang-format says
LENGTHS = {".cpp": 800, ".cu": 800, ".h": 500, ".py": 500}
FOLDER = 40  # files in one folder of src or of tests, without those below it
INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.MULTILINE)


class Tree:
    """The files of a tree that git tracks or would add, each read once."""

    def __init__(self, root=ROOT):
        self.root = Path(root)
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=self.root,
                                capture_output=True, text=True, check=True)
        self.names = sorted(name for name in set(listed.stdout.splitlines()) if (self.root / name).is_file())
        self._texts, self._modules = {}, {}

    def files(self, *suffixes, under=""):
        return [name for name in self.names if name.endswith(suffixes) and name.startswith(under)]

    def text(self, name):
        if name not in self._texts:
            self._texts[name] = (self.root / name).read_text(errors="replace")
        return self._texts[name]

    def module(self, name):
        if name not in self._modules:
            self._modules[name] = ast.parse(self.text(name), name)
        return self._modules[name]

    def exceptions(self):
        """{(rule, file): figure} of the list of exceptions."""
        if not (self.root / EXCEPTIONS).exists():
            return {}
        rows = [line.split() for line in self.text(EXCEPTIONS).splitlines() if line and not line.startswith("#")]
        return {(rule, name): int(figure) for rule, name, figure in rows}


# ---- limits with exceptions: each returns {file: figure} for files beyond the limit ----

def wide(tree):
    """Lines beyond the width, by file."""
    counts = {name: sum(len(line) > WIDTHS[Path(name).suffix] for line in tree.text(name).splitlines()) for name in tree.files(*WIDTHS)}
    return {name: count for name, count in counts.items() if count}


def long(tree):
    """Lines of files that are longer than a file of their kind should be."""
    def length(name):
        lines = tree.text(name).splitlines()
        # The sentences above the functions of a public header are documentation written by a tool.
        return sum(not line.startswith("//") for line in lines) if name.startswith("include/") else len(lines)

    counts = {name: length(name) for name in tree.files(*LENGTHS)}
    return {name: count for name, count in counts.items() if count > LENGTHS[Path(name).suffix]}


def inner_imports(tree):
    """Imports of our own modules inside functions, by file: they hide dependencies."""
    counts = Counter(name for name, _, _, inside in _own_imports(tree) if inside)
    return dict(counts)


LIMITS = {
    "wide": (wide, "{figure} lines are wider than {limit} characters"),
    "long": (long, "{figure} lines, a file of this kind should have at most {limit}: it probably has two subjects"),
    "inner_imports": (inner_imports, "{figure} imports of our own modules inside functions"),
}


def limits(tree):
    """Files beyond a limit that are not exceptions or exceed their exception."""
    allowed = tree.exceptions()
    found = []
    for rule, (measure, text) in LIMITS.items():
        bounds = {"wide": WIDTHS, "long": LENGTHS}.get(rule, {})
        for name, figure in measure(tree).items():
            if figure > allowed.get((rule, name), 0):
                before = f"; {EXCEPTIONS} allows {allowed[rule, name]}" if (rule, name) in allowed else ""
                found.append(f"{name}: {text.format(figure=figure, limit=bounds.get(Path(name).suffix))}{before}")
    return found


def shrink(tree):
    """Lowers the exceptions to the present figures, and drops those no longer needed; returns how many changed."""
    allowed = tree.exceptions()
    kept = {}
    for rule, (measure, _) in LIMITS.items():
        present = measure(tree)
        for (listed_rule, name), figure in allowed.items():
            if listed_rule == rule and name in present:
                kept[rule, name] = min(figure, present[name])
    lines = ["# Files beyond a limit of lint.py: rule, file, figure. The figures may only fall; ./run lint --shrink lowers them."]
    lines += [f"{rule} {name} {figure}" for (rule, name), figure in sorted(kept.items())]
    (tree.root / EXCEPTIONS).write_text("\n".join(lines) + "\n")
    return sum(kept.get(key) != figure for key, figure in allowed.items())


# ---- rules without exceptions: each returns its complaints as lines ----

def room_order(tree):
    """The rooms of src/ in CONTRIBUTING.md's order, the lowest first."""
    line = re.search(r"in this order of `src`:\n(.*)\.\n", tree.text("CONTRIBUTING.md"))
    return re.findall(r"`(\w+)`", line.group(1))


def folder_order(tree):
    """The folders of rooms that are ordered too, as room/folder."""
    line = re.search(r"So do these folders of one room:\n(.*)\.\n", tree.text("CONTRIBUTING.md"))
    return re.findall(r"`(\w+/\w+)`", line.group(1)) if line else []


def rooms(tree):
    """Includes of rooms, or of folders of the same room, that come later in CONTRIBUTING.md's order, or that its table also forbids."""
    order = room_order(tree)
    rows = re.findall(r"^\| `src/(\w+)` \|.*\| ([^|]*) \|$", tree.text("CONTRIBUTING.md"), re.MULTILINE)
    besides = {room: set(re.findall(r"`(\w+)`", cell)) for room, cell in rows}
    present = {name.split("/")[1] for name in tree.files(*CPP, under="src/")}
    found = [f"CONTRIBUTING.md: the order of rooms must name {room} once" for room in sorted(present | set(order))
             if order.count(room) != 1 or room not in present]
    inner = folder_order(tree)
    found += [f"CONTRIBUTING.md: there is no src/{folder}" for folder in inner if not tree.files(*CPP, under=f"src/{folder}/")]
    for name in tree.files(*CPP, under="src/"):
        room, folder = name.split("/")[1], "/".join(name.split("/")[1:3])
        if room not in order:
            continue
        if folder in inner:
            later = {other for other in inner[inner.index(folder) + 1:] if other.startswith(room + "/")}
            found += [f"{name}: includes {included}, which {folder} may not" for included in INCLUDE.findall(tree.text(name))
                      if "/".join(included.split("/")[:2]) in later]
        allowed = set(order[:order.index(room) + 1]) - besides.get(room, set())
        found += [f"{name}: includes {included}, which {room} may not" for included in INCLUDE.findall(tree.text(name))
                  if "/" in included and included.split("/")[0] in set(order) - allowed]
    return found


def crowded(tree):
    """Folders of src and of tests with more files than a reader can survey."""
    counts = Counter(name.rpartition("/")[0] for name in tree.names if name.startswith(("src/", "tests/", "python/tests/")))
    return [f"{folder}: {count} files, a folder should hold at most {FOLDER}: it probably has two subjects"
            for folder, count in sorted(counts.items()) if count > FOLDER]


def defined_elsewhere(tree):
    """Functions that one room declares and another defines."""
    return definitions.defined_elsewhere({name: tree.text(name) for name in tree.files(*CPP, under="src/")})


def compiler_folders(tree):
    """Includes of folders of the CPU compiler that come later in docs/cpu.md's table."""
    under = "src/backends/cpu/"
    files = tree.files(*CPP, under=under)
    order = re.findall(r"^\| `(\w+)` \|", tree.text("docs/cpu.md"), re.MULTILINE) if files else []
    found = [f"docs/cpu.md: the table of folders must name {folder} once" for folder in sorted({name.split("/")[3] for name in files})
             if order.count(folder) != 1]
    for name in files if not found else []:
        later = order[order.index(name.split("/")[3]) + 1:]
        found += [f"{name}: includes {included}, which stands later in docs/cpu.md" for included in INCLUDE.findall(tree.text(name))
                  if included.startswith("backends/cpu/") and included.split("/")[2] in later]
    return found


def import_circles(tree):
    """Modules of python/capibara that import each other, inside functions too."""
    below = {}
    for name, _, imported, _ in _own_imports(tree):
        below.setdefault(name, set()).add(imported)
    found, state = [], {}

    def visit(name, path):
        if state.get(name) == "done":
            return
        if name in path:
            found.append(" -> ".join([*path[path.index(name):], name]))
            return
        for other in sorted(below.get(name, ())):
            visit(other, [*path, name])
        state[name] = "done"

    for name in sorted(below):
        visit(name, [])
    return found


def unused_names(tree):
    """Imports and local variables that nothing reads, and private functions and classes that no file names."""
    words = Counter(word for name in tree.files(".py", *CPP) for word in re.findall(r"\w+", tree.text(name)))
    found = []
    for name in tree.files(".py"):
        module, lines = tree.module(name), tree.text(name).splitlines()
        read = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
        texts = {word for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)
                 for word in re.findall(r"\w+", node.value)}  # __all__, annotations in quotes
        for node in ast.walk(module):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
                if any("noqa" in line for line in lines[node.lineno - 1:node.end_lineno]):
                    continue
                bound = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
                found += [f"{name}:{node.lineno}: {one} is imported and not used" for one in sorted(bound - read - texts - {"*"})]
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found += [f"{name}:{line}: {one} is assigned and not used" for one, line in _unread_locals(node)
                          if "noqa" not in lines[line - 1]]
        found += [f"{name}:{node.lineno}: {node.name} is not used" for node in module.body
                  if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name.startswith("_") and not node.name.startswith("__")
                  and words[node.name] == 1 and not node.decorator_list]
    return list(dict.fromkeys(found))  # nested functions are visited twice


def _unread_locals(function):
    """(name, line) of plain assignments in a function whose value nothing reads."""
    stored, other = {}, set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            stored.setdefault(node.targets[0].id, node.lineno)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            stored.setdefault(node.name, node.lineno)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            other.update(node.names)
        elif isinstance(node, ast.ClassDef):  # its assignments are attributes
            other.update(target.id for one in ast.walk(node) if isinstance(one, ast.Assign) for target in one.targets
                         if isinstance(target, ast.Name))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            other.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            other.add(node.target.id)
    return [(name, line) for name, line in stored.items() if name not in other and not name.startswith("_") and "locals" not in other]


def shell_syntax(tree):
    """Syntax errors reported by bash."""
    scripts = [name for name in tree.names if name.endswith(".sh") or ("." not in Path(name).name and "bash" in tree.text(name)[:40])]
    found = []
    for name in scripts:
        checked = subprocess.run(["bash", "-n", name], cwd=tree.root, capture_output=True, text=True)
        found += checked.stderr.splitlines() if checked.returncode else []
    return found


RULES = {"limits": limits, "rooms": rooms, "crowded": crowded, "defined elsewhere": defined_elsewhere, "compiler folders": compiler_folders,
         "import circles": import_circles, "unused names": unused_names, "shell syntax": shell_syntax}


def layout_of_changes(tree, base="main"):
    """C++ lines changed since the branch left `base` that clang-format would change.

    Only changed lines: two thirds of the files are not laid out by clang-format throughout. None where it is not installed.
    """
    if not shutil.which("clang-format"):
        return []
    left = subprocess.run(["git", "merge-base", base, "HEAD"], cwd=tree.root, capture_output=True, text=True)
    if left.returncode:
        return []  # a clone without that branch
    changes = subprocess.run(["git", "diff", "-U0", "-M", left.stdout.strip(), "--", *(f"*{suffix}" for suffix in CPP)],
                             cwd=tree.root, capture_output=True, text=True, check=True).stdout
    name, spans = None, {}
    for line in changes.splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        elif name and (hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)) and hunk[2] != "0":
            spans.setdefault(name, []).append((int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1) - 1))
    found = []
    for name, lines in spans.items():
        laid_out = subprocess.run(["clang-format", *(f"--lines={first}:{last}" for first, last in lines), name], cwd=tree.root,
                                  capture_output=True, text=True).stdout
        if laid_out != tree.text(name):
            chosen = " ".join(f"--lines={first}:{last}" for first, last in lines)
            found.append(f"{name}: changed lines are not laid out as .clang-format says; clang-format -i {chosen} {name}")
    return found


def _own_imports(tree):
    """(file, line, imported file, whether inside a function) of every import of one module of python/capibara by another."""
    files = {}
    for name in tree.files(".py", under="python/capibara/"):
        path = name.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        files[path] = name

    def nearest(path):
        while path and path not in files:
            path = path.rpartition(".")[0]
        return files.get(path)

    def walk(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((child.lineno, nearest(alias.name), inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from ((child.lineno, nearest(f"{child.module}.{alias.name}"), inside) for alias in child.names)
            else:
                yield from walk(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    for name in files.values():
        for line, imported, inside in walk(tree.module(name), False):
            if imported and imported != name:
                yield name, line, imported, inside


def main():
    parser = argparse.ArgumentParser(prog="./run lint", description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", action="store_true", help="lower the figures of the exceptions to what is there")
    tree = Tree()
    if parser.parse_args().shrink:
        print(f"{shrink(tree)} exceptions changed in {EXCEPTIONS}")
        tree = Tree()
    count = 0
    for rule, check in {**RULES, "layout of changes": layout_of_changes}.items():
        found = check(tree)
        count += len(found)
        for line in found:
            print(f"{rule}: {line}")
    print(f"lint: {count} findings" if count else "lint: nothing found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
