"""A mixture of experts: each device has one expert and some tokens; all_to_all sends them to their experts and back."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.sharding import PartitionSpec as P

EXPERTS = 8
jax.config.update("jax_num_cpu_devices", EXPERTS)
keys = jax.random.split(jax.random.key(3), 5)
x = jax.random.normal(keys[0], (128, 8))
y = jnp.sin(x @ jax.random.normal(keys[1], (8, 8)))
router = jax.random.normal(keys[2], (8, EXPERTS))
up, down = jax.random.normal(keys[3], (EXPERTS, 8, 16)) / 3.0, jax.random.normal(keys[4], (EXPERTS, 16, 8)) / 4.0


def routed(router, x):
    """For each token, its expert (one-hot) and the weight of that expert."""
    gates = jax.nn.softmax(x @ router)
    chosen = jax.nn.one_hot(jnp.argmax(gates, axis=-1), EXPERTS)
    return chosen, jnp.sum(gates * chosen, axis=-1, keepdims=True)


def loss_on_one(router, up, down, x, y):
    chosen, weight = routed(router, x)
    hidden = jnp.tanh(jnp.einsum("td,edf->tef", x, up))
    out = jnp.einsum("te,ted->td", chosen, jnp.einsum("tef,efd->ted", hidden, down))
    return jnp.mean(jnp.square(weight * out - y))


def loss(router, up, down, x, y):
    chosen, weight = routed(router, x)
    # Each expert has a row of slots for the tokens of this device: as many as there are tokens, so none is dropped.
    slot = jnp.sum((jnp.cumsum(chosen, axis=0) - 1.0) * chosen, axis=-1)
    sent = chosen[:, :, None] * jax.nn.one_hot(slot.astype(jnp.int32), x.shape[0])[:, None, :]
    arrived = lax.all_to_all(jnp.einsum("tes,td->esd", sent, x), "expert", 0, 0, tiled=True)
    computed = jnp.tanh(arrived @ up[0]) @ down[0]
    back = lax.all_to_all(computed, "expert", 0, 0, tiled=True)
    return lax.pmean(jnp.mean(jnp.square(weight * jnp.einsum("tes,esd->td", sent, back) - y)), "expert")


def step(router, up, down, x, y):
    value, grads = jax.value_and_grad(loss, (0, 1, 2))(router, up, down, x, y)
    return (value, *(p - 0.5 * g for p, g in zip((router, up, down), grads)))


mesh = jax.make_mesh((EXPERTS,), ("expert",), axis_types=(jax.sharding.AxisType.Auto,))
split = P("expert")
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), split, split, split, split), out_specs=(P(), P(), split, split)))

worst = 0.0
for i in range(5):
    expected = loss_on_one(router, up, down, x, y)
    value, router, up, down = train(router, up, down, x, y)
    worst = max(worst, abs(float(value) - float(expected)))
    print(f"step {i}: loss {float(value):.4f}")
print(f"8 devices have the loss of one: {'yes' if worst < 1e-5 else 'no'}")
