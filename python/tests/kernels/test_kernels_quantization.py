"""capibara.kernels, vector quantization: codes against float64 distances, gradients against jax's, learning codebooks."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels

pytestmark = pytest.mark.wide

METRICS = ("euclidean", "cosine", "dot_product")
EPSILON = {"float32": 1e-6, "bfloat16": 1e-6, "float16": 1e-6, "float64": 1e-14}


def draw(seed, *shape, dtype="float32"):
  return jnp.asarray(np.random.RandomState(seed).randn(*shape), dtype)


def scores(x, codebook, metric):
  """Scores whose maximum is the nearest code, in float64: [rows, codes]."""
  x, codebook = np.asarray(x, "float64"), np.asarray(codebook, "float64")
  if metric == "euclidean":
    return -((x[:, None] - codebook) ** 2).sum(-1)
  if metric == "dot_product":
    return x @ codebook.T
  length = np.linalg.norm(codebook, axis=-1)
  return x @ codebook.T / np.where(length == 0, 1, length)


def check(codes, x, codebook, metric, epsilon=1e-6):
  """Checks that each code is nearest, up to rounding of the scores."""
  codes, all_scores = np.asarray(codes), scores(x, codebook, metric)
  assert codes.dtype == "int32" and codes.shape == all_scores.shape[:1]
  got = np.take_along_axis(all_scores, codes[:, None], 1)[:, 0]
  size = np.linalg.norm(np.asarray(x, "float64"), axis=-1) + np.linalg.norm(np.asarray(codebook, "float64"), axis=-1).max()
  assert (got >= all_scores.max(1) - epsilon * (1 + size ** 2)).all()


SHAPES = [(1, 1, 1), (3, 2, 5), (17, 7, 33), (64, 64, 64), (130, 5, 300), (100, 130, 31), (70, 1030, 12), (2050, 16, 600)]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rows, dim, count", SHAPES)
def test_codes_are_nearest(rows, dim, count, metric):
  x, codebook = draw(0, rows, dim), draw(1, count, dim)
  for call in (kernels.vq_encode, jax.jit(kernels.vq_encode, static_argnames="distance_metric")):
    check(call(x, codebook, distance_metric=metric), x, codebook, metric)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("metric", METRICS)
def test_codes_of_every_type(dtype, metric):
  with jax.enable_x64(dtype == "float64"):
    x, codebook = draw(0, 200, 24, dtype=dtype), draw(1, 100, 24, dtype=dtype)
    assert str(x.dtype) == dtype
    check(kernels.vq_encode(x, codebook, distance_metric=metric), x, codebook, metric, EPSILON[dtype])


@pytest.mark.parametrize("offset", [0, 100, -3e4])
def test_codes_far_from_zero_are_told_apart(offset):
  x, codebook = draw(0, 300, 32) + offset, draw(1, 200, 32) + offset
  check(kernels.vq_encode(x, codebook), x, codebook, "euclidean", 1e-11)


@pytest.mark.parametrize("size", [10, 1e3, 1e6])
def test_codes_are_exact_beside_large_elements(size):
  """With a few elements much larger than the rest, the low precision of the first comparison leaves the rest no digits."""
  random = np.random.RandomState(5)
  x, codebook = random.randn(300, 24), random.randn(128, 24)
  x[:, 3] *= size
  codebook[::2, 3] *= size
  x, codebook = x.astype("float32"), codebook.astype("float32")
  codes = np.asarray(kernels.vq_encode(jnp.asarray(x), jnp.asarray(codebook)))
  np.testing.assert_array_equal(codes, scores(x, codebook, "euclidean").argmax(1))


def test_clusters_of_near_codes_are_told_apart():
  """More candidates than slots: the codes of a cluster differ in the last bits of a bfloat16."""
  centers = np.random.RandomState(0).randn(8, 1, 16) * 10
  codebook = jnp.asarray((centers + 1e-3 * np.random.RandomState(1).randn(8, 80, 16)).reshape(-1, 16), "float32")
  x = codebook[::3] + 1e-4 * draw(2, 214, 16)
  check(kernels.vq_encode(x, codebook), x, codebook, "euclidean", 1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_of_equal_codes_the_first_is_nearest(metric):
  x = draw(0, 200, 9)
  codebook = jnp.concatenate([draw(1, 50, 9)] * 3)
  codes = np.asarray(kernels.vq_encode(x, codebook, distance_metric=metric))
  assert codes.max() < 50
  assert (codes == np.asarray(kernels.vq_encode(x, codebook[:50], distance_metric=metric))).all()
  assert (np.asarray(kernels.vq_encode(x, jnp.zeros((1024, 9)), distance_metric=metric)) == 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_and_codes_of_zeros(metric):
  codebook = jnp.concatenate([jnp.ones((1, 4)), jnp.zeros((1, 4)), -jnp.ones((1, 4))])
  want = {"euclidean": 1, "cosine": 0, "dot_product": 0}[metric]
  assert (np.asarray(kernels.vq_encode(jnp.zeros((70, 4)), codebook, distance_metric=metric)) == want).all()


def test_nan_counts_as_nearest():
  codebook = np.array(draw(1, 64, 8))
  x = np.array(draw(0, 100, 8))
  x[3, 2] = x[70, 0] = np.nan
  codes = np.asarray(kernels.vq_encode(x, codebook))
  clean = np.asarray(kernels.vq_encode(np.nan_to_num(x), codebook))
  assert codes[3] == codes[70] == 0 and (np.delete(codes, [3, 70]) == np.delete(clean, [3, 70])).all()
  codebook[9, 1] = codebook[40, 1] = np.nan
  assert (np.delete(np.asarray(kernels.vq_encode(x, codebook)), [3, 70]) == 9).all()


def test_no_vectors():
  assert kernels.vq_encode(jnp.zeros((0, 4)), draw(0, 3, 4)).shape == (0,)
  assert kernels.vq_decode(jnp.zeros((0,), "int32"), draw(0, 3, 4)).shape == (0, 4)
  assert float(kernels.vq_quantize(jnp.zeros((0, 4)), draw(0, 3, 4)).loss) == 0


def test_long_inputs_go_by_blocks():
  """Without a kernel, the composition runs by blocks of vectors: the program has no array of vectors x codes."""
  text = jax.jit(kernels.vq_encode).lower(draw(0, 20001, 8), draw(1, 300, 8)).as_text()
  assert "20001x300" not in text and "stablehlo.while" in text


# ---- products and residuals ------------------------------------------------------------------------------------------


def test_products_quantize_parts():
  x, codebook = draw(0, 5, 40, 24), draw(1, 4, 17, 6)
  codes = kernels.vq_encode(x, codebook)
  assert codes.shape == (5, 40, 4)
  decoded = np.asarray(kernels.vq_decode(codes, codebook))
  for g in range(4):
    part = np.asarray(x)[..., 6 * g:6 * g + 6].reshape(-1, 6)
    check(np.asarray(codes)[..., g].ravel(), part, codebook[g], "euclidean")
    assert (decoded[..., 6 * g:6 * g + 6] == np.asarray(codebook)[g][np.asarray(codes)[..., g]]).all()


def test_residuals_quantize_what_is_left():
  x, codebook = draw(0, 200, 12), draw(1, 3, 40, 12) * jnp.asarray([1, 0.6, 0.3]).reshape(3, 1, 1)
  codes = kernels.vq_encode(x, codebook, residual=True)
  assert codes.shape == (200, 3)
  rest = np.asarray(x)
  for s in range(3):
    check(np.asarray(codes)[:, s], rest, codebook[s], "euclidean")
    rest = rest - np.asarray(codebook)[s][np.asarray(codes)[:, s]]
  np.testing.assert_allclose(np.asarray(x) - np.asarray(kernels.vq_decode(codes, codebook, residual=True)), rest, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "uint8"])
def test_indices_beyond_the_codebook_are_clamped(dtype):
  codebook = draw(0, 100, 3)
  codes = np.array([0, 99, 100, 127], dtype) if "u" in dtype else np.array([-5, 99, 100, 127], dtype)
  assert (np.asarray(kernels.vq_decode(codes, codebook)) == np.asarray(codebook)[np.clip(codes.astype(int), 0, 99)]).all()


# ---- gradients -------------------------------------------------------------------------------------------------------


def plain_quantize(jax, x, codebook, commitment=0.25, weight=1.0):
  jnp, stop = jax.numpy, jax.lax.stop_gradient
  codebook = jnp.asarray(codebook)
  codes = jnp.argmin(((x[..., None, :] - codebook) ** 2).sum(-1), -1)
  decoded = codebook[codes]
  loss = commitment * ((x - stop(decoded)) ** 2).mean() + weight * ((stop(x) - decoded) ** 2).mean()
  return x + stop(decoded - x), codes, loss


X, CODEBOOK, WEIGHTS = (np.random.RandomState(s).randn(*shape).astype("float32")
                        for s, shape in ((0, (6, 50, 8)), (1, (20, 8)), (2, (6, 50, 8))))


def losses(jax, quantize):
  def loss(x, codebook):
    quantized, _, extra = quantize(x, codebook)
    return (jax.numpy.sin(quantized) * WEIGHTS[(0,) * (3 - x.ndim)]).sum() + 3 * extra
  return loss


TRANSFORMS = {
    "grad": lambda jax, f: jax.grad(losses(jax, f), (0, 1))(X, CODEBOOK),
    "grad of jit": lambda jax, f: jax.grad(jax.jit(losses(jax, f)), (0, 1))(X, CODEBOOK),
    "vmap of grad of jit": lambda jax, f: jax.vmap(jax.grad(jax.jit(losses(jax, f)), (0, 1)), (0, None))(X, CODEBOOK),
    "vmap over codebooks": lambda jax, f: jax.vmap(jax.grad(losses(jax, f), (0, 1)))(X, np.stack([CODEBOOK * s for s in range(1, 7)])),
    "checkpoint": lambda jax, f: jax.grad(jax.checkpoint(losses(jax, f)), (0, 1))(X, CODEBOOK),
    "jvp": lambda jax, f: jax.jvp(losses(jax, f), (X, CODEBOOK), (WEIGHTS, CODEBOOK)),
    "grad of grad": lambda jax, f: jax.grad(lambda x: (jax.grad(losses(jax, f))(x, CODEBOOK) ** 2).sum())(X),
    "scan": lambda jax, f: jax.lax.scan(lambda c, x: (c + losses(jax, f)(x, CODEBOOK), None), 0.0, X)[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_straight_through_gradients(name):
  got = TRANSFORMS[name](jax, kernels.vq_quantize)
  want = TRANSFORMS[name](oracle, lambda x, c: plain_quantize(oracle, x, c))
  for one, other in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-4, atol=2e-5)


def test_what_has_a_gradient():
  """The quantized vectors have a gradient only for the inputs; the loss for each side, weighted by its own cost."""
  quantized = lambda x, c, **options: kernels.vq_quantize(x, c, **options).quantized.sum()
  loss = lambda x, c, **options: kernels.vq_quantize(x, c, **options).loss
  dx, dc = jax.grad(quantized, (0, 1))(X, CODEBOOK)
  assert (np.asarray(dx) == 1).all() and (np.asarray(dc) == 0).all()
  dx, dc = jax.grad(lambda x, c: loss(x, c, commitment_cost=0.0), (0, 1))(X, CODEBOOK)
  assert (np.asarray(dx) == 0).all() and np.abs(np.asarray(dc)).max() > 0
  dx, dc = jax.grad(lambda x, c: loss(x, c, codebook_cost=0.0), (0, 1))(X, CODEBOOK)
  assert np.abs(np.asarray(dx)).max() > 0 and (np.asarray(dc) == 0).all()
  result = kernels.vq_quantize(X, CODEBOOK)
  assert (np.asarray(result.quantized) == CODEBOOK[np.asarray(result.codes)]).all()


def test_batches_stay_one_operation():
  assert str(jax.make_jaxpr(jax.vmap(kernels.vq_encode, (1, None)))(X, CODEBOOK)).count("vq_encode[") == 1
  codebooks = np.stack([CODEBOOK] * 6)
  assert str(jax.make_jaxpr(jax.vmap(kernels.vq_encode))(X, codebooks)).count("vq_encode[") == 1
  got = jax.vmap(kernels.vq_encode, (1, None), 1)(X, CODEBOOK)
  assert (np.asarray(got) == np.asarray(kernels.vq_encode(X, CODEBOOK))).all()


# ---- learning codebooks ----------------------------------------------------------------------------------------------


def test_moving_averages():
  codebook, x = draw(0, 12, 5), draw(1, 300, 5)
  codes = kernels.vq_encode(x, codebook)
  got = jax.jit(lambda s, x, c: kernels.vq_update(s, x, c, decay=0.9, epsilon=1e-3))(kernels.vq_state(codebook), x, codes)
  one_hot = np.eye(12)[np.asarray(codes)]
  size = 0.9 + 0.1 * one_hot.sum(0)
  total = 0.9 * np.asarray(codebook, "float64") + 0.1 * one_hot.T @ np.asarray(x, "float64")
  smooth = (size + 1e-3) / (size.sum() + 12e-3) * size.sum()
  for one, other in zip(got, (total / smooth[:, None], size, total), strict=True):
    np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def test_dead_codes_start_again_at_vectors():
  x = draw(1, 300, 5)
  codebook = jnp.concatenate([x[:10], jnp.full((6, 5), 1e3)])
  state = kernels.vq_state(codebook)
  codes = kernels.vq_encode(x, codebook)
  state = kernels.vq_update(state, x, codes, decay=0.5, dead_threshold=0.75, key=jax.random.key(0))
  rows = np.asarray(state.codebook)[10:]
  assert all((np.asarray(x) == row).all(1).any() for row in rows)
  assert (np.asarray(state.cluster_size)[10:] == 0.75).all()
  np.testing.assert_allclose(np.asarray(state.cluster_sum)[10:], 0.75 * rows, rtol=1e-6)
  kept = kernels.vq_update(kernels.vq_state(codebook), x, codes, decay=0.5)
  assert (np.asarray(kept.codebook)[:10] == np.asarray(state.codebook)[:10]).all()


def test_training_by_moving_averages_lowers_the_error():
  x = draw(3, 2000, 4)
  state, errors = kernels.vq_state(draw(4, 32, 4) * 0.1), []
  step = jax.jit(lambda state, key: kernels.vq_update(state, x, kernels.vq_encode(x, state[0]), decay=0.5, dead_threshold=0.1, key=key))
  for i in range(20):
    codes = kernels.vq_encode(x, state[0])
    errors.append(float(((x - kernels.vq_decode(codes, state[0])) ** 2).sum()))
    state = step(state, jax.random.key(i))
  assert errors[-1] < 0.5 * errors[0]


def test_kmeans_finds_separate_clusters():
  centers = np.random.RandomState(0).randn(20, 3) * 50
  x = (np.repeat(centers, 30, 0) + np.random.RandomState(1).randn(600, 3) * 0.1).astype("float32")
  result = jax.jit(lambda x, key: kernels.kmeans(x, 20, key, iterations=5))(x, jax.random.key(3))
  codes = np.asarray(result.codes)
  assert len(set(codes)) == 20 and all(len(set(codes[30 * i:30 * i + 30])) == 1 for i in range(20))
  nearest = np.asarray(result.codebook)[codes]
  np.testing.assert_allclose(nearest, np.repeat(x.reshape(20, 30, 3).mean(1), 30, 0), rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(float(result.inertia), ((x - nearest) ** 2).sum(), rtol=1e-3)


def test_kmeans_is_lloyds():
  x, start = np.random.RandomState(0).randn(500, 6), None
  result = kernels.kmeans(x.astype("float32"), 10, jax.random.key(1), iterations=0, init="random")
  start = np.asarray(result.codebook, "float64")
  assert all((x.astype("float32") == row.astype("float32")).all(1).any() for row in start) and len(np.unique(start, axis=0)) == 10
  for _ in range(4):
    codes = scores(x, start, "euclidean").argmax(1)
    start = np.stack([x[codes == k].mean(0) if (codes == k).any() else start[k] for k in range(10)])
  got = kernels.kmeans(x.astype("float32"), 10, jax.random.key(1), iterations=4, init="random")
  np.testing.assert_allclose(np.asarray(got.codebook), start, rtol=1e-3, atol=1e-4)


def test_kmeans_plus_plus_draws_by_distance():
  """Far points are always drawn, points identical to a drawn one never."""
  x = np.zeros((100, 2), "float32")
  x[30], x[60] = (1000, 0), (0, 1000)
  for seed in range(5):
    rows = np.asarray(kernels.kmeans_plus_plus(x, 3, jax.random.key(seed)))
    assert sorted(map(tuple, rows)) == [(0, 0), (0, 1000), (1000, 0)]
  # The second of two is drawn with probability proportional to its squared distance.
  line = np.array([[0], [0], [0], [0], [1], [2]], "float32")
  seconds = [float(kernels.kmeans_plus_plus(line, 2, jax.random.key(s))[1, 0]) for s in range(300)
             if float(kernels.kmeans_plus_plus(line, 2, jax.random.key(s))[0, 0]) == 0]
  assert 0.7 < np.mean(np.array(seconds) == 2) < 0.9 and set(seconds) == {1, 2}


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, words", [
    (lambda: kernels.vq_encode(X, CODEBOOK, distance_metric="manhattan"),
     "expected 'euclidean', 'cosine' or 'dot_product' (argument 'distance_metric'), got 'manhattan'"),
    (lambda: kernels.vq_encode(X, CODEBOOK[:, :3]), "vq_encode: expected float32 vectors of 3 elements (argument 'inputs')"),
    (lambda: kernels.vq_encode(X, CODEBOOK[0]), "(argument 'codebook'), got float32[8]"),
    (lambda: kernels.vq_encode(X, CODEBOOK[:0]), "with one code at least (argument 'codebook'), got float32[0,8]"),
    (lambda: kernels.vq_encode(X.astype("int32"), CODEBOOK), "(argument 'inputs'), got int32[6,50,8]"),
    (lambda: kernels.vq_encode(X, CODEBOOK, residual=True), "expected [stages, codes, dim] with residual=True"),
    (lambda: kernels.vq_decode(X, CODEBOOK), "vq_decode: expected integers (argument 'codes')"),
    (lambda: kernels.vq_decode(np.zeros((5, 2), "int32"), CODEBOOK[None]), "expected codes [..., 1] (argument 'codes')"),
    (lambda: kernels.vq_update(kernels.vq_state(CODEBOOK), X, np.zeros((6, 50), "int32"), dead_threshold=1.0),
     "expected a key (argument 'key')"),
    (lambda: kernels.vq_update(kernels.vq_state(CODEBOOK), X, np.zeros((6, 50), "int32"), decay=2.0), "(argument 'decay'), got 2"),
    (lambda: kernels.vq_update(kernels.vq_state(CODEBOOK), X, np.zeros((6,), "int32")), "(argument 'codes')"),
    (lambda: kernels.vq_update((CODEBOOK, CODEBOOK), X, np.zeros((6, 50), "int32")), "vq_state makes one"),
    (lambda: kernels.kmeans(X[0], 51, jax.random.key(0)), "expected from 1 to 50 clusters, the number of vectors"),
    (lambda: kernels.kmeans(X[0], 5, jax.random.key(0), init="grid"), "expected 'k-means++' or 'random' (argument 'init'), got 'grid'"),
    (lambda: kernels.kmeans(X, 5, jax.random.key(0)), "expected a floating array [count, dim] (argument 'inputs')"),
])
def test_wrong_arguments_are_named(call, words):
  with pytest.raises((TypeError, ValueError)) as caught:
    call()
  assert words in str(caught.value)
