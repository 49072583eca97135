"""The types of a function's results for arguments with symbolic sizes.

Programs have static sizes. A function is therefore traced for a few sizes that satisfy the constraints, and the sizes of its results
become the expressions of the variables that agree with all of these traces. The function sees numbers where jax would show it
expressions, so it may branch on them; the branch taken holds for the sizes that were traced.
"""
import itertools
import math
import sys

from capibara import _core
from capibara._symbolic_sizes import SymbolicSize, operation, sizes_chosen, sizes_traced, variable
from capibara._types import ShapeDtypeStruct

# Large, so that windows and strides fit; primes at prime distances, so that two traces distinguish multiples from other expressions.
# Smaller ones where an argument has more elements than this: functions may compute constants of such sizes.
_SIZES, _MAX_ELEMENTS = ((1021, 509), (251, 127), (97, 53), (37, 23)), 1 << 24
_MAX_DIVISOR = 16


def has_symbolic_shape(leaf):
    """True if an argument is a type with a symbolic size."""
    return type(leaf) in (ShapeDtypeStruct, _core.ShapedArray) and any(isinstance(size, SymbolicSize) for size in leaf.shape)


def symbolic_sizes(leaves):
    """The expressions in the shapes of arguments."""
    return [size for leaf in leaves if has_symbolic_shape(leaf) for size in leaf.shape if isinstance(size, SymbolicSize)]


def scope_of(sizes):
    """The common scope of the sizes."""
    scope = sizes[0].scope
    for size in sizes:
        if size.scope is not scope:
            raise ValueError(f"Invalid mixing of symbolic scopes: '{sizes[0]}' is of {scope} and '{size}' of {size.scope}")
    return scope


class Candidates:
    """Sizes of the variables that satisfy the constraints and make no dimension negative."""

    def __init__(self, leaves):
        self.sizes = symbolic_sizes(leaves)
        self.scope = scope_of(self.sizes)
        self.names = sorted(set().union(*(size.variables() for size in self.sizes)))
        for start, self.step in _SIZES:
            self.first = self.near({name: start + 58 * i for i, name in enumerate(self.names)})
            self.second = self.near({name: self.first[name] + self.step + 18 * i for i, name in enumerate(self.names)})
            if all(self._elements(leaf) <= _MAX_ELEMENTS for leaf in leaves):
                break

    def _elements(self, leaf):
        return math.prod(concrete(leaf, self.second).shape) if has_symbolic_shape(leaf) else 0

    def admits(self, values):
        return self.scope.admits(values) and all(size.value(values) >= 0 for size in self.sizes)

    def expressions(self):
        """{size: expression} for the first sizes, without small ones, which other dimensions may have as well."""
        known = {}
        for size in (*self.sizes, *(variable(name, self.scope) for name in self.names)):
            if isinstance(size, SymbolicSize) and size.value(self.first) >= _SIZES[-1][0]:
                known.setdefault(size.value(self.first), size)
        return known

    def near(self, values):
        """Admissible sizes near these: larger ones are tried first, then small ones."""
        if self.admits(values):
            return values
        bounds = {name: self.scope.bounds(variable(name, self.scope)) for name in self.names}
        choices = []
        for name in self.names:
            low, high = bounds[name]
            near = [value for value in range(values[name], values[name] + 64) if low <= value <= high]
            whole = [value for value in (1024, 2048, 4096) if low <= value <= high]
            top = int(min(high, low + 256))
            choices.append(near[:24] + whole + list(range(top, int(low) - 1, -1))[:128])
        for combination in itertools.islice(itertools.product(*choices), 200_000):
            found = dict(zip(self.names, combination))
            if self.admits(found):
                return found
        raise NotImplementedError(f"no sizes of {', '.join(self.names)} were found that satisfy the constraints of scope {self.scope}")


def concrete(leaf, values):
    """A type with the sizes for these values of the variables."""
    if not has_symbolic_shape(leaf):
        return leaf
    shape = tuple(size.value(values) if isinstance(size, SymbolicSize) else size for size in leaf.shape)
    return ShapeDtypeStruct(shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))


def _is_sparse(value):
    sparse = sys.modules.get("capibara.jax.experimental.sparse")
    return sparse is not None and isinstance(value, sparse.JAXSparse)


class _Traces:
    """The types of the results for sizes of the variables; each combination is traced once."""

    def __init__(self, trace, leaves, candidates):
        self.trace, self.leaves, self.candidates, self.known = trace, leaves, candidates, {}

    def at(self, values):
        key = tuple(values[name] for name in self.candidates.names)
        if key not in self.known:
            with sizes_chosen(self.candidates.scope, values):
                self.known[key] = self.trace([concrete(leaf, values) for leaf in self.leaves])
        return self.known[key]


