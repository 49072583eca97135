"""Evaluates cases with one library and writes what came out; run by run.py, each library in its own process.

    evaluate.py LIB CASEFILE... OUT [--work WORK]

LIB is `jax`, `capibara`, `live` (jax with every mode compiled and run) or a module that looks like jax. OUT is a
stream of pickled (identity, mode, outcome); an entry with the outcome None comes before each evaluation, so that a
crash has a name. WORK is a pickled dict identity -> modes, or None where the modes are to be found out (see
`modes_wanted`).

An outcome is ("value", tree), ("error", class names, message) or ("missing",). A tree holds only NumPy and Python
values: see `describe`.
"""

import argparse
import importlib
import itertools
import os
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np

from makers import Key, Lib, Raw, load

MODES = ("eager", "jit", "vmap", "grad")


class Missing(Exception):
    """The library has no such name."""


# --- which modes a case runs in --------------------------------------------------------------------------------------


def has_only_arrays(tree):
    """Whether all leaves of a described result are arrays, as jit needs it of its results."""
    kind = tree[0]
    if kind in ("list", "tuple", "named"):
        return all(map(has_only_arrays, tree[-1]))
    if kind == "dict":
        return all(has_only_arrays(value) for _, value in tree[1])
    return kind in ("array", "key") or tree == ("python", "NoneType", None)


def modes_wanted(case, outcome, first):
    """The modes beyond eager, by the eager outcome of jax; `first` says that no earlier case of its name worked.

    Every call runs under jit, so that it meets the compiler; vmap and grad are asked of one call of each name.
    """
    if case.function is not None or outcome[0] != "value" or not has_only_arrays(outcome[1]):
        return []
    if not any(isinstance(leaf, (np.ndarray, Key)) for leaf in leaves((case.args, case.kwargs))):
        return []
    return [mode for mode in MODES[1:] if case.modes.get(mode, first or mode == "jit")]


# --- arguments -------------------------------------------------------------------------------------------------------


def leaves(tree):
    if type(tree) in (list, tuple):
        return list(itertools.chain.from_iterable(map(leaves, tree)))
    if type(tree) is dict:
        return list(itertools.chain.from_iterable(map(leaves, tree.values())))
    return [tree]


def rebuild(tree, replacements):
    """The tree with its leaves taken from an iterator, in the order of `leaves`."""
    if type(tree) in (list, tuple):
        return type(tree)(rebuild(inner, replacements) for inner in tree)
    if type(tree) is dict:
        return {word: rebuild(inner, replacements) for word, inner in tree.items()}
    return next(replacements)


class Call:
    """A case bound to a library: its function of the traced leaves only."""

    def __init__(self, jax, prefix, case):
        self.jax = jax
        self.function = find(jax, prefix, case.name)
        self.tree = (case.args, case.kwargs)
        self.static = []  # what stands at each leaf; traced leaves have None
        self.traced = []
        for leaf in leaves(self.tree):
            is_traced = isinstance(leaf, (np.ndarray, Key))
            self.static.append(None if is_traced else self.resolve(leaf))
            if is_traced:
                self.traced.append(self.resolve(leaf))
        self.is_traced = [isinstance(leaf, (np.ndarray, Key)) for leaf in leaves(self.tree)]
        self.is_key = [isinstance(leaf, Key) for leaf in leaves(self.tree) if isinstance(leaf, (np.ndarray, Key))]

    def resolve(self, leaf):
        if isinstance(leaf, Lib):
            return leaf.make(self.jax)
        if isinstance(leaf, Raw):
            return leaf.value
        if isinstance(leaf, Key):
            return self.jax.random.key(leaf.seed, **({"impl": leaf.kind} if leaf.kind else {}))
        return self.jax.numpy.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    def __call__(self, *traced):
        given = iter(traced)
        args, kwargs = rebuild(self.tree, (next(given) if is_traced else value
                                           for is_traced, value in zip(self.is_traced, self.static)))
        return self.function(*args, **kwargs)

    def halves(self):
        """A second set of traced leaves: inexact arrays halved, which keeps signs, order and definiteness."""
        second = []
        for is_key, value in zip(self.is_key, self.traced):
            if is_key:
                second.append(value)
            else:
                plain = np.asarray(value)
                inexact = plain.dtype.kind in "fcV" and plain.dtype != np.bool_
                second.append(self.jax.numpy.asarray((plain * np.asarray(0.5, plain.dtype)).astype(plain.dtype) if inexact else plain))
        return second

    def stacked(self):
        both = []
        for is_key, value, half in zip(self.is_key, self.traced, self.halves()):
            both.append(self.jax.random.split(value, 2) if is_key
                        else self.jax.numpy.asarray(np.stack([np.asarray(value), np.asarray(half)])))
        return both

    def differentiated(self):
        """Positions of the traced leaves that a gradient is taken with respect to."""
        return tuple(position for position, (is_key, value) in enumerate(zip(self.is_key, self.traced))
                     if not is_key and is_inexact(value.dtype))

    def weighted_sum(self, *traced):
        """A scalar of all inexact results; unequal weights, since plain sums hide errors (softmax sums to one)."""
        total = 0.0
        for leaf in array_leaves(self(*traced)):
            if not is_inexact(leaf.dtype):
                continue
            if np.dtype(leaf.dtype).kind == "c":
                leaf = self.jax.numpy.real(leaf) + 0.5 * self.jax.numpy.imag(leaf)
            weights = np.cos(np.arange(leaf.size)).reshape(leaf.shape).astype(leaf.dtype)
            total = total + (leaf * weights).sum()
        return total


