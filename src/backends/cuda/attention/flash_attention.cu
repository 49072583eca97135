// Attention as foreign calls of XLA programs: masks, bias, dropout, windows, segments and block patterns, any
// length, heads of up to 256 elements, in memory proportional to the length.
//
// nvcc compiles the handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__

#include "backends/cuda/attention/attention_claims.h"

namespace capibara::cuda {

Claims flash_attention_claims() {
  return {{"flash_attention", attention_claims::forward}, {"flash_attention_grad", attention_claims::backward}};
}

}  // namespace capibara::cuda

#else  // ---- the handlers --------------------------------------------------------------------------------------------

#include <type_traits>

#include "backends/cuda/attention/attention_start.h"
#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"

namespace capibara::cuda {
namespace {

using attention::Element;
using attention::Problem;

int64_t integer_attribute(const ffi::CallFrame* frame, const char* name, int64_t otherwise) {
  if (const void* value = ffi::find_attribute(frame, name))
    std::memcpy(&otherwise, static_cast<const ffi::Scalar*>(value)->value, sizeof otherwise);
  return otherwise;
}

// Strides in elements, 0 along dimensions of size 1.
void set_steps(int64_t (&steps)[4], const ffi::Buffer& buffer) {
  int64_t step = 1;
  for (int i = 3; i >= 0; --i) {
    steps[i] = buffer.dims[i] == 1 ? 0 : step;
    step *= buffer.dims[i];
  }
}

// Optional operands, which follow the `leading` required ones.
struct Extras {
  const ffi::CallFrame* frame;
  int leading;

