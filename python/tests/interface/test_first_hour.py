"""What a newcomer sees first: examples of docstrings, printed tracers, missing devices and names; beside what jax prints."""
import contextlib
import importlib
import inspect
import io
import pydoc
import re

import jax as real
import numpy as np
import pytest

import capibara.jax as jax
from capibara import _examples

MODULES = ["jax", "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.nn", "jax.random"]
EXAMPLES = [(module, name) for module in MODULES for name in _examples.names(module)]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def printed(package, lines):
  """What a Python session prints for the statements among the lines of an example."""
  names = {"np": np, "jax": package, **{short: importlib.import_module(f"{package.__name__}.{name}")
                                        for short, name in (("jnp", "numpy"), ("lax", "lax"))}}
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    for line in lines:
      if line.startswith(">>> "):
        exec(compile(line[4:], "example", "single"), names)
  return out.getvalue()


def same_but_for_last_bits(a, b):
  """Texts that differ only in spaces and in the last digits of numbers."""
  if re.sub(r"\s", "", NUMBER.sub("#", a)) != re.sub(r"\s", "", NUMBER.sub("#", b)):
    return False
  return np.allclose([float(n) for n in NUMBER.findall(a)], [float(n) for n in NUMBER.findall(b)], rtol=2e-6, atol=1e-6)


def test_the_functions_of_a_first_program_have_examples():
  assert len(EXAMPLES) >= 250 and len(set(EXAMPLES)) == len(EXAMPLES)


@pytest.mark.parametrize("module, name", EXAMPLES, ids=[f"{module}.{name}" for module, name in EXAMPLES])
def test_the_example_of_a_docstring_prints_what_jax_prints(module, name):
  lines = _examples.lines_of(module, name)
  shown = "\n".join(line for line in lines if not line.startswith(">>> "))
  assert name in "".join(lines)
  assert same_but_for_last_bits(printed(real, lines), shown), "jax prints something else"
  assert same_but_for_last_bits(printed(jax, lines), shown)
  function = getattr(importlib.import_module(f"capibara.{module}"), name)
  assert inspect.signature(function) is not None
  sentence, example = inspect.getdoc(function).split("\n\nExample:\n\n")
  assert example.rstrip() == "\n".join("    " + line for line in lines) and sentence.strip().endswith(".")
  assert lines[0] in pydoc.plain(pydoc.render_doc(function))


def tracers(package):
  """The texts of values traced by each transform, and by several of them."""
  jnp, lax, seen = importlib.import_module(f"{package.__name__}.numpy"), importlib.import_module(f"{package.__name__}.lax"), []

  def kept(x):
    seen.extend([repr(x), f"{x}", f"{[x]}"])
    return x

  x, rows = jnp.arange(3.0), jnp.ones((2, 3))
  package.jit(kept)(x)
  package.jit(kept)(1.0)
  package.jit(kept)(True)
  package.jit(kept)(package.random.key(0))
  package.grad(lambda x: kept(x).sum())(x)
  package.grad(lambda x: kept(x * 2).sum())(x)
  package.vmap(kept)(rows)
  package.vmap(kept, in_axes=1)(rows)
  package.jvp(kept, (x,), (x + 1,))
  package.vjp(kept, x)
  package.linearize(kept, x)
  package.vmap(package.grad(lambda x: kept(x).sum()))(rows)
  package.grad(lambda x: package.vmap(kept)(x).sum())(rows)
  package.jit(package.grad(lambda x: kept(x).sum()))(x)
  package.grad(package.jit(lambda x: kept(x).sum()))(x)
  package.jit(package.vmap(kept))(rows)
  package.hessian(lambda x: kept(x).sum())(x)
  package.jvp(lambda x: package.jvp(kept, (x,), (x,))[1], (x,), (x,))
  package.eval_shape(lambda x: kept(x), x)
  package.make_jaxpr(lambda x: kept(x))(x)
  lax.scan(lambda carry, x: (kept(carry), x), 1.0, x)
  lax.while_loop(lambda c: kept(c) < 3, lambda c: c + 1, 0)
  lax.cond(True, lambda x: kept(x), lambda x: kept(x * 2), x)
  return seen


