"""The programs of the users' pages run as printed there, and print the comments after `print` and `std::cout`.

A page's blocks before its first section belong to every section; the blocks of a section, concatenated, are one program. In C++
the statements become a function, and definitions are moved out of it. A block that is not a program (a command, an excerpt) is not
marked `python` or `cpp` on these pages.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(BUILD / "capibara"))
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("start", "tour", "guides", "coming-from", "sharp-bits")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python")), "JAX_NUM_CPU_DEVICES": "8",
               "JAX_PLATFORMS": "cpu"}


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def sections(page, language):
    """{title: blocks}; each begins with the blocks before the first title."""
    head, *parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    shared = blocks(head, language)
    return {part.partition("\n")[0]: [*shared, *blocks(part, language)] for part in parts if blocks(part, language)}


def promised(text):
    """The promised output of printing statements: the comments after them."""
    return [match[1].strip() for match in re.finditer(r"^ *(?:print\(|std::cout\b).*?(?:  # |  // )(.*)$", text, re.MULTILINE)]


FLOAT = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def same(said, printed):
    """True if two lines are the same except for the last digits of floats, which differ between processors."""
    def words(text):
        return re.sub(r"\[ +", "[", " ".join(FLOAT.sub("#", text).split()))

    floats = [[float(number) for number in FLOAT.findall(text)] for text in (said, printed)]
    return words(said) == words(printed) and all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(*floats))


def missing(said, printed):
    """The first promised line that is not printed in order."""
    lines = iter(printed.splitlines())
    return next((line for line in said if not any(same(line, other) for other in lines)), None)


def run(command, folder):
    done = subprocess.run(list(map(str, command)), cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def run_cpp(text, folder, *options):
    """The output of a C++ program; skips if the build has no library to link with."""
    library = BUILD / "lib" / "libcapibara.a"
    if not library.exists():
        pytest.skip("the build has no static library")
    (folder / "program.cpp").write_text(text)
    run(["g++", "-std=c++20", "-O0", "-I", ROOT / "include", *options, "program.cpp", "-o", "program", library, "-ldl",
         f"-Wl,-rpath,{BUILD / 'lib'}"], folder)
    return run([folder / "program"], folder)


def taken_apart(block):
    """The definitions and the statements of a C++ block."""
    outside, inside, end = [], [], None
    for line in block.splitlines():
        starts = re.match(r"(?:struct|class|template|namespace|using|CAPIBARA_TREE|#include)\b"
                          r"|(?!(?:auto|for|if|while|try|return|const auto)\b)[\w:<>]+ \w+\(.*\) \{$", line)
        if end is None and starts:
            end = re.compile(r"\}" if line.rstrip().endswith("{") else "")
            outside.append(line)
            end = end if end.pattern else None
        elif end is not None:
            outside.append(line)
            end = None if end.match(line) else end
        else:
            inside.append(line)
    return "\n".join(outside), "\n".join(inside)


def whole_program(page):
    """A single C++ program for a page: a namespace for each section, called one after the other."""
    head, text, calls = [], [], []
    for number, (title, parts) in enumerate(sections(page, "cpp").items()):
        shared = len(blocks(re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[0], "cpp"))
        head = head or ["\n".join(parts[:shared])]
        outside, inside = zip(*map(taken_apart, parts[shared:]))
        text += [f"namespace section_{number} {{  // {title}", *outside, "void run() {", *inside, "}", "}"]
        calls.append(f"  std::cout << \"## {title}\\n\";\n  section_{number}::run();")
    return "\n".join([*head, *text, "int main() {", *calls, "}", ""])


def without_names(page, title):
    """A Python program with jax's module names."""
    return "\n".join(sections(page, "python")[title]).replace("capibara.jax", "jax")


BEYOND_JAX = re.compile(r"\bcapibara\b|\bprofiling\b|\bwrite_object\b")
PYTHON = [(page, title) for page in PAGES for title in sections(page, "python")]


