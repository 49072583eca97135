"""The blocks of seed 004, TPUv4Kernels, each as a test; README.md says which block is where."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara import kernels  # noqa: E402
from capibara.core.kernels import TPUv4Kernels  # noqa: E402


def needs(name):
    return pytest.mark.skipif(not hasattr(kernels, name), reason=f"capibara.kernels has no {name}")


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def close(got, want, tolerance):
    np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=tolerance, atol=tolerance)


@pytest.fixture
def tpu_kernels():
    return TPUv4Kernels(
        precision="bfloat16",
        optimization_level="aggressive",
        enable_xla_fusion=True,
        memory_layout_optimization=True
    )


def plain_attention(q, k, v, mask):
    logits = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jax.nn.softmax(jnp.where(mask, logits, -jnp.inf)) @ v


# --- block 1: attention ----------------------------------------------------------------------------------------------


@needs("flash_attention")
def test_flash_attention(tpu_kernels, capsys):
    q_tensor, k_tensor, v_tensor = (draw(i, 2, 4, 96, 32) for i in range(3))
    mask = jax.random.bernoulli(jax.random.key(9), 0.9, (2, 1, 96, 96))
    flash_attention_result = tpu_kernels.flash_attention(
        query=q_tensor,
        key=k_tensor,
        value=v_tensor,
        attention_mask=mask,
        dropout_rate=0.1,
        causal=True,
        sequence_parallel=True
    )

    print(f"Attention output shape: {flash_attention_result.shape}")
    print(f"Memory usage: {tpu_kernels.get_memory_usage():.1f}GB")
    print(f"TFLOPS achieved: {tpu_kernels.get_tflops():.1f}")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Attention output shape: (2, 4, 96, 32)"
    assert lines[1].endswith("GB") and float(lines[2].split()[-1]) >= 0
    assert flash_attention_result.dtype == q_tensor.dtype
    arrays = 4 * q_tensor.nbytes + mask.nbytes
    assert arrays <= tpu_kernels.get_memory_usage() * 1e9 < 100 * arrays
    assert tpu_kernels.get_tflops() > 0

    # Without dropout it is attention, up to bfloat16.
    seen = mask & jnp.tril(jnp.ones((96, 96), bool))
    got = tpu_kernels.flash_attention(q_tensor, k_tensor, v_tensor, attention_mask=mask, causal=True)
    close(got, plain_attention(q_tensor, k_tensor, v_tensor, seen), 4e-2)
    # Each call draws from the object's own key, unless the caller passes one.
    drop = lambda **key: np.asarray(tpu_kernels.flash_attention(q_tensor, k_tensor, v_tensor, dropout_rate=0.5, **key))
    assert not np.array_equal(drop(), drop())
    assert np.array_equal(drop(dropout_key=jax.random.key(1)), drop(dropout_key=jax.random.key(1)))
    with pytest.raises(ValueError, match="inside jit.*'dropout_key'"):
        jax.jit(lambda q: tpu_kernels.flash_attention(q, k_tensor, v_tensor, dropout_rate=0.5))(q_tensor)


# --- block 2: matmuls ------------------------------------------------------------------------------------------------


def test_matrix_operations(tpu_kernels):
    matrix_a, matrix_b = draw(0, 64, 48), draw(1, 32, 48)
    matmul_result = tpu_kernels.optimized_matmul(
        a=matrix_a,
        b=matrix_b,
        transpose_a=False,
        transpose_b=True,
        precision="bfloat16",
        algorithm="tpu_optimized"
    )
    assert matmul_result.shape == (64, 32) and matmul_result.dtype == jnp.float32
    close(matmul_result, matrix_a.astype("bfloat16").astype("float32") @ matrix_b.T.astype("bfloat16").astype("float32"), 1e-5)
    assert tpu_kernels.get_memory_usage() * 1e9 >= matrix_a.nbytes + matrix_b.nbytes + matmul_result.nbytes

    tensor1, tensor2 = draw(2, 2, 3, 40, 16), draw(3, 2, 3, 24, 16)
    einsum_result = tpu_kernels.einsum_optimize(
        equation="bhnd,bhkd->bhnk",
        operands=[tensor1, tensor2],
        optimize="optimal",
        memory_efficient=True
    )
    close(einsum_result, jnp.einsum("bhnd,bhkd->bhnk", tensor1, tensor2), 5e-2)

    batch_tensors, norm_params = [draw(i, 5 + i, 16) for i in range(4)], {"weight": draw(8, 16), "bias": draw(9, 16), "eps": 1e-5}
    batch_ops = tpu_kernels.batch_operations(
        operation_type="layer_norm",
        inputs=batch_tensors,
        parameters=norm_params,
        parallel_execution=True
    )
    assert len(batch_ops) == 4
    for x, got in zip(batch_tensors, batch_ops):
        close(got, kernels.layer_norm(x, norm_params["weight"], norm_params["bias"]), 5e-2)
    # One array is taken as the list of its rows.
    stacked = TPUv4Kernels().batch_operations("softmax", draw(0, 3, 4, 16))
    close(stacked, jax.nn.softmax(draw(0, 3, 4, 16)), 1e-6)


# --- block 3: kernels ------------------------------------------------------------------------------------------------


@needs("moe_routing_kernel")
def test_moe_routing_kernel(tpu_kernels):
    input_tokens = draw(0, 64, 32)  # logits: no gate
    moe_routing_result = tpu_kernels.moe_routing_kernel(
        tokens=input_tokens,
        num_experts=32,
        top_k=4,
        load_balancing=True,
        precision="bfloat16"
    )
    rounded = input_tokens.astype("bfloat16").astype("float32")
    assert np.array_equal(np.asarray(moe_routing_result.experts), np.asarray(jax.lax.top_k(rounded, 4)[1]))
    close(moe_routing_result.weights.sum(-1), np.ones(64), 1e-2)
    assert int(moe_routing_result.load.sum()) == 64 * 4
    gate = draw(1, 16, 32)
    routed = TPUv4Kernels().moe_routing_kernel(draw(2, 64, 16), 32, 4, gate=gate)
    assert np.array_equal(np.asarray(routed.experts), np.asarray(jax.lax.top_k(draw(2, 64, 16) @ gate, 4)[1]))


def test_norm_and_activation(tpu_kernels):
    hidden_states, norm_weight, norm_bias = draw(0, 8, 64), draw(1, 64), draw(2, 64)
    layer_norm_result = tpu_kernels.fast_layer_norm(
        input_tensor=hidden_states,
        weight=norm_weight,
        bias=norm_bias,
        eps=1e-5,
        memory_efficient=True
    )
    close(layer_norm_result, kernels.layer_norm(hidden_states, norm_weight, norm_bias), 5e-2)

    ffn_intermediate = draw(3, 128, 256)
    values = np.asarray(jax.nn.gelu(ffn_intermediate))
    fused_activation = tpu_kernels.fused_gelu_dropout(
        input_tensor=ffn_intermediate,
        dropout_rate=0.1,
        training=True,
        inplace=True
    )
    assert ffn_intermediate.is_deleted()
    got = np.asarray(fused_activation)
    assert 0.08 < (got == 0).mean() < 0.12
    close(got[got != 0], values[got != 0] / 0.9, 5e-2)


def test_dropout_of_the_own_key_is_new_in_every_call_and_refused_in_jit(tpu_kernels):
    x = draw(0, 64, 64)
    zeros = lambda **key: np.asarray(tpu_kernels.fused_gelu_dropout(x, 0.5, **key)) == 0
    first, second = zeros(), zeros()
    assert not np.array_equal(first, second)
    assert np.array_equal(zeros(key=jax.random.key(1)), zeros(key=jax.random.key(1)))
    assert np.array_equal(first, np.asarray(TPUv4Kernels("bfloat16").fused_gelu_dropout(x, 0.5)) == 0)  # the same seed
    for staged in (lambda x: tpu_kernels.fused_gelu_dropout(x, 0.5), lambda _: tpu_kernels.fused_gelu_dropout(x, 0.5)):
        with pytest.raises(ValueError, match="inside jit.*'key'"):
            jax.jit(staged)(x)
    with pytest.raises(ValueError, match="inside jit.*'key'"):
        jax.lax.scan(lambda c, v: (c, tpu_kernels.fused_gelu_dropout(v, 0.5)), 0, x)
    # Outside jit a derivative draws like a call.
    gradients = [np.asarray(jax.grad(lambda x: tpu_kernels.fused_gelu_dropout(x, 0.5).sum())(x)) == 0 for _ in range(2)]
    assert 0.4 < gradients[0].mean() < 0.6 and not np.array_equal(*gradients)
    inside = jax.jit(lambda x, key: tpu_kernels.fused_gelu_dropout(x, 0.5, key=key))
    assert np.array_equal(np.asarray(inside(x, jax.random.key(1))) == 0, zeros(key=jax.random.key(1)))
    with pytest.raises(ValueError, match="donate_argnums"):
        jax.jit(lambda x: tpu_kernels.fused_gelu_dropout(x, 0.5, inplace=True, key=jax.random.key(0)))(x)


# --- block 4: measurements -------------------------------------------------------------------------------------------


def check_benchmark(kernel_benchmark, names, capsys):
    assert list(kernel_benchmark) == names
    print("🏆 Kernel Performance:")
    for kernel, metrics in kernel_benchmark.items():
        print(f"{kernel}:")
        print(f"  Throughput: {metrics['throughput']:.1f} TFLOPS")
        print(f"  Latency: {metrics['latency_ms']:.2f}ms")
        print(f"  Memory efficiency: {metrics['memory_efficiency']:.1%}")
        assert metrics["throughput"] > 0 and metrics["latency_ms"] > 0 and 0 < metrics["memory_efficiency"] <= 1
    assert capsys.readouterr().out.count("TFLOPS") == len(names)


@needs("flash_attention")
def test_benchmark(tpu_kernels, capsys):
    kernel_benchmark = tpu_kernels.benchmark_kernels([
        "flash_attention",
        "optimized_matmul",
        "einsum_optimize",
        "fused_gelu_dropout"
    ])
    check_benchmark(kernel_benchmark, ["flash_attention", "optimized_matmul", "einsum_optimize", "fused_gelu_dropout"], capsys)


def test_benchmark_of_dense_pieces(capsys):
    names = ["optimized_matmul", "adaptive_matmul", "einsum_optimize", "batch_operations", "fast_layer_norm", "fused_gelu_dropout"]
    found = TPUv4Kernels().benchmark_kernels(names, seconds=0.05)
    check_benchmark(found, names, capsys)
    # The operations of a matmul are known: throughput and latency agree.
    matmul = found["optimized_matmul"]
    assert matmul["problem"] == "1024 x 1024 x 1024"
    assert matmul["throughput"] * 1e12 * matmul["latency_ms"] / 1e3 == pytest.approx(2 * 1024**3, rel=0.01)
    with pytest.raises(ValueError, match="flash_attention, sparse_attention.*got 'magic'"):
        TPUv4Kernels().benchmark_kernels(["magic"])
    with pytest.raises(ValueError, match="a list of names"):
        TPUv4Kernels().benchmark_kernels("optimized_matmul")


# --- options ---------------------------------------------------------------------------------------------------------


def test_measurements_are_of_the_last_call():
    own = TPUv4Kernels()
    for ask in (own.get_memory_usage, own.get_tflops):
        with pytest.raises(ValueError, match="no call of this object has been measured"):
            ask()
    small, large = jnp.ones((8, 8)), jnp.ones((512, 512))
    own.optimized_matmul(large, large)
    memory = own.get_memory_usage()
    assert memory * 1e9 >= 3 * large.nbytes
    own.optimized_matmul(small, small)
    assert 3 * small.nbytes <= own.get_memory_usage() * 1e9 < 3 * large.nbytes
    before = own.get_tflops(), own.get_memory_usage()
    jax.jit(lambda x: own.optimized_matmul(x, x))(large)  # not measured
    assert (own.get_tflops(), own.get_memory_usage()) == before


def test_options_do_what_they_say():
    a, b = draw(0, 64, 300), draw(1, 64, 300)
    exact = np.asarray(a, "float64") @ np.asarray(b, "float64").T
    error = lambda **options: np.abs(np.asarray(TPUv4Kernels(**options).optimized_matmul(a, b, transpose_b=True)) - exact).max()
    assert error(precision="float32") < 1e-3 < error(precision="bfloat16")
    for options in ({"enable_xla_fusion": False}, {"memory_layout_optimization": False}, {"optimization_level": "none"}):
        assert error(**options) < 1e-3
    text = lambda **options: str(jax.make_jaxpr(
        lambda a, b: TPUv4Kernels(**options).optimized_matmul(a, b, transpose_b=True))(a, b))
    assert "transpose[" not in text() and "transpose[" in text(memory_layout_optimization=False)
    chain = [jnp.ones((40, 2)), jnp.ones((2, 40)), jnp.ones((40, 2))]
    steps = lambda level: str(jax.make_jaxpr(
        lambda *xs: TPUv4Kernels(optimization_level=level).einsum_optimize("ij,jk,kl->il", xs))(*chain))
    assert "[40,40]" in steps("none") and "[40,40]" not in steps("aggressive")
    for wrong, words in (({"precision": "float8"}, "'float32', 'bfloat16', 'float16' .argument 'precision'., got 'float8'"),
                         ({"optimization_level": "max"}, "'none', 'standard', 'aggressive' .argument 'optimization_level'.")):
        with pytest.raises(ValueError, match=words):
            TPUv4Kernels(**wrong)


def test_calls_one_by_one_have_the_values_of_compiled_ones():
    x, key = draw(0, 33, 64), jax.random.key(4)
    for fused in (True, False):
        own = TPUv4Kernels(enable_xla_fusion=fused)
        close(own.fused_gelu_dropout(x, 0.3, key=key), kernels.fused_gelu_dropout(x, 0.3, key), 1e-6)
        close(own.fast_layer_norm(x), kernels.fast_layer_norm(x), 1e-5)
        assert own.get_memory_usage() > 0 and own.get_tflops() > 0


def test_results_have_the_type_of_the_first_operand(tpu_kernels):
    x, weight, bias = draw(0, 4, 16).astype("float16"), draw(1, 16), draw(2, 16)
    assert tpu_kernels.fast_layer_norm(x, weight, bias).dtype == jnp.float16
    assert [y.dtype for y in tpu_kernels.batch_operations("rms_norm", [x, draw(3, 2, 16)], {"weight": weight})] == [
        jnp.float16, jnp.float32]


def test_methods_under_transforms():
    x, w = draw(0, 4, 16), draw(1, 16, 8)
    own = TPUv4Kernels()
    got = jax.vmap(jax.grad(jax.jit(lambda v: (own.fast_layer_norm(own.optimized_matmul(v[None], w)) ** 2)[0, 0])))(x)
    want = jax.vmap(jax.grad(lambda v: (kernels.fast_layer_norm(v[None] @ w) ** 2)[0, 0]))(x)
    close(got, want, 1e-5)


def test_module_path_and_arrays_of_other_libraries():
    from capibara.core.kernels.tpu_v4_wrappers import TPUv4Kernels as same
    assert same is TPUv4Kernels
    close(TPUv4Kernels().optimized_matmul(np.ones((3, 4), "float32"), np.ones((4, 2), "float32")), np.full((3, 2), 4.0), 1e-6)
    # Available from the package without a separate import.
    text = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {MODULES!r}); import capibara; "
                           "print(capibara.core.kernels.TPUv4Kernels().precision)"], check=True, capture_output=True, text=True).stdout
    assert text.strip() == "float32"


def test_names_of_the_kernels_of_tpus():
    own, x = TPUv4Kernels("bfloat16"), draw(0, 4, 16)
    q = jax.ShapeDtypeStruct((1, 4, 64, 32), jnp.bfloat16)
    assert own.tpu_kernels("flash_attention", q, q, q, causal=True) == ["capibara_flash_attention"]
    assert own.tpu_kernels("flash_attention", q, q, q, dropout_rate=0.5, dropout_key=jax.random.key(0)) == []
    assert own.tpu_kernels("fast_layer_norm", x, draw(1, 16), draw(2, 16)) == ["capibara_layer_norm"]
    key = jax.random.key(0)
    assert own.tpu_kernels("fused_gelu_dropout", x, 0.1, key=key) == ["capibara_gelu_dropout"]
    assert own.tpu_kernels("fused_gelu_dropout", x, 0.1, key=key, approximate=False) == []
    assert own.tpu_kernels("vq_encode", x, draw(1, 8, 16)) == ["capibara_vq_encode"]
    assert own.tpu_kernels("optimized_matmul", x, draw(1, 16, 8)) == []
    assert TPUv4Kernels("float16").tpu_kernels("vq_encode", x, draw(1, 8, 16)) == []  # no type of TPU kernels
    with pytest.raises(ValueError, match=r"tpu_kernels: expected a method that calls a kernel.*got 'magic'"):
        own.tpu_kernels("magic")
