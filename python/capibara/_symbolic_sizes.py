"""Symbolic sizes of dimensions: integer expressions of named variables, each at least 1.

An expression is a sum of terms, a term an integer times powers of factors, a factor a variable or one of floordiv, mod, max
and min of two expressions. Expressions that are numbers are Python integers. Comparisons that do not follow from the bounds of the
variables and the constraints of their scope raise InconclusiveDimensionOperation; equality never raises.
"""
import contextlib
import contextvars
import math
import operator

from capibara._errors import InconclusiveDimensionOperation

# Concrete sizes of the variables while a function is traced for them: {scope: {name: size}}.
_chosen = contextvars.ContextVar("capibara_chosen_sizes", default=None)


@contextlib.contextmanager
def sizes_chosen(scope, sizes):
    """A context in which expressions of this scope evaluate to their numbers for these sizes."""
    token = _chosen.set({**(_chosen.get() or {}), scope: sizes})
    try:
        yield
    finally:
        _chosen.reset(token)


# While a function is traced for the first sizes of its variables: {size: expression} of its arguments' dimensions.
_traced = contextvars.ContextVar("capibara_traced_sizes", default=None)


@contextlib.contextmanager
def sizes_traced(expressions):
    """A context in which `size_traced` recognizes these sizes."""
    token = _traced.set(expressions)
    try:
        yield
    finally:
        _traced.reset(token)


def size_traced(size):
    """The expression of a size that stands for one while a function is traced for symbolic sizes; others as they are."""
    return (_traced.get() or {}).get(size, size)


OPERATIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min}


def _is_integer(value):
    return not isinstance(value, SymbolicSize) and hasattr(value, "__index__") and not hasattr(value, "aval")


def _factor_weight(factor):
    return 1 if isinstance(factor, str) else 1 + sum(_weight(operand) for operand in factor[1:])


def _weight(size):
    if not isinstance(size, SymbolicSize):
        return 1
    return sum(1 + abs(count) * _term_weight(term) for term, count in size.terms)


def _term_weight(term):
    return sum(1 + power * _factor_weight(factor) for factor, power in term)


# jax's print order of factors and terms: short ones first in a product, long ones first in a sum.
def _factor_key(factor):
    if isinstance(factor, str):
        return 1, factor
    return (_factor_weight(factor), factor[0]) + tuple(map(_size_key, factor[1:]))


def _term_key(term):
    return _term_weight(term), tuple((_factor_key(factor), power) for factor, power in term)


def _size_key(size):
    if not isinstance(size, SymbolicSize):
        return 1, ((0, ()), size)
    return (_weight(size),) + tuple((_term_key(term), count) for term, count in size.terms)


def _show_factor(factor):
    return factor if isinstance(factor, str) else f"{factor[0]}({', '.join(map(str, factor[1:]))})"


def _show_term(term):
    return "*".join(_show_factor(factor) + (f"^{power}" if power != 1 else "") for factor, power in term)


def _times(left, right):
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(((factor, power) for factor, power in powers.items() if power), key=lambda item: _factor_key(item[0])))


def from_terms(coefficients, scope):
    """The expression of {term: coefficient}; an integer if only the constant term () is left."""
    terms = {term: count for term, count in coefficients.items() if count}
    for rule in scope.replacements if terms else ():
        terms = rule(terms)
    if not terms or set(terms) == {()}:
        return terms.get((), 0)
    return SymbolicSize(tuple(sorted(terms.items(), key=lambda item: _term_key(item[0]), reverse=True)), scope)


def _terms_of(size):
    return dict(size.terms) if isinstance(size, SymbolicSize) else {(): operator.index(size)} if size else {}


def variable(name, scope):
    """The symbolic size with this name."""
    return from_terms({((name, 1),): 1}, scope)


def operation(name, left, right, scope):
    """floordiv, mod, max or min as a factor, when it cannot be simplified."""
    return from_terms({(((name, left, right), 1),): 1}, scope)


