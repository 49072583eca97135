"""Statements of the pages that a command can decide, each with the program that decides it.

    JAX_NUM_CPU_DEVICES=8 PYTHONPATH=build/release/python build/venv/bin/python tests/repo/statements.py    # all, as one JSON object

The sentence must be on the page, word by word, and its function must return without an error. Those in OTHER match the
patterns (`does not exist`, `there is no`, `not yet` ...), but no command can decide them; each has its reason.
"""
import inspect
import json
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(BUILD / "capibara"))
sys.path.append(str(ROOT / "tests" / "data"))

import recordings  # noqa: E402

STATEMENTS = []  # (page, sentence, function)


def states(page, *sentences):
    def keep(function):
        STATEMENTS.extend((page, sentence, function) for sentence in sentences)
        return function
    return keep


def capibara(*words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True).stdout


def raises(kind, function):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def lines_of(*paths):
    files = [file for path in paths for file in ([path] if path.suffix else path.rglob("*.py"))]
    return sum(len(file.read_text().splitlines()) for file in files)


def near(count, said):
    assert abs(count - said) <= 0.08 * said, f"{count}, not about {said}"


# --- README.md ----------------------------------------------------------------------------------------------------------


@states("README.md", "about 900 functions (`build/capibara library` lists them)")
def functions():
    near(int(re.search(r"^all +(\d+) functions$", capibara("library"), re.MULTILINE)[1]), 900)


@states("README.md", "`build/capibara show | run | check | compile | plan | coverage | library | launch | doctor | bench | demo | train | "
                     "sample | chat | serve | profile | checkpoint | top`")
def commands():
    said = "show run check compile plan coverage library launch doctor bench demo train sample chat serve profile checkpoint top".split()
    found = subprocess.run([COMMAND], capture_output=True, text=True)
    assert sorted(re.findall(r"^  (\w+)\b", found.stdout + found.stderr, re.MULTILINE)) == sorted([*said, "help"])


@states("README.md", "Tested on Debian 12, natively on aarch64 and x86_64.")
@states("docs/cpu.md", "Tested on real hardware, by `./run test` on each: aarch64 with NEON (Neoverse V1 and N1), and x86_64 with AVX-512")
def processors():
    """A benchmark run is kept for each."""
    for name in ("aarch64", "x86_64"):
        assert json.loads((ROOT / "docs" / "performance" / f"{name}.json").read_text())["machine"]["processor"].startswith(name)


@states("README.md", "every element type of jax 0.10.2, its promotion rules")
def element_types():
    import capibara.jax.numpy as ours
    import jax.numpy as theirs
    types = {name: getattr(theirs, name).dtype for name in dir(theirs) if type(getattr(theirs, name)) is type(theirs.int8)}
    assert len(types) > 40
    assert {name: dtype for name, dtype in types.items() if not hasattr(ours, name) or getattr(ours, name).dtype != dtype} == {}


# --- CONTRIBUTING.md ----------------------------------------------------------------------------------------------------


@states("CONTRIBUTING.md", "one in ten cases of tests marked `wide`", "`./run test` takes one case in ten, another run all of them")
def share():
    assert re.search(r"^SHARE = 10\b", (ROOT / "tools" / "run" / "counts.py").read_text(), re.MULTILINE)


@states("CONTRIBUTING.md", "The cpu backend is compared with the reference backend on 500 random programs in `./run test`.")
def random_programs():
    assert 'setting("CAPIBARA_RANDOM_PROGRAMS", 500)' in (ROOT / "tests/backends/cpu/random/random_programs_test.cpp").read_text()


@states("CONTRIBUTING.md", "33 bodies under 31 stacks of transforms")
@states("docs/how-it-works.md", "values, types and jaxpr text of 33 bodies under 31 stacks of transforms")
def bodies_and_stacks():
    records = re.findall(r"^record (\S+)", recordings.read("transforms.expected"), re.MULTILINE)
    bodies, stacks = ({record.rpartition("/")[index] for record in records} for index in (0, 2))
    assert (len(bodies), len(stacks)) in ((33, 31), (31, 33)), (len(bodies), len(stacks))


