"""Eight devices of one process: collectives, training steps by data parallelism, FSDP and a 2-D mesh, memory, compiling."""

import statistics
import time

import numpy

from . import transformer
from .processes import forget_peak, memory, milliseconds
from .row import ProcessRow

BOTH = ("capibara", "jax")
DEVICES = 8
GPT = transformer.Shape(layers=4, width=128, heads=4, vocabulary=256, batch=16, length=64)
DEEP_GPT = transformer.Shape(layers=48, width=64, heads=4, vocabulary=256, batch=8, length=16)


def mesh_of(jax, sizes, names):
    jax.config.update("jax_num_cpu_devices", DEVICES)  # before the first device query
    return jax.make_mesh(sizes, names, (jax.sharding.AxisType.Auto,) * len(names))


def best(call, wait):
    """Microseconds of one call: the median of five bests of repetitions that take a tenth of a second each."""
    wait(call())
    started = time.perf_counter()
    wait(call())
    count = max(3, min(2000, int(0.1 / (time.perf_counter() - started + 1e-9))))

    def repetition():
        times = []
        for _ in range(count):
            started = time.perf_counter()
            wait(call())
            times.append(time.perf_counter() - started)
        return min(times)
    return 1e6 * statistics.median(repetition() for _ in range(5))


# --- collectives -------------------------------------------------------------------------------------------------------


