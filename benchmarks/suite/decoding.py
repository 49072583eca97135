"""Decoding: tokens one by one from a model of 31 million parameters, with weights in float32, bfloat16 and bytes.

Each library gets the same weights and keeps keys and values in a cache that it updates in place; each token is read before the
next is started, as in a program that prints them. int8 weights have a scale for each output of a matrix.
"""

import numpy

from .row import Row

VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN = 8192, 512, 8, 8, 1536
CAPACITY, TOKENS, FIRST = 128, 16, 5
SHAPE = {"vocabulary": VOCABULARY, "width": WIDTH, "layers": ["attention+mlp"] * LAYERS, "heads": HEADS, "hidden": HIDDEN}
DIM = WIDTH // HEADS


def shapes():
    """The parameters, as returned by training.LanguageModel(**SHAPE).shapes()."""
    yield from (("embedding", (VOCABULARY, WIDTH)), ("norm.scale", (WIDTH,)))
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        yield from ((prefix + "mixer_norm.scale", (WIDTH,)), (prefix + "feed_norm.scale", (WIDTH,)),
                    (prefix + "attention.qkv.weight", (WIDTH, 3 * WIDTH)), (prefix + "attention.out.weight", (WIDTH, WIDTH)),
                    (prefix + "mlp.gate_up.weight", (WIDTH, 2 * HIDDEN)), (prefix + "mlp.down.weight", (HIDDEN, WIDTH)))


def stored(name, value, kind):
    """A parameter as stored: only matrices become bytes, with their scales."""
    if kind == "float32" or (kind == "int8" and value.ndim == 1):
        return {name: value}
    if kind == "bfloat16":
        import ml_dtypes
        return {name: value.astype(ml_dtypes.bfloat16)}
    axis = 1 if name == "embedding" else 0
    scale = numpy.abs(value).max(axis) / numpy.float32(127)
    return {name: numpy.round(value / numpy.expand_dims(scale, axis)).astype(numpy.int8), name + ".scale": scale}


def inputs_of(kind):
    def inputs(random):
        params = {}
        for name, shape in sorted(shapes()):
            value = (random.standard_normal(shape) / shape[-1] ** 0.5).astype(numpy.float32)
            params.update(stored(name, value + 1 if name.endswith("norm.scale") else value, kind))
        return (params,)
    return inputs


# --- capibara and jax --------------------------------------------------------------------------------------------------


def step_of(jax):
    """One token in plain jax: (params, token, cache of keys and values, position) -> (token, cache)."""
    jnp = jax.numpy

    def times(params, name, x, axis=0):
        weights = params[name]
        if weights.dtype != jnp.int8:
            return jnp.tensordot(x, weights, ((1,), (axis,)))
        return jnp.tensordot(x, weights.astype(x.dtype), ((1,), (axis,))) * params[name + ".scale"]

    def norm(params, name, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        scaled = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
        return scaled.astype(x.dtype) * params[name + ".scale"]

    def rotated(x, position):
        angle = position * 10000.0 ** (-jnp.arange(DIM // 2) / (DIM // 2))
        cosine, sine = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
        low, high = x[..., :DIM // 2], x[..., DIM // 2:]
        return jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], -1)

    def step(params, token, cache, position):
        x = params["embedding"][token][None]
        if x.dtype == jnp.int8:
            scale = params["embedding.scale"]
            x = x.astype(scale.dtype) * scale[token]
        seen = jnp.arange(CAPACITY) <= position
        after = []
        for layer, (keys, values) in enumerate(cache):
            prefix = f"layers.{layer}."
            joined = times(params, prefix + "attention.qkv.weight", norm(params, prefix + "mixer_norm", x))
            query, key, value = (part.reshape(HEADS, 1, DIM) for part in jnp.split(joined, 3, -1))
            keys = jax.lax.dynamic_update_slice(keys, rotated(key, position), (0, position, 0))
            values = jax.lax.dynamic_update_slice(values, value, (0, position, 0))
            after.append((keys, values))
            scores = jnp.einsum("hqd,hkd->hqk", rotated(query, position), keys) / DIM ** 0.5
            mixed = jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1), values)
            x = x + times(params, prefix + "attention.out.weight", mixed.reshape(1, WIDTH))
            gate, up = jnp.split(times(params, prefix + "mlp.gate_up.weight", norm(params, prefix + "feed_norm", x)), 2, -1)
            x = x + times(params, prefix + "mlp.down.weight", jax.nn.silu(gate) * up)
        logits = times(params, "embedding", norm(params, "norm", x), axis=1)
        return jnp.argmax(logits[0]).astype(jnp.int32), after

    return jax.jit(step, donate_argnums=(2,))


def as_codes(params):
    """The same bytes in training.convert_weights's names and layout: codes [outputs, inputs], scales [outputs, 1]."""
    coded = {}
    for name, value in params.items():
        if str(value.dtype) == "int8":
            coded[name + ".codes"] = value if name == "embedding" else value.T
            coded[name + ".scale"] = params[name + ".scale"][:, None]
        elif str(params.get(name.removesuffix(".scale"), value).dtype) != "int8":
            coded[name] = value
    return coded


