"""User-defined primitives inside programs: their lowerings are expanded, on every backend and under every transform, as in jax."""
import functools
import os
import subprocess
import sys
import warnings

import jax as oracle
import numpy as np
import pytest
from jax.extend import core as oracle_core
from jax.interpreters import ad as oracle_ad
from jax.interpreters import batching as oracle_batching
from jax.interpreters import mlir as oracle_mlir
from jax.sharding import Mesh as OracleMesh
from jax.sharding import PartitionSpec as OracleSpec
from xla_cpu_plugin import plugin

import capibara.jax as jax
from capibara import _core
from capibara.jax import profiling
from capibara.jax.extend import core
from capibara.jax.interpreters import ad, batching, mlir, xla
from capibara.jax.sharding import Mesh, PartitionSpec

X = np.float32([0.5, -1.25, 2.0])


class Peer:
  """jax or capibara, with a primitive x -> scale * sin(x), whose implementation and lowering count their calls."""

  def __init__(self, module, cores, ads, batchings, mlirs, mesh, spec):
    self.jax, self.core, self.ad, self.batching, self.mlir = module, cores, ads, batchings, mlirs
    self.jnp, self.lax, self.mesh, self.spec = module.numpy, module.lax, mesh, spec
    self.lowered = self.evaluated = 0
    p = self.p = cores.Primitive("scaled_sine")

    def lowering(x, *, scale):
      self.lowered += 1
      return scale * self.jnp.sin(x)

    def evaluation(x, *, scale):
      self.evaluated += 1
      return scale * self.jnp.sin(x)

    p.def_impl(evaluation)
    p.def_abstract_eval(lambda x, *, scale: x)
    mlirs.register_lowering(p, mlirs.lower_fun(lowering, multiple_results=False))
    ads.defjvp(p, lambda t, x, *, scale: t * scale * self.jnp.cos(x))
    batchings.defvectorized(p)

  def sine(self, x, scale=2.0):
    return self.p.bind(x, scale=scale)


OURS = Peer(jax, core, ad, batching, mlir, Mesh, PartitionSpec)
THEIRS = Peer(oracle, oracle_core, oracle_ad, oracle_batching, oracle_mlir, OracleMesh, OracleSpec)

# Each makes a program for a peer: peer -> function of X.
PROGRAMS = {
  "jit": lambda p: lambda x: p.sine(x) + p.sine(x, scale=3.0),
  "nested jit": lambda p: lambda x: p.jax.jit(lambda y: p.jax.jit(p.sine)(y) + 1)(x),
  "grad": lambda p: p.jax.grad(lambda x: p.sine(x).sum()),
  "second derivative": lambda p: p.jax.grad(lambda x: p.jax.grad(lambda y: p.sine(p.sine(y)).sum())(x).sum()),
  "jvp": lambda p: lambda x: p.jax.jvp(p.sine, (x,), (x,)),
  "vmap": lambda p: p.jax.vmap(p.sine),
  "vmap of grad": lambda p: p.jax.vmap(p.jax.grad(p.sine)),
  "scan": lambda p: lambda x: p.lax.scan(lambda c, y: (p.sine(c), p.sine(y)), x, p.jnp.stack([x, 2 * x, 3 * x])),
  "gradient of scan": lambda p: p.jax.grad(lambda x: p.lax.scan(lambda c, _: (p.sine(c), None), x, None, length=5)[0].sum()),
  "fori": lambda p: lambda x: p.lax.fori_loop(0, 7, lambda i, c: p.sine(c), x),
  "while body": lambda p: lambda x: p.lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, p.sine(c[1])), (0, x)),
  "while condition": lambda p: lambda x: p.lax.while_loop(lambda c: p.sine(c)[0] < 1.5, lambda c: c + 0.1, x),
  "batched while": lambda p: p.jax.vmap(lambda x: p.lax.while_loop(lambda c: p.sine(c) < 1.5, lambda c: c + 0.25, x)),
  "cond": lambda p: lambda x: p.lax.cond(x[0] > 0, p.sine, lambda y: y, x),
  "batched cond": lambda p: p.jax.vmap(lambda x: p.lax.cond(x > 0, p.sine, lambda y: y, x)),
  "switch": lambda p: lambda x: p.lax.switch(p.jnp.int32(2), [lambda y: y, p.sine, lambda y: p.sine(p.sine(y))], x),
  "remat": lambda p: p.jax.grad(lambda x: p.jax.checkpoint(lambda y: p.sine(p.sine(y)))(x).sum()),
  "custom_jvp": lambda p: p.jax.grad(lambda x: custom_jvp(p)(x).sum()),
  "custom_vjp": lambda p: p.jax.grad(lambda x: custom_vjp(p)(x).sum()),
  "shard_map": lambda p: on_one_device(p, lambda x: p.lax.psum(p.sine(x), "d")),
  "shard_map of a loop": lambda p: on_one_device(p, lambda x: p.lax.psum(p.lax.fori_loop(0, 3, lambda i, c: p.sine(c), x), "d")),
  "linearize": lambda p: lambda x: p.jax.linearize(p.sine, x)[1](x),
  "associative_scan": lambda p: lambda x: p.lax.associative_scan(lambda a, b: p.sine(a + b), x),
}


