"""Fused norms, softmax, cross-entropy, GELU with dropout, SwiGLU and Adam, forward and backward, with capibara.kernels.

The peers run their equivalents: jax its own functions and compositions, compiled; PyTorch its own operations.
"""

import ml_dtypes
import numpy

from .contractions import normal
from .elementwise import N, RATE, DECAY, DECAY2, SMALL, adam, adam_state, adam_torch, layer_norm, swiglu, torch_gradient
from .row import Row


def fused(name, otherwise):
    """The program that calls capibara's kernel of this name; the peer, which lacks that module, runs the other one."""
    def program(jax):
        if jax.__name__ != "capibara.jax":
            return otherwise(jax)
        from capibara import kernels
        return getattr(kernels, name)
    return program


def backward(function):
    """Only the backward pass: the first call runs the compiled forward pass and keeps its residuals, as torch keeps its graph."""
    def program(jax):
        inner, kept = jax.jit(function(jax)), {}
        pull_back = jax.jit(lambda pull, cotangent: pull(cotangent))

        def run(*inputs):
            *points, cotangent = inputs
            if [id(point) for point in points] != kept.get("of"):
                kept.update(pull=jax.vjp(inner, *points)[1], of=[id(point) for point in points])
            return pull_back(kept["pull"], cotangent)
        return run
    return program


