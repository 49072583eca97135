"""capibara.kernels, spiking neurons: spikes against a plain loop, gradients against jax's scan with the same surrogate."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import draw

pytestmark = pytest.mark.wide

RESETS = ("hard", "soft", "none")
SLOPES = {"atan": 2, "sigmoid": 25, "fast_sigmoid": 25, "triangle": 1, "rectangle": 1, "straight_through": 1}


def surrogate_slope(jnp, name, k, d):
  return {
      "atan": lambda: k / 2 / (1 + (np.pi / 2 * k * d) ** 2),
      "sigmoid": lambda: k * jnp.exp(-k * abs(d)) / (1 + jnp.exp(-k * abs(d))) ** 2,
      "fast_sigmoid": lambda: 1 / (1 + k * abs(d)) ** 2,
      "triangle": lambda: jnp.maximum(0.0, 1 - k * abs(d)),
      "rectangle": lambda: jnp.where(k * abs(d) < 0.5, 1.0 * k, 0.0),
      "straight_through": lambda: jnp.ones_like(d),
  }[name]()


def plain(jax, x, threshold=1.0, leak_rate=0.1, reset="hard", reset_value=0.0, surrogate="atan", slope=None, detach_reset=False,
          initial_potential=None, return_potential=False, loop=False):
  """The definition, with jax's scan or as a loop."""
  jnp = jax.numpy
  k = SLOPES[surrogate] if slope is None else slope

  @jax.custom_jvp
  def spike(d):
    return (d >= 0).astype(d.dtype)

  spike.defjvp(lambda primals, tangents: (spike(*primals), surrogate_slope(jnp, surrogate, k, primals[0]) * tangents[0]))

  def step(v, current):
    u = v - leak_rate * (v - reset_value) + current
    s = spike(u - threshold)
    kept = jax.lax.stop_gradient(s) if detach_reset else s
    v = u * (1 - kept) + reset_value * kept if reset == "hard" else u - threshold * kept if reset == "soft" else u
    return v, s

  first = jnp.full(x.shape[1:], reset_value, x.dtype) if initial_potential is None else initial_potential
  if loop:
    steps, potential = [], first
    for row in x:
      potential, spike_now = step(potential, row)
      steps.append(spike_now)
    spikes = jnp.stack(steps)
  else:
    potential, spikes = jax.lax.scan(step, first, x)
  return (spikes, potential) if return_potential else spikes


X, WEIGHTS = draw(0, 30, 4, 23), draw(1, 30, 4, 23)


def fused(x, **options):
  return kernels.spiking_neuron(x, **options)


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_spikes_are_those_of_the_definition(reset, wrap):
  """Quarters and a leak of one half are exact in binary: spikes are equal, even exactly at the threshold."""
  x = np.random.RandomState(0).randint(-4, 8, (50, 37)).astype("float32") / 4
  options = dict(threshold=0.75, leak_rate=0.5, reset=reset, reset_value=-0.25, return_potential=True)
  spikes, potential = wrap(lambda x: fused(x, **options))(x)
  v, all_spikes = np.full(37, -0.25), []
  for row in x.astype("float64"):
    u = v - 0.5 * (v + 0.25) + row
    s = (u >= 0.75).astype("float64")
    v = {"hard": np.where(s > 0, -0.25, u), "soft": u - 0.75 * s, "none": u}[reset]
    all_spikes.append(s)
  assert (np.asarray(spikes) == np.array(all_spikes)).all() and np.asarray(spikes).any()
  np.testing.assert_allclose(np.asarray(potential), v, atol=1e-5)


