"""e3nn-jax: tensor products, spherical harmonics, linear layers and gates of features that rotate, and their gradients."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

key = jax.random.PRNGKey(0)
x, y = e3nn.normal("2x0e+1x1o+1x2e", key, (4,)), e3nn.normal("1x0e+2x1o", jax.random.PRNGKey(1), (4,))
z = e3nn.tensor_product(x, y)
print(z.irreps, np.round(np.asarray(z.array).sum(0), 4))
print(np.round(np.asarray(e3nn.spherical_harmonics("0e+1o+2e+3o", jax.random.normal(key, (5, 3)), True).array[:2]), 4))
print(np.round(np.asarray(jax.grad(lambda v: e3nn.spherical_harmonics("2e+3o", v, True).array.sum())(jnp.array([0.3, 0.2, 0.9]))), 4))
linear = e3nn.flax.Linear("3x0e+2x1o")
print(np.round(np.asarray(linear.apply(linear.init(key, x), x).array[:1]), 4))
rotation = e3nn.rand_matrix(key)
turned = e3nn.tensor_product(x.transform_by_matrix(rotation), y.transform_by_matrix(rotation))
print(np.allclose(turned.array, z.transform_by_matrix(rotation).array, atol=1e-4))
print(e3nn.gate(e3nn.normal("3x0e+1x0e+1x1o", key, ())).irreps, np.round(np.asarray(e3nn.norm(x).array), 4))
print(np.round(np.asarray(e3nn.bessel(jnp.linspace(0.1, 1, 4), 3)), 4))
