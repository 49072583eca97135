"""distrax and tensorflow_probability: draws, densities, bijectors and their gradients."""

import distrax
import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

key, point = jax.random.PRNGKey(0), jnp.array([0.2, 0.7])
print("normal", distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)).log_prob(point))
squashed = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh())
print("squashed", squashed.sample_and_log_prob(seed=key, sample_shape=(3,)))
choice = distrax.Categorical(logits=jnp.array([1.0, 2.0, 3.0]))
print("choice", choice.entropy(), choice.sample(seed=key, sample_shape=(4,)))
print("divergence", choice.kl_divergence(distrax.Categorical(logits=jnp.zeros(3))))
distributions, bijectors = tfp.distributions, tfp.bijectors
print("gamma", distributions.Gamma(2.0, 3.0).log_prob(point), distributions.Normal(0.0, 1.0).sample(3, seed=key))
print("softplus", bijectors.Softplus().forward(point), bijectors.Chain([bijectors.Exp(), bijectors.Scale(2.0)]).inverse(point))
print("beta", jax.jit(jax.grad(lambda a: distributions.Beta(a, 2.0).log_prob(0.3)))(2.0))
print("entropy", distributions.MultivariateNormalTriL(jnp.zeros(2), jnp.array([[1.0, 0.0], [0.5, 2.0]])).entropy())
joint = distributions.JointDistributionSequential([distributions.Exponential(1.0), lambda rate: distributions.Poisson(rate)])
print("joint", joint.log_prob([jnp.float32(1.5), jnp.float32(2.0)]))
kernel = tfp.math.psd_kernels.MaternThreeHalves(length_scale=0.2)
process = distributions.GaussianProcess(kernel, jnp.linspace(0, 1, 5)[:, None], observation_noise_variance=0.1)
print("process", process.log_prob(jnp.sin(jnp.arange(5.0))))
