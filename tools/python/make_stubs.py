"""Writes the type stubs of the package, for type checkers and editors.

usage: PYTHONPATH=build/release/python python3 tools/python/make_stubs.py FOLDER...

The build runs it and writes them next to the extension; the wheel includes them. They are not kept in git.

A function of the library's table gets its types from its row and from stub_types.py. A name that another module defines is
imported from there. The stub of what a module defines in Python is written by hand in tools/python/stubs/MODULE.pyi, which begins
its stub. Stubs of other modules are written by hand next to the modules.
"""
import ast
import builtins
import importlib
import inspect
import pathlib
import re
import sys
import types

sys.path.append(str(pathlib.Path(__file__).parent))
import stub_overloads  # noqa: E402
from stub_types import BY_DEFAULT, BY_NAME, IMPORTS, RESULTS  # noqa: E402

from capibara import _core  # noqa: E402

DISTRIBUTIONS = tuple(name for name in _core.library_modules() if name.startswith("scipy.stats."))
MODULES = ("", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random", "image", "ops", "scipy",
           "scipy.special", "scipy.linalg", "scipy.signal", "scipy.fft", "scipy.ndimage", "scipy.stats", *DISTRIBUTIONS, "scipy.cluster",
           "scipy.sparse", "scipy.integrate", "custom_activations", "sharding", "stages", "tree", "errors", "experimental",
           "extend.mlir", "extend.mlir.dialects", "extend.mlir.dialects.stablehlo",
           "capibara.kernels")
HAND_WRITTEN = pathlib.Path(__file__).parent / "stubs"
NOT_PUBLIC = ("capibara._modules", "typing")  # imported for internal use under a public name
HIDES_METHOD = dict.fromkeys(("count", "index"), "  # type: ignore[assignment]")  # result fields that are also methods of tuple
METHODS = "    # The methods that are functions of jax.numpy.\n"


def full_name(module):
    """The table names modules of capibara.jax without that prefix."""
    return module if module.startswith("capibara.") else f"capibara.jax.{module}".rstrip(".")


def parameter_type(module, parameter):
    """The type of a parameter of a row of the table."""
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    if isinstance(parameter.default, bool):
        return "bool"
    scope = module
    while scope:  # scipy.stats.norm.k, scipy.stats.k, scipy.k
        if f"{scope}.{parameter.name}" in BY_NAME:
            return BY_NAME[f"{scope}.{parameter.name}"]
        scope = scope.rpartition(".")[0]
    default = None if parameter.default is parameter.empty else (parameter.name, parameter.default)
    if default in BY_DEFAULT:
        return BY_DEFAULT[default]
    if parameter.name in BY_NAME:
        return BY_NAME[parameter.name]
    if isinstance(parameter.default, str):
        return "str"
    raise SystemExit(f"make_stubs: {module} has a parameter '{parameter}' of unknown type; name its kind in stub_types.py, "
                     "or its type in the row")


def parameters_of(module, signature):
    """The parameters of a row with their types."""
    typed = []
    for parameter in signature.parameters.values():
        kind = parameter_type(module, parameter)
        if parameter.default is None and kind not in ("None", "Any", "PyTree", "PrecisionLike") and not kind.endswith("| None"):
            kind += " | None"
        typed.append(parameter.replace(annotation=kind))
    return typed


def definition(name, parameters, result, doc=None, decorator="", indent="", self_name=""):
    """The lines of one function."""
    parts, kinds = [self_name] if self_name else [], inspect.Parameter
    for i, parameter in enumerate(parameters):
        before = parameters[i - 1].kind if i else None
        if before is kinds.POSITIONAL_ONLY and parameter.kind is not kinds.POSITIONAL_ONLY:
            parts.append("/")
        if parameter.kind is kinds.KEYWORD_ONLY and before not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            parts.append("*")
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    if parameters and parameters[-1].kind is kinds.POSITIONAL_ONLY:
        parts.append("/")
    head = f"{indent}def {name}({', '.join(parts)}) -> {result}:"
    lines = [f"{indent}{decorator}"] if decorator else []
    return lines + ([head, f'{indent}    """{doc}"""'] if doc else [f"{head} ..."])