@pytest.mark.parametrize("page, title", PYTHON, ids=lambda part: part.stem if isinstance(part, Path) else part)
def test_python_programs_print_what_the_page_says(page, title, tmp_path):
    program = "\n".join(sections(page, "python")[title])
    (tmp_path / "program.py").write_text(program)
    printed = run([sys.executable, "program.py"], tmp_path)
    assert missing(promised(program), printed) is None, printed


@pytest.mark.parametrize("page, title", [(page, title) for page, title in PYTHON if not BEYOND_JAX.search(without_names(page, title))],
                         ids=lambda part: part.stem if isinstance(part, Path) else part)
def test_jax_prints_it_too(page, title, tmp_path):
    pytest.importorskip("jax", reason="the peer jax is not installed")
    program = without_names(page, title)
    (tmp_path / "program.py").write_text(program)
    printed = run([sys.executable, "program.py"], tmp_path)
    assert missing(promised(program), printed) is None, printed


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if sections(page, "cpp")], ids=lambda page: page.stem)
def test_cpp_programs_print_what_the_page_says(page, tmp_path):
    text = whole_program(page)
    printed = run_cpp(text, tmp_path)
    assert missing(promised(text), printed) is None, printed


def test_a_line_that_is_not_printed_is_found():
    said = promised("print(1 + 1)  # 2\nstd::cout << 1 << \"\\n\";  // 1\nx = 1  # not this\n")
    assert said == ["2", "1"]
    assert missing(said, "2\nmore\n1\n") is None
    assert missing(said, "1\n2\n") == "1"
    assert same("[ 1.5  -0.1] x", "[1.5000001 -0.1] x") and not same("[1.5 -0.1]", "[1.5 0.1]") and not same("[1 2]", "[1 3]")


def test_definitions_are_taken_out_of_a_block():
    definitions = "struct P { Array w; };\nCAPIBARA_TREE(P, w)\nArray f(const P& p) {\n  return p.w;\n}"
    statements = "f({1.0f});\nfor (;;) {\n}"
    assert taken_apart(definitions + "\n" + statements + "\n") == (definitions, statements)


# ---- tables of names: both expressions of a row have the same value ----

VALUES = {"x": [[1, 2, 3], [4, 5, 6]], "w": [[1, -1], [0.5, 2], [-2, 0.25]], "v": [3, -1, 2], "i": [[0, 2, 1], [1, 0, 0]],
          "a": [[4, 1, 0], [1, 3, 0.5], [0, 0.5, 2]]}
HEADS = (("Python", "C++"), ("PyTorch", "Python", "C++"), ("MLX", "Python", "C++"), ("Eigen", "C++"))
TABLES = ROOT / "docs" / "coming-from.md"


def rows(*heads):
    """Rows of the page's tables with this head; all cells must be code."""
    head = "| " + " | ".join(heads) + " |"
    found = []
    for table in TABLES.read_text().split("\n" + head + "\n")[1:]:
        for line in table.splitlines()[1:]:
            if not line.startswith("|"):
                break
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert all(re.fullmatch(r"`[^`]+`", cell) for cell in cells) and len(cells) == len(heads), line
            found.append([cell[1:-1] for cell in cells])
    assert len(found) > 5
    return found


def test_every_table_has_rows():
    for heads in HEADS:
        rows(*heads)


# How to evaluate a row: the imports, and constructors of float and integer arrays.
JNP = ("jnp.array({}, 'float32')", "jnp.array({})")
MAKERS = {
    "Python": ("import capibara.jax as jax, capibara.jax.numpy as jnp\nfrom capibara.jax import lax", *JNP),
    "jax": ("import jax, jax.numpy as jnp\nfrom jax import lax", *JNP),
    "PyTorch": ("import torch", "torch.tensor({}, dtype=torch.float32)", "torch.tensor({})"),
    "MLX": ("import mlx.core as mx", "mx.array({}, mx.float32)", "mx.array({})"),
}


