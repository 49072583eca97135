"""Regression with a Gaussian process: kernel by two vmaps, Cholesky solves, learnt length scale, samples."""

import jax
import jax.numpy as jnp
from jax import random
from jax.scipy import linalg, stats


def kernel(parameters, x, y):
    return jnp.exp(parameters["log_amplitude"] - 0.5 * ((x - y) / jnp.exp(parameters["log_length"])) ** 2)


def matrix(parameters, xs, ys):
    return jax.vmap(lambda x: jax.vmap(lambda y: kernel(parameters, x, y))(ys))(xs)


def factor(parameters, xs):
    noisy = matrix(parameters, xs, xs) + jnp.exp(parameters["log_noise"]) * jnp.eye(len(xs))
    return jnp.linalg.cholesky(noisy)


def likelihood(parameters, xs, values):
    lower = factor(parameters, xs)
    white = linalg.solve_triangular(lower, values, lower=True)
    return jnp.sum(stats.norm.logpdf(white)) - jnp.sum(jnp.log(jnp.diag(lower)))


def predict(parameters, xs, values, points):
    lower = factor(parameters, xs)
    across = matrix(parameters, xs, points)
    mean = across.T @ linalg.cho_solve((lower, True), values)
    inner = linalg.solve_triangular(lower, across, lower=True)
    return mean, matrix(parameters, points, points) - inner.T @ inner


xs = jnp.array([-2.0, -1.2, -0.4, 0.3, 1.1, 1.9])
values = jnp.sin(2 * xs) + 0.05 * jnp.cos(9 * xs)
parameters = {"log_amplitude": 0.0, "log_length": 0.0, "log_noise": -3.0}
parameters = jax.tree_util.tree_map(jnp.asarray, parameters)
climb = jax.jit(jax.value_and_grad(likelihood))
for iteration in range(5):
    value, slope = climb(parameters, xs, values)
    parameters = jax.tree_util.tree_map(lambda p, g: p + 0.05 * g, parameters, slope)
    print(f"iteration {iteration}: {value:.4f}")
for name, value in sorted(parameters.items()):
    print(name, f"{jnp.exp(value):.4f}")
points = jnp.linspace(-2.0, 2.0, 5)
mean, covariance = predict(parameters, xs, values, points)
print("mean", mean)
print("deviation", jnp.sqrt(jnp.diagonal(covariance)))
draws = random.multivariate_normal(random.PRNGKey(5), mean, covariance + 1e-4 * jnp.eye(5), shape=(2,))
print("draws", draws)
hessian = jax.hessian(lambda log_length: likelihood(dict(parameters, log_length=log_length), xs, values))
print("curvature", float(hessian(parameters["log_length"])))
