"""Ring attention: the sequence is split over devices; keys and values travel around a ring while queries stay."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.sharding import PartitionSpec as P

DEVICES, LENGTH, DIM = 8, 64, 8
jax.config.update("jax_num_cpu_devices", DEVICES)
keys = jax.random.split(jax.random.key(4), 5)
x, y = jax.random.normal(keys[0], (LENGTH, DIM)), jnp.sin(jax.random.normal(keys[1], (LENGTH, DIM)))
weights = [jax.random.normal(key, (DIM, DIM)) / 3.0 for key in keys[2:]]


def whole_attention(q, k, v):
    causal = jnp.arange(LENGTH)[:, None] >= jnp.arange(LENGTH)[None, :]
    return jax.nn.softmax(jnp.where(causal, q @ k.T, -1e30)) @ v


def ring_attention(q, k, v):
    rows, me = q.shape[0], lax.axis_index("ring")
    total, weighted, largest = jnp.zeros_like(q[:, :1]), jnp.zeros_like(q), jnp.zeros_like(q[:, :1]) - 1e30
    for distance in range(DEVICES):
        # After `distance` steps around the ring, a device has the keys and values of the device that far behind it.
        first = (me - distance) % DEVICES * rows
        causal = (me * rows + jnp.arange(rows))[:, None] >= (first + jnp.arange(rows))[None, :]
        scores = jnp.where(causal, q @ k.T, -1e30)
        grown = jnp.maximum(largest, jnp.max(scores, axis=-1, keepdims=True))
        shares, kept = jnp.where(causal, jnp.exp(scores - grown), 0.0), jnp.exp(largest - grown)
        total, weighted, largest = total * kept + jnp.sum(shares, -1, keepdims=True), weighted * kept + shares @ v, grown
        if distance + 1 < DEVICES:
            k, v = (lax.ppermute(part, "ring", [(i, (i + 1) % DEVICES) for i in range(DEVICES)]) for part in (k, v))
    return weighted / total


def loss(weights, x, y, attention):
    q, k, v = (x @ w for w in weights)
    return jnp.mean(jnp.square(attention(q, k, v) - y))


def step(weights, x, y):
    value, grads = jax.value_and_grad(lambda ws: lax.pmean(loss(ws, x, y, ring_attention), "ring"))(weights)
    return value, [w - 0.5 * g for w, g in zip(weights, grads)]


mesh = jax.make_mesh((DEVICES,), ("ring",), axis_types=(jax.sharding.AxisType.Auto,))
train = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("ring"), P("ring")), out_specs=(P(), P())))

worst = 0.0
for i in range(5):
    expected = loss(weights, x, y, whole_attention)
    value, weights = train(weights, x, y)
    worst = max(worst, abs(float(value) - float(expected)))
    print(f"step {i}: loss {float(value):.4f}")
print(f"8 devices have the loss of one: {'yes' if worst < 1e-5 else 'no'}")