@pytest.mark.parametrize("steps, neurons", [(1, 1), (7, 3), (3, 1000), (400, 17), (5, 4099)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_shapes_and_types(steps, neurons, dtype):
  """Inputs in steps of 1/8 are exact in every type, and so are spikes."""
  x = jnp.asarray(np.random.RandomState(1).randint(-4, 8, (steps, neurons)) / 8, dtype)
  spikes, potential = fused(x, threshold=0.5, leak_rate=0.25, return_potential=True)
  assert str(spikes.dtype) == dtype and str(potential.dtype) == "float32"
  want, last = plain(oracle, oracle.numpy.asarray(np.asarray(x, "float32")), threshold=0.5, leak_rate=0.25, return_potential=True)
  assert (np.asarray(spikes, "float32") == np.asarray(want)).mean() > 0.999
  grad = jax.grad(lambda x: (fused(x, threshold=0.5) * jnp.asarray(draw(2, steps, neurons), dtype)).astype("float32").sum())(x)
  assert str(grad.dtype) == dtype and np.isfinite(np.asarray(grad, "float32")).all()


@pytest.mark.parametrize("neurons", [1 << 19, (1 << 19) + 16, (1 << 19) + 5])
def test_results_larger_than_caches(neurons):
  """Results of 16 MiB and more, with and without rows of whole cache lines. All values are exact in binary."""
  x = np.random.RandomState(3).randint(-4, 8, (9, neurons)).astype("float32") / 8
  slope = np.random.RandomState(4).randint(-4, 5, (9, neurons)).astype("float32")
  options = dict(threshold=0.5, leak_rate=0.5, reset="soft", surrogate="straight_through")
  spikes, pull = jax.vjp(jax.jit(lambda x: fused(x, **options)), jnp.asarray(x))
  v, later, want, pulled = np.zeros(neurons), np.zeros(neurons), [], []
  for row in x.astype("float64"):
    u = v - 0.5 * v + row
    want.append((u >= 0.5).astype("float64"))
    v = u - 0.5 * want[-1]
  for row in slope.astype("float64")[::-1]:
    later = later + row - 0.5 * later
    pulled.append(later)
    later = 0.5 * later
  assert (np.asarray(spikes) == np.array(want)).all()
  np.testing.assert_allclose(np.asarray(jax.jit(pull)(slope)[0]), np.array(pulled)[::-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("surrogate", SLOPES)
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("detach_reset", [False, True])
def test_gradients_are_those_of_the_definition(surrogate, reset, detach_reset):
  options = dict(surrogate=surrogate, reset=reset, detach_reset=detach_reset, threshold=0.5, leak_rate=0.2, reset_value=0.1,
                 slope=1.5, return_potential=True)

  def loss(run):
    def scalar(x, first):
      spikes, potential = run(x, initial_potential=first, **options)
      return (spikes * WEIGHTS).sum() + (potential * WEIGHTS[0]).sum()
    return scalar

  first = draw(5, 4, 23)
  want = oracle.jit(oracle.grad(loss(lambda x, **o: plain(oracle, x, **o)), (0, 1)))(X, first)
  for wrap in (lambda f: f, jax.jit):
    got = wrap(jax.grad(loss(fused), (0, 1)))(X, first)
    for one, other in zip(got, want, strict=True):
      np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("surrogate", ["atan", "sigmoid", "fast_sigmoid"])
def test_gradients_in_double_precision(surrogate):
  with jax.enable_x64(True), oracle.enable_x64(True):
    x = X.astype("float64")
    loss = lambda run: lambda x: (run(x, surrogate=surrogate, threshold=0.3) * WEIGHTS).sum()
    got, want = jax.grad(loss(fused))(x), oracle.grad(loss(lambda x, **o: plain(oracle, x, **o)))(x)
    assert str(got.dtype) == "float64"
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-11, atol=1e-11)


def test_a_gradient_is_a_finite_difference_of_the_potential():
  """Below the threshold there are no spikes, and the potential after the last step is smooth in the inputs."""
  with jax.enable_x64(True):
    x = np.random.RandomState(0).rand(6, 5) * 0.1
    f = lambda x: (kernels.spiking_neuron(x, 10.0, 0.3, surrogate="rectangle", return_potential=True)[1] ** 2).sum()
    grad = np.asarray(jax.grad(f)(x))
    for at in np.ndindex(6, 5):
      h = np.zeros((6, 5))
      h[at] = 1e-6
      assert abs(float(f(x + h) - f(x - h)) / 2e-6 - grad[at]) < 1e-8


TRANSFORMS = {
    "vmap": lambda jax, f: jax.vmap(f, 1)(X),
    "vmap of the last axis": lambda jax, f: jax.vmap(f, -1, -1)(X),
    "vmap of grad of jit": lambda jax, f: jax.vmap(jax.grad(jax.jit(lambda x: (f(x) * WEIGHTS[:, 0]).sum())), 1)(X),
    "grad of jit of vmap": lambda jax, f: jax.grad(lambda x: (jax.jit(jax.vmap(f, 2, 2))(x) * WEIGHTS).sum())(X),
    "checkpoint": lambda jax, f: jax.grad(jax.checkpoint(lambda x: (jax.numpy.sin(f(x) * x) * WEIGHTS).sum()))(X),
    "jvp": lambda jax, f: jax.jvp(f, (X,), (WEIGHTS,)),
    "linearize": lambda jax, f: jax.linearize(f, X)[1](WEIGHTS),
    "jacrev": lambda jax, f: jax.jacrev(f)(X[:6, 0, :3]),
    "jacfwd": lambda jax, f: jax.jacfwd(f)(X[:6, 0, :3]),
    "two layers": lambda jax, f: jax.grad(lambda w: (f(f(X[:, 0]) @ w) * WEIGHTS[:, 0]).sum())(draw(3, 23, 23)),
    "in a scan": lambda jax, f: jax.grad(lambda s: jax.lax.scan(lambda c, x: (c + (f(x * s) * WEIGHTS[:, 0]).sum(), None), 0.0,
                                                              X.swapaxes(0, 1))[0])(1.5),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_under_transforms(name):
  got = TRANSFORMS[name](jax, lambda x: fused(x, threshold=0.5))
  want = TRANSFORMS[name](oracle, lambda x: plain(oracle, x, threshold=0.5))
  for one, other in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-3, atol=1e-3)


def test_second_derivatives():
  """jax's scan (0.10.2) drops a part of them: the derivative of a spike that an outer gradient reads. Its loops do not."""
  x, weights = X[:8, 0], WEIGHTS[:8, 0]
  twice = lambda jax, f: jax.jit(jax.grad(lambda x: (jax.grad(lambda v: (f(v) * weights * v).sum())(x) * weights).sum()))(x)
  for reset in RESETS:
    got = twice(jax, lambda x: fused(x, threshold=0.5, reset=reset))
    want = twice(oracle, lambda x: plain(oracle, x, threshold=0.5, reset=reset, loop=True))
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-3, atol=1e-3)


def test_batches_and_gradients_stay_one_operation():
  text = str(jax.make_jaxpr(jax.vmap(jax.grad(lambda x: fused(x).sum()), 1))(X))
  assert text.count("spiking_neuron_grad[") == 1 and "scan[" not in text


def test_no_steps_and_no_neurons():
  spikes, potential = fused(jnp.zeros((0, 3)), reset_value=0.5, return_potential=True)
  assert spikes.shape == (0, 3) and (np.asarray(potential) == 0.5).all()
  assert fused(jnp.zeros((3, 0))).shape == (3, 0)
  assert jax.grad(lambda x: fused(x).sum())(jnp.zeros((3, 0))).shape == (3, 0)


def test_nan_never_spikes():
  x = np.ones((5, 40), "float32")
  x[1, 7] = np.nan
  spikes, potential = fused(x, threshold=0.5, return_potential=True)
  assert np.asarray(spikes)[:, 7].tolist() == [1, 0, 0, 0, 0] and np.isnan(np.asarray(potential)[7])
  assert np.isfinite(np.delete(np.asarray(potential), 7)).all() and (np.delete(np.asarray(spikes), 7, 1) == 1).all()


@pytest.mark.parametrize("call, words", [
    (lambda: fused(X, surrogate="step"), "(argument 'surrogate'), got 'step'"),
    (lambda: fused(X, reset="sof"), "expected 'hard', 'soft' or 'none' (argument 'reset'), got 'sof'"),
    (lambda: fused(X, leak_rate=1.5), "expected a number from 0 to 1 (argument 'leak_rate'), got 1.5"),
    (lambda: fused(X, slope=0.0), "expected a number above 0 (argument 'slope'), got 0"),
    (lambda: fused(X, initial_potential=jnp.zeros(3)), "expected float32[4,23] (argument 'initial_potential'), got float32[3]"),
    (lambda: fused(jnp.float32(1)), "expected a floating array [steps, ...] (argument 'inputs'), got float32[]"),
    (lambda: fused(jnp.zeros((3, 2), "int32")), "(argument 'inputs'), got int32[3,2]"),
])
def test_wrong_arguments_are_named(call, words):
  with pytest.raises((TypeError, ValueError)) as caught:
    call()
  assert words in str(caught.value)


def test_time_may_be_any_axis():
  x, start = draw(0, 20, 3, 5), draw(1, 3, 5)
  want, last = kernels.spiking_neuron(x, 0.5, return_potential=True, initial_potential=start)
  for axis in (1, 2, -1, -3):
    moved = jnp.moveaxis(x, 0, axis)
    got, own_last = kernels.spiking_neuron(moved, 0.5, return_potential=True, initial_potential=start, axis=axis)
    assert got.shape == moved.shape and np.array_equal(np.moveaxis(np.asarray(got), axis, 0), want) and np.array_equal(own_last, last)
  with pytest.raises(Exception, match="axis"):
    kernels.spiking_neuron(x, axis=3)
