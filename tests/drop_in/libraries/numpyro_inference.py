"""numpyro: densities and draws of many distributions, and a regression by variational inference."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

key = jax.random.PRNGKey(3)
for d in [dist.Beta(2.0, 3.0), dist.Gamma(2.0, 3.0), dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])), dist.StudentT(3.0), dist.Poisson(3.0),
          dist.Categorical(probs=jnp.array([0.2, 0.8])), dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)), dist.VonMises(0.0, 2.0),
          dist.LKJCholesky(3, 1.0), dist.NegativeBinomial2(2.0, 3.0), dist.Weibull(1.0, 2.0), dist.BetaBinomial(2.0, 3.0, 10)]:
    print(type(d).__name__, np.asarray(d.log_prob(d.sample(key, (4,)))))


def model(x, y):
    slope, noise = numpyro.sample("slope", dist.Normal(0, 1)), numpyro.sample("noise", dist.HalfCauchy(1.0))
    with numpyro.plate("points", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x, noise), obs=y)


x = jnp.linspace(-1, 1, 20)
y = 2 * x + 0.1 * jax.random.normal(jax.random.key(0), (20,))
inference = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
print(np.asarray(inference.run(jax.random.PRNGKey(2), 20, x, y, progress_bar=False).losses))
