"""A type checker accepts the examples, the README and every call that the library accepts, and finds mistakes."""
import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

core = pytest.importorskip("capibara._core", reason="the Python extension is not built, which writes the stubs")
ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(core.__file__).parent  # in the build: stubs next to the extension, modules as links
TYPES = pathlib.Path(__file__).parent / "types"
CASES = ROOT / "tests" / "differential"

# The share of uninformative types in signatures. It may only fall: lower it when it does.
MOST_ANY = 0.073


def mypy(*arguments, tool="mypy"):
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-W", "ignore", "-m", tool, *arguments]
    variables = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT, env=variables)


def errors_of(*files):
    """mypy's output for files, without notes."""
    done = mypy("--config-file", TYPES / "mypy.ini", "--cache-dir", ROOT / "build" / "mypy", "--no-error-summary", *files)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def snippets(page):
    """The Python programs of a page that are complete on their own."""
    return [block for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S) if "import capibara" in block]


def test_examples_readme_and_expectations(tmp_path):
    files = [*sorted((ROOT / "examples").glob("*.py")), TYPES / "expectations.py"]
    programs = snippets(ROOT / "README.md")
    assert programs and len(files) > 8
    for i, text in enumerate(programs):
        files.append(tmp_path / f"readme_{i}.py")
        files[-1].write_text(text)
    assert errors_of(*files) == []


def test_the_stubs_themselves(tmp_path):
    assert (PACKAGE / "py.typed").exists()  # without it checkers ignore the stubs of an installed package
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n")
    done = mypy("--config-file", config, "--cache-dir", ROOT / "build" / "mypy_strict", "--follow-imports=silent", "--no-error-summary",
                *sorted(PACKAGE.rglob("*.pyi")))
    assert done.stdout + done.stderr == ""


# Where a stub declares more than the class at run time, or less than the object: all other findings of `stubtest` are mistakes.
KNOWN = (
    r"metaclass differs$",  # of classes of the extension
    r"disjoint base",
    r"(_core\.Array|numpy\.ndarray)\.\w+ is inconsistent, .*\"(a|arr|x|mod)\"",  # functions whose first parameter is the array
    r"_core\.Array\.(block_until_ready|copy_to_host_async) is not present",  # only arrays with values have them
    r"_core\.\w+\.(__get__|__init__|__new__|from_node_data_and_children)",
    r"numpy\.ndarray\.(__init__|__new__|__or__|__ror__) is inconsistent",  # users do not construct these; classes have their own |
    r"_stub_types failed to import",
    r"is not present at runtime$",  # attributes added by another module, or common to all subclasses
    r"numpy\.\w+ variable differs from runtime type capibara\.jax\.numpy\._ufuncs\.ufunc",  # all ufuncs have one class
    r"lax\.\w+ is inconsistent, stub does not have \*",  # collectives forward their arguments
    r"(Device|Memory|Error|_Grid|_Join)\.__init__",  # classes that users do not construct
    r"stub is a staticmethod but runtime is not$",  # of the extension, whose functions are not methods
    r"is not a function$",  # it is an object of the extension, or a partial
    r"debug\.log is ",
    r"checkify\.ErrorCategory is not a recognised type alias",
)


@pytest.mark.slow
@pytest.mark.long
def test_stubs_written_by_hand_describe_what_is_there(tmp_path):
    pytest.importorskip("capibara._core", reason="the Python extension is not built")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-capibara.*]\nignore_errors = True\n")
    done = mypy("--concise", "--ignore-missing-stub", "--mypy-config-file", config, "capibara", tool="mypy.stubtest")
    bare = [path for path in PACKAGE.rglob("*.py") if path.stem != "__init__" and not path.with_suffix(".pyi").exists()]
    others = tuple(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) + "." for path in bare)  # modules without a stub
    lines = [line for line in done.stdout.splitlines() if not line.startswith(others)]
    found = [line for line in lines if not any(re.search(known, line) for known in KNOWN)]
    assert found == [] and "capibara._core.Array" in done.stdout, "\n".join(found) + done.stderr


# ---- how informative the signatures are ------------------------------------------------------------------------------


def annotations(path):
    """The types in the signatures of a module's public functions and methods: None if there is none."""
    found = []

    def visit(body):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                visit(node.body)
            elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name in ("__init__", "__call__")):
                arguments = node.args
                named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
                found.extend(a.annotation for a in named if a and a.arg not in ("self", "cls"))
                found.append(node.returns)

    visit(ast.parse(path.read_text()).body)
    return found


def public_modules():
    """The stub of each public module, or the module itself if it has none."""
    for path in sorted(PACKAGE.rglob("*.py*")):
        parts = path.relative_to(PACKAGE).parts
        hand_written = path.suffix == ".py" and not path.with_suffix(".pyi").exists()
        private = any(part.startswith("_") and not part.startswith("__") for part in parts) and path.suffix == ".py"
        if path.suffix == ".pyi" or hand_written and not private:
            yield path


def test_few_signatures_say_nothing():
    silent = total = 0
    for path in public_modules():
        for annotation in annotations(path):
            total += 1
            silent += annotation is None or ast.unparse(annotation) in ("Any", "PyTree")
    assert total > 5000
    assert silent / total <= MOST_ANY, f"{silent} of {total} types in signatures are Any or missing"


