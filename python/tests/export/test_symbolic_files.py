"""Files of functions exported for symbolic sizes: we read jax's and jax reads ours, and values are jax's for every combination of sizes."""
import functools
import os
import subprocess

import jax as oracle
import jax.export as oracle_export
import jax.numpy as jnp
import numpy as np
import pytest

import capibara.jax as jax
from capibara.jax import export


def programs(oracle):
  """Functions of a library: real jax, or this one."""
  jnp, lax = oracle.numpy, oracle.lax

  def matrix_powers(x, n):
    return lax.fori_loop(0, 3, lambda i, a: a @ x, x) + n.shape[0]

  def blocks(x):
    b, n = x.shape
    return x.reshape(b, n // 4, 4).sum(axis=1)

  def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return jnp.einsum("bhqk,bkhd->bqhd", oracle.nn.softmax(jnp.where(mask, scores, -1e30)), v)

  def network(x):
    kernel = np.linspace(-1, 1, 3 * 3 * 2 * 4).reshape(3, 3, 2, 4).astype(np.float32)
    x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return oracle.nn.relu(x).mean(axis=(1, 2))

  # name: the function, the symbolic shapes, and sizes of the variables to call it with
  return {
      "sizes as numbers": (lambda x: jnp.sin(x) + x.shape[0] * 2, ["b, 3"], [{"b": 1}, {"b": 5}]),
      "reshape": (lambda x: x.reshape(-1), ["b, 4"], [{"b": 3}, {"b": 1}]),
      "reshape into blocks": (blocks, ["b, 4*n"], [{"b": 2, "n": 1}, {"b": 3, "n": 5}]),
      "arange": (lambda x: jnp.arange(x.shape[0]) * 2.5 + x.sum(), ["b"], [{"b": 7}, {"b": 1}]),
      "eye": (lambda x: jnp.eye(x.shape[0]) + x, ["b"], [{"b": 4}, {"b": 1}]),
      "outer sum": (lambda x, y: x[:, None] + y, ["b", "c"], [{"b": 4, "c": 3}, {"b": 1, "c": 6}]),
      "product": (lambda x, y: x @ y, ["b, k", "k, 3"], [{"b": 4, "k": 2}, {"b": 1, "k": 9}]),
      "mean and variance": (lambda x: (x.mean(0), x.var(0), x.std()), ["b, c"], [{"b": 4, "c": 2}, {"b": 9, "c": 1}]),
      "softmax": (lambda x: oracle.nn.softmax(x, axis=-1), ["b, c"], [{"b": 4, "c": 2}, {"b": 2, "c": 30}]),
      "logsumexp": (lambda x: oracle.nn.logsumexp(x, axis=0), ["b, c"], [{"b": 4, "c": 2}]),
      "argmax": (lambda x: (x.argmax(1), x.argmin(0)), ["b, c"], [{"b": 4, "c": 2}, {"b": 1, "c": 8}]),
      "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1)), ["b, c"], [{"b": 4, "c": 3}, {"b": 8, "c": 2}]),
      "cumulative": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1)), ["b, c"], [{"b": 4, "c": 3}, {"b": 9, "c": 2}]),
      "concatenate": (lambda x, y: jnp.concatenate([x, y, x]), ["b, 2", "c, 2"], [{"b": 4, "c": 3}]),
      "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 0)), constant_values=3), ["b, c"], [{"b": 4, "c": 3}]),
      "pad by a size": (lambda x: jnp.pad(x, (0, x.shape[0])), ["b"], [{"b": 4}, {"b": 1}]),
      "slices": (lambda x: (x[1:], x[:-1], x[::2], x[::-1]), ["b + 1"], [{"b": 4}, {"b": 1}]),
      "last row": (lambda x: x[-1] + x[0], ["b, c"], [{"b": 4, "c": 3}, {"b": 1, "c": 3}]),
      "gather": (lambda x, i: x[i], ["b, c", "n"], [{"b": 4, "c": 3, "n": 5}]),
      "take along an axis": (lambda x, i: jnp.take_along_axis(x, i, 1), ["b, c", "b, 2"], [{"b": 4, "c": 3}]),
      "scatter": (lambda x, i: x.at[i].add(1.0), ["b", "n"], [{"b": 4, "n": 9}, {"b": 2, "n": 1}]),
      "update of a row": (lambda x, y: x.at[0].set(y), ["b, c", "c"], [{"b": 4, "c": 3}]),
      "dynamic slice": (lambda x, i: lax.dynamic_slice_in_dim(x, i[0], 2), ["b + 2, c", "1"], [{"b": 4, "c": 3}]),
      "dynamic update": (lambda x, i: lax.dynamic_update_slice_in_dim(x, x[:1] * 9, i[0], 0), ["b, c", "1"], [{"b": 4, "c": 3}]),
      "where": (lambda x: jnp.where(x > 0, x, x.shape[0]), ["b, c"], [{"b": 4, "c": 3}]),
      "tile and repeat": (lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 3, axis=1)), ["b, c"], [{"b": 4, "c": 3}]),
      "roll": (lambda x: jnp.roll(x, 1, 0), ["b, c"], [{"b": 4, "c": 3}]),
      "stack": (lambda x: jnp.stack([x, x + 1], axis=1), ["b, c"], [{"b": 4, "c": 3}]),
      "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)), ["b, c, d"], [{"b": 4, "c": 3, "d": 2}]),
      "triangles": (lambda x: (jnp.tril(x), jnp.triu(x, 1)), ["b, c"], [{"b": 4, "c": 3}]),
      "meshgrid": (lambda x, y: jnp.meshgrid(x, y), ["b", "c"], [{"b": 4, "c": 3}]),
      "one hot": (lambda i: oracle.nn.one_hot(i, i.shape[0]), ["n"], [{"n": 4}]),
      "fori_loop": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i], jnp.zeros(x.shape[1:])), ["b, c"],
                    [{"b": 4, "c": 3}, {"b": 1, "c": 2}]),
      "while_loop": (lambda x: lax.while_loop(lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 1.5), (0, x)), ["b, c"],
                     [{"b": 4, "c": 3}]),
      "scan": (lambda x: lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(x.shape[1:]), x), ["b, c"],
               [{"b": 4, "c": 3}, {"b": 1, "c": 1}]),
      "scan of products": (lambda x, w: lax.scan(lambda c, r: (jnp.tanh(c @ w + r), c), jnp.zeros(x.shape[1:]), x), ["t, b, 4", "4, 4"],
                           [{"t": 4, "b": 3}]),
      "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * y.shape[0], lambda y: -y, x), ["b, c"], [{"b": 4, "c": 3}]),
      "switch": (lambda x, i: lax.switch(i[0] % 3, [jnp.sin, jnp.cos, lambda y: y + y.shape[1]], x), ["b, c", "1"], [{"b": 4, "c": 3}]),
      "vmap": (lambda x, y: oracle.vmap(jnp.dot)(x, y), ["b, c", "b, c"], [{"b": 4, "c": 3}]),
      "grad": (lambda x: oracle.grad(lambda y: (jnp.tanh(y) ** 2).mean())(x), ["b, c"], [{"b": 4, "c": 3}]),
      "gradient of a scan": (oracle.grad(lambda y: lax.scan(lambda c, r: (jnp.sin(c + r), c), jnp.zeros(y.shape[1:]), y)[0].sum()),
                             ["b, c"], [{"b": 4, "c": 3}]),
      "random": (lambda k, x: oracle.random.normal(k, x.shape) + x, ["key", "b, c"], [{"b": 4, "c": 3}, {"b": 1, "c": 7}]),
      "choice": (lambda k, x: oracle.random.bernoulli(k, 0.3, x.shape), ["key", "b, c"], [{"b": 4, "c": 3}]),
      "top_k": (lambda x: lax.top_k(x, 2), ["b, c + 2"], [{"b": 4, "c": 3}]),
      "attention": (attention, ["b, s, 2, 4"] * 3, [{"b": 2, "s": 5}, {"b": 1, "s": 8}]),
      "network": (network, ["b, 2*h, 2*w, 2"], [{"b": 2, "h": 3, "w": 4}, {"b": 1, "h": 4, "w": 4}]),
      "nested jit": (lambda x: oracle.jit(lambda y: oracle.jit(jnp.exp)(y) + y.shape[1])(x), ["b, c"], [{"b": 4, "c": 3}]),
      "sizes of sizes": (lambda x: (x.reshape((x.shape[0] * x.shape[1],)), jnp.ones((x.shape[0] % 3 + 1, x.shape[1] // 2))), ["b, c"],
                         [{"b": 4, "c": 3}, {"b": 6, "c": 1}]),
      "einsum": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), ["b, i, j", "b, j, k"], [{"b": 2, "i": 3, "j": 4, "k": 5}]),
      "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.transpose(0, 2, 1) + 10 * jnp.eye(x.shape[1])), ["b, n, n"], [{"b": 2, "n": 3}]),
      "fft": (lambda x: jnp.abs(jnp.fft.fft(x, axis=1)), ["b, 8"], [{"b": 3}]),
      "equal sizes": (lambda x: x @ x, ["n, n"], [{"n": 3}]),
      "dictionary": (lambda x: {"a": x * 2, "b": [x.sum()]}, ["b"], [{"b": 3}]),
      "powers in a loop": (matrix_powers, ["n, n", "b"], [{"n": 3, "b": 2}]),
      "bfloat16": (lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.float32), ["b"], [{"b": 3}]),
  }


