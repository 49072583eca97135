"""TPUv4Kernels: the fused kernels with common options, measuring each call.

Despite the name, every method runs on every device. tpu_kernels names the kernels of TPUs that a call becomes when compiled for them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capibara import _core, kernels
from capibara.jax import jit, lax, tree_util
from capibara.jax import numpy as jnp

if TYPE_CHECKING:
    from capibara.jax import Array
    from capibara.jax.typing import ArrayLike

_NO_KERNELS = {"tpu_kernels", "get_memory_usage", "get_tflops", "benchmark_kernels"}
_LEVELS = {"none": False, "standard": "auto", "aggressive": "optimal"}  # einsum's default order of steps


class TPUv4Kernels:
    """Fused kernels with common options, and the time and memory of the last call.

    precision: the type that kernels compute in, 'float32', 'bfloat16' or 'float16'. Floating operands are rounded to it; a single
        result array has the type of the first operand, each result of batch_operations the type of its own input.
    optimization_level: the order of einsum_optimize's steps if the call does not specify one. 'none': left to right; 'standard': as
        in einsum; 'aggressive': the optimal order.
    enable_xla_fusion: True compiles each call as one program, so that conversions fuse with the kernel; False runs its operations
        one by one. Only outside jit: inside, the enclosing function is compiled.
    memory_layout_optimization: True contracts transposed operands in place; False makes transposed copies first.
    seed: of the object's own key, used by dropout if a call passes no key.

    Each call outside jit waits for its result, to measure the time. Inside jit and under transforms nothing is measured.
    """

    def __init__(self, precision: str = "float32", optimization_level: str = "standard", enable_xla_fusion: bool = True,
                 memory_layout_optimization: bool = True, *, seed: int = 0) -> None:
        self._native = _core.tpu.TPUv4Kernels(str(precision), str(optimization_level), bool(enable_xla_fusion),
                                              bool(memory_layout_optimization), seed)
        self.precision, self.optimization_level = precision, optimization_level
        self.enable_xla_fusion, self.memory_layout_optimization = bool(enable_xla_fusion), bool(memory_layout_optimization)

    def __repr__(self):
        return (f"TPUv4Kernels(precision={self.precision!r}, optimization_level={self.optimization_level!r}, "
                f"enable_xla_fusion={self.enable_xla_fusion}, memory_layout_optimization={self.memory_layout_optimization})")

    # --- attention ---------------------------------------------------------------------------------------------------

    def flash_attention(self, query: ArrayLike, key: ArrayLike, value: ArrayLike, attention_mask: ArrayLike | None = None,
                        dropout_rate: float = 0.0, causal: bool = False, sequence_parallel: bool = False, *,
                        bias: ArrayLike | None = None, dropout_key: ArrayLike | None = None, **options: Any) -> Array:
        """kernels.flash_attention; without a dropout_key the object's own is used."""
        arrays = {"query": query, "key": key, "value": value, "attention_mask": attention_mask, "bias": bias}
        if dropout_rate > 0:
            arrays["dropout_key"] = self._native.next_key("flash_attention", "dropout_key") if dropout_key is None else dropout_key
        return self._run("flash_attention", arrays, {**options, "dropout_rate": dropout_rate, "causal": causal,
                                                     "sequence_parallel": sequence_parallel})

    def sparse_attention(self, query: ArrayLike, key: ArrayLike, value: ArrayLike,
                         sparsity_pattern: ArrayLike | str = "block_sparse", block_size: int = 64, **options: Any) -> Array:
        """kernels.sparse_attention."""
        arrays = {"query": query, "key": key, "value": value}
        return self._run("sparse_attention", arrays, {**options, "sparsity_pattern": sparsity_pattern, "block_size": block_size})

    # --- dense layers ------------------------------------------------------------------------------------------------

    def optimized_matmul(self, a: ArrayLike, b: ArrayLike, transpose_a: bool = False, transpose_b: bool = False,
                         precision: str | None = None, algorithm: str = "auto") -> Array:
        """kernels.optimized_matmul."""
        options = {"precision": precision or self.precision, "algorithm": algorithm}
        if self.memory_layout_optimization:
            return self._run("optimized_matmul", {"a": a, "b": b}, {**options, "transpose_a": transpose_a, "transpose_b": transpose_b},
                             rounded=False)

        def copied(a, b):
            a = lax.optimization_barrier(jnp.matrix_transpose(a)) if transpose_a else a
            b = lax.optimization_barrier(jnp.matrix_transpose(b)) if transpose_b else b
            return kernels.optimized_matmul(a, b, **options)

        return self._run("optimized_matmul", {"a": a, "b": b}, {}, function=copied,
                         rounded=False)

    def adaptive_matmul(self, a: ArrayLike, b: ArrayLike, precision: str | None = None, tpu_strategy: str = "auto") -> Array:
        """kernels.adaptive_matmul."""
        return self._run("adaptive_matmul", {"a": a, "b": b}, {"precision": precision or self.precision, "tpu_strategy": tpu_strategy},
                         rounded=False)

    def einsum_optimize(self, equation: str, operands: Sequence[ArrayLike], optimize: str | bool | None = None,
                        memory_efficient: bool = False, *, memory_limit: int | None = None) -> Array:
        """kernels.einsum_optimize."""
        optimize = _LEVELS[self.optimization_level] if optimize is None else optimize
        return self._run("einsum_optimize", {"operands": list(operands)}, {
            "equation": equation, "optimize": optimize, "memory_efficient": memory_efficient, "memory_limit": memory_limit,
            "precision": self.precision}, rounded=False)

    def batch_operations(self, operation_type: str, inputs: Sequence[ArrayLike],
                         parameters: Mapping[str, ArrayLike] | None = None, parallel_execution: bool = True) -> list[Array]:
        """kernels.batch_operations; an array is treated as the list of its rows, and the results are stacked."""
        stacked = not isinstance(inputs, (list, tuple))
        arrays = {"inputs": list(inputs), "parameters": dict(parameters or {})}
        names = {"eps": "epsilon", "scale": "weight"}  # names used by other libraries
        arrays["parameters"] = {names.get(name, name): value for name, value in arrays["parameters"].items()}
        epsilon = arrays["parameters"].pop("epsilon", None)  # a plain number: part of the program

        def call(inputs, parameters):
            low = tree_util.tree_map(lambda leaf: leaf.astype(self.precision), (inputs, parameters))
            given = low[1] if epsilon is None else {**low[1], "epsilon": float(epsilon)}
            results = kernels.batch_operations(operation_type, low[0], given, parallel_execution)
            return [result.astype(x.dtype) for x, result in zip(inputs, results)]

        results = self._run("batch_operations", arrays, {}, function=call, rounded=False)
        return jnp.stack(results) if stacked else results

    def fast_layer_norm(self, input_tensor: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None,
                        eps: float = 1e-5, memory_efficient: bool = False) -> Array:
        """kernels.fast_layer_norm."""
        arrays = {"x": input_tensor, "weight": weight, "bias": bias}
        return self._run("fast_layer_norm", arrays, {"eps": eps, "memory_efficient": memory_efficient})

    def fused_gelu_dropout(self, input_tensor: ArrayLike, dropout_rate: float = 0.1, training: bool = True,
                           inplace: bool = False, *, key: ArrayLike | None = None, approximate: bool = True) -> Array:
        """kernels.fused_gelu_dropout; the default key is the object's own. inplace deletes input_tensor, and is refused in jit."""
        arrays = {"x": input_tensor}
        if training and dropout_rate > 0:
            arrays["key"] = self._native.next_key("fused_gelu_dropout", "key") if key is None else key
        options = {"rate": dropout_rate, "training": training, "approximate": approximate}
        if inplace and self._native.is_staged([input_tensor]):
            return kernels.fused_gelu_dropout(**arrays, **options, inplace=True)  # raises an error with the reason
        return self._run("fused_gelu_dropout", arrays, options, donated=inplace)

    # --- experts, recurrences, codes ---------------------------------------------------------------------------------

    def moe_routing_kernel(self, tokens: ArrayLike, num_experts: int, top_k: int, load_balancing: bool = True,
                           precision: str | None = None, *, gate: ArrayLike | None = None, **options: Any) -> tuple[Array, ...]:
        """kernels.moe_routing_kernel; without a gate the tokens are logits [..., num_experts]."""
        return self._run("moe_routing_kernel", {"tokens": tokens, "gate": gate}, {
            **options, "num_experts": num_experts, "top_k": top_k, "load_balancing": load_balancing}, precision=precision)

    def mamba_ssm_kernel(self, inputs: ArrayLike, A_matrix: ArrayLike, B_matrix: ArrayLike, C_matrix: ArrayLike,
                         use_associative_scan: bool = True, **arrays: ArrayLike) -> Array:
        """kernels.mamba_ssm_kernel."""
        options = {name: arrays.pop(name) for name in ("delta_softplus",) if name in arrays}
        arrays = {"inputs": inputs, "A_matrix": A_matrix, "B_matrix": B_matrix, "C_matrix": C_matrix, **arrays}
        return self._run("mamba_ssm_kernel", arrays, {**options, "use_associative_scan": use_associative_scan})

    def vq_encode(self, inputs: ArrayLike, codebook: ArrayLike, distance_metric: str = "euclidean", **options: Any) -> Array:
        """kernels.vq_encode."""
        return self._run("vq_encode", {"inputs": inputs, "codebook": codebook}, {**options, "distance_metric": distance_metric})

    def spiking_neuron(self, inputs: ArrayLike, threshold: float = 1.0, leak_rate: float = 0.1, **options: Any) -> Array:
        """kernels.spiking_neuron."""
        return self._run("spiking_neuron", {"inputs": inputs}, {**options, "threshold": threshold, "leak_rate": leak_rate})

    # --- kernels of TPUs ---------------------------------------------------------------------------------------------

    def tpu_kernels(self, method: str, *operands: Any, **options: Any) -> list[str]:
        """The names of the kernels that a call of a method becomes where it is compiled for a TPU; no names: the plain program.

        The operands are arrays or their types (jax.ShapeDtypeStruct). A method may call a kernel several times.
        """
        if method.startswith("_") or method not in vars(TPUv4Kernels) or method in _NO_KERNELS:
            known = [name for name in vars(TPUv4Kernels) if not name.startswith("_") and name not in _NO_KERNELS]
            raise ValueError(f"tpu_kernels: expected a method that calls a kernel, one of {', '.join(known)} (argument 'method'), "
                             f"got {method!r}")
        leaves, structure = tree_util.tree_flatten((operands, options))
        traced = [place for place, leaf in enumerate(leaves) if hasattr(leaf, "shape")]

        def call(arrays):
            own = list(leaves)
            for place, array in zip(traced, arrays):
                own[place] = array
            operands, options = structure.unflatten(own)
            return getattr(self, method)(*operands, **options)

        return jit(call).lower([leaves[place] for place in traced])._tpu_kernels()

    # --- measurements ------------------------------------------------------------------------------------------------

    def get_memory_usage(self) -> float:
        """Peak gigabytes (10^9 bytes) of the last call: operands, result and temporaries."""
        return self._native.get_memory_usage()

    def get_tflops(self) -> float:
        """10^12 operations per second of the last call: its program's operations divided by its time."""
        return self._native.get_tflops()

    def benchmark_kernels(self, names: Sequence[str] | None = None, *, seconds: float = 0.2) -> dict[str, dict[str, float]]:
        """Times kernels on one problem each: {name: {'throughput', 'latency_ms', 'memory_efficiency', 'problem'}}.

        throughput is in 10^12 operations per second; latency_ms is the shortest of the calls that fit in `seconds`, at least three.
        memory_efficiency is the share of operands and result in the call's total memory: 1.0 without temporaries.
        """
        if isinstance(names, str):
            raise ValueError(f"benchmark_kernels: expected a list of names (argument 'names'), got the text {names!r}")
        return self._native.benchmark_kernels(None if names is None else [str(name) for name in names], seconds)

    def _run(self, method, arrays, options, *, function=None, precision=None, rounded=True, donated=False):
        """Calls a kernel with named arrays, compiled for their types, and measures it; traced calls are neither compiled nor measured."""
        given = {name: value for name, value in options.items() if hasattr(value, "shape")}  # operands too: segment ids, lists of blocks
        options = {name: value for name, value in options.items() if name not in given}
        arrays = {name: value for name, value in {**arrays, **given}.items() if value is not None}
        kernel = function or (lambda **operands: getattr(kernels, method)(**operands, **options))
        names = list(arrays)  # the kept state of a call must not hold its arrays
        leaves, structure = tree_util.tree_flatten([arrays[name] for name in names])
        made = None

        def call(leaves):
            nonlocal made
            results, made = tree_util.tree_flatten(kernel(**dict(zip(names, structure.unflatten(leaves)))))
            return results

        leaves = [jnp.asarray(leaf) for leaf in leaves]
        results = self._native.run(call, leaves, (precision or self.precision) if rounded else None, donated)
        return made.unflatten(results)