def evaluated(language, expressions, folder):
    """The shape and elements of each expression, computed by a program in this language."""
    imports, floats, integers = MAKERS[language]
    program = [imports, "import json, numpy"]
    for name, value in VALUES.items():
        program.append(f"{name} = {(integers if name == 'i' else floats).format(value)}")
    for expression in expressions:
        program.append(f"value = numpy.asarray({expression})\nprint(json.dumps([list(value.shape), value.ravel().tolist()]))")
    (folder / "names.py").write_text("\n".join(program) + "\n")
    return [json.loads(line) for line in run([sys.executable, "names.py"], folder).splitlines()]


def different(expressions, left, right):
    assert len(left) == len(right) == len(expressions)
    return [(text, a, b) for text, a, b in zip(expressions, left, right)
            if a[0] != b[0] or not all(abs(p - q) <= 1e-5 * max(1, abs(p)) for p, q in zip(a[1], b[1]))]


@pytest.mark.parametrize("peer", ["PyTorch", "MLX", "jax"])
def test_names_of_peers_mean_the_same(peer, tmp_path):
    pytest.importorskip({"PyTorch": "torch", "MLX": "mlx.core", "jax": "jax"}[peer], reason=f"{peer} is not installed")
    table = rows("Python", "C++") if peer == "jax" else rows(peer, "Python", "C++")
    theirs = evaluated(peer, [row[0] for row in table], tmp_path)
    ours = evaluated("Python", [row[0 if peer == "jax" else 1] for row in table], tmp_path)
    assert different(table, theirs, ours) == []


def literal(value):
    """A matrix or vector as a C++ initializer list."""
    return "{" + ", ".join(literal(item) if isinstance(item, list) else str(item) for item in value) + "}"


SHOW_ARRAYS = """
#include <iostream>
void show(const capibara::Array& value) {
  std::cout << "[[";
  for (int64_t axis = 0; axis < value.ndim(); ++axis) std::cout << (axis ? ", " : "") << value.shape(axis);
  std::cout << "], [";
  const auto elements = value.to_vector<double>();
  for (std::size_t k = 0; k < elements.size(); ++k) std::cout << (k ? ", " : "") << elements[k];
  std::cout << "]]" << std::endl;
}
"""


@pytest.mark.slow
def test_names_of_cpp_mean_the_same(tmp_path):
    table = [row[-2:] for heads in HEADS[:3] for row in rows(*heads)]
    made = [f"const Array {name} = array<{'int32_t' if name == 'i' else 'float'}>({literal(value)});" for name, value in VALUES.items()]
    head = "\n".join(blocks(TABLES.read_text().partition("\n## ")[0], "cpp"))
    program = [head, SHOW_ARRAYS, "int main() {", "std::cout.precision(9);", *made, *(f"show({row[1]});" for row in table), "}"]
    cpp = [json.loads(line) for line in run_cpp("\n".join(program) + "\n", tmp_path).splitlines()]
    assert different(table, evaluated("Python", [row[0] for row in table], tmp_path), cpp) == []


@pytest.mark.slow
def test_names_of_eigen_mean_the_same(tmp_path):
    eigen = Path(os.environ.get("CAPIBARA_EIGEN", "/usr/include/eigen3"))
    if not eigen.exists():
        pytest.skip("no Eigen is installed; CAPIBARA_EIGEN=FOLDER names one")
    table = rows("Eigen", "C++")
    ours = [f"const Array {name} = array<{'int32_t' if name == 'i' else 'float'}>({literal(value)});" for name, value in VALUES.items()]
    theirs = []
    for name, value in VALUES.items():
        shape = (len(value), len(value[0]) if isinstance(value[0], list) else 1)
        flat = [item for part in value for item in (part if isinstance(part, list) else [part])]
        kind = "VectorXf" if shape[1] == 1 else "MatrixXf"
        theirs.append(f"{kind} {name}{shape if shape[1] > 1 else f'({shape[0]})'}; {name} << {', '.join(map(str, flat))};")
    show = """
    #include <Eigen/Dense>
    template <class T> void show_matrix(const T& value) {
      const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> m = [&] {
        if constexpr (std::is_arithmetic_v<T>) return Eigen::MatrixXd::Constant(1, 1, value).eval();
        else return value.template cast<double>().eval();
      }();
      std::cout << "[[], [";
      for (Eigen::Index k = 0; k < m.size(); ++k) std::cout << (k ? ", " : "") << m.data()[k];
      std::cout << "]]" << std::endl;
    }
    """
    head = "\n".join(blocks(TABLES.read_text().partition("\n## ")[0], "cpp"))
    theirs += [f"show_matrix({row[0]});" for row in table]
    ours += [f"show({row[1]});" for row in table]
    program = [head, SHOW_ARRAYS, show, "void theirs() {", "using namespace Eigen;", *theirs, "}",
               "int main() {", "std::cout.precision(9);", "theirs();", *ours, "}"]
    lines = [json.loads(line) for line in run_cpp("\n".join(program) + "\n", tmp_path, "-I", eigen).splitlines()]
    without_shapes = [[[[], values] for _, values in part] for part in (lines[:len(table)], lines[len(table):])]
    assert different(table, *without_shapes) == []