PROGRAMS = programs(oracle)


def exported(name, vjp_order=0):
  function, shapes, sizes = PROGRAMS[name]
  scope = oracle_export.SymbolicScope()

  def spec(shape):
    if shape == "key":
      return oracle.ShapeDtypeStruct((), oracle.random.key(0).dtype)
    integers = shape in ("n", "1", "b, 2") and name not in ("arange",)
    return oracle.ShapeDtypeStruct(oracle_export.symbolic_shape(f"({shape},)", scope=scope), jnp.int32 if integers else jnp.float32)
  specs = [spec(shape) for shape in shapes]
  file = oracle_export.export(oracle.jit(function), disabled_checks=[oracle_export.DisabledSafetyCheck.custom_call("any")])(*specs)
  return file, specs, file.serialize(vjp_order=vjp_order)


@functools.cache
def written(name, vjp_order=0):
  """What this library writes of a function: the file, and the bytes."""
  function, shapes, _ = programs(jax)[name]
  scope = export.SymbolicScope()

  def spec(shape):
    if shape == "key":
      return jax.ShapeDtypeStruct((), jax.random.key(0).dtype)
    integers = shape in ("n", "1", "b, 2") and name not in ("arange",)
    return jax.ShapeDtypeStruct(export.symbolic_shape(f"({shape},)", scope=scope), np.int32 if integers else np.float32)
  file = export.export(jax.jit(function))(*map(spec, shapes))
  return file, bytes(file.serialize(vjp_order=vjp_order))