class SymbolicSize:
    """An integer expression of named sizes."""

    __slots__ = ("terms", "scope", "_hash")

    def __init__(self, terms, scope):
        self.terms, self.scope, self._hash = terms, scope, hash((terms, id(scope)))

    def _other(self, other):
        """True if the other operand is an integer or an expression of the same scope."""
        if isinstance(other, SymbolicSize):
            if other.scope is not self.scope:
                raise ValueError(f"Invalid mixing of symbolic scopes for '{self}' (scope {self.scope}) and '{other}' (scope {other.scope})")
            return True
        return _is_integer(other)

    def _sum(self, other, sign):
        terms = dict(self.terms)
        for term, count in _terms_of(other).items():
            terms[term] = terms.get(term, 0) + sign * count
        return from_terms(terms, self.scope)

    def __add__(self, other):
        return self._sum(other, 1) if self._other(other) else self._as_array() + other

    __radd__ = __add__

    def __sub__(self, other):
        return self._sum(other, -1) if self._other(other) else self._as_array() - other

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return from_terms({term: -count for term, count in self.terms}, self.scope)

    def __pos__(self):
        return self

    def __mul__(self, other):
        if not self._other(other):
            return self._as_array() * other
        products = {}
        for left, count in self.terms:
            for right, times in _terms_of(other).items():
                term = _times(left, right)
                products[term] = products.get(term, 0) + count * times
        return from_terms(products, self.scope)

    __rmul__ = __mul__

    def __pow__(self, power):
        if not _is_integer(power) or power < 0:
            raise InconclusiveDimensionOperation(f"Symbolic dimension '{self}' raised to the power {power}: it must be a known number >= 0")
        return math.prod([self] * operator.index(power))

    def _divmod(self, divisor):
        """Quotient and remainder; floordiv and mod factors unless polynomial division leaves an integer remainder."""
        divisor_terms = list(_terms_of(divisor).items())
        leading, scale = max(divisor_terms, key=lambda item: _term_key(item[0]))
        rest, quotient = self, 0
        while isinstance(rest, SymbolicSize):
            term, count = rest.terms[0]
            left = _times(term, tuple((factor, -power) for factor, power in leading))
            if count % scale or any(power < 0 for _, power in left) or not term:
                break
            part = from_terms({left: count // scale}, self.scope)
            quotient, rest = quotient + part, rest - part * divisor
        if isinstance(rest, int) and (rest == 0 or not isinstance(divisor, SymbolicSize)):
            return quotient + rest // divisor if rest else quotient, rest % divisor if rest else 0
        return operation("floordiv", self, divisor, self.scope), operation("mod", self, divisor, self.scope)

    def __divmod__(self, divisor):
        if not self._other(divisor):
            return divmod(self._as_array(), divisor)
        if not isinstance(divisor, SymbolicSize) and divisor == 0:
            raise ZeroDivisionError(f"Symbolic dimension '{self}' divided by 0")
        return self._divmod(divisor)

    def __rdivmod__(self, dividend):
        return (operation("floordiv", operator.index(dividend), self, self.scope),
                operation("mod", operator.index(dividend), self, self.scope)) if dividend else (0, 0)

    def __floordiv__(self, divisor):
        return divmod(self, divisor)[0]

    def __mod__(self, divisor):
        return divmod(self, divisor)[1]

    def __rfloordiv__(self, dividend):
        return self.__rdivmod__(dividend)[0]

    def __rmod__(self, dividend):
        return self.__rdivmod__(dividend)[1]

    def __truediv__(self, other):
        return self._as_array() / other

    def __rtruediv__(self, other):
        return other / self._as_array()

    def __eq__(self, other):
        if isinstance(other, SymbolicSize):
            return self.scope is other.scope and self.terms == other.terms
        return False

    def __hash__(self):
        return self._hash

    def _at_least(self, other, shown):
        if not self._other(other):
            raise TypeError(f"a symbolic dimension is compared with integers and symbolic dimensions, got {type(other).__name__}")
        if not isinstance(difference := self - other, SymbolicSize):
            return difference >= 0
        lower, upper = self.scope.bounds(difference)
        if lower >= 0:
            return True
        if upper < 0:
            return False
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison {shown} is inconclusive.\nNothing known of the sizes decides it; constraints of the "
            "symbolic scope may.")

    def __ge__(self, other):
        return self._at_least(other, f"'{self}' >= '{other}'")

    def __gt__(self, other):
        return not (self - other)._at_most_zero(f"'{self}' > '{other}'") if isinstance(self - other, SymbolicSize) else self - other > 0

    def __le__(self, other):
        difference = self - other
        return difference._at_most_zero(f"'{self}' <= '{other}'") if isinstance(difference, SymbolicSize) else difference <= 0

    def __lt__(self, other):
        return not self._at_least(other, f"'{self}' < '{other}'")

    def _at_most_zero(self, shown):
        return (-self)._at_least(0, shown)

    def __index__(self):
        chosen = (_chosen.get() or {}).get(self.scope)
        if chosen is None:
            raise InconclusiveDimensionOperation(f"Symbolic dimension '{self}' used in a context that requires a constant")
        return self.value(chosen)

    __int__ = __index__

    def __float__(self):
        return float(self.__index__())

    def _as_array(self):
        """The size as a number, for arithmetic with arrays and floats."""
        return self.__index__()

    def value(self, sizes):
        """The value for the given sizes of its variables."""
        def operand(size):
            return size.value(sizes) if isinstance(size, SymbolicSize) else size

        def factor_value(factor):
            if isinstance(factor, str):
                return sizes[factor]
            if factor[0] not in OPERATIONS:
                raise InconclusiveDimensionOperation(f"the size '{self}' is known only for sizes for which the function was traced")
            return OPERATIONS[factor[0]](*map(operand, factor[1:]))

        return sum(count * math.prod(factor_value(factor) ** power for factor, power in term) for term, count in self.terms)

    def variables(self):
        """The names of its variables."""
        names = set()
        for term, _ in self.terms:
            for factor, _ in term:
                names |= {factor} if isinstance(factor, str) else set().union(
                    *(operand.variables() for operand in factor[1:] if isinstance(operand, SymbolicSize)))
        return names

    def __repr__(self):
        parts = []
        for term, count in self.terms:
            size = str(abs(count)) if not term else _show_term(term) if abs(count) == 1 else f"{abs(count)}*{_show_term(term)}"
            parts.append(("+ " if count > 0 else "- ") + size)
        return " ".join(parts).removeprefix("+ ")

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"the symbolic dimension '{self}' belongs to its scope and cannot be pickled")


def is_symbolic_dim(p) -> bool:
    """True if a size is symbolic."""
    return isinstance(p, SymbolicSize)


def is_constant_shape(shape) -> bool:
    """True if no size of a shape is symbolic."""
    return not any(map(is_symbolic_dim, shape))


def extremum(name, left, right, scope):
    """max or min; one of the operands if the bounds decide."""
    difference = left - right
    lower, upper = scope.bounds(difference) if isinstance(difference, SymbolicSize) else (difference, difference)
    if lower >= 0:
        return left if name == "max" else right
    if upper <= 0:
        return right if name == "max" else left
    return operation(name, left, right, scope)
