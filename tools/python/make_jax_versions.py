"""Writes python/capibara/jax/_versions.json: the versions in which jax added and removed its public names, read from its tags.

usage: python3 tools/python/make_jax_versions.py GIT_DIRECTORY_OF_JAX

Public names are those that the ledger's modules define or import without a leading underscore, and those that their deprecation tables
still resolve. Names that jax 0.10.2 has are in the ledger: of these the file holds only those added after 0.4.20.
"""
import ast
import json
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "python/capibara/jax"
FIRST, LAST = (0, 4, 20), (0, 10, 2)
IMPORTED = {"annotations", "typing", "os", "sys", "np", "partial", "functools", "core", "api", "traceback_util", "deprecations", "jax",
            "Any", "itertools"}


def git(folder, *arguments):
    return subprocess.run(["git", f"--git-dir={folder}", *arguments], capture_output=True, text=True)


def source(folder, version, module):
    path = "" if module == "jax" else "/" + module.replace(".", "/")
    for file in (f"jax{path}.py", f"jax{path}/__init__.py"):
        found = git(folder, "show", f"jax-v{version}:{file}")
        if found.returncode == 0:
            return found.stdout
    return None


def bound(body):
    """Names that statements bind, including those inside `if` and `try`; names in deprecation tables are returned separately."""
    names, gone, answered = set(), set(), set()
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
            if any(isinstance(target, ast.Name) and target.id == "_deprecations" for target in targets):
                for key, value in zip(node.value.keys, node.value.values):
                    removed = isinstance(value, ast.Tuple) and isinstance(value.elts[1], ast.Constant) and value.elts[1].value is None
                    (gone if removed else answered).add(key.value)
        elif isinstance(node, ast.Delete):
            gone.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.If, ast.Try)):
            if "TYPE_CHECKING" in ast.dump(node.test if isinstance(node, ast.If) else ast.Constant(0)):
                continue  # seen by type checkers only
            for part in (node.body, node.orelse):
                inner = bound(part)
                names |= inner[0]
                gone |= inner[1]
                answered |= inner[2]
    return names, gone, answered


def public_names(folder, version, modules):
    found = set()
    for module in modules:
        text = source(folder, version, module)
        if text is None:
            continue
        names, gone, answered = bound(ast.parse(text).body)
        found.update(f"{module}.{name}" for name in (names - gone) | answered
                     if not name.startswith("_") and name not in IMPORTED)
    return found


def main(folder):
    tags = re.findall(r"^jax-v(\d+\.\d+\.\d+)$", git(folder, "tag").stdout, re.MULTILINE)
    versions = sorted((tuple(map(int, tag.split("."))) for tag in tags))
    versions = [".".join(map(str, version)) for version in versions if FIRST <= version <= LAST]
    ledger = {f"{module}.{name}" for module, names in json.loads((FOLDER / "_ledger.json").read_text()).items() for name in names}
    modules = sorted({name.rpartition(".")[0] for name in ledger} - {"checkpoint_policies"})
    had = {version: public_names(folder, version, modules) for version in versions}
    newest = had[versions[-1]]
    since = {name: next(v for v in versions if name in had[v]) for name in sorted(ledger & newest) if name not in had[versions[0]]}
    removed = sorted(set().union(*had.values()) - newest - ledger)
    spans = {}
    for name in removed:
        own = [version for version in versions if name in had[version]]
        spans[name] = [own[0], own[-1]] if own[0] != versions[0] else [own[-1]]
    (FOLDER / "_versions.json").write_text(json.dumps(
        {"versions": versions, "since": _by_version(since), "until": _by_version(spans)}, indent=0) + "\n")
    print(f"{len(versions)} versions, {len(since)} names came later, {len(spans)} went; of the ledger {len(ledger - newest)} not read")
    print(sorted(ledger - newest)[:40])


def _by_version(table):
    """{"0.4.26": "a b c"}; for names that were added and removed, {"0.4.26-0.5.0": ...}."""
    grouped = {}
    for name, span in table.items():
        grouped.setdefault(span if isinstance(span, str) else "-".join(span), []).append(name)
    return {version: " ".join(names) for version, names in sorted(grouped.items())}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
