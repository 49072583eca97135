"""Attention as rows of benchmarks/gpu/kernels.py: with cuDNN where it covers a case, otherwise with our own kernels; and block-sparse.

jax's arrays are [batch, length, heads, dim]. Ours are the same for cuDNN, and [batch, heads, length, dim] for our own kernels.
If jax cannot run a row with cuDNN, that column is plain attention of the same shape.
"""

from dataclasses import dataclass

from kernel_row import Row, is_ours, kernels, normal, with_gradient
from torch_rows import attention_call, sparse_call

SHARES = {50: 0.0, 25: -0.6745, 10: -1.2816}  # percent of blocks kept: those below these values of a normal distribution
BLOCK = 64


@dataclass
class Case:
    batch: int
    length: int
    heads: int
    groups: int
    dim: int
    causal: bool = True
    extra: str = ""  # "dropout", "mask", "bias" or "segments": run by our own kernels
    queries: int = 0  # fewer than keys
    own: bool = False  # run by our own kernels although it has no extra

    @property
    def by_length(self):
        return not self.extra and not self.own

    @property
    def pairs(self):
        if self.extra == "segments":
            return self.length * SEGMENT / 2
        return (self.queries or self.length) * self.length * (0.5 if self.causal else 1)

    @property
    def operations(self):
        return 4 * self.batch * self.heads * self.dim * self.pairs

    def name(self):
        sizes = f"{self.batch}x{self.heads}x{self.length}x{self.dim}"
        words = [f"{self.queries} query of {self.length} keys" if self.queries else "causal" if self.causal else "all keys",
                 f"{self.groups} key heads" if self.groups != self.heads else "", self.extra]
        return f"attention {sizes} {', '.join(filter(None, words))}"


SEGMENT = 1024


def by_heads(x):
    return x.swapaxes(1, 2)


def draw(jax, seed, shape, turned):
    """[batch, length, heads, dim], or the same values as [batch, heads, length, dim]."""
    x = normal(jax, seed, *shape)
    return jax.jit(by_heads)(x) if turned else x


def segments(jax, case):
    return jax.numpy.broadcast_to(jax.numpy.arange(case.length) // SEGMENT, (case.batch, case.length)).astype("int32")


def extra_arguments(jax, case):
    if case.extra == "dropout":
        return [jax.random.key_data(jax.random.key(6))]
    if case.extra == "mask":
        return [jax.jit(lambda: jax.random.bernoulli(jax.random.key(8), 0.875, (case.batch, 1, case.length, case.length)))()]
    if case.extra == "bias":
        return [normal(jax, 9, 1, case.heads, case.length, case.length)]
    return [segments(jax, case)] if case.extra == "segments" else []


def arguments(jax, case, extra=True):
    turned = is_ours(jax) and not case.by_length
    queries = (case.batch, case.queries or case.length, case.heads, case.dim)
    keys = (case.batch, case.length, case.groups, case.dim)
    own = [draw(jax, seed, shape, turned) for seed, shape in ((1, queries), (2, keys), (3, keys))]
    return own + (extra_arguments(jax, case) if extra else []), draw(jax, 4, queries, turned)


def options(jax, case, extra):
    found = {"causal": case.causal}
    if case.extra == "dropout":
        found.update(dropout_rate=0.1, dropout_key=jax.random.wrap_key_data(extra[0]))
    elif case.extra == "segments":
        found.update(segment_ids=extra[0], key_segment_ids=extra[0])
    elif case.extra:
        found[{"mask": "attention_mask", "bias": "bias"}[case.extra]] = extra[0]
    return found


def ours(jax, case):
    def run(q, k, v, *extra):
        if not case.by_length:
            return kernels().flash_attention(q, k, v, **options(jax, case, extra))
        return by_heads(kernels().flash_attention(by_heads(q), by_heads(k), by_heads(v), causal=case.causal))
    return run


def dropped(jax, causal):
    """The formula, since jax's attention has no dropout."""
    jnp = jax.numpy

    def run(q, k, v, words):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
        seen = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])
        shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf) if causal else scores, axis=-1)
        kept = jax.random.bernoulli(jax.random.wrap_key_data(words), 0.9, shares.shape)
        return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(kept, shares / 0.9, 0).astype(v.dtype), v)
    return run


def by_jax(jax, case, implementation="xla"):
    def run(q, k, v, *extra):
        options = {"is_causal": case.causal}
        if extra and case.extra == "segments":
            options["mask"] = (extra[0][:, :, None] == extra[0][:, None, :])[:, None]
        elif extra:
            options[case.extra] = extra[0]
        return jax.nn.dot_product_attention(q, k, v, implementation=implementation, **options)
    return dropped(jax, case.causal) if case.extra == "dropout" and implementation == "xla" else run


