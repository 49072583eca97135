"""The language model of capibara.training written again in plain jax, as the reference for its tests."""

import jax
import jax.numpy as jnp


def rms_norm(x, scale, epsilon):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale


def layer_norm(x, scale, bias, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + epsilon) * scale + bias


def norm(p, prefix, x, epsilon):
    if prefix + "bias" in p:
        return layer_norm(x, p[prefix + "scale"], p[prefix + "bias"], epsilon)
    return rms_norm(x, p[prefix + "scale"], epsilon)


def linear(p, prefix, x):
    return x @ p[prefix + "weight"] + p.get(prefix + "bias", 0.0)


def rotated(x, base):
    """[batch, length, heads, dim]: rotates pairs of an element of the first half with one of the second."""
    length, half = x.shape[1], x.shape[3] // 2
    angle = jnp.arange(length)[:, None] * base ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    low, high = x[..., :half], x[..., half:]
    return jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], -1)


def attention(p, prefix, x, heads, key_heads, rope_base):
    batch, length, _ = x.shape
    joined = linear(p, prefix + "qkv.", x)
    dim = joined.shape[2] // (heads + 2 * key_heads)
    joined = joined.reshape(batch, length, heads + 2 * key_heads, dim)
    query, key, value = jnp.split(joined, [heads, heads + key_heads], 2)
    if rope_base:
        query, key = rotated(query, rope_base), rotated(key, rope_base)
    key, value = (jnp.repeat(one, heads // key_heads, 2) for one in (key, value))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / dim**0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), value)
    return linear(p, prefix + "out.", mixed.reshape(batch, length, heads * dim))


def mamba(p, prefix, x, state):
    conv = p[prefix + "conv"]
    u, gate = jnp.split(linear(p, prefix + "in.", x), 2, -1)
    padded = jnp.pad(u, ((0, 0), (len(conv) - 1, 0), (0, 0)))
    u = jax.nn.silu(sum(padded[:, tap:tap + x.shape[1]] * conv[tap] for tap in range(len(conv))) + p[prefix + "conv_bias"])
    small = linear(p, prefix + "x.", u)
    rank = small.shape[-1] - 2 * state
    b, c = small[..., rank:rank + state], small[..., rank + state:]
    delta = jax.nn.softplus(linear(p, prefix + "dt.", small[..., :rank]) + p[prefix + "dt_bias"])
    decay = jnp.exp(delta[..., None] * -jnp.exp(p[prefix + "A_log"]))
    added = (delta * u)[..., None] * b[:, :, None, :]

    def step(h, now):
        decay, added, c = now
        h = decay * h + added
        return h, (h * c[:, None]).sum(-1)

    swapped = tuple(jnp.moveaxis(one, 1, 0) for one in (decay, added, c))
    y = jnp.moveaxis(jax.lax.scan(step, jnp.zeros_like(decay[:, 0]), swapped)[1], 0, 1)
    y = (y + p[prefix + "D"] * u) * jax.nn.silu(gate)
    return linear(p, prefix + "out.", y)


def experts(p, prefix, x, top_k):
    """Runs every expert on every token; the routing selects with weights of zero."""
    probabilities = jax.nn.softmax(x @ p[prefix + "router"], -1)
    count = probabilities.shape[-1]
    values, chosen = jax.lax.top_k(probabilities, top_k)
    weights = (jax.nn.one_hot(chosen, count) * (values / values.sum(-1, keepdims=True))[..., None]).sum(-2)
    hidden = jax.nn.silu(jnp.einsum("btw,ewh->bteh", x, p[prefix + "gate"])) * jnp.einsum("btw,ewh->bteh", x, p[prefix + "up"])
    output = jnp.einsum("bteh,ehw,bte->btw", hidden, p[prefix + "down"], weights)
    load = jax.nn.one_hot(chosen, count).sum((0, 1, 2)) / chosen.size
    return output, count * (load * probabilities.mean((0, 1))).sum()


def apply(p, tokens, config):
    x = p["embedding"][tokens]
    if config["positions"] == "learned":
        x = x + p["positions"][:tokens.shape[1]]
    total = 0.0
    rope_base = config["rope_base"] if config["positions"] == "rotary" else None
    for i, layer in enumerate(config["layers"]):
        mixer, _, feed = layer.partition("+")
        prefix = f"layers.{i}."
        normed = norm(p, prefix + "mixer_norm.", x, config["norm_epsilon"])
        if mixer == "attention":
            x = x + attention(p, prefix + "attention.", normed, config["heads"], config["key_heads"], rope_base)
        else:
            x = x + mamba(p, prefix + "mamba.", normed, config["state"])
        if not feed:
            continue
        normed = norm(p, prefix + "feed_norm.", x, config["norm_epsilon"])
        if feed == "moe":
            output, load = experts(p, prefix + "moe.", normed, config["experts_per_token"])
            x, total = x + output, total + load
        elif config["activation"] == "silu":
            gate, up = jnp.split(linear(p, prefix + "mlp.gate_up.", normed), 2, -1)
            x = x + linear(p, prefix + "mlp.down.", jax.nn.silu(gate) * up)
        else:
            x = x + linear(p, prefix + "mlp.down.", jax.nn.gelu(linear(p, prefix + "mlp.up.", normed), approximate=True))
    x = norm(p, "norm.", x, config["norm_epsilon"])
    return (x @ p["embedding"].T if config["tied"] else linear(p, "head.", x)), total


def loss(p, tokens, config):
    logits, load = apply(p, tokens[:, :-1], config)
    losses = jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return losses.mean() + config["load_weight"] * load
