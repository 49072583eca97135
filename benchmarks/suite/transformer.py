"""Training steps of GPT models: embedding, causal attention, gelu, tied output, cross-entropy, gradients and Adam."""

from dataclasses import dataclass

import numpy

from .row import Row

RATE, DECAY, DECAY2, SMALL = 1e-3, 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Shape:
    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    batch: int = 4
    length: int = 64

    @property
    def operations(self):
        """Operations of a step's matmuls, forward and backward."""
        tokens = self.batch * self.length
        block = 12 * self.width**2 + 2 * self.length * self.width
        return 6 * tokens * (self.layers * block + self.width * self.vocabulary)


GPT2 = Shape()
CHARACTERS = Shape(layers=4, width=128, heads=4, vocabulary=65, batch=12, length=64)


def initial(shape, random):
    """Parameters, Adam's first and second moments, and a batch of tokens."""
    def weights(*sizes):
        return 0.02 * random.standard_normal(sizes, dtype=numpy.float32)

    def norm():
        return {"scale": numpy.ones(shape.width, numpy.float32), "shift": numpy.zeros(shape.width, numpy.float32)}

    def linear(inputs, outputs):
        return {"w": weights(inputs, outputs), "b": numpy.zeros(outputs, numpy.float32)}

    width = shape.width
    parameters = {
        "tokens": weights(shape.vocabulary, width), "places": weights(shape.length, width), "norm": norm(),
        "blocks": [{"norm1": norm(), "qkv": linear(width, 3 * width), "out": linear(width, width), "norm2": norm(),
                    "up": linear(width, 4 * width), "down": linear(4 * width, width)} for _ in range(shape.layers)]}
    tokens = random.integers(0, shape.vocabulary, (shape.batch, shape.length + 1)).astype(numpy.int32)
    return parameters, tokens