def rms_norm(jax):
    return lambda x, scale: x * jax.lax.rsqrt((x.astype("float32") ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype) * scale


def pair(name, what, program, torch, shapes, limits, dtype=numpy.float32, suffix="", tolerance=1e-5):
    """The rows of a function and of its gradients; `limits` says how many arrays of the first operand's size each moves."""
    size = int(numpy.prod(shapes[0])) * numpy.dtype(dtype).itemsize
    least = {"jax": 1.5, "torch": 1.2}
    return [
        Row(f"fused {name}{suffix}", what, normal(*shapes, dtype=dtype), program, torch=torch, limit=("copy", limits[0] * size),
            least=least, tolerance=tolerance, memory=True),
        Row(f"fused {name}{suffix} backward", f"gradients of {what}", normal(*shapes, shapes[0], dtype=dtype), backward(program),
            torch=torch_gradient(torch), limit=("copy", limits[1] * size), least=least, tolerance=tolerance, eager=True),
    ]


def cross_entropy(jax):
    def run(logits, labels):
        def loss(logits):
            if jax.__name__ == "capibara.jax":
                from capibara import kernels
                return kernels.cross_entropy(logits, labels).mean()
            picked = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
            return -picked.mean()
        return jax.value_and_grad(loss)(logits)
    return run


def cross_entropy_torch(torch):
    def run(logits, labels):
        with torch.enable_grad():
            logits = logits.detach().requires_grad_()
            loss = torch.nn.functional.cross_entropy(logits, labels.long())
            return loss.detach(), torch.autograd.grad(loss, logits)[0]
    return run


def labelled(random):
    return random.standard_normal((1024, 50257)).astype(numpy.float32), random.integers(0, 50257, 1024).astype(numpy.int32)


def keyed(*shapes, dtype):
    return lambda random: (numpy.array([7, 11], numpy.uint32),) + tuple(random.standard_normal(shape).astype(dtype) for shape in shapes)


def gelu_dropout(jax):
    if jax.__name__ == "capibara.jax":
        from capibara import kernels
        return lambda key, x: kernels.fused_gelu_dropout(x, 0.1, key)
    return lambda key, x: jax.numpy.where(jax.random.bernoulli(key, 0.9, x.shape), jax.nn.gelu(x) / 0.9, 0.0).astype(x.dtype)


def gelu_dropout_gradient(jax):
    forward = gelu_dropout(jax)
    return lambda key, x, cotangent: jax.vjp(lambda x: forward(key, x), x)[1](cotangent)[0]


def gelu_dropout_torch(torch):
    return lambda key, x: torch.nn.functional.dropout(torch.nn.functional.gelu(x, approximate="tanh"), 0.1)


def gelu_dropout_torch_gradient(torch):
    inner = torch_gradient(lambda torch: lambda x: torch.nn.functional.dropout(torch.nn.functional.gelu(x, approximate="tanh"), 0.1))(torch)
    return lambda key, x, cotangent: inner(x, cotangent)


def dropout_rows(dtype, suffix):
    # Random numbers differ between libraries, so nothing is compared here; python/tests/kernels/test_kernels_dense.py checks the values.
    size = N * N * numpy.dtype(dtype).itemsize
    options = dict(least={"jax": 4, "torch": 1.2}, widen=False, unlike=("jax", "torch"), compared=False, memory=True)
    return [
        Row(f"fused gelu + dropout{suffix}", f"rate 0.1, 4096x4096 {suffix.strip() or 'f32'}", keyed((N, N), dtype=dtype), gelu_dropout,
            torch=gelu_dropout_torch, limit=("copy", 2 * size), **options),
        Row(f"fused gelu + dropout{suffix} backward", f"gradient of it, 4096x4096 {suffix.strip() or 'f32'}",
            keyed((N, N), (N, N), dtype=dtype), gelu_dropout_gradient, torch=gelu_dropout_torch_gradient, limit=("copy", 3 * size),
                **options),
    ]


def fused_adam(jax):
    if jax.__name__ != "capibara.jax":
        return adam(jax)
    from capibara import kernels

    def run(state, gradients):
        step = state["step"] + 1
        parameters, means, squares = kernels.adam_update(
            state["parameters"], gradients, state["means"], state["squares"], step, learning_rate=RATE, b1=DECAY, b2=DECAY2, eps=SMALL)
        return {"parameters": parameters, "means": means, "squares": squares, "step": step}, None
    return run


def adam_row(name, what, shapes):
    count = sum(int(numpy.prod(shape)) for shape in shapes)
    return Row(name, what, adam_state(shapes), fused_adam, torch=adam_torch, state=True, limit=("copy", 7 * 4 * count),
               least={"jax": 1.5, "torch": 1.2}, tolerance=1e-5, checked=lambda outputs: outputs[0]["parameters"])


def rows():
    found = []
    half = dict(dtype=ml_dtypes.bfloat16, suffix=" bf16", tolerance=2e-2)
    for options in ({}, half):
        kind = options.get("suffix", " f32").strip()
        found += pair("layernorm", f"kernels.layer_norm, 4096x4096 {kind}", fused("layer_norm", layer_norm), lambda torch:
                      lambda x, scale, bias: torch.nn.functional.layer_norm(x, (N,), scale, bias, 1e-5), ((N, N), (N,), (N,)), (2, 3),
                          **options)
        found += pair("rmsnorm", f"kernels.rms_norm, 4096x4096 {kind}", fused("rms_norm", rms_norm), lambda torch:
                      lambda x, scale: torch.nn.functional.rms_norm(x, (N,), scale, 1e-6), ((N, N), (N,)), (2, 3), **options)
        found += pair("softmax", f"kernels.softmax, 4096x4096 {kind}", fused("softmax", lambda jax: jax.nn.softmax), lambda torch:
                      lambda x: torch.softmax(x, -1), ((N, N),), (2, 3), **options)
        found += dropout_rows(options.get("dtype", numpy.float32), options.get("suffix", ""))
    found += pair("swiglu", "x * silu(gate), 4096x4096 bf16", lambda jax: swiglu(jax.nn.sigmoid), lambda torch:
                  lambda x, gate: x * torch.nn.functional.silu(gate), ((N, N), (N, N)), (3, 5), **half)
    found.append(Row("fused cross-entropy", "kernels.cross_entropy and its gradient, 1024 rows of 50257 f32", labelled, cross_entropy,
                     torch=cross_entropy_torch, limit=("copy", 2 * 4 * 1024 * 50257), least={"jax": 1.5, "torch": 1.2}, tolerance=1e-5,
                     memory=True))
    found.append(adam_row("fused Adam 50 M", "kernels.adam_update, one tensor of 50 M f32", [(50_000_000,)]))
    found.append(adam_row("fused Adam many tensors", "kernels.adam_update, 148 tensors of a transformer of width 768, 12 layers, f32",
                          [(768, 2304), (768, 768), (768, 3072), (3072, 768), (2304,), (768,), (3072,), (768,), (768,), (768,), (768,),
                              (768,)] * 12))
    return found
