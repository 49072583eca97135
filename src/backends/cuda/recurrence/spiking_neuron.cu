// Spiking neurons, forward and backward, as foreign calls of XLA programs: a thread owns a neuron for all time steps.
//
// Both are memory-bound: several steps are read at once, to keep many loads in flight. The backward kernel first runs
// a neuron forward and saves its potential at the start of every chunk of steps; then chunk by chunk, from the last
// one, its charges are recomputed and stay in registers while the cotangents propagate backward.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

namespace capibara::cuda {
namespace {

constexpr int chunk_steps = 16;
enum Reset : int32_t { hard, soft, keep };
enum Surrogate : int32_t { atan_slope, sigmoid, fast_sigmoid, triangle, rectangle, straight_through };

}  // namespace
}  // namespace capibara::cuda

#ifndef __CUDACC__  // ---- the claim ---------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

int32_t position(std::initializer_list<const char*> names, const std::string& name) {
  int32_t at = 0;
  for (const char* one : names) {
    if (name == one) break;
    ++at;
  }
  return at;
}

std::string settings_of(const Attrs& attrs) {
  std::string text;
  for (const char* name : {"threshold", "leak_rate", "reset_value", "slope"})
    text += float_setting(name, attrs.real(name)) + ", ";
  return concat(text, "reset = ", position({"hard", "soft"}, attrs.text("reset")), " : i32, surrogate = ",
                position({"atan", "sigmoid", "fast_sigmoid", "triangle", "rectangle"}, attrs.text("surrogate")),
                " : i32, detach_reset = ", attrs.boolean("detach_reset") ? 1 : 0, " : i32");
}

bool spiking_fits(const ArrayType& inputs) {
  return (inputs.dtype == DType::float32 || inputs.dtype == DType::bfloat16) && inputs.size() > 0;
}

std::optional<KernelCall> claim_spikes(const ClaimArgs& args) {
  if (!spiking_fits(args.inputs[0])) return std::nullopt;
  return KernelCall{"capibara_spiking_neuron", settings_of(args.attrs), {}};
}

std::optional<KernelCall> claim_spikes_grad(const ClaimArgs& args) {
  const ArrayType& inputs = args.inputs[2];
  if (!spiking_fits(inputs)) return std::nullopt;
  ArrayType potentials;
  potentials.shape = {(inputs.shape[0] + chunk_steps - 1) / chunk_steps, inputs.size() / inputs.shape[0]};
  return KernelCall{"capibara_spiking_neuron_grad", settings_of(args.attrs), {potentials}};
}

}  // namespace

Claims spiking_neuron_claims() {
  return {{"spiking_neuron", claim_spikes}, {"spiking_neuron_grad", claim_spikes_grad}};
}

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"

namespace capibara::cuda {
namespace {

struct Neuron {
  float threshold, leak_rate, reset_value, slope;
  int32_t reset, surrogate, detach_reset;

  __device__ float charged(float potential, float input) const {
    return potential - (potential - reset_value) * leak_rate + input;
  }
  __device__ float spike(float charge) const { return charge - threshold >= 0 ? 1.0f : 0.0f; }
  __device__ float after_reset(float charge, float spike) const {
    if (reset == hard) return charge * (1 - spike) + reset_value * spike;
    return reset == soft ? charge - threshold * spike : charge;
  }
  __device__ float slope_at(float d) const {
    const float size = fabsf(d * slope);
    switch (surrogate) {
      case atan_slope: {
        const float angle = d * (1.57079632679f * slope);
        return slope / 2 / (1 + angle * angle);
      }
      case sigmoid: {
        const float e = __expf(-size);
        return slope * e / ((1 + e) * (1 + e));
      }
      case fast_sigmoid:
        return 1 / ((1 + size) * (1 + size));
      case triangle:
        return size > 1 ? 0.0f : 1 - size;
      case rectangle:
        return size < 0.5f ? slope : 0.0f;
      default:
        return 1.0f;
    }
  }
};

__device__ float as_float(float value) { return value; }
__device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void store(float* to, float value) { *to = value; }
__device__ void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16(value); }

// Loads up to chunk_steps steps of one neuron starting at `step`; those after the last are 0.
template <class T>
__device__ void load_chunk(const T* from, int64_t neurons, int64_t at, int64_t step, int64_t steps,
                           float (&values)[chunk_steps]) {
#pragma unroll
  for (int i = 0; i < chunk_steps; ++i) values[i] = step + i < steps ? as_float(from[(step + i) * neurons + at]) : 0.0f;
}

template <class T>
__global__ void __launch_bounds__(256)
    forward(Neuron neuron, const T* inputs, const float* start, T* spikes, float* end, int64_t steps, int64_t neurons) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= neurons) return;
  float potential = start[at], values[chunk_steps];
  for (int64_t step = 0; step < steps; step += chunk_steps) {
    load_chunk(inputs, neurons, at, step, steps, values);
#pragma unroll
    for (int i = 0; i < chunk_steps; ++i) {
      if (step + i < steps) {
        const float charge = neuron.charged(potential, values[i]), spike = neuron.spike(charge);
        potential = neuron.after_reset(charge, spike);
        store(spikes + (step + i) * neurons + at, spike);
      }
    }
  }
  end[at] = potential;
}

