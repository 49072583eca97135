"""Fills modules of the Python package from the library's table, and explains missing names."""
import importlib
import sys

from capibara import _core, _examples, _tracebacks


_text = vars(_core.LibraryFunction)["__doc__"]  # of a function of the library: its signature and a sentence
_core.LibraryFunction.__doc__ = property(lambda self: _text.__get__(self) + _examples.shown(self.__module__, self.__name__))


def fill(module_name, table_name):
    """Gives a module every function of the table's module, and a helpful error for missing names."""
    module = sys.modules[module_name]
    for name, function in _core.library_module(table_name).items():
        if name not in vars(module):
            setattr(module, name, function)
    explain_missing(module_name)


class Library:
    """The functions of one module of the table as attributes, for use by the Python modules that extend it."""

    def __init__(self, table_name):
        self._table_name = table_name

    def __getattr__(self, name):
        function = _core.library_function(self._table_name, name)
        setattr(self, name, function)
        return function


def as_initializer(function):
    """Wraps an initializer of the library as a Python function with a name and a signature."""
    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is None:
            return function(key, shape, dtype)
        explicit = importlib.import_module("capibara.jax._explicit")
        return explicit.placed_as(function(key, shape, dtype), out_sharding, "nn.initializers")
    return init


# Names of NumPy and PyTorch that differ here: {module: {name: what to write}}.
_NAMED_OTHERWISE = {
    "jax": {"no_grad": "jax.lax.stop_gradient(x)", "tensor": "jax.numpy.array(...)", "array": "jax.numpy.array(...)"},
    "jax.numpy": {"cat": "jax.numpy.concatenate", "float": "float, or jax.numpy.float32", "from_numpy": "jax.numpy.asarray",
                  "int": "int, or jax.numpy.int32", "tensor": "jax.numpy.array(...)", "unsqueeze": "jax.numpy.expand_dims"},
    "jax.random": {"rand": "jax.random.uniform(key, shape)", "randn": "jax.random.normal(key, shape)",
                   "seed": "a key, jax.random.key(seed), as the first argument of each function"},
}
_SEARCHED = ("jax", "jax.lax", "jax.numpy", "jax.numpy.linalg", "jax.nn", "jax.random", "jax.scipy.special", "jax.tree")


def _elsewhere(module, name):
    """The hint for a name that the module lacks and another one has; empty if there is none."""
    if module not in _SEARCHED:
        return ""
    if written := _NAMED_OTHERWISE.get(module, {}).get(name):
        return f" Use {written}."
    found = [other for other in _SEARCHED if name in dir(importlib.import_module(f"capibara.{other}"))]
    return f" Did you mean: '{found[0]}.{name}'?" if found else ""


def explain_missing(module_name, later=None, gone=None):
    """Finishes a module: its docstrings get their examples, and the error for a missing `module.name` suggests the closest existing name.

    `later` lists what is imported on first use: {name: module that defines it, None if the name is a submodule}.
    `gone` has the messages for names that earlier versions of jax had: {name: text}.
    """
    module = sys.modules[module_name]
    later = later or {}
    _examples.complete(module_name)
    _tracebacks.guard(module_name)

    def __getattr__(name):
        if name in later:
            source = later[name]
            value = importlib.import_module(f"{module_name}.{name}") if source is None else getattr(importlib.import_module(source), name)
            setattr(module, name, value)
            return value
        shown = module_name.removeprefix("capibara.")
        if gone and name in gone:
            raise AttributeError(f"{shown}.{name} is deprecated; {gone[name]}", name=name, obj=module)
        if name.startswith("__"):  # lookups by Python itself, such as __path__ during imports
            raise AttributeError(f"module '{shown}' has no attribute '{name}'", name=name, obj=module)
        import difflib
        known = {*vars(module), *later}
        nearest = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], n=1, cutoff=0.5)
        hint = _elsewhere(shown, name) or (f" Did you mean: '{nearest[0]}'?" if nearest else "")
        raise AttributeError(f"module '{shown}' has no attribute '{name}'.{hint}", name=name, obj=module)

    if "__getattr__" not in vars(module):
        module.__getattr__ = __getattr__
    if later:
        module.__dir__ = lambda: sorted({*vars(module), *later})
