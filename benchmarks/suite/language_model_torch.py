"""The demo's training step in plain torch: the scan of Mamba is a loop over the tokens, experts run on every token."""


def attention(torch, p, prefix, x, heads=4):
    batch, length, width = x.shape
    query, key, value = (part.reshape(batch, length, heads, -1).transpose(1, 2) for part in (x @ p[prefix + "qkv.weight"]).chunk(3, -1))
    half = width // heads // 2
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    cosine, sine = torch.cos(angle), torch.sin(angle)

    def rotated(rows):
        low, high = rows[..., :half], rows[..., half:]
        return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)

    mixed = torch.nn.functional.scaled_dot_product_attention(rotated(query), rotated(key), value, is_causal=True)
    return mixed.transpose(1, 2).reshape(batch, length, width) @ p[prefix + "out.weight"]


def mamba(torch, p, prefix, x, state=16):
    functional, conv = torch.nn.functional, p[prefix + "conv"]
    u, gate = (x @ p[prefix + "in.weight"]).chunk(2, -1)
    inner, taps = u.shape[-1], len(conv)
    padded = functional.pad(u.transpose(1, 2), (taps - 1, 0))
    u = functional.silu(functional.conv1d(padded, conv.T[:, None], p[prefix + "conv_bias"], groups=inner).transpose(1, 2))
    small = u @ p[prefix + "x.weight"]
    rank = small.shape[-1] - 2 * state
    rates, b, c = small.split([rank, state, state], -1)
    delta = functional.softplus(rates @ p[prefix + "dt.weight"] + p[prefix + "dt_bias"])
    decay = torch.exp(delta[..., None] * -torch.exp(p[prefix + "A_log"]))
    added = (delta * u)[..., None] * b[:, :, None]
    held, states = torch.zeros_like(decay[:, 0]), []
    for step, more in zip(decay.unbind(1), added.unbind(1)):
        held = step * held + more
        states.append(held)
    y = (torch.stack(states, 1) * c[:, :, None]).sum(-1)
    return ((y + p[prefix + "D"] * u) * functional.silu(gate)) @ p[prefix + "out.weight"]


def experts(torch, p, prefix, x, top_k=2):
    functional = torch.nn.functional
    probabilities = torch.softmax(x @ p[prefix + "router"], -1)
    count = probabilities.shape[-1]
    values, chosen = probabilities.topk(top_k, -1)
    ones = functional.one_hot(chosen, count).to(x.dtype)
    weights = (ones * (values / values.sum(-1, keepdim=True))[..., None]).sum(-2)
    hidden = functional.silu(torch.einsum("btw,ewh->bteh", x, p[prefix + "gate"])) * torch.einsum("btw,ewh->bteh", x, p[prefix + "up"])
    output = torch.einsum("bteh,ehw->btew", hidden, p[prefix + "down"])
    load = ones.sum((0, 1, 2)) / chosen.numel()
    return (output * weights[..., None]).sum(-2), count * (load * probabilities.mean((0, 1))).sum()


def loss(torch, p, tokens, layers):
    functional = torch.nn.functional

    def norm(name, x):
        return functional.rms_norm(x, x.shape[-1:], p[name + ".scale"], 1e-5)

    inputs, labels = tokens[:, :-1], tokens[:, 1:].long()
    x, total = p["embedding"][inputs], 0.0
    for number, layer in enumerate(layers):
        prefix = f"layers.{number}."
        mixer, feed = layer.split("+")
        normed = norm(prefix + "mixer_norm", x)
        x = x + (attention(torch, p, prefix + "attention.", normed) if mixer == "attention" else mamba(torch, p, prefix + "mamba.", normed))
        normed = norm(prefix + "feed_norm", x)
        if feed == "moe":
            output, load = experts(torch, p, prefix + "moe.", normed)
            x, total = x + output, total + load
        else:
            gate, up = (normed @ p[prefix + "mlp.gate_up.weight"]).chunk(2, -1)
            x = x + (functional.silu(gate) * up) @ p[prefix + "mlp.down.weight"]
    logits = norm("norm", x) @ p["embedding"].T
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) + 0.01 * total


def step_of(layers, rate, b1, b2, epsilon, decay):
    """Makes a step (state, tokens) -> (state, loss), with AdamW written out as for the other libraries."""
    def maker(torch):
        def run(state, tokens):
            params = {name: value.requires_grad_() for name, value in state["params"].items()}
            with torch.enable_grad():
                value = loss(torch, params, tokens, layers)
                gradients = torch.autograd.grad(value, list(params.values()))
            for (name, param), gradient in zip(params.items(), gradients):
                mean, square = state["means"][name], state["squares"][name]
                mean.mul_(b1).add_(gradient, alpha=1 - b1)
                square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
                moved = mean / (1 - b1) / ((square / (1 - b2)).sqrt_() + epsilon)
                param.detach().sub_(rate * (moved + decay * param.detach()))
            return state, value.detach()
        return run
    return maker
