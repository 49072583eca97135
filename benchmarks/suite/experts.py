"""Mixtures of experts: a gated feed-forward layer, and the routing alone. jax multiplies with ragged_dot, torch expert by expert."""

import ml_dtypes
import numpy

from .row import Row

TOKENS, FEATURES, HIDDEN, EXPERTS, CHOICES = 512, 512, 1024, 32, 4


def layer_inputs(dtype):
    def inputs(random):
        def weights(*shape):
            return (random.standard_normal(shape) / numpy.sqrt(shape[-2])).astype(dtype)
        return (random.standard_normal((TOKENS, FEATURES)).astype(dtype), weights(FEATURES, EXPERTS),
                weights(EXPERTS, FEATURES, HIDDEN), weights(EXPERTS, FEATURES, HIDDEN), weights(EXPERTS, HIDDEN, FEATURES))
    return inputs


def layer(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import kernels

        def fused(tokens, gate, gated, up, down):
            return kernels.moe_feed_forward(tokens, gate, up, down, CHOICES, gate_weights=gated).output
        return fused
    jnp = jax.numpy

    def ragged(tokens, gate, gated, up, down):
        values, experts = jax.lax.top_k(jnp.dot(tokens, gate, preferred_element_type=jnp.promote_types(tokens.dtype, "float32")), CHOICES)
        weights = jax.nn.softmax(values)
        order = jnp.argsort(experts.reshape(-1))
        rows, sizes = tokens[order // CHOICES], jnp.bincount(experts.reshape(-1), length=EXPERTS).astype(jnp.int32)
        hidden = jax.nn.silu(jax.lax.ragged_dot(rows, gated, sizes)) * jax.lax.ragged_dot(rows, up, sizes)
        out = jax.lax.ragged_dot(hidden, down, sizes) * weights.reshape(-1)[order][:, None]
        return jnp.zeros(tokens.shape, out.dtype).at[order // CHOICES].add(out).astype(tokens.dtype)
    return ragged


def layer_truth(numpy):
    """Expert by expert: jax's ragged_dot, in float64, would take minutes."""
    def run(tokens, gate, gated, up, down):
        logits = tokens @ gate
        chosen = numpy.argsort(-logits, 1, kind="stable")[:, :CHOICES]
        values = numpy.take_along_axis(logits, chosen, 1)
        weights = numpy.exp(values - values.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        out = numpy.zeros_like(tokens)
        for expert in range(EXPERTS):
            token, choice = numpy.nonzero(chosen == expert)
            before = tokens[token] @ gated[expert]
            hidden = before / (1 + numpy.exp(-before)) * (tokens[token] @ up[expert])
            numpy.add.at(out, token, hidden @ down[expert] * weights[token, choice, None])
        return out
    return run


def torch_layer(torch):
    """As in the transformers package: the tokens of each expert are taken, multiplied and added back."""
    functional = torch.nn.functional

    def loop(tokens, gate, gated, up, down):
        weights, chosen = torch.topk(torch.softmax((tokens @ gate).float(), 1), CHOICES, 1)
        weights = (weights / weights.sum(1, keepdim=True)).to(tokens.dtype)
        out = torch.zeros_like(tokens)
        masks = functional.one_hot(chosen, EXPERTS).permute(2, 1, 0)
        for expert in range(EXPERTS):
            choice, token = torch.where(masks[expert])
            rows = tokens[token]
            hidden = functional.silu(rows @ gated[expert]) * (rows @ up[expert])
            out.index_add_(0, token, (hidden @ down[expert]) * weights[token, choice, None])
        return out
    return loop


def routing(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import kernels

        def fused(logits):
            found = kernels.moe_routing_kernel(logits, EXPERTS, CHOICES)
            return found.weights, found.experts, found.group_sizes, found.aux_loss, found.inverse, found.permutation
        return fused
    jnp = jax.numpy

    def composed(logits):
        values, experts = jax.lax.top_k(logits, CHOICES)
        sizes = jnp.bincount(experts.reshape(-1), length=EXPERTS)
        loss = EXPERTS * (sizes / experts.size * jax.nn.softmax(logits).mean(0)).sum()
        order = jnp.argsort(experts.reshape(-1), stable=True)
        return jax.nn.softmax(values), experts, sizes, loss, jnp.argsort(order), order
    return composed


def torch_routing(torch):
    def composed(logits):
        shares = torch.softmax(logits, 1)
        weights, experts = torch.topk(shares, CHOICES, 1)
        flat = experts.reshape(-1)
        sizes = torch.bincount(flat, minlength=EXPERTS)
        loss = EXPERTS * (sizes / flat.numel() * shares.mean(0)).sum()
        order = torch.argsort(flat, stable=True)
        return weights / weights.sum(1, keepdim=True), experts, sizes, loss, torch.argsort(order), order
    return composed


def rows():
    operations = 6 * TOKENS * CHOICES * FEATURES * HIDDEN
    shape = f"{TOKENS} tokens, {EXPERTS} experts, top {CHOICES}, {FEATURES} features, {HIDDEN} hidden, gated"
    return [
        Row("MoE layer f32", f"{shape}, f32", layer_inputs(numpy.float32), layer, torch=torch_layer, limit=("f32", operations),
            least={"jax": 6, "torch": 2, "memory": 0.2}, truth=layer_truth, memory=True),
        Row("MoE layer bf16", f"{shape}, bf16", layer_inputs(ml_dtypes.bfloat16), layer, torch=torch_layer,
            limit=("bf16", operations), least={"jax": 6, "torch": 2, "memory": 0.2}, truth=layer_truth, tolerance=3e-2, memory=True),
        # The order of copies within an expert differs between libraries and is not compared.
        Row("MoE routing 8192x32 top 4", "(8192,32) f32 to weights, experts, order, sizes and loss",
            lambda random: (random.standard_normal((8192, EXPERTS)).astype(numpy.float32),), routing, torch=torch_routing,
            least={"jax": 8}, checked=lambda outputs: outputs[:4], memory=True),
    ]