def test_traced_values_are_printed_as_in_jax():
  ours, theirs = tracers(jax), tracers(real)
  assert ours == theirs and len(set(ours)) > 20


@pytest.mark.parametrize("name", ["gpu", "tpu", "cuda", "rocm"])
def test_a_missing_device_names_what_was_looked_for(name, monkeypatch):
  monkeypatch.setenv("CAPIBARA_PLUGIN", "")
  for ask in (lambda: jax.devices(name), lambda: jax.local_devices(backend=name), lambda: jax.device_put(1.0, jax.devices(name)[0])):
    try:
      ask()
    except RuntimeError as error:
      text = str(error)
    else:
      pytest.skip("this machine has one")
    assert type(error_of(ask)) is RuntimeError
    first = text.split("\n")[0]
    if name == "gpu":  # jax's words
      assert first.startswith("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. "
                              "Platforms present are: cpu.")
    else:
      assert first.startswith(f"Unknown backend {name}. Available backends are ['cpu'].")
    assert "CAPIBARA_PLUGIN: not set" in text and "Hint: install" in text
    assert {"tpu": "libtpu", "rocm": "plugin"}.get(name, "jax-cuda13-pjrt") in text.split("Hint: ")[1]


def error_of(function):
  try:
    function()
  except Exception as error:
    return error
  return None


@pytest.mark.parametrize("name", ["metal", "nonsense"])
def test_an_unknown_platform_is_refused_in_jax_s_words(name):
  assert (type(error_of(lambda: jax.devices(name))), str(error_of(lambda: jax.devices(name)))) == (
      RuntimeError, str(error_of(lambda: real.devices(name))))


@pytest.mark.parametrize("program, words", [
    ("jnp.random", ["no attribute 'random'", "'jax.random'"]),
    ("jnp.relu", ["'jax.nn.relu'"]),
    ("jnp.scan", ["'jax.lax.scan'"]),
    ("jax.scan", ["'jax.lax.scan'"]),
    ("jnp.erf", ["'jax.lax.erf'"]),
    ("jnp.tensor", ["jax.numpy.array"]),
    ("jnp.float", ["jax.numpy.float32"]),
    ("jnp.concatinate", ["'concatenate'"]),
    ("jax.random.seed", ["jax.random.key(seed)"]),
    ("jax.random.rand", ["jax.random.uniform(key, shape)"]),
    ("jax.random.normal((3,))", ["unexpected PRNG key type <class 'tuple'>", "normal", "jax.random.key(number)"]),
    ("jax.random.normal(0, (3,))", ["invalid PRNG key data", "got 0", "jax.random.key(number)"]),
    ("jnp.sum([1, 2])", ["sum requires ndarray or scalar arguments, got <class 'list'> at position 0"]),
    ("jnp.argmax(x, axis=5)", ["argmax", "axis 5", "dimension 2"]),
    ("jnp.zeros", []),
    ("jax.jit(lambda n: jnp.zeros(n))(3)", ["'shape' of zeros", "static_argnums", "depends on the value of the argument n"]),
    ("jax.jit(lambda a, o: a, static_argnums=1)(x, [1])",
     ["static arguments of <lambda> must be hashable, got [1]", "<class 'list'>"]),
    ("Layer().apply(x)", ["path self", "static_argnums"]),
    ("jax.jit(lambda a: a + 1, donate_argnums=0)(y), y + 1", ["Array has been deleted with shape=float32[100]", "donate_argnums"]),
    ("lax.scan(lambda c, a: (c.astype(int), a), 0.0, x)", ["scan body function carry", "float32[] and leaves as int32[]"]),
    ("lax.fori_loop(0, 3, lambda i, c: jnp.append(c, i), x[0])", ["float32[4] and leaves as float32[5]"]),
    ("lax.cond(True, lambda a: a, lambda a: a.astype(int), 1.0)", ["cond branches", "int32[]", "float32[]"]),
])
def test_first_mistakes_get_a_hint(program, words):
  class Layer:
    @jax.jit
    def apply(self, x):
      return x

  names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "x": jax.numpy.ones((3, 4)), "y": jax.numpy.ones(100), "Layer": Layer}
  error = error_of(lambda: eval(program, names))
  assert (error is None) == (not words)
  assert all(word in str(error) for word in words), error
