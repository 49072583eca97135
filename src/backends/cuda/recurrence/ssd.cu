// The state space dual of Mamba-2, forward and backward, as foreign calls of XLA programs: bfloat16 matmuls on
// tensor cores inside chunks, states in registers from chunk to chunk.
//
// A block processes one head, chunk by chunk in order, so that only the states that the definition saves are
// written; the next chunk is prefetched. States and their gradients accumulate in float32;
// matmul operands are rounded to bfloat16.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include "backends/cuda/recurrence/ssd_split.h"

#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

bool fits(std::span<const ArrayType> operands, const ClaimArgs& args) {
  const ArrayType &x = operands[0], &B = operands[3];
  return x.dtype == DType::bfloat16 && x.size() > 0 && x.shape[3] == ssd_dim && takes_states(B.shape[3]) &&
         args.attrs.integer("chunk_size") == ssd_chunk && x.shape[0] < 65536 && args.shared_memory >= 160 * 1024;
}

std::string settings_of(const Attrs& attrs) {
  std::string text = concat("dt_softplus = ", attrs.boolean("dt_softplus") ? 1 : 0, " : i64");
  for (const char* name : {"gated", "resets"}) text += concat(", ", name, " = ", attrs.boolean(name) ? 1 : 0, " : i64");
  return text;
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  if (!fits(args.inputs, args)) return std::nullopt;
  return KernelCall{"capibara_ssd", settings_of(args.attrs), {}};
}

std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  const auto operands = args.inputs.subspan(3);
  if (!fits(operands, args)) return std::nullopt;
  ArrayType sums = operands[0];  // of dB and dC, per head
  sums.shape[3] = operands[3].shape[3];
  return KernelCall{"capibara_ssd_grad", settings_of(args.attrs), {sums, sums}};
}

}  // namespace

Claims ssd_claims() { return {{"ssd", claim_forward}, {"ssd_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the handlers --------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/recurrence/ssd_problem.h"
#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

// The operands starting at `first`.
SsdInputs ssd_inputs(const ffi::CallFrame* frame, int first) {
  const bool gated = integer_attribute(frame, "gated", 0), resets = integer_attribute(frame, "resets", 0);
  auto rows = [&](int i) { return data_of<const __nv_bfloat16>(operand(frame, first + i)); };
  auto numbers = [&](int i) { return data_of<const float>(operand(frame, first + i)); };
  const uint8_t* reset = resets ? data_of<const uint8_t>(operand(frame, first + (gated ? 9 : 8))) : nullptr;
  return {rows(0),    rows(1),    rows(3),    rows(4),    gated ? rows(8) : nullptr,
          numbers(2), numbers(5), numbers(6), numbers(7), reset};
}

SsdSizes ssd_sizes(const ffi::CallFrame* frame, int first) {
  const ffi::Buffer &x = operand(frame, first), &B = operand(frame, first + 3);
  const int length = static_cast<int>(x.dims[1]);
  return {x.dims[0],
          length,
          static_cast<int>(x.dims[2]),
          static_cast<int>(B.dims[2]),
          static_cast<int>(B.dims[3]),
          (length + ssd_chunk - 1) / ssd_chunk,
          integer_attribute(frame, "dt_softplus", 0) != 0};
}

// ... -> (y, last state, states at the starts of chunks)
void* ssd(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const SsdOutputs out{data_of<__nv_bfloat16>(result(frame, 0)), data_of<float>(result(frame, 1)),
                       data_of<float>(result(frame, 2))};
  const cudaError_t status = start_ssd_forward(ssd_inputs(frame, 0), ssd_sizes(frame, 0), out, own_stream(frame));
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

// (dy, dlast, states, the operands) -> (dx, ddt, dA, dB, dC, dD, dbias, dinitial, dz if gated, the heads' dB and dC)
void* ssd_grad(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const SsdInputs in = ssd_inputs(frame, 3);
  const int scratch = in.z ? 9 : 8;
  auto rows = [&](int i) { return data_of<__nv_bfloat16>(result(frame, i)); };
  auto numbers = [&](int i) { return data_of<float>(result(frame, i)); };
  const SsdGradients out{data_of<const __nv_bfloat16>(operand(frame, 0)),
                         data_of<const float>(operand(frame, 1)),
                         data_of<const float>(operand(frame, 2)),
                         rows(0),
                         rows(1),
                         rows(3),
                         rows(4),
                         in.z ? rows(8) : nullptr,
                         numbers(2),
                         numbers(5),
                         numbers(6),
                         numbers(7),
                         rows(scratch),
                         rows(scratch + 1)};
  const cudaError_t status = start_ssd_backward(in, ssd_sizes(frame, 3), out, own_stream(frame));
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

constexpr KernelRecord records[] = {{"capibara_ssd", ssd, ffi::command_buffer_compatible},
                                    {"capibara_ssd_grad", ssd_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers ssd_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
