"""Out-of-bounds updates are dropped, and also in derivatives, eager and compiled, as in jax."""
import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax


@pytest.mark.parametrize("wrap", ["eager", "jit"])
@pytest.mark.parametrize("places", [[9], [-7], [2], [9, 1], [1, 1]])
@pytest.mark.parametrize("method", ["set", "add", "min", "max"])
def test_derivatives(method, places, wrap):
  results = []
  for library in (jax, oracle):
    jnp = library.numpy

    def weighted(x, updates, jnp=jnp):
      return (getattr(x.at[jnp.array(places)], method)(updates, mode="drop") * jnp.arange(1.0, 6.0)).sum()

    gradients = library.grad(weighted, (0, 1))
    gradients = library.jit(gradients) if wrap == "jit" else gradients
    results.append(gradients(jnp.arange(5.0)[::-1] + 1, jnp.arange(float(len(places))) - 1.5))
  for ours, theirs in zip(*results, strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
