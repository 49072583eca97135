"""Modules of flax.linen, trained by optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

INPUTS = jax.random.normal(jax.random.key(3), (64, 4))
TARGETS = jnp.sin(INPUTS[:, :1]) + INPUTS[:, 1:2] * INPUTS[:, 2:3]
KEYS = {"params": jax.random.key(0), "dropout": jax.random.key(1)}


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.LayerNorm()(nn.gelu(nn.Dense(32)(x)))
        x = nn.Dropout(0.1, deterministic=False)(x)
        return nn.Dense(1)(nn.tanh(nn.Dense(32)(x)))


network = Network()
variables = network.init(KEYS, INPUTS)
optimiser = optax.adam(1e-2)
state = optimiser.init(variables)
print("shapes", jax.tree.map(jnp.shape, variables))


@jax.jit
def step(variables, state, key):
    def loss_of(variables):
        return jnp.mean((network.apply(variables, INPUTS, rngs={"dropout": key}) - TARGETS) ** 2)
    loss, gradient = jax.value_and_grad(loss_of)(variables)
    updates, state = optimiser.update(gradient, state, variables)
    return optax.apply_updates(variables, updates), state, loss


for i in range(15):
    variables, state, loss = step(variables, state, jax.random.key(i))
    print("loss", f"{loss:.6f}")


class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=False)(nn.Conv(4, (3, 3))(x))
        x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        return nn.Dense(3)(x.reshape(x.shape[0], -1))


class Layer(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        return nn.tanh(nn.Dense(4)(carry)), None


class Repeated(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()(x, None)[0]


images, sequences = jax.random.normal(jax.random.key(5), (2, 8, 8, 1)), jax.random.normal(jax.random.key(2), (2, 5, 8))
convolutions = Convolutions()
variables = convolutions.init(jax.random.key(0), images)
outputs, changed = convolutions.apply(variables, images, mutable=["batch_stats"])
print("convolutions", outputs, jax.tree.map(lambda x: f"{x.sum():.5f}", changed))
for name, module, value in (("attention", nn.MultiHeadDotProductAttention(2), sequences), ("recurrent", nn.RNN(nn.LSTMCell(6)), sequences),
                            ("embedding", nn.Embed(10, 4), jnp.arange(3)), ("scan", Repeated(), INPUTS),
                            ("vmap", nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)(3), sequences)):
    variables = module.init(jax.random.key(0), value)
    gradient = jax.grad(lambda v: jnp.sum(module.apply(v, value) ** 2))(variables)
    print(name, f"{module.apply(variables, value).sum():.4f}", f"{sum(jnp.abs(x).sum() for x in jax.tree.leaves(gradient)):.3f}")
remat = nn.remat(Network)()
print("remat", f"{jax.grad(lambda v: remat.apply(v, INPUTS, rngs=KEYS).sum())(remat.init(KEYS, INPUTS))['params']['Dense_0']['bias'].sum():.4f}")
lazy = network.lazy_init(KEYS, jax.ShapeDtypeStruct((64, 4), jnp.float32))
print("lazy", f"{lazy['params']['Dense_0']['kernel'].sum():.5f}")
