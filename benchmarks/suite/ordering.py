"""Sorting, cumulative sums, scatter and gather, transposes, concatenation, reductions and random bits."""

import numpy

from .contractions import normal
from .row import Row

AHEAD = {"jax": 1.0, "torch": 1.0, "numpy": 1.0}


def indices(random, count, most):
    return random.integers(0, most, count).astype(numpy.int32)


def scatter_inputs(random):
    return (numpy.zeros(65536, numpy.float32), indices(random, 10**6, 65536),
            random.standard_normal(10**6).astype(numpy.float32))


def scatter_torch(torch):
    return lambda table, places, values: table.index_add(0, places, values)


def scatter_numpy(numpy):
    def run(table, places, values):
        table = table.copy()
        numpy.add.at(table, places, values)
        return table
    return run


def segment_inputs(random):
    return random.standard_normal((10**6, 16)).astype(numpy.float32), numpy.sort(indices(random, 10**6, 10000))


def segment_torch(torch):
    return lambda values, places: torch.zeros(10000, 16).index_add(0, places, values)


def gather_inputs(random):
    return random.standard_normal((50257, 768)).astype(numpy.float32), indices(random, 8192, 50257)


def one_hot_inputs(random):
    return indices(random, 8192, 1000), random.standard_normal((1000, 64)).astype(numpy.float32)


def reductions(library, **axis):
    return lambda x: (x.sum(0), x.sum(1), x.max(2), x.mean((0, 2)))


def reductions_torch(torch):
    return lambda x: (x.sum(0), x.sum(1), x.amax(2), x.mean((0, 2)))


def top_numpy(count):
    def maker(numpy):
        def run(x):
            part = numpy.partition(x, -count, axis=-1)[..., -count:]
            return numpy.sort(part, axis=-1)[..., ::-1]
        return run
    return maker


def key_inputs(random):
    return (numpy.array([7, 11], numpy.uint32),)