# ---- every call that the library accepts -----------------------------------------------------------------------------


# Calls that work, here and in jax, although jax's own type annotations do not allow them.
LOOSE = {
    "jax.lax.dot(an_array, an_array, dimension_numbers=((0, 0), ((), ())))",
    "jax.lax.dot_general(an_array, an_array, ((1, 1), ((), ())))",
    "jax.lax.full(3, 1.0)",
    "jax.lax.round(an_array, 1)",
    "jax.nn.initializers.zeros(a_key, 3)",
    "jax.numpy.array_equal([1, 2], (1, 2))",
    "jax.numpy.array_equal([1, 2], [1, 2, 3])",
    "jax.numpy.array_equiv([1, 1], 1)",
    "jax.numpy.atleast_1d()",
    "jax.numpy.bartlett(6.7)",
    "jax.numpy.blackman(6.7)",
    "jax.numpy.fft.fft(an_array, axis=None)",
    "jax.numpy.hamming(6.7)",
    "jax.numpy.hanning(6.7)",
    "jax.numpy.ndim([[1], [2]])",
    "jax.numpy.shape([[1], [2]])",
    "jax.numpy.size([1, 2])",
    "jax.random.uniform(a_key, 3)",
    "jax.scipy.ndimage.map_coordinates(an_array, [[1.5, 2.0], [0.0, 1.0]], 1)",
}


def load_cases():
    sys.path.insert(0, str(CASES))
    try:
        import makers
        cases = []
        for path in sorted((CASES / "cases").rglob("*.py")):
            spec = importlib.util.spec_from_file_location(f"cases_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            cases += [case for case in module.CASES if case.function is None and not case.config and not case.skip]
        return makers, cases
    finally:
        sys.path.remove(str(CASES))


def expression(makers, value):
    """A Python expression with the type of an argument."""
    import numpy as np
    if isinstance(value, (np.ndarray, np.generic)):
        return "an_array"
    if isinstance(value, makers.Key):
        return "a_key"
    if isinstance(value, makers.Raw):
        return "a_numpy_array" if isinstance(value.value, np.ndarray) else "anything"
    if isinstance(value, types.FunctionType):
        return "a_function"
    if type(value) in (list, tuple):
        inner = ", ".join(expression(makers, item) for item in value)
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(value) == 1 else ''})"
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if type(value) in (float, complex):
        return repr(value) if np.isfinite(value) else "a_number"
    if isinstance(value, type) and issubclass(value, np.generic) and hasattr(np, value.__name__):
        return f"np.{value.__name__}"
    return "anything"


def type_text(value):
    """The type of a result as a program would write it; None if it is not checked."""
    import capibara.jax as jax
    if isinstance(value, jax.Array):
        return "Array"
    if type(value) in (tuple, list):
        inner = [type_text(item) for item in value]
        if None in inner or not inner:
            return None
        return f"tuple[{', '.join(inner)}]" if type(value) is tuple else f"list[{inner[0]}]" if len(set(inner)) == 1 else None
    return type(value).__name__ if type(value) in (bool, int, str) else None


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_every_call_of_the_differential_tests(tmp_path):
    pytest.importorskip("capibara._core", reason="the Python extension is not built")
    import numpy as np

    import capibara.jax as jax
    makers, cases = load_cases()
    lines, kinds = {}, {}
    for case in cases:
        words = [expression(makers, value) for value in case.args]
        words += [f"{name}={expression(makers, value)}" for name, value in case.kwargs.items()]
        call = f"jax.{case.name}({', '.join(words)})"
        if call in lines or call in LOOSE:
            continue
        function = jax
        try:
            for part in case.name.split("."):
                function = getattr(function, part)

            def made(value):
                if isinstance(value, makers.Lib):
                    return value.make(jax)
                if isinstance(value, makers.Key):
                    return jax.random.key(value.seed, impl=value.kind)
                if isinstance(value, makers.Raw):
                    return value.value
                if type(value) in (list, tuple):
                    return type(value)(map(made, value))
                return jax.numpy.asarray(value) if isinstance(value, np.ndarray) else value

            def traced():
                lines[call] = type_text(function(*map(made, case.args), **{name: made(value) for name, value in case.kwargs.items()}))

            jax.eval_shape(traced)
        except Exception:  # a rejected call: its types may be wrong
            continue
        kinds.setdefault(lines[call], f"result_{len(kinds)}")
    program = ["from collections.abc import Callable", "from typing import Any", "import numpy as np", "import capibara.jax as jax",
               "from capibara.jax import Array", "an_array: Array", "a_key: Array", "a_number: float",
               "a_numpy_array: np.ndarray[Any, Any]", "a_function: Callable[..., Any]", "anything: Any",
               *(f"{name}: {kind}" for kind, name in kinds.items() if kind)]
    for i, (call, kind) in enumerate(lines.items()):
        program.append(f"call_{i} = {call}" + (f"; call_{i} = {kinds[kind]}" if kind else ""))
    file = tmp_path / "calls.py"
    file.write_text("\n".join(program) + "\n")
    assert len(lines) > 3000
    found = [f"{program[int(line.split(':')[1]) - 1]}\n    {line.partition(' error: ')[2]}" for line in errors_of(file)]
    assert found == [], f"{len(found)} of {len(lines)} calls\n" + "\n".join(found[:400])
