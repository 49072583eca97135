"""Parses an XSpace in the text format of protocol buffers: planes { name: "/host:CPU" lines { ... } }."""
import re
import struct

_STAT = {"metadata_id": (1, "integer"), "double_value": (2, "real"), "uint64_value": (3, "natural"), "int64_value": (4, "integer"),
         "str_value": (5, "text"), "bytes_value": (6, "bytes"), "ref_value": (7, "natural")}
_EVENT = {"metadata_id": (1, "integer"), "offset_ps": (2, "integer"), "duration_ps": (3, "integer"), "stats": (4, _STAT),
          "num_occurrences": (5, "integer")}
_LINE = {"id": (1, "integer"), "name": (2, "text"), "timestamp_ns": (3, "integer"), "events": (4, _EVENT), "duration_ps": (9, "integer"),
         "display_id": (10, "integer"), "display_name": (11, "text")}
_EVENT_METADATA = {"id": (1, "integer"), "name": (2, "text"), "metadata": (3, "bytes"), "display_name": (4, "text"), "stats": (5, _STAT),
                   "child_id": (6, "integer")}
_STAT_METADATA = {"id": (1, "integer"), "name": (2, "text"), "description": (3, "text")}
_PLANE = {"id": (1, "integer"), "name": (2, "text"), "lines": (3, _LINE),
          "event_metadata": (4, {"key": (1, "integer"), "value": (2, _EVENT_METADATA)}),
          "stat_metadata": (5, {"key": (1, "integer"), "value": (2, _STAT_METADATA)}), "stats": (6, _STAT)}
_SPACE = {"planes": (1, _PLANE), "errors": (2, "text"), "warnings": (3, "text"), "hostnames": (4, "text")}

_TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_]\w*)"""
                    r"""|(?P<number>[-+]?[\w.]+(?:[eE][-+]?\d+)?)|(?P<mark>[{}<>:,;])""")
_MAX_DEPTH = 16


def serialize(text):
    """Serializes the message; the ValueError for invalid text names the line."""
    if not isinstance(text, str):
        raise TypeError(f"text_proto_to_serialized_xspace: expected text, got {type(text).__name__}")
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise _error(text, at, f"unexpected {text[at]!r}")
        if found.lastgroup:
            tokens.append((found.lastgroup, found.group(), at))
        at = found.end()
    parser = _Parser(text, tokens)
    result = parser.message(_SPACE, None, 0)
    if parser.at < len(tokens):
        raise parser.error("unexpected end of a message")
    return result


def _error(text, at, problem):
    return ValueError(f"XSpace as text: line {text.count(chr(10), 0, at) + 1}: {problem}")


class _Parser:
    def __init__(self, text, tokens):
        self.text, self.tokens, self.at = text, tokens, 0

    def error(self, problem):
        where = self.tokens[min(self.at, len(self.tokens) - 1)][2] if self.tokens else 0
        return _error(self.text, where, problem)

    def peek(self):
        return self.tokens[self.at][:2] if self.at < len(self.tokens) else (None, None)

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def message(self, fields, end, depth):
        if depth > _MAX_DEPTH:
            raise self.error("messages are nested too deeply")
        out = bytearray()
        while self.peek()[0] is not None and self.peek()[1] != end:
            kind, name = self.take()
            if kind != "word" or name not in fields:
                import difflib
                nearest = difflib.get_close_matches(str(name), fields, n=1)
                self.at -= 1
                raise self.error(f"no field {name!r}" + (f"; did you mean {nearest[0]!r}?" if nearest else ""))
            number, type = fields[name]
            if self.peek()[1] == ":":
                self.take()
            if isinstance(type, dict):
                closing = {"{": "}", "<": ">"}.get(self.take()[1])
                if closing is None:
                    raise self.error(f"{name} is a message: expected '{{'")
                part = self.message(type, closing, depth + 1)
                if self.take()[1] != closing:
                    raise self.error(f"{name} has no end")
                out += _bytes(number, part)
            else:
                out += self.value(number, type, name)
            if self.peek()[1] in (",", ";"):
                self.take()
        return bytes(out)

    def value(self, number, type, name):
        kind, token = self.take()
        try:
            if type in ("text", "bytes"):
                content = b""
                if kind != "text":
                    raise ValueError
                while kind == "text":
                    content += _unescaped(token[1:-1])
                    kind, token = self.take()
                self.at -= 1
                if type == "text":
                    content.decode()
                return _bytes(number, content)
            if type == "real":
                return _key(number, 1) + struct.pack("<d", float(token))
            value = int(token, 0)
            low, high = (0, 2**64) if type == "natural" else (-(2**63), 2**63)
            if not low <= value < high:
                raise ValueError
            return _key(number, 0) + _varint(value % 2**64)
        except (ValueError, TypeError):
            self.at -= 1
            raise self.error(f"{name} is a value of type {type}, got {token!r}") from None


def _unescaped(text):
    """The bytes of a text: escapes are decoded, everything else is UTF-8."""
    return re.sub(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", _escape, text.encode(), flags=re.DOTALL)


def _escape(found):
    octal, hexadecimal, letter = found.groups()
    if octal or hexadecimal:
        value = int(octal, 8) if octal else int(hexadecimal, 16)
        return bytes([value])
    plain = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
    return plain.get(letter, letter)


def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(number, kind):
    return _varint(number << 3 | kind)


def _bytes(number, content):
    return _key(number, 2) + _varint(len(content)) + content