def trace_symbolically(trace, leaves):
    """The result of trace(leaves), a tree of types, with expressions for sizes that depend on the arguments' sizes."""
    candidates = Candidates(leaves)
    first, second = candidates.first, candidates.second
    traces = _Traces(trace, leaves, candidates)
    with sizes_traced(candidates.expressions()):
        results, structure = _core.tree_flatten(traces.at(first), _is_sparse)
    others, other_structure = _core.tree_flatten(traces.at(second), _is_sparse)
    if structure != other_structure:
        raise NotImplementedError(f"the structure of the results depends on the symbolic sizes {', '.join(candidates.names)}: "
                                  f"{structure} for {first}, {other_structure} for {second}")

    def size_at(place, axis):
        return lambda values: _core.tree_flatten(traces.at(values), _is_sparse)[0][place].shape[axis]

    for place, (result, other) in enumerate(zip(results, others)):
        if len(result.shape) != len(other.shape):
            raise NotImplementedError("the number of dimensions of a result depends on symbolic sizes")
        shape = [a if a == b else fit(candidates, size_at(place, axis))
                 for axis, (a, b) in enumerate(zip(result.shape, other.shape))]
        results[place] = _with_shape(result, tuple(shape))
    return structure.unflatten(results)


def eval_shape(function, args, kwargs):
    """The types of a function's results."""
    leaves, structure = _core.tree_flatten((args, kwargs))
    if any(map(has_symbolic_shape, leaves)):
        return trace_symbolically(lambda leaves: _core.eval_shape(function, *structure.unflatten(leaves)), leaves)
    return _core.eval_shape(function, args, kwargs)


def _with_shape(result, shape):
    if _is_sparse(result):
        parts, fixed = result.tree_flatten()
        return type(result).tree_unflatten((shape,) + tuple(fixed[1:]), parts)
    return ShapeDtypeStruct(shape, result.dtype, weak_type=result.weak_type, sharding=result.sharding)


def fit(candidates, size_at):
    """An expression that matches the sizes of all traces."""
    scope, names, first, second = candidates.scope, candidates.names, candidates.first, candidates.second
    ends = size_at(first), size_at(second)
    for size in itertools.chain(candidates.sizes, (variable(name, scope) for name in names)):
        if (size.value(first), size.value(second)) == ends:
            return size
    points = [first, second]
    if len(names) > 1:
        points += [candidates.near({**first, name: second[name]}) for name in names]
    third = candidates.near({name: second[name] + 2 * candidates.step + 10 for name in names})
    for powers in _monomials(names):
        size = _of_monomial(powers, points, third, size_at, scope)
        if size is not None:
            return size
    affine = _affine(candidates, points, size_at)
    if affine is not None:
        return affine
    for base in itertools.chain(candidates.sizes, (variable(name, scope) for name in names)):
        size = _quotient(base, candidates, points, size_at)
        if size is None:
            size = _remainder(base, candidates, size_at)
        if size is not None:
            return size
    return operation("size_of_result", variable(names[0], scope), 0 if len(names) == 1 else variable(names[1], scope), scope)


def _monomials(names):
    for degree in (1, 2, 3, 4):
        yield from itertools.combinations_with_replacement(names, degree)


def _of_monomial(names, points, third, size_at, scope):
    """times * product + constant, with integers, if all points agree; a plain multiple, such as of a batch, needs no third trace."""
    size = 1
    for name in names:
        size = size * variable(name, scope)
    (a, b), (x, y) = ((f(points[0]), f(points[1])) for f in (size.value, size_at))
    if a == b or (y - x) % (b - a):
        return None
    times = (y - x) // (b - a)
    found = size * times + (x - times * a)
    if len(names) > 1 or abs(x - times * a) > 64 * abs(times):
        points = points + [third]
    return found if isinstance(found, SymbolicSize) and all(found.value(point) == size_at(point) for point in points) else None


def _affine(candidates, points, size_at):
    """A sum of multiples of the variables and a constant."""
    from fractions import Fraction  # slow to import
    first, total = points[0], 0
    for name, point in zip(candidates.names, points[2:]):
        change = point[name] - first[name]
        slope = Fraction(size_at(point) - size_at(first), change) if change else Fraction(0)
        if slope.denominator != 1:
            return None
        total = total + int(slope) * variable(name, candidates.scope)
    if not isinstance(total, SymbolicSize):
        return None
    total = total + (size_at(first) - total.value(first))
    return total if all(total.value(point) == size_at(point) for point in points) else None


def _quotient(base, candidates, points, size_at):
    """floordiv(times * base + constant, divisor); the number of traces grows with the divisor."""
    from fractions import Fraction
    first, second = points[:2]
    run = base.value(second) - base.value(first)
    slope = Fraction(size_at(second) - size_at(first), run).limit_denominator(_MAX_DIVISOR) if run else Fraction(0)
    divisor, times = slope.denominator, slope.numerator
    if divisor == 1 or times == 0:
        return None
    for step in range(1, divisor):
        points = points + [candidates.near({name: size + step for name, size in first.items()})]
    gaps = [divisor * size_at(point) - times * base.value(point) for point in points]
    low = max(gaps)
    if low > min(gap + divisor - 1 for gap in gaps):
        return None
    return (times * base + low) // divisor


def _remainder(base, candidates, size_at):
    """mod(base, divisor) + constant."""
    points = [candidates.near({name: size + step for name, size in candidates.first.items()}) for step in range(_MAX_DIVISOR + 1)]
    values = [size_at(point) for point in points]
    if max(values) - min(values) >= _MAX_DIVISOR:
        return None
    for divisor in range(max(values) - min(values) + 1, _MAX_DIVISOR + 1):
        gaps = {value - base.value(point) % divisor for point, value in zip(points, values)}
        if len(gaps) == 1:
            return base % divisor + gaps.pop()
    return None