  const ffi::Buffer* operator()(const char* name) const {
    const int64_t index = integer_attribute(frame, name, -1);
    return index < 0 ? nullptr : &operand(frame, leading + static_cast<int>(index));
  }
};

void set_extras(Problem& p, const Extras& extra) {
  if (const ffi::Buffer* mask = extra("mask")) {
    p.mask = static_cast<const uint8_t*>(mask->data);
    set_steps(p.mask_step, *mask);
    p.mask_rows = mask->dims[0] * mask->dims[1] * mask->dims[2];
    for (int i = 0; i < 3; ++i) p.mask_row[i] = p.mask_step[i] / mask->dims[3];
  }
  if (const ffi::Buffer* bias = extra("bias")) {
    p.bias = bias->data;
    p.wide_bias = bias->dtype == f32;
    set_steps(p.bias_step, *bias);
  }
  if (const ffi::Buffer* segments = extra("query_segments")) {
    p.query_segments = static_cast<const int*>(segments->data);
    p.segment_step[0] = segments->dims[0] == 1 ? 0 : p.queries;
  }
  if (const ffi::Buffer* segments = extra("key_segments")) {
    p.key_segments = static_cast<const int*>(segments->data);
    p.segment_step[1] = segments->dims[0] == 1 ? 0 : p.keys;
  }
  if (const ffi::Buffer* keys = extra("dropout_key")) {
    p.dropout_keys = static_cast<const uint32_t*>(keys->data);
    p.dropout_share = p.batch / static_cast<int>(keys->dims[0]);
  }
  if (const ffi::Buffer* blocks = extra("blocks")) {
    p.blocks = static_cast<const uint8_t*>(blocks->data);
    set_steps(p.block_step, *blocks);
  }
}

Problem problem_of(const ffi::CallFrame* frame, int query, int leading) {
  Problem p{};
  const ffi::Buffer &q = operand(frame, query), &k = operand(frame, query + 1), &v = operand(frame, query + 2);
  auto number = [&](const char* name) { return static_cast<int>(integer_attribute(frame, name, 0)); };
  p.query = q.data, p.key = k.data, p.value = v.data;
  p.batch = static_cast<int>(q.dims[0]), p.heads = static_cast<int>(q.dims[1]), p.groups = static_cast<int>(k.dims[1]);
  p.queries = static_cast<int>(q.dims[2]), p.keys = static_cast<int>(k.dims[2]);
  p.size = static_cast<int>(q.dims[3]), p.value_size = static_cast<int>(v.dims[3]);
  p.scale = float_attribute(frame, "scale", 1.0f), p.keep_scale = float_attribute(frame, "keep_scale", 1.0f);
  p.threshold = static_cast<uint32_t>(number("threshold"));
  for (int i = 0; i < 16; ++i) p.threshold_digits[i] = p.threshold >> i & 1 ? 0u : ~0u;
  p.causal = number("causal") != 0, p.left = number("left"), p.right = number("right"), p.sinks = number("sinks");
  p.prefix = number("prefix"), p.offset = number("offset"), p.block_size = number("block_size");
  p.packed = number("packed") != 0;
  p.splits = static_cast<int>(integer_attribute(frame, "splits", 1));
  set_extras(p, {frame, leading});
  p.part_groups = p.groups;
  attention::set_factors(p);
  return p;
}

// The mask bits are the last result, if the call has one for them.
void set_mask_bits(Problem& p, const ffi::CallFrame* frame, int index) {
  if (integer_attribute(frame, "mask_bits", 0)) p.mask_bits = static_cast<uint64_t*>(result(frame, index).data);
}

template <class Start>
void* run(ffi::CallFrame* frame, int query, Start start) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const int32_t dtype = operand(frame, query).dtype;
  constexpr int32_t f16 = 10;
  if (dtype != f32 && dtype != bf16 && dtype != f16)
    return ffi::failure(frame, "attention: the CUDA kernel takes float32, bfloat16 and float16");
  const Element element = dtype == f32 ? Element::single : dtype == bf16 ? Element::bfloat16 : Element::half;
  const cudaError_t status = start(element, static_cast<cudaStream_t>(ffi::stream_of(frame)));
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

// query, key, value, ... -> output, log-sum-exp; parts of both if the keys are split.
void* forward(ffi::CallFrame* frame) {
  return run(frame, 0, [&](Element element, cudaStream_t stream) {
    Problem p = problem_of(frame, 0, 3);
    p.out = result(frame, 0).data;
    p.out_lse = static_cast<float*>(result(frame, 1).data);
    if (p.splits > 1) p.part_out = static_cast<float*>(result(frame, 2).data);
    if (p.splits > 1) p.part_lse = static_cast<float*>(result(frame, 3).data);
    set_mask_bits(p, frame, p.splits > 1 ? 4 : 2);
    return attention::start_forward(p, element, stream);
  });
}

// cotangent, query, key, value, log-sum-exp, row sums, ... -> dquery, dkey, dvalue, dbias if there is a bias.
void* backward(ffi::CallFrame* frame) {
  return run(frame, 1, [&](Element element, cudaStream_t stream) {
    Problem p = problem_of(frame, 1, 6);
    p.cotangent = operand(frame, 0).data;
    p.lse = static_cast<const float*>(operand(frame, 4).data);
    p.delta = static_cast<const float*>(operand(frame, 5).data);
    p.dquery = result(frame, 0).data, p.dkey = result(frame, 1).data, p.dvalue = result(frame, 2).data;
    if (p.bias) p.dbias = result(frame, 3).data;
    const int behind = p.bias ? 4 : 3;
    set_mask_bits(p, frame, behind);
    if (const int64_t groups = integer_attribute(frame, "gradient_groups", 0)) {
      p.part_groups = static_cast<int>(groups);
      p.gradients = result(frame, behind + (p.mask_bits ? 1 : 0)).data;
    }
    return attention::start_backward(p, element, stream);
  });
}

constexpr KernelRecord records[] = {{"capibara_attention", forward, ffi::command_buffer_compatible},
                                    {"capibara_attention_grad", backward, ffi::command_buffer_compatible}};

}  // namespace

Handlers flash_attention_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
