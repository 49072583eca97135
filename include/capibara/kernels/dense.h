// Dense parts of networks: matmuls, contractions of many operands, GELU with dropout, Adam, lists of tensors.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/contraction.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace capibara::kernels {

using Arrays = std::vector<Array>;

// ---- matrix products ---------------------------------------------------------------------------------------------

// Precisions: "default", "high" and "highest" are jax's, as are the names of dot algorithms such as "BF16_BF16_F32_X3".
// "bfloat16", "float16" and "float32" round the operands to that type and accumulate in float32; the result has the
// dtype of the operands. On NVIDIA GPUs "highest" of float32 runs as six bfloat16 matmuls of split operands
// (BF16_BF16_F32_X6), with the error of float32: three parts of 8 bits hold the 24 bits of a float32, and the omitted
// terms are below 2^-24 of each product.
struct AdaptiveMatmulOptions {
  std::string precision = "default";
  // "local": one matmul, for which the device chooses a kernel by shape. "collective": a shard_map over the mesh of
  // the operands, or inside a traced function over the mesh of jax::set_mesh: each device multiplies its part of the
  // contracted axis and psum adds the partial results, so every device has the whole result. On one device there is
  // nothing to exchange, and it is "local"; with several devices, a traced function without a mesh raises an error.
  // "auto": "collective" for arrays on a mesh whose axis can be split so; otherwise, and in traced functions, "local".
  // "split_k": up to eight parts on any device.
  std::string tpu_strategy = "auto";
};
// The matrix product over the last two axes, leading ones being batches, computed where its operands are.
Array adaptive_matmul(const Array& a, const Array& b, const AdaptiveMatmulOptions& options = {});

struct OptimizedMatmulOptions {
  bool transpose_a = false, transpose_b = false;  // of the last two axes; no transposed copy is made
  std::string precision = "default";
  // "auto" and its alias "tpu_optimized": one matmul, for which the device chooses a kernel by shape. "split_k":
  // the contracted axis in up to eight parts, whose results are added.
  std::string algorithm = "auto";
};
// The matrix product of operands that may be transposed.
Array optimized_matmul(const Array& a, const Array& b, const OptimizedMatmulOptions& options = {});

// ---- einsum ------------------------------------------------------------------------------------------------------

struct EinsumOptimizeOptions {
  // As in einsum: "auto", "optimal", "greedy" ..., "unoptimized", or a path.
  std::variant<std::string, jax::numpy::ContractionPath> optimize = std::string("auto");
  // No intermediate may have more elements than the limit. Among the orders within it, the one with the fewest
  // operations is chosen; if there is none, the sum or the result is computed in slices along as few labels as
  // necessary, one slice at a time, and the backward pass recomputes the intermediates of a slice.
  bool memory_efficient = false;
  std::optional<int64_t> memory_limit = {};  // in elements; by default the size of the largest operand or result
  std::string precision = {};
};
// einsum with a bound on what is stored between its steps.
Array einsum_optimize(const std::string& equation, const Arrays& operands, const EinsumOptimizeOptions& options = {});

// The plan of einsum_optimize: the labels it slices along, and its steps, as text with one line each.
std::string einsum_plan(const std::string& equation, const std::vector<Shape>& shapes,
                        const EinsumOptimizeOptions& options = {});

// ---- elements ----------------------------------------------------------------------------------------------------

struct GeluDropoutOptions {
  double rate = 0.1;
  std::optional<Array> key = {};  // a threefry2x32 key; required if elements are dropped
  bool training = true;           // false: nothing is dropped
  bool inplace = false;           // the result overwrites x, which is deleted; an error while tracing
  bool approximate = true;        // by tanh instead of the error function
};
// GELU, of which a share is set to zero and the rest scaled by 1 / (1 - rate). The mask is a function of key and
// position and is not kept for the backward pass; it differs from jax.random.bernoulli; rates are rounded to 1 / 65536.
Array fused_gelu_dropout(const Array& x, const GeluDropoutOptions& options = {});

struct AdamOptions {
  Array learning_rate = 1e-3;
  double b1 = 0.9, b2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // of the parameters themselves, not of the gradients: AdamW
};
struct AdamState {
  Arrays parameters, means, squares;
};
// One step of Adam on many tensors at once. `step` counts from 1. Means and squares are float32 at least.
AdamState adam_update(const Arrays& parameters, const Arrays& gradients, const Arrays& means, const Arrays& squares,
                      const Array& step, const AdamOptions& options = {});

// ---- lists of tensors --------------------------------------------------------------------------------------------

struct BatchOperationsOptions {
  // Arrays by name, shared by all inputs: "weight", "bias" and "epsilon" of the norms, "axis" of softmax, "b" of
  // matmul.
  std::map<std::string, Array> parameters = {};
  // true: inputs of one row length and type go through the operation together, as one array. false: one at a time,
  // in order, with the temporaries of only one alive.
  bool parallel_execution = true;
};
// One operation on each array of a list: "layer_norm", "rms_norm", "softmax", "gelu" or "matmul".
Arrays batch_operations(const std::string& operation_type, const Arrays& inputs,
                        const BatchOperationsOptions& options = {});

}  // namespace capibara::kernels