def custom_jvp(p):
  f = p.jax.custom_jvp(lambda x: p.sine(x))
  f.defjvp(lambda primals, tangents: (f(*primals), 10 * p.sine(primals[0]) * tangents[0]))
  return f


def custom_vjp(p):
  f = p.jax.custom_vjp(lambda x: p.sine(x))
  f.defvjp(lambda x: (p.sine(x), x), lambda x, ct: (10 * p.sine(x) * ct,))
  return f


def on_one_device(p, function):
  mesh = p.mesh(np.array(p.jax.devices()[:1]), ("d",))
  return p.jax.shard_map(function, mesh=mesh, in_specs=p.spec("d"), out_specs=p.spec())


def leaves(tree):
  return [np.asarray(leaf) for leaf in oracle.tree.leaves(tree)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lowering_is_expanded_when_a_program_is_compiled(name):
  want = oracle.jit(PROGRAMS[name](THEIRS))(X)
  compiled = jax.jit(PROGRAMS[name](OURS)).lower(X).compile()
  before = OURS.lowered, OURS.evaluated, _core.host_calls()
  for _ in range(2):
    got = compiled(X)
  for ours, theirs in zip(leaves(got), leaves(want), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)
  assert (OURS.lowered, OURS.evaluated, _core.host_calls()) == before


@pytest.mark.parametrize("name", ["scan", "fori", "while body", "batched while", "cond"])
def test_loops_outside_of_jit_are_expanded_as_well(name):
  want = PROGRAMS[name](THEIRS)(X)
  PROGRAMS[name](OURS)(X)
  before = OURS.evaluated
  for ours, theirs in zip(leaves(PROGRAMS[name](OURS)(X)), leaves(want), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)
  assert OURS.evaluated == before


def test_a_call_outside_of_programs_is_the_implementation():
  before = OURS.evaluated, OURS.lowered
  np.testing.assert_allclose(OURS.sine(X), np.asarray(THEIRS.sine(X)), rtol=1e-6)
  assert (OURS.evaluated, OURS.lowered) == (before[0] + 1, before[1])


@pytest.mark.parametrize("peer", [OURS, THEIRS], ids=["capibara", "jax"])
def test_a_traced_program_shows_the_primitive_and_a_lowered_one_its_lowering(peer):
  assert "scaled_sine[scale=2.0]" in str(peer.jax.make_jaxpr(peer.sine)(X))
  loop = peer.jax.jit(lambda x: peer.lax.fori_loop(0, 5, lambda i, c: peer.sine(c), x))
  text = loop.lower(X).as_text()
  assert "stablehlo.sine" in text and "custom_call" not in text
  exported = peer.jax.export.export(loop)(X) if hasattr(peer.jax, "export") else None
  if exported is not None:
    np.testing.assert_allclose(np.asarray(exported.call(X)), np.asarray(loop(X)), rtol=1e-6)


BACKENDS = """
import numpy as np
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core
from capibara.jax.extend.core import Primitive
from capibara.jax.interpreters import batching, mlir
calls = []
p = Primitive("halved")
p.def_impl(lambda x: calls.append("impl") or x / 2)
p.def_abstract_eval(lambda x: x)
batching.defvectorized(p)
mlir.register_lowering(p, mlir.lower_fun(lambda x: calls.append("lowering") or x / 2, multiple_results=False))
x = jnp.arange(4.0) + 8
f = jax.jit(lambda x: jax.lax.scan(lambda c, _: (p.bind(c), p.bind(c).sum()), x, None, length=3))
f(x)
calls.clear()
print(*np.asarray(f(x)[0]).tolist(), *np.asarray(f(x)[1]).tolist(), len(calls), _core.host_calls())
print(jax.jit(lambda x: p.bind(x))(3.0).weak_type, jax.jit(lambda x: x)(3.0).weak_type)
"""


@pytest.mark.parametrize("platform", ["cpu", "reference", "xla_cpu"])
def test_every_backend_expands(platform):
  if platform == "xla_cpu" and plugin() is None:
    pytest.skip("no plugin of XLA:CPU (xla-cpu-pjrt)")
  done = subprocess.run([sys.executable, "-c", BACKENDS], capture_output=True, text=True,
                        env={**os.environ, "CAPIBARA_PLUGIN": plugin() or "", "JAX_PLATFORMS": platform})
  assert done.returncode == 0, done.stderr
  want = [1, 1.125, 1.25, 1.375, 19, 9.5, 4.75, 0, 0]
  assert [float(word) for word in done.stdout.split()[:9]] == want
  assert done.stdout.split()[9:] == ["True", "True"]


# ---- several results, effects, rules of other kinds -----------------------------------------------------------------


def quotient(peer):
  p = peer.core.Primitive("quotient")
  p.multiple_results = True
  p.def_abstract_eval(lambda x, y: [x, x])
  peer.mlir.register_lowering(p, peer.mlir.lower_fun(lambda x, y: [x // y, x % y]))
  return p


def test_several_results_and_no_implementation():
  got, want = (peer.jax.jit(lambda x, p=quotient(peer): p.bind(x, 3 * (x // x)))(np.int32([7, 8, 9])) for peer in (OURS, THEIRS))
  for ours, theirs in zip(got, want, strict=True):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
  unread = [peer.jax.jit(lambda x, p=quotient(peer): p.bind(x, 3 * (x // x))[1])(np.int32([7, 8, 9])) for peer in (OURS, THEIRS)]
  np.testing.assert_array_equal(*map(np.asarray, unread))


def by_context(peer):
  """A rule on values, which returns an operand or uses another rule."""
  p = peer.core.Primitive("by_context")
  p.def_abstract_eval(lambda x, y, *, first: x)
  seen = []

  def rule(ctx, x, y, *, first):
    seen.append(([aval.shape for aval in ctx.avals_in], [str(aval.dtype) for aval in ctx.avals_out]))
    if first:
      return [x]
    return peer.mlir.lower_fun(lambda x, y: x * y, multiple_results=False)(ctx, x, y)

  peer.mlir.register_lowering(p, rule)
  return p, seen


@pytest.mark.parametrize("first", [True, False])
def test_a_rule_on_values_may_return_them_or_use_lower_fun(first):
  results = []
  for peer in (OURS, THEIRS):
    p, seen = by_context(peer)
    loop = peer.jax.jit(lambda x: peer.lax.fori_loop(0, 3, lambda i, c: p.bind(c, x, first=first), x))
    results.append((np.asarray(loop(X)), seen[0]))
  np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
  assert results[0][1] == results[1][1]


def test_a_platform_has_the_rule_of_its_own():
  for peer in (OURS, THEIRS):
    p = peer.core.Primitive("by_platform")
    p.def_abstract_eval(lambda x: x)
    peer.mlir.register_lowering(p, peer.mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    peer.mlir.register_lowering(p, peer.mlir.lower_fun(lambda x: x + 2, multiple_results=False), platform="cpu")
    peer.mlir.register_lowering(p, peer.mlir.lower_fun(lambda x: x + 3, multiple_results=False), platform="tpu")
    assert float(peer.jax.jit(p.bind)(1.0)) == 3.0
  only = core.Primitive("for_tpu_alone")
  only.def_impl(lambda x: x)
  only.def_abstract_eval(lambda x: x)
  mlir.register_lowering(only, mlir.lower_fun(lambda x: x, multiple_results=False), platform="tpu")
  with pytest.raises(NotImplementedError, match="'for_tpu_alone' not found for platform cpu"):
    jax.jit(only.bind)(1.0)


def test_apply_primitive_may_be_the_implementation():
  p = core.Primitive("applied")
  p.def_impl(functools.partial(xla.apply_primitive, p))
  p.def_abstract_eval(lambda x: x)
  mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
  assert float(p.bind(1.0)) == 2.0 and float(jax.jit(p.bind)(1.0)) == 2.0


def test_apply_primitive_without_a_lowering_is_refused():
  p = core.Primitive("applied_to_nothing")
  p.def_impl(functools.partial(xla.apply_primitive, p))
  p.def_abstract_eval(lambda x: x)
  for _ in range(2):
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'applied_to_nothing' not implemented"):
      p.bind(1.0)


def test_a_lowering_that_breaks_the_promised_types_is_refused():
  for result, text in ((lambda x: x[:2], r"promises float32\[3\] for result 0, got float32\[2\]"),
                       (lambda x: x.astype("int32"), r"promises float32\[3\] for result 0, got int32\[3\]")):
    p = core.Primitive("broken_promise")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(result, multiple_results=False))
    with pytest.raises(TypeError, match="lowering of 'broken_promise': its abstract evaluation " + text):
      jax.jit(p.bind)(X)


def test_a_primitive_without_a_lowering_is_a_call_of_python_and_says_so_once():
  p = core.Primitive("numbers_of_python")
  seen = []
  p.def_impl(lambda x: seen.append(float(x)) or np.float32(x) * 2)
  p.def_abstract_eval(lambda x: x)
  loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: p.bind(c), x))
  with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert float(loop(1.0)) == 8.0
    assert float(jax.jit(lambda x: p.bind(x) + 1)(1.0)) == 3.0
  assert seen == [1.0, 2.0, 4.0, 1.0]
  said, = (str(one.message) for one in told)
  assert said.startswith("primitive 'numbers_of_python' is a call of Python in compiled programs") and "it has no lowering" in said
  text = loop.lower(1.0).compile().as_text()
  assert "pure_callback(numbers_of_python)" in text


def test_a_rule_that_builds_operations_of_mlir_leaves_the_implementation():
  p = core.Primitive("of_mlir")
  p.def_impl(lambda x: np.float32(x) + 1)
  p.def_abstract_eval(lambda x: x)
  mlir.register_lowering(p, lambda ctx, x: [x.owner.operands[0]])
  with pytest.warns(UserWarning, match="'of_mlir'.*its lowering builds MLIR operations"):
    assert float(jax.jit(p.bind)(1.0)) == 2.0
  without = core.Primitive("of_mlir_alone")
  without.def_abstract_eval(lambda x: x)
  mlir.register_lowering(without, lambda ctx, x: [x.owner.operands[0]])
  with pytest.raises(NotImplementedError, match="lowering of 'of_mlir_alone'.*def_impl"):
    jax.jit(without.bind)(1.0)


def test_effects_keep_a_call_that_nothing_reads():
  p = core.Primitive("noted")
  seen = []
  p.multiple_results = True
  p.def_impl(lambda x: seen.append(float(x)) or [])
  p.def_effectful_abstract_eval(lambda x: ([], {"noted"}))
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, c: (p.bind(c), c + 1)[1], x))
    jax.block_until_ready(loop(1.0))
  assert seen == [1.0, 2.0]


# ---- calls out of compiled code are named -----------------------------------------------------------------------------


def doubled_by_python(x):
  return np.asarray(x) * 2


def looped(x):
  def step(i, c):
    return jax.pure_callback(functools.partial(doubled_by_python), jax.ShapeDtypeStruct(c.shape, c.dtype), c)
  return jax.lax.fori_loop(0, 3, step, x)


def test_compiled_text_and_program_name_the_function_that_is_called():
  text = jax.jit(looped).lower(X).compile().as_text()
  assert "host 0 is pure_callback(doubled_by_python) at " in text and "test_primitive_lowerings.py" in text
  assert "callback=doubled_by_python" in str(jax.make_jaxpr(looped)(X))


def test_profiles_name_the_function_that_is_called():
  f = jax.jit(looped)
  f(X)
  with profiling.profile("callbacks"):
    jax.block_until_ready(f(X))
  (_, taken), = profiling.profiles()
  profiling.clear()
  found = [(slot["name"].rpartition(".")[0], slot["calls"]) for slot in taken.slots() if slot["kind"] == "callback"]
  assert found == [("pure_callback(doubled_by_python)", 3)]
