"""capibara.kernels for mixtures of experts: routing, grouped matmul and the layer, against float64 and jax's compositions."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import close, draw

pytestmark = pytest.mark.wide

TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


def routed(logits, top_k, renormalize=True, capacity=None):
  """weights, experts, permutation, inverse, group_sizes, load, aux_loss in float64."""
  logits = np.asarray(logits, "float64")
  tokens, experts = logits.shape
  chosen = np.argsort(-logits, axis=1, kind="stable")[:, :top_k]
  shares = np.exp(logits - logits.max(1, keepdims=True))
  shares /= shares.sum(1, keepdims=True)
  weights = np.take_along_axis(shares, chosen, 1)
  if renormalize:
    weights /= weights.sum(1, keepdims=True)
  load = np.bincount(chosen.reshape(-1), minlength=experts)
  copies = np.arange(tokens * top_k).reshape(tokens, top_k).T.reshape(-1)  # first choices first
  copies = copies[np.argsort(chosen.reshape(-1)[copies], kind="stable")]
  rank = np.arange(len(copies)) - (np.cumsum(load) - load)[chosen.reshape(-1)[copies]]
  room = rank < (len(copies) if capacity is None else capacity)
  weights.reshape(-1)[copies[~room]] = 0
  permutation, sizes = np.concatenate([copies[room], copies[~room]]), np.minimum(load, load if capacity is None else capacity)
  loss = experts * (load / max(len(copies), 1) * shares.mean(0)).sum()
  return weights, chosen, permutation, np.argsort(permutation), sizes, load, loss


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("factor", [None, 0.5, 1.25])
def test_routing_has_the_values_of_its_definition(wrap, renormalize, factor):
  random = np.random.RandomState(7)
  for _ in range(3):
    tokens, experts = random.randint(1, 700), random.randint(1, 40)
    top_k = random.randint(1, experts + 1)
    for dtype in TOLERANCE:
      logits = jnp.asarray(random.randn(tokens, experts).astype("float32")).astype(dtype)
      got = wrap(lambda x: kernels.moe_routing_kernel(x, experts, top_k, True, renormalize=renormalize, capacity_factor=factor))(logits)
      capacity = None if factor is None else int(np.ceil(factor * tokens * top_k / experts))
      want = routed(np.asarray(logits, "float64"), top_k, renormalize, capacity)
      assert str(got.weights.dtype) == "float32"
      np.testing.assert_allclose(got.weights, want[0], rtol=1e-5, atol=1e-6)
      for one, other in zip(got[1:6], want[1:6], strict=True):
        assert str(one.dtype) == "int32"
        np.testing.assert_array_equal(one, other)
      np.testing.assert_allclose(got.aux_loss, want[6], rtol=1e-5)


def losses(jax, top_k, renormalize, balance, factors):
  """weights and loss with softmax, top_k and one_hot."""
  def loss(logits):
    logits = logits.astype("float32")
    values, experts = jax.lax.top_k(logits, top_k)
    shares = jax.nn.softmax(logits)
    weights = jax.nn.softmax(values) if renormalize else jax.numpy.take_along_axis(shares, experts, 1)
    total = (weights * factors).sum()
    if balance:
      load = jax.nn.one_hot(experts, logits.shape[1]).mean((0, 1))
      total = total + 3 * logits.shape[1] * (load * shares.mean(0)).sum()
    return total
  return loss


def fused_losses(top_k, renormalize, balance, factors):
  def loss(logits):
    routing = kernels.moe_routing_kernel(logits, logits.shape[-1], top_k, balance, renormalize=renormalize)
    return (routing.weights * factors).sum() + 3 * routing.aux_loss
  return loss


@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_routing_has_the_derivatives_of_a_plain_program(renormalize, balance, dtype):
  logits, factors = draw(0, 50, 9), draw(1, 50, 3)
  fused, plain = fused_losses(3, renormalize, balance, factors), losses(oracle, 3, renormalize, balance, factors)
  x, y = jnp.asarray(logits).astype(dtype), oracle.numpy.asarray(logits).astype(dtype)
  for wrap in (lambda f: f, jax.jit):
    got = wrap(jax.grad(fused))(x)
    assert str(got.dtype) == dtype
    close(got.astype("float32"), oracle.grad(plain)(y).astype("float32"), TOLERANCE[dtype])
  if dtype == "float32":
    t = draw(2, 50, 9)
    close(jax.jvp(fused, (x,), (t,)), oracle.jvp(plain, (y,), (t,)), 1e-4)
    close(jax.grad(lambda v: (jax.grad(fused)(v) * t).sum())(x), oracle.grad(lambda v: (oracle.grad(plain)(v) * t).sum())(y), 1e-4)


def test_the_gradient_of_routing_is_the_limit_of_differences():
  with jax.enable_x64(True):
    logits, factors = np.random.RandomState(3).randn(6, 5), np.random.RandomState(4).randn(6, 2)
    for renormalize in (True, False):
      fused = fused_losses(2, renormalize, True, factors)
      got = np.asarray(jax.grad(fused)(jnp.asarray(logits)))
      for index in np.ndindex(6, 5):
        step = np.zeros((6, 5))
        step[index] = 1e-6
        want = (float(fused(jnp.asarray(logits + step))) - float(fused(jnp.asarray(logits - step)))) / 2e-6
        assert abs(got[index] - want) < 1e-7


def grouped(x, weights, sizes):
  """The definition in float64, group by group."""
  x, weights = np.asarray(x, "float64"), np.asarray(weights, "float64")
  out, row = np.zeros((x.shape[0], weights.shape[2])), 0
  for group, size in enumerate(sizes):
    out[row:row + size] = x[row:row + size] @ weights[group]
    row += size
  return out


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_grouped_matmul_multiplies_each_group(dtype, wrap):
  random = np.random.RandomState(1)
  for rows, inner, columns, groups in [(1, 1, 1, 1), (17, 3, 5, 4), (200, 64, 48, 7), (90, 130, 33, 3), (64, 16, 16, 40)]:
    sizes = random.multinomial(rows - rows // 7, random.dirichlet(np.ones(groups) * 0.5)).astype("int32")
    x = jnp.asarray(random.randn(rows, inner).astype("float32")).astype(dtype)
    weights = jnp.asarray((random.randn(groups, inner, columns) / np.sqrt(inner)).astype("float32")).astype(dtype)
    want = grouped(x, weights, sizes)
    for call in (kernels.grouped_matmul, jax.lax.ragged_dot,
                 lambda a, w, s: kernels.grouped_matmul(a, jnp.swapaxes(w, 1, 2), s, transpose_weights=True)):
      got = wrap(call)(x, weights, sizes)
      assert str(got.dtype) == dtype
      np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("call", [kernels.grouped_matmul, jax.lax.ragged_dot], ids=["grouped_matmul", "ragged_dot"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_grouped_matmul_has_the_gradients_of_ragged_dot(call, wrap):
  x, weights, sizes = draw(0, 60, 20), draw(1, 5, 20, 12), np.array([7, 0, 30, 3, 11], "int32")
  factors = draw(2, 60, 12)
  got = wrap(jax.grad(lambda a, w: (call(a, w, sizes) * factors).sum(), (0, 1)))(x, weights)
  want = oracle.grad(lambda a, w: (oracle.lax.ragged_dot(a, w, sizes) * factors).sum(), (0, 1))(x, weights)
  close(got, want, 1e-4)


def test_ragged_dot_keeps_the_text_of_jax():
  x, weights, sizes = draw(0, 60, 20), draw(1, 5, 20, 12), np.array([7, 0, 30, 3, 11], "int32")
  texts = [str(module.make_jaxpr(module.grad(lambda a: module.lax.ragged_dot(a, weights, sizes).sum()))(x)) for module in (jax, oracle)]
  assert texts[0] == texts[1]


def expert_layer(module, tokens, gate, up, down, top_k, gated=None):
  """The definition: every expert runs on every token."""
  x = tokens.reshape(-1, tokens.shape[-1])
  values, experts = module.lax.top_k(x @ gate, top_k)
  weights = module.nn.softmax(values)
  total = 0
  for expert in range(gate.shape[1]):
    hidden = module.nn.silu(x @ (up if gated is None else gated)[expert])
    if gated is not None:
      hidden = hidden * (x @ up[expert])
    total = total + (weights * (experts == expert)).sum(1, keepdims=True) * (hidden @ down[expert])
  return total.reshape(tokens.shape)


LAYER = draw(0, 3, 8, 6), draw(1, 6, 5), draw(2, 5, 6, 7), draw(3, 5, 7, 6)
GATED = draw(4, 5, 6, 7)


@pytest.mark.parametrize("gated", [None, GATED], ids=["plain", "gated"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_the_layer_is_the_sum_over_experts(gated, wrap):
  def fused(*arrays):
    return kernels.moe_feed_forward(*arrays, 2, gate_weights=gated).output

  def plain(*arrays):
    return expert_layer(oracle, *arrays, 2, gated)

  close(wrap(fused)(*LAYER), plain(*LAYER), 1e-4)
  got = wrap(jax.grad(lambda *a: jnp.sin(fused(*a)).sum(), (0, 1, 2, 3)))(*LAYER)
  want = oracle.grad(lambda *a: oracle.numpy.sin(plain(*a)).sum(), (0, 1, 2, 3))(*LAYER)
  close(got, want, 2e-3)


TOKENS = LAYER[0]


def call(module, tokens, up=LAYER[2]):
  if module is jax:
    return kernels.moe_feed_forward(tokens, LAYER[1], up, LAYER[3], 2).output
  return expert_layer(oracle, tokens, LAYER[1], up, LAYER[3], 2)


TRANSFORMS = {
    "vmap": lambda m: m.vmap(lambda x: call(m, x))(TOKENS),
    "vmap over weights": lambda m: m.vmap(lambda u: call(m, TOKENS[0], u))(draw(5, 3, 5, 6, 7)),
    "vmap of grad of jit": lambda m: m.vmap(
        m.grad(m.jit(lambda x, u: m.numpy.sin(call(m, x, u)).sum()), (0, 1)), (0, None))(TOKENS, LAYER[2]),
    "grad of vmap": lambda m: m.grad(lambda u: m.numpy.sin(m.vmap(lambda x: call(m, x, u))(TOKENS)).sum())(LAYER[2]),
    "vmap of vmap": lambda m: m.vmap(m.vmap(lambda x, u: call(m, x, u), (0, None)), (None, 0))(TOKENS, draw(5, 2, 5, 6, 7)),
    "jvp": lambda m: m.jvp(lambda x: call(m, x), (TOKENS,), (draw(6, 3, 8, 6),)),
    "grad of grad": lambda m: m.grad(
        lambda x: (m.grad(lambda v: m.numpy.sin(call(m, v)).sum())(x) * draw(6, 8, 6)).sum())(TOKENS[0]),
    "checkpoint": lambda m: m.grad(m.checkpoint(lambda x: m.numpy.sin(call(m, x)).sum()))(TOKENS),
    "scan": lambda m: m.grad(
        lambda u: m.lax.scan(lambda c, x: (m.numpy.tanh(call(m, c + x, u)), None), TOKENS[0], TOKENS)[0].sum())(LAYER[2]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_layer_under_transforms(name):
  close(TRANSFORMS[name](jax), TRANSFORMS[name](oracle), 5e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_layer_in_narrow_types(dtype):
  arrays = [jnp.asarray(a).astype(dtype) for a in LAYER]
  got = kernels.moe_feed_forward(*arrays, 2)
  assert str(got.output.dtype) == dtype and str(got.aux_loss.dtype) == "float32"
  want = np.asarray(expert_layer(oracle, *[oracle.numpy.asarray(np.asarray(a, "float32")) for a in arrays], 2))
  assert np.abs(np.asarray(got.output, "float32") - want).max() < 4 * TOLERANCE[dtype] * np.abs(want).max()


@pytest.mark.parametrize("activation", ["silu", "gelu", "relu"])
def test_activations_are_those_of_nn(activation):
  got = kernels.moe_feed_forward(*LAYER, 5, activation=activation).output
  tokens, gate, up, down = LAYER
  x = tokens.reshape(-1, 6)
  weights = oracle.nn.softmax(x @ gate)
  want = sum(weights[:, e:e + 1] * (getattr(oracle.nn, activation)(x @ up[e]) @ down[e]) for e in range(5))
  close(got, want.reshape(tokens.shape), 1e-4)


def test_no_tokens_and_no_room():
  empty = kernels.moe_feed_forward(np.zeros((0, 6), "float32"), *LAYER[1:], 2)
  assert empty.output.shape == (0, 6) and float(empty.aux_loss) == 0
  gradient = jax.grad(lambda u: kernels.moe_feed_forward(jnp.zeros((0, 6)), LAYER[1], u, LAYER[3], 2).output.sum())(LAYER[2])
  np.testing.assert_array_equal(gradient, np.zeros((5, 6, 7)))
  # Room for one copy: all others are dropped.
  few = kernels.moe_feed_forward(np.ones((4, 6), "float32"), *LAYER[1:], 1, capacity_factor=0.1)
  assert np.abs(few.output[0]).sum() > 0
  np.testing.assert_array_equal(few.output[1:], np.zeros((3, 6)))


def test_a_nan_token_spoils_itself_alone():
  tokens = np.array(TOKENS.reshape(-1, 6))
  tokens[5, 2] = np.nan
  got = np.asarray(kernels.moe_feed_forward(tokens, *LAYER[1:], 2).output)
  assert np.isnan(got[5]).all()
  others = np.arange(len(tokens)) != 5
  want = np.asarray(expert_layer(oracle, TOKENS, *LAYER[1:], 2)).reshape(-1, 6)
  np.testing.assert_allclose(got[others], want[others], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make, words", [
    (lambda: kernels.moe_routing_kernel(TOKENS, 6, 9), "expected a number from 1 to num_experts, 6 (argument 'top_k'), got 9"),
    (lambda: kernels.moe_routing_kernel(TOKENS, 6, 0), "argument 'top_k'"),
    (lambda: kernels.moe_routing_kernel(TOKENS, 5, 2), "where there is no gate, got float32[3,8,6]; pass gate=, float32[6,5]"),
    (lambda: kernels.moe_routing_kernel(TOKENS, 5, 2, gate=LAYER[1].T), "float32[6,5] (argument 'gate'), got float32[5,6]"),
    (lambda: kernels.moe_routing_kernel(TOKENS, 6, 2, capacity_factor=-1.0), "argument 'capacity_factor'"),
    (lambda: kernels.moe_routing_kernel(jnp.zeros((2, 6), "int32"), 6, 2), "argument 'tokens'"),
    (lambda: kernels.grouped_matmul(LAYER[1], LAYER[2], np.array([1, 2], "int32")), "argument 'weights'"),
    (lambda: kernels.grouped_matmul(LAYER[1], LAYER[2], np.ones(5, "float32")), "argument 'group_sizes'"),
    (lambda: kernels.moe_feed_forward(*LAYER, 2, activation="swish"), "expected 'silu', 'gelu' or 'relu'"),
    (lambda: kernels.moe_feed_forward(LAYER[0], LAYER[1], LAYER[3], LAYER[3], 2), "(argument 'up'), got float32[5,7,6]"),
])
def test_wrong_arguments_are_named(make, words):
  for wrapped in (make, jax.jit(make)):
    with pytest.raises((TypeError, ValueError)) as caught:
      wrapped()
    assert words in str(caught.value)
