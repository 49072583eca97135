"""What PyTorch runs for the rows of benchmarks/gpu/kernels.py for which it has its own operations, and the limits of the machine."""

import statistics
import time


def timed(torch, calls, call, rounds=9):
    """Seconds of one of many calls in flight, for several rounds."""
    call()
    torch.cuda.synchronize()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / calls)
    return found


def limits(torch):
    """Bytes per second of a copy, operations per second of a matmul."""
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    y = torch.empty_like(x)
    copy = 2 * x.numel() / statistics.median(timed(torch, 20, lambda: y.copy_(x)))
    a, b = (torch.randn(8192, 8192, device="cuda").bfloat16() for _ in range(2))
    return copy, 2 * 8192**3 / statistics.median(timed(torch, 20, lambda: a @ b))


def forward_or_both(torch, function, inputs, gradient):
    if not gradient:
        return torch.no_grad()(function)
    dy = torch.randn_like(function())
    return lambda: torch.autograd.grad(function(), inputs, dy)


def row_call(torch, name, rows, columns, dtype, gradient):
    """Functions of rows: norms, softmax, cross-entropy, gelu with dropout."""
    functional, dtype = torch.nn.functional, getattr(torch, dtype)
    own = [torch.randn(columns, device="cuda", dtype=dtype, requires_grad=True) for _ in range(2)]
    labels = torch.randint(columns, (rows,), device="cuda")
    x = torch.randn(rows, columns, device="cuda").to(dtype).requires_grad_()
    function = {"layer_norm": lambda: functional.layer_norm(x, (columns,), *own),
                "rms_norm": lambda: functional.rms_norm(x, (columns,), own[0], 1e-6),
                "softmax": lambda: torch.softmax(x, -1),
                "cross_entropy": lambda: functional.cross_entropy(x, labels, reduction="none"),
                "gelu_dropout": lambda: functional.dropout(functional.gelu(x, approximate="tanh"), 0.1)}[name]
    return forward_or_both(torch, function, [x, *own[:{"layer_norm": 2, "rms_norm": 1}.get(name, 0)]], gradient)


def adam_call(torch, count, rows, columns):
    parameters = [torch.randn(rows, columns, device="cuda", requires_grad=True) for _ in range(count)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    return torch.optim.Adam(parameters, fused=True).step


def attention_call(torch, case, gradient):
    """scaled_dot_product_attention, with the kernel that PyTorch chooses."""
    attend, size = torch.nn.functional.scaled_dot_product_attention, case.length
    draw = lambda heads, length: torch.randn(case.batch, heads, length, case.dim, device="cuda").bfloat16().requires_grad_()
    q, k, v = draw(case.heads, case.queries or size), draw(case.groups, size), draw(case.groups, size)
    options, inputs = {"enable_gqa": case.groups != case.heads}, [q, k, v]
    causal = torch.ones(size, size, device="cuda", dtype=bool).tril()
    if case.extra == "mask":
        options["attn_mask"] = torch.rand(case.batch, 1, size, size, device="cuda") < 0.875
    elif case.extra == "segments":
        ids = torch.arange(size, device="cuda") // 1024
        options["attn_mask"] = causal & (ids[:, None] == ids)
    elif case.extra == "bias":
        bias = torch.randn(1, case.heads, size, size, device="cuda").bfloat16()
        options["attn_mask"] = bias.masked_fill_(~causal, float("-inf")).requires_grad_()
        inputs.append(options["attn_mask"])
    else:
        options.update(is_causal=case.causal, dropout_p=0.1 if case.extra == "dropout" else 0)
    return forward_or_both(torch, lambda: attend(q, k, v, **options), inputs, gradient)


def sparse_call(torch, heads, length, dim, share, gradient):
    """flex_attention, compiled, over blocks of 128, the smallest it supports."""
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

    kept = torch.rand(1, heads, length // 128, length // 128, device="cuda") < share / 100
    count, order = kept.sum(-1).int(), torch.argsort(kept.int(), dim=-1, descending=True, stable=True).int()
    blocks = BlockMask.from_kv_blocks(torch.zeros_like(count), torch.zeros_like(order), count, order, BLOCK_SIZE=128)
    q, k, v = (torch.randn(1, heads, length, dim, device="cuda").bfloat16().requires_grad_() for _ in range(3))
    attend = torch.compile(flex_attention)
    return forward_or_both(torch, lambda: attend(q, k, v, block_mask=blocks), [q, k, v], gradient)


def code_call(torch, count, codes, dim):
    x, codebook = (torch.randn(n, dim, device="cuda").bfloat16() for n in (count, codes))
    half = 0.5 * codebook.float().square().sum(-1)
    return lambda: ((x @ codebook.T).float() - half).argmax(-1)


def routing_of(torch, logits, choices):
    experts = logits.shape[1]
    values, chosen = logits.topk(choices)
    sizes = torch.bincount(chosen.reshape(-1), minlength=experts)
    loss = experts * (sizes / chosen.numel() * logits.softmax(-1).mean(0)).sum()
    order = chosen.T.reshape(-1).argsort(stable=True)
    order = order % len(logits) * choices + order // len(logits)
    return values.softmax(-1), order, order.argsort(), sizes, loss


def routing_call(torch, tokens, experts, choices, units):
    logits = torch.randn(tokens, experts, device="cuda")
    return lambda: [routing_of(torch, logits, choices) for _ in range(units)]


def expert_call(torch, tokens, features, hidden, experts, choices, gradient):
    """Rows by expert, and PyTorch's grouped matmul."""
    grouped = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    draw = lambda *shape: (torch.randn(*shape, device="cuda") * shape[-2] ** -0.5).bfloat16().requires_grad_()
    x, gate, up, down = draw(tokens, features), draw(features, experts), draw(experts, features, hidden), draw(experts, hidden, features)

    def layer():
        weights, order, inverse, sizes, _ = routing_of(torch, (x @ gate).float(), choices)
        ends = sizes.cumsum(0).int()
        rows = grouped(torch.nn.functional.silu(grouped(x[order // choices], up, offs=ends)), down, offs=ends)
        return (rows[inverse].reshape(tokens, choices, features) * weights[..., None]).sum(1).bfloat16()
    return forward_or_both(torch, layer, [x, up, down], gradient)