def is_inexact(dtype):
    name = str(dtype)
    return name.startswith(("float", "bfloat", "complex"))


def array_leaves(tree):
    if isinstance(tree, (list, tuple)):
        return list(itertools.chain.from_iterable(map(array_leaves, tree)))
    if isinstance(tree, dict):
        return list(itertools.chain.from_iterable(map(array_leaves, tree.values())))
    return [tree] if hasattr(tree, "dtype") and hasattr(tree, "shape") else []


def find(jax, prefix, name):
    """The function that a dotted name means; `Array.sum` means the method of the first argument."""
    if name.startswith("Array."):
        member = name.removeprefix("Array.")

        def call(first, *args, **kwargs):
            value = getattr(first, member)
            return value(*args, **kwargs) if callable(value) and not hasattr(value, "dtype") else value

        return call
    parts = name.split(".")
    reached = jax
    for depth, part in enumerate(parts):
        try:
            reached = getattr(reached, part)
        except AttributeError:
            try:
                reached = importlib.import_module(".".join([prefix, *parts[:depth + 1]]))
            except ImportError:
                raise Missing(name) from None
    return reached


# --- results ---------------------------------------------------------------------------------------------------------


def describe(value, jax):
    """A result as a tree of plain values that keeps dtype, weak type, shape and container types."""
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice)) and not isinstance(value, np.generic):
        return ("python", type(value).__name__, value)
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        return ("numpy", str(value.dtype), value.shape, np.asarray(value))
    if isinstance(value, np.dtype):
        return ("dtype", value.name)
    if isinstance(value, (list, tuple)):
        parts = [describe(inner, jax) for inner in value]
        if type(value) in (list, tuple):
            return (type(value).__name__, parts)
        return ("named", type(value).__name__, list(getattr(value, "_fields", ())), parts)
    if isinstance(value, dict):
        return ("dict", [(repr(word), describe(inner, jax)) for word, inner in value.items()])
    if isinstance(value, jax.Array):
        dtype = str(value.dtype)
        if dtype.startswith("key<"):
            return ("key", dtype, value.shape, np.asarray(jax.random.key_data(value)))
        return ("array", dtype, value.shape, bool(value.weak_type), np.asarray(value))
    if isinstance(value, jax.ShapeDtypeStruct):
        return ("struct", str(value.dtype), tuple(value.shape), bool(getattr(value, "weak_type", False)))
    if isinstance(value, type):
        return ("type", value.__name__)
    if hasattr(value, "dtype") and hasattr(type(value), "__call__"):  # scalar makers such as numpy.float32
        return ("dtype", np.dtype(value.dtype).name)
    inner = jax.tree_util.tree_leaves(value)
    if len(inner) != 1 or inner[0] is not value:
        return ("named", type(value).__name__, [], [describe(leaf, jax) for leaf in inner])
    return ("object", type(value).__name__)


def retyped(tree, struct):
    """A described eager result with the dtypes and weak types that tracing found; None where shapes differ."""
    kind = tree[0]
    if kind in ("list", "tuple", "named", "dict"):
        if struct[0] != kind or len(struct[-1]) != len(tree[-1]):
            return None
        if kind == "dict":
            inner = [(word, retyped(value, other[1])) for (word, value), other in zip(tree[1], struct[1])]
            return None if any(value is None for _, value in inner) else ("dict", inner)
        inner = [retyped(value, other) for value, other in zip(tree[-1], struct[-1])]
        return None if any(value is None for value in inner) else (*tree[:-1], inner)
    if kind == "array" and struct[0] == "struct" and struct[1:3] == tree[1:3]:
        return ("array", tree[1], tree[2], struct[3], tree[4])
    return tree if kind == struct[0] == "python" else None


