"""StableHLO modules with symbolic sizes, made from texts that were lowered for several concrete sizes.

The texts of a function for different sizes have the same operations; numbers that differ between them are sizes that depend on the
arguments' sizes. Each gets its expression of the variables. Types get dimensions `?`, and operations whose attributes state such a size
get their dynamic form, to which the size is an operand. Texts for other sizes, small ones among them, check the expressions; a function
whose operations depend on the sizes is refused. Size 1 is no check: as in jax, a symbolic size is not taken for 1.
"""
import re

from capibara._dtypes import float0
from capibara._symbolic_sizes import SymbolicSize
from capibara._symbolic_tracing import Candidates
from capibara.jax.ffi import ELEMENTS
from capibara.jax._symbolic_numbers import MANTISSA, Numbers, Refused, SizedFunction, Texts, shown

_HOLE = re.compile(r"⟨(\d+)⟩")
_TYPE = re.compile(r"tensor<((?:(?:\d+|⟨\d+⟩)x)*)([^<>]*(?:<[^<>]*>)?)>")
_OPERATION = re.compile(r'(\s*)((?:%[\w:]+ = )?)"?((?:stablehlo|chlo|func)\.\w+|return)"?(?!\w)(.*)', re.DOTALL)
# Operations that state the types of their results alone.
_STATED = set(
    "abs add after_all all_gather all_reduce all_to_all and atan2 bitcast_convert case cbrt ceil cholesky clamp "
    "collective_permute compare complex concatenate convert convolution cosine count_leading_zeros divide dot_general "
    "dynamic_update_slice exponential exponential_minus_one fft floor if imag is_finite log log_plus_one logistic map "
    "maximum minimum multiply negate not optimization_barrier or popcnt power real reduce reduce_precision reduce_scatter "
    "remainder return reverse round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sort sqrt subtract tan tanh transpose triangular_solve while xor".split())


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
        head = head.replace(f"{flag}, ", "").replace(f" attributes {{{flag}}}", "")  # of texts for several platforms
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
            raise Refused(f"a size is stated in `{shown(_HOLE.sub('?', line))}`, which has no form with symbolic sizes")
        return line

    def function(self, header, lines):
        name, arguments = re.fullmatch(r"(\s*func\.func (?:\w+ )?@(?:\"(?:[^\"\\]|\\.)*\"|[\w.$]+)\()(.*)", header, re.DOTALL).groups()
        function = SizedFunction(self, "")
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
        texts = dict(zip(self.kept, given[len(given) - len(self.kept):]))
        texts |= {i: f"%unread{i}: {_type_text(aval)}" for i, aval in enumerate(self.avals) if i not in texts}
        parts = [self.plain(texts[i]) for i in range(len(self.avals))]
        self.solve(function, [(part.split(":")[0], _types(part)[0]) for part in parts])
        index = arguments[:ends[0]] + given[0] + ", " if len(given) > len(self.kept) else ""
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
                raise Refused(f"cannot solve for values of dimension variables {left[0][2].variables() - set(function.scalars)}")
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
        function.sizes.append(f"    stablehlo.custom_call @shape_assertion({held}, {left}, {right}) {{api_version = 2 : i32, "
                              f'error_message = "{message}", has_side_effect = true}} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()')

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
            raise Refused(f"`{name}` has no form with symbolic sizes here")
        return 1

    def typed(self, rest):
        """The operands, attributes, operand types and result type of an operation with a signature."""
        form = r"\(([^)]*)\)\s*(.*)" if rest.startswith("(") else r"\s*((?:%[\w#]+(?:, )?)*)\s*(.*)"
        operands, rest = re.match(form, rest, re.DOTALL).groups()
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
            f'"stablehlo.concatenate"({", ".join(parts)}) <{{dimension = 0 : i64}}> : '
            f"({', '.join(['tensor<1xi32>'] * rank)}) -> {vector}", place)
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
            raise Refused(f"the layouts of `{shown(line)}` have no form with symbolic sizes here")
        count = len(_types(types.split(")")[0]))
        shapes = [self.shape(result) for result in results]
        places = f"indices_of_shape_operands = dense<[{', '.join(str(count + i) for i in range(len(shapes)))}]> : tensor<{len(shapes)}xi64>"
        values = ", ".join(map(function.vector, shapes))
        kinds = ", ".join(f"tensor<{len(shape)}xi32>" for shape in shapes)
        inputs, output = types.split(")", 1)
        joint = ", " if count else ""
        return self.plain(f"{head}stablehlo.custom_call {operands}{joint}{values}) {{{attributes}{', ' if attributes else ''}{places}}} : "
                          f"({inputs}{joint}{kinds}){output}")

    def write_rng_bit_generator(self, function, head, rest, _):
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
                raise Refused(f"the constant `{shown(_HOLE.sub('?', line))}` has a symbolic number of elements that differ")
            tokens = value.replace("[", "").replace("]", "").split(",")
            if len(tokens) > 64:
                raise Refused("a constant of many elements depends on the sizes")
            scalars = [self.scalar_of(function, token.strip(), element) for token in tokens]
            one, many = f"tensor<1x{element}>", f"tensor<{len(tokens)}x{element}>"
            parts = [function.new(f"stablehlo.reshape {scalar} : (tensor<{element}>) -> {one}") for scalar in scalars]
            if len(parts) > 1:
                parts = [function.new(f'"stablehlo.concatenate"({", ".join(parts)}) <{{dimension = 0 : i64}}> : '
                                      f"({', '.join([one] * len(parts))}) -> {many}")]
            return f"{head}stablehlo.reshape {parts[0]} : ({many}) -> {self.plain(kind)}"
        scalar = self.scalar_of(function, value, element)
        if "⟨" in kind:
            return (f'{head}"stablehlo.dynamic_broadcast_in_dim"({scalar}, {function.vector(shape)}) '
                    f"<{{broadcast_dimensions = array<i64>}}> : (tensor<{element}>, tensor<{len(shape)}xi32>) -> {self.plain(kind)}")
        return f'{head}"stablehlo.broadcast_in_dim"({scalar}) <{{broadcast_dimensions = array<i64>}}> : (tensor<{element}>) -> {kind}'

    def scalar_of(self, function, token, element):
        """A number or a hole as a scalar of an element type."""
        hole = _HOLE.fullmatch(token)
        if hole is None:
            return function.new(f"stablehlo.constant dense<{token}> : tensor<{element}>")
        if element in MANTISSA:
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
            raise Refused("a window with symbolic sizes reads values from outside of its reducer")
        name = f"reducer_of_window_{len(self.reducers)}"
        yielded = re.fullmatch(r"\s*stablehlo\.return (.*) : (.*)", body[-1])
        self.reducers.append([f"  func.func private @{name}({parameters}) -> ({yielded[2]}) {{", *body[1:-1],
                              f"    return {yielded[1]} : {yielded[2]}", "  }"])
        vectors = [function.vector(sizes or [1] * rank) for sizes in (window, strides, base, dilations)] + [function.matrix(rows)]
        kinds = [*map(self.plain, inputs), *[f"tensor<{rank}xi32>"] * 4, f"tensor<{rank}x2xi32>"]
        results = ", ".join(map(self.plain, outputs))
        values = ", ".join(operands + vectors)
        function.lines.append(f"{match[1]}{match[2]}stablehlo.custom_call @stablehlo.dynamic_reduce_window({values}) "
                              f"{{api_version = 2 : i32, called_computations = [@{name}]}} : ({', '.join(kinds)}) -> "
                              f"{results if len(outputs) == 1 else '(' + results + ')'}")
        return end - at + 1


class _Absent(dict):
    """The sizes of a function that gets none."""

    def __missing__(self, key):
        raise Refused("a function that is named by an operation reads symbolic sizes")


def _type_text(aval):
    """The type of an argument, with dimensions ?."""
    name = "bool" if aval.dtype == float0 else getattr(aval.dtype, "name", "")
    words = {"key<fry>": "2xui32", "key<rbg>": "4xui32", "key<urbg>": "4xui32"}.get(name) or ELEMENTS.get(name)
    if words is None:
        raise Refused(f"an argument of type {aval.dtype} is not read")
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
    texts = Texts(lower, avals, candidates)
    try:
        numbers = Numbers(texts, candidates)
        kept = next(iter(texts.known.values()))[1]
        module = _Module(numbers, names, avals, kept, candidates.scope.conditions)
        return module.text()
    except Refused as refused:
        raise NotImplementedError(f"no program for symbolic sizes: {refused}; export it for known sizes, or constrain the symbolic "
                                  "ones") from None
