"""A Kalman filter and smoother by scan; the noise level is learnt by the gradient of the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

transition = jnp.array([[1.0, 1.0], [0.0, 1.0]])
observe = jnp.array([[1.0, 0.0]])
drift = 0.01 * jnp.eye(2)


def step(carry, y, noise):
    mean, covariance = carry
    mean = transition @ mean
    covariance = transition @ covariance @ transition.T + drift
    surprise = y - observe @ mean
    scale = observe @ covariance @ observe.T + noise
    gain = jnp.linalg.solve(scale, observe @ covariance).T
    mean = mean + gain @ surprise
    covariance = covariance - gain @ observe @ covariance
    _, log_determinant = jnp.linalg.slogdet(scale)
    density = -0.5 * (surprise @ jnp.linalg.solve(scale, surprise) + log_determinant + jnp.log(2 * jnp.pi))
    return (mean, covariance), (mean, covariance, density)


def run(log_noise, observations):
    noise = jnp.exp(log_noise) * jnp.eye(1)
    start = (jnp.zeros(2), jnp.eye(2))
    return lax.scan(lambda carry, y: step(carry, y, noise), start, observations)[1]


def smooth(means, covariances):
    def back(carry, inputs):
        later_mean, later_covariance = carry
        mean, covariance = inputs
        ahead = transition @ covariance @ transition.T + drift
        gain = jnp.linalg.solve(ahead, transition @ covariance).T
        mean = mean + gain @ (later_mean - transition @ mean)
        covariance = covariance + gain @ (later_covariance - ahead) @ gain.T
        return (mean, covariance), mean

    _, earlier = lax.scan(back, (means[-1], covariances[-1]), (means[:-1], covariances[:-1]), reverse=True)
    return jnp.concatenate([earlier, means[-1:]])


truth = np.arange(8) * 0.5
observations = jnp.asarray((truth + 0.3 * np.sin(7.0 * np.arange(8)))[:, None], dtype=jnp.float32)
likelihood = jax.jit(lambda log_noise: run(log_noise, observations)[2].sum())
log_noise = jnp.float32(0.0)
for iteration in range(4):
    value, slope = jax.value_and_grad(likelihood)(log_noise)
    log_noise = log_noise + 0.2 * slope
    print("likelihood", round(float(value), 4), "noise", round(float(jnp.exp(log_noise)), 4))
means, covariances, _ = run(log_noise, observations)
print("filtered", means[:, 0])
print("smoothed", smooth(means, covariances)[:, 0])
print("curvature", float(jax.grad(jax.grad(likelihood))(log_noise)))
