"""The rules of ./run lint hold for this tree, and each rule finds its violations."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "check"))
import lint  # noqa: E402

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the tree is no git repository")
CONTRIBUTING = """A room includes only rooms that stand before it in this order of `src`:
`array`, `backends`, `library`.

| folder | what it holds | besides |
|---|---|---|
| `src/array` | arrays | |
| `src/library` | functions | `backends` |
"""


@pytest.mark.parametrize("rule", lint.RULES)
def test_the_tree_keeps(rule):
    assert not lint.RULES[rule](lint.Tree())


@pytest.fixture
def planted(tmp_path):
    """Makes a small tree from {path: text}."""
    def plant(files):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return lint.Tree(tmp_path)
    return plant


def test_wide_lines_and_long_files_are_found_beyond_their_exceptions(planted):
    most = lint.LENGTHS[".h"]
    files = {"src/array/a.cpp": "// " + "x" * 120 + "\n", "src/array/b.h": "\n" * (most + 1), "src/array/c.cpp": "\n" * (most + 1)}
    assert len(lint.limits(planted(files))) == 2
    assert not lint.limits(planted({lint.EXCEPTIONS: f"wide src/array/a.cpp 1\nlong src/array/b.h {most + 1}\n"}))
    assert len(lint.limits(planted({"src/array/b.h": "\n" * (most + 2)}))) == 1


def test_exceptions_only_shrink(planted):
    most = lint.LENGTHS[".h"]
    tree = planted({"src/array/a.cpp": "// " + "x" * 120 + "\n", "src/array/b.h": "\n" * (most + 10), "src/array/c.h": "\n" * 10,
                    lint.EXCEPTIONS: "wide src/array/a.cpp 3\n" f"long src/array/b.h {most + 5}\nlong src/array/c.h {most + 20}\n"})
    lint.shrink(tree)
    assert lint.Tree(tree.root).exceptions() == {("wide", "src/array/a.cpp"): 1, ("long", "src/array/b.h"): most + 5}


@pytest.mark.parametrize("name, included, wrong", [
    ("src/array/a.cpp", "backends/b.h", True),    # comes later
    ("src/backends/b.cpp", "array/a.h", False),
    ("src/library/c.cpp", "backends/b.h", True),  # also forbidden by the table
    ("src/library/c.cpp", "array/a.h", False),
    ("src/array/a.cpp", "array", False),          # from the standard library
])
def test_rooms_include_only_rooms_before_them(planted, name, included, wrong):
    files = {f"src/{room}/x.h": "" for room in ("array", "backends", "library")}
    tree = planted({**files, "CONTRIBUTING.md": CONTRIBUTING, name: f'#include "{included}"\n'})
    assert bool(lint.rooms(tree)) == wrong


@pytest.mark.parametrize("included, wrong", [("backends/loops/l.h", False), ("backends/cpu/c.h", True), ("backends/other/o.h", False)])
def test_folders_of_a_room_may_have_an_order_too(planted, included, wrong):
    files = {f"src/{path}": "" for path in ("array/x.h", "library/x.h", "backends/loops/l.h", "backends/cpu/c.h", "backends/other/o.h")}
    order = "So do these folders of one room:\n`backends/loops`, `backends/cpu`.\n"
    tree = planted({**files, "CONTRIBUTING.md": CONTRIBUTING + order, "src/backends/loops/m.cpp": f'#include "{included}"\n'})
    assert bool(lint.rooms(tree)) == wrong


def test_crowded_folders_are_found(planted):
    files = {f"src/array/{number}.h": "" for number in range(lint.FOLDER)}
    assert not lint.crowded(planted({**files, "src/array/deeper/x.h": ""}))
    assert len(lint.crowded(planted({"src/array/x.h": ""}))) == 1


def test_every_room_is_in_the_order(planted):
    files = {f"src/{room}/x.h": "" for room in ("array", "backends", "library", "new")}
    assert lint.rooms(planted({**files, "CONTRIBUTING.md": CONTRIBUTING})) == ["CONTRIBUTING.md: the order of rooms must name new once"]


@pytest.mark.parametrize("defining, text, wrong", [
    ("array", "int f(int x, Options o) { return x; }", False),
    ("library", "int f(int x, Options o) { return x; }", True),
    ("library", "namespace { int f(int x) { return x; } }", False),  # another f, local to that file
    ("library", "namespace cpu { int f() { return 1; } }", False),
    ("assembly", "int f(int x, Options o) { return x; }", False),
    ("library", "int Shape::rank() const { return 1; }", True),
    ("array", "int Shape::rank() const { return 1; }", False),
    ("library", "struct Table { int f() { return 1; } };\nint g = f(1);", False),
])
def test_functions_are_defined_in_the_room_of_their_header(planted, defining, text, wrong):
    header = "namespace capibara {\nclass Shape { int rank() const; };\nint f(int x, Options o = {});  // not f() {\n}\n"
    source = f'#define F() {{\nnamespace capibara {{\nconst char* t = "{{";\n{text}\n}}\n'
    tree = planted({"src/array/a.h": header, f"src/{defining}/b.cpp": source})
    assert bool(lint.defined_elsewhere(tree)) == wrong


def test_folders_of_the_cpu_compiler_include_only_those_above_them(planted):
    files = {"docs/cpu.md": "| folder | what |\n|---|---|\n| `loops` | a |\n| `driver` | b |\n",
             "src/backends/cpu/driver/d.h": '#include "backends/cpu/loops/l.h"\n'}
    assert not lint.compiler_folders(planted({**files, "src/backends/cpu/loops/l.h": '#include "backends/cpu/loops/m.h"\n'}))
    assert len(lint.compiler_folders(planted({"src/backends/cpu/loops/l.h": '#include "backends/cpu/driver/d.h"\n'}))) == 1
    assert lint.compiler_folders(planted({"src/backends/cpu/new/n.h": ""})) == ["docs/cpu.md: the table of folders must name new once"]


def test_circles_of_imports_are_found_inside_functions_too(planted):
    files = {"python/capibara/__init__.py": "", "python/capibara/a.py": "from capibara import b\n",
             "python/capibara/b.py": "def f():\n    from capibara.a import g\n    return g\n"}
    tree = planted(files)
    assert lint.import_circles(tree) == ["python/capibara/a.py -> python/capibara/b.py -> python/capibara/a.py"]
    assert lint.inner_imports(tree) == {"python/capibara/b.py": 1}


def test_unused_names_are_found(planted):
    text = ("import os\nimport sys  # noqa: F401\nimport re\n\n\ndef f():\n    kept, lost = 1, 2\n    unread = re.escape('a')\n"
            "    return kept\n\n\ndef _dead():\n    pass\n")
    assert [line.split(" ")[1] for line in lint.unused_names(planted({"a.py": text}))] == ["os", "unread", "_dead"]


def test_shell_that_does_not_parse_is_found(planted):
    assert not lint.shell_syntax(planted({"a.sh": "if true; then echo; fi\n"}))
    assert lint.shell_syntax(planted({"a.sh": "if true; then echo\n"}))


@pytest.mark.skipif(not shutil.which("clang-format"), reason="clang-format is not installed")
def test_layout_of_changed_lines_alone_is_checked(planted):
    tree = planted({"a.cpp": "int  a;\nint b;\n", ".clang-format": "BasedOnStyle: Google\n"})
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", tree.root]
    subprocess.run([*commit, "checkout", "-q", "-b", "main"], check=True)
    subprocess.run([*commit, "add", "."], check=True)
    subprocess.run([*commit, "commit", "-q", "-m", "start"], check=True)
    assert not lint.layout_of_changes(planted({"a.cpp": "int  a;\nint c;\n"}))
    assert lint.layout_of_changes(planted({"a.cpp": "int  a;\nint  c;\n"}))
