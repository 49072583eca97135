// RMS norm, forward and backward, as foreign calls of XLA programs.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  return claim_norm(args, args.inputs[0], "capibara_rms_norm");
}
std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  return claim_norm_grad(args, args.inputs[1], "capibara_rms_norm_grad", 1);
}

}  // namespace

Claims rms_norm_claims() { return {{"rms_norm", claim_forward}, {"rms_norm_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the handlers --------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/rows/norm_rows.h"
#include "backends/cuda/rows/norm_sums.h"

namespace capibara::cuda {
namespace {

constexpr const char* refusal = "rms_norm: the CUDA kernel takes rows of whole 16-byte pieces, at most 32 KiB";

// (x, scale) -> (y, 1 / root mean squares)
void* rms_norm(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 0);
  const Extent extent = extent_of(x);
  const bool started = with_type(x.dtype, [&](auto number) {
    using T = decltype(number);
    start_normalize<T, false>(
        {data_of<T>(x), data_of<T>(operand(frame, 1)), nullptr, data_of<T>(result(frame, 0)), nullptr,
         data_of<float>(result(frame, 1)), extent.rows, extent.columns, float_attribute(frame, "epsilon", 1e-6f)},
        own_stream(frame));
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

// (dy, x, scale, 1 / root mean squares) -> (dx, dscale, the blocks' sums)
void* rms_norm_grad(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 1);
  const Extent extent = extent_of(x);
  cudaError_t status = cudaSuccess;
  const bool started = with_type(x.dtype, [&](auto number) {
    using T = decltype(number);
    const NormGradients<T> in{data_of<T>(operand(frame, 0)),
                              data_of<T>(x),
                              data_of<T>(operand(frame, 2)),
                              nullptr,
                              data_of<float>(operand(frame, 3)),
                              data_of<T>(result(frame, 0)),
                              data_of<float>(result(frame, 2)),
                              extent.rows,
                              extent.columns};
    status = start_pull_back<T, false>(in, data_of<T>(result(frame, 1)), nullptr,
                                       static_cast<int>(result(frame, 2).dims[1]), own_stream(frame));
  });
  if (status != cudaSuccess) return ffi::failure(frame, cudaGetErrorString(status));
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

constexpr KernelRecord records[] = {{"capibara_rms_norm", rms_norm, ffi::command_buffer_compatible},
                                    {"capibara_rms_norm_grad", rms_norm_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers rms_norm_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
