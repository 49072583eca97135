"""Networks of equinox, trained by optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

INPUTS = jax.random.normal(jax.random.key(3), (64, 4))
TARGETS = jnp.sin(INPUTS[:, :1]) + INPUTS[:, 1:2] * INPUTS[:, 2:3]
model = eqx.nn.MLP(4, 1, 32, 2, key=jax.random.key(0), activation=jax.nn.gelu)
optimiser = optax.adamw(1e-2)
state = optimiser.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, state):
    loss, gradient = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(INPUTS) - TARGETS) ** 2))(model)
    updates, state = optimiser.update(gradient, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


for _ in range(15):
    model, state, loss = step(model, state)
    print("loss", f"{loss:.6f}")


class Mixed(eqx.Module):
    convolution: eqx.nn.Conv2d
    norm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout
    linear: eqx.nn.Linear
    cell: eqx.nn.GRUCell

    def __init__(self, key):
        first, second, third = jax.random.split(key, 3)
        self.convolution, self.norm = eqx.nn.Conv2d(1, 3, 3, padding=1, key=first), eqx.nn.LayerNorm((3, 6, 6))
        self.dropout, self.linear, self.cell = eqx.nn.Dropout(0.3), eqx.nn.Linear(108, 5, key=second), eqx.nn.GRUCell(5, 5, key=third)

    def __call__(self, x, key):
        x = self.norm(jax.nn.relu(self.convolution(x)))
        return self.cell(self.linear(self.dropout(x.ravel(), key=key)), jnp.zeros(5))


mixed, image = Mixed(jax.random.key(1)), jax.random.normal(jax.random.key(2), (1, 6, 6))
gradient = eqx.filter_grad(lambda m: m(image, jax.random.key(7)).sum())(mixed)
print("mixed", mixed(image, jax.random.key(7)), [f"{jnp.abs(leaf).sum():.4f}" for leaf in jax.tree.leaves(gradient)])
attention, sequence = eqx.nn.MultiheadAttention(2, 8, key=jax.random.key(1)), jax.random.normal(jax.random.key(2), (5, 8))
print("attention", f"{attention(sequence, sequence, sequence).sum():.5f}")
print(eqx.tree_pformat(mixed.linear))
checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative"))
print("checked", checked(jnp.float32(1)))
try:
    checked(jnp.float32(-1))
except RuntimeError as error:
    print("negative" in str(error))


def looped(x, kind, **options):
    def body(carry):
        step, y = carry
        return step + 1, jnp.sin(y) * x

    return eqx.internal.while_loop(lambda carry: carry[0] < 5, body, (0, x), kind=kind, max_steps=8, **options)[1].sum()


start = jnp.array([0.5, 1.5])
print("loops", jax.grad(looped)(start, "checkpointed", checkpoints=2), jax.jit(jax.grad(lambda x: looped(x, "bounded")))(start),
      jax.vmap(jax.grad(lambda x: looped(x, "checkpointed", checkpoints=3)))(start))
print("jvp", eqx.filter_jvp(lambda x, y, n: (x * y, y, n), (start, start, 3), (start, None, None)))