# ---- excerpts: blocks of other pages, which run on values that are made here ----

NAMES = "import capibara.jax as jax\nimport capibara.jax.numpy as jnp\nfrom capibara.jax import lax\nfrom capibara import kernels\n"
KEYED = NAMES + "key = jax.random.key(0)\nnormal = lambda *shape: jax.random.normal(key, shape)\n"
SHARDED = NAMES + "from capibara.jax.sharding import NamedSharding, PartitionSpec as P\n"
# A server on a free port, to which the page's address leads.
SERVED = """import atexit, os, pathlib, re, subprocess
import openai
command = os.environ["CAPIBARA_COMMAND"]
pathlib.Path("novels.txt").write_text("It is a truth that is known. " * 200)
subprocess.run([command, "train", "novels.txt", "--folder", "novels", "--steps", "2", "--width", "16", "--heads", "2", "--hidden", "16",
                "--layers", "attention+mlp", "--batch", "2", "--length", "16"], check=True, capture_output=True)
server = subprocess.Popen([command, "serve", "novels", "--port", "0"], stdout=subprocess.PIPE, text=True)
atexit.register(server.kill)
address = re.search(r"http://\\S+/v1", server.stdout.readline())[0]
client_class = openai.OpenAI
openai.OpenAI = lambda base_url, api_key: client_class(base_url=base_url.replace("http://127.0.0.1:8000/v1", address), api_key=api_key)
"""
EXCERPTS = {
    ("README.md", ""): "",
    ("docs/kernels.md", ""): KEYED + "x, scale, bias = normal(3, 8), normal(8), normal(8)\n",
    ("docs/kernels.md", "Attention"):
        KEYED + "q = k = v = normal(1, 2, 256, 16)\nattention_mask = jnp.ones((1, 1, 256, 256), bool)\n"
                "bias = normal(1, 2, 256, 256)\nids = jnp.zeros((1, 256), jnp.int32)\n",
    ("docs/kernels.md", "Mixtures of experts"):
        KEYED + "tokens, gate = normal(64, 16), normal(16, 32)\nup = gate_weights = normal(32, 16, 24)\ndown = normal(32, 24, 16)\n"
                "x, weights, group_sizes = normal(6, 16), normal(3, 16, 5), jnp.array([1, 2, 3])\n",
    ("docs/kernels.md", "Vector quantization"): KEYED + "inputs, codebook = normal(2000, 4), normal(16, 4)\n",
    ("docs/kernels.md", "Spiking neurons"): KEYED + "inputs = normal(10, 3)\n",
    ("docs/kernels.md", "Recurrences"):
        KEYED + "u = delta = z = normal(2, 128, 4)\nA, D, A_heads = -jnp.exp(normal(4, 3)), normal(4), -jnp.exp(normal(4))\n"
                "B = C = normal(2, 128, 3)\nB_groups = C_groups = normal(2, 128, 1, 3)\n"
                "ids = jnp.zeros((2, 128), jnp.int32)\n"
                "x, dt, a, b = normal(2, 128, 4, 8), jnp.abs(normal(2, 128, 4)), normal(5, 2), normal(5, 2)\n",
    ("docs/models.md", ""): "",
    ("docs/processes.md", ""): "import numpy as np\ngrads = np.ones(3)\n",
    ("docs/python.md", ""): "",
    ("docs/serving.md", ""): SERVED,
    ("docs/sharding.md", ""): SHARDED + "batch = jnp.ones((8, 4))\nstep = lambda w, x: lax.psum((w * x).sum(), 'data')\n",
    ("docs/sharding.md", "Models on meshes"): SHARDED + "params = {'attention': {'query': {'kernel': jnp.ones((16, 16))}}}\n",
    ("docs/sharding.md", "Explicit axes: shardings in types"):
        SHARDED + "batch, w = jnp.ones((8, 4)), jnp.ones((4, 2))\ng = lambda x: x * 2\n",
    ("docs/training.md", "On several devices"):
        "import numpy as np\nfrom capibara import training\n"
        "model = training.LanguageModel(vocabulary=64, width=32, layers=['attention+mlp'])\n"
        "tokens = np.zeros((8, 65), np.int32)\n",
}


