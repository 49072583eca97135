"""Loops that update small windows of large carries: in place, and with jax's values."""
import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

N = 300  # more than fits in registers


def loop(p, body, start, steps=40):
  """Runs body(i, *carry) -> carry in a while loop, which no rewrite unrolls."""
  return p.lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, *body(*c)), (0, *start))


def rows(p, dtype=np.float32, shape=(N, 3)):
  return p.numpy.asarray(np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)


PROGRAMS = {
  "set": lambda p, x: loop(p, lambda i, y, b: (p.numpy.sin(y), b.at[i].set(y)), (x, rows(p))),
  "set by a choice": lambda p, x: loop(p, lambda i, y, b: (y * 1.5, b.at[i].set(p.numpy.where(y[0] > 4, y, b[i]))), (x, rows(p))),
  "add": lambda p, x: loop(p, lambda i, y, b: (y + 1, b.at[i % 5].add(y)), (x, rows(p))),
  "two updates": lambda p, x: loop(p, lambda i, y, b: (y + 1, b.at[i].set(y).at[i + 1].set(2 * y)), (x, rows(p))),
  "read between updates": lambda p, x: loop(p, lambda i, y, b: between(p, i, y, b), (x, rows(p))),
  "old value read after its update": lambda p, x: loop(p, lambda i, y, b: old_after(p, i, y, b), (x, rows(p))),
  "neighbours": lambda p, x: loop(p, lambda i, y, b: (y, b.at[i + 1].set(b[i] + y)), (x, rows(p))),
  "shifted window": lambda p, x: windows(p, x, (8,), lambda window: 2 * window, shift=1),
  "reversed window": lambda p, x: windows(p, x, (8,), lambda window: window[::-1] + 1),
  "transposed window": lambda p, x: windows(p, x, (3, 3), lambda window: window.T + 1),
  "reshaped window": lambda p, x: loop(p, lambda i, y, b: (y, reshaped(p, i, y, b)), (x, rows(p))),
  "two buffers": lambda p, x: loop(p, lambda i, y, a, b: (y + 1, a.at[i].set(b[i]), b.at[i].set(y)), (x, rows(p), 2 * rows(p))),
  "exchanged buffers": lambda p, x: loop(p, lambda i, y, a, b: (y, b.at[i].set(y), a.at[i].set(2 * y)), (x, rows(p), 2 * rows(p))),
  "one start of two buffers": lambda p, x: one_start(p, x),
  "the start is read again": lambda p, x: (lambda b: (loop(p, lambda i, y, c: (y, c.at[i].set(y)), (x, b)), b.sum(0)))(rows(p) + x),
  "a buffer beside itself": lambda p, x: (lambda b: loop(p, lambda i, y, c: (y + b[i], c.at[i].set(b[i + 1])), (x, b)))(rows(p) + x),
  "unchanged": lambda p, x: loop(p, lambda i, y, b: (y + b[i], b), (x, rows(p))),
  "not at all": lambda p, x: loop(p, lambda i, y, b: (y, b.at[i].set(y)), (x, rows(p)), steps=0),
  "out of bounds": lambda p, x: loop(p, lambda i, y, b: (y + 1, b.at[i * 40 - 100].set(y)), (x, rows(p))),
  "clipped": lambda p, x: loop(p, lambda i, y, b: (y + 1, b.at[i * 40].set(y, mode="clip")), (x, rows(p))),
  "condition reads it": lambda p, x: p.lax.while_loop(lambda c: c[1][c[0], 0] < 6, lambda c: (c[0] + 1, c[1].at[c[0] + 2].add(x)),
                                                      (0, rows(p))),
  "one branch updates": lambda p, x: loop(p, lambda i, y, b: (y + 1, p.lax.cond(i % 3 == 0, lambda b: b.at[i].set(y), lambda b: b, b)),
                                          (x, rows(p))),
  "both branches update": lambda p, x: loop(p, lambda i, y, b: branches(p, i, y, b), (x, rows(p))),
  "a branch hands it on": lambda p, x: loop(
    p, lambda i, y, b: p.lax.cond(i % 2 == 0, lambda y, b: (y + b[i], b), lambda y, b: (y, b), y, b), (x, rows(p))),
  "branches exchange": lambda p, x: loop(
    p, lambda i, y, a, b: (y, *p.lax.cond(i % 2 == 0, lambda a, b: (a.at[i].set(y), b), lambda a, b: (b, a), a, b)),
    (x, rows(p), 2 * rows(p)), steps=7),
  "nested": lambda p, x: loop(p, lambda i, y, b: nested(p, i, y, b), (x, rows(p))),
  "nested, unread": lambda p, x: loop(p, lambda i, y, b: (nested(p, i, y, b)[0], b), (x, rows(p))),
  "nested beside a sort": lambda p, x: loop(p, lambda i, y, b: sorted_and(p, i, y, b, nested), (x, rows(p))),
  "nested, the old value read before": lambda p, x: loop(
    p, lambda i, y, b: sorted_and(p, i, y + b[i], b, lambda p, i, y, b: nested(p, i, y + b[i + 1], b)), (x, rows(p))),
  "nested, the old value read after": lambda p, x: loop(
    p, lambda i, y, b: sorted_and(p, i, y, b, lambda p, i, y, c: (lambda r: (r[0] + b[i], r[1]))(nested(p, i, y, c))), (x, rows(p))),
  "nested, the old value beside": lambda p, x: loop(p, lambda i, y, b: sorted_and(p, i, y, b, beside), (x, rows(p))),
  "scan within": lambda p, x: loop(
    p, lambda i, y, b: sorted_and(p, i, y, b, lambda p, i, y, b: p.lax.scan(lambda c, k: ((c[0] + 1, c[1].at[k].add(c[0])), None), (y, b),
                                                                         p.numpy.arange(4))[0]), (x, rows(p))),
  "two dimensions": lambda p, x: loop(p, lambda i, y, b: (y, p.lax.dynamic_update_slice(b, p.numpy.outer(x, x)[:2] * i, (i, i % 5))),
                                      (x, rows(p, shape=(60, 9)))),
  "batched": lambda p, x: p.jax.vmap(lambda s: p.lax.fori_loop(0, 9, lambda i, b: b.at[i].set(s + b[i]), rows(p)))(x),
  "gradient": lambda p, x: p.jax.grad(lambda x: p.lax.fori_loop(0, 9, lambda i, b: b.at[i].set(x * b[i + 1]), rows(p)).sum())(x),
}


