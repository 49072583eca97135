"""Classes with their own rules for vmap: sparse arrays, and classes that users register."""
import copy
import operator

from capibara import _core
from capibara._types import ShapeDtypeStruct
from capibara._wrapping import copy_attributes

registered = {}  # {class: (type of its entries in in_axes, to_elt, from_elt)}


def register(data_type, spec_type, to_elt, from_elt):
    """Registers how a class is mapped over, as in jax.interpreters.batching.register_vmappable."""
    registered[data_type] = spec_type, to_elt, from_elt


def _spec_types():
    """The types of entries in in_axes other than numbers."""
    return tuple({spec_type for spec_type, _, _ in registered.values() if spec_type is not int})


def is_axis(axis):
    """True if an entry of in_axes specifies a mapped axis: a number, or an object of a registered spec type."""
    return hasattr(axis, "__index__") and getattr(axis, "ndim", 0) == 0 or isinstance(axis, _spec_types())


def _is_registered(value):
    return type(value) in registered


class _ResultsAreRegistered(Exception):
    """A function returned objects of a registered class."""


def mapped(run, fun, in_axes, out_axes, axis_size, args, kwargs):
    """vmap with values that may be of registered classes; run(fun, in_axes, out_axes, axis_size, args, kwargs) maps over arrays."""
    values, tree = _core.tree_flatten((args, kwargs), _is_registered)
    if not any(map(_is_registered, values)):
        def watched(*args, **kwargs):
            results = fun(*args, **kwargs)
            if any(map(_is_registered, _core.tree_leaves(results, _is_registered))):
                raise _ResultsAreRegistered
            return results
        watched.__name__ = "fun"  # for functions without a name
        copy_attributes(fun, watched)
        watched.__wrapped__ = fun
        try:
            return run(watched, in_axes, out_axes, axis_size, args, kwargs)
        except _ResultsAreRegistered:
            pass
    entries = _entries((tuple(in_axes) if isinstance(in_axes, list) else in_axes, 0), tree, values, "in_axes")
    return _Mapping(run, fun, out_axes, axis_size, values, tree, entries).result()


def _entries(axes, tree, values, name):
    """Broadcasts in_axes or out_axes, a prefix of a tree, to one entry per value."""
    found, structure = _core.tree_flatten(axes, lambda x: x is None)
    try:
        parts = structure.flatten_up_to(tree.unflatten([0] * len(values)))
    except (ValueError, TypeError) as error:
        raise ValueError(f"vmap {name} specification must be a tree prefix of the corresponding value, got specification {axes} for "
                         f"value tree {tree}.") from error
    return [entry for entry, part in zip(found, parts, strict=True) for _ in _core.tree_leaves(part)]


class _Mapping:
    """One call of a mapped function, some of whose values are of registered classes."""

    def __init__(self, run, fun, out_axes, axis_size, values, tree, entries):
        self.run, self.fun, self.out_axes, self.axis_size = run, fun, out_axes, axis_size
        self.values, self.tree, self.entries = values, tree, entries

    def result(self):
        """The results of the mapped function."""
        arrays, axes = [], []

        def collect(array, axis):
            if axis is None:
                return array
            arrays.append(array)
            axes.append(operator.index(axis))
            shape = array.shape[:axis] + array.shape[axis % array.ndim + 1:]
            return ShapeDtypeStruct(shape, array.dtype)
        self._split(collect)  # first to find the mapped arrays; again in _call, with one element of each
        if self.axis_size is None and arrays:
            self.axis_size = arrays[0].shape[axes[0]]
        joined, kept = self.run(self._call, (axes,), (0, None), self.axis_size, (arrays,), {})
        results = []
        for value in self.outputs:
            results.append(_filled(value, joined, kept))
        return self.structure.unflatten(results)

    def _split(self, cont):
        parts = []
        for value, entry in zip(self.values, self.entries):
            if _is_registered(value):
                parts.append(registered[type(value)][1](cont, self.axis_size, value, entry))
            else:
                parts.append(value if entry is None else cont(_core.as_array(value), entry))
        return parts

    def _call(self, elements):
        elements = iter(elements)
        args, kwargs = self.tree.unflatten(self._split(lambda array, axis: array if axis is None else next(elements)))
        results, self.structure = _core.tree_flatten(self.fun(*args, **kwargs), _is_registered)
        entries = _entries(self.out_axes, self.structure, results, "out_axes")
        joined, kept = [], []

        def cont(_, array, axis):
            target = kept if axis is None else joined
            target.append(array)
            shape = list(array.shape)
            if axis is not None:
                shape.insert(axis % (array.ndim + 1), self.axis_size)
            return _Later(len(target) - 1, axis, tuple(shape), array.dtype)
        self.outputs = []
        for value, entry in zip(results, entries):
            if not _is_registered(value):
                self.outputs.append(cont(self.axis_size, value, entry))
            elif entry is None:
                leaves, structure = _core.tree_flatten(value)
                self.outputs.append(structure.unflatten([cont(self.axis_size, leaf, None) for leaf in leaves]))
            else:
                self.outputs.append(registered[type(value)][2](cont, self.axis_size, value, entry))
        return joined, kept


class _Later:
    """A placeholder for an array until the mapped function has returned."""

    def __init__(self, number, axis, shape, dtype):
        self.number, self.axis, self.shape, self.ndim, self.dtype = number, axis, shape, len(shape), dtype


def _filled(value, joined, kept):
    """An object with its placeholders replaced by the arrays."""
    if isinstance(value, _Later):
        if value.axis is None:
            return kept[value.number]
        return _core.library_function("numpy", "moveaxis")(joined[value.number], 0, value.axis)
    if type(value) in (list, tuple):
        return type(value)(_filled(one, joined, kept) for one in value)
    if type(value) is dict:
        return {key: _filled(one, joined, kept) for key, one in value.items()}
    if _is_registered(value):
        value = copy.copy(value)
        for name, one in vars(value).items():
            object.__setattr__(value, name, _filled(one, joined, kept))
    return value
