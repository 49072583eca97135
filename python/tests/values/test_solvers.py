"""Line searches, minimizers, optimizers and differential equations that jax accepts, with jax's results."""
import importlib

import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

PEERS = (jax, oracle)
LBFGS = "l-bfgs-experimental-do-not-rely-on-this"


def part(module, name):
  return importlib.import_module(f"{module.__name__}.{name}")


def test_minimum_over_complex_vectors():
  z0 = np.array([1, 2 - 3j, 4, -5j], np.complex64)
  for module in PEERS:
    jnp = module.numpy
    with module.numpy_dtype_promotion("strict"):
      found = part(module, "scipy.optimize").minimize(lambda z: jnp.real(jnp.vdot(z - z0, z - z0)), jnp.zeros(4, "complex64"), method=LBFGS)
    np.testing.assert_allclose(found.x, z0, atol=1e-5)
  # The gradient of a function of complex numbers is that of jax.grad.
  z = jax.numpy.asarray([1 + 2j], "complex64")
  function = lambda z: jax.numpy.real(z * z).sum() ** 2 + jax.numpy.imag(z).sum()  # noqa: E731
  found = part(jax, "scipy.optimize").minimize(function, z, method=LBFGS, options={"maxiter": 1})
  np.testing.assert_allclose(found.jac, jax.grad(function)(found.x), rtol=1e-4)


def test_minimum_in_64_bits():
  for module in PEERS:
    with module.enable_x64(True):
      weights = np.array([1.0, 2.0, 5.0])
      found = part(module, "scipy.optimize").minimize(lambda x: (weights * (x - 3) ** 2).sum(), module.numpy.ones(3), method=LBFGS)
    assert found.x.dtype == np.float64 and found.success
    np.testing.assert_allclose(found.x, 3, rtol=1e-5)


def test_minimum_of_a_steep_function():
  for module in PEERS:
    found = part(module, "scipy.optimize").minimize(lambda x: module.numpy.mean((1e4 * x) ** 2), module.numpy.ones(2), method="BFGS")
    np.testing.assert_allclose(found.x, np.zeros(2), atol=1e-6)


def test_line_search():
  def search(module, *args, **options):
    return part(module, "_src.scipy.optimize.line_search").line_search(*args, **options)

  for module in PEERS:
    square = lambda x: module.numpy.dot(x, x)  # noqa: E731
    x, p = np.array([-60.0, 0], np.float32), np.array([1.0, 0], np.float32)
    found = search(module, square, x, p, c2=0.5)
    assert not found.failed and 30 <= found.a_k <= 90  # |x + s| <= |x| / 2
    np.testing.assert_allclose(found.f_k, square(x + found.a_k * p), rtol=1e-5)
    np.testing.assert_allclose(found.g_k, 2 * (x + found.a_k * p), rtol=1e-5, atol=1e-4)
    known = search(module, square, x, p, old_fval=square(x), gfk=2 * x, c2=0.5)
    np.testing.assert_allclose(known.a_k, found.a_k, rtol=1e-5)
    assert known.nfev == found.nfev - 1
    short = search(module, square, x, p, c2=0.5, maxiter=5)  # the sixth trial would be the first one beyond 30
    assert short.failed and short.status != 0 or int(short.k) > 5


def test_optimizers():
  scalars = []
  for module in PEERS:
    optimizers = part(module, "example_libraries.optimizers")
    init, update, params = optimizers.sm3(0.1)
    state = init(module.numpy.float32(2.0))
    for step in range(3):
      state = update(step, 2 * params(state), state)
    scalars.append(float(params(state)))
    state = optimizers.momentum(0.1, mass=0.9)[0]([{"w": np.ones((1, 2)), "b": np.ones(2)}])
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert module.tree_util.tree_structure(again) == module.tree_util.tree_structure(state)
    assert len(state) == 3 and state[1] == state.tree_def
  np.testing.assert_allclose(scalars[0], scalars[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["glorot", "randn"])
def test_initializers_of_stax(name):
  got, want = (getattr(part(module, "example_libraries.stax"), name)()(module.random.PRNGKey(0), (3, 4)) for module in PEERS)
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_derivatives_of_equations_on_lists():
  # dynamics gets a list and gives an array.
  results = []
  for module in PEERS:
    jnp = module.numpy

    def dynamics(y, t):
      return jnp.array([y[1] * -t, -1 * y[1] - 9.8 * jnp.sin(y[0])])
    times = jnp.linspace(0.0, 1.0, 4)
    ode = part(module, "experimental.ode")
    gradient = module.grad(lambda y: sum(jnp.sum(part**2) for part in ode.odeint(dynamics, y, times)))([np.float32(3.0), np.float32(0.5)])
    results.append(np.asarray(gradient))
  np.testing.assert_allclose(results[0], results[1], rtol=1e-3)
