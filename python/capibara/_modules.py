"""How a module of the Python face is filled from the library's table, and what it says of names it does not have."""
import importlib
import sys

from capibara import _core, _tracebacks


def fill(module_name, table_name):
    """Gives a module every function of the table's module, and a helpful error for missing names."""
    module = sys.modules[module_name]
    for name, function in _core.library_module(table_name).items():
        if name not in vars(module):
            setattr(module, name, function)
    explain_missing(module_name)


class Library:
    """The functions of one module of the table as attributes, for modules that the face's own module is made of."""

    def __init__(self, table_name):
        self._table_name = table_name

    def __getattr__(self, name):
        function = _core.library_function(self._table_name, name)
        setattr(self, name, function)
        return function


def as_initializer(function):
    """A function of the library that fills arrays, as a Python function with a name and a signature."""
    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is None:
            return function(key, shape, dtype)
        explicit = importlib.import_module("capibara.jax._explicit")
        return explicit.placed_as(function(key, shape, dtype), out_sharding, "nn.initializers")
    return init


def explain_missing(module_name, later=None, gone=None):
    """Finishes a module: `module.name` of a name that does not exist says which existing name is nearest.

    `later` names what is imported when it is first asked for: {name: module that has it, None where it is a module itself}.
    `gone` has what is said of names that jax had in earlier versions: {name: text}.
    """
    module = sys.modules[module_name]
    later = later or {}
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
        if name.startswith("__"):  # Python's own questions, __path__ while modules are imported
            raise AttributeError(f"module '{shown}' has no attribute '{name}'", name=name, obj=module)
        import difflib
        known = {*vars(module), *later}
        nearest = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], n=1, cutoff=0.5)
        hint = f" Did you mean: '{nearest[0]}'?" if nearest else ""
        raise AttributeError(f"module '{shown}' has no attribute '{name}'.{hint}", name=name, obj=module)

    if "__getattr__" not in vars(module):
        module.__getattr__ = __getattr__
    if later:
        module.__dir__ = lambda: sorted({*vars(module), *later})
