"""Types of capibara.kernels. Made by tools/python/make_stubs.py."""
from typing import NamedTuple
from capibara._core import Array
from capibara.jax.typing import ArrayLike

from collections.abc import Mapping, Sequence
from typing import TypeVar

_Tree = TypeVar("_Tree")

def adam_update(parameters: _Tree, gradients: _Tree, means: _Tree, squares: _Tree, step: ArrayLike, *, learning_rate: ArrayLike = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0) -> tuple[_Tree, _Tree, _Tree]:
    """One step of Adam on all arrays of trees at once: new parameters, means and squares."""
def batch_operations(operation_type: str, inputs: Sequence[ArrayLike], parameters: Mapping[str, ArrayLike] | None = None, parallel_execution: bool = True) -> list[Array]:
    """One operation on each array of a list: 'layer_norm', 'rms_norm', 'softmax', 'gelu' or 'matmul'."""
def adaptive_matmul(a: ArrayLike, b: ArrayLike, *, precision: str = 'default', tpu_strategy: str = 'auto') -> Array:
    """The matrix product over the last two axes, leading ones being batches, computed where its operands are."""
def cross_entropy(logits: ArrayLike, labels: ArrayLike, *, label_smoothing: float = 0.0, ignore_index: int = -100) -> Array:
    """Minus the logarithm of the softmax probability of each row's label; the probabilities are never stored."""
def einsum_optimize(equation: str, operands: ArrayLike | Sequence[ArrayLike], *, optimize: str | bool | Sequence[tuple[int, ...]] = 'auto', memory_efficient: bool = False, memory_limit: int | None = None, precision: str = 'default') -> Array:
    """einsum with a bound on what is stored between its steps."""
def einsum_plan(equation: str, operands: ArrayLike | Sequence[ArrayLike], *, optimize: str | bool | Sequence[tuple[int, ...]] = 'auto', memory_efficient: bool = False, memory_limit: int | None = None) -> str:
    """What einsum_optimize does: the labels it slices along, and its steps, as a text of one line each."""
def fast_layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, eps: float = 1e-05, memory_efficient: bool = False) -> Array:
    """Layer normalization with optional weight and bias."""
def flash_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, attention_mask: ArrayLike | None = None, dropout_rate: float = 0.0, causal: bool = False, sequence_parallel: bool = False, *, bias: ArrayLike | None = None, scale: float | None = None, window: str | None = None, sinks: int = 0, segment_ids: ArrayLike | None = None, key_segment_ids: ArrayLike | None = None, query_offset: int = 0, dropout_key: ArrayLike | None = None) -> Array:
    """softmax(scale query key^T + bias) value by blocks, with masks, windows, segments and dropout."""
def fused_gelu_dropout(x: ArrayLike, rate: float = 0.1, key: ArrayLike | None = None, *, training: bool = True, inplace: bool = False, approximate: bool = True) -> Array:
    """GELU, of which a share is set to zero and the rest scaled by 1 / (1 - rate)."""
def grouped_matmul(x: ArrayLike, weights: ArrayLike, group_sizes: ArrayLike, *, transpose_weights: bool = False) -> Array:
    """Matmul of each group of rows with its own matrix: [..., rows, inner] x [groups, inner, columns]; rows are sorted by group."""
def kmeans(inputs: ArrayLike, clusters: int, key: ArrayLike, *, iterations: int = 10, init: str = 'k-means++') -> tuple[Array, Array, Array]:
    """Clusters of vectors by Lloyd's iterations: the codebook, each vector's code, the sum of squared distances."""
def kmeans_plus_plus(inputs: ArrayLike, clusters: int, key: ArrayLike) -> Array:
    """Vectors drawn by their squared distance from those drawn before: where k-means starts."""
def layer_norm(x: ArrayLike, scale: ArrayLike, bias: ArrayLike, *, epsilon: float = 1e-05) -> Array:
    """Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis."""
def linear_recurrence(a: ArrayLike, b: ArrayLike, initial: ArrayLike | None = None, *, axis: int = 0, reverse: bool = False) -> Array:
    """The linear recurrence h[t] = a[t] * h[t - 1] + b[t] along an axis."""
def mamba_ssm_kernel(inputs: ArrayLike, A_matrix: ArrayLike, B_matrix: ArrayLike, C_matrix: ArrayLike, *, delta: ArrayLike | None = None, D: ArrayLike | None = None, z: ArrayLike | None = None, delta_bias: ArrayLike | None = None, delta_softplus: bool = False, initial_state: ArrayLike | None = None, segment_ids: ArrayLike | None = None, use_associative_scan: bool = True) -> Array:
    """Mamba's state space model; without delta every step is 1, without use_associative_scan it is a plain loop."""
class _MoeFeedForwardResult(NamedTuple):
    output: Array
    aux_loss: Array
