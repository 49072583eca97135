"""What PyTorch runs for the rows of benchmarks/gpu/kernels.py that it has an operation of its own for, and the limits of the machine."""

import re
import statistics
import time


def timed(torch, calls, call):
    """Seconds of one of many calls in flight: the median of nine rounds."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / calls)
    return statistics.median(rounds)


def limits(torch):
    """Bytes each second of a copy, operations each second of a matmul."""
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    y = torch.empty_like(x)
    copy = 2 * x.numel() / timed(torch, 20, lambda: y.copy_(x))
    a, b = (torch.randn(8192, 8192, device="cuda").bfloat16() for _ in range(2))
    return copy, 2 * 8192**3 / timed(torch, 20, lambda: a @ b)


def of_rows(torch, name):
    functional = torch.nn.functional
    found = re.match(r"(\w+) (\d+)x(\d+) (bf16|f32)( with gradient)?$", name)
    if not found:
        return None
    rows, columns, dtype = int(found[2]), int(found[3]), torch.bfloat16 if found[4] == "bf16" else torch.float32
    own = [torch.randn(columns, device="cuda", dtype=dtype, requires_grad=True) for _ in range(2)]
    labels = torch.randint(columns, (rows,), device="cuda")
    functions = {"layer_norm": lambda x: functional.layer_norm(x, (columns,), *own),
                 "rms_norm": lambda x: functional.rms_norm(x, (columns,), own[0], 1e-6),
                 "softmax": lambda x: torch.softmax(x, -1),
                 "cross_entropy": lambda x: functional.cross_entropy(x, labels, reduction="none"),
                 "gelu_dropout": lambda x: functional.dropout(functional.gelu(x, approximate="tanh"), 0.1)}
    if found[1] not in functions:
        return None
    x, function = torch.randn(rows, columns, device="cuda").to(dtype).requires_grad_(), functions[found[1]]
    if not found[5]:
        return torch.no_grad()(lambda: function(x))
    dy, wanted = torch.randn_like(function(x)), [x, *own[:{"layer_norm": 2, "rms_norm": 1}.get(found[1], 0)]]

    def both():
        y = function(x)
        return torch.autograd.grad(y, wanted, dy)
    return both


def of_adam(torch, name):
    found = re.match(r"adam_update (\d+) x (\d+)x(\d+) f32", name)
    if not found:
        return None
    count, rows, columns = map(int, found.groups())
    parameters = [torch.randn(rows, columns, device="cuda", requires_grad=True) for _ in range(count)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    return torch.optim.Adam(parameters, fused=True).step


def call_for(torch, name):
    return of_rows(torch, name) or of_adam(torch, name)