def decode(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import training
        made = []

        def ours(params):
            if not made:
                made.append(training.Generator(training.LanguageModel(**SHAPE), as_codes(params), CAPACITY))
            return numpy.asarray(made[0].generate([FIRST], TOKENS), numpy.int32)

        return ours
    step, jnp = step_of(jax), jax.numpy

    def theirs(params):
        dtype = params["norm.scale"].dtype
        cache = [(jnp.zeros((HEADS, CAPACITY, DIM), dtype), jnp.zeros((HEADS, CAPACITY, DIM), dtype)) for _ in range(LAYERS)]
        token, found = jnp.int32(FIRST), []
        for position in range(TOKENS):
            token, cache = step(params, token, cache, jnp.int32(position))
            found.append(int(token))
        return numpy.asarray(found, numpy.int32)

    return theirs


# --- torch -------------------------------------------------------------------------------------------------------------


def decode_torch(torch):
    functional, arranged = torch.nn.functional, {}

    def arrange(params):
        """Matrices as [outputs, inputs], the layout of torch's linear layers."""
        for name, value in params.items():
            arranged[name] = value.T.contiguous() if value.ndim == 2 and name != "embedding" else value

    def times(name, x):
        weights = arranged[name]
        if weights.dtype == torch.int8:
            return torch._weight_int8pack_mm(x, weights, arranged[name + ".scale"])
        return functional.linear(x, weights)

    def rotated(x, cosine, sine):
        low, high = x[..., :DIM // 2], x[..., DIM // 2:]
        return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)

    def norm(name, x):
        return functional.rms_norm(x, (WIDTH,), arranged[name + ".scale"], 1e-5)

    def step(token, cache, position):
        x = arranged["embedding"][token][None]
        if x.dtype == torch.int8:
            x = x.float() * arranged["embedding.scale"][token]
        angle = position * 10000.0 ** (-torch.arange(DIM // 2) / (DIM // 2))
        cosine, sine = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
        for layer, (keys, values) in enumerate(cache):
            prefix = f"layers.{layer}."
            joined = times(prefix + "attention.qkv.weight", norm(prefix + "mixer_norm", x))
            query, key, value = (part.reshape(HEADS, 1, DIM) for part in joined.chunk(3, -1))
            keys[:, position:position + 1] = rotated(key, cosine, sine)
            values[:, position:position + 1] = value
            mixed = functional.scaled_dot_product_attention(
                rotated(query, cosine, sine)[None], keys[None, :, :position + 1], values[None, :, :position + 1])
            x = x + times(prefix + "attention.out.weight", mixed.reshape(1, WIDTH))
            gate, up = times(prefix + "mlp.gate_up.weight", norm(prefix + "feed_norm", x)).chunk(2, -1)
            x = x + times(prefix + "mlp.down.weight", functional.silu(gate) * up)
        return int(torch.argmax(times("embedding", norm("norm", x))))

    def run(params):
        if not arranged:
            arrange(params)
        dtype = arranged["norm.scale"].dtype
        cache = [(torch.zeros(HEADS, CAPACITY, DIM, dtype=dtype), torch.zeros(HEADS, CAPACITY, DIM, dtype=dtype)) for _ in range(LAYERS)]
        token, found = FIRST, []
        for position in range(TOKENS):
            token = step(token, cache, position)
            found.append(token)
        return numpy.asarray(found, numpy.int32)

    return run


# --- the truth ---------------------------------------------------------------------------------------------------------


def decode_truth(numpy):
    """The same in float64, without a preallocated cache: keys and values are lists that grow."""
    def rotated(x, position):
        angle = position * 10000.0 ** (-numpy.arange(DIM // 2) / (DIM // 2))
        low, high = x[..., :DIM // 2], x[..., DIM // 2:]
        return numpy.concatenate([low * numpy.cos(angle) - high * numpy.sin(angle), high * numpy.cos(angle) + low * numpy.sin(angle)], -1)

    def run(params):
        plain = {name: value.astype(numpy.float64) for name, value in params.items()}
        for name in [name for name in plain if name.endswith(("weight.scale", "embedding.scale"))]:
            plain[name[:-6]] *= plain[name][:, None] if name == "embedding.scale" else plain[name]

        def norm(name, x):
            return x / numpy.sqrt((x * x).mean() + 1e-5) * plain[name + ".scale"]

        token, found, cache = FIRST, [], [([], []) for _ in range(LAYERS)]
        for position in range(TOKENS):
            x = plain["embedding"][token]
            for layer, (keys, values) in enumerate(cache):
                prefix = f"layers.{layer}."
                query, key, value = (norm(prefix + "mixer_norm", x) @ plain[prefix + "attention.qkv.weight"]).reshape(3, HEADS, DIM)
                keys.append(rotated(key, position))
                values.append(value)
                scores = numpy.exp(numpy.einsum("hd,khd->hk", rotated(query, position), numpy.array(keys)) / DIM ** 0.5)
                mixed = numpy.einsum("hk,khd->hd", scores / scores.sum(-1, keepdims=True), numpy.array(values))
                x = x + mixed.reshape(WIDTH) @ plain[prefix + "attention.out.weight"]
                gate, up = numpy.split(norm(prefix + "feed_norm", x) @ plain[prefix + "mlp.gate_up.weight"], 2)
                x = x + (gate / (1 + numpy.exp(-gate)) * up) @ plain[prefix + "mlp.down.weight"]
            token = int((plain["embedding"] @ norm("norm", x)).argmax())
            found.append(token)
        return numpy.asarray(found, numpy.int32)

    return run


def rows():
    elements = sum(int(numpy.prod(shape)) for _, shape in shapes())
    # With random weights some logits are nearly equal, and rounding to bfloat16 picks different tokens in each library: not compared.
    return [Row(f"decode {kind}", f"{TOKENS} tokens, one at a time, {elements / 1e6:.0f} million parameters in {kind}",
                inputs_of(kind), decode, torch=decode_torch, eager=True, limit=("read", TOKENS * size * elements),
                least={"jax": 1.0, "torch": 1.0}, compared=kind != "bfloat16", exact=True, truth=decode_truth)
            for kind, size in (("float32", 4), ("bfloat16", 2), ("int8", 1))]
