"""Functions exported by jax, compiled to object files and run by a C program: the results are jax's."""

import os
import pathlib
import re
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from object_checks import check, code_bytes, compile_object, run_object, runs_here, write_exported
from object_programs import CASES, TOLERANCES, normal

@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_jax(tmp_path, name):
    f, *args = CASES[name]
    tolerance = TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("name", ["functions", "softmax", "bytes", "bfloat16", "pendulum", "life", "embedding", "scatters",
                                  "sorts", "matmuls", "matmul_types", "mlp_batch", "lqr", "convolutions"])
def test_each_target_gives_the_same(tmp_path, name, target):
    if not runs_here(target):
        pytest.skip(f"code for {target} does not run here")
    f, *args = CASES[name]
    tolerance = TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, target=target, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["softmax", "pendulum", "scatters", "mlp", "convolutions"])
def test_the_harness_is_clean_under_the_address_sanitizer(tmp_path, name):
    f, *args = CASES[name]
    check(tmp_path, f, *args, options=["-fsanitize=address", "-g"])


@pytest.mark.parametrize("name", ["functions", "scatters", "mlp_batch", "lqr"])
def test_several_levels_are_one_function(tmp_path, name):
    levels = "x86-64-v3,x86-64-v4"
    if not runs_here(levels):
        pytest.skip("code for x86-64-v3 does not run here")
    f, *args = CASES[name]
    check(tmp_path, f, *args, target=levels)
    dumped = subprocess.run(["objdump", "-d", str(tmp_path / "f.o")], capture_output=True, text=True, check=True).stdout
    assert "zmm" in dumped and "ymm" in dumped and "cpuid" in dumped
    symbols = subprocess.run(["nm", "-g", "--defined-only", str(tmp_path / "f.o")], capture_output=True, text=True)
    assert [line.split()[-1] for line in symbols.stdout.splitlines()] == ["f"]


@pytest.mark.parametrize("name, most", [("mlp", 60_000), ("lqr", 30_000)])
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_code_is_small(tmp_path, name, most, target):
    f, *args = CASES[name]
    compiled = compile_object(tmp_path, write_exported(tmp_path, f, args), target)
    assert compiled.returncode == 0, compiled.stderr
    assert 0 < code_bytes(tmp_path) < most


def test_the_header_names_each_leaf(tmp_path):
    def predict(params, x, *, scale):
        return {"y": x @ params["w"] + params["b"], "scaled": x * scale}

    params = {"w": normal(3, 2), "b": np.zeros(2, np.float32)}
    path = tmp_path / "f.exported"
    path.write_bytes(export.export(jax.jit(predict))(params, normal(4, 3), scale=jnp.float32(2)).serialize())
    compiled = compile_object(tmp_path, path, name="predict")
    assert compiled.returncode == 0, compiled.stderr
    header = (tmp_path / "f.h").read_text()
    for line in ["PREDICT_IN_ARGS_0_B = 0, /* inputs[0]: args[0]['b'], f32[2], 8 bytes",
                 "PREDICT_IN_ARGS_0_W = 1, /* inputs[1]: args[0]['w'], f32[3,2], 24 bytes",
                 "PREDICT_IN_ARGS_1 = 2, /* inputs[2]: args[1], f32[4,3], 48 bytes",
                 "PREDICT_IN_KWARGS_SCALE = 3, /* inputs[3]: kwargs['scale'], f32[], 4 bytes",
                 "PREDICT_OUT_RESULT_SCALED = 0, /* outputs[0]: result['scaled'], f32[4,3], 48 bytes",
                 "PREDICT_OUT_RESULT_Y = 1, /* outputs[1]: result['y'], f32[4,2], 32 bytes",
                 "void predict(const void *const *inputs, void *const *outputs, void *arena);"]:
        assert line in header
    assert re.search(r"#define PREDICT_ARENA_BYTES \d+\n", header)
    for language in ("c", "c++"):
        subprocess.run(["cc", "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                        str(tmp_path / "f.h")], check=True)


def test_functions_of_c_plus_plus_become_objects(tmp_path):
    program = pathlib.Path(os.environ["CAPIBARA_BUILD"]) / "tests" / "write_object_program"
    written = subprocess.run([str(program), str(tmp_path)], capture_output=True, text=True)
    assert written.returncode == 0, written.stderr
    first, refusal = written.stdout.splitlines()
    assert first == f"f {(tmp_path / 'f.o').stat().st_size}"
    assert "'weights_path'" in refusal
    table = np.arange(600, dtype=np.float32)
    assert (tmp_path / "g.bin").read_bytes() == table.tobytes()
    assert table.tobytes() not in (tmp_path / "g.o").read_bytes()
    header = (tmp_path / "f.h").read_text()
    for line in ["F_IN_ARGS_0_W = 0, /* inputs[0]: args[0].w, f32[3,2]", "F_IN_ARGS_0_B = 1, /* inputs[1]: args[0].b, f32[2]",
                 "F_IN_ARGS_2 = 3, /* inputs[3]: args[2], f32[2,3]", "F_INPUTS = 4",
                 "F_OUT_RESULT_0 = 0, /* outputs[0]: result[0], f32[2,2]"]:
        assert line in header
    w, b = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([7, 8], np.float32)
    x = np.array([[1, 0, 2], [0, 1, 3]], np.float32)
    y = np.tanh(x @ w + b)
    for got, want in zip(run_object(tmp_path, [w, b, x, x], [y, y]), [y * y, -y], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


CUSTOM_CALL = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @of_the_user(%arg0) {api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
COLLECTIVE = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize("text, words", [(CUSTOM_CALL, ["of_the_user"]), (COLLECTIVE, ["all_reduce"])])
def test_what_an_object_cannot_hold_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "f.mlir"
    path.write_text(text)
    refused = compile_object(tmp_path, path)
    assert refused.returncode != 0
    assert not (tmp_path / "f.o").exists()
    for word in words:
        assert word in refused.stderr, refused.stderr


@pytest.mark.parametrize("f, word", [(lambda x: jnp.linalg.eig(x)[0], "geev"), (lambda x: jax.scipy.linalg.schur(x)[0], "gees"),
                                     (lambda x: jax.scipy.linalg.hessenberg(x), "gehrd"),
                                     (lambda x: lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x), "gtsv")])
def test_decompositions_without_a_routine_are_refused_by_name(tmp_path, f, word):
    refused = compile_object(tmp_path, write_exported(tmp_path, f, (normal(4, 4),)))
    assert refused.returncode != 0
    assert f"lapack_s{word}_ffi" in refused.stderr
    assert not (tmp_path / "f.o").exists()


@pytest.mark.parametrize("target, words", [("x86-64-v9", ["x86-64-v9", "x86-64-v3"]),
                                           ("x86-64-v3,aarch64", ["x86-64-v3 before aarch64"])])
def test_targets_that_there_are_not_are_refused(tmp_path, target, words):
    f, *args = CASES["axpy"]
    refused = compile_object(tmp_path, write_exported(tmp_path, f, args), target)
    assert refused.returncode != 0
    for word in words:
        assert word in refused.stderr, refused.stderr
