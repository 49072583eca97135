// Sequences cut into chunks, and linear recurrences inside of one: what the recurrences are composed of.
#pragma once

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/rules.h"

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

// The inverse, cut to the length.
inline Array from_chunks(const Array& x, int64_t length) {
  const Array batch_first = move_axis(x, 0, 1);
  Shape shape = batch_first.shape();
  shape[1] *= shape[2];
  shape.erase(shape.begin() + 2);
  return jax::lax::slice_in_dim(jax::lax::reshape(batch_first, shape), 0, length, 1, 1);
}

// A linear recurrence over axis 1 of a chunk from h = 0. Where `reset` is given, booleans of a's rank, nothing passes
// from before such a step, not even a NaN.
struct Prefixes {
  Array reset, product, value;

  // The recurrence from another start.
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

// Where segment ids [batch, length] change: the first step continues what came before.
inline Array changes(const Array& ids) {
  const Array first = jax::lax::full({ids.shape(0), std::min<int64_t>(1, ids.shape(1))}, Array(false));
  if (ids.shape(1) < 2) return first;
  const Array before = jax::lax::slice_in_dim(ids, 0, -1, 1, 1);
  const Array differ = jax::lax::ne(jax::lax::slice_in_dim(ids, 1, std::nullopt, 1, 1), before);
  return jax::lax::concatenate({first, differ}, 1);
}

}  // namespace capibara::kernels