template <class T>
__global__ void __launch_bounds__(256)
    backward(Neuron neuron, const T* from_spikes, const float* from_end, const T* inputs, const float* start,
             T* to_inputs, float* to_start, float* potentials, int64_t steps, int64_t neurons) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= neurons) return;
  float potential = start[at], values[chunk_steps], cotangents[chunk_steps];
  const int64_t chunks = (steps + chunk_steps - 1) / chunk_steps;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    potentials[chunk * neurons + at] = potential;
    if (chunk + 1 == chunks) break;
    load_chunk(inputs, neurons, at, chunk * chunk_steps, steps, values);
#pragma unroll
    for (int i = 0; i < chunk_steps; ++i) {
      const float charge = neuron.charged(potential, values[i]);
      potential = neuron.after_reset(charge, neuron.spike(charge));
    }
  }
  float cotangent = from_end[at];
  for (int64_t chunk = chunks; chunk-- > 0;) {
    const int64_t step = chunk * chunk_steps;
    load_chunk(inputs, neurons, at, step, steps, values);
    load_chunk(from_spikes, neurons, at, step, steps, cotangents);
    potential = potentials[chunk * neurons + at];
#pragma unroll
    for (int i = 0; i < chunk_steps; ++i) {
      values[i] = neuron.charged(potential, values[i]);
      potential = neuron.after_reset(values[i], neuron.spike(values[i]));
    }
#pragma unroll
    for (int i = chunk_steps - 1; i >= 0; --i) {
      if (step + i < steps) {
        const float charge = values[i];
        float through = cotangent, of_spike = cotangents[i];
        if (neuron.reset == hard) through = cotangent * (1 - neuron.spike(charge));
        if (neuron.reset != keep && !neuron.detach_reset)
          of_spike += cotangent * (neuron.reset == soft ? -neuron.threshold : neuron.reset_value - charge);
        const float total = through + of_spike * neuron.slope_at(charge - neuron.threshold);
        store(to_inputs + (step + i) * neurons + at, total);
        cotangent = total * (1 - neuron.leak_rate);
      }
    }
  }
  to_start[at] = cotangent;
}

// ---- handlers -----------------------------------------------------------------------------------------------------

int32_t integer_attribute(const ffi::CallFrame* frame, const char* name) {
  int32_t number = 0;
  if (const void* value = ffi::find_attribute(frame, name))
    std::memcpy(&number, static_cast<const ffi::Scalar*>(value)->value, sizeof number);
  return number;
}

Neuron neuron_of(const ffi::CallFrame* frame) {
  return {float_attribute(frame, "threshold", 1),   float_attribute(frame, "leak_rate", 0),
          float_attribute(frame, "reset_value", 0), float_attribute(frame, "slope", 1),
          integer_attribute(frame, "reset"),        integer_attribute(frame, "surrogate"),
          integer_attribute(frame, "detach_reset")};
}

template <class T>
void start(const ffi::CallFrame* frame, bool is_forward, cudaStream_t stream) {
  const ffi::Buffer& inputs = operand(frame, is_forward ? 0 : 2);
  const int64_t steps = inputs.dims[0];
  int64_t neurons = 1;
  for (int64_t i = 1; i < inputs.rank; ++i) neurons *= inputs.dims[i];
  const auto blocks = static_cast<unsigned>((neurons + 255) / 256);
  const Neuron neuron = neuron_of(frame);
  auto in = [&](int i) { return operand(frame, i).data; };
  auto out = [&](int i) { return result(frame, i).data; };
  if (is_forward) {
    forward<T><<<blocks, 256, 0, stream>>>(neuron, static_cast<const T*>(in(0)), static_cast<const float*>(in(1)),
                                           static_cast<T*>(out(0)), static_cast<float*>(out(1)), steps, neurons);
  } else {
    backward<T><<<blocks, 256, 0, stream>>>(neuron, static_cast<const T*>(in(0)), static_cast<const float*>(in(1)),
                                            static_cast<const T*>(in(2)), static_cast<const float*>(in(3)),
                                            static_cast<T*>(out(0)), static_cast<float*>(out(1)),
                                            static_cast<float*>(out(2)), steps, neurons);
  }
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const int32_t dtype = operand(frame, is_forward ? 0 : 2).dtype;
  const auto stream = static_cast<cudaStream_t>(ffi::stream_of(frame));
  if (dtype == f32)
    start<float>(frame, is_forward, stream);
  else if (dtype == bf16)
    start<__nv_bfloat16>(frame, is_forward, stream);
  else
    return ffi::failure(frame, "spiking_neuron: the CUDA kernel takes float32 and bfloat16");
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

void* spiking_neuron(ffi::CallFrame* frame) { return run(frame, true); }
void* spiking_neuron_grad(ffi::CallFrame* frame) { return run(frame, false); }

constexpr KernelRecord records[] = {
    {"capibara_spiking_neuron", spiking_neuron, ffi::command_buffer_compatible},
    {"capibara_spiking_neuron_grad", spiking_neuron_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers spiking_neuron_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
