// Copies rows of tokens to their experts and sums them back: each result row is written once, by one thread.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Straight-line code, which compilers vectorise.
template <class T>
CAPIBARA_INLINE Wide<T> widened(T value) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  else
    return static_cast<Wide<T>>(value);
}
template <class T>
CAPIBARA_INLINE T rounded(Wide<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {  // to nearest, ties to even
    const auto bits = std::bit_cast<std::uint32_t>(value), up = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    T result;
    result.bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : up);
    return result;
  } else {
    return static_cast<T>(value);
  }
}

struct Extents {
  int64_t batches, tokens, choices, features;

  int64_t copies() const { return tokens * choices; }
};

// Nanoseconds to read and write a row.
template <class T>
double row_cost(const Extents& extents) {
  return 20 + static_cast<double>(extents.features) * static_cast<double>(sizeof(T)) / 10;
}

int64_t clipped(int32_t number, int64_t count) { return std::clamp<int64_t>(number, 0, count - 1); }

template <class T>
HostKernel dispatch_kernel(const Extents& extents) {
  return [extents](std::byte* const* buffers) {
    const auto* x = reinterpret_cast<const T*>(buffers[0]);
    const auto* permutation = reinterpret_cast<const int32_t*>(buffers[1]);
    auto* rows = reinterpret_cast<T*>(buffers[3]);
    const int64_t copies = extents.copies(), features = extents.features;
    parallel_for_cost(extents.batches * copies, row_cost<T>(extents), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t token = row / copies * extents.tokens + clipped(permutation[row], copies) / extents.choices;
        std::memcpy(rows + row * features, x + token * features, static_cast<std::size_t>(features) * sizeof(T));
      }
      return 0;
    });
  };
}

template <class T>
HostKernel combine_kernel(const Extents& extents) {
  using C = Wide<T>;
  return [extents](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const auto* rows = reinterpret_cast<const T*>(buffers[0]);
    const auto* weights = reinterpret_cast<const C*>(buffers[1]);
    const auto* inverse = reinterpret_cast<const int32_t*>(buffers[3]);
    auto* y = reinterpret_cast<T*>(buffers[4]);
    const int64_t copies = extents.copies(), features = extents.features, choices = extents.choices;
    const double cost = row_cost<T>(extents) * static_cast<double>(choices + 1);
    parallel_for_cost(extents.batches * extents.tokens, cost, [&](int64_t begin, int64_t end) {
      Scratch<C> hold(features, "sum of a token's rows");
      C* __restrict sums = hold.data();
      for (int64_t token = begin; token < end; ++token) {
        const int64_t first = token / extents.tokens * copies;
        for (int64_t j = 0; j < choices; ++j) {
          const int64_t copy = token * choices + j;
          const T* __restrict row = rows + (first + clipped(inverse[copy], copies)) * features;
          const C weight = weights[copy];
          if (j == 0) {
            for (int64_t i = 0; i < features; ++i) sums[i] = weight * widened(row[i]);
          } else {
            for (int64_t i = 0; i < features; ++i) sums[i] += weight * widened(row[i]);
          }
        }
        T* __restrict to = y + token * features;
        for (int64_t i = 0; i < features; ++i) to[i] = rounded<T>(sums[i]);
      }
      return 0;
    });
  };
}

// The dot product of two rows, summed in lanes.
template <class T>
CAPIBARA_INLINE Wide<T> dot(const T* __restrict a, const T* __restrict b, int64_t count) {
  constexpr int64_t lanes = 16;
  Wide<T> sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int64_t l = 0; l < lanes; ++l) sums[l] += widened(a[i + l]) * widened(b[i + l]);
  }
  for (; i < count; ++i) sums[0] += widened(a[i]) * widened(b[i]);
  Wide<T> total = 0;
  for (Wide<T> sum : sums) total += sum;
  return total;
}

template <class T>
HostKernel combine_grad_kernel(const Extents& extents) {
  using C = Wide<T>;
  return [extents](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const auto *dy = reinterpret_cast<const T*>(buffers[0]), *rows = reinterpret_cast<const T*>(buffers[1]);
    const auto* weights = reinterpret_cast<const C*>(buffers[2]);
    const auto* permutation = reinterpret_cast<const int32_t*>(buffers[3]);
    const auto* inverse = reinterpret_cast<const int32_t*>(buffers[4]);
    auto* drows = reinterpret_cast<T*>(buffers[5]);
    auto* dweights = reinterpret_cast<C*>(buffers[6]);
    const int64_t copies = extents.copies(), features = extents.features, all = extents.batches * copies;
    Scratch<C> dots(all, "gradients of weights");
    parallel_for_cost(all, 2 * row_cost<T>(extents), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t batch = row / copies, copy = clipped(permutation[row], copies);
        const T* __restrict gradient = dy + (batch * extents.tokens + copy / extents.choices) * features;
        const C weight = weights[batch * copies + copy];
        T* __restrict to = drows + row * features;
        for (int64_t i = 0; i < features; ++i) to[i] = rounded<T>(weight * widened(gradient[i]));
        dots[row] = dot(gradient, rows + row * features, features);
      }
      return 0;
    });
    for (int64_t copy = 0; copy < all; ++copy)
      dweights[copy] = dots[copy / copies * copies + clipped(inverse[copy], copies)];
  };
}

// Calls make(Type<T>{}, extents) for the supported element types; returns no kernel for others, or without rows.
template <class Make>
HostKernel make_for(const ArrayType& tokens, const ArrayType& rows, Make&& make) {
  if (rows.size() == 0) return {};
  const int64_t features = rows.shape.back(), count = tokens.shape[tokens.shape.size() - 2];
  const int64_t copies = rows.shape[rows.shape.size() - 2];
  const Extents extents{rows.size() / (copies * features), count, copies / count, features};
  switch (rows.dtype) {
    case DType::float32:
      return make(Type<float>{}, extents);
    case DType::float64:
      return make(Type<double>{}, extents);
    case DType::bfloat16:
      return make(Type<BFloat16>{}, extents);
    case DType::float16:
      return make(Type<Half>{}, extents);
    default:
      return {};
  }
}

HostKernel make_dispatch(const KernelRequest& request) {
  return make_for(request.inputs[0], request.outputs[0],
                  []<class T>(Type<T>, const Extents& extents) { return dispatch_kernel<T>(extents); });
}

HostKernel make_combine(const KernelRequest& request) {
  return make_for(request.outputs[0], request.inputs[0],
                  []<class T>(Type<T>, const Extents& extents) { return combine_kernel<T>(extents); });
}

HostKernel make_combine_grad(const KernelRequest& request) {
  return make_for(request.inputs[0], request.inputs[1],
                  []<class T>(Type<T>, const Extents& extents) { return combine_grad_kernel<T>(extents); });
}

}  // namespace

KernelMakers moe_feed_forward_makers() {
  return {{"moe_dispatch", make_dispatch}, {"moe_combine", make_combine}, {"moe_combine_grad", make_combine_grad}};
}

}  // namespace capibara::cpu