def collective(operation, size):
    """A jitted shard_map whose argument has `size` bytes in total."""
    def measure(library, jax):
        mesh = mesh_of(jax, (DEVICES,), ("x",))
        spec = jax.sharding.PartitionSpec("x")
        body = {"psum": lambda x: jax.lax.psum(x, "x"), "all_gather": lambda x: jax.lax.all_gather(x, "x", tiled=True),
                "ppermute": lambda x: jax.lax.ppermute(x, "x", [(i, (i + 1) % DEVICES) for i in range(DEVICES)]),
                "all_to_all": lambda x: jax.lax.all_to_all(x.reshape(DEVICES, -1), "x", 0, 0).reshape(-1)}[operation]
        out = jax.sharding.PartitionSpec() if operation in ("psum", "all_gather") else spec
        function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=out, check_vma=False))
        x = jax.device_put(numpy.ones(size // 4, numpy.float32), jax.sharding.NamedSharding(mesh, spec))
        return best(lambda: function(x), jax.block_until_ready)
    return measure


# --- training steps ----------------------------------------------------------------------------------------------------


def mlp_step(jax):
    jnp = jax.numpy

    def loss(weights, x, y):
        for w in weights[:-1]:
            x = jnp.maximum(x @ w, 0)
        return jnp.mean((x @ weights[-1] - y) ** 2)

    def step(weights, x, y):
        gradients = jax.grad(loss)(weights, x, y)
        return [w - 1e-3 * g for w, g in zip(weights, gradients)]
    return step


def mlp(width, batch, strategy):
    """Four layers; `strategy` one, dp or fsdp."""
    def measure(library, jax):
        names = jax.sharding.PartitionSpec
        mesh = mesh_of(jax, (DEVICES,), ("data",))
        rows, whole = (jax.sharding.NamedSharding(mesh, spec) for spec in (names("data"), names()))
        random = numpy.random.default_rng(3)
        values = [0.1 * random.standard_normal((width, width), dtype=numpy.float32) for _ in range(4)]
        data = [random.standard_normal((batch, width), dtype=numpy.float32) for _ in range(2)]
        if strategy == "one":
            weights, data, out = [jax.numpy.asarray(w) for w in values], [jax.numpy.asarray(d) for d in data], None
        else:
            out = whole if strategy == "dp" else rows
            weights, data = [jax.device_put(w, out) for w in values], [jax.device_put(d, rows) for d in data]
        step = jax.jit(mlp_step(jax)) if out is None else jax.jit(mlp_step(jax), out_shardings=[out] * 4)
        state = [weights]

        def call():
            state[0] = step(state[0], *data)
            return state[0]
        return best(call, jax.block_until_ready)
    return measure


def gpt_placement(jax, mesh, path, value):
    """Megatron's split over "model": columns of qkv and up, rows of out and down, the vocabulary of the embedding."""
    names = [getattr(part, "key", None) for part in path]
    spec = jax.sharding.PartitionSpec
    if "tokens" in names:
        return jax.sharding.NamedSharding(mesh, spec("model", None))
    if ("qkv" in names or "up" in names) and value.ndim == 2:
        return jax.sharding.NamedSharding(mesh, spec(None, "model"))
    if ("out" in names or "down" in names) and value.ndim == 2:
        return jax.sharding.NamedSharding(mesh, spec("model", None))
    return jax.sharding.NamedSharding(mesh, spec())


def gpt_arguments(jax, shape, split):
    """State and tokens on one device, or on a mesh of 4 x 2, and the shardings of the state."""
    state, tokens = transformer.inputs_of(shape)(numpy.random.default_rng(7))
    if not split:
        return jax.tree_util.tree_map(jax.numpy.asarray, state), jax.numpy.asarray(tokens), None
    mesh = mesh_of(jax, (4, 2), ("data", "model"))
    places = jax.tree_util.tree_map_with_path(lambda path, value: gpt_placement(jax, mesh, path, value), state)
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    return jax.device_put(state, places), jax.device_put(tokens, rows), places


def gpt_jit(jax, shape, places):
    step = transformer.step_of(shape)(jax)
    return jax.jit(step) if places is None else jax.jit(step, out_shardings=(places, None))


def gpt(split):
    def measure(library, jax):
        state, tokens, places = gpt_arguments(jax, GPT, split)
        step, kept = gpt_jit(jax, GPT, places), [state]

        def call():
            kept[0], loss = step(kept[0], tokens)
            return loss
        return best(call, jax.block_until_ready) / 1e3
    return measure


def gpt_compile(split):
    def measure(library, jax):
        state, tokens, places = gpt_arguments(jax, DEEP_GPT, split)
        jax.block_until_ready(jax.jit(lambda x: x * 2.0 + 1.0)(jax.numpy.ones(5)))
        return milliseconds(lambda: gpt_jit(jax, DEEP_GPT, places).lower(state, tokens).compile())
    return measure


def step_memory(strategy):
    """Peak memory of a data-parallel MLP step, after one warm-up step, above the process's memory before."""
    def measure(library, jax):
        width, batch = 2048, 1024
        mesh = mesh_of(jax, (DEVICES,), ("data",))
        spec = jax.sharding.PartitionSpec
        rows, whole = (jax.sharding.NamedSharding(mesh, s) for s in (spec("data"), spec()))
        jax.block_until_ready(jax.device_put(numpy.zeros(8, numpy.float32), rows))
        before = memory("VmRSS")
        zeros = numpy.zeros
        if strategy == "one":
            weights = [jax.numpy.asarray(zeros((width, width), numpy.float32)) for _ in range(4)]
            data = [jax.numpy.asarray(zeros((batch, width), numpy.float32)) for _ in range(2)]
        else:
            weights = [jax.device_put(zeros((width, width), numpy.float32), whole) for _ in range(4)]
            data = [jax.device_put(zeros((batch, width), numpy.float32), rows) for _ in range(2)]
        step = jax.jit(mlp_step(jax), donate_argnums=(0,))
        weights = step(weights, *data)
        jax.block_until_ready(weights)
        forget_peak()
        jax.block_until_ready(step(weights, *data))
        return memory("VmHWM") - before
    return measure


def rows():
    made = []
    for operation in ("psum", "all_gather", "ppermute", "all_to_all"):
        made.append(ProcessRow(f"{operation} 4 KiB on 8 devices", "jit(shard_map), 4 KiB in all", collective(operation, 4 << 10), BOTH,
                               unit="us", least={"jax": 10}))
    made.append(ProcessRow("all_gather 16 MiB on 8 devices", "jit(shard_map), 16 MiB in all", collective("all_gather", 16 << 20), BOTH,
                           unit="us", least={"jax": 5}))
    made.append(ProcessRow("psum 16 MiB on 8 devices", "jit(shard_map), 16 MiB in all", collective("psum", 16 << 20), BOTH, unit="us",
                           least={"jax": 1.5}))
    for width, batch, asked in ((64, 64, 8), (256, 256, 3), (512, 1024, 1.5)):
        made.append(ProcessRow(f"MLP {width} one device", f"4 layers, batch {batch}, the step of the rows below", mlp(width, batch, "one"),
                               BOTH, unit="us"))
        for strategy in ("dp", "fsdp"):
            made.append(ProcessRow(f"MLP {width} {strategy} 8 devices", f"4 layers, batch {batch}, jit with shardings",
                                   mlp(width, batch, strategy), BOTH, unit="us", least={"jax": asked}))
    made += [
        ProcessRow("GPT one device", "4 layers, width 128, batch 16 x 64, Adam", gpt(False), BOTH),
        ProcessRow("GPT on 4 x 2 devices", "the same step, data parallel over 4, Megatron over 2", gpt(True), BOTH,
                   least={"jax": 2, "of GPT one device": 1.2}),
        ProcessRow("memory of an MLP step on one device", "4 layers of 2048, batch 1024, peak above the baseline", step_memory("one"), BOTH,
                   unit="MB", repeat=1),
        ProcessRow("memory of an MLP step on 8 devices", "the same step, batch over 8 devices", step_memory("dp"), BOTH, unit="MB",
                   least={"of memory of an MLP step on one device": 1.3}, repeat=1),
        ProcessRow("compile GPT 48 layers for one device", "width 64, unrolled; trace included", gpt_compile(False), BOTH, repeat=1),
        ProcessRow("compile GPT 48 layers for 4 x 2 devices", "width 64, unrolled; trace included", gpt_compile(True), BOTH,
                   least={"jax": 3, "of compile GPT 48 layers for one device": 1.2}, repeat=1),
    ]
    return made
