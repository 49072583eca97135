"""A residual block with batch normalisation, trained to tell stripes from spots on tiny images."""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.nn import initializers

WIDTH = 4  # channels


def convolve(x, kernel, stride=1):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalise(x, scale, shift):
    mean = jnp.mean(x, axis=(0, 1, 2), keepdims=True)
    variance = jnp.var(x, axis=(0, 1, 2), keepdims=True)
    return scale * (x - mean) * lax.rsqrt(variance + 1e-5) + shift


def initialise(key):
    keys = random.split(key, 4)
    kernel = initializers.he_normal(in_axis=(0, 1, 2), out_axis=3)
    return {
        "stem": kernel(keys[0], (3, 3, 1, WIDTH)),
        "block": [
            {"kernel": kernel(keys[1], (3, 3, WIDTH, WIDTH)), "scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)},
            {"kernel": kernel(keys[2], (3, 3, WIDTH, WIDTH)), "scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)},
        ],
        "head": {"weight": initializers.glorot_uniform()(keys[3], (WIDTH, 2)), "bias": jnp.zeros(2)},
    }


def classify(parameters, images):
    x = convolve(images, parameters["stem"], stride=2)
    shortcut = x
    for number, layer in enumerate(parameters["block"]):
        x = normalise(convolve(x, layer["kernel"]), layer["scale"], layer["shift"])
        if number == 0:
            x = jax.nn.relu(x)
    x = jax.nn.relu(x + shortcut)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.mean(axis=(1, 2))
    return x @ parameters["head"]["weight"] + parameters["head"]["bias"]


def loss(parameters, images, labels):
    scores = jax.nn.log_softmax(classify(parameters, images))
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 2) * scores, axis=-1))


@jax.jit
def step(parameters, images, labels):
    value, gradient = jax.value_and_grad(loss)(parameters, images, labels)
    return value, jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, parameters, gradient)


def make_images(key, count=6, size=8):
    stripes = jnp.tile(jnp.arange(size) % 2, (count // 2, size, 1)).astype(jnp.float32)
    spots = (random.uniform(key, (count // 2, size, size)) > 0.7).astype(jnp.float32)
    labels = jnp.repeat(jnp.arange(2), count // 2)
    return jnp.concatenate([stripes, spots])[..., None], labels


images, labels = make_images(random.PRNGKey(7))
parameters = initialise(random.PRNGKey(0))
print("parameters", sum(leaf.size for leaf in jax.tree_util.tree_leaves(parameters)))
for iteration in range(4):
    value, parameters = step(parameters, images, labels)
    print(f"step {iteration} loss {value:.5f}")
print("right", int(jnp.sum(jnp.argmax(classify(parameters, images), axis=-1) == labels)), "of", labels.shape[0])