def stacked_trees(first, second):
    """Two described results as one with a leading axis of two; None where they differ in form."""
    kind = first[0]
    if first[:-1] != second[:-1] and kind != "dict":
        return None
    if kind == "array":
        return ("array", first[1], (2, *first[2]), first[3], np.stack([first[4], second[4]]))
    if kind == "dict":
        inner = [(word, stacked_trees(value, other[1])) for (word, value), other in zip(first[1], second[1])]
        return None if any(value is None for _, value in inner) else ("dict", inner)
    if kind in ("list", "tuple", "named"):
        inner = [stacked_trees(value, other) for value, other in zip(first[-1], second[-1])]
        return None if any(value is None for value in inner) else (*first[:-1], inner)
    return first if kind == "python" and first == second else None


def error_outcome(error):
    return ("error", [kind.__name__ for kind in type(error).__mro__], str(error).strip()[:400])


# --- evaluation ------------------------------------------------------------------------------------------------------


class Evaluator:
    """Runs cases with one library."""

    def __init__(self, library):
        self.prefix = {"capibara": "capibara.jax", "live": "jax"}.get(library, library)
        self.jax = importlib.import_module(self.prefix)
        self.by_definition = library == "jax"  # jit and vmap of the oracle: traced, but not compiled

    def outcome(self, case, mode, eager=None):
        jax = self.jax
        before = {}
        try:
            for flag, value in case.config.items():
                before[flag] = getattr(jax.config, flag)
                jax.config.update(flag, value)
            if case.function is not None:
                return ("value", describe(case.function(jax), jax))
            call = Call(jax, self.prefix, case)
            return ("value", getattr(self, mode)(call, eager))
        except Missing:
            return ("missing",)
        except Exception as error:  # every class of error is a result
            return error_outcome(error)
        finally:
            for flag, value in before.items():
                jax.config.update(flag, value)

    def eager(self, call, _):
        return describe(call(*call.traced), self.jax)

    def jit(self, call, eager):
        if self.by_definition and eager:
            tree = retyped(eager[1], describe(self.jax.eval_shape(call, *call.traced), self.jax))
            if tree is not None:
                return tree
        return describe(self.jax.jit(lambda *traced: call(*traced))(*call.traced), self.jax)

    def vmap(self, call, eager):
        over = self.jax.vmap(lambda *traced: call(*traced))
        if self.by_definition and eager and not any(call.is_key):
            struct = describe(self.jax.eval_shape(over, *call.stacked()), self.jax)
            both = stacked_trees(eager[1], describe(call(*call.halves()), self.jax))
            tree = retyped(both, struct) if both else None
            if tree is not None:
                return tree
        return describe(over(*call.stacked()), self.jax)

    def grad(self, call, _):
        positions = call.differentiated()
        gradient = self.jax.grad(lambda *traced: call.weighted_sum(*traced), argnums=positions)
        return describe(list(gradient(*call.traced)), self.jax)  # not jitted: XLA rewrites products with zero

    def is_differentiable(self, case):
        return any(isinstance(leaf, np.ndarray) and is_inexact(leaf.dtype) for leaf in leaves((case.args, case.kwargs)))


def evaluate(library, files, out, work):
    evaluator = Evaluator(library)
    worked = set()  # names with a case that worked

    with open(out, "ab") as stream:
        def note(identity, mode, outcome):
            try:
                pickle.dump((identity, mode, outcome), stream)
            except Exception as error:
                pickle.dump((identity, mode, error_outcome(error)), stream)
            stream.flush()

        for path in files:
            for case in load(path):
                identity = case.identity
                if case.skip or (work is not None and identity not in work):
                    continue
                modes = None if work is None else work[identity]
                eager = None
                if modes is None or "eager" in modes:
                    note(identity, "eager", None)
                    eager = evaluator.outcome(case, "eager")
                    note(identity, "eager", eager)
                if modes is None:
                    first = case.name not in worked
                    modes = modes_wanted(case, eager, first)
                    if modes:
                        worked.add(case.name)
                for mode in modes:
                    if mode == "eager" or (mode == "grad" and not evaluator.is_differentiable(case)):
                        continue
                    note(identity, mode, None)
                    outcome = evaluator.outcome(case, mode, eager)
                    if mode == "grad" and library == "jax" and outcome[0] == "error":
                        outcome = ("none",)  # no gradient in jax: nothing to compare
                    note(identity, mode, outcome)

    if library == "capibara":
        loaded = [name for name in ("jax", "jaxlib") if name in sys.modules]
        assert not loaded, f"capibara imported {loaded}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    work = pickle.loads(options.work.read_bytes()) if options.work else None
    evaluate(options.library, options.files, options.out, work)


if __name__ == "__main__":
    main()
