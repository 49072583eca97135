"""An ensemble of small networks trained side by side by vmap; their spread tells where they know nothing."""

import jax
import jax.numpy as jnp
from jax import random
from jax.tree_util import register_pytree_node_class, tree_map

MEMBERS = 4


@register_pytree_node_class
class Network:
    """Two layers; a pytree, so that vmap, grad and tree_map see through it."""

    def __init__(self, inner, outer):
        self.inner, self.outer = inner, outer

    @classmethod
    def create(cls, key):
        first, second = random.split(key)
        return cls(random.normal(first, (2, 8)), random.normal(second, (8,)) / 3)

    def __call__(self, x):
        return jnp.tanh(jnp.stack([x, jnp.ones_like(x)]).T @ self.inner) @ self.outer

    def tree_flatten(self):
        return (self.inner, self.outer), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def loss(network, x, y):
    return jnp.mean(jnp.square(network(x) - y))


def train_step(network, x, y):
    value, gradient = jax.value_and_grad(loss)(network, x, y)
    return tree_map(lambda p, g: p - 0.1 * g, network, gradient), value


keys = random.split(random.PRNGKey(0), MEMBERS)
members = jax.vmap(Network.create)(keys)
x = jnp.linspace(-1.0, 1.0, 9)
y = jnp.sin(3 * x)
chosen = jax.vmap(lambda key: random.choice(key, x.shape[0], (6,)))(keys)  # each sees its own points
together = jax.jit(jax.vmap(train_step, in_axes=(0, 0, 0)))
for iteration in range(10):
    members, losses = together(members, x[chosen], y[chosen])
    if iteration % 3 == 0:
        print("losses", iteration, losses)
points = jnp.array([-3.0, -0.5, 0.5, 3.0])
predictions = jax.vmap(lambda network: network(points))(members)
print("mean", predictions.mean(axis=0))
print("spread", jnp.std(predictions, axis=0))
print("order", jnp.argsort(jax.vmap(loss, (0, None, None))(members, x, y)))
print("shapes", tree_map(jnp.shape, members).inner, jax.tree_util.tree_structure(members).num_leaves)