def rows():
    f32 = 4
    found = [
        Row("sort 4 M", "4194304 f32", normal((1 << 22,)), lambda jax: jax.numpy.sort,
            torch=lambda torch: lambda x: torch.sort(x).values, mlx=lambda mx: mx.sort, numpy=lambda numpy: numpy.sort,
            least=dict(AHEAD, jax=3), exact=True, tolerance=0, widen=False),
        Row("sort rows", "(4096,1024) f32", normal((4096, 1024)), lambda jax: jax.numpy.sort,
            torch=lambda torch: lambda x: torch.sort(x).values, mlx=lambda mx: mx.sort, numpy=lambda numpy: numpy.sort,
            least=AHEAD, exact=True, tolerance=0, widen=False),
        Row("sort int32 1 M", "1048576 int32", lambda random: (indices(random, 1 << 20, 2**31 - 1),), lambda jax: jax.numpy.sort,
            torch=lambda torch: lambda x: torch.sort(x).values, mlx=lambda mx: mx.sort, numpy=lambda numpy: numpy.sort,
            least=AHEAD, exact=True, tolerance=0, widen=False),
        Row("argsort 1 M", "1048576 f32, stable", normal((1 << 20,)), lambda jax: jax.numpy.argsort,
            torch=lambda torch: lambda x: torch.argsort(x, stable=True), mlx=lambda mx: mx.argsort,
            numpy=lambda numpy: lambda x: numpy.argsort(x, kind="stable"), least=AHEAD, widen=False, tolerance=0,
            unlike=("mlx", "torch", "numpy")),
        Row("top_k 40 of rows", "(1024,32768) f32", normal((1024, 32768)), lambda jax: lambda x: jax.lax.top_k(x, 40)[0],
            torch=lambda torch: lambda x: torch.topk(x, 40).values, numpy=top_numpy(40), least=AHEAD, exact=True,
            tolerance=0, widen=False),
        Row("top_k 100 of 4 M", "4194304 f32", normal((1 << 22,)), lambda jax: lambda x: jax.lax.top_k(x, 100)[0],
            torch=lambda torch: lambda x: torch.topk(x, 100).values, numpy=top_numpy(100), least=AHEAD, exact=True,
            tolerance=0, widen=False),
        Row("cumsum 16 M", "16777216 f32", normal((1 << 24,)), lambda jax: jax.numpy.cumsum,
            torch=lambda torch: lambda x: torch.cumsum(x, 0), mlx=lambda mx: mx.cumsum, numpy=lambda numpy: numpy.cumsum,
            limit=("copy", 2 * f32 << 24), least=AHEAD),
        Row("cumsum of rows", "(4096,4096) f32 along rows", normal((4096, 4096)), lambda jax: lambda x: jax.numpy.cumsum(x, 1),
            torch=lambda torch: lambda x: torch.cumsum(x, 1), mlx=lambda mx: lambda x: mx.cumsum(x, axis=1),
            numpy=lambda numpy: lambda x: numpy.cumsum(x, 1), limit=("copy", 2 * f32 << 24), least=AHEAD),
        Row("cumprod of columns", "(4096,4096) f32 along columns",
            lambda random: ((1 + 0.01 * random.standard_normal((4096, 4096))).astype(numpy.float32),),
            lambda jax: lambda x: jax.numpy.cumprod(x, 0), torch=lambda torch: lambda x: torch.cumprod(x, 0),
            mlx=lambda mx: lambda x: mx.cumprod(x, axis=0), numpy=lambda numpy: lambda x: numpy.cumprod(x, 0),
            limit=("copy", 2 * f32 << 24), least=AHEAD, tolerance=1e-3),
        Row("scatter-add 1 M", "1000000 f32 into 65536", scatter_inputs, lambda jax: lambda t, i, v: t.at[i].add(v),
            torch=scatter_torch, mlx=lambda mx: lambda t, i, v: t.at[i].add(v), numpy=scatter_numpy, least=AHEAD, tolerance=1e-5),
        Row("segment_sum", "(1000000,16) f32 into 10000 segments", segment_inputs,
            lambda jax: lambda values, places: jax.ops.segment_sum(values, places, num_segments=10000),
            torch=segment_torch, limit=("read", 10**6 * 17 * f32), least=AHEAD, tolerance=1e-5),
        Row("gather rows", "8192 rows of (50257,768) f32", gather_inputs, lambda jax: lambda table, places: table[places],
            torch=lambda torch: lambda table, places: torch.nn.functional.embedding(places, table),
            mlx=lambda mx: lambda table, places: table[places], numpy=lambda numpy: lambda table, places: table[places],
            limit=("copy", 2 * 8192 * 768 * f32), least=AHEAD, exact=True, tolerance=0, widen=False),
        Row("one-hot product", "one_hot(8192, 1000) @ (1000,64) f32", one_hot_inputs,
            lambda jax: lambda places, table: jax.nn.one_hot(places, 1000, dtype=table.dtype) @ table,
            torch=lambda torch: lambda places, table: torch.nn.functional.one_hot(places.long(), 1000).float() @ table,
            numpy=lambda numpy: lambda places, table: numpy.eye(1000, dtype=table.dtype)[places] @ table, least=AHEAD,
            tolerance=1e-6),
        Row("transpose", "(4096,4096) f32", normal((4096, 4096)), lambda jax: lambda x: jax.numpy.transpose(x),
            torch=lambda torch: lambda x: x.T.contiguous(), mlx=lambda mx: lambda x: mx.contiguous(x.T),
            numpy=lambda numpy: lambda x: numpy.ascontiguousarray(x.T), limit=("copy", 2 * f32 << 24), least=AHEAD, exact=True,
            tolerance=0, widen=False),
        Row("transpose of heads", "(8,1024,12,64) to (8,12,1024,64) f32", normal((8, 1024, 12, 64)),
            lambda jax: lambda x: jax.numpy.transpose(x, (0, 2, 1, 3)),
            torch=lambda torch: lambda x: x.permute(0, 2, 1, 3).contiguous(),
            mlx=lambda mx: lambda x: mx.contiguous(x.transpose(0, 2, 1, 3)),
            numpy=lambda numpy: lambda x: numpy.ascontiguousarray(x.transpose(0, 2, 1, 3)),
            limit=("copy", 2 * f32 * 8 * 1024 * 768), least=AHEAD, exact=True, tolerance=0, widen=False),
        Row("concatenate", "three of (2048,1024) f32 along columns", normal(*[(2048, 1024)] * 3),
            lambda jax: lambda *parts: jax.numpy.concatenate(parts, 1), torch=lambda torch: lambda *parts: torch.cat(parts, 1),
            mlx=lambda mx: lambda *parts: mx.concatenate(parts, 1), numpy=lambda numpy: lambda *parts: numpy.concatenate(parts, 1),
            limit=("copy", 2 * f32 * 3 * 2048 * 1024), least=AHEAD, exact=True, tolerance=0, widen=False),
        Row("reductions", "sums, max and mean over several axes, (256,256,256) f32", normal((256, 256, 256)), reductions,
            torch=reductions_torch, mlx=reductions, numpy=reductions, limit=("read", f32 << 24), least=AHEAD),
        Row("sum of all", "16777216 f32", normal((1 << 24,)), lambda jax: jax.numpy.sum, torch=lambda torch: torch.sum,
            mlx=lambda mx: mx.sum, numpy=lambda numpy: numpy.sum, limit=("read", f32 << 24), least=AHEAD, tolerance=1e-3),
        Row("threefry 64 M bits", "2097152 uint32", key_inputs,
            lambda jax: lambda key: jax.random.bits(key, (1 << 21,), jax.numpy.uint32),
            torch=lambda torch: lambda key: torch.randint(-2**31, 2**31 - 1, (1 << 21,), dtype=torch.int32),
            mlx=lambda mx: lambda key: mx.random.randint(-2**31, 2**31 - 1, (1 << 21,), mx.int32),
            numpy=lambda numpy: lambda key: numpy.random.default_rng(7).integers(0, 2**32, 1 << 21, dtype=numpy.uint32),
            least=AHEAD, exact=True, tolerance=0, widen=False, unlike=("torch", "mlx", "numpy")),
        Row("normal 4 M", "4194304 f32 by threefry", key_inputs,
            lambda jax: lambda key: jax.random.normal(key, (1 << 22,), jax.numpy.float32),
            torch=lambda torch: lambda key: torch.randn(1 << 22), mlx=lambda mx: lambda key: mx.random.normal((1 << 22,)),
            numpy=lambda numpy: lambda key: numpy.random.default_rng(7).standard_normal(1 << 22, dtype=numpy.float32),
            least={"jax": 1.0, "torch": 1.0}, widen=False, unlike=("torch", "mlx", "numpy")),
    ]
    return found + small_algebra()