def excerpts(file, language):
    """{title: text} of the parts of a page that have blocks; the title of what is before the first section is empty."""
    head, *parts = re.split(r"^## ", (ROOT / file).read_text(), flags=re.MULTILINE)
    named = {"": head, **{part.partition("\n")[0]: part for part in parts}}
    return {title: "".join(blocks(part, language)) for title, part in named.items() if blocks(part, language)}


def pages_with(language):
    files = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")) if path not in PAGES)]
    return {(file, title) for file in files for title in excerpts(file, language)}


def test_every_block_of_python_on_every_page_runs():
    assert pages_with("python") == set(EXCERPTS)


@pytest.mark.parametrize("file, title", EXCERPTS)
def test_excerpts_in_python_run(file, title, tmp_path):
    (tmp_path / "program.py").write_text(EXCERPTS[file, title] + excerpts(file, "python")[title])
    processes = [COMMAND, "launch", "-n", 2, "--"] if "distributed.initialize" in excerpts(file, "python")[title] else []
    if processes and not shutil.which("mpirun"):
        pytest.skip("no mpirun")
    run([*processes, sys.executable, "program.py"], tmp_path)


EXCERPTS_CPP = {
    ("README.md", ""): "",
    ("docs/kernels.md", ""): "Array x = jnp::ones({3, 8}), scale = jnp::ones({8}), bias = jnp::ones({8});\n",
    ("docs/models.md", ""): "",
    ("docs/sharding.md", ""): "Array batch = jnp::ones({8, 4});\n"
                              "auto step = [](const Arrays& in) { return Arrays{lax::psum(jnp::sum(in[0] * in[1]), {\"data\"})}; };\n",
    ("docs/sharding.md", "Explicit axes: shardings in types"): "Array y = jnp::ones({8, 4});\n",
    ("docs/training.md", "On several devices"): "const training::LanguageModel model({.vocabulary = 64, .width = 32});\n",
}


def test_every_block_of_cpp_on_every_page_runs():
    assert pages_with("cpp") == set(EXCERPTS_CPP)


@pytest.mark.slow
def test_excerpts_in_cpp_run(tmp_path):
    text, calls, included = [], [], {"#include <capibara/capibara.h>", "#include <capibara/training.h>", "#include <iostream>"}
    for number, ((file, title), values) in enumerate(EXCERPTS_CPP.items()):
        excerpt = excerpts(file, "cpp")[title]
        included |= set(re.findall(r"^#include .*", excerpt, re.MULTILINE))
        outside, inside = taken_apart(re.sub(r"^#include .*\n|^namespace (?:jax|lax) = .*\n", "", excerpt, flags=re.MULTILINE))
        text += [f"namespace excerpt_{number} {{  // {file}, {title}", outside, "void run() {", values + inside, "}", "}"]
        calls.append(f"  excerpt_{number}::run();")
    names = "using namespace capibara;\nnamespace jnp = jax::numpy;\nnamespace lax = jax::lax;\n"
    run_cpp("\n".join([*sorted(included), names, *text, "int main() {", *calls, "}", ""]), tmp_path)