def windows(p, x, sizes, change, shift=0):
  zeros = (0,) * (len(sizes) - 1)

  def body(i, y, b):
    return y, p.lax.dynamic_update_slice(b, change(p.lax.dynamic_slice(b, (i, *zeros), sizes)), (i + shift, *zeros))
  return loop(p, body, (x, rows(p, shape=(N, *sizes[1:]))))


def between(p, i, y, b):
  a = b.at[i].set(y)
  return a[i + 1] + y, a.at[i + 1].set(b[i])


def old_after(p, i, y, b):
  a = b.at[i].set(2 * y)
  return b[i] + a[i], a


def reshaped(p, i, y, b):
  window = p.lax.dynamic_slice(b, (i, 0), (2, 3)).reshape(3, 2)
  return p.lax.dynamic_update_slice(b, p.numpy.where(window > 3, window, -window).reshape(2, 3), (i, 0))


def branches(p, i, y, b):
  return p.lax.switch(i % 3, [lambda y, b: (y + 1, b.at[i].set(y)), lambda y, b: (y, b.at[i + 1].add(y)), lambda y, b: (b[i], b)], y, b)


def nested(p, i, y, b):
  _, y, b = loop(p, lambda k, y, b: (y + b[k], b.at[i + k].set(y)), (y, b), steps=3)
  return y % 11, b


def sorted_and(p, i, y, b, change):
  """A part that does not fit in registers comes first."""
  y = p.numpy.sort(p.numpy.concatenate([y, p.numpy.cos(p.numpy.arange(80.0)) * i]))[-3:]
  return change(p, i, y % 13, b)


def beside(p, i, y, b):
  return loop(p, lambda k, y, c: (y + b[k], c.at[k].set(2 * b[k])), (y, b), steps=3)[1:]


def one_start(p, x):
  b = rows(p) + x
  return loop(p, lambda i, y, a, b: (y, a.at[i].set(y), b.at[i].set(a[i])), (x, b, b))


class Peer:
  def __init__(self, module):
    self.jax, self.numpy, self.lax = module, module.numpy, module.lax


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_jax(name):
  x = np.float32([1, 2, 3])
  got, want = (p.jax.jit(lambda x, p=p: PROGRAMS[name](p, x))(x) for p in (Peer(jax), Peer(oracle)))
  for ours, theirs in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64"])
def test_every_kind_of_element(dtype):
  def program(p, x):
    return loop(p, lambda i, y, b: (y, b.at[i].set(p.numpy.where(i % 3 == 0, b[i], y))), (x.astype(dtype), rows(p, dtype)))

  got, want = (p.jax.jit(lambda x, p=p: program(p, x))(np.float32([0, 1, 5])) for p in (Peer(jax), Peer(oracle)))
  np.testing.assert_array_equal(np.asarray(got[2]).astype(np.complex64), np.asarray(want[2]).astype(np.complex64))


@pytest.mark.parametrize("name", ["set", "set by a choice", "add", "two updates", "neighbours", "one branch updates", "nested",
                                  "nested beside a sort", "scan within"])
def test_no_second_buffer_is_needed(name):
  compiled = jax.jit(lambda x, b: PROGRAMS[name](Peer(jax), x + b[0])).lower(np.ones(3, np.float32), np.ones((N, 3), np.float32)).compile()
  assert compiled.memory_analysis().temp_size_in_bytes < N * 3 * 4
