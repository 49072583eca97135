// Recognises weighted sums, for example the stages of a Runge-Kutta step for many trajectories at once:
//
//   c = dot_general[contracting=([0], [1])] w:f32[7] k:f32[64,7,2]
// becomes
//   c = reduce_sum[axes=(1,)] (mul k (broadcast_in_dim w))
// A matmul kernel has only 2 columns to work on here; loops over the result have 128 elements, each a sum of 7.
#include "backends/cpu/rewrites/weighted_sum.h"

#include <capibara/lax.h>

#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr int64_t max_terms = 16, max_summed_elements = 1 << 14;
constexpr int64_t max_dot_in_registers = 64;  // up to here a dot is computed in registers anyway

// True if the batch dimensions come first, in order.
bool leads(const Ints& batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

LowerRule weighted_sum_rule(const Program& program, const Equation& equation) {
  if (equation.primitive != prim::dot_general()) return {};
  const auto& dims = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
  if (dims.lhs_contracting.size() != 1) return {};
  const ArrayType &lhs = program.type(equation.inputs[0]), &rhs = program.type(equation.inputs[1]);
  const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
  const bool weights_first = lhs.rank() == batch + 1;
  const ArrayType& weights = weights_first ? lhs : rhs;
  const ArrayType& terms = weights_first ? rhs : lhs;
  const int64_t axis = (weights_first ? dims.rhs_contracting : dims.lhs_contracting)[0];
  if (weights.rank() != batch + 1 || !leads(weights_first ? dims.rhs_batch : dims.lhs_batch)) return {};
  // Without a batch, sums along the last axis are matrix-vector products, which kernels compute.
  if (batch == 0 && (terms.rank() < 2 || axis == terms.rank() - 1)) return {};
  const int64_t count = terms.shape[static_cast<std::size_t>(axis)];
  if (count > max_terms || terms.size() > max_summed_elements || terms.size() <= max_dot_in_registers) return {};
  const DType dtype = program.type(equation.outputs[0]).dtype;
  if ((dtype != DType::float32 && dtype != DType::float64) || weights.dtype != dtype || terms.dtype != dtype) return {};
  Ints order = weights_first ? dims.lhs_batch : dims.rhs_batch;  // of the weights, in the order of the terms
  order.push_back((weights_first ? dims.lhs_contracting : dims.rhs_contracting)[0]);
  Ints places = weights_first ? dims.rhs_batch : dims.lhs_batch;
  places.push_back(axis);
  return [weights_first, axis, order, places](std::span<const Array> inputs, const Attrs&) {
    const Array &w = inputs[weights_first ? 0 : 1], &x = inputs[weights_first ? 1 : 0];
    const Array along = jax::lax::broadcast_in_dim(jax::lax::transpose(w, order), x.shape(), places);
    const Array scaled = jax::lax::mul(x, along);
    return Arrays{jax::lax::reduce_sum(scaled, {.axes = {axis}})};
  };
}

}  // namespace capibara::cpu
