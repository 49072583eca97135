"""The public names of jax 0.10.2, and which of them exist here."""
import functools
import importlib
import json
import pathlib


@functools.cache
def ledger():
    """{module: {name: tier}}: A for names that many libraries use, B for those that some use, C for the rest."""
    return json.loads(pathlib.Path(__file__).with_name("_ledger.json").read_text())


def exists(module, name):
    """Whether a name of a module of jax exists here."""
    full = "capibara.jax" if module == "jax" else f"capibara.jax.{module}"
    try:
        getattr(importlib.import_module(full), name)
        return True
    except (AttributeError, ImportError):
        return False


def missing_names():
    """Names that do not exist here, as 'numpy.name', in the order of the ledger."""
    return [f"{module}.{name}" for module, names in ledger().items() for name in names if not exists(module, name)]


def coverage():
    """[(module, tier, existing names, missing names)] for tiers A, B and C."""
    rows = []
    for module, names in ledger().items():
        for tier in "ABC":
            own = [name for name, its in names.items() if its == tier]
            there = [name for name in own if exists(module, name)]
            if own:
                rows.append((module, tier, there, [name for name in own if name not in there]))
    return rows
