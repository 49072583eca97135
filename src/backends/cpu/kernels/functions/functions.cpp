// Elementwise functions that iterate until convergence (incomplete gamma and beta functions) and gamma variates,
// in blocks that are distributed to threads.
//
// A vector iterates until its last lane has converged; the result of a lane does not depend on its neighbours.
#include <capibara/config.h>

#include <algorithm>
#include <tuple>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/functions/code.h"
#include "core/array/element.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"
#include "lax/math/math.h"
#if !defined(__x86_64__)
#include "backends/cpu/kernels/functions/series_lanes.h"
#endif

namespace capibara::cpu {

namespace {

// For this processor, or for the lower level set by CAPIBARA_CPU_LEVEL.
template <class T>
FunctionCode<T> function_code() {
#if defined(__x86_64__)
  if (has_avx512()) return function_code_avx512<T>();
  return has_avx2() ? function_code_avx2<T>() : FunctionCode<T>();
#else
  return code_of<T, 16>();
#endif
}

constexpr int64_t series_block = 256;  // elements read, computed and written at once
constexpr int most_operands = 3;

struct SeriesOperands {
  DType dtype;
  int count;
  int64_t size;
  int64_t steps[most_operands];  // 0: one element is broadcast
  double cost;                   // nanoseconds per element
};

// The code around the loop, compiled once for each type. Short blocks are padded with their last element.
template <class T>
void run_series(const SeriesOperands& operands, SeriesLoop<T> loop, std::byte* const* buffers) {
  const int64_t blocks = (operands.size + series_block - 1) / series_block, bytes = storage_size(operands.dtype);
  parallel_for_cost(blocks, operands.cost * static_cast<double>(std::min(operands.size, series_block)),
                    [&](int64_t begin, int64_t end) {
                      const math::FlushDenormals scope;
                      alignas(64) T in[most_operands][series_block];
                      alignas(64) T out[series_block];
                      const T* starts[most_operands] = {in[0], in[1], in[2]};
                      for (int64_t block = begin; block < end; ++block) {
                        const int64_t first = block * series_block,
                                      used = std::min(series_block, operands.size - first);
                        const int64_t padded = (used + 15) / 16 * 16;
                        for (int k = 0; k < operands.count; ++k) {
                          const int64_t read = operands.steps[k] == 0 ? 1 : used;
                          load_range<T>(operands.dtype, buffers[k] + first * operands.steps[k] * bytes, read, in[k]);
                          std::fill(in[k] + read, in[k] + padded, in[k][read - 1]);
                        }
                        loop(starts, out, padded);
                        store_range<T>(operands.dtype, buffers[operands.count] + first * bytes, used, out);
                      }
                      return 0;
                    });
}

template <class T>
HostKernel series_kernel(const SeriesOperands& operands, int formula) {
  const SeriesLoop<T> loop = function_code<T>().series[formula];
  if (!loop) return {};
  return [operands, loop](std::byte* const* buffers) { run_series<T>(operands, loop, buffers); };
}

template <int formula>
HostKernel make_series(const KernelRequest& request) {
  const ArrayType& type = request.outputs[0];
  SeriesOperands operands{type.dtype, static_cast<int>(request.inputs.size()), type.size(), {}, 40};
  for (std::size_t k = 0; k < request.inputs.size(); ++k) {
    const ArrayType& operand = request.inputs[k];
    if (operand.dtype != type.dtype || (operand.size() != type.size() && operand.size() != 1)) return {};
    operands.steps[k] = operand.size() == type.size() ? 1 : 0;
  }
  if (!is_floating(type.dtype) || type.size() == 0) return {};
  return type.dtype == DType::float64 ? series_kernel<double>(operands, formula)
                                      : series_kernel<float>(operands, formula);
}

template <class T>
HostKernel gamma_kernel(int64_t streams, int64_t each, bool log_space) {
  const auto run = function_code<T>().gamma;
  if (!run) return {};
  return [streams, each, log_space, run](std::byte* const* buffers) {
    const int64_t blocks = (each + gamma_block - 1) / gamma_block;
    parallel_for_cost(
        streams * blocks, 40.0 * static_cast<double>(std::min(each, gamma_block)), [&](int64_t begin, int64_t end) {
          const math::FlushDenormals scope;
          for (int64_t task = begin; task < end; ++task) {
            const int64_t stream = task / blocks, first = task % blocks * gamma_block, at = stream * each + first;
            run({reinterpret_cast<const std::uint32_t*>(buffers[0]) + 2 * stream, static_cast<std::uint64_t>(first),
                 std::min(gamma_block, each - first), reinterpret_cast<const T*>(buffers[1]) + at,
                 reinterpret_cast<T*>(buffers[2]) + at, log_space});
          }
          return 0;
        });
  };
}

// Other generators, the legacy stream and narrow types, which round after every operation, are left to the reference
// kernel.
HostKernel make_random_gamma(const KernelRequest& request) {
  const ArrayType &keys = request.inputs[0], &out = request.outputs[0];
  if (keys.dtype != DType::key_fry || !config().threefry_partitionable || out.size() == 0) return {};
  const int64_t streams = keys.size(), each = out.size() / streams;
  const bool log_space = request.attrs.boolean("log_space");
  if (out.dtype == DType::float32) return gamma_kernel<float>(streams, each, log_space);
  if (out.dtype == DType::float64) return gamma_kernel<double>(streams, each, log_space);
  return {};
}

}  // namespace

KernelMakers function_makers() {
  KernelMakers makers = {{"random_gamma", make_random_gamma}};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (makers.push_back({std::get<i>(math::iterative_formulas).primitive, make_series<static_cast<int>(i)>}), ...);
  }
  (std::make_index_sequence<series_count>());
  return makers;
}

}  // namespace capibara::cpu
