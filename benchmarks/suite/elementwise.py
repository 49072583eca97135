"""Elementwise chains, activations, norms, softmax, losses and optimisers: bound by memory or by vector functions."""

import ml_dtypes
import numpy

from .contractions import normal
from .row import Row

N = 4096
BYTES = 4 * N * N


def gradients(function, pull_back):
    """The program that returns the gradients of sum(function(...) * cotangent) with respect to all but the last input."""
    def program(library):
        inner = function(library)

        def run(*inputs):
            *points, cotangent = inputs
            return pull_back(library, inner, points, cotangent)
        return run
    return program


def gradient(function):
    return gradients(function, lambda jax, inner, points, cotangent: jax.vjp(inner, *points)[1](cotangent))


def torch_gradient(function):
    """Only the backward pass: the first call builds the graph, which is kept. Our gradients and jax's also run only the parts of the
    forward pass that the backward pass needs."""
    def program(torch, prepare=lambda inner: inner):
        inner, graph = prepare(function(torch)), {}

        def run(*inputs):
            *points, cotangent = inputs
            if [id(point) for point in points] != graph.get("of"):
                with torch.enable_grad():
                    graph["points"] = [point.detach().requires_grad_() for point in points]
                    graph["output"] = inner(*graph["points"])
                graph["of"] = [id(point) for point in points]
            return torch.autograd.grad(graph["output"], graph["points"], cotangent, retain_graph=True)
        return run
    program.compiles_inside = True
    return program


def mlx_gradient(function):
    return gradients(function, lambda mx, inner, points, cotangent: mx.vjp(inner, points, [cotangent])[1])


def same(name, what, forward, least, backward=None, shapes=((N, N),), moved=2 * BYTES, moved_back=3 * BYTES, dtype=numpy.float32,
         suffix="", tolerance=1e-5, peers=("torch", "mlx", "numpy"), **options):
    """Rows of a function, and of its gradients if `backward` gives their targets."""
    makers = {peer: forward.get(peer) for peer in peers}
    found = [Row(name + suffix, what, normal(*shapes, dtype=dtype), forward["jax"], limit=("copy", moved), least=least,
                 tolerance=tolerance, **makers, **options)]
    if backward is not None:
        found.append(Row(f"{name}{suffix} backward", f"gradients of {what}", normal(*shapes, shapes[0], dtype=dtype),
                         gradient(forward["jax"]), limit=("copy", moved_back), least=backward, tolerance=tolerance,
                         torch=torch_gradient(forward["torch"]) if "torch" in forward else None,
                         mlx=mlx_gradient(forward["mlx"]) if "mlx" in forward and "mlx" in peers else None, **options))
    return found


def chain(library):
    return lambda x, y: (x * 2.0 + y) * x - abs(y) * 0.5 + (x - y) * (x + 1.0)


def layer_norm(jax):
    def run(x, scale, shift):
        mean = x.mean(-1, keepdims=True)
        spread = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale + shift
    return run


def layer_norm_numpy(numpy):
    def run(x, scale, shift):
        mean = x.mean(-1, keepdims=True)
        centred = x - mean
        spread = (centred * centred).mean(-1, keepdims=True)
        return centred / numpy.sqrt(spread + 1e-5) * scale + shift
    return run


def softmax_numpy(numpy):
    def run(x):
        shifted = numpy.exp(x - x.max(-1, keepdims=True))
        return shifted / shifted.sum(-1, keepdims=True)
    return run


def gelu_tanh(xp, tanh):
    return lambda x: 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def swiglu(sigmoid):
    return lambda x, gate: x * gate * sigmoid(gate)


def cross_entropy(jax):
    def loss(logits, labels):
        picked = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -picked.mean()
    return jax.value_and_grad(loss)


def cross_entropy_torch(torch):
    def run(logits, labels):
        with torch.enable_grad():
            logits = logits.detach().requires_grad_()
            loss = torch.nn.functional.cross_entropy(logits, labels.long())
            return loss.detach(), torch.autograd.grad(loss, logits)[0]
    return run


def cross_entropy_mlx(mx):
    def loss(logits, labels):
        picked = mx.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        return (mx.logsumexp(logits, axis=1) - picked).mean()
    return mx.value_and_grad(loss)


def dropout(jax):
    def run(key, x):
        kept = jax.random.bernoulli(key, 0.9, x.shape)
        return jax.numpy.where(kept, x / 0.9, 0.0)
    return run


def gelu_dropout(jax):
    def run(key, x):
        kept = jax.random.bernoulli(key, 0.9, x.shape)
        return jax.numpy.where(kept, jax.nn.gelu(x) / 0.9, 0.0)
    return run