# --- docs/python.md -----------------------------------------------------------------------------------------------------


@states("docs/python.md", "`jax.experimental.sparse` has all of jax's formats: `BCOO` (coordinates) and `BCSR` (compressed rows)")
def sparse():
    from capibara.jax.experimental import sparse as module
    for name in ("BCOO", "BCSR", "COO", "CSR", "CSC", "sparsify"):
        assert hasattr(module, name), name


@states("docs/python.md", "`isinstance(key, jax.Array)` is false, functions of `jax.numpy` do not take them, and their lines in a jaxpr "
        "show words.")
def keys_of_generators():
    import capibara.jax as jax
    key = jax.random.key(0, impl="philox4x32")
    assert not isinstance(key, jax.Array) and len(jax.tree.leaves(key)) == 1
    raises(TypeError, lambda: jax.numpy.stack([key, key]))
    shown = str(jax.make_jaxpr(jax.random.bits)(key))
    assert "u32[2]" in shown and "key<" not in shown


@states("docs/python.md", "What is missing does not exist: `jax.numpy.name` raises `AttributeError` with the nearest name that does.")
def missing_names():
    import capibara.jax.numpy as jnp
    assert "sinh" in raises(AttributeError, lambda: jnp.sinhh)


@states("docs/python.md", "`jax.check_compatibility()` lists the missing names.")
def compatibility():
    import capibara.jax as jax
    answer = jax.check_compatibility()
    names = next(value for key, value in dict(answer).items() if "missing" in key)
    assert len(names) > 0


@states("docs/python.md", "Every setting of jax 0.10.2 is known")
def settings():
    import capibara.jax as ours
    import jax as theirs
    assert set(theirs.config.values) - set(ours.config.values) == set()


@states("docs/python.md", "The CPU compiler knows three `compiler_options`: `optimization_level`, `xla_backend_optimization_level` and "
                          "`xla_dump_to`")
def compiler_options():
    text = (ROOT / "src/backends/cpu/execution/options.cpp").read_text()
    table = text.partition("constexpr Option table[] = {")[2].partition("\n};")[0]
    found = sorted(re.findall(r'^    \{"(\w+)"', table, re.MULTILINE))
    assert found == ["optimization_level", "xla_backend_optimization_level", "xla_dump_to"]


@states("docs/python.md", "`core.custom_prim`, `core.custom_jit` | a primitive from its evaluation and rules; another name of `jit`")
def custom_jit():
    import capibara.jax as jax
    assert float(jax.core.custom_jit(lambda x: x * 2)(3.0)) == 6


# --- docs/accelerators.md, docs/sharding.md ---------------------------------------------------------------------------


