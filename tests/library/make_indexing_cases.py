"""Writes indexing_cases.txt: random index expressions and jax's results.

    python make_indexing_cases.py [OUTPUT]          (default: tests/data/indexing_cases.txt.tar.xz)

One case per line: operation mode | shape | entries | values | result. Arrays are written shape:elements, as in 2x3:1,2,3,4,5,6
(a scalar is :5). Entries: i-1 an integer, s1:5:2 a slice, e an ellipsis, n a new axis, a3:0,1,2 an index array,
m4:1,0,0,1 a mask. The indexed array holds 1, 2, 3... as int32. A result 'error' means that jax raises.
"""

import os
import random
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import recordings  # noqa: E402

warnings.filterwarnings("ignore")
random.seed(20)


def write(array):
  array = np.asarray(array)
  return "x".join(map(str, array.shape)) + ":" + ",".join(str(int(v)) for v in array.ravel())


def random_slice(size):
  def bound():
    return None if random.random() < 0.4 else random.randint(-size - 2, size + 2)
  step = random.choice([None, None, 1, 2, 3, -1, -2])
  return slice(bound(), bound(), step)


def random_entries(shape, arrays):
  """A list of (text, index) that consumes at most the dimensions of shape."""
  entries = []
  axis = 0
  ellipsis_used = False
  broadcast = random.choice([(), (2,), (3,), (2, 3), (1, 3), (2, 1), (0,)])
  while axis < len(shape):
    size = shape[axis]
    kind = random.choice("iissssnea" + ("aaam" if arrays else ""))
    if kind == "i" and size:
      i = random.randint(-size, size - 1) if random.random() < 0.9 else random.randint(-size - 3, size + 2)
      entries.append((f"i{i}", i))
      axis += 1
    elif kind == "s":
      s = random_slice(size)
      text = ":".join("" if v is None else str(v) for v in (s.start, s.stop, s.step))
      entries.append((f"s{text}", s))
      axis += 1
    elif kind == "n":
      entries.append(("n", None))
    elif kind == "e" and not ellipsis_used:
      ellipsis_used = True
      entries.append(("e", Ellipsis))
      axis += random.randint(0, len(shape) - axis)
    elif kind == "a" and size:
      form = random.choice([broadcast, broadcast, ()]) if arrays else ()
      a = np.random.RandomState(random.randint(0, 10**6)).randint(-size - 1, size + 1, size=form).astype(np.int32)
      entries.append((f"a{write(a)}", jnp.asarray(a)))
      axis += 1
    elif kind == "m":
      rank = random.randint(1, min(2, len(shape) - axis))
      m = np.random.RandomState(random.randint(0, 10**6)).rand(*shape[axis:axis + rank]) < 0.4
      entries.append((f"m{write(m)}", m))
      axis += rank
    if random.random() < 0.15:
      break
  return entries


def main():
  lines = []
  for n in range(900):
    shape = tuple(random.choice([1, 2, 3, 4, 5, 0 if random.random() < 0.1 else 3]) for _ in range(random.randint(0, 4)))
    x = jnp.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype=jnp.int32).reshape(shape)
    entries = random_entries(shape, arrays=n % 3 != 0)
    index = tuple(i for _, i in entries)
    operation = random.choice(["get", "get", "get", "set", "add", "subtract", "multiply", "min", "max"])
    mode = random.choice(["-", "-", "clip", "fill", "drop", "promise_in_bounds"])
    if operation == "set" and mode != "clip":
      mode = "-"
    values = None
    try:
      kwargs = {} if mode == "-" else {"mode": mode}
      if operation == "get":
        result = x.at[index].get(**kwargs) if kwargs else x[index]
      else:
        target = np.shape(x[index])
        cut = random.randint(0, len(target))
        value_shape = tuple(random.choice([d, d, 1]) for d in target[cut:])
        values = np.random.RandomState(n).randint(-9, 10, size=value_shape).astype(np.int32)
        if operation == "set":  # the order of duplicate writes is unspecified: make them equal
          values = np.full(value_shape, 7, np.int32)
        result = getattr(x.at[index], operation)(values, **kwargs)
      text = write(result)
    except (IndexError, ValueError, TypeError):
      text = "error"
    lines.append(f"{operation} {mode} | {'x'.join(map(str, shape))} | {' '.join(t for t, _ in entries)} | "
                 f"{'' if values is None else write(values)} | {text}\n")
  recordings.write(recordings.output("indexing_cases.txt"), "".join(lines))


if __name__ == "__main__":
  main()
