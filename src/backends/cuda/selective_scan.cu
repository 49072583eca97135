// The selective scan of Mamba, forward and backward, as foreign calls of XLA programs: states stay in registers.
//
// A channel belongs to one thread, or to a few that share its states; neighbouring threads have neighbouring channels,
// so rows are read whole. Forward a thread goes through all steps; its 16 exponentials a step, not memory, are what it
// waits for. Backward a block computes a chunk again from the state at its start, eight steps at a time in shared
// memory, and goes back through them. Gradients of B and C are sums over channels: warps add theirs by shuffles, blocks
// write theirs, and a second kernel adds the blocks in a fixed order: results are equal from run to run.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include "backends/cuda/selective_scan_split.h"

#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

bool fits(std::span<const ArrayType> operands, const Attrs& attrs) {
  const ArrayType &u = operands[0], &A = operands[2];
  const int64_t states = A.shape[1], chunk = attrs.integer("chunk_size");
  if (u.dtype != DType::float32 && u.dtype != DType::bfloat16) return false;
  return u.size() > 0 && states > 0 && states <= max_states && chunk % sub_chunk == 0 && chunk <= max_chunk &&
         u.shape[0] < 65536;
}

std::string settings_of(const Attrs& attrs) {
  std::string text = concat("chunk_size = ", attrs.integer("chunk_size"), " : i64");
  for (const char* name : {"delta_softplus", "gated", "resets"})
    text += concat(", ", name, " = ", attrs.boolean(name) ? 1 : 0, " : i64");
  return text;
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  if (!fits(args.inputs, args.attrs)) return std::nullopt;
  return KernelCall{"capibara_selective_scan", settings_of(args.attrs), {}};
}

std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  const auto operands = args.inputs.subspan(3);
  if (!fits(operands, args.attrs)) return std::nullopt;
  const Shape& u = operands[0].shape;
  const int64_t states = operands[2].shape[1];
  ArrayType sums;  // of dB and dC, for each block
  sums.shape = {u[0], backward_blocks(u[2], states), u[1], 2 * backward_split(states).width()};
  return KernelCall{"capibara_selective_scan_grad", settings_of(args.attrs), {sums}};
}

}  // namespace

Claims selective_scan_claims() { return {{"selective_scan", claim_forward}, {"selective_scan_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/selective_scan_backward.h"

namespace capibara::cuda {
namespace {

template <class T, int Own, int Parts>
__global__ void __launch_bounds__(threads) forward(Inputs<T> in, Sizes s, T* y, float* last, float* starts) {
  constexpr int width = Own * Parts, tile = 64, ahead = 8;
  __shared__ float B[tile * width], C[tile * width];
  const Place<Own, Parts> place(s.dim);
  const int channel = place.present ? place.channel : 0;
  const int64_t first_row = static_cast<int64_t>(place.batch) * s.length;
  float A[Own], h[Own];
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    const int n = place.state(i);
    const bool exists = place.present && n < s.states;
    A[i] = exists ? in.A[static_cast<int64_t>(channel) * s.states + n] * log2_e : 0.0f;
    h[i] = exists ? in.initial[(static_cast<int64_t>(place.batch) * s.dim + channel) * s.states + n] : 0.0f;
  }
  const float D = in.D[channel], bias = in.bias[channel];
  auto load = [&](int t) { return Steps<T, ahead>::loaded(in, first_row, t, s.length, s.dim, channel); };
  Steps<T, ahead> next = load(0);
  for (int t0 = 0; t0 < s.length; t0 += tile) {
    const int count = min(tile, s.length - t0);
    __syncthreads();
    load_columns(in.B, in.C, first_row + t0, count, s.states, width, B, C);
    __syncthreads();
    for (int t1 = 0; t1 < count; t1 += ahead) {
      if ((t0 + t1) % s.chunk == 0 && place.present) {
        const int64_t at = static_cast<int64_t>(place.batch) * s.chunks + (t0 + t1) / s.chunk;
#pragma unroll
        for (int i = 0; i < Own; ++i) {
          if (place.state(i) < s.states) starts[(at * s.states + place.state(i)) * s.dim + channel] = h[i];
        }
      }
      const Steps<T, ahead> now = next;
      next = load(t0 + t1 + ahead);
      const int existing = count - t1;
      float dt[ahead], gate[ahead], sums[ahead];
      step_sizes(now, bias, s.has_softplus, true, dt);
      gates_of(now, in.z != nullptr, gate);
      // Where all steps exist there is no branch between them, so that one's exponentials hide another's latency.
      auto advance = [&](auto all_exist) {
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          if (!all_exist.value && k >= existing) break;
          const float driven = dt[k] * now.u(k);
          const float *own_B = B + (t1 + k) * width, *own_C = C + (t1 + k) * width;
          float sum[2] = {0, 0};
#pragma unroll
          for (int i = 0; i < Own; ++i) {
            const int n = place.state(i);
            h[i] = exp2_fast(dt[k] * A[i]) * (now.reset(k) ? 0.0f : h[i]) + driven * own_B[n];
            sum[i % 2] += h[i] * own_C[n];
          }
          sums[k] = sum[0] + sum[1];
        }
      };
      existing >= ahead ? advance(std::true_type{}) : advance(std::false_type{});
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        const float sum = (over_parts<Parts>(sums[k]) + D * now.u(k)) * gate[k];
        if (place.present && place.part == 0 && k < existing) put(y + (first_row + t0 + t1 + k) * s.dim + channel, sum);
      }
    }
  }
  if (!place.present) return;
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    if (place.state(i) < s.states)
      last[(static_cast<int64_t>(place.batch) * s.dim + channel) * s.states + place.state(i)] = h[i];
  }
}

// ---- handlers ----------------------------------------------------------------------------------------------------

// The operands from `first` on.
template <class T>
Inputs<T> inputs_of(const ffi::CallFrame* frame, int first) {
  const bool gated = integer_attribute(frame, "gated", 0), resets = integer_attribute(frame, "resets", 0);
  auto rows = [&](int i) { return static_cast<const T*>(operand(frame, first + i).data); };
  auto numbers = [&](int i) { return static_cast<const float*>(operand(frame, first + i).data); };
  const uint8_t* reset = resets ? static_cast<const uint8_t*>(operand(frame, first + (gated ? 9 : 8)).data) : nullptr;
  return {rows(0),    rows(1),    rows(3),    rows(4),    gated ? rows(8) : nullptr,
          numbers(2), numbers(5), numbers(6), numbers(7), reset};
}

Sizes sizes_of(const ffi::CallFrame* frame, int first) {
  const ffi::Buffer &u = operand(frame, first), &A = operand(frame, first + 2);
  const int length = static_cast<int>(u.dims[1]), chunk = static_cast<int>(integer_attribute(frame, "chunk_size", 0));
  return {length, static_cast<int>(u.dims[2]),  static_cast<int>(A.dims[1]),
          chunk,  (length + chunk - 1) / chunk, integer_attribute(frame, "delta_softplus", 0) != 0};
}

template <class T, int Own, int Parts>
void start_forward(const ffi::CallFrame* frame, const Sizes& s, int64_t batch, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((s.dim + threads / Parts - 1) / (threads / Parts)),
                  static_cast<unsigned>(batch));
  forward<T, Own, Parts><<<grid, threads, 0, stream>>>(
      inputs_of<T>(frame, 0), s, static_cast<T*>(result(frame, 0).data), static_cast<float*>(result(frame, 1).data),
      static_cast<float*>(result(frame, 2).data));
}

