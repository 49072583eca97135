"""The optimisers of example_libraries take the same steps."""
import jax
import jax.numpy as jnp
from jax.example_libraries import optimizers

target = {"w": jnp.arange(6.0).reshape(2, 3), "b": (jnp.ones(3),)}


def loss(params):
    return sum(jnp.sum((p - t) ** 2) for p, t in zip(jax.tree.leaves(params), jax.tree.leaves(target)))


schedule = optimizers.polynomial_decay(0.1, 50, 0.01)
methods = {
    "sgd": optimizers.sgd(schedule), "momentum": optimizers.momentum(0.05, 0.9), "nesterov": optimizers.nesterov(0.05, 0.9),
    "adagrad": optimizers.adagrad(0.1), "rmsprop": optimizers.rmsprop(0.1), "rmsprop_momentum": optimizers.rmsprop_momentum(0.01),
    "adam": optimizers.adam(optimizers.exponential_decay(0.1, 10, 0.9)), "adamax": optimizers.adamax(optimizers.inverse_time_decay(0.1, 10, 0.5, True)),
    "sm3": optimizers.sm3(optimizers.piecewise_constant([5, 10], [0.3, 0.2, 0.1])),
}
for name, (init, update, get_params) in methods.items():
    state = init(jax.tree.map(jnp.zeros_like, target))
    step = lambda i, state: update(i, jax.grad(loss)(get_params(state)), state)  # noqa: E731
    step = step if name == "sm3" else jax.jit(step)  # jax keeps shapes in the state of sm3
    for i in range(12):
        state = step(i, state)
    print(name, get_params(state))
    unpacked = optimizers.unpack_optimizer_state(state)
    packed = get_params(optimizers.pack_optimizer_state(unpacked))
    print(jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), packed, get_params(state))))
print(optimizers.l2_norm(target), optimizers.clip_grads(target, 1.0))
try:
    update(0, {"w": target["w"]}, state)
except TypeError as error:
    print("gradient tree that did not match" in str(error))
