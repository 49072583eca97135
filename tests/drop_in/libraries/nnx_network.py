"""flax.nnx: a network with norms and dropout trained with optax, attention, recurrent cells, convolutions, and a lifted vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 8, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.dropout(self.norm(self.first(x)))))


@nnx.jit
def step(network, optimizer, x, y):
    loss, gradient = nnx.value_and_grad(lambda network: jnp.mean((network(x) - y) ** 2))(network)
    optimizer.update(network, gradient)
    return loss


network, x = Network(nnx.Rngs(0)), jax.random.normal(jax.random.key(1), (16, 3))
print(np.asarray(network(x)).sum(0))
optimizer = nnx.Optimizer(network, optax.sgd(1e-2, 0.9), wrt=nnx.Param)
for _ in range(5):
    print(float(step(network, optimizer, x, jnp.ones((16, 2)))))
network.eval()
print(np.asarray(network(x)).sum(0))
print([str(path) for path, _ in nnx.to_flat_state(nnx.state(network))])

attention = nnx.MultiHeadAttention(2, 8, rngs=nnx.Rngs(0), decode=False)
print(np.asarray(attention(jax.random.normal(jax.random.key(2), (1, 5, 8)))).sum((0, 1)))
print(np.asarray(nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))(jnp.ones((2, 5, 3)))).sum((0, 1)))
print(np.asarray(nnx.Conv(3, 4, (3, 3), rngs=nnx.Rngs(0))(jnp.ones((1, 4, 4, 3)))).sum((0, 1, 2)))


@nnx.vmap(in_axes=(None, 0))
def rows(layer, row):
    return layer(row)


print(np.asarray(rows(nnx.Linear(3, 2, rngs=nnx.Rngs(0)), x)).sum(0))
