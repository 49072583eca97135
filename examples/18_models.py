"""Named models: a graph of connections, compiled for given shapes into a program, evaluated and differentiated."""

import capibara.jax.numpy as jnp
import capibara.mithril as ml
from capibara.mithril.models import Linear, Model, Relu, Tanh

# Connections by name, and from the canonical output to the canonical input.
model = Model()
model |= Linear(3)(input="x", output="h")
model += Tanh()
model += Linear(1)(output="y")
for key, shape in model.shapes.items():
    if key[0] != "$":
        print(key, shape)

compiled = ml.compile(model, ml.JaxBackend(), shapes={"x": [2, 2]})
print(f"{compiled.text()}parameters {compiled.parameter_count}")

params = {"weight_0": jnp.array([[0.5, -0.5], [0.25, 0.75], [1, 0]]), "bias_0": jnp.array([0, 0.5, -0.5]),
          "weight_1": jnp.array([[1, -1, 0.5]]), "bias_1": jnp.array([0.125])}
data = {"x": jnp.array([[1.0, 2], [3, -1]])}
print("y", compiled.evaluate(params, data)["y"])
outputs, gradients = compiled.evaluate(params, data, output_gradients={"y": jnp.ones((2, 1))})
print("gradient", gradients["bias_0"])

# A name that does not exist is an error.
try:
    model |= Relu()(inptu="y")
except KeyError as error:
    print(error.args[0])
