"""The public names of jax 0.10.2, which of them exist here, and those of the releases since 0.4.20."""
import functools
import importlib
import json
import pathlib


@functools.cache
def ledger():
    """{module: {name: tier}}: A for names that many libraries use, B for those that some use, C for the rest."""
    return json.loads(pathlib.Path(__file__).with_name("_ledger.json").read_text())


def exists(module, name):
    """True if a name of a jax module exists here."""
    full = "capibara.jax" if module == "jax" else f"capibara.jax.{module}"
    try:
        getattr(importlib.import_module(full), name)
        return True
    except (AttributeError, ImportError):
        return False


@functools.cache
def _changes():
    """{"versions", "since", "until"}: generated from jax's tags by tools/python/make_jax_versions.py."""
    return json.loads(pathlib.Path(__file__).with_name("_versions.json").read_text())


def versions():
    """The releases of jax whose names are known, oldest first."""
    return _changes()["versions"]


def names_of(version):
    """[(module, name)]: the public names of a release."""
    order = {known: number for number, known in enumerate(versions())}
    at = order[version]
    later = {name for since, names in _changes()["since"].items() if order[since] > at for name in names.split()}
    names = [f"{module}.{name}" for module, own in ledger().items() for name in own if f"{module}.{name}" not in later]
    for span, gone in _changes()["until"].items():
        first, last = span.split("-") if "-" in span else (versions()[0], span)
        if order[first] <= at <= order[last]:
            names += gone.split()
    return [tuple(name.rsplit(".", 1)) for name in names]


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