template <class T, int Own, int Parts>
cudaError_t start_backward(const ffi::CallFrame* frame, const Sizes& s, int64_t batch, cudaStream_t stream) {
  constexpr int width = Own * Parts;
  constexpr int bytes =
      static_cast<int>(sizeof(float)) * ((max_chunk / sub_chunk + sub_chunk) * Own * threads + 2 * max_chunk * width +
                                         sub_chunk * (threads / 32) * 2 * width);
  const cudaError_t status =
      cudaFuncSetAttribute(backward<T, Own, Parts>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  const Inputs<T> in = inputs_of<T>(frame, 3);
  auto rows = [&](int i) { return static_cast<T*>(result(frame, i).data); };
  auto numbers = [&](int i) { return static_cast<float*>(result(frame, i).data); };
  const bool gated = in.z != nullptr;
  const Gradients<T> out{static_cast<const T*>(operand(frame, 0).data),
                         static_cast<const float*>(operand(frame, 1).data),
                         static_cast<const float*>(operand(frame, 2).data),
                         rows(0),
                         rows(1),
                         gated ? rows(8) : nullptr,
                         numbers(2),
                         numbers(5),
                         numbers(6),
                         numbers(7),
                         numbers(gated ? 9 : 8)};
  const dim3 grid(static_cast<unsigned>((s.dim + threads / Parts - 1) / (threads / Parts)),
                  static_cast<unsigned>(batch));
  backward<T, Own, Parts><<<grid, threads, bytes, stream>>>(in, s, out);
  const int64_t numbers_of_all = batch * s.length * 2 * width;
  add_blocks<T><<<static_cast<unsigned>((numbers_of_all + threads - 1) / threads), threads, 0, stream>>>(
      out.sums, rows(3), rows(4), batch * s.length, s.length, s.states, width, static_cast<int>(grid.x));
  return cudaSuccess;
}

template <class T>
cudaError_t start(const ffi::CallFrame* frame, bool is_forward, cudaStream_t stream) {
  const int first = is_forward ? 0 : 3;
  const Sizes s = sizes_of(frame, first);
  const int64_t batch = operand(frame, first).dims[0];
  if (is_forward) {
    // Threads that share a channel repeat the work of a step: only where there are too few channels to fill the GPU.
    const bool few = batch * s.dim < 8192;
    if (s.states > 16)
      start_forward<T, 16, 4>(frame, s, batch, stream);
    else if (few)
      start_forward<T, 4, 4>(frame, s, batch, stream);
    else
      start_forward<T, 16, 1>(frame, s, batch, stream);
    return cudaSuccess;
  }
  constexpr Split small = backward_split(16), large = backward_split(max_states);
  if (s.states <= 16) return start_backward<T, small.own, small.parts>(frame, s, batch, stream);
  return start_backward<T, large.own, large.parts>(frame, s, batch, stream);
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const auto stream = static_cast<cudaStream_t>(ffi::stream_of(frame));
  const int32_t dtype = operand(frame, is_forward ? 0 : 3).dtype;
  cudaError_t status = cudaErrorInvalidValue;
  if (dtype == f32)
    status = start<float>(frame, is_forward, stream);
  else if (dtype == bf16)
    status = start<__nv_bfloat16>(frame, is_forward, stream);
  else
    return ffi::failure(frame, "selective_scan: the CUDA kernel takes float32 and bfloat16");
  if (status == cudaSuccess) status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

void* selective_scan(ffi::CallFrame* frame) { return run(frame, true); }
void* selective_scan_grad(ffi::CallFrame* frame) { return run(frame, false); }

constexpr KernelRecord records[] = {
    {"capibara_selective_scan", selective_scan, ffi::command_buffer_compatible},
    {"capibara_selective_scan_grad", selective_scan_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers selective_scan_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