def moe_feed_forward(tokens: ArrayLike, gate: ArrayLike, up: ArrayLike, down: ArrayLike, top_k: int, *, gate_weights: ArrayLike | None = None, activation: str = 'silu', load_balancing: bool = True, renormalize: bool = True, capacity_factor: float | None = None) -> _MoeFeedForwardResult:
    """The feed-forward layer of a mixture of experts: routing, a matmul for each expert, activation, another matmul, the weighted sum."""
class _MoeRouting(NamedTuple):
    weights: Array
    experts: Array
    permutation: Array
    inverse: Array
    group_sizes: Array
    load: Array
    aux_loss: Array
def moe_routing_kernel(tokens: ArrayLike, num_experts: int, top_k: int, load_balancing: bool = True, *, gate: ArrayLike | None = None, renormalize: bool = True, capacity_factor: float | None = None) -> _MoeRouting:
    """Routes tokens to the top_k experts of greatest logits: weights, experts, permutation, inverse, group_sizes, load, aux_loss."""
def optimized_matmul(a: ArrayLike, b: ArrayLike, *, transpose_a: bool = False, transpose_b: bool = False, precision: str = 'default', algorithm: str = 'auto') -> Array:
    """The matrix product of operands that may be transposed."""
def rms_norm(x: ArrayLike, scale: ArrayLike, *, epsilon: float = 1e-06) -> Array:
    """Root mean square normalization: x / sqrt(mean(x^2) + epsilon) * scale over the last axis."""
def selective_scan(u: ArrayLike, delta: ArrayLike, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None, z: ArrayLike | None = None, delta_bias: ArrayLike | None = None, *, delta_softplus: bool = False, initial_state: ArrayLike | None = None, segment_ids: ArrayLike | None = None, return_last_state: bool = False) -> Array | tuple[Array, Array]:
    """The selective scan of Mamba: h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * B[t] * u[t], y[t] = C[t] . h[t]."""
def softmax(x: ArrayLike, *, axis: int = -1) -> Array:
    """exp(x) divided by its sum along one axis."""
def sparse_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, sparsity_pattern: ArrayLike | str = 'block_sparse', block_size: int = 64, *, causal: bool = False, window: int | None = None, sinks: int | None = None, global_blocks: int | None = None, random_blocks: int | None = None, seed: int | None = None, prefix: int | None = None, scale: float | None = None, segment_ids: ArrayLike | None = None, key_segment_ids: ArrayLike | None = None) -> Array:
    """Attention over the blocks of keys that a pattern keeps for each block of queries; time is proportional to their number."""
def spiking_neuron(inputs: ArrayLike, threshold: float = 1.0, leak_rate: float = 0.1, *, reset: str = 'hard', reset_value: float = 0.0, surrogate: str = 'atan', slope: float | None = None, detach_reset: bool = False, initial_potential: ArrayLike | None = None, return_potential: bool = False) -> Array | tuple[Array, Array]:
    """Spikes of leaky integrate-and-fire neurons over the first axis, with a surrogate derivative."""
def ssd(x: ArrayLike, dt: ArrayLike, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None, z: ArrayLike | None = None, dt_bias: ArrayLike | None = None, *, dt_softplus: bool = False, initial_state: ArrayLike | None = None, segment_ids: ArrayLike | None = None, chunk_size: int = 64, return_last_state: bool = False) -> Array | tuple[Array, Array]:
    """The state space dual of Mamba-2: a selective scan with one decay for each head, by matmuls in chunks."""
def vq_decode(codes: ArrayLike, codebook: ArrayLike, *, residual: bool = False) -> Array:
    """The vectors that codes stand for."""
def vq_encode(inputs: ArrayLike, codebook: ArrayLike, *, distance_metric: str = 'euclidean', residual: bool = False) -> Array:
    """The index of the code nearest to each vector, to each part of a vector, or to what earlier stages leave."""
def vq_quantize(inputs: ArrayLike, codebook: ArrayLike, *, distance_metric: str = 'euclidean', residual: bool = False, commitment_cost: float = 0.25, codebook_cost: float = 1.0) -> tuple[Array, Array, Array]:
    """Vectors replaced by their nearest codes, with the straight-through gradient; the codes; a loss for both."""
def vq_state(codebook: ArrayLike) -> tuple[Array, Array, Array]:
    """The state of a codebook that vq_update moves: codebook, cluster sizes, cluster sums."""
def vq_update(state: tuple[ArrayLike, ArrayLike, ArrayLike], inputs: ArrayLike, codes: ArrayLike, *, decay: float = 0.99, epsilon: float = 1e-05, dead_threshold: float = 0.0, key: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """A codebook moved towards the vectors it encoded, by moving averages; codes used too little start again at drawn vectors."""
