// The functions that iterate until they converge, over the vectors of a block.
#pragma once

#include "backends/cpu/kernels/functions/code.h"
#include "backends/cpu/kernels/functions/gamma_lanes.h"
#include "backends/cpu/kernels/functions/pack_operations.h"

namespace capibara::cpu {

template <class Formula, class T, int Bytes>
__attribute__((flatten)) void compute_series(const T* const* in, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Bytes / static_cast<std::int64_t>(sizeof(T))) {
    Pack<T, Bytes> x[Formula::operands], result;
    for (int k = 0; k < Formula::operands; ++k) std::memcpy(&x[k], in[k] + i, Bytes);
    if constexpr (Formula::operands == 2)
      result = typename Formula::Function{}(x[0], x[1]);
    else
      result = typename Formula::Function{}(x[0], x[1], x[2]);
    std::memcpy(out + i, &result, Bytes);
  }
}

template <class T, int Bytes>
__attribute__((flatten)) void draw_gamma(const GammaBlock<T>& block) {
  GammaLanes<T, Bytes>::run(block);
}

template <class T, int Bytes>
FunctionCode<T> code_of() {
  return std::apply(
      [](const auto&... formula) {
        static_assert(sizeof...(formula) == series_count);
        return FunctionCode<T>{{compute_series<std::remove_cvref_t<decltype(formula)>, T, Bytes>...},
                               draw_gamma<T, Bytes>};
      },
      math::iterative_formulas);
}

}  // namespace capibara::cpu
