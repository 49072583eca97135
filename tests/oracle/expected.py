"""The plain text format of expected values: written and read here, read in C++ by expected.h.

A file is a list of records. Lines that start with '#' between records' lines are comments, blank lines are skipped.

    record NAME                          begins a record; NAME has no blanks
    field KEY VALUE                      VALUE is the rest of the line
    array KEY DTYPE[D0,D1,...] FLAG HEX  a value; DTYPE is jax's name; FLAG is 'weak' or 'strong'
    type KEY DTYPE[D0,D1,...] FLAG       a type without a value
    text KEY N                           N lines follow, each verbatim (a text's final newline is not kept)
    end                                  ends the record

HEX is the elements in row-major order, little-endian, two hex digits a byte, '-' if there are no bytes. bool and the
2- and 4-bit types take one byte an element; complex is real then imaginary part. Key arrays have DTYPE key<fry>, key<rbg>
or key<urbg>, the key shape in brackets and the uint32 words of all keys as HEX. float0 has '-'.
KEYs may repeat: arrays 'input' in order are the arguments (flattened), 'output' the results (flattened).
"""
import io
import os
import sys

import ml_dtypes
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import recordings  # noqa: E402

_ML_NAMES = [n for n in dir(ml_dtypes) if n.startswith(("float", "int", "uint", "bfloat"))
             and isinstance(getattr(ml_dtypes, n), type)]
_DTYPES = {n: np.dtype(getattr(ml_dtypes, n)) for n in _ML_NAMES}
_DTYPES.update({n: np.dtype(n) for n in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128")})


def _hex(data):
  return data.hex() or "-"


def _shape(shape):
  return "[" + ",".join(map(str, shape)) + "]"


def array_line(key, value, weak=False):
  """The line for one array: a numpy array, a jax array or a jax key array."""
  import jax
  flag = "weak" if weak else "strong"
  dtype = getattr(value, "dtype", None)
  if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
    words = np.asarray(jax.random.key_data(value))
    return f"array {key} {dtype.name}{_shape(value.shape)} {flag} {_hex(words.tobytes())}"
  value = np.asarray(value)
  if value.dtype == jax.dtypes.float0:
    return f"array {key} float0{_shape(value.shape)} {flag} -"
  data = np.ascontiguousarray(value).tobytes()
  return f"array {key} {value.dtype.name}{_shape(value.shape)} {flag} {_hex(data)}"


def type_line(key, aval):
  name = aval.dtype.name if aval.dtype != _float0() else "float0"
  return f"type {key} {name}{_shape(aval.shape)} {'weak' if getattr(aval, 'weak_type', False) else 'strong'}"


def _float0():
  import jax
  return jax.dtypes.float0


def text_lines(key, text):
  lines = text.split("\n")
  if lines and lines[-1] == "":
    lines.pop()
  return [f"text {key} {len(lines)}"] + lines


class Record:
  """One record: fields (dict of lists), arrays and types (lists of (key, value)), texts (dict)."""

  def __init__(self, name):
    self.name, self.fields, self.arrays, self.texts = name, {}, [], {}

  def get(self, key, default=None):
    return self.fields.get(key, [default])[0]

  def of(self, key):
    return [value for k, value in self.arrays if k == key]


def parse_array(spec, data):
  name, shape = spec[:-1].split("[")
  shape = tuple(int(d) for d in shape.split(",") if d)
  data = b"" if data == "-" else bytes.fromhex(data)
  if name.startswith("key<"):
    return np.frombuffer(data, np.uint32).reshape(shape + (-1,))
  if name == "float0":
    return np.zeros(shape, _float0())
  return np.frombuffer(data, _DTYPES[name]).reshape(shape)


def read(path):
  """Yields the records of a file, or of a recording by its name."""
  record = None
  with io.StringIO(recordings.read(path)) as file:
    for line in file:
      line = line.rstrip("\n")
      if not line or line[0] == "#":
        continue
      word, _, rest = line.partition(" ")
      if word == "record":
        record = Record(rest)
      elif word == "field":
        key, _, value = rest.partition(" ")
        record.fields.setdefault(key, []).append(value)
      elif word == "array":
        key, spec, _, data = rest.split(" ")
        record.arrays.append((key, parse_array(spec, data)))
      elif word == "type":
        key, value = rest.split(" ", 1)
        record.fields.setdefault("type " + key, []).append(value)
      elif word == "text":
        key, count = rest.split(" ")
        record.texts[key] = "".join(next(file) for _ in range(int(count)))
      elif word == "end":
        yield record
      else:
        raise ValueError(f"{path}: unknown line {line[:60]!r}")


def write(path, comment, records):
  """records: iterables of lines between 'record NAME' and 'end', as (name, lines)."""
  parts = [f"# {line}".rstrip() + "\n" for line in comment.strip().split("\n")]
  for name, lines in records:
    parts += [f"\nrecord {name}\n", *(line + "\n" for line in lines), "end\n"]
  recordings.write(path, "".join(parts))
