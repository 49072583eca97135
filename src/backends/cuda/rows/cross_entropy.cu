// Cross-entropy of integer labels and its reverse derivative as foreign calls of XLA programs.
//
// Both are memory-bound and read the logits once: forward keeps the largest logit and the sum of exponentials
// relative to it, backward computes probabilities from logits and logarithm. Rows may have any length and alignment.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include <limits>

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

std::optional<KernelCall> claim(const ClaimArgs& args, const ArrayType& logits, const ArrayType& labels,
                                const char* target) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (!is_row_type(logits.dtype) || logits.size() == 0 || labels.dtype != DType::int32) return std::nullopt;
  if (logits.shape.back() > limit / 2) return std::nullopt;
  return KernelCall{target,
                    concat(float_setting("label_smoothing", args.attrs.real("label_smoothing")),
                           ", ignore_index = ", args.attrs.integer("ignore_index"), " : i64"),
                    {}};
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  return claim(args, args.inputs[0], args.inputs[1], "capibara_cross_entropy");
}
std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  return claim(args, args.inputs[1], args.inputs[2], "capibara_cross_entropy_grad");
}

}  // namespace

Claims cross_entropy_claims() { return {{"cross_entropy", claim_forward}, {"cross_entropy_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/rows/row_powers.h"

namespace capibara::cuda {
namespace {

constexpr int max_threads = 256;

struct Labels {
  const int32_t* labels;
  int32_t ignored;
  float smoothing;

  // The factor of a row's loss: 0 if its label is ignored, NaN if it is not a class.
  __device__ float factor(int64_t row, int classes) const {
    const int32_t label = labels[row];
    if (label == ignored) return 0.0f;
    return label >= 0 && label < classes ? 1.0f : NAN;
  }
};

template <class T, bool smoothed>
__global__ void __launch_bounds__(max_threads, 6)
    losses(const T* logits, Labels labels, float* loss, float* logarithms, int64_t rows, int classes) {
  __shared__ Exchange<float2> exchange;
  int iteration = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = logits + row * classes;
    // Loaded before the row, so that its end does not wait for it.
    const float factor = labels.factor(row, classes);
    float target = factor == 1.0f && threadIdx.x == 0 ? as_float(from[labels.labels[row]]) : 0.0f;
    Powers own;
    float total = 0;
    visit_row(from, classes, [&](int, auto& values) {
      own.add<T>(values);
      if constexpr (smoothed) {
        for (float value : values) total += value;
      }
    });
    const Powers all = own.of_block<T>(exchange, iteration++);
    if constexpr (smoothed) total = block_sums(total, 0, exchange, iteration++).x;
    if (threadIdx.x != 0) continue;
    const float logarithm = all.greatest + logf(all.sum);
    if constexpr (smoothed)
      target = target * (1.0f - labels.smoothing) + total / static_cast<float>(classes) * labels.smoothing;
    loss[row] = factor == 0 ? 0.0f : (logarithm - target) * factor;
    logarithms[row] = logarithm;
  }
}

template <class T>
__global__ void __launch_bounds__(max_threads, 4)
    pull_back(const float* dloss, const T* logits, Labels labels, const float* logarithms, T* dlogits, int64_t rows,
              int classes) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float factor = labels.factor(row, classes), gradient = factor == 0 ? 0.0f : dloss[row] * factor;
    const float logarithm = logarithms[row], scaled = logarithm * per_power;
    const float everywhere = labels.smoothing / static_cast<float>(classes), hit = 1.0f - labels.smoothing;
    const int label = labels.labels[row];
    T* to = dlogits + row * classes;
    visit_row(logits + row * classes, classes, [&](int column, auto& values) {
      constexpr int count = sizeof values / sizeof(float);
      float results[count];
#pragma unroll
      for (int i = 0; i < count; ++i) results[i] = power_above<T>(values[i], logarithm, scaled) - everywhere;
      if (static_cast<unsigned>(label - column) < count) {
        // What remains of a probability near one shows its last bits.
#pragma unroll
        for (int i = 0; i < count; ++i)
          results[i] = power<T>(values[i] - logarithm) - (column + i == label ? hit : 0.0f) - everywhere;
      }
#pragma unroll
      for (int i = 0; i < count; ++i) results[i] = gradient == 0 ? 0.0f : gradient * results[i];
      write_values(to, column, results);
    });
  }
}

// ---- handlers -----------------------------------------------------------------------------------------------------

Labels labels_of(const ffi::CallFrame* frame, int index) {
  return {data_of<int32_t>(operand(frame, index)), static_cast<int32_t>(integer_attribute(frame, "ignore_index", -100)),
          float_attribute(frame, "label_smoothing", 0)};
}

int threads_for(int classes) { return whole_warps(classes / 32, max_threads); }

constexpr const char* refusal = "cross_entropy: the CUDA kernel takes float32, bfloat16 and float16";

// (logits, labels) -> (loss, logarithms)
void* cross_entropy(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& logits = operand(frame, 0);
  const Extent extent = extent_of(logits);
  const bool started = with_type(logits.dtype, [&](auto number) {
    using T = decltype(number);
    const Labels labels = labels_of(frame, 1);
    const auto kernel = labels.smoothing != 0 ? losses<T, true> : losses<T, false>;
    kernel<<<grid_of(extent.rows), threads_for(extent.columns), 0, own_stream(frame)>>>(
        data_of<T>(logits), labels, data_of<float>(result(frame, 0)), data_of<float>(result(frame, 1)), extent.rows,
        extent.columns);
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

// (dloss, logits, labels, logarithms) -> dlogits
void* cross_entropy_grad(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& logits = operand(frame, 1);
  const Extent extent = extent_of(logits);
  const bool started = with_type(logits.dtype, [&](auto number) {
    using T = decltype(number);
    pull_back<T><<<grid_of(extent.rows), threads_for(extent.columns), 0, own_stream(frame)>>>(
        data_of<float>(operand(frame, 0)), data_of<T>(logits), labels_of(frame, 2), data_of<float>(operand(frame, 3)),
        data_of<T>(result(frame, 0)), extent.rows, extent.columns);
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

constexpr KernelRecord records[] = {
    {"capibara_cross_entropy", cross_entropy, ffi::command_buffer_compatible},
    {"capibara_cross_entropy_grad", cross_entropy_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers cross_entropy_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
