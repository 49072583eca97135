"""How a module of the Python face is filled from the library's table, and what it says of names it does not have."""
import difflib
import sys

from capibara import _core, _tracebacks


def fill(module_name, table_name):
    """Gives a module every function of the table's module, and a helpful error for missing names."""
    module = sys.modules[module_name]
    for name, function in _core.library_module(table_name).items():
        if name not in vars(module):
            setattr(module, name, function)
    explain_missing(module_name)


def explain_missing(module_name):
    """Finishes a module: `module.name` of a name that does not exist says which existing name is nearest."""
    module = sys.modules[module_name]
    _tracebacks.guard(module_name)

    def __getattr__(name):
        shown = module_name.removeprefix("capibara.")
        nearest = difflib.get_close_matches(name, [n for n in vars(module) if not n.startswith("_")], n=1, cutoff=0.5)
        hint = f" Did you mean: '{nearest[0]}'?" if nearest else ""
        raise AttributeError(f"module '{shown}' has no attribute '{name}'.{hint}", name=name, obj=module)

    if "__getattr__" not in vars(module):
        module.__getattr__ = __getattr__
