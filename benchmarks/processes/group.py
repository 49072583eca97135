"""One process of a group: sums arrays over all of them, or takes training steps, by one library; the first prints microseconds.

    group.py LIBRARY WHAT [SIZE]      LIBRARY: capibara, jax, torch, mpi; WHAT: psum (with the bytes of each process), gpt
"""

import os
import sys
import time

import numpy

ROUNDS, WARM = 5, 3


def rank_and_size():
    """As the launcher says."""
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise SystemExit("group.py: start it by mpirun or capibara launch")


def best(call):
    """Of all processes in step: each takes the same calls; the best round's mean."""
    for _ in range(WARM):
        call()
    started = time.perf_counter()
    call()
    count = 50 if time.perf_counter() - started < 0.002 else 5
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - started) / count)
    return 1e6 * min(times)


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
    return jax_psum(jax, mesh, spec, size) if what == "psum" else jax_gpt(jax, mesh, spec)


def jax_psum(jax, mesh, spec, size):
    processes, part = mesh.size, numpy.ones(size // 4, numpy.float32)
    x = jax.make_array_from_callback((processes * part.size,), jax.sharding.NamedSharding(mesh, spec("x")), lambda index: part)
    function = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=spec("x"), out_specs=spec()))
    assert numpy.asarray(function(x).addressable_shards[0].data)[0] == processes
    return best(lambda: jax.block_until_ready(function(x)))


def jax_gpt(jax, mesh, spec):
    """Data parallel: the batch in as many parts as there are processes, gradients averaged."""
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

    def spread(value, where):
        value = numpy.asarray(value)
        return jax.make_array_from_callback(value.shape, jax.sharding.NamedSharding(mesh, where), lambda index: value[index])
    kept = [tree_map(lambda p: spread(p, spec()), parameters)]
    data = spread(tokens, spec("x"))
    function = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(spec(), spec("x")), out_specs=spec(), check_vma=False))

    def call():
        kept[0], value = function(kept[0], data)
        jax.block_until_ready(value)
    return best(call)


def by_torch(what, size):
    rank, processes = rank_and_size()
    import torch
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["GROUP_PORT"], rank=rank,
                                         world_size=processes)
    x = torch.ones(size // 4)
    return best(lambda: torch.distributed.all_reduce(x.zero_()))


def by_mpi(what, size):
    """MPI_Allreduce itself, through mpi4py, or by ctypes where that is not installed."""
    try:
        from mpi4py import MPI
        given, summed = numpy.ones(size // 4, numpy.float32), numpy.empty(size // 4, numpy.float32)
        return best(lambda: MPI.COMM_WORLD.Allreduce(given, summed))
    except ImportError:
        import mpi_by_name
        return best(mpi_by_name.all_reduce(size))


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