def stub_of_row(module, name, function, indent="", self_name=""):
    """The lines of a function of the table; with `self_name` as a method, whose first parameter is the object."""
    signature = inspect.signature(function)
    parameters = parameters_of(module, signature)
    result = signature.return_annotation
    if result is signature.empty:
        result = next((kind for scope, kind in RESULTS.items() if module == scope), "Array")
    records = re.findall(r"\b(\w+)\((\w+(?:, \w+)*)\)", result)  # EighResult(eigenvalues, eigenvectors)
    lines = []
    for record, fields in [] if self_name else [pair for pair in records if pair[0] not in ("len", "isinstance")]:
        private = f"_{record.lstrip('_')}"
        result = result.replace(f"{record}({fields})", private)
        lines += [f"class {private}(NamedTuple):", *(f"    {field}: Array{HIDES_METHOD.get(field, '')}" for field in fields.split(", "))]
    if self_name:
        parameters = parameters[1:]
    doc = inspect.getdoc(function).strip().split("\n")[-1]
    cases = stub_overloads.cases(parameters, result)
    for i, (own, own_result) in enumerate(cases):
        last = i == len(cases) - 1
        lines += definition(name, own, own_result, doc if last else None, "@overload" if len(cases) > 1 else "", indent, self_name)
    return lines


def home_of(value, name):
    """(module, name) that define a value: the stub imports it from there. None if the module itself defines it."""
    homes = [home for home in (getattr(value, "__module__", None), type(value).__module__, "numpy") if isinstance(home, str)]
    public = [home.split(".")[0] for home in homes if not home.startswith("capibara")]  # numpy rather than its private modules
    for home in public + homes:
        if home not in sys.modules:
            continue
        for candidate in (name, getattr(value, "__name__", None)):
            if isinstance(candidate, str) and vars(sys.modules[home]).get(candidate) is value:
                return home, candidate
    return None


def exported(module, original, name):
    """The lines that re-export a name of another module: checkers treat `import x as x` as a re-export, but not `import x as y`."""
    if original == name:
        return [f"from {module} import {name} as {name}"]
    parent, _, short = module.rpartition(".")
    hidden = f"_{short.lstrip('_')}"
    return [f"from {parent} import {short} as {hidden}", f"{name} = {hidden}.{original}"]


def stub_of(module, name, value):
    """The lines of a name that is not written by hand."""
    own = full_name(module)
    if isinstance(value, types.ModuleType):
        parent, _, child = value.__name__.rpartition(".")
        return [f"from {parent} import {child} as {name}"] if value.__name__.startswith("capibara") else []
    home = home_of(value, name)
    if home and home[0] in NOT_PUBLIC:
        return []
    if home and home[0] not in (own, "capibara._core", "builtins"):
        return exported(*home, name)
    if type(value).__name__ == "ufunc":
        return [f"{name}: {'_UnaryUfunc' if value.nin == 1 else '_BinaryUfunc'}"]
    row = _core.library_function(module, name)
    if row is not None:
        return stub_of_row(module, name, row)
    if home and home[0] == "capibara._core":
        return exported(*home, name)
    if isinstance(value, _core.CatalogPrimitive):
        return [f"{name}: CatalogPrimitive"]
    if isinstance(value, (bool, int, float, str)):
        return [f"{name}: {type(value).__name__}"]
    if value is None:
        return [f"{name}: None"]
    if type(value).__name__ == "_ScalarType":
        return [f"{name}: _ScalarType"]
    if getattr(value, "__qualname__", "").startswith(("scope.", "flag_scope.")):
        return [f"{name}: _Setting"]
    raise SystemExit(f"make_stubs: {own}.{name} is neither in the table nor of another module; write its type in "
                     f"{HAND_WRITTEN}/{file_of(module)}")


def file_of(module):
    return full_name(module).removeprefix("capibara.") + ".pyi"