@states("docs/accelerators.md", "there is no build of XLA, MLIR or protobuf here")
def no_foreign_build():
    text = " ".join(path.read_text().lower() for path in (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")))
    assert not re.search(r"(?:find_package|add_subdirectory|fetchcontent_declare)\([^)]*(?:protobuf|mlir|xla)", text)


@states("docs/accelerators.md", "The native CPU backend has as many devices as `JAX_NUM_CPU_DEVICES` says")
@states("docs/sharding.md", "makes the native CPU count as eight devices.")
def devices():
    import capibara.jax as jax
    assert len(jax.devices()) == int(os.environ["JAX_NUM_CPU_DEVICES"]) == 8


@states("docs/accelerators.md", "`jax.make_mesh` makes Explicit axes, as jax does; a `Mesh` that is written by hand has Auto ones")
@states("docs/sharding.md", "Along an Explicit axis, which `make_mesh` makes, the type of a value says how it is split: "
                            "`float32[8@data,4@model]`")
def explicit_axes():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    import numpy as np
    P, AxisType = jax.sharding.PartitionSpec, jax.sharding.AxisType
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    assert mesh.axis_types == (AxisType.Explicit,) * 2
    x = jax.device_put(jnp.zeros((8, 4)), jax.sharding.NamedSharding(mesh, P("data", "model")))
    assert str(jax.typeof(x)) == "float32[8@data,4@model]"
    assert jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model")).axis_types == (AxisType.Auto,) * 2


@states("docs/sharding.md", "`jit(in_shardings=)` refuses a committed argument that is split otherwise, as jax does",
        "`jit(in_shardings=...)` over Explicit axes brings an array that is committed to one device to them")
def input_shardings():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    P, AxisType = jax.sharding.PartitionSpec, jax.sharding.AxisType
    for types in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(types,) * 2)
        rows, columns = (jax.sharding.NamedSharding(mesh, P(*spec)) for spec in (("x",), (None, "y")))
        double = jax.jit(lambda a: a * 2, in_shardings=columns)
        assert "does not match" in raises(ValueError, lambda: double(jax.device_put(jnp.ones((8, 8)), rows)))
    assert double(jax.device_put(jnp.ones((8, 8)), jax.devices()[3])).sharding.spec == P(None, "y")


@states("docs/sharding.md", "`python/tests/sharding/output_sharding_programs.py` has 127 programs")
def output_shardings():
    answers = json.loads(recordings.read("output_sharding_answers.json"))
    assert len(answers) == 127, len(answers)


@states("docs/sharding.md", "`lax.ragged_all_to_all` is a composition",
        "`psend` and `precv`, which jax has for GPUs alone, are `ppermute` in two steps")
def exchanges():
    import capibara.jax as jax
    for name in ("ragged_all_to_all", "psend", "precv"):
        assert hasattr(jax.lax, name), name
    assert "ragged_all_to_all" not in capibara("coverage")


@states("docs/sharding.md", "A CPU device has the memories that XLA's has: `device`, `pinned_host` and `unpinned_host`")
def memories():
    import capibara.jax as jax
    assert {memory.kind for memory in jax.devices()[0].addressable_memories()} == {"device", "pinned_host", "unpinned_host"}


# --- docs/kernels.md, docs/ignored.md -----------------------------------------------------------------------------------


@states("docs/kernels.md", "whole along their sequence, are computed as without it.")
@states("docs/ignored.md", "`kernels.flash_attention(sequence_parallel=)`")
def sequence_parallel():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    from capibara import kernels
    x = jnp.ones((1, 2, 8, 4))
    one = lambda flag: kernels.flash_attention(x, x, x, causal=True, sequence_parallel=flag)  # noqa: E731
    assert (one(True) == one(False)).all()
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec(None, None, "x")
    x = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    assert one(True).addressable_shards[0].data.shape == (1, 2, 1, 4)


@states("docs/kernels.md", "a traced function without a mesh is refused where\n  there are several devices")
@states("docs/ignored.md", "`kernels.adaptive_matmul(tpu_strategy='collective')`")
def collective_in_jit():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    from capibara import kernels
    product = jax.jit(lambda a: kernels.adaptive_matmul(a, a, tpu_strategy="collective"))
    with jax.set_mesh(jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))):
        assert "psum" in str(jax.make_jaxpr(product)(jnp.ones((8, 8))))
    try:
        product(jnp.ones((8, 8)))
    except ValueError as error:
        assert "needs a mesh in context" in str(error)
    else:
        raise AssertionError("it was computed")


# --- docs/cpu.md, docs/how-it-works.md, docs/operate.md, docs/processes.md ---------------------------------------------


@states("docs/cpu.md", "`baseline`, `avx2`, `avx512`, `vnni` or `amx`")
def levels():
    texts = " ".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp") if "CAPIBARA_CPU_LEVEL" in path.read_text())
    for name in ("baseline", "avx2", "avx512", "vnni", "amx"):
        assert f'"{name}"' in texts, name


