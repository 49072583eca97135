"""Shapes with symbolic sizes: their scope and constraints, and the text that describes them."""
import re

from capibara._errors import InconclusiveDimensionOperation
from capibara._symbolic_sizes import SymbolicSize, extremum, variable

_UNBOUNDED = float("inf")
_TOKENS = re.compile(r"\s*(\.\.\.|[A-Za-z_][A-Za-z_0-9]*|\d+|.)", re.DOTALL)


class SymbolicScope:
    """The constraints on named sizes: 'a >= 2', 'b <= 2*a', 'mod(b, 8) == 0'; each size is at least 1."""

    def __init__(self, constraints=()):
        if isinstance(constraints, str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints!r}")
        self.replacements, self._at_least, self._constraints = [], [], []
        for text in constraints:
            self._add(text)

    def _add(self, text):
        if not isinstance(text, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        comparison = next((sign for sign in ("==", ">=", "<=") if sign in text), None)
        if comparison is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        left, right = (_one(part, self) for part in text.split(comparison, 1))
        difference = left - right if comparison != "<=" else right - left
        if not isinstance(difference, SymbolicSize):
            if difference == 0 or (comparison != "==" and difference > 0):
                return
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        self._constraints.append((text, difference, comparison == "=="))
        if comparison != "==":
            self._at_least.append(difference)
            return
        self._at_least += [difference, -difference]
        if isinstance(left, SymbolicSize) and len(left.terms) == 1 and left.terms[0][1] == 1:
            self.replacements.append(_replacement(left.terms[0][0], right))
            (factor, power), *others = left.terms[0][0]
            if right == 0 and not others and power == 1 and factor[0] == "mod" and isinstance(factor[1], SymbolicSize):
                # With remainder 0, the dividend is the divisor times the quotient.
                quotient = (("floordiv", *factor[1:]), 1),
                self._quotients(quotient, factor[2], factor[1])

    def _quotients(self, quotient, divisor, dividend):
        if not isinstance(divisor, int):
            return

        def exact(terms):
            count = terms.get(quotient, 0)
            if not count or count % divisor:
                return terms
            left = {term: number for term, number in terms.items() if term != quotient}
            for term, number in dividend.terms:
                left[term] = left.get(term, 0) + count // divisor * number
            return {term: number for term, number in left.items() if number}
        self.replacements.append(exact)

    def bounds(self, size):
        """Lower and upper bounds of an expression."""
        lower, upper = self._interval(size)
        for constraint in self._at_least:
            for times in (1, 2, 4):  # size >= size - times * constraint, and as for the upper bound
                less, more = size - times * constraint, size + times * constraint
                lower = max(lower, self._interval(less)[0])
                upper = min(upper, self._interval(more)[1])
        return lower, upper

    def _interval(self, size):
        if not isinstance(size, SymbolicSize):
            return size, size
        low = high = 0
        for term, count in size.terms:
            interval = 1, 1
            for factor, power in term:
                for _ in range(power):
                    interval = _product(interval, self._factor(factor))
            ends = _product(interval, (count, count))
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _factor(self, factor):
        if isinstance(factor, str):
            low, high = 1, _UNBOUNDED
            for constraint in self._at_least:  # k * name + c >= 0 alone
                terms = dict(constraint.terms)
                count, rest = terms.pop(((factor, 1),), 0), terms.pop((), 0)
                if terms or not count:
                    continue
                low, high = (max(low, -(rest // count)), high) if count > 0 else (low, min(high, rest // -count))
            return low, high
        name, *operands = factor
        if name not in ("floordiv", "mod", "max", "min"):
            return 0, _UNBOUNDED
        (a, b), (c, d) = map(self._interval, operands)
        if name in ("max", "min"):
            choose = max if name == "max" else min
            return choose(a, c), choose(b, d)
        if c <= 0:
            return -_UNBOUNDED, _UNBOUNDED
        if name == "mod":
            return 0, d - 1
        ends = [x // y if abs(x) != _UNBOUNDED and y != _UNBOUNDED else x if abs(x) == _UNBOUNDED else min(0, x) and -1
                for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)

    def admits(self, sizes):
        """True if sizes of the variables satisfy the constraints that involve no other variables."""
        known = set(sizes)
        return all(sizes[name] >= 1 for name in known) and all(
            c.value(sizes) >= 0 for c in self._at_least if c.variables() <= known)

    @property
    def conditions(self):
        """The constraints: the text, an expression that is at least 0, and whether it equals 0."""
        return tuple(self._constraints)

    def check(self, sizes):
        """Raises if sizes do not satisfy a constraint, or are symbolic and it is not known whether they do."""
        for text, difference, equal in self._constraints:
            value = difference.value(sizes) if difference.variables() <= set(sizes) else 0
            try:
                holds = value == 0 if equal else value >= 0
            except InconclusiveDimensionOperation:
                holds = False
            if not holds:
                raise ValueError(f"Input shapes do not match the symbolic shape constraint {text}. Expected '{difference}' to be "
                                 f"{'equal' if equal else 'greater or equal'} to 0, but found {value}, with {sizes}.")

    def __repr__(self):
        constraints = "".join(f"\n  {text}" for text, *_ in self._constraints)
        return str(id(self)) + (" with constraints:" + constraints if constraints else "")


def _product(left, right):
    ends = [0 if not x or not y else x * y for x in left for y in right]
    return min(ends), max(ends)


def _replacement(term, size):
    def rule(terms):
        count = terms.get(term, 0)
        if not count:
            return terms
        left = {other: number for other, number in terms.items() if other != term}
        for other, number in size.terms if isinstance(size, SymbolicSize) else (((), size),):
            left[other] = left.get(other, 0) + count * number
        return {other: number for other, number in left.items() if number}
    return rule


def _one(text, scope):
    sizes = _Reader(text, None, scope).shape()
    if len(sizes) != 1:
        raise ValueError(f"Constraint parsing error: one expression expected in {text!r}")
    return sizes[0]


class _Reader:
    """Reads the text of a shape: integers, names, + - *, ^ with a number, floordiv, mod, max, min; _ and ... as in `like`."""

    def __init__(self, text, like, scope):
        self.text, self.like, self.scope, self.sizes = text, like, scope, []
        self.tokens = [(match.group(1), match.start(1)) for match in _TOKENS.finditer(text) if match.group(1).strip()]
        self.at = 0

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1][0] if self.at <= len(self.tokens) else ""

    def fail(self, detail):
        start = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
        raise ValueError(f"syntax error in symbolic shape {self.text!r} in dimension {len(self.sizes)}: {detail}. "
                         f"Parsed '{self.text[:start]}', remaining '{self.text[start:]}'.")

    def expect(self, token):
        if self.peek() != token:
            self.fail(f"expecting {token!r} but found {self.peek() or 'the end'!r}")
        return self.next()

    def shape(self):
        closed = self.peek() == "(" and self._matching() in (len(self.tokens) - 1,)
        if closed:
            self.next()
        end = ")" if closed else ""
        while self.peek() != end:
            if self.peek() == "...":
                self._fill_rest()
            elif self.peek() == "_":
                self._add(self._placeholder())
            else:
                self._add(self.expression())
            if self.peek() == ",":
                self.next()
            elif self.peek() != end:
                self.fail(f"expecting one of {{STAR}} but found {self.peek()!r}")
        return tuple(self.sizes)

    def _matching(self):
        depth = 0
        for position, (token, _) in enumerate(self.tokens):
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return position
        return None

    def _placeholder(self):
        if self.like is None or len(self.sizes) >= len(self.like):
            self.fail("spec contains '_' but no 'like' shape was given" if self.like is None else
                      f"spec contains '_' but 'like' has rank {len(self.like)}")
        self.next()
        if self.like[len(self.sizes)] is None:
            self.fail(f"spec contains '_' but 'like' {tuple(self.like)} has an unknown size there")
        return self.like[len(self.sizes)]

    def _fill_rest(self):
        if self.like is None:
            self.fail("spec contains ... but no 'like' shape was given")
        self.next()
        after = sum(token == "," for token, _ in self.tokens[self.at:])
        while len(self.sizes) < len(self.like) - after:
            self.sizes.append(self.like[len(self.sizes)])

    def _add(self, size):
        place = len(self.sizes)
        if self.like is not None and place < len(self.like) and isinstance(size, int) and self.like[place] not in (None, size) \
                and not isinstance(self.like[place], SymbolicSize):
            self.fail(f"different size {size} for known dimension {self.like[place]} of 'like' {tuple(self.like)}")
        self.sizes.append(size)

    def expression(self):
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("+", "-"):
            self.next()
        total = sign * self.term()
        while self.peek() in ("+", "-"):
            total = total + self.term() if self.next() == "+" else total - self.term()
        return total

    def term(self):
        value = self.factor()
        while self.peek() == "*":
            self.next()
            value = value * self.factor()
        return value

    def factor(self):
        if self.peek() == "-":
            self.next()
            return -self.factor()
        value = self.atom()
        if self.peek() == "^":
            self.next()
            if not self.peek().isdigit():
                self.fail("expecting a number after ^")
            value = value ** int(self.next())
        return value

    def atom(self):
        token = self.peek()
        if token == "(":
            self.next()
            value = self.expression()
            self.expect(")")
            return value
        if token.isdigit():
            return int(self.next())
        if not re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", token):
            self.fail(f"expecting a name or a number but found {token or 'the end'!r}")
        self.next()
        if token in ("floordiv", "mod", "max", "min") and self.peek() == "(":
            self.next()
            left = self.expression()
            self.expect(",")
            right = self.expression()
            self.expect(")")
            if token in ("max", "min"):
                return extremum(token, left, right, self.scope)
            return left // right if token == "floordiv" else left % right
        return variable(token, self.scope)


def symbolic_shape(shape_spec, *, constraints=(), scope=None, like=None):
    """Parses a shape, "b, 2*h + 1, 3": integers, and expressions of symbolic sizes."""
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec!r}.")
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return _Reader(shape_spec, like, SymbolicScope(constraints) if scope is None else scope).shape()