def with_key(random):
    return numpy.array([7, 11], numpy.uint32), random.standard_normal((N, N)).astype(numpy.float32)


# --- Adam --------------------------------------------------------------------------------------------------------------

RATE, DECAY, DECAY2, SMALL = 1e-3, 0.9, 0.999, 1e-8


def adam_state(shapes):
    def inputs(random):
        def arrays(scale):
            return [(scale * random.standard_normal(shape)).astype(numpy.float32) for shape in shapes]
        squares = [value * value for value in arrays(0.01)]
        state = {"parameters": arrays(1.0), "means": arrays(0.01), "squares": squares, "step": numpy.float32(3)}
        return state, arrays(0.1)
    return inputs


def adam(jax):
    def run(state, gradients):
        step = state["step"] + 1
        first, second = 1 - DECAY**step, 1 - DECAY2**step
        means = [DECAY * m + (1 - DECAY) * g for m, g in zip(state["means"], gradients)]
        squares = [DECAY2 * v + (1 - DECAY2) * g * g for v, g in zip(state["squares"], gradients)]
        parameters = [p - RATE * (m / first) / (jax.numpy.sqrt(v / second) + SMALL)
                      for p, m, v in zip(state["parameters"], means, squares)]
        return {"parameters": parameters, "means": means, "squares": squares, "step": step}, None
    return run


def adam_torch(torch):
    made = {}

    def run(state, gradients):
        if not made:
            from torch.optim.adam import adam as update
            made["update"] = update
            made["steps"] = [torch.tensor(float(state["step"])) for _ in gradients]
        made["update"](state["parameters"], gradients, state["means"], state["squares"], [], made["steps"], fused=True,
                       amsgrad=False, beta1=DECAY, beta2=DECAY2, lr=RATE, weight_decay=0.0, eps=SMALL, maximize=False)
        return dict(state, step=made["steps"][0]), None
    return run


def adam_mlx(mx):
    def run(state, gradients):
        step = state["step"] + 1
        first, second = 1 - DECAY**step, 1 - DECAY2**step
        means = [DECAY * m + (1 - DECAY) * g for m, g in zip(state["means"], gradients)]
        squares = [DECAY2 * v + (1 - DECAY2) * g * g for v, g in zip(state["squares"], gradients)]
        parameters = [p - RATE * (m / first) / (mx.sqrt(v / second) + SMALL)
                      for p, m, v in zip(state["parameters"], means, squares)]
        return {"parameters": parameters, "means": means, "squares": squares, "step": step}, []
    return run


def adam_row(name, what, shapes):
    count = sum(int(numpy.prod(shape)) for shape in shapes)
    return Row(name, what, adam_state(shapes), adam, torch=adam_torch, mlx=adam_mlx, state=True, limit=("copy", 7 * 4 * count),
               least={"jax": 2, "torch": 1.0}, tolerance=1e-5, checked=lambda outputs: outputs[0]["parameters"])


