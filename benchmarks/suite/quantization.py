"""Vector quantization: nearest codes, codebooks by moving averages, k-means."""

import numpy

from .row import Row

COUNT, DIM, CODES = 16384, 64, 1024
FLOPS = 2 * COUNT * DIM * CODES


def inputs(random):
    return (random.standard_normal((COUNT, DIM)).astype(numpy.float32), random.standard_normal((CODES, DIM)).astype(numpy.float32))


def is_ours(jax):
    return jax.__name__.startswith("capibara")


def plain_codes(jax):
    jnp = jax.numpy
    return lambda x, codebook: jnp.argmin((codebook * codebook).sum(-1) - 2 * (x @ codebook.T), -1).astype(jnp.int32)


def encode(jax):
    if is_ours(jax):
        from capibara import kernels
        return kernels.vq_encode
    return plain_codes(jax)


def encode_torch(torch):
    return lambda x, codebook: torch.argmin((codebook * codebook).sum(-1) - 2 * (x @ codebook.T), -1).int()


def encode_truth(numpy):
    return lambda x, codebook: ((codebook * codebook).sum(-1) - 2 * (x @ codebook.T)).argmin(-1)


def encode_faiss(faiss):
    def run(x, codebook):
        index = faiss.IndexFlatL2(DIM)
        index.add(codebook)
        return index.search(x, 1)[1][:, 0].astype(numpy.int32)
    return run


def update_inputs(random):
    x, codebook = inputs(random)
    return x, random.integers(0, CODES, COUNT).astype(numpy.int32), codebook


def update(jax):
    jnp = jax.numpy

    def ours(x, codes, codebook):
        from capibara import kernels
        return tuple(kernels.vq_update((codebook, jnp.ones(CODES), codebook), x, codes))

    def plain(x, codes, codebook):
        one_hot = jax.nn.one_hot(codes, CODES, dtype=x.dtype)
        size = 0.99 + 0.01 * one_hot.sum(0)
        total = 0.99 * codebook + 0.01 * (one_hot.T @ x)
        smooth = (size + 1e-5) / (size.sum() + CODES * 1e-5) * size.sum()
        return total / smooth[:, None], size, total
    return ours if is_ours(jax) else plain


def lloyd(jax):
    """Ten iterations from the given codes."""
    jnp, nearest = jax.numpy, encode(jax)

    def step(_, codebook, x):
        codes = nearest(x, codebook)
        sums, counts = jax.ops.segment_sum(x, codes, CODES), jax.ops.segment_sum(jnp.ones(COUNT), codes, CODES)
        return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], codebook)
    return lambda x, codebook: jax.lax.fori_loop(0, 10, lambda i, c: step(i, c, x), codebook)


def lloyd_faiss(faiss):
    def run(x, codebook):
        kmeans = faiss.Kmeans(DIM, CODES, niter=10, max_points_per_centroid=COUNT, min_points_per_centroid=1)
        kmeans.train(x, init_centroids=codebook)
        return kmeans.centroids
    return run


def lloyd_inputs(random):
    x = random.standard_normal((COUNT, DIM)).astype(numpy.float32)
    return x, x[:CODES].copy()


def rows():
    return [
        Row("vq_encode", f"nearest of {CODES} codes, ({COUNT},{DIM}) f32", inputs, encode, torch=encode_torch, faiss=encode_faiss,
            limit=("f32", FLOPS), least={"jax": 2.0, "torch": 1.0, "faiss": 1.3}, truth=encode_truth, tolerance=0, exact=True,
            memory=True),
        Row("vq_update", f"moving averages of {CODES} codes by ({COUNT},{DIM}) f32", update_inputs, update,
            least={"jax": 2.0}, memory=True),
        Row("kmeans 10 iterations", f"{CODES} clusters of ({COUNT},{DIM}) f32", lloyd_inputs, lloyd, faiss=lloyd_faiss,
            limit=("f32", 10 * FLOPS), least={"jax": 2.0, "faiss": 1.3}, compared=False,
            memory=True),
    ]
