"""A view of a StableHLO text as jax's users read modules of MLIR: functions, blocks, operations, their attributes and types."""
import re

_NAME = r'@(?:"((?:[^"\\]|\\.)*)"|([\w.$\-]+))'
_OPERATION = re.compile(r'\s*(?:((?:%[\w:]+(?:, )?)+) = )?(?:"([\w.]+)"|((?:stablehlo|chlo|func|sdy)\.\w+|return|call))(.*)', re.DOTALL)


class Attribute:
    """An attribute; str() is its text."""

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Attribute) and self._text == other._text

    def __hash__(self):
        return hash(self._text)


class DictAttr(Attribute):
    """A dictionary of attributes."""

    def __init__(self, text):
        super().__init__(text)
        self._entries = {}
        for entry in split(text[1:-1]):
            name, _, value = _cut(entry)
            self._entries[name] = attribute(value)

    def __contains__(self, name):
        return name in self._entries

    def __getitem__(self, name):
        return self._entries[name]

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)


class ArrayAttr(Attribute):
    """A list of attributes."""

    def __init__(self, text):
        super().__init__(text)
        self._elements = [attribute(part) for part in split(text[1:-1])]

    def __getitem__(self, index):
        return self._elements[index]

    def __len__(self):
        return len(self._elements)


class StringAttr(Attribute):
    """A text."""

    @property
    def value(self) -> str:
        """The text itself."""
        return re.sub(r"\\([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), self._text[1:-1]).replace('\\"', '"').replace("\\\\", "\\")


def attribute(text):
    """The attribute with this text."""
    text = text.strip()
    kind = {"{": DictAttr, "[": ArrayAttr, '"': StringAttr}.get(text[:1], Attribute)
    return kind(text)


class Type:
    """The type of a value; str() is its text."""

    def __init__(self, text):
        self._text = text.strip()

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Type) and self._text == other._text

    def __hash__(self):
        return hash(self._text)


class Value:
    """An operand or a result."""

    def __init__(self, kind):
        self.type = Type(kind)


class Operation:
    """An operation: its name, attributes, operands and results."""

    def __init__(self, name, attributes, operands, results):
        self.OPERATION_NAME, self.attributes, self.operands, self.results = name, attributes, operands, results

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.OPERATION_NAME


class Block:
    """The operations of a block in their order."""

    def __init__(self, operations):
        self.operations = operations

    def __iter__(self):
        return iter(self.operations)


class Region:
    """The blocks of a region."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


class Function:
    """A function of a module."""

    OPERATION_NAME = "func.func"

    def __init__(self, name, body):
        self.name, self.body = StringAttr(f'"{name}"'), body


class Module:
    """The program of a lowered function: as text, StableHLO."""

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text

    @property
    def operation(self) -> "Module":
        """The module as an operation."""
        return self

    def get_asm(self, **_) -> str:
        """The text."""
        return self._text

    @property
    def body(self) -> Block:
        """The functions of the module."""
        functions, lines = [], self._text.splitlines()
        for at, line in enumerate(lines):
            match = re.match(rf"  func\.func (?:\w+ )?{_NAME}\(", line)
            if match:
                end = next((i for i in range(at, len(lines)) if lines[i].startswith("  }")), len(lines))
                functions.append(Function(match[1] or match[2], Region([Block(list(_operations(lines[at + 1:end])))])))
        return Block(functions)


def _operations(lines):
    """The operations of a function, without those of their regions."""
    at = 0
    while at < len(lines):
        match = _OPERATION.match(lines[at])
        text, at = lines[at], at + 1
        if match is None:
            continue
        if text.rstrip().endswith("({"):
            indent = text[:len(text) - len(text.lstrip())]
            while at < len(lines) and not (lines[at].startswith(indent + "}) ") or lines[at].startswith(indent + "}) :")):
                at += 1
            if at < len(lines):
                match = _OPERATION.match(text.rstrip()[:-2] + lines[at].strip()[2:])
                at += 1
        yield _operation(match)


def _operation(match):
    _, quoted, plain, rest = match.groups()
    attributes = {}
    for text in re.findall(r"<?\{", rest)[:1]:
        start = rest.index(text) + len(text) - 1
        body = rest[start:_closing(rest, start) + 1]
        attributes = dict(DictAttr(body)._entries)
    target = re.match(rf" {_NAME}", rest)
    if target:
        name = target[1] or target[2]
        attributes["call_target_name" if (quoted or plain).endswith("custom_call") else "callee"] = StringAttr(f'"{name}"')
    colon = rest.rfind(" : ")
    signature = rest[colon + 3:] if colon >= 0 else ""
    inputs, arrow, outputs = signature.rpartition(" -> ")
    if not arrow:
        count = len(re.findall(r"%[\w#]+", rest[:colon]))
        kinds = split(signature)
        inputs = kinds * count if len(kinds) == 1 else kinds
        outputs = kinds[-1:]
    else:
        inputs, outputs = (split(part.strip().removeprefix("(").removesuffix(")")) for part in (inputs, outputs))
    return Operation(quoted or plain, attributes, [Value(kind) for kind in inputs], [Value(kind) for kind in outputs])


def _closing(text, start):
    """The position of the bracket that closes the one at `start`."""
    depth, quoted = 0, False
    for at in range(start, len(text)):
        if text[at] == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (text[at] in "{[(<") - (text[at] in "}])" or text[at] == ">" and text[at - 1] != "-")
            if depth == 0:
                return at
    return len(text) - 1


def split(text):
    """The parts of a text between commas that are not within brackets or quotes."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "{[(<":
            at = _closing(text, at)
        elif text[at] == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end() - 1
        elif text[at] == ",":
            parts.append(text[start:at])
            start = at + 1
        at += 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _cut(entry):
    """The name, the sign and the value of an entry of a dictionary."""
    match = re.match(r'(?:"((?:[^"\\]|\\.)*)"|([\w.$]+))\s*(=|$)\s*', entry)
    return match[1] or match[2], match[3], entry[match.end():] if match[3] else "unit"
