"""Texts of a function that was lowered for several concrete sizes, expressions of the numbers that differ between them, and operations that
compute these."""
import math
import re

from capibara._errors import InconclusiveDimensionOperation
from capibara._symbolic_sizes import SymbolicSize, extremum, sizes_chosen
from capibara._symbolic_tracing import concrete, fit

_SMALL = (2, 3, 4, 7, 33, 130)
_TOKEN = re.compile(r"tensor<((?:\d+x)+)|(?<![%#@\w.\-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
MANTISSA = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


class Refused(Exception):
    """Why there is no module for symbolic sizes."""


def shown(line):
    text = line.strip()
    return text if len(text) < 160 else text[:160] + " ..."


def _number(text):
    return float(text) if "." in text or "e" in text else int(text)


def _split(line):
    """The line without its numbers, and these."""
    numbers = []

    def hole(match):
        if match[1] is None:
            numbers.append(match[0])
            return "⟨⟩"
        sizes = match[1].split("x")[:-1]
        numbers.extend(sizes)
        return "tensor<" + "⟨⟩x" * len(sizes)
    return _TOKEN.sub(hole, line), numbers


def _unshared(text):
    """The text with a constant for each of its uses, since sizes that equal another constant would share it; values are renumbered."""
    lines, constants, names, uses = [], {}, {}, 0
    for line in text.splitlines():
        if line.startswith("  func.func"):
            constants, names, uses = {}, {}, 0
        match = re.match(r"\s*(%\d+) = (stablehlo\.constant .*)", line)
        if match:
            constants[match[1]] = match[2]
            continue
        indent = line[:len(line) - len(line.lstrip())]

        def renamed(match):
            nonlocal uses
            if match[0] not in constants:
                return names.setdefault(match[0], f"%{len(names)}")
            uses += 1
            lines.append(f"{indent}%c{uses} = {constants[match[0]]}")
            return f"%c{uses}"
        lines.append(re.sub(r"%\d+", renamed, line))
    return lines


class Texts:
    """The texts of a function for concrete sizes, line by line."""

    def __init__(self, lower, leaves, candidates):
        self.lower, self.leaves, self.candidates, self.known = lower, leaves, candidates, {}

    def at(self, values):
        key = tuple(values[name] for name in self.candidates.names)
        if key not in self.known:
            with sizes_chosen(self.candidates.scope, values):
                text, kept = self.lower([concrete(leaf, values) for leaf in self.leaves])
            self.known[key] = [_split(line) for line in _unshared(text)], tuple(kept)
            first = next(iter(self.known.values()))
            if [line for line, _ in first[0]] != [line for line, _ in self.known[key][0]] or first[1] != tuple(kept):
                self._refuse(first[0], self.known[key][0], values)
        return self.known[key][0]

    def _refuse(self, lines, others, values):
        different = next((b[0] for a, b in zip(lines, others) if a[0] != b[0]), others[-1][0])
        sizes = ", ".join(f"{name} = {size}" for name, size in values.items())
        raise Refused(f"its operations depend on the sizes: for {sizes} there is `{shown(different)}`")


class Numbers:
    """Expressions of the numbers that differ between texts."""

    def __init__(self, texts, candidates):
        self.texts, self.candidates = texts, candidates
        self.first, self.second = candidates.first, candidates.second
        self.points = [self.first, self.second]
        for size in _SMALL:
            point = candidates.near({name: size + i for i, name in enumerate(candidates.names)})
            if point not in self.points and all(value > 1 for value in point.values()):
                self.points.append(point)
        self.places, self.known = [], {}  # of the holes; expressions by values
        self.lines = [self._with_holes(i) for i in range(len(texts.at(self.first)))]

    def _with_holes(self, line):
        skeleton, numbers = self.texts.at(self.first)[line]
        parts = skeleton.split("⟨⟩")
        out = [parts[0]]
        for at, (number, part) in enumerate(zip(numbers, parts[1:])):
            if any(self.texts.at(point)[line][1][at] != number for point in self.points):
                self.places.append((line, at))
                out.append(f"⟨{len(self.places) - 1}⟩")
            else:
                out.append(number)
            out.append(part)
        return "".join(out)

    def values(self, hole):
        line, at = self.places[hole]
        return tuple(_number(self.texts.at(point)[line][1][at]) for point in self.points)

    def at(self, hole):
        """A function from the variables' values to the number."""
        line, at = self.places[hole]
        return lambda values: _number(self.texts.at(values)[line][1][at])

    def size(self, hole):
        """The expression of a hole that is an integer."""
        values = self.values(hole)
        if values not in self.known:
            self.known[values] = self.fitted(self.at(hole), values)
        return self.known[values]

    def fitted(self, number_at, values):
        candidates, points = self.candidates, self.points
        if values[0] == values[1] and all(number_at(point) == values[0] for point in self._corners()):
            found = values[0]
        else:
            found = fit(candidates, number_at)
        for point, value in zip(points, values):
            got = _value(found, point)
            if got is not None and got != value:
                found = extremum("max" if value > got else "min", found, value, candidates.scope)
        if any(_value(found, point) != value for point, value in zip(points, values)):
            shown = "; ".join(f"{value} for {', '.join(f'{name} = {size}' for name, size in point.items())}"
                              for point, value in zip(points[:4], values))
            raise Refused(f"no expression of the sizes was found for a number that is {shown}")
        return found

    def _corners(self):
        names = self.candidates.names
        return [self.candidates.near({**self.first, name: self.second[name]}) for name in names] if len(names) > 1 else []

    def floating(self, hole, element):
        """A function of a size, and the size, whose value in floating point is the number."""
        values, at = self.values(hole), self.at(hole)
        bits = MANTISSA.get(element)
        if bits is None:
            raise Refused(f"a number of type {element} depends on the sizes")
        for name, function, inverse in _FUNCTIONS:
            rounding = 2.0 ** (3 - bits)

            def integer(values, at=at, inverse=inverse):
                value = at(values)
                return round(inverse(value)) if value > 0 and math.isfinite(value) else 0
            try:
                found = self.fitted(integer, tuple(map(integer, self.points)))
            except (Refused, OverflowError, ZeroDivisionError):
                continue
            if all((size := _value(found, point)) and abs(function(size) - value) <= abs(value) * rounding
                   for point, value in zip(self.points, values)):
                return name, found
        raise Refused(f"no expression of the sizes was found for a number that is {values[0]} for {self.first}")


_FUNCTIONS = (("", float, lambda x: x), ("reciprocal", lambda n: 1 / n, lambda x: 1 / x), ("sqrt", math.sqrt, lambda x: x * x),
              ("rsqrt", lambda n: 1 / math.sqrt(n), lambda x: 1 / (x * x)), ("log", math.log, math.exp))


def _value(size, point):
    if not isinstance(size, SymbolicSize):
        return size
    try:
        return size.value(point)
    except InconclusiveDimensionOperation:
        return None


class SizedFunction:
    """One function of the module: its lines, and those that compute sizes, which come first."""

    def __init__(self, module, header):
        self.module, self.header, self.sizes, self.lines, self.scalars, self.vectors = module, header, [], [], {}, {}

    def new(self, operation, place=None):
        self.module.made += 1
        name = f"%v{self.module.made}"
        (self.sizes if place is None else place).append(f"    {name} = {operation}")
        return name

    def scalar(self, size):
        """The tensor<i32> of a size."""
        key = size if isinstance(size, SymbolicSize) else ("number", size)
        if key not in self.scalars:
            self.scalars[key] = self._sum(size) if isinstance(size, SymbolicSize) else self.new(
                f"stablehlo.constant dense<{size}> : tensor<i32>")
        return self.scalars[key]

    def binary(self, name, left, right):
        return self.new(f"stablehlo.{name} {left}, {right} : tensor<i32>")

    def _sum(self, size):
        total = None
        for term, count in size.terms:
            value = None
            for factor, power in term:
                for _ in range(power):
                    one = self._factor(factor)
                    value = one if value is None else self.binary("multiply", value, one)
            if value is None:
                value = self.scalar(count)
            elif count != 1:
                value = self.binary("multiply", value, self.scalar(count))
            total = value if total is None else self.binary("add", total, value)
        return total

    def _factor(self, factor):
        if isinstance(factor, str):
            return self.scalars[factor]
        name, left, right = factor[0], self.scalar(factor[1]), self.scalar(factor[2])
        if name in ("max", "min"):
            return self.binary(name + "imum", left, right)
        # The remainder of floor division by a divisor that is positive.
        remainder = self.binary("remainder", self.binary("add", self.binary("remainder", left, right), right), right)
        return remainder if name == "mod" else self.binary("divide", self.binary("subtract", left, remainder), right)

    def vector(self, sizes):
        """The tensor<nxi32> of sizes."""
        key = tuple((size if isinstance(size, SymbolicSize) else ("number", size)) for size in sizes)
        if key not in self.vectors:
            if not any(isinstance(size, SymbolicSize) for size in sizes):
                numbers = "[" + ", ".join(map(str, sizes)) + "]" if sizes else ""
                self.vectors[key] = self.new(f"stablehlo.constant dense<{numbers}> : tensor<{len(sizes)}xi32>")
            else:
                parts = [self.new(f"stablehlo.reshape {self.scalar(size)} : (tensor<i32>) -> tensor<1xi32>") for size in sizes]
                types = ", ".join(["tensor<1xi32>"] * len(parts))
                self.vectors[key] = parts[0] if len(parts) == 1 else self.new(
                    f'"stablehlo.concatenate"({", ".join(parts)}) <{{dimension = 0 : i64}}> : ({types}) -> tensor<{len(parts)}xi32>')
        return self.vectors[key]

    def matrix(self, rows):
        """The tensor<nx2xi32> of pairs of sizes."""
        flat = self.vector([size for row in rows for size in row])
        return self.new(f"stablehlo.reshape {flat} : (tensor<{2 * len(rows)}xi32>) -> tensor<{len(rows)}x2xi32>")

    def text(self):
        return [self.header, *self.sizes, *self.lines]
