"""Figures of fresh processes: imports, first calls, compile times, the disk cache, memory of training steps and loops."""

import os
import subprocess
import sys
import tempfile
import time

import numpy

from . import transformer
from .row import ProcessRow

BOTH = ("capibara", "jax")


def milliseconds(function):
    started = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - started)


def import_time(library, module):
    """Start-up time of an interpreter that imports nothing: the best of five."""
    name = {"capibara": "capibara.jax", "mlx": "mlx.core"}.get(library, library)
    code = f"import time; started = time.perf_counter(); import {name}; print(1e3 * (time.perf_counter() - started))"
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
               for _ in range(5))


def cpp_call(line):
    """A figure printed by the C++ program benchmarks/cpu/dispatch.cpp, in microseconds."""
    def measure(library, module):
        program = os.path.join(os.environ["CAPIBARA_BUILD"], "benchmarks", "dispatch")
        for text in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
            if text.startswith(line + "  "):
                return float(text.split()[-2])
        raise ValueError(f"dispatch prints no line {line!r}")
    return measure


# --- compiling ---------------------------------------------------------------------------------------------------------


def ten_operations(library, jax):
    jnp = jax.numpy
    x = jnp.asarray(numpy.linspace(0, 1, 1000, dtype=numpy.float32))
    jax.block_until_ready(x)
    function = jax.jit(lambda x: jnp.sum(jnp.exp(-x * x) * jnp.sin(x) + jnp.tanh(x) / (1.0 + x)))
    return milliseconds(lambda: jax.block_until_ready(function(x)))


def warm(jax):
    """Loads the code generator, as the first compilation of a process does."""
    jax.block_until_ready(jax.jit(lambda x: x * 2.0 + 1.0)(jax.numpy.ones(5)))


def arguments_of(jax, shape):
    state, tokens = transformer.inputs_of(shape)(numpy.random.default_rng(7))
    return jax.tree_util.tree_map(jax.numpy.asarray, state), jax.numpy.asarray(tokens)


def compile_step(jax, shape):
    arguments = arguments_of(jax, shape)
    warm(jax)
    return milliseconds(lambda: jax.jit(transformer.step_of(shape)(jax)).lower(*arguments).compile())


def small_shape(layers):
    return transformer.Shape(layers=layers, width=64, heads=4, vocabulary=256, batch=2, length=16)


def compile_layers(layers):
    return lambda library, jax: compile_step(jax, small_shape(layers))


def many_loops(jax, count):
    """A program of loops that each differ in a constant, so that none can share another's code."""
    def run(x):
        for number in range(count):
            bound, factor = 3 + number % 7, 1.0 + (number + 1) * 1e-6
            x = jax.lax.fori_loop(0, bound, lambda i, value: value * factor + 1e-3, x)
        return x
    return jax.jit(run)


def loops_growth(library, jax):
    """Time of 5000 loops over ten times the time of 500."""
    x = jax.numpy.float32(1)
    warm(jax)
    few = milliseconds(lambda: many_loops(jax, 500).lower(x).compile())
    many = milliseconds(lambda: many_loops(jax, 5000).lower(x).compile())
    return many / (10 * few)


def five_hundred_loops(library, jax):
    x = jax.numpy.float32(1)
    warm(jax)
    return milliseconds(lambda: many_loops(jax, 500).lower(x).compile())


def chain(name, count):
    """One function applied many times in a row."""
    def measure(library, jax):
        x = jax.numpy.asarray(numpy.linspace(0.1, 3, 1000, dtype=numpy.float32))
        warm(jax)
        function = getattr(jax.numpy, name)

        def run(value):
            for _ in range(count):
                value = function(value)
            return value
        return milliseconds(lambda: jax.jit(run).lower(x).compile())
    return measure


def gpt_compile(library, jax):
    return compile_step(jax, transformer.GPT2)


CACHED = """
import sys, time, numpy
import capibara.jax as jax
from suite import processes, transformer
shape = processes.small_shape(12)
lowered = jax.jit(transformer.step_of(shape)(jax)).lower(*processes.arguments_of(jax, shape))
started = time.perf_counter()
lowered.compile()
print(1e3 * (time.perf_counter() - started))
"""


