"""Matmuls: large, small, batched, skinny, matrix-vector, large numbers of tiny matrices; f32, f64, bf16, int8."""

import ml_dtypes
import numpy

from .row import Row


def normal(*shapes, dtype=numpy.float32):
    return lambda random: tuple(random.standard_normal(shape).astype(dtype) for shape in shapes)


def product(library):
    return lambda a, b: a @ b


def square(n, threads, **least):
    return Row(f"matmul f32 {n} ({threads} thread{'s' * (threads > 1)})", f"({n},{n}) @ ({n},{n}) f32", normal((n, n), (n, n)),
               program=product, torch=product, mlx=product, numpy=product, threads=threads,
               limit=("f32", 2 * n**3), least=least, tolerance=1e-5)


def plain(name, what, first, second, limit, least, dtype=numpy.float32, threads=2, peers=("torch", "mlx", "numpy"), **options):
    return Row(name, what, normal(first, second, dtype=dtype), program=product, threads=threads, limit=limit, least=least,
               tolerance=options.pop("tolerance", 1e-5), **{peer: product for peer in peers}, **options)


def int8_product(jax):
    return lambda a, b: jax.lax.dot(a, b, preferred_element_type=jax.numpy.int32)


def bytes_of(*shapes, first=numpy.int8, second=numpy.int8):
    return lambda random: tuple(random.integers(0 if dtype is numpy.uint8 else -127, 128, shape, dtype=dtype)
                                for shape, dtype in zip(shapes, (first, second)))


def int8_numpy(numpy):
    return lambda a, b: a.astype(numpy.int32) @ b.astype(numpy.int32)


def int8_torch(torch):
    return lambda a, b: torch._int_mm(a, b)