def declared(text):
    """The names that a Python text defines or imports."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def imports_for(text, known):
    """The import lines for names that a text uses but does not define."""
    lines = []
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r'""".*?"""', "", text, flags=re.S)))
    for module, names in IMPORTS.items():
        used = [name for name in names if name in words and name not in known]
        if used:
            lines.append(f"from {module} import {', '.join(used)}")
    if "np" in words and "np" not in known:
        lines.append("import numpy as np")
    if "builtins" in words and "builtins" not in known:
        lines.append("import builtins")
    return sorted(lines, key=_import_order)


def _import_order(line):
    module = line.split()[1]
    return module.startswith("capibara"), module, line


def without_shadows(text, names):
    """Qualifies types that names of the module would shadow: jax.numpy has a bool, jax.lax a slice."""
    hidden = [name for name in names if isinstance(getattr(builtins, name, None), type)]
    if not hidden:
        return text
    pattern = re.compile(rf"(?<=[\[ |])({'|'.join(hidden)})(?=[\],)| :]|$)")
    lines = []
    for line in text.split("\n"):
        head, arrow, rest = line.partition("(") if line.startswith("def ") else ("", "", line)
        lines.append(head + arrow + (pattern.sub(r"builtins.\1", rest) if line.startswith(("def ", "    def ")) else rest))
    return "\n".join(lines)


def text_of(module_name):
    """The stub of one module."""
    module = importlib.import_module(full_name(module_name))
    by_hand = HAND_WRITTEN / file_of(module_name)
    prelude = by_hand.read_text() if by_hand.exists() else ""
    known = declared(prelude)
    lines = []
    names = [name for name in sorted(dir(module)) if not name.startswith("_")]
    for name in names:
        if name not in known:
            lines += stub_of(module_name, name, getattr(module, name))
    reexports = sorted({line for line in lines if line.startswith("from ")}, key=_import_order)
    body = without_shadows("\n".join(line for line in lines if not line.startswith("from ")), names)
    imported = imports_for(body, known | declared("\n".join(lines)))
    parts = [f'"""Types of {full_name(module_name)}. Made by tools/python/make_stubs.py."""', *imported, *reexports, "", prelude + body]
    return "\n".join(parts).rstrip() + "\n"


def core_text():
    """The stub of the extension module: written by hand, except for the methods of arrays that are functions of jax.numpy."""
    from capibara.jax import _array
    text = (HAND_WRITTEN / "_core.pyi").read_text()
    lines = []
    for name in _array._METHODS:
        lines += stub_of_row("numpy", name, _core.library_function("numpy", name), "    ", "self")
    return f'"""Types of capibara._core. Made by tools/python/make_stubs.py."""\n' + text.replace(METHODS, "\n".join(lines) + "\n")


def models_text():
    """The stub of the models' catalog: classes and functions by hand, the models from their rows."""
    module = importlib.import_module("capibara.mithril.models")
    lines = ['"""Types of capibara.mithril.models. Made by tools/python/make_stubs.py."""',
             "from collections.abc import Callable, Sequence", "from types import EllipsisType", "from typing import Any, TypeAlias",
             "import numpy as np", "from capibara._core import Array", "", (HAND_WRITTEN / "mithril.models.pyi").read_text().rstrip()]
    for name, _, sentence, _ in _core.models.catalog():
        parts = []
        for parameter in inspect.signature(getattr(module, name)).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                continue
            default = "..." if isinstance(parameter.default, _core.models.Value) else repr(parameter.default)
            parts.append(f"{parameter.name}: _Value = {default}")
        parts += ["*", "name: str | None = None", "shapes: dict[str, Sequence[_Dimension]] | None = None"]
        lines += [f"def {name}({', '.join(parts)}) -> Model:", f'    """{sentence}"""']
    return "\n".join(lines) + "\n"


def path_of(module_name):
    """The path of the stub, relative to the package."""
    if module_name == "_core":
        return pathlib.Path("_core.pyi")
    module = importlib.import_module(full_name(module_name))
    relative = pathlib.Path(*full_name(module_name).split(".")[1:])
    return relative / "__init__.pyi" if hasattr(module, "__path__") else relative.with_suffix(".pyi")


def stubs():
    """{path relative to the package: text} of every generated stub."""
    return {path_of("_core"): core_text(), path_of("capibara.mithril.models"): models_text(),
            **{path_of(name): text_of(name) for name in MODULES}}


def main(folders):
    made = {**stubs(), pathlib.Path("py.typed"): ""}
    for file, text in ((folder / path, text) for folder in folders for path, text in made.items()):
        if file.is_symlink():
            file.unlink()  # a link to a module's own stub, which would be overwritten
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main([pathlib.Path(folder) for folder in sys.argv[1:]])