def zeros_like(tree):
    if isinstance(tree, dict):
        return {key: zeros_like(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [zeros_like(value) for value in tree]
    return numpy.zeros_like(tree)


def inputs_of(shape):
    def inputs(random):
        parameters, tokens = initial(shape, random)
        state = {"parameters": parameters, "means": zeros_like(parameters), "squares": zeros_like(parameters),
                 "step": numpy.float32(0)}
        return state, tokens
    return inputs


# --- jax and capibara --------------------------------------------------------------------------------------------------


def loss_of(jax, shape, compute):
    jnp = jax.numpy
    head = shape.width // shape.heads

    def norm(x, layer):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = wide.mean(-1, keepdims=True)
        spread = ((wide - mean) ** 2).mean(-1, keepdims=True)
        return ((wide - mean) * jax.lax.rsqrt(spread + 1e-5) * layer["scale"] + layer["shift"]).astype(x.dtype)

    def linear(x, layer):
        return x @ layer["w"].astype(x.dtype) + layer["b"].astype(x.dtype)

    def attention(x, block):
        qkv = linear(x, block["qkv"]).reshape(shape.batch, shape.length, 3, shape.heads, head)
        q, k, v = (qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
        scores = (q @ k.transpose(0, 1, 3, 2)) * (head**-0.5)
        seen = jnp.tril(jnp.ones((shape.length, shape.length), bool))
        scores = jnp.where(seen, scores.astype(jnp.promote_types(x.dtype, jnp.float32)), -1e30)
        mixed = jax.nn.softmax(scores).astype(x.dtype) @ v
        return linear(mixed.transpose(0, 2, 1, 3).reshape(x.shape), block["out"])

    def loss(parameters, tokens):
        given, expected = tokens[:, :-1], tokens[:, 1:]
        x = parameters["tokens"][given] + parameters["places"]
        x = x.astype(compute) if compute else x
        for block in parameters["blocks"]:
            x = x + attention(norm(x, block["norm1"]), block)
            x = x + linear(jax.nn.gelu(linear(norm(x, block["norm2"]), block["up"])), block["down"])
        x = norm(x, parameters["norm"])
        logits = x @ parameters["tokens"].T.astype(x.dtype)
        logits = logits.astype(jnp.promote_types(x.dtype, jnp.float32))
        picked = jnp.take_along_axis(logits, expected[..., None], axis=-1)[..., 0]
        return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()
    return loss


def step_of(shape, compute=None):
    def program(jax):
        loss = loss_of(jax, shape, compute)
        tree_map = jax.tree_util.tree_map

        def run(state, tokens):
            value, gradients = jax.value_and_grad(loss)(state["parameters"], tokens)
            step = state["step"] + 1
            first, second = 1 - DECAY**step, 1 - DECAY2**step
            means = tree_map(lambda m, g: DECAY * m + (1 - DECAY) * g, state["means"], gradients)
            squares = tree_map(lambda v, g: DECAY2 * v + (1 - DECAY2) * g * g, state["squares"], gradients)
            parameters = tree_map(lambda p, m, v: p - RATE * (m / first) / (jax.numpy.sqrt(v / second) + SMALL),
                                  state["parameters"], means, squares)
            return {"parameters": parameters, "means": means, "squares": squares, "step": step}, value
        return run
    return program


# --- torch -------------------------------------------------------------------------------------------------------------


def torch_step(shape, half=False):
    def program(torch):
        functional = torch.nn.functional
        head = shape.width // shape.heads
        made = {}

        def flat(tree):
            if isinstance(tree, dict):
                return [leaf for key in sorted(tree) for leaf in flat(tree[key])]
            return [leaf for value in tree for leaf in flat(value)] if isinstance(tree, list) else [tree]

        def linear(x, layer):
            return x @ layer["w"] + layer["b"]

        def norm(x, layer):
            return functional.layer_norm(x, (shape.width,), layer["scale"], layer["shift"], 1e-5)

        def loss_of(parameters, tokens):
            given, expected = tokens[:, :-1].long(), tokens[:, 1:].long()
            x = functional.embedding(given, parameters["tokens"]) + parameters["places"]
            for block in parameters["blocks"]:
                qkv = linear(norm(x, block["norm1"]), block["qkv"]).view(shape.batch, shape.length, 3, shape.heads, head)
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + linear(mixed.transpose(1, 2).reshape(x.shape), block["out"])
                x = x + linear(functional.gelu(linear(norm(x, block["norm2"]), block["up"]), approximate="tanh"), block["down"])
            logits = norm(x, parameters["norm"]) @ parameters["tokens"].T
            return functional.cross_entropy(logits.float().flatten(0, 1), expected.flatten())

        def run(state, tokens):
            parameters = flat(state["parameters"])
            if not made:
                for value in parameters:
                    value.requires_grad_()
                made["adam"] = torch.optim.Adam(parameters, lr=RATE, betas=(DECAY, DECAY2), eps=SMALL, fused=True)
            with torch.enable_grad():
                with torch.autocast("cpu", torch.bfloat16, enabled=half):
                    loss = loss_of(state["parameters"], tokens)
                loss.backward()
            made["adam"].step()
            made["adam"].zero_grad()
            return state, loss.detach()
        return run
    return program


# --- mlx ---------------------------------------------------------------------------------------------------------------


def mlx_step(shape):
    def program(mx):
        head = shape.width // shape.heads

        def linear(x, layer):
            return x @ layer["w"] + layer["b"]

        def norm(x, layer):
            return mx.fast.layer_norm(x, layer["scale"], layer["shift"], 1e-5)

        def gelu(x):
            return 0.5 * x * (1.0 + mx.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

        def loss(parameters, tokens):
            given, expected = tokens[:, :-1], tokens[:, 1:]
            x = parameters["tokens"][given] + parameters["places"]
            for block in parameters["blocks"]:
                qkv = linear(norm(x, block["norm1"]), block["qkv"]).reshape(shape.batch, shape.length, 3, shape.heads, head)
                q, k, v = (qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
                mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=head**-0.5, mask="causal")
                x = x + linear(mixed.transpose(0, 2, 1, 3).reshape(x.shape), block["out"])
                x = x + linear(gelu(linear(norm(x, block["norm2"]), block["up"])), block["down"])
            logits = norm(x, parameters["norm"]) @ parameters["tokens"].T
            picked = mx.take_along_axis(logits, expected[..., None], axis=-1)[..., 0]
            return (mx.logsumexp(logits, axis=-1) - picked).mean()
        both = mx.value_and_grad(loss)

        def updated(p, m, v, g, first, second):
            if isinstance(p, dict):
                parts = {key: updated(p[key], m[key], v[key], g[key], first, second) for key in p}
                return tuple({key: part[i] for key, part in parts.items()} for i in range(3))
            if isinstance(p, list):
                parts = [updated(*four, first, second) for four in zip(p, m, v, g)]
                return tuple([part[i] for part in parts] for i in range(3))
            m, v = DECAY * m + (1 - DECAY) * g, DECAY2 * v + (1 - DECAY2) * g * g
            return p - RATE * (m / first) / (mx.sqrt(v / second) + SMALL), m, v

        def run(state, tokens):
            value, gradients = both(state["parameters"], tokens)
            step = state["step"] + 1
            parameters, means, squares = updated(state["parameters"], state["means"], state["squares"], gradients,
                                                 1 - DECAY**step, 1 - DECAY2**step)
            return {"parameters": parameters, "means": means, "squares": squares, "step": step}, value
        return run
    return program


def checked(outputs):
    """Only the loss of the first step. Adam's first update is the sign of each gradient, which rounding may flip."""
    return [outputs[1]]


def rows():
    f32 = dict(state=True, checked=checked, tolerance=1e-4)
    return [
        Row("GPT characters step f32", "4 layers, width 128, 4 heads, vocabulary 65, B12 T64, Adam", inputs_of(CHARACTERS),
            step_of(CHARACTERS), torch=torch_step(CHARACTERS), mlx=mlx_step(CHARACTERS), limit=("f32", CHARACTERS.operations),
            least={"jax": 1.3, "torch": 1.1}, **f32),
        Row("GPT-2 124M step f32", "12 layers, width 768, 12 heads, vocabulary 50257, B4 T64, Adam", inputs_of(GPT2),
            step_of(GPT2), torch=torch_step(GPT2), limit=("f32", GPT2.operations), least={"jax": 1.3, "torch": 1.1}, **f32),
        Row("GPT characters step bf16", "4 layers, width 128, vocabulary 65, B12 T64, Adam; products in bf16, sums f32",
            inputs_of(CHARACTERS), step_of(CHARACTERS, "bfloat16"), torch=torch_step(CHARACTERS, True),
            limit=("bf16", CHARACTERS.operations), least={"jax": 2.5}, state=True, checked=checked, tolerance=1e-2),
        Row("GPT-2 124M step bf16", "12 layers, width 768, vocabulary 50257, B4 T64, Adam; products in bf16, sums f32",
            inputs_of(GPT2), step_of(GPT2, "bfloat16"), torch=torch_step(GPT2, True), limit=("bf16", GPT2.operations),
            least={"jax": 2.5, "torch": 1.0}, state=True, checked=checked, tolerance=1e-2),
    ]
