"""vmap and shard_map of values above arrays, and their types in trees of types."""
from capibara import _core, _vmappables
from capibara._lifting import Registrations, is_hi, is_mutable, lifted, type_of, types


class MappingSpec:
    """Where the axis of vmap is in a value above arrays."""


def vmap(transform, fun, in_axes, out_axes, size, args, kwargs):
    """transform(fun, in_axes, out_axes, size, args, kwargs), for functions and arguments that may have values above arrays."""
    if not types:
        return transform(fun, in_axes, out_axes, size, args, kwargs)

    def run(fun, in_axes, out_axes, size, args, kwargs):
        def of_pure(inside, outside):
            def pure(*args, **kwargs):
                return inside(fun, *args, **kwargs)
            result, states = transform(pure, in_axes, (out_axes, None), size, args, kwargs)
            outside(states)
            return result
        return lifted("vmap", lambda: transform(fun, in_axes, out_axes, size, args, kwargs), of_pure)
    if has_specs((in_axes, out_axes)) or has_hi((args, kwargs)):
        return mapped(run, fun, in_axes, out_axes, size, args, kwargs)
    return run(fun, in_axes, out_axes, size, args, kwargs)


def is_axis(axis):
    """True for an entry of in_axes or out_axes that says where the axis is."""
    return _vmappables.is_axis(axis) or is_spec(axis)


def is_spec(axis):
    """True for an entry of in_axes or out_axes that says where the axis is in a value above arrays."""
    return isinstance(axis, MappingSpec)


def has_specs(axes):
    return any(map(is_spec, _core.tree_leaves(axes, lambda axis: axis is None)))


def has_hi(tree):
    """True if a tree has values above arrays."""
    before = Registrations.flattened
    _core.tree_leaves(tree)
    return Registrations.flattened != before


def _axes_of(spec, kind, count, size):
    """One axis for each array of a value above arrays."""
    if not is_spec(spec):
        return [spec] * count
    numbers = _core.tree_leaves(list(vars(spec).values()), lambda axis: axis is None)
    if len(numbers) == count:
        return numbers
    raise NotImplementedError(f"vmap: {type(spec).__name__} must have one axis for each of the {count} arrays of a value of type {kind}, "
                              f"got {numbers} for an axis of size {size}")


def mapped(run, fun, in_axes, out_axes, size, args, kwargs):
    """vmap of values above arrays: run(fun, in_axes, out_axes, size, args, kwargs) maps over arrays."""
    leaves, tree = _core.tree_flatten((args, kwargs), is_hi)
    entries = _entries((in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args), 0), tree, leaves)
    arrays, axes, kinds = [], [], []
    for leaf, axis in zip(leaves, entries):
        if is_hi(leaf) and not is_mutable(leaf):
            kind = type_of(leaf)
            parts = list(kind.lower_val(leaf))
            kinds.append((kind, axis))
            arrays.append(parts)
            axes.append(_axes_of(axis, kind, len(parts), size))
        else:
            kinds.append(None)
            arrays.append(leaf)
            axes.append(axis)
    if size is None:
        pairs = zip(_core.tree_leaves(arrays), _core.tree_leaves(axes, lambda axis: axis is None))
        size = next(_core.as_array(array).shape[axis] for array, axis in pairs if axis is not None)
    outputs = []

    def call(arrays):
        values = []
        for array, kind in zip(arrays, kinds):
            values.append(array if kind is None else _element(*kind, size).raise_val(*array))
        given, named = tree.unflatten(values)
        results, structure = _core.tree_flatten(fun(*given, **named), is_hi)
        joined, kept, plan = [], [], []
        for result, axis in zip(results, _entries(out_axes, structure, results)):
            kind = type_of(result) if is_hi(result) and not is_mutable(result) else None
            parts = [result] if kind is None else list(kind.lower_val(result))
            places = []
            for part, own in zip(parts, _axes_of(axis, kind, len(parts), size)):
                target = kept if own is None else joined
                places.append((own, len(target)))
                target.append(part)
            plan.append((kind, places, result if is_hi(result) and kind is None else None))
        outputs[:] = [structure, plan]
        return joined, kept
    joined, kept = run(call, (axes,), (0, None), size, (arrays,), {})
    structure, plan = outputs
    moveaxis = _core.library_function("numpy", "moveaxis")
    values = []
    for kind, places, mutable in plan:
        parts = [kept[i] if axis is None else moveaxis(joined[i], 0, axis) if isinstance(axis, int) else joined[i] for axis, i in places]
        values.append(mutable if mutable is not None else parts[0] if kind is None else kind.raise_val(*parts))
    return structure.unflatten(values)


def _element(kind, axis, size):
    """The type of one element of a value mapped over an axis."""
    return kind.dec_rank(size, axis) if is_spec(axis) else kind


def _entries(axes, tree, values):
    """One entry for each value, from a tree of entries that is a prefix."""
    found, structure = _core.tree_flatten(axes, lambda axis: axis is None)
    entries = []
    for entry, part in zip(found, structure.flatten_up_to(tree.unflatten(list(range(len(values))))), strict=True):
        entries += [entry] * len(_core.tree_leaves(part))
    return entries


def as_types(tree):
    """A tree of the types of arrays, with the types of values above arrays instead of these values."""
    if not types:
        return tree
    leaves, structure = _core.tree_flatten(tree, is_hi)
    return structure.unflatten([type_of(leaf) if is_hi(leaf) else leaf for leaf in leaves]) if any(map(is_hi, leaves)) else tree


def shard_mapped(call, f, in_specs, out_specs, args):
    """shard_map of values above arrays: call(f, in_specs, out_specs, args) maps over arrays."""
    leaves, tree = _core.tree_flatten(args, is_hi)
    arrays, specs, kinds = [], [], []
    for leaf, spec in zip(leaves, _entries(in_specs, tree, leaves)):
        kind = type_of(leaf) if is_hi(leaf) else None
        kinds.append(kind)
        arrays.append(leaf if kind is None else list(kind.lower_val(leaf)))
        specs.append(spec if kind is None else _specs_of(spec, kind))
    flat_specs, outputs = [], []

    def on_arrays(arrays):
        values = [array if kind is None else kind.raise_val(*array) for array, kind in zip(arrays, kinds)]
        results, structure = _core.tree_flatten(f(*tree.unflatten(values)), is_hi)
        parts, plan = [], []
        for result, spec in zip(results, _entries(out_specs, structure, results)):
            kind = type_of(result) if is_hi(result) else None
            own = [result] if kind is None else list(kind.lower_val(result))
            plan.append((kind, len(own)))
            parts += own
            specs_of_result = [spec] if kind is None else _specs_of(spec, kind)
            flat_specs.extend(specs_of_result if not outputs else [])
        outputs[:] = [structure, plan]
        return parts
    results = iter(call(on_arrays, (specs,), flat_specs, (arrays,)))
    structure, plan = outputs
    values = []
    for kind, count in plan:
        own = [next(results) for _ in range(count)]
        values.append(own[0] if kind is None else kind.raise_val(*own))
    return structure.unflatten(values)


def _specs_of(spec, kind):
    """The specs of the arrays of a value above arrays."""
    count = len(kind.lo_ty())
    if not hasattr(spec, "to_lo"):
        return [spec] * count
    specs = list(spec.to_lo())
    if len(specs) != count:
        raise ValueError(f"shard_map: {type(spec).__name__}.to_lo must return {count} specs, one for each array of a value of type {kind}, "
                         f"got {specs}")
    return specs