def from_disk(library, jax):
    """The second of two processes that share an object-code cache folder; tracing is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CAPIBARA_CACHE=folder)
        times = [float(subprocess.run([sys.executable, "-c", CACHED], env=environment, check=True, capture_output=True,
                                      text=True).stdout) for _ in range(3)]
    return min(times[1:])


# --- memory ------------------------------------------------------------------------------------------------------------


def memory(field):
    """VmRSS or VmHWM of this process in MB."""
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no {field} in /proc/self/status")


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def step_memory(library, module):
    """Peak memory of a training step, after one warm-up step, above the process's memory before it made the parameters."""
    shape = transformer.GPT2
    before = memory("VmRSS")
    state, tokens = transformer.inputs_of(shape)(numpy.random.default_rng(7))
    if library == "torch":
        import libraries
        torch = module
        convert = torch.from_numpy
        state, tokens = libraries.map_tree(lambda value: convert(numpy.array(value)), state), convert(tokens)
        step, wait = transformer.torch_step(shape)(torch), lambda value: value
    else:
        state, tokens = module.tree_util.tree_map(module.numpy.asarray, state), module.numpy.asarray(tokens)
        step, wait = module.jit(transformer.step_of(shape)(module), donate_argnums=(0,)), module.block_until_ready
    state, loss = step(state, tokens)
    wait(loss)
    forget_peak()
    state, loss = step(state, tokens)
    wait((state, loss) if library != "torch" else loss)
    return memory("VmHWM") - before


def carry_in_place(library, jax):
    """Peak memory above the baseline of a scan that updates a donated 1 GiB carry one row at a time."""
    before = memory("VmRSS")
    carry = jax.numpy.zeros((1 << 14, 1 << 14), jax.numpy.float32)
    jax.block_until_ready(carry)

    def run(carry):
        def step(table, i):
            return jax.lax.dynamic_update_slice(table, jax.numpy.full((1, 1 << 14), 1.0, table.dtype) * i, (i, 0)), None
        return jax.lax.scan(step, carry, jax.numpy.arange(1000))[0]
    carry = jax.jit(run, donate_argnums=(0,))(carry)
    jax.block_until_ready(carry)
    return memory("VmHWM") - before


def rows():
    return [
        ProcessRow("import", "import capibara.jax, jax, torch, mlx.core, numpy", import_time,
                   ("capibara", "jax", "torch", "mlx", "numpy"), least={"most": 60}, repeat=1),
        ProcessRow("C++ jit call", "one array of 4 f32, from C++", cpp_call("jit, one array"), ("capibara",), unit="us", threads=1,
                   least={"most": 0.3}, repeat=1),
        ProcessRow("C++ eager add", "two arrays of 4 f32, from C++", cpp_call("eager add"), ("capibara",), unit="us", threads=1,
                   repeat=1),
        ProcessRow("first call of 10 operations", "compile and run, nothing compiled before", ten_operations, BOTH,
                   least={"most": 15, "jax": 1.0}),
        ProcessRow("compile 2 layers", "unrolled transformer step, 2 layers of width 64; trace included", compile_layers(2), BOTH,
                   least={"jax": 1.0}),
        ProcessRow("compile 16 layers", "unrolled transformer step, 16 layers of width 64; trace included", compile_layers(16),
                   BOTH, least={"jax": 1.0, "of compile 2 layers": 2}, repeat=2),
        ProcessRow("compile 500 loops", "500 distinct small loops in one program; trace included", five_hundred_loops, BOTH,
                   least={"jax": 1.0}, repeat=1),
        *[ProcessRow(f"compile {count} {name}", f"{count} times {name} of a vector of 1000 f32; trace included", chain(name, count), BOTH,
                     least={"jax": 2.0}) for name, count in (("sin", 400), ("log1p", 400), ("exp", 400), ("tanh", 400), ("sin", 2000))],
        ProcessRow("compile 5000 / 500 loops", "time per loop of 5000 over that of 500", loops_growth, ("capibara",), unit="x",
                   least={"most": 1.5}, repeat=1),
        ProcessRow("compile GPT-2 124M step", "12 layers, width 768, unrolled; trace included", gpt_compile, BOTH,
                   least={"jax": 3}, repeat=2),
        ProcessRow("second process", "executable of a 12-layer training step from the disk cache, trace excluded", from_disk,
                   ("capibara",), least={"most": 50}, disk_cache=True, repeat=1),
        ProcessRow("memory of GPT-2 124M step", "peak above the baseline, second step", step_memory, BOTH + ("torch",), unit="MB",
                   least={"jax": 1.0}, repeat=1),
        ProcessRow("memory of a 1 GiB carry", "peak above the baseline of a scan that updates it row by row", carry_in_place, BOTH,
                   unit="MB", least={"most": 1100}, repeat=1),
    ]