def values(specs, sizes, seed=0):
  generator = np.random.default_rng(seed)
  out = []
  for spec in specs:
    if oracle.dtypes.issubdtype(spec.dtype, oracle.dtypes.prng_key):
      out.append(None)
      continue
    shape = tuple(size if isinstance(size, int) else size._evaluate(sizes) for size in spec.shape)
    integers = np.issubdtype(spec.dtype, np.integer)
    out.append(generator.integers(0, 2, shape).astype(np.int32) if integers else generator.standard_normal(shape).astype(np.float32))
  return out


def with_keys(library, arguments):
  return [library.random.key(3) if value is None else value for value in arguments]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_jax(name):
  file, specs, blob = exported(name)
  ours = export.deserialize(blob)
  assert ours.has_symbolic_sizes()
  assert [str(aval.shape) for aval in ours.in_avals] == [str(aval.shape) for aval in file.in_avals]
  assert [str(aval.shape) for aval in ours.out_avals] == [str(aval.shape) for aval in file.out_avals]
  for sizes in PROGRAMS[name][2]:
    arguments = values(specs, sizes)
    expected = oracle.tree.leaves(file.call(*with_keys(oracle, arguments)))
    for got in (ours.call(*with_keys(jax, arguments)), jax.jit(ours.call)(*with_keys(jax, arguments))):
      got = jax.tree.leaves(got)
      assert len(got) == len(expected)
      for one, other in zip(got, expected):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=1e-5)


def close(got, expected, tolerance=2e-5):
  got, expected = jax.tree.leaves(got), oracle.tree.leaves(expected)
  assert len(got) == len(expected)
  for one, other in zip(got, expected):
    assert one.shape == other.shape and one.dtype == other.dtype
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=tolerance, atol=1e-5)


@pytest.mark.wide
@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_runs_what_we_write(name):
  blob = written(name)[1]
  theirs, ours = oracle_export.deserialize(bytearray(blob)), export.deserialize(blob)
  file, specs, _ = exported(name)
  assert [str(aval.shape) for aval in theirs.in_avals] == [str(aval.shape) for aval in file.in_avals]
  assert [str(aval.shape) for aval in theirs.out_avals] == [str(aval.shape) for aval in file.out_avals]
  for sizes in PROGRAMS[name][2]:
    arguments = values(specs, sizes)
    expected = file.call(*with_keys(oracle, arguments))
    close(theirs.call(*with_keys(oracle, arguments)), expected)
    close(ours.call(*with_keys(jax, arguments)), expected)


