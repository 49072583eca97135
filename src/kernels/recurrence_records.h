// Shared by the recurrences besides their compositions: checks of operands, batching, and pullbacks.
#pragma once

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "kernels/composed.h"
#include "lax/operators/promote.h"
#include "lax/rules.h"

// Sequences split into chunks, and linear recurrences inside a chunk: the building blocks of the recurrences.

namespace capibara::kernels {

// The dtype of states and sums.
inline DType wide_dtype(DType dtype) { return dtype == DType::float64 || is_complex(dtype) ? dtype : DType::float32; }

inline Array sum_over(const Array& x, Ints axes) { return jax::lax::reduce_sum(x, {.axes = std::move(axes)}); }

// log(1 + exp(x)) without overflow.
inline Array softplus(const Array& x) {
  const Array tail = jax::lax::log1p(jax::lax::exp(-jax::lax::abs(x)));
  return jax::lax::max(x, scalar_like(x, 0)) + tail;
}

// [batch, length, ...] -> [chunks, batch, chunk, ...], zeros after the end.
inline Array in_chunks(const Array& x, int64_t chunk) {
  const int64_t length = x.shape(1), chunks = (length + chunk - 1) / chunk;
  std::vector<jax::lax::PadDim> padding(static_cast<std::size_t>(x.ndim()));
  padding[1].high = chunks * chunk - length;
  const Array padded = padding[1].high ? jax::lax::pad(x, scalar_of(x.dtype(), 0), padding) : x;
  Shape shape = x.shape();
  shape[1] = chunk;
  shape.insert(shape.begin() + 1, chunks);
  return move_axis(jax::lax::reshape(padded, shape), 1, 0);
}

// The inverse, truncated to the length.
inline Array from_chunks(const Array& x, int64_t length) {
  const Array batch_first = move_axis(x, 0, 1);
  Shape shape = batch_first.shape();
  shape[1] *= shape[2];
  shape.erase(shape.begin() + 2);
  return jax::lax::slice_in_dim(jax::lax::reshape(batch_first, shape), 0, length, 1, 1);
}

// A linear recurrence over axis 1 of a chunk from h = 0. If `reset`, booleans of a's rank, is given, nothing carries
// over into a step where it is true, not even a NaN.
struct Prefixes {
  Array reset, product, value;