def rows():
    found = same("elementwise chain", "(x*2+y)*x - |y|/2 + (x-y)*(x+1), 4096x4096 f32", dict.fromkeys(
        ("jax", "torch", "mlx", "numpy"), chain), {"limit": 0.60, "jax": 1.0, "torch": 1.0},
        {"limit": 0.60, "jax": 1.0, "torch": 1.0}, shapes=((N, N), (N, N)), moved=3 * BYTES, moved_back=5 * BYTES, torch_compile=True, mlx_compile=True)
    found += same("exp", "exp, 4096x4096 f32", {
        "jax": lambda jax: jax.numpy.exp, "torch": lambda torch: torch.exp, "mlx": lambda mx: mx.exp,
        "numpy": lambda numpy: numpy.exp}, {"jax": 1.0, "torch": 1.0})
    found += same("softmax", "softmax of rows, 4096x4096 f32", {
        "jax": lambda jax: jax.nn.softmax, "torch": lambda torch: lambda x: torch.softmax(x, -1),
        "mlx": lambda mx: lambda x: mx.softmax(x, axis=-1), "numpy": softmax_numpy},
        {"jax": 2, "torch": 1.0, "of exp": 1.4}, {"jax": 2, "torch": 1.0}, torch_compile=True, mlx_compile=True)
    found += same("layernorm", "layer norm with scale and shift, 4096x4096 f32", {
        "jax": layer_norm,
        "torch": lambda torch: lambda x, scale, shift: torch.nn.functional.layer_norm(x, (N,), scale, shift, 1e-5),
        "mlx": lambda mx: lambda x, scale, shift: mx.fast.layer_norm(x, scale, shift, 1e-5), "numpy": layer_norm_numpy},
        {"limit": 0.60, "jax": 1.5, "torch": 1.2}, {"limit": 0.60, "jax": 1.5, "torch": 1.2}, shapes=((N, N), (N,), (N,)),
        torch_compile=True, mlx_compile=True)
    found += same("gelu", "gelu by tanh, 4096x4096 f32", {
        "jax": lambda jax: jax.nn.gelu, "torch": lambda torch: lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "mlx": lambda mx: gelu_tanh(mx, mx.tanh), "numpy": lambda numpy: gelu_tanh(numpy, numpy.tanh)},
        {"jax": 2, "torch": 1.0}, {"jax": 2, "torch": 1.0}, torch_compile=True, mlx_compile=True)
    found += same("gelu exact", "gelu by erf, 4096x4096 f32", {
        "jax": lambda jax: lambda x: jax.nn.gelu(x, approximate=False), "torch": lambda torch: torch.nn.functional.gelu,
        "mlx": lambda mx: lambda x: 0.5 * x * (1 + mx.erf(x * 0.7071067811865476))}, {"jax": 2, "torch": 1.0},
        peers=("torch", "mlx"))
    found += same("swiglu", "x * silu(gate), 4096x4096 f32", {
        "jax": lambda jax: swiglu(jax.nn.sigmoid), "torch": lambda torch: lambda x, gate: x * torch.nn.functional.silu(gate),
        "mlx": lambda mx: swiglu(mx.sigmoid)}, {"jax": 1.5, "torch": 1.2}, {"jax": 1.5, "torch": 1.2},
        shapes=((N, N), (N, N)), moved=3 * BYTES, moved_back=5 * BYTES, peers=("torch", "mlx"))
    half = dict(dtype=ml_dtypes.bfloat16, suffix=" bf16", tolerance=1e-2, peers=("torch", "mlx"), moved=BYTES)
    found += same("gelu", "gelu by tanh, 4096x4096 bf16", {
        "jax": lambda jax: jax.nn.gelu, "torch": lambda torch: lambda x: torch.nn.functional.gelu(x, approximate="tanh")},
        {"jax": 2, "torch": 1.0}, **half)
    found += same("softmax", "softmax of rows, 4096x4096 bf16", {
        "jax": lambda jax: jax.nn.softmax, "torch": lambda torch: lambda x: torch.softmax(x, -1),
        "mlx": lambda mx: lambda x: mx.softmax(x, axis=-1)}, {"jax": 2, "torch": 1.0}, **half)
    found += same("swiglu", "x * silu(gate), 4096x4096 bf16", {
        "jax": lambda jax: swiglu(jax.nn.sigmoid), "torch": lambda torch: lambda x, gate: x * torch.nn.functional.silu(gate),
        "mlx": lambda mx: swiglu(mx.sigmoid)}, {"jax": 1.5, "torch": 1.2}, shapes=((N, N), (N, N)),
        **dict(half, moved=3 * BYTES // 2))
    labels = lambda random: (random.standard_normal((1024, 50257)).astype(numpy.float32),
                             random.integers(0, 50257, 1024).astype(numpy.int32))
    found.append(Row("cross-entropy", "loss and gradient, 1024 rows of 50257 f32", labels, cross_entropy,
                     torch=cross_entropy_torch, mlx=cross_entropy_mlx, limit=("copy", 2 * 4 * 1024 * 50257),
                     least={"jax": 2, "torch": 1.0}, tolerance=1e-5))
    found.append(Row("dropout", "rate 0.1, 4096x4096 f32, threefry", with_key, dropout,
                     torch=lambda torch: lambda key, x: torch.nn.functional.dropout(x, 0.1), limit=("copy", 2 * BYTES),
                     least={"jax": 2, "torch": 1.0}, widen=False, unlike=("torch",)))
    found.append(Row("gelu + dropout", "rate 0.1, 4096x4096 f32, threefry", with_key, gelu_dropout,
                     torch=lambda torch: lambda key, x: torch.nn.functional.dropout(
                         torch.nn.functional.gelu(x, approximate="tanh"), 0.1), limit=("copy", 2 * BYTES),
                     least={"jax": 2, "torch": 1.0}, widen=False, unlike=("torch",), tolerance=1e-5))
    found.append(adam_row("Adam 50 M", "one tensor of 50 M f32", [(50_000_000,)]))
    found.append(adam_row("Adam many tensors", "148 tensors of a transformer of width 768, 12 layers, f32",
                          [(768, 2304), (768, 768), (768, 3072), (3072, 768), (2304,), (768,), (3072,), (768,), (768,), (768,),
                           (768,), (768,)] * 12))
    return found