@pytest.mark.parametrize("name", ["product", "softmax"])
def test_jax_differentiates_what_we_write(name):
  theirs = oracle_export.deserialize(bytearray(written(name, vjp_order=1)[1]))
  function, _, sizes = PROGRAMS[name]
  arguments = values(exported(name)[1], sizes[0])

  def total(call):
    return oracle.grad(lambda *args: jnp.sin(call(*args)).sum(), argnums=tuple(range(len(arguments))))
  close(total(theirs.call)(*arguments), total(function)(*arguments), 2e-4)


def test_damaged_files_are_errors():
  blob, generator, refused = written("softmax")[1], np.random.default_rng(7), 0
  for number in range(400):
    damaged = bytearray(blob[:generator.integers(len(blob))] if number % 4 == 0 else blob)
    for _ in range(number % 4):
      damaged[generator.integers(len(damaged))] ^= 1 << generator.integers(8)
    try:
      export.deserialize(damaged).mlir_module()
    except (ValueError, NotImplementedError) as error:
      assert not isinstance(error, UnicodeDecodeError) and len(str(error)) > 20
      refused += 1
  assert refused > 150  # a bit of a name or a number makes another file that is right


def test_what_we_write_for_several_platforms():
  spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
  file = export.export(jax.jit(lambda x: jax.numpy.cumsum(x, 0) * x.shape[0]), platforms=["cpu", "cuda"])(spec)
  theirs = oracle_export.deserialize(bytearray(file.serialize()))
  x = np.arange(12, dtype=np.float32).reshape(4, 3)
  assert theirs.platforms == ("cpu", "cuda")
  close(theirs.call(x), np.cumsum(x, 0) * 4)


def test_constraints_are_checked_in_the_program():
  shape = export.symbolic_shape("2*b, b", constraints=["b >= 3"])
  blob = export.export(jax.jit(lambda x: x.sum()))(jax.ShapeDtypeStruct(shape, np.float32)).serialize()
  theirs, ours = oracle_export.deserialize(blob), export.deserialize(blob)
  assert float(theirs.call(np.ones((6, 3), np.float32))) == float(ours.call(np.ones((6, 3), np.float32))) == 18
  for call in (theirs.call, ours.call):
    with pytest.raises(ValueError):
      call(np.ones((4, 2), np.float32))
  with pytest.raises(ValueError, match="b >= 3.*found -1"):
    ours.call(np.ones((4, 2), np.float32))


@pytest.mark.parametrize("function, words", [
    (lambda x: x * 2 if x.shape[0] < 20 else x * 3, "no expression"),
    (lambda x: x * 2 if x.shape[0] < 20 else jax.numpy.sin(x), "operations depend on the sizes"),
    (lambda x: x + np.arange(x.shape[0], dtype=np.float32), "stablehlo.constant dense")])
def test_programs_that_depend_on_sizes_are_refused(function, words):
  file = export.export(jax.jit(function))(jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
  with pytest.raises(NotImplementedError, match=words):
    file.serialize()
  close(file.call(np.ones(4, np.float32)), np.asarray(function(np.ones(4, np.float32))))


@pytest.mark.parametrize("name", ["product", "softmax", "scan", "attention", "mean and variance"])
def test_derivatives_that_were_exported(name):
  file, specs, blob = exported(name, vjp_order=1)
  ours = export.deserialize(blob)
  for sizes in PROGRAMS[name][2]:
    arguments = values(specs, sizes)

    def total(library, call):
      return library.grad(lambda *args: sum((library.numpy.sin(out)).sum() for out in library.tree.leaves(call(*args))),
                          argnums=tuple(range(len(arguments))))
    for got, expected in zip(total(jax, ours.call)(*arguments), total(oracle, file.call)(*arguments)):
      np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-4, atol=1e-5)


def test_bytes_are_kept_as_they_were_read():
  _, specs, blob = exported("attention")
  again = export.deserialize(blob).serialize()
  arguments = values(specs, {"b": 2, "s": 5})
  for read in (export.deserialize(again), oracle_export.deserialize(again)):
    np.testing.assert_allclose(np.asarray(read.call(*arguments)), np.asarray(PROGRAMS["attention"][0](*arguments)), rtol=2e-5, atol=1e-5)


def test_module_is_text():
  assert "?" in export.deserialize(exported("softmax")[2]).mlir_module()