  // The recurrence from a different start.
  Array from(const Array& start) const {
    const Array carried = product * start, total = carried + value;
    return reset.defined() ? jax::lax::select(broadcast_to("recurrence", reset, total.shape()), value, total) : total;
  }
};

inline Prefixes scan_chunk(const Array& reset, const Array& a, const Array& b, bool reverse = false) {
  const jax::lax::AssociativeScanOptions options{.reverse = reverse, .axis = 1};
  if (!reset.defined()) {
    const auto [product, value] = jax::lax::associative_scan(
        [](const std::pair<Array, Array>& x, const std::pair<Array, Array>& y) {
          const Array carried = y.first * x.second;
          return std::pair(x.first * y.first, carried + y.second);
        },
        std::pair(a, b), options);
    return {Array(), product, value};
  }
  using Triple = std::tuple<Array, Array, Array>;
  const auto [starts, product, value] = jax::lax::associative_scan(
      [](const Triple& x, const Triple& y) {
        const Array &mark = std::get<0>(y), &factor = std::get<1>(y), &own = std::get<2>(y);
        const Array carried = factor * std::get<2>(x), sum = carried + own;
        const Array value = jax::lax::select(broadcast_to("recurrence", mark, sum.shape()), own, sum);
        const Array product = std::get<1>(x) * factor;
        return Triple(std::get<0>(x) | mark, product, value);
      },
      Triple(reset, a, b), options);
  return {starts, product, value};
}

// The values before each step of axis 1: `start`, then all but the last.
inline Array shifted_by_one(const Array& start, const Array& values) {
  const Array first = jax::lax::expand_dims(start, {1});
  return jax::lax::concatenate({first, jax::lax::slice_in_dim(values, 0, -1, 1, 1)}, 1);
}

// All but the first step of axis 1, then `last` at the end.
inline Array shifted_back(const Array& values, const Array& last) {
  const Array rest = jax::lax::slice_in_dim(values, 1, std::nullopt, 1, 1);
  return jax::lax::concatenate({rest, last}, 1);
}

// True where segment ids [batch, length] change; the first step continues the previous state.
inline Array changes(const Array& ids) {
  const Array first = jax::lax::full({ids.shape(0), std::min<int64_t>(1, ids.shape(1))}, Array(false));
  if (ids.shape(1) < 2) return first;
  const Array before = jax::lax::slice_in_dim(ids, 0, -1, 1, 1);
  const Array differ = jax::lax::ne(jax::lax::slice_in_dim(ids, 1, std::nullopt, 1, 1), before);
  return jax::lax::concatenate({first, differ}, 1);
}

inline ArrayType strong_type(Shape shape, DType dtype) {
  ArrayType type;
  type.shape = std::move(shape);
  type.dtype = dtype;
  return type;
}

inline void require_operand(const char* op, const char* argument, const ArrayType& given, const Shape& shape,
                            DType dtype) {
  if (given.shape == shape && given.dtype == dtype) return;
  throw TypeError(concat(op, ": expected ", to_string(strong_type(shape, dtype)), " (argument '", argument, "'), got ",
                         to_string(given)));
}

// Checks the shape of a function's argument; `names` describes the expected sizes.
inline void require_shape(const char* op, const char* argument, const char* names, const Array& given,
                          const Shape& shape) {
  if (given.shape() == shape) return;
  throw ValueError(concat(op, ": argument '", argument, "' must be ", names, ", here ",
                          to_string(strong_type(shape, given.dtype())), ", got ", to_string(given.type())));
}
inline void require_real(const char* op, const char* argument, const Array& given) {
  if (is_floating(given.dtype())) return;
  throw TypeError(concat(op, ": argument '", argument, "' must be an array of floats, got ", to_string(given.type()),
                         "; complex states are computed by linear_recurrence"));
}
inline void require_segments(const char* op, const Array& ids, const Shape& shape) {
  require_shape(op, "segment_ids", "[..., length]", ids, shape);
  if (is_integer(ids.dtype())) return;
  throw TypeError(concat(op, ": argument 'segment_ids' must be integers, got ", to_string(ids.type())));
}

// A parameter or state in the accumulator dtype; zeros if none is given.
inline Array widened_operand(const char* op, const char* argument, const std::optional<Array>& given,
                             const Shape& shape, DType wide) {
  if (!given) return jax::lax::zeros(strong_type(shape, wide));
  const Array real = promote_inexact(op, *given);
  require_real(op, argument, real);
  return jax::lax::reshape(real.astype(wide), shape);
}

// [..., rest] -> [batch, rest], where rest has `kept` dimensions.
inline Array flat_batch(const Array& x, int64_t kept) {
  Shape shape(x.shape().end() - kept, x.shape().end());
  shape.insert(shape.begin(), element_count(std::span(x.shape().begin(), x.shape().end() - kept)));
  return jax::lax::reshape(x, shape);
}

inline Shape with_batch(const Array& like, int64_t kept, std::initializer_list<int64_t> rest) {
  Shape shape(like.shape().begin(), like.shape().end() - kept);
  shape.insert(shape.end(), rest);
  return shape;
}

// Batches a primitive whose operands, except those at `shared`, have a leading batch: one larger batch. Returns no
// outputs if a shared operand is mapped.
inline BatchResult batch_in_front(const BatchArgs& args, std::initializer_list<std::size_t> shared) {
  Arrays inputs(args.inputs.begin(), args.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (std::find(shared.begin(), shared.end(), i) != shared.end()) {
      if (args.mapped(i)) return {};
      continue;
    }
    const Array front = batch_at(inputs[i], args.dims[i], args.axis.size);
    inputs[i] = jax::lax::collapse(front, 0, 2);
  }
  BatchResult result;
  for (const Array& output : capibara::bind(args.primitive, inputs, args.attrs)) {
    Shape shape = output.shape();
    shape[0] = args.axis.size ? shape[0] / args.axis.size : 0;
    shape.insert(shape.begin(), args.axis.size);
    result.outputs.push_back(jax::lax::reshape(output, shape));
    result.dims.push_back(0);
  }
  return result;
}

// The derivative of a gate, y * silu(z): the gradient of y, and that of z per unit of y.
struct GateBack {
  Array dy, derivative;
  GateBack(const Array& given, const Array& z) : dy(given) {
    if (!z.defined()) return;
    const Array wide = z.astype(given.dtype()), sigmoid = jax::lax::logistic(wide), rest = wide * (1.0f - sigmoid);
    derivative = given * (sigmoid * (1.0f + rest));
    dy = given * (wide * sigmoid);
  }
};

// Binds the gradient of a scan with results (y, last state, starts of chunks) and sums gradients of shared operands.
inline Arrays pull_back_scan(const Primitive& grad, const PullbackArgs& args) {
  const Array &y = args.cotangents[0], &last = args.cotangents[1];
  if (args.cotangents[2].defined()) return {};
  Arrays inputs = {y.defined() ? y : jax::lax::zeros(args.operands[0].type().strong()),
                   last.defined() ? last : jax::lax::zeros(args.operands[7].type().strong()), args.results[2]};
  inputs.insert(inputs.end(), args.operands.begin(), args.operands.end());
  Arrays all = capibara::bind(grad, inputs, args.attrs);
  for (std::size_t i : {2, 5, 6}) all[i] = sum_over(all[i], {0});
  if (args.attrs.boolean("resets")) all.push_back(Array());
  return all;
}

struct RowOperand {
  const char* name;
  Array array;
  int64_t kept;  // trailing dimensions; the others are batches
};
// Promotes the operands to one floating dtype, [batch, ...].
inline Arrays promoted_rows(const char* op, const std::vector<RowOperand>& given) {
  Arrays rows;
  for (const RowOperand& operand : given) rows.push_back(operand.array);
  rows = promote_dtypes_inexact(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require_real(op, given[i].name, rows[i]);
    rows[i] = flat_batch(rows[i], given[i].kept);
  }
  return rows;
}

// The samples of a gradient: those of the operation, preceded by its results.
inline std::vector<Sample> grad_samples(std::vector<Sample> samples, const TypeRule& type) {
  for (Sample& sample : samples) {
    const Types results = type(sample.inputs, sample.attrs).types;
    sample.inputs.insert(sample.inputs.begin(), results.begin(), results.end());
  }
  return samples;
}

}  // namespace capibara::kernels
