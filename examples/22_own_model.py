"""A custom model: a class with init, apply and loss is trained; if it has layers, groups of them are checkpointed."""

import capibara
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import training


class Tower:
    width = 16

    def init(self, key):
        layers = [{"w": 0.2 * jax.random.normal(jax.random.fold_in(key, i), (self.width, self.width))} for i in range(self.layer_count)]
        return {"layers": layers, "out": jnp.zeros((self.width, 1))}

    def apply(self, params, x):
        carry = self.start(params, x)
        for layer in range(self.layer_count):
            carry = self.run_layer(params, layer, carry)
        return self.output(params, carry)

    def loss(self, params, x, y):
        return jnp.mean(jnp.square(self.apply(params, x) - y))

    # The rest is needed only for checkpointing, sharding or plans.
    layer_count = 8

    def layer_prefix(self, layer):
        return f"layers.{layer}."

    def start(self, params, x, y=None):
        return x

    def run_layer(self, params, layer, carry):
        return carry + jnp.sin(jnp.exp(jnp.tanh(carry @ params["layers"][layer]["w"])))

    def output(self, params, carry):
        return carry @ params["out"]

    def finish(self, params, carry, x, y):
        return jnp.mean(jnp.square(self.output(params, carry) - y))


def temporary_bytes(model, params, batch):
    """Bytes of temporaries in the compiled gradient."""
    return jax.jit(jax.grad(model.loss)).lower(params, *batch).compile().memory_analysis().temp_size_in_bytes


def batch_of(number):
    x = jax.random.normal(jax.random.key(number), (256, 16))
    return x, jnp.sum(x, axis=1, keepdims=True)


def show(report):
    if report["step"] % 10 == 0:
        print(f"step {report['step']} loss {report['loss']:.3f}")


model = capibara.as_model(Tower())
print(f"{sum(leaf.size for leaf in model.types().values())} parameters in {model.layers} layers")
trainer = training.Trainer(training.TrainerConfig(steps=40, warmup=4, learning_rate=1e-2), model)
trainer.train(batch_of, on_step=show)

batch = batch_of(0)
whole = temporary_bytes(model, trainer.params, batch)
for every in (1, 2, 8):
    checkpointed = training.enable_gradient_checkpointing(model, every)
    share = temporary_bytes(checkpointed, trainer.params, batch) / whole
    print(f"groups of {every}: {'less memory' if share < 0.75 else 'no less memory'}")
try:  # a model without layers is refused
    training.enable_gradient_checkpointing(lambda params, x: jnp.sum(params["w"] * x), 2)
except TypeError:
    print("a function has no layers")