@states("docs/how-it-works.md", "`_check_errors.py`; about 620 lines)", "`numpy/_ufuncs.py`; about 220 lines)",
        "`example_libraries`; about 1,200 lines)")
def python_lines():
    package = ROOT / "python" / "capibara" / "jax"
    experimental = package / "experimental"
    near(lines_of(*(experimental / f"{name}.py" for name in ("checkify", "_check_rules", "_check_errors"))), 620)
    near(lines_of(package / "numpy" / "_ufuncs.py"), 220)
    scipy = package / "scipy"
    near(lines_of(scipy / "optimize", scipy / "sparse", experimental / "ode.py", package / "example_libraries"), 1200)


@states("docs/how-it-works.md", "An empty slot is a rule that does not exist; `capibara coverage` prints the table")
def coverage():
    assert re.search(r"^add\b.*\bcompiled\b", capibara("coverage"), re.MULTILINE)


@states("docs/processes.md", "| `initialization_timeout` | 300 s |", "| `heartbeat_timeout_seconds` | 10 s (jax: 100) |",
        "| `shutdown_timeout_seconds` | 300 s |")
def timeouts():
    import capibara.jax as ours
    import jax as theirs
    defaults = {name: parameter.default for name, parameter in inspect.signature(ours.distributed.initialize).parameters.items()}
    names = ("initialization_timeout", "heartbeat_timeout_seconds", "shutdown_timeout_seconds")
    assert [defaults[name] for name in names] == [300, 10, 300]
    assert inspect.signature(theirs.distributed.initialize).parameters["heartbeat_timeout_seconds"].default == 100


# --- docs/tpu.md --------------------------------------------------------------------------------------------------------


@states("docs/tpu.md", "450 plans, best first (modelled):", "fsdp=16 4 minimal large 9.17 242253 65.1 %")
def plans():
    text = " ".join(capibara("plan", "--model", "1.3b", "--tpu", "v5e-16", "--seq", "2048", "--search").split())
    assert "450 plans" in text and "fsdp=16 4 minimal large 9.17 242253 65.1 %" in text


@states("docs/tpu.md", "1150 plans of 70B over 256 chips")
def larger_plans():
    assert "1150 plans" in capibara("plan", "--model", "llama3.1-70b", "--tpu", "v6e-256", "--seq", "8192", "--search")


OTHER = {  # (page, sentence or part of it): why no command can decide it
    ("README.md", "Not there yet: a run on a TPU."): "no TPU is here",
    ("docs/accelerators.md", "Not tested yet: running on several GPUs, TPUs."): "no such devices are here",
    ("docs/packages.md", "Wheels for other Pythons, for aarch64 and for Debian 13 are not built or tried yet; there is no wheel for "
                         "the stable ABI."): "what was not done",
    ("docs/operate.md", "There are no renames in such a store"): "of Google's stores; tests/io/checkpoint/test_store.py saves to one",
    ("docs/operate.md", "A step without it does not exist, and is removed when its number"): "tests/io/checkpoint/test_store.py",
    ("docs/sharding.md", "There are no threads per device and nothing waits."): "how a program is compiled",
    ("docs/tpu-facts.md", "no such figure found"): "of the vendor's pages",
    ("docs/tpu-facts.md", "no such operation"): "of libtpu, which exists for x86_64 alone",
    ("docs/python.md", "those that control XLA or parts that do not exist here warn once when they are set."): "tests/repo/test_ignored.py",
}


def decide():
    """{statement number: None, or what went wrong}."""
    found, done = {}, {}
    for number, (_, _, function) in enumerate(STATEMENTS):
        if function not in done:
            try:
                function()
                done[function] = None
            except Exception:  # a failed assertion, or a program that does not run
                done[function] = traceback.format_exc(limit=-2)
        found[number] = done[function]
    return found


if __name__ == "__main__":
    json.dump(decide(), sys.stdout)
