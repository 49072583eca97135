"""One process of a group: sums arrays over all of them, or takes training steps, with one library; the first prints microseconds.

    group.py LIBRARY WHAT [SIZE]      LIBRARY: capibara, jax, torch, mpi
                                      WHAT: psum (SIZE: the bytes of each process), gpt, and for a deep network's step:
                                      step (computes and exchanges), compute, exchange; gather, ring: a matmul whose
                                      rows come from all processes, gathered first or one part after the other
"""

import os
import sys
import time

import numpy

ROUNDS, WARM = 5, 3


def rank_and_size():
    """Rank and size from the launcher's environment variables."""
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise SystemExit("group.py: start it by mpirun or capibara launch")


def best(call, count=5):
    """The best round's mean. Every process must make the same calls, so `count` must not depend on a measured time."""
    for _ in range(WARM):
        call()
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - started) / count)
    return 1e6 * min(times)


def calls_of(size):
    return 50 if size <= 1 << 16 else 5


def by_jax(library, what, size):
    rank, processes = rank_and_size()
    if library == "capibara":
        import capibara.jax as jax
        jax.distributed.initialize()
    else:
        import jax
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize("127.0.0.1:" + os.environ["GROUP_PORT"], processes, rank)
    mesh = jax.make_mesh((processes,), ("x",), (jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec
    if what == "psum":
        return jax_psum(jax, mesh, spec, size)
    if what == "gpt":
        return jax_gpt(jax, mesh, spec)
    return jax_product(jax, mesh, spec, what) if what in ("gather", "ring") else jax_layers(jax, mesh, spec, what)


def jax_psum(jax, mesh, spec, size):
    processes, part = mesh.size, numpy.ones(size // 4, numpy.float32)
    x = jax.make_array_from_callback((processes * part.size,), jax.sharding.NamedSharding(mesh, spec("x")), lambda index: part)
    function = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=spec("x"), out_specs=spec()))
    assert numpy.asarray(function(x).addressable_shards[0].data)[0] == processes
    return best(lambda: jax.block_until_ready(function(x)), calls_of(size))


def jax_gpt(jax, mesh, spec):
    """Data parallel: the batch is split over the processes, gradients are averaged."""
    from suite import transformer
    processes = mesh.size
    shape = transformer.Shape(layers=4, width=128, heads=4, vocabulary=256, batch=16 // processes, length=64)
    loss, tree_map = transformer.loss_of(jax, shape, None), jax.tree_util.tree_map
    state, _ = transformer.inputs_of(shape)(numpy.random.default_rng(7))
    parameters = state["parameters"]
    tokens = numpy.random.default_rng(8).integers(0, 256, (16, shape.length + 1)).astype(numpy.int32)

    def step(parameters, tokens):
        value, gradients = jax.value_and_grad(loss)(parameters, tokens)
        gradients = tree_map(lambda g: jax.lax.pmean(g, "x"), gradients)
        return tree_map(lambda p, g: p - 1e-3 * g, parameters, gradients), jax.lax.pmean(value, "x")

    kept = [tree_map(lambda p: spread(jax, mesh, numpy.asarray(p), spec()), parameters)]
    data = spread(jax, mesh, tokens, spec("x"))
    function = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(spec(), spec("x")), out_specs=spec(), check_vma=False))

    def call():
        kept[0], value = function(kept[0], data)
        jax.block_until_ready(value)
    return best(call)


def spread(jax, mesh, value, where):
    return jax.make_array_from_callback(value.shape, jax.sharding.NamedSharding(mesh, where), lambda index: value[index])


def jax_layers(jax, mesh, spec, what, layers=8, width=1024, batch=256):
    """The gradients of eight layers, 4 MiB each, and their sums over the processes; or only one of the two."""
    jnp, random = jax.numpy, numpy.random.default_rng(3)

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return jnp.mean(x * x)

    def step(weights, x):
        gradients = weights if what == "exchange" else jax.grad(loss)(weights, x)
        if what != "compute":
            gradients = [jax.lax.psum(g, "x") for g in gradients]
        return [w - 1e-3 * g for w, g in zip(weights, gradients)]
    weights = [0.03 * random.standard_normal((width, width), dtype=numpy.float32) for _ in range(layers)]
    x = random.standard_normal((batch * mesh.size, width), dtype=numpy.float32)
    weights, x = [spread(jax, mesh, w, spec()) for w in weights], spread(jax, mesh, x, spec("x"))
    function = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(spec(), spec("x")), out_specs=spec(), check_vma=False))
    return best(lambda: jax.block_until_ready(function(weights, x)))


def jax_product(jax, mesh, spec, what, rows=512, inner=2048, columns=512):
    """A matmul of the rows of all processes by the columns of this one: [P * rows, inner] x [inner, columns]."""
    jnp, lax, random = jax.numpy, jax.lax, numpy.random.default_rng(3)
    processes = mesh.size

    def gather(x, w):
        return lax.all_gather(x, "x", tiled=True) @ w

    def ring(x, w):
        first, parts = lax.axis_index("x"), []
        for step in range(processes):
            following = x if step + 1 == processes else lax.ppermute(x, "x", [(i, (i + 1) % processes) for i in range(processes)])
            parts.append(x @ w)
            x = following
        # Part k came from process first - k.
        return jnp.roll(jnp.stack(parts[::-1]), first + 1, axis=0).reshape(processes * rows, columns)
    x = spread(jax, mesh, random.standard_normal((rows * processes, inner), dtype=numpy.float32), spec("x"))
    w = spread(jax, mesh, random.standard_normal((inner, columns * processes), dtype=numpy.float32), spec(None, "x"))

    def jitted(product):
        function = jax.shard_map(lambda x, w: jnp.sum(product(x, w), 0, keepdims=True), mesh=mesh,
                                 in_specs=(spec("x"), spec(None, "x")), out_specs=spec("x"), check_vma=False)
        return jax.jit(function)
    made = {"gather": jitted(gather), "ring": jitted(ring)}
    one, other = (numpy.asarray(made[name](x, w).addressable_shards[0].data) for name in ("gather", "ring"))
    assert numpy.allclose(one, other, rtol=1e-3, atol=1e-1), abs(one - other).max()
    return best(lambda: jax.block_until_ready(made[what](x, w)))


def by_torch(what, size):
    rank, processes = rank_and_size()
    import torch
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["GROUP_PORT"], rank=rank,
                                         world_size=processes)
    x = torch.ones(size // 4)
    return best(lambda: torch.distributed.all_reduce(x.zero_()), calls_of(size))


def by_mpi(what, size):
    """Plain MPI_Allreduce, through mpi4py, or through ctypes if that is not installed."""
    try:
        from mpi4py import MPI
        given, summed = numpy.ones(size // 4, numpy.float32), numpy.empty(size // 4, numpy.float32)
        return best(lambda: MPI.COMM_WORLD.Allreduce(given, summed), calls_of(size))
    except ImportError:
        import mpi_by_name
        return best(mpi_by_name.all_reduce(size), calls_of(size))


def main():
    library, what = sys.argv[1:3]
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if library in ("capibara", "jax"):
        figure = by_jax(library, what, size)
    else:
        figure = {"torch": by_torch, "mpi": by_mpi}[library](what, size)
    if rank_and_size()[0] == 0:
        print(f"microseconds {figure:.3f}", flush=True)


if __name__ == "__main__":
    main()