@pytest.mark.parametrize("shapes, words", [
    ([(4, 2), (3, 3)], "inconsistency"), ([(4, 2), (2, 4)], "args[1].shape[1]"), ([(4,), (2, 3)], "Rank mismatch")])
def test_sizes_that_do_not_fit(shapes, words):
  ours = export.deserialize(exported("product")[2])
  with pytest.raises(ValueError, match=words.replace("[", r"\[").replace("]", r"\]")):
    ours.call(*(np.ones(shape, np.float32) for shape in shapes))


def test_sizes_that_an_expression_forbids():
  ours = export.deserialize(exported("reshape into blocks")[2])
  with pytest.raises(ValueError, match="solve|specification|division"):
    ours.call(np.ones((2, 6), np.float32))


def test_several_platforms():
  scope = oracle_export.SymbolicScope()
  spec = oracle.ShapeDtypeStruct(oracle_export.symbolic_shape("b, 3", scope=scope), jnp.float32)
  file = oracle_export.export(oracle.jit(lambda x: jnp.cumsum(x, 0) * x.shape[0]), platforms=["cpu", "cuda"])(spec)
  x = np.arange(12, dtype=np.float32).reshape(4, 3)
  np.testing.assert_allclose(np.asarray(export.deserialize(file.serialize()).call(x)), np.cumsum(x, 0) * 4)


def test_wide_sizes():
  with oracle.enable_x64(True):
    scope = oracle_export.SymbolicScope()
    spec = oracle.ShapeDtypeStruct(oracle_export.symbolic_shape("b, c", scope=scope), jnp.float64)
    blob = oracle_export.export(oracle.jit(lambda x: x.reshape(-1) * jnp.arange(x.shape[0] * x.shape[1])))(spec).serialize()
  with jax.enable_x64(True):
    x = np.linspace(0, 1, 12).reshape(4, 3)
    np.testing.assert_allclose(np.asarray(export.deserialize(blob).call(x)), x.reshape(-1) * np.arange(12), rtol=1e-15)


def command(*words):
  return subprocess.run([os.environ["CAPIBARA_COMMAND"], *map(str, words)], capture_output=True, text=True)


def test_command_runs_shows_and_compiles(tmp_path):
  file = tmp_path / "blocks.exported"
  file.write_bytes(exported("reshape into blocks")[2])
  x = np.arange(24, dtype=np.float32).reshape(2, 12)
  np.save(tmp_path / "x.npy", x)
  ran = command("run", file, tmp_path / "x.npy", "--output", tmp_path / "out")
  assert ran.returncode == 0, ran.stderr
  np.testing.assert_array_equal(np.load(tmp_path / "out" / "out0.npy"), x.reshape(2, 3, 4).sum(axis=1))
  assert "f32[2,12]" in command("show", file, "--sizes", "b=2,n=3").stdout
  made = command("compile", file, "--object", tmp_path / "f.o", "--header", tmp_path / "f.h", "--sizes", "b=2,n=3")
  assert made.returncode == 0, made.stderr
  assert "[2,12]" in (tmp_path / "f.h").read_text() or "24" in (tmp_path / "f.h").read_text()
  # A file specialised to these sizes, which real jax reads.
  assert command("show", file, "--write", tmp_path / "one.exported", "--sizes", "b=2,n=3").returncode == 0
  one = oracle_export.deserialize(bytearray((tmp_path / "one.exported").read_bytes()))
  assert one.in_avals[0].shape == (2, 12)
  np.testing.assert_array_equal(one.call(x), x.reshape(2, 3, 4).sum(axis=1))
  # Without sizes it stays symbolic.
  assert command("show", file, "--write", tmp_path / "same.exported").returncode == 0
  assert str(oracle_export.deserialize(bytearray((tmp_path / "same.exported").read_bytes())).in_avals[0].shape) == "(b, 4*n)"


@pytest.mark.parametrize("words, message", [
    (["show"], "--sizes b=8,n=4"), (["show", "--sizes", "b=2"], "no value for 'n'"), (["show", "--sizes", "b"], "--sizes is written as"),
    (["show", "--sizes", "b=-1,n=2"], "--sizes is written as"), (["compile", "--object", "f.o", "--header", "f.h"], "--sizes b=8,n=4")])
def test_command_needs_sizes(tmp_path, words, message):
  file = tmp_path / "blocks.exported"
  file.write_bytes(exported("reshape into blocks")[2])
  ran = command(words[0], file, *words[1:])
  assert ran.returncode != 0 and message in ran.stderr