def program(jax, case, gradient, implementation="xla"):
    function = ours(jax, case) if is_ours(jax) else by_jax(jax, case, implementation)
    own, cotangent = arguments(jax, case, extra=implementation == "xla")
    count = 4 if case.extra == "bias" and implementation == "xla" else 3
    return (with_gradient(jax, function, count), [*own, cotangent]) if gradient else (function, own)


def row(case, gradient, floors=()):
    size = 2 * case.batch * case.dim * ((case.queries or case.length) * case.heads + case.length * case.groups)
    limit = {"bytes": 2 * size} if case.queries else {"operations": (3.5 if gradient else 1) * case.operations}
    return Row(case.name() + (" with gradient" if gradient else ""), lambda jax: program(jax, case, gradient), "attention", **limit,
               floors=floors, compared=case.extra != "dropout", cudnn=lambda jax: program(jax, case, gradient, "cudnn"),
               torch=lambda torch: attention_call(torch, case, gradient),
               aligned=lambda leaf: leaf if case.by_length or leaf.ndim != 4 or leaf.shape[-1] != case.dim else by_heads(leaf))


def pair(case, *floors, memory=None):
    """The forward pass, and with the gradient; `memory` is the required share of jax's temporaries."""
    held = (("memory", memory),) if memory else ()
    return [row(case, False, floors + held), row(case, True, floors + held)]


# --- block-sparse --------------------------------------------------------------------------------------------------------


def sparse(jax, heads, length, dim, share, gradient, dense=False):
    own = [draw(jax, seed, (1, length, heads, dim), is_ours(jax)) for seed in (1, 2, 3, 4)]
    if dense:
        plain = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, implementation="cudnn")
        return (with_gradient(jax, plain, 3), own) if gradient else (plain, own[:3])
    kept = normal(jax, 5, 1, heads, length // BLOCK, length // BLOCK) < SHARES[share]
    if is_ours(jax):
        function = lambda q, k, v, blocks: kernels().sparse_attention(q, k, v, blocks, BLOCK)
    else:
        function = lambda q, k, v, mask: jax.nn.dot_product_attention(q, k, v, mask=mask, implementation="xla")
        kept = jax.jit(lambda blocks: jax.numpy.repeat(jax.numpy.repeat(blocks, BLOCK, 2), BLOCK, 3))(kept)
    return (with_gradient(jax, function, 3), [*own[:3], kept, own[3]]) if gradient else (function, [*own[:3], kept])


def sparse_row(heads, length, dim, share, gradient, floors=(), by_jax=True):
    operations = 4 * heads * dim * length**2 * share / 100 * (3.5 if gradient else 1)
    dense = lambda jax: sparse(jax, heads, length, dim, share, gradient, dense=True)
    flex = lambda torch: sparse_call(torch, heads, length, dim, share, gradient)
    return Row(f"sparse_attention 1x{heads}x{length}x{dim}, {share} % of blocks of {BLOCK}{' with gradient' if gradient else ''}",
               lambda jax: sparse(jax, heads, length, dim, share, gradient), "sparse attention", operations=operations, floors=floors,
               by_jax=by_jax, cudnn=dense if by_jax else None, torch=flex if by_jax else None, aligned=by_heads)


def small_rows():
    case = lambda extra="", **more: Case(1, 64, 2, 2, 16, extra=extra, **more)
    return [*pair(case()), *(row(case(extra), True) for extra in ("dropout", "mask", "bias")),
            sparse_row(2, 512, 16, 50, True)]


def quick_rows():
    """Rows that cuDNN runs for both libraries, and one with a single query."""
    long = dict(batch=2, length=8192, heads=16, groups=16, dim=128)
    same = ("cudnn", 0.97)
    return [*pair(Case(16, 1024, 16, 16, 128), same), *pair(Case(**long), same, memory=0.05), *pair(Case(**long, causal=False), same),
            *pair(Case(2, 8192, 32, 32, 64), same), row(Case(2, 8192, 8, 8, 256), False, (same,)), *pair(Case(2, 8192, 32, 8, 128), same),
            row(Case(64, 8192, 32, 8, 128, causal=False, queries=1, own=True), False)]


def own_rows():
    long = dict(batch=2, length=8192, heads=16, groups=16, dim=128)
    share = ("cudnn", 0.7)
    return [*pair(Case(**long, extra="dropout"), share), *pair(Case(**long, causal=False, extra="mask"), share),
            row(Case(**long, extra="bias"), True, (share,)), row(Case(**long, extra="segments"), True)]


def block_rows():
    size, floors = (16, 16384, 128), (("jax", 10), ("cudnn", 1))
    return [sparse_row(*size, 25, False, floors), sparse_row(*size, 25, True, floors), sparse_row(*size, 50, True, by_jax=False),
            sparse_row(*size, 10, True, by_jax=False)]
