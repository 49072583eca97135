"""StableHLO modules with symbolic sizes, made from texts that were lowered for several concrete sizes.

The texts of a function for different sizes have the same operations; numbers that differ between them are sizes that depend on the
arguments' sizes. Each gets its expression of the variables. Types get dimensions `?`, and operations whose attributes state such a size
get their dynamic form, to which the size is an operand. Texts for further sizes, small ones among them, check the expressions; a function
whose operations depend on the sizes is refused. Size 1 is no check: as in jax, a symbolic size is not taken for 1.
"""
import math
import re

import numpy as np

from capibara._dtypes import float0
from capibara._errors import InconclusiveDimensionOperation
from capibara._symbolic_sizes import SymbolicSize, extremum, sizes_chosen
from capibara._symbolic_tracing import Candidates, concrete, fit

_SMALL = (2, 3, 4, 7, 33, 130)
_TOKEN = re.compile(r"tensor<((?:\d+x)+)|(?<![%#@\w.\-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_HOLE = re.compile(r"⟨(\d+)⟩")
_TYPE = re.compile(r"tensor<((?:(?:\d+|⟨\d+⟩)x)*)([^<>]*(?:<[^<>]*>)?)>")
_OPERATION = re.compile(r'(\s*)((?:%[\w:]+ = )?)"?((?:stablehlo|chlo|func)\.\w+|return)"?(?!\w)(.*)', re.DOTALL)
_MANTISSA = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
_ELEMENTS = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32",
             "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
# Operations that state the types of their results alone.
_STATED = set("abs add after_all all_gather all_reduce all_to_all and atan2 bitcast_convert case cbrt ceil cholesky clamp collective_permute "
              "compare complex concatenate convert convolution cosine count_leading_zeros divide dot_general dynamic_update_slice exponential "
              "exponential_minus_one fft floor if imag is_finite log log_plus_one logistic map maximum minimum multiply negate not "
              "optimization_barrier or popcnt power real reduce reduce_precision reduce_scatter remainder return reverse round_nearest_afz "
              "round_nearest_even rsqrt scatter select select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine "
              "sort sqrt subtract tan tanh transpose triangular_solve while xor".split())


class _Refused(Exception):
    """Why there is no module for symbolic sizes."""


def _shown(line):
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


class _Texts:
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
        raise _Refused(f"its operations depend on the sizes: for {sizes} there is `{_shown(different)}`")


class _Numbers:
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
            raise _Refused(f"no expression of the sizes was found for a number that is {shown}")
        return found

    def _corners(self):
        names = self.candidates.names
        return [self.candidates.near({**self.first, name: self.second[name]}) for name in names] if len(names) > 1 else []

    def floating(self, hole, element):
        """A function of a size, and the size, whose value in floating point is the number."""
        values, at = self.values(hole), self.at(hole)
        bits = _MANTISSA.get(element)
        if bits is None:
            raise _Refused(f"a number of type {element} depends on the sizes")
        for name, function, inverse in _FUNCTIONS:
            rounding = 2.0 ** (3 - bits)

            def integer(values, at=at, inverse=inverse):
                value = at(values)
                return round(inverse(value)) if value > 0 and math.isfinite(value) else 0
            try:
                found = self.fitted(integer, tuple(map(integer, self.points)))
            except (_Refused, OverflowError, ZeroDivisionError):
                continue
            if all((size := _value(found, point)) and abs(function(size) - value) <= abs(value) * rounding
                   for point, value in zip(self.points, values)):
                return name, found
        raise _Refused(f"no expression of the sizes was found for a number that is {values[0]} for {self.first}")


_FUNCTIONS = (("", float, lambda x: x), ("reciprocal", lambda n: 1 / n, lambda x: 1 / x), ("sqrt", math.sqrt, lambda x: x * x),
              ("rsqrt", lambda n: 1 / math.sqrt(n), lambda x: 1 / (x * x)), ("log", math.log, math.exp))


def _value(size, point):
    if not isinstance(size, SymbolicSize):
        return size
    try:
        return size.value(point)
    except InconclusiveDimensionOperation:
        return None


class _Function:
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


def _entries(text, name):
    """The text of the attribute with this name in a dictionary of attributes."""
    match = re.search(rf"\b{name} = (?:array<i64(?:: ([^>]*))?>|dense<(.*?)> : tensor<[^>]*>)", text)
    return None if match is None else match[1] if match[2] is None else match[2]


class _Module:
    """Writes the module with symbolic sizes."""

    def __init__(self, numbers, names, avals, kept, constraints):
        self.numbers, self.names, self.avals, self.kept, self.constraints = numbers, names, avals, kept, constraints
        self.made, self.functions, self.reducers = 0, [], []
        self.variables = numbers.candidates.names
        lines = numbers.lines
        self.opening = next(i for i, line in enumerate(lines) if line.lstrip().startswith("func.func"))
        referred = [name for line in lines if not line.lstrip().startswith("func.func") for name in
                    re.findall(r'@("(?:[^"\\]|\\.)*"|[\w.$]+)', re.sub(r"func\.call @(\"(?:[^\"\\]|\\.)*\"|[\w.$]+)", "", line))]
        self.fixed = set(referred)  # functions that are named other than by a call keep their arguments

    # Numbers and types

    def sizes(self, text):
        """Integers and holes, separated by commas."""
        return [self.size(token) for token in text.replace("[", "").replace("]", "").split(",") if token.strip()]

    def size(self, token):
        match = _HOLE.fullmatch(token.strip())
        return self.numbers.size(int(match[1])) if match else int(token)

    def shape(self, kind):
        return [self.size(token) for token in _TYPE.fullmatch(kind)[1].split("x")[:-1]]

    def open(self, text):
        """The text with dimensions ? in its types."""
        def opened(match):
            for token in match[1].split("x")[:-1]:
                if "⟨" in token:
                    self.size(token)  # has an expression
            return f"tensor<{_HOLE.sub('?', match[1])}{match[2]}>"
        return _TYPE.sub(opened, text)

    # The text

    def text(self):
        lines, at, out = self.numbers.lines, self.opening, []
        head = lines[0].replace("module @", "module @", 1)
        flag = "jax.uses_shape_polymorphism = true"
        out.append(re.sub(r"attributes \{", f"attributes {{{flag}, ", head, count=1) if " attributes {" in head else
                   head.rstrip("{").rstrip() + f" attributes {{{flag}}} {{")
        out += [self.plain(line) for line in lines[1:self.opening]]
        while at < len(lines):
            if not lines[at].lstrip().startswith("func.func"):
                out.append(self.plain(lines[at]))
                at += 1
                continue
            end = next(i for i in range(at, len(lines)) if lines[i] == "  }")
            out += self.function(lines[at], lines[at + 1:end]) + ["  }"]
            at = end + 1
        return "\n".join(out[:-1] + [line for reducer in self.reducers for line in reducer] + out[-1:]) + "\n"

    def plain(self, line):
        line = self.open(line)
        if "⟨" in line:
            raise _Refused(f"a size is stated in `{_shown(_HOLE.sub('?', line))}`, which has no form with symbolic sizes")
        return line

    def function(self, header, lines):
        name, arguments = re.fullmatch(r"(\s*func\.func (?:\w+ )?@(?:\"(?:[^\"\\]|\\.)*\"|[\w.$]+)\()(.*)", header, re.DOTALL).groups()
        function = _Function(self, "")
        label = name.split("@", 1)[1][:-1]
        if "public" in name and label == "main":
            function.header = self.main(function, name, arguments)
        elif label in self.fixed:
            function.header = self.plain(header)
            function.scalars = _Absent()
        else:
            sizes = [f"%size_{v}: tensor<i32> {{jax.global_constant = \"{v}\"}}" for v in self.variables]
            function.header = name + ", ".join(sizes + ([self.plain(arguments)] if not arguments.startswith(")") else []))
            if arguments.startswith(")"):
                function.header += self.plain(arguments)
            function.scalars.update({v: f"%size_{v}" for v in self.variables})
        self.functions.append(function)
        at = 0
        while at < len(lines):
            at += self.operation(function, lines, at)
        return function.text()

    def main(self, function, name, arguments):
        """The main function takes all arguments, and begins with the variables, solved for from their sizes, and checks."""
        close = _closing(arguments)
        ends = [match.start() for match in re.finditer(r"%arg\d+: ", arguments[:close])]
        given = [arguments[a:b].rstrip(", ") for a, b in zip(ends, ends[1:] + [close])]
        texts = dict(zip(self.kept, given)) | {i: f"%unread{i}: {_type_text(aval)}" for i, aval in enumerate(self.avals) if i not in self.kept}
        parts = [self.plain(texts[i]) for i in range(len(self.avals))]
        self.solve(function, [(part.split(":")[0], _types(part)[0]) for part in parts])
        index = arguments[:arguments.index("%arg")] if arguments.startswith("%index") else ""
        return name + index + ", ".join(parts) + self.plain(arguments[close:])

    def solve(self, function, arguments):
        waiting, checks = [], []
        for (value, kind), aval, name in zip(arguments, self.avals, self.names):
            for axis, size in enumerate(aval.shape):
                if isinstance(size, SymbolicSize):
                    got = function.new(f'"stablehlo.get_dimension_size"({value}) <{{dimension = {axis} : i64}}> : ({kind}) -> tensor<i32>')
                    waiting.append((f"{name}.shape[{axis}]", got, size))
        while waiting:
            left = []
            for where, value, size in waiting:
                unknown = size.variables() - set(function.scalars)
                if len(unknown) == 1 and (found := self._solved(function, value, size, next(iter(unknown)))):
                    function.scalars[next(iter(unknown))] = found
                elif unknown:
                    left.append((where, value, size))
                    continue
                checks.append((where, value, size))
            if len(left) == len(waiting):
                raise _Refused(f"cannot solve for values of dimension variables {left[0][2].variables() - set(function.scalars)}")
            waiting = left
        for name in self.variables:
            self.check(function, "GE", function.scalars[name], function.scalar(1),
                       "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable "
                       f"'{name}', got {{0}}.")
        for where, value, size in checks:
            if function.scalar(size) != value:
                self.check(function, "EQ", value, function.scalar(size),
                           "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size "
                           f"{where} (= {{0}}) and the specification '{size}' (= {{1}}).")
        for text, difference, equal in self.constraints:
            if difference.variables() <= set(self.variables):
                self.check(function, "EQ" if equal else "GE", function.scalar(difference), function.scalar(0),
                           f"Input shapes do not match the symbolic shape constraint {text}. Expected '{difference}' to be "
                           f"{'equal' if equal else 'greater or equal'} to 0, but found {{0}}.")

    def _solved(self, function, value, size, name):
        """The variable's value if the expression is linear in it: its factor times the variable, and terms that are known."""
        factor, rest = 0, []
        for term, count in size.terms:
            if term == ((name, 1),):
                factor = count
            elif any(name == part or not isinstance(part, str) for part, _ in term):
                return None
            else:
                rest.append((term, count))
        if not factor:
            return None
        if rest:
            value = function.binary("subtract", value, function.scalar(SymbolicSize(tuple(rest), size.scope) if rest[0][0] or len(rest) > 1
                                                                       else rest[0][1]))
        return value if factor == 1 else function.binary("divide", value, function.scalar(factor))

    def check(self, function, direction, left, right, message):
        held = function.new(f'"stablehlo.compare"({left}, {right}) <{{comparison_direction = #stablehlo<comparison_direction {direction}>, '
                            "compare_type = #stablehlo<comparison_type SIGNED>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>")
        message = message.replace("\\", "\\\\").replace('"', '\\"')
        function.sizes.append(f"    stablehlo.custom_call @shape_assertion({held}, {left}, {right}) {{api_version = 2 : i32, error_message = "
                              f'"{message}", has_side_effect = true}} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()')

    # Operations

    def operation(self, function, lines, at):
        """Adds the operation that begins at a line; the number of lines that it took."""
        line = lines[at]
        match = _OPERATION.match(line)
        if match is None or "⟨" not in line and match[3] not in ("func.call", "stablehlo.reduce_window"):
            function.lines.append(self.plain(line))
            return 1
        indent, result, name, rest = match.groups()
        short = name.split(".")[-1]
        write = getattr(self, "write_" + short, None) if name != "return" else None
        if short == "reduce_window":
            return self.reduce_window(function, lines, at, match)
        if write is not None:
            function.lines.append(write(function, indent + result, rest, line))
        elif short in _STATED or name.startswith("chlo."):
            function.lines.append(self.plain(line))
        else:
            raise _Refused(f"`{name}` has no form with symbolic sizes here")
        return 1

    def typed(self, rest):
        """The operands, attributes, operand types and result type of an operation with a signature."""
        operands, rest = re.match(r"\(([^)]*)\)\s*(.*)|\s*((?:%[\w#]+(?:, )?)*)\s*(.*)", rest, re.DOTALL).group(1, 2) if rest.startswith("(") \
            else re.match(r"\s*((?:%[\w#]+(?:, )?)*)\s*(.*)", rest, re.DOTALL).groups()
        attributes, signature = rest.rsplit(" : (", 1) if " : (" in rest else (rest[:rest.rindex(": (")], rest[rest.rindex(": (") + 3:])
        inputs, output = signature.rsplit(") -> ", 1)
        return [operand.strip() for operand in operands.split(",") if operand.strip()], attributes.strip(), _types(inputs), output.strip()

    def write_broadcast_in_dim(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        if "⟨" not in output:
            return self.plain(line)
        shape = self.shape(output)
        return (f'{head}"stablehlo.dynamic_broadcast_in_dim"({operands[0]}, {function.vector(shape)}) {attributes} : '
                f"({self.plain(inputs[0])}, tensor<{len(shape)}xi32>) -> {self.plain(output)}")

    def write_reshape(self, function, head, rest, line):
        operands, _, inputs, output = self.typed(rest)
        if "⟨" not in output:
            return self.plain(line)
        shape = self.shape(output)
        return (f"{head}stablehlo.dynamic_reshape {operands[0]}, {function.vector(shape)} : ({self.plain(inputs[0])}, "
                f"tensor<{len(shape)}xi32>) -> {self.plain(output)}")

    def write_iota(self, function, head, rest, _):
        _, attributes, _, output = self.typed(rest)
        shape = self.shape(output)
        return (f'{head}"stablehlo.dynamic_iota"({function.vector(shape)}) {attributes} : (tensor<{len(shape)}xi32>) -> '
                f"{self.plain(output)}")

    def write_slice(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        starts, limits, strides = (self.sizes(_entries(attributes, name) or "") for name in ("start_indices", "limit_indices", "strides"))
        if "⟨" not in attributes:
            return self.plain(line)
        vectors = [function.vector(sizes) for sizes in (starts, limits, strides)]
        return (f'{head}"stablehlo.real_dynamic_slice"({operands[0]}, {", ".join(vectors)}) : ({self.plain(inputs[0])}, '
                f"{', '.join([f'tensor<{len(starts)}xi32>'] * 3)}) -> {self.plain(output)}")

    def write_pad(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        if "⟨" not in attributes:
            return self.plain(line)
        edges = [self.sizes(_entries(attributes, name) or "") for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
        return (f'{head}"stablehlo.dynamic_pad"({", ".join(operands)}, {", ".join(map(function.vector, edges))}) : '
                f"({', '.join(map(self.plain, inputs))}, {', '.join([f'tensor<{len(edges[0])}xi32>'] * 3)}) -> {self.plain(output)}")

    def write_dynamic_slice(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        if "⟨" not in attributes:
            return self.plain(line)
        sizes, rank = self.sizes(_entries(attributes, "slice_sizes")), len(operands) - 1
        vector, place = f"tensor<{rank}xi32>", function.lines
        parts = []
        for operand, kind in zip(operands[1:], inputs[1:]):
            if kind != "tensor<i32>":
                operand = function.new(f"stablehlo.convert {operand} : ({kind}) -> tensor<i32>", place)
            parts.append(function.new(f"stablehlo.reshape {operand} : (tensor<i32>) -> tensor<1xi32>", place))
        starts = parts[0] if rank == 1 else function.new(
            f'"stablehlo.concatenate"({", ".join(parts)}) <{{dimension = 0 : i64}}> : ({", ".join(["tensor<1xi32>"] * rank)}) -> {vector}', place)
        window = function.vector(sizes)
        last = function.new(f"stablehlo.subtract {function.vector(self.shape(inputs[0]))}, {window} : {vector}", place)
        starts = function.new(f"stablehlo.clamp {function.vector([0] * rank)}, {starts}, {last} : {vector}", place)
        ends = function.new(f"stablehlo.add {starts}, {window} : {vector}", place)
        return (f'{head}"stablehlo.real_dynamic_slice"({operands[0]}, {starts}, {ends}, {function.vector([1] * rank)}) : '
                f"({self.plain(inputs[0])}, {vector}, {vector}, {vector}) -> {self.plain(output)}")

    def write_gather(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        if "⟨" not in attributes:
            return self.plain(line)
        sizes = self.sizes(_entries(attributes, "slice_sizes"))
        attributes = re.sub(r",? ?\bslice_sizes = array<i64(?:: [^>]*)?>", "", attributes).replace("<{, ", "<{")
        return (f'{head}"stablehlo.dynamic_gather"({", ".join(operands)}, {function.vector(sizes)}) {attributes} : '
                f"({', '.join(map(self.plain, inputs))}, tensor<{len(sizes)}xi32>) -> {self.plain(output)}")

    def write_convolution(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        if "⟨" not in attributes:
            return self.plain(line)
        flat = self.sizes(_entries(attributes, "padding"))
        rows = [flat[i:i + 2] for i in range(0, len(flat), 2)]
        attributes = re.sub(r",? ?\bpadding = dense<.*?> : tensor<[^>]*>", "", attributes).replace("<{, ", "<{")
        return (f'{head}"stablehlo.dynamic_conv"({", ".join(operands)}, {function.matrix(rows)}) {attributes} : '
                f"({', '.join(map(self.plain, inputs))}, tensor<{len(rows)}x2xi32>) -> {self.plain(output)}")

    def write_call(self, function, head, rest, _):
        name, operands, types = re.fullmatch(r" @(\"(?:[^\"\\]|\\.)*\"|[\w.$]+)\(([^)]*)\) : \((.*)", rest, re.DOTALL).groups()
        if name in self.fixed:
            return self.plain(f"{head}func.call{rest}")
        values = [function.scalars[v] for v in self.variables] + ([operands] if operands else [])
        kinds = ["tensor<i32>"] * len(self.variables) + ([types] if not types.startswith(")") else [])
        return self.plain(f"{head}func.call @{name}({', '.join(values)}) : ({', '.join(kinds)}{types if types.startswith(')') else ''}")

    def write_custom_call(self, function, head, rest, line):
        results = _types(rest.rsplit(" -> ", 1)[1].strip().removeprefix("(").removesuffix(")"))
        if not any("⟨" in result for result in results):
            return self.plain(line)
        operands, attributes, types = re.fullmatch(r" (@[^(]*\([^)]*)\) \{(.*)\} : \(([^)]*\).*)", rest, re.DOTALL).groups()
        if "operand_layouts" in attributes:
            raise _Refused(f"the layouts of `{_shown(line)}` have no form with symbolic sizes here")
        count = len(_types(types.split(")")[0]))
        shapes = [self.shape(result) for result in results]
        places = f"indices_of_shape_operands = dense<[{', '.join(str(count + i) for i in range(len(shapes)))}]> : tensor<{len(shapes)}xi64>"
        values = ", ".join(map(function.vector, shapes))
        kinds = ", ".join(f"tensor<{len(shape)}xi32>" for shape in shapes)
        inputs, output = types.split(")", 1)
        joint = ", " if count else ""
        return self.plain(f"{head}stablehlo.custom_call {operands}{joint}{values}) {{{attributes}{', ' if attributes else ''}{places}}} : "
                          f"({inputs}{joint}{kinds}){output}")

    def write_rng_bit_generator(self, function, head, rest, line):
        operands, attributes, inputs, output = self.typed(rest)
        state, bits = _types(output.removeprefix("(").removesuffix(")"))
        algorithm = {"DEFAULT": 0, "THREE_FRY": 1, "PHILOX": 2}[re.search(r"rng_algorithm (\w+)", attributes)[1]]
        shape = self.shape(bits)
        return (f"{head}stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({operands[0]}, {function.vector(shape)}) "
                f"{{api_version = 2 : i32, rng_algorithm = #stablehlo<rng_algorithm {('DEFAULT', 'THREE_FRY', 'PHILOX')[algorithm]}>}} : "
                f"({self.plain(inputs[0])}, tensor<{len(shape)}xi32>) -> ({state}, {self.plain(bits)})")

    def write_constant(self, function, head, rest, line):
        value, kind = re.fullmatch(r" dense<(.*)> : (tensor<.*>)", rest, re.DOTALL).groups()
        element, shape = _TYPE.fullmatch(kind)[2], self.shape(kind)
        if value.startswith("["):
            if "⟨" in kind:
                raise _Refused(f"the constant `{_shown(_HOLE.sub('?', line))}` has a symbolic number of elements that differ")
            tokens = value.replace("[", "").replace("]", "").split(",")
            if len(tokens) > 64:
                raise _Refused("a constant of many elements depends on the sizes")
            scalars = [self.scalar_of(function, token.strip(), element) for token in tokens]
            one, many = f"tensor<1x{element}>", f"tensor<{len(tokens)}x{element}>"
            parts = [function.new(f"stablehlo.reshape {scalar} : (tensor<{element}>) -> {one}") for scalar in scalars]
            if len(parts) > 1:
                parts = [function.new(f'"stablehlo.concatenate"({", ".join(parts)}) <{{dimension = 0 : i64}}> : '
                                      f"({', '.join([one] * len(parts))}) -> {many}")]
            return f"{head}stablehlo.reshape {parts[0]} : ({many}) -> {self.plain(kind)}"
        scalar = self.scalar_of(function, value, element)
        if "⟨" in kind:
            return (f'{head}"stablehlo.dynamic_broadcast_in_dim"({scalar}, {function.vector(shape)}) <{{broadcast_dimensions = array<i64>}}> '
                    f": (tensor<{element}>, tensor<{len(shape)}xi32>) -> {self.plain(kind)}")
        return f'{head}"stablehlo.broadcast_in_dim"({scalar}) <{{broadcast_dimensions = array<i64>}}> : (tensor<{element}>) -> {kind}'

    def scalar_of(self, function, token, element):
        """A number or a hole as a scalar of an element type."""
        hole = _HOLE.fullmatch(token)
        if hole is None:
            return function.new(f"stablehlo.constant dense<{token}> : tensor<{element}>")
        if element in _MANTISSA:
            name, size = self.numbers.floating(int(hole[1]), element)
        else:
            name, size = "", self.numbers.size(int(hole[1]))
        value = function.scalar(size)
        if element != "i32":
            value = function.new(f"stablehlo.convert {value} : (tensor<i32>) -> tensor<{element}>")
        if name == "reciprocal":
            one = function.new(f"stablehlo.constant dense<1.0e+00> : tensor<{element}>")
            return function.new(f"stablehlo.divide {one}, {value} : tensor<{element}>")
        return function.new(f"stablehlo.{name} {value} : tensor<{element}>") if name else value

    def reduce_window(self, function, lines, at, match):
        end = next(i for i in range(at, len(lines)) if lines[i].startswith(match[1] + "})"))
        opening = match[4]
        if "⟨" not in opening:
            function.lines.append(self.plain(lines[at]))
            return 1
        operands, attributes = re.fullmatch(r"\(([^)]*)\) (.*) \(\{", opening, re.DOTALL).groups()
        operands = operands.split(", ")
        inputs, output = re.fullmatch(r"\s*\}\) : \((.*)\) -> (.*)", lines[end], re.DOTALL).groups()
        inputs, outputs = _types(inputs), _types(output.removeprefix("(").removesuffix(")"))
        window, strides, base, dilations = (self.sizes(_entries(attributes, name) or "") for name in (
            "window_dimensions", "window_strides", "base_dilations", "window_dilations"))
        rank = len(window)
        flat = self.sizes(_entries(attributes, "padding") or ", ".join(["0"] * 2 * rank))
        rows = [flat[i:i + 2] for i in range(0, 2 * rank, 2)]
        # The reducer becomes a function, which must not read values from outside.
        body = lines[at + 1:end]
        parameters = re.fullmatch(r"\s*\^bb\d+\((.*)\):", body[0])[1]
        defined = set(re.findall(r"(%\w+)(?::\d+)?(?: =|: )", "\n".join(body)))
        if not set(re.findall(r"%\w+", "\n".join(body))) <= defined:
            raise _Refused("a window with symbolic sizes reads values from outside of its reducer")
        name = f"reducer_of_window_{len(self.reducers)}"
        yielded = re.fullmatch(r"\s*stablehlo\.return (.*) : (.*)", body[-1])
        self.reducers.append([f"  func.func private @{name}({parameters}) -> ({yielded[2]}) {{", *body[1:-1],
                              f"    return {yielded[1]} : {yielded[2]}", "  }"])
        vectors = [function.vector(sizes or [1] * rank) for sizes in (window, strides, base, dilations)] + [function.matrix(rows)]
        kinds = [*map(self.plain, inputs), *[f"tensor<{rank}xi32>"] * 4, f"tensor<{rank}x2xi32>"]
        results = ", ".join(map(self.plain, outputs))
        function.lines.append(f"{match[1]}{match[2]}stablehlo.custom_call @stablehlo.dynamic_reduce_window({', '.join(operands + vectors)}) "
                              f"{{api_version = 2 : i32, called_computations = [@{name}]}} : ({', '.join(kinds)}) -> "
                              f"{results if len(outputs) == 1 else '(' + results + ')'}")
        return end - at + 1


class _Absent(dict):
    """The sizes of a function that gets none."""

    def __missing__(self, key):
        raise _Refused("a function that is named by an operation reads symbolic sizes")


def _type_text(aval):
    """The type of an argument, with dimensions ?."""
    name = "bool" if aval.dtype == float0 else getattr(aval.dtype, "name", "")
    words = {"key<fry>": "2xui32", "key<rbg>": "4xui32", "key<urbg>": "4xui32"}.get(name) or _ELEMENTS.get(name)
    if words is None:
        raise _Refused(f"an argument of type {aval.dtype} is not read")
    return "tensor<" + "".join(f"{'?' if isinstance(size, SymbolicSize) else size}x" for size in aval.shape) + words + ">"


def _closing(text):
    """The position of the parenthesis that closes an open one."""
    depth, quoted = 0, False
    for at, character in enumerate(text):
        if character == '"' and (at == 0 or text[at - 1] != "\\"):
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
            if depth < 0:
                return at
    return len(text)


def _types(text):
    """Types separated by commas."""
    return re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|!\S+?(?=,|$)", text)


def symbolic_module(lower, avals, names):
    """The text of a function for symbolic sizes, which takes all arguments.

    lower(types) returns the text for concrete types, and the positions of the arguments that it reads."""
    candidates = Candidates(avals)
    texts = _Texts(lower, avals, candidates)
    try:
        numbers = _Numbers(texts, candidates)
        kept = next(iter(texts.known.values()))[1]
        module = _Module(numbers, names, avals, kept, candidates.scope.conditions)
        return module.text()
    except _Refused as refused:
        raise NotImplementedError(f"no program for symbolic sizes: {refused}; export it for known sizes, or constrain the symbolic "
                                  "ones") from None
