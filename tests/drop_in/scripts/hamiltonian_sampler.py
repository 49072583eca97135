"""Hamiltonian Monte Carlo over a correlated Gaussian with a quartic wall, chains side by side by vmap."""

import jax
import jax.numpy as jnp
from jax import lax, random

precision = jnp.array([[2.0, -0.8], [-0.8, 1.0]])


def potential(q):
    return 0.5 * q @ precision @ q + 0.05 * jnp.sum(q**4)


def leapfrog(q, p, size, count):
    def body(carry, _):
        q, p = carry
        p = p - 0.5 * size * jax.grad(potential)(q)
        q = q + size * p
        p = p - 0.5 * size * jax.grad(potential)(q)
        return (q, p), potential(q) + 0.5 * jnp.dot(p, p)

    (q, p), energies = lax.scan(body, (q, p), None, length=count)
    return q, p, energies


def transition(q, key):
    momentum_key, accept_key = random.split(key)
    p = random.normal(momentum_key, q.shape)
    before = potential(q) + 0.5 * jnp.sum(p * p)
    proposed, _, energies = leapfrog(q, p, 0.3, 4)
    log_ratio = before - energies[-1]
    accepted = jnp.log(random.uniform(accept_key)) < log_ratio
    return jnp.where(accepted, proposed, q), (accepted, log_ratio)


@jax.jit
def sample(key, start):
    def chain(key, q):
        return lax.scan(lambda q, k: ((lambda out: (out[0], (out[0], *out[1])))(transition(q, k))), q, random.split(key, 6))[1]

    return jax.vmap(chain)(random.split(key, start.shape[0]), start)


start = jnp.array([[1.0, 0.0], [-1.0, 0.5], [0.2, -2.0]])
draws, accepted, ratios = sample(random.PRNGKey(11), start)
print("draws", draws.shape, draws.dtype)
print("accepted", jnp.sum(accepted, axis=1))
print("mean", draws.reshape(-1, 2).mean(axis=0))
print("covariance", jnp.cov(draws.reshape(-1, 2), rowvar=False))
print("energy error", float(jnp.max(jnp.abs(ratios))))
print("last", draws[:, -1])