def rows():
    found = [square(n, 1, limit=0.88) for n in (512, 1024, 2048)]
    found += [square(n, 2, jax=1.15 if n == 1024 else 1.0, torch=1.05 if n == 1024 else 1.0) for n in (512, 1024, 2048)]
    found += [
        plain("matmul f64 1024", "(1024,1024) @ (1024,1024) f64", (1024, 1024), (1024, 1024), ("f64", 2 * 1024**3),
              {"jax": 1.0, "torch": 1.0}, dtype=numpy.float64, wide=True, peers=("torch", "numpy"), tolerance=1e-13),
        plain("matmul bf16 1024", "(1024,1024) @ (1024,1024) bf16", (1024, 1024), (1024, 1024), ("bf16", 2 * 1024**3),
              {"limit": 0.78, "jax": 3.5, "torch": 1.3}, dtype=ml_dtypes.bfloat16, peers=("torch", "mlx"), tolerance=6e-3),
        Row("matmul int8 1024", "(1024,1024) @ (1024,1024) int8 to int32", bytes_of((1024, 1024), (1024, 1024)), int8_product,
            torch=int8_torch, numpy=int8_numpy, limit=("int8", 2 * 1024**3), least={"limit": 0.78, "jax": 8, "torch": 1.2}, exact=True,
            tolerance=0),
        Row("matmul int8 16x1024x4096", "(16,1024) @ (1024,4096) int8 to int32", bytes_of((16, 1024), (1024, 4096)), int8_product,
            torch=int8_torch, numpy=int8_numpy, limit=("read", 1024 * 4096), least={"jax": 1.0, "torch": 1.0}, exact=True, tolerance=0),
        Row("matmul uint8 by int8 1024", "(1024,1024) uint8 @ (1024,1024) int8 to int32",
            bytes_of((1024, 1024), (1024, 1024), first=numpy.uint8), int8_product, numpy=int8_numpy, limit=("int8", 2 * 1024**3),
            least={"jax": 8}, exact=True, tolerance=0),
        plain("matmul f32 64 (1 thread)", "(64,64) @ (64,64) f32", (64, 64), (64, 64), ("f32", 2 * 64**3),
              {"limit": 0.70, "jax": 1.0, "torch": 1.0}, threads=1),
        plain("matmul f32 64 batch 256", "(256,64,64) @ (256,64,64) f32", (256, 64, 64), (256, 64, 64),
              ("f32", 256 * 2 * 64**3), {"limit": 0.70, "jax": 2, "torch": 2}),
        plain("matmul 16x1024x4096", "(16,1024) @ (1024,4096) f32", (16, 1024), (1024, 4096), ("f32", 2 * 16 * 1024 * 4096),
              {"limit": 0.58, "jax": 1.0, "torch": 1.0}),
        plain("matmul 1x4096x4096", "(1,4096) @ (4096,4096) f32", (1, 4096), (4096, 4096), ("read", 4 * 4096 * 4096),
              {"limit": 0.90, "jax": 1.0, "torch": 1.0}),
        Row("matmul 4096x4096x1 transposed", "(4096,) with the transpose of (4096,4096) f32", normal((4096, 4096), (4096,)),
            lambda jax: lambda a, x: a.T @ x, torch=lambda torch: lambda a, x: a.T @ x, mlx=lambda mx: lambda a, x: a.T @ x,
            numpy=lambda numpy: lambda a, x: a.T @ x, limit=("read", 4 * 4096 * 4096), least={"jax": 1.0, "torch": 1.0},
            tolerance=1e-5),
        packed_weights(),
        plain("matmul 4096x64x4096", "(4096,64) @ (64,4096) f32", (4096, 64), (64, 4096), ("f32", 2 * 64 * 4096**2),
              {"jax": 1.0, "torch": 1.0}),
    ]
    for dtype, name in ((numpy.float32, "f32"), (numpy.float64, "f64")):
        size = numpy.dtype(dtype).itemsize
        wide = dtype is numpy.float64
        peers = ("torch", "numpy") if wide else ("torch", "mlx", "numpy")
        found.append(plain(f"1e6x3 @ 3x3 {name}", f"(1000000,3) @ (3,3) {name}", (10**6, 3), (3, 3),
                           ("copy", 10**6 * 6 * size), {"jax": 5, "torch": 5}, dtype=dtype, wide=wide, peers=peers))
        found.append(plain(f"1e6 of 3x3 @ 3x3 {name}", f"(1000000,3,3) @ (1000000,3,3) {name}", (10**6, 3, 3), (10**6, 3, 3),
                           ("copy", 10**6 * 27 * size), {"jax": 5, "torch": 5}, dtype=dtype, wide=wide, peers=peers))
    found.append(attention_scores())
    return found


def packed_weights():
    """The weights are a constant of the program, so they can be packed for the matmul once."""
    weights = numpy.random.default_rng(7).standard_normal((1024, 4096)).astype(numpy.float32)

    def program(jax):
        held = jax.numpy.asarray(weights)
        return lambda x: x @ held

    def torch_program(torch):
        held = torch.from_numpy(weights.copy())
        return lambda x: x @ held

    def mlx_program(mx):
        held = mx.array(weights)
        return lambda x: x @ held

    return Row("matmul 16x1024x4096 constant", "(16,1024) @ a constant (1024,4096) f32", normal((16, 1024)), program,
               torch=torch_program, mlx=mlx_program, numpy=lambda numpy: lambda x: x @ weights,
               limit=("f32", 2 * 16 * 1024 * 4096), least={"limit": 0.75, "jax": 1.0, "torch": 1.0}, tolerance=1e-5)


def attention_scores():
    equation = "bhnd,bhkd->bhnk"
    shape = (2, 12, 512, 64)
    return Row("einsum attention scores", "(2,12,512,64) with itself f32", normal(shape, shape),
               lambda jax: lambda q, k: jax.numpy.einsum(equation, q, k),
               torch=lambda torch: lambda q, k: torch.einsum(equation, q, k),
               mlx=lambda mx: lambda q, k: mx.einsum(equation, q, k),
               numpy=lambda numpy: lambda q, k: numpy.einsum(equation, q, k, optimize=True),
               limit=("f32", 2 * 2 * 12 * 512 * 512 * 64), least={"jax": 1.0, "torch": 1.0}, tolerance=1e-5)
