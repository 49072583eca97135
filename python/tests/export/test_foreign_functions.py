"""XLA FFI handlers, compiled with jaxlib's headers: on capibara.jax, on jax with the plugin, and on XLA:CPU."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import capibara.jax as own
import jax as oracle
from capibara.jax.experimental import buffer_callback
from capibara.jax.extend.core import Primitive
from capibara.jax.interpreters import mlir

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("CAPIBARA_BUILD", HERE.parents[2] / "build" / "release"))
PROGRAMS = HERE / "foreign_programs.py"
LIBRARIES = {"capibara.jax": (["-m", "capibara"], {}), "plugin": ([], {"JAX_PLATFORMS": "capibara"}),
             "XLA:CPU": ([], {"JAX_PLATFORMS": "cpu"})}
NAMES = re.search(r"PROGRAMS = \[(.*)\]", PROGRAMS.read_text())[1].split(", ")

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")


@pytest.fixture(scope="module")
def handlers(tmp_path_factory):
    jax = pytest.importorskip("jaxlib")
    library = tmp_path_factory.mktemp("handlers") / "libhandlers.so"
    subprocess.run(["g++", "-std=c++17", "-w", "-shared", "-fPIC", f"-I{pathlib.Path(jax.__file__).parent / 'include'}",
                    HERE / "foreign_handlers.cpp", "-o", library], check=True)
    return library


@functools.cache
def answers(library, handlers):
    words, variables = LIBRARIES[library]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    environment |= variables | {"PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run([sys.executable, *words, PROGRAMS, handlers], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("program", NAMES)
def test_programs(library, program, handlers):
    if library == "plugin" and not (BUILD / "lib" / "libcapibara_pjrt.so").exists():
        pytest.skip("the plugin is not built")
    assert answers(library, handlers)[program] == ""


def plain(value):
    """An attribute's text without white space."""
    return re.sub(r"\s", "", value)


@pytest.mark.parametrize("value", [
    *(np.array(1, dtype) for dtype in (
        np.int8, np.uint16, np.int64, bool, np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.int2, ml_dtypes.int4,
        ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu)),
    np.array([[0.5, -2], [0.25, 3]], np.float32), np.arange(3), np.zeros((), own.dtypes.float0), np.float32(1.5), ml_dtypes.bfloat16(1),
    np.uint8(3), True, 7, "text", {"a": 1, "b c": np.int8(2)}])
def test_attributes_are_those_of_jax(value):
    texts = []
    for library in (oracle, own):
        lowered = library.jit(lambda x: library.ffi.ffi_call("some_target", x)(x, param=value)).lower(np.float32(0.5))
        call = next(op for function in lowered.compiler_ir("stablehlo").body.operations for block in function.body.blocks
                    for op in block.operations if op.OPERATION_NAME == "stablehlo.custom_call")
        texts.append(plain(str(call.attributes["mhlo.backend_config"]["param"])))
    assert texts[0] == texts[1]


def test_a_lowering_rule_calls_a_handler():
    primitive = Primitive("calls_a_handler")
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, own.ffi.ffi_lowering("some_target", operand_layouts=[(0, 1)], result_layouts=[None]))
    text = own.jit(primitive.bind).lower(np.ones((2, 3), np.float32)).as_text()
    assert re.search(r"@some_target.*operand_layouts = \[dense<\[0, 1\]>.*result_layouts = \[dense<\[1, 0\]>", text)


@pytest.mark.parametrize("options, attributes, words", [
    ({"legacy_backend_config": "12345"}, {}, "The use of the legacy_backend_config"),
    ({"custom_call_api_version": 2}, {"a": 1}, "The use of ffi_call attributes requires"),
    ({"result": None}, {}, "All elements of result_shape_dtypes.*position 0")])
def test_wrong_calls_are_refused_as_in_jax(options, attributes, words):
    for library in (oracle, own):
        x = np.ones(5, np.float32)
        with pytest.raises(ValueError, match=words):
            given = dict(options)
            library.jit(lambda x: library.ffi.ffi_call("t", given.pop("result", x), **given)(x, **attributes)).lower(x)


def test_calls_of_earlier_interfaces_are_written():
    for library in (oracle, own):
        call = library.jit(lambda x: library.ffi.ffi_call("t", x, custom_call_api_version=2, legacy_backend_config="12345")(x))
        assert 'backend_config = "12345"' in call.lower(np.ones(5, np.float32)).as_text()


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_a_buffer_callback_writes_its_results(dtype):
    seen = []

    def callback(context, out, x, *, y):
        seen.append((context.stage, x.shape, x.dtype, x.writeable, out[0].writeable))
        np.asarray(out[0])[...] = np.asarray(x).T
        np.asarray(out[1])[...] = np.asarray(y["a"]).sum()
        with pytest.raises(own.errors.JaxRuntimeError, match="GPU context is not available"):
            context.stream
    x, y = np.arange(6).reshape(2, 3).astype(dtype), np.arange(4, dtype=np.float32)
    types = own.ShapeDtypeStruct((3, 2), dtype), own.ShapeDtypeStruct((), np.float32)
    call = buffer_callback.buffer_callback(callback, types)
    for run in (call, own.jit(call)):
        first, second = run(x, y={"a": y})
        np.testing.assert_array_equal(np.asarray(first), x.T)
        assert float(second) == 6
    assert seen == [(buffer_callback.ExecutionStage.EXECUTE, (2, 3), np.dtype(dtype), False, True)] * 2


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_a_buffer_callback_is_batched(method):
    def callback(_, out, x, y):
        np.asarray(out)[...] = np.asarray(x) * 2 + np.asarray(y)
    call = buffer_callback.buffer_callback(callback, own.ShapeDtypeStruct((4,), np.float32), vmap_method=method)
    x, y = (np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32) for seed in (0, 1))
    np.testing.assert_array_equal(np.asarray(own.vmap(call)(x, y)), x * 2 + y)


def test_mistakes_in_buffer_callbacks():
    kept = []

    def run(callback):
        return np.asarray(buffer_callback.buffer_callback(callback, own.ShapeDtypeStruct((2,), np.float32))(np.ones(2, np.float32)))
    with pytest.raises(own.errors.JaxRuntimeError, match="ZeroDivisionError"):
        run(lambda context, out, x: 1 // 0)
    with pytest.raises(own.errors.JaxRuntimeError, match="must not return any values"):
        run(lambda context, out, x: 1)
    run(lambda context, out, x: kept.append(x))
    with pytest.raises(RuntimeError, match="after its callback returned"):
        np.asarray(kept[0])
    aliased = buffer_callback.buffer_callback(lambda _, out, x: kept.append((np.asarray(out).ctypes.data, np.asarray(x).ctypes.data)),
                                              own.ShapeDtypeStruct((2,), np.float32), input_output_aliases={0: 0})
    assert list(aliased(np.array([1, 2], np.float32))) == [1, 2] and kept[1][0] == kept[1][1]
