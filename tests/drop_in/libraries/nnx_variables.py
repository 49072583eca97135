"""flax.nnx: variables above arrays (hijax=True) in jitted functions, loops, derivatives and a network that is trained."""
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

counter = nnx.Variable(jnp.zeros((), jnp.int32), hijax=True)
scale = nnx.Param(jnp.arange(1.0, 4.0), hijax=True)


@jax.jit
def count(x):
    counter[...] += 1
    return x * scale[...]


@jax.jit
def halve(variable):
    variable[...] = variable[...] / 2


def body(carry, _):
    scale[...] = scale[...] + carry
    return carry + 1.0, scale[...].sum()


print(type(scale).__name__, jax.typeof(scale), count(2.0), count(3.0), counter[...])
halve(scale)
halve(scale)
print(scale[...])
print(jax.lax.scan(body, 0.0, None, length=3), scale[...])
print(jax.grad(lambda x: (x * scale[...]).sum())(2.0))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 8, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x):
        self.calls[...] += 1
        return self.last(nnx.tanh(self.first(x)))


with nnx.var_defaults(hijax=True):
    network = Network(nnx.Rngs(0))
inputs = jnp.asarray(np.random.default_rng(0).standard_normal((16, 2)), jnp.float32)
targets = inputs[:, :1] * inputs[:, 1:]


@jax.jit
def train(x, y):
    def loss(kernel):
        hidden = nnx.tanh(network.first(x))
        network.calls[...] += 1
        return ((hidden @ kernel + network.last.bias[...] - y) ** 2).mean()
    value, gradient = jax.value_and_grad(loss)(network.last.kernel[...])
    network.last.kernel[...] -= 0.1 * gradient
    return value


for _ in range(5):
    print(np.round(train(inputs, targets), 5))
print(network.calls[...], np.round(network(inputs)[:3, 0], 4), network.calls[...])