def small_algebra():
    def spd(random):
        a = random.standard_normal((100000, 4, 4)).astype(numpy.float32)
        return (a @ a.swapaxes(1, 2) + 4 * numpy.eye(4, dtype=numpy.float32),
                random.standard_normal((100000, 4)).astype(numpy.float32))
    return [
        Row("solve 1e5 of 4x4", "100000 systems of 4 unknowns f32", spd,
            lambda jax: lambda a, b: jax.numpy.linalg.solve(a, b[..., None])[..., 0],
            torch=lambda torch: lambda a, b: torch.linalg.solve(a, b),
            numpy=lambda numpy: lambda a, b: numpy.linalg.solve(a, b[..., None])[..., 0], least=AHEAD, tolerance=1e-4),
        Row("det and inv of 1e5 3x3", "100000 of 3x3 f32",
            lambda random: (random.standard_normal((100000, 3, 3)).astype(numpy.float32) + 3 * numpy.eye(3, dtype=numpy.float32),),
            lambda jax: lambda a: (jax.numpy.linalg.det(a), jax.numpy.linalg.inv(a)),
            torch=lambda torch: lambda a: (torch.linalg.det(a), torch.linalg.inv(a)),
            numpy=lambda numpy: lambda a: (numpy.linalg.det(a), numpy.linalg.inv(a)), least=AHEAD, tolerance=1e-3),
        Row("cholesky 1e5 of 4x4", "100000 of 4x4 f32", lambda random: spd(random)[:1],
            lambda jax: jax.numpy.linalg.cholesky, torch=lambda torch: torch.linalg.cholesky,
            numpy=lambda numpy: numpy.linalg.cholesky, least=AHEAD, tolerance=1e-5),
    ]
