"""Writes the type stubs of the modules that are filled from the library's table.

usage: PYTHONPATH=build/release/python python3 tools/python/make_stubs.py [FOLDER]     (default: python/capibara)

A function's stub has its signature and its sentence; what else a module holds is named, so that editors know it exists.
"""
import importlib
import inspect
import pathlib
import sys
import types

MODULES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random", "image", "ops",
           "scipy.special", "scipy.linalg", "scipy.signal", "scipy.fft", "scipy.ndimage", "custom_activations")


def stub_of(name, value):
    """The lines of one name."""
    if isinstance(value, types.ModuleType):
        return [f"from . import {name} as {name}"] if value.__name__.startswith("capibara") else []
    try:
        signature = inspect.signature(value) if callable(value) and not isinstance(value, (type, types.GenericAlias)) else None
    except (TypeError, ValueError):
        signature = None
    if signature is None:
        if isinstance(value, type) and value.__module__.startswith("capibara"):
            return [f"class {name}(Any): ..."]
        return [f"{name}: Any"]
    parts, star = [], False
    for parameter in signature.parameters.values():
        kinds = inspect.Parameter
        if parameter.kind is kinds.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: Any")
            star = True
        elif parameter.kind is kinds.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: Any")
        else:
            if parameter.kind is kinds.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            default = "" if parameter.default is kinds.empty else " = ..."
            parts.append(f"{parameter.name}: Any{default}")
    doc = (inspect.getdoc(value) or "").strip().split("\n")[-1]
    return [f"def {name}({', '.join(parts)}) -> Any:", f'    """{doc}"""']


def text_of(module_name):
    """The stub of one module."""
    module = importlib.import_module(f"capibara.jax.{module_name}")
    lines = [f'"""Types of capibara.jax.{module_name}. Made by tools/python/make_stubs.py."""', "from typing import Any", ""]
    for name in sorted(vars(module)):
        if not name.startswith("_"):
            lines += stub_of(name, getattr(module, name))
    return "\n".join(lines) + "\n"


def path_of(module_name):
    """Where the stub lies, relative to the package."""
    module = importlib.import_module(f"capibara.jax.{module_name}")
    relative = pathlib.Path("jax", *module_name.split("."))
    return relative / "__init__.pyi" if hasattr(module, "__path__") else relative.with_suffix(".pyi")


def main(folder):
    for name in MODULES:
        target = folder / path_of(name)
        target.write_text(text_of(name))
    (folder / "py.typed").write_text("")
    print(f"{len(MODULES)} stubs under {folder}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "python" / "capibara")
