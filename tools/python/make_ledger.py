"""Writes python/capibara/jax/_ledger.json: the public names of jax 0.10.2 by module, with a tier for how widely they are used.

usage: build/venv/bin/python tools/python/make_ledger.py LEDGER_FOLDER

The folder holds one text file of names per module and *.tiers.tsv files (A: used by many libraries, B, C). Names that the
installed jax does not have are left out.
"""
import importlib
import json
import pathlib
import sys

MODULES = ("jax", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random",
           "tree_util", "tree", "scipy.special", "scipy.linalg", "scipy.stats", "image", "ops", "flatten_util", "dtypes",
           "errors", "debug", "stages", "custom_derivatives", "custom_batching", "checkpoint_policies", "dlpack",
           "extend.core", "profiler")


def main(folder):
    ledger = {}
    for module in MODULES:
        names = folder.joinpath(f"{module}.txt").read_text().split()
        tiers_file = folder / f"{module}.tiers.tsv"
        tiers = dict(line.split("\t")[:2] for line in tiers_file.read_text().splitlines()) if tiers_file.exists() else {}
        real = find(module)
        ledger[module] = {
            name: tiers.get(name, "B")
            for name in names
            if has(real, name)
        }
    target = pathlib.Path(__file__).parents[2] / "python/capibara/jax/_ledger.json"
    target.write_text(json.dumps(ledger, indent=1, sort_keys=True) + "\n")
    print(f"{target.name}: {sum(map(len, ledger.values()))} names of {len(ledger)} modules")


def find(module):
    """A module of jax, or an object in it that is used like one."""
    if module == "jax":
        return importlib.import_module("jax")
    try:
        return importlib.import_module(f"jax.{module}")
    except ModuleNotFoundError:
        return getattr(importlib.import_module("jax"), module)


def has(module, name):
    try:
        getattr(module, name)
        return True
    except AttributeError:
        return False


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
