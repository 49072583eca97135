// Layer norm, forward and backward, as foreign calls of XLA programs.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  return claim_norm(args, args.inputs[0], "capibara_layer_norm");
}
std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  return claim_norm_grad(args, args.inputs[1], "capibara_layer_norm_grad", 2);
}

}  // namespace

Claims layer_norm_claims() { return {{"layer_norm", claim_forward}, {"layer_norm_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the handlers --------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/rows/norm_rows.h"
#include "backends/cuda/rows/norm_sums.h"

namespace capibara::cuda {
namespace {

constexpr const char* refusal = "layer_norm: the CUDA kernel takes rows of whole 16-byte pieces, at most 32 KiB";

// (x, scale, bias) -> (y, means, 1 / deviations)
void* layer_norm(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 0);
  const Extent extent = extent_of(x);
  const bool started = with_type(x.dtype, [&](auto number) {
    using T = decltype(number);
    start_normalize<T, true>(
        {data_of<T>(x), data_of<T>(operand(frame, 1)), data_of<T>(operand(frame, 2)), data_of<T>(result(frame, 0)),
         data_of<float>(result(frame, 1)), data_of<float>(result(frame, 2)), extent.rows, extent.columns,
         float_attribute(frame, "epsilon", 1e-5f)},
        own_stream(frame));
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

// (dy, x, scale, means, 1 / deviations) -> (dx, dscale, dbias, the blocks' sums)
void* layer_norm_grad(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 1);
  const Extent extent = extent_of(x);
  cudaError_t status = cudaSuccess;
  const bool started = with_type(x.dtype, [&](auto number) {
    using T = decltype(number);
    const NormGradients<T> in{data_of<T>(operand(frame, 0)),
                              data_of<T>(x),
                              data_of<T>(operand(frame, 2)),
                              data_of<float>(operand(frame, 3)),
                              data_of<float>(operand(frame, 4)),
                              data_of<T>(result(frame, 0)),
                              data_of<float>(result(frame, 3)),
                              extent.rows,
                              extent.columns};
    status = start_pull_back<T, true>(in, data_of<T>(result(frame, 1)), data_of<T>(result(frame, 2)),
                                      static_cast<int>(result(frame, 3).dims[1]), own_stream(frame));
  });
  if (status != cudaSuccess) return ffi::failure(frame, cudaGetErrorString(status));
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

constexpr KernelRecord records[] = {{"capibara_layer_norm", layer_norm, ffi::command_buffer_compatible},
                                    {"capibara_layer_norm_grad", layer_norm_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers layer_norm_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
