// Routing of tokens to experts as foreign calls of XLA programs: three short kernels, dominated by latency.
//
// A warp chooses the experts of a token, with the logits distributed over its lanes, and a block counts its choices;
// one block adds the counts of all blocks, which gives the offsets of their copies; then every copy is placed, with
// votes in a warp of 32 tokens to rank them. All sums have a fixed order: results are reproducible from run to run.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

namespace capibara::cuda {
namespace {

constexpr int max_experts = 256, max_choices = 16;
constexpr int block_tokens = 128;  // of a block

constexpr int64_t blocks_for(int64_t tokens) { return (tokens + block_tokens - 1) / block_tokens; }

}  // namespace
}  // namespace capibara::cuda

#ifndef __CUDACC__  // ---- the claim

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

bool fits(const ArrayType& logits, const Attrs& attrs) {
  if (logits.dtype != DType::float32 && logits.dtype != DType::bfloat16) return false;
  return logits.rank() == 2 && logits.size() > 0 && logits.shape[0] <= 1 << 24 && logits.shape[1] <= max_experts &&
         attrs.integer("top_k") <= max_choices;
}

std::string settings_of(const Attrs& attrs) {
  return concat("capacity = ", attrs.integer("capacity"),
                " : i64, renormalize = ", attrs.boolean("renormalize") ? 1 : 0,
                " : i64, load_balancing = ", attrs.boolean("load_balancing") ? 1 : 0, " : i64");
}

ArrayType scratch(DType dtype, Shape shape) {
  ArrayType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  const ArrayType& logits = args.inputs[0];
  if (!fits(logits, args.attrs)) return std::nullopt;
  const int64_t blocks = blocks_for(logits.shape[0]), experts = logits.shape[1];
  return KernelCall{"capibara_moe_routing",
                    settings_of(args.attrs),
                    {scratch(DType::int32, {experts, args.attrs.integer("top_k"), blocks}),
                     scratch(DType::float32, {blocks, experts}), scratch(DType::int32, {2 * experts + 1})}};
}

std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  if (!fits(args.inputs[2], args.attrs)) return std::nullopt;
  return KernelCall{"capibara_moe_routing_grad", settings_of(args.attrs), {}};
}

}  // namespace

Claims moe_routing_claims() { return {{"moe_routing", claim_forward}, {"moe_routing_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"

// Rows of logits, distributed over the lanes of a warp.

namespace capibara::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;

inline __device__ float as_float(float value) { return value; }
inline __device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
inline __device__ void store(float* to, float value) { *to = value; }
inline __device__ void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16(value); }

inline __device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(all_lanes, value, step);
  return value;
}

// An unsigned key that compares in the order of lax.top_k: the bits, with negative numbers reversed.
inline __device__ unsigned key_of(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

// Loads the logits of a token, expert lane + 32 * i to values[i]; those that do not exist are -infinity.
template <class T, int per_lane>
__device__ void load_row(const T* row, int experts, float (&values)[per_lane]) {
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int expert = threadIdx.x % 32 + 32 * i;
    values[i] = expert < experts ? as_float(row[expert]) : -INFINITY;
  }
}

// The reverse derivative of routing: one warp per token.

namespace {

struct Call {
  int tokens, experts, choices, capacity;
  bool renormalize, load_balancing;
};

constexpr int pull_warps = 8;  // per block, one token each

// Pulls the cotangents of weights and loss back to the logits: one warp per token.
template <class T, int per_lane>
__global__ void __launch_bounds__(32 * pull_warps)
    pull(const float* dweights, const float* dloss, const T* logits, const int* experts, const float* weights,
         const int* load, T* dlogits, Call call) {
  const int lane = threadIdx.x % 32, token = blockIdx.x * pull_warps + threadIdx.x / 32;
  if (token >= call.tokens) return;
  float values[per_lane], gradients[per_lane], changes[per_lane] = {};
  load_row<T, per_lane>(logits + static_cast<int64_t>(token) * call.experts, call.experts, values);
  const int64_t copy = static_cast<int64_t>(token) * call.choices + lane;
  const bool is_choice = lane < call.choices;
  const int expert = is_choice ? experts[copy] : -1;
  const float gradient = is_choice && weights[copy] != 0 ? dweights[copy] : 0;
  float of_choice = call.renormalize ? 0 : gradient;  // contribution of this lane's choice to its expert's gradient
  if (call.renormalize) {
    float own = 0;
    for (int j = 0; j < call.choices; ++j) {
      const int other = __shfl_sync(all_lanes, expert, j);
      float value = 0;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) value += other == lane + 32 * i ? values[i] : 0;
      value = warp_sum(value);
      if (lane == j) own = value;
    }
    float greatest = is_choice ? own : -INFINITY;
    for (int step = 16; step > 0; step /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(all_lanes, greatest, step));
    const float power = is_choice ? expf(own - greatest) : 0, share = power / warp_sum(power);
    of_choice = share * (gradient - warp_sum(share * gradient));
  }
  for (int j = 0; j < call.choices; ++j) {
    const int other = __shfl_sync(all_lanes, expert, j);
    const float added = __shfl_sync(all_lanes, of_choice, j);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) changes[i] += other == lane + 32 * i ? added : 0;
  }
  if (call.load_balancing || !call.renormalize) {
    const float copies = static_cast<float>(call.tokens) * static_cast<float>(call.choices);
    const float factor = static_cast<float>(call.experts) / copies * *dloss / static_cast<float>(call.tokens);
    float greatest = -INFINITY, sum = 0, mean = 0, shares[per_lane];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) greatest = fmaxf(greatest, values[i]);
    for (int step = 16; step > 0; step /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(all_lanes, greatest, step));
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const bool exists = lane + 32 * i < call.experts;
      shares[i] = exists ? expf(values[i] - greatest) : 0;
      gradients[i] = exists && call.load_balancing ? static_cast<float>(load[lane + 32 * i]) * factor : 0;
      if (!call.renormalize) gradients[i] += changes[i];
      sum += shares[i];
    }
    sum = warp_sum(sum);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) mean += shares[i] / sum * gradients[i];
    mean = warp_sum(mean);
#pragma unroll
    for (int i = 0; i < per_lane; ++i)
      changes[i] = (call.renormalize ? changes[i] : 0) + shares[i] / sum * (gradients[i] - mean);
  }
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (lane + 32 * i < call.experts)
      store(dlogits + static_cast<int64_t>(token) * call.experts + lane + 32 * i, changes[i]);
  }
}

constexpr unsigned no_expert = 0xffffffffu;
constexpr int warps = 32;  // per block of choose and place: many, to hide the latency of each token
constexpr int row_warps = block_tokens / 32;

// Weights and experts of a block's tokens, counts by choice and expert, and sums of the experts' probabilities.
template <class T, int per_lane>
__global__ void __launch_bounds__(32 * warps)
    choose(const T* logits, float* weights, int* experts, int* counts, float* shares, Call call) {
  extern __shared__ int shared[];
  int* histogram = shared;                                                      // [choices][experts]
  auto* sums = reinterpret_cast<float*>(shared + call.choices * call.experts);  // [warps][experts]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = gridDim.x;
  for (int i = threadIdx.x; i < call.choices * call.experts; i += blockDim.x) histogram[i] = 0;
  __syncthreads();
  float share[per_lane] = {};
  constexpr int own_tokens = block_tokens / warps;
  const int begin = blockIdx.x * block_tokens + warp * own_tokens;
  float rows[own_tokens][per_lane];
#pragma unroll
  for (int r = 0; r < own_tokens; ++r) {  // all loads in flight at once
    const int64_t token = min(begin + r, call.tokens - 1);
    load_row<T, per_lane>(logits + token * call.experts, call.experts, rows[r]);
  }
#pragma unroll
  for (int r = 0; r < own_tokens; ++r) {
    const int token = begin + r;
    if (token >= call.tokens) break;
    const float(&values)[per_lane] = rows[r];
    unsigned open = 0;  // bit mask of this lane's experts that are not chosen yet
#pragma unroll
    for (int i = 0; i < per_lane; ++i) open |= lane + 32 * i < call.experts ? 1u << i : 0u;
    int own_expert = 0;  // for choice `lane`
    float own_value = -INFINITY, greatest = 0;
    for (int j = 0; j < call.choices; ++j) {
      unsigned best = 0, number = no_expert;
      float value = 0;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        const unsigned key = key_of(values[i]);
        if ((open >> i & 1) && (number == no_expert || key > best)) {
          best = key;
          number = lane + 32 * i;
          value = values[i];
        }
      }
      const unsigned limit = __reduce_max_sync(all_lanes, best);
      const unsigned winner = __reduce_min_sync(all_lanes, best == limit ? number : no_expert);
      if (number == winner) open &= ~(1u << winner / 32);
      value = __shfl_sync(all_lanes, value, winner % 32);
      if (j == 0) greatest = value;
      if (lane == j) {
        own_expert = static_cast<int>(winner);
        own_value = value;
      }
    }
    const float power = lane < call.choices ? expf(own_value - greatest) : 0;
    float sum = 0;
    if (call.load_balancing || !call.renormalize) {
      float powers[per_lane], part = 0;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        powers[i] = lane + 32 * i < call.experts ? expf(values[i] - greatest) : 0;
        part += powers[i];
      }
      sum = warp_sum(part);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) share[i] += powers[i] / sum;
    }
    if (call.renormalize) sum = warp_sum(power);
    if (lane < call.choices) {
      const int64_t copy = static_cast<int64_t>(token) * call.choices + lane;
      weights[copy] = power / sum;
      experts[copy] = own_expert;
      atomicAdd(histogram + lane * call.experts + own_expert, 1);
    }
  }
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (lane + 32 * i < call.experts) sums[warp * call.experts + lane + 32 * i] = share[i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < call.choices * call.experts; i += blockDim.x) {
    const int choice = i / call.experts, expert = i % call.experts;
    counts[(expert * call.choices + choice) * blocks + blockIdx.x] = histogram[i];
  }
  for (int expert = threadIdx.x; expert < call.experts; expert += blockDim.x) {
    float total = 0;
    for (int w = 0; w < warps; ++w) total += sums[w * call.experts + expert];
    shares[blockIdx.x * call.experts + expert] = total;
  }
}

// The inclusive prefix sum over the lanes.
__device__ int prefix_sum(int value) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int left = __shfl_up_sync(all_lanes, value, step);
    if (static_cast<int>(threadIdx.x % 32) >= step) value += left;
  }
  return value;
}

// In one block: converts counts [expert][choice][block] to the number of the expert's preceding copies; computes the
// experts' sizes and loads; `starts`: the starts of their rows, of their copies over capacity, and of all such copies.
__global__ void __launch_bounds__(1024)
    arrange(int* counts, const float* shares, int* starts, int* sizes, int* load, float* loss, int blocks, Call call) {
  __shared__ int loads[max_experts];
  __shared__ float terms[max_experts];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, entries = call.choices * blocks;
  for (int expert = warp; expert < call.experts; expert += blockDim.x / 32) {
    int* own = counts + static_cast<int64_t>(expert) * entries;
    float share = 0;
    if (call.load_balancing) {
#pragma unroll 4
      for (int block = lane; block < blocks; block += 32) share += shares[block * call.experts + expert];
    }
    int before = 0;
    constexpr int each = 16;  // loads in flight per lane
    for (int first = 0; first < entries; first += 32 * each) {
      int values[each], prefix[each];
#pragma unroll
      for (int q = 0; q < each; ++q) {
        const int at = first + q * 32 + lane;
        values[q] = at < entries ? own[at] : 0;
      }
#pragma unroll
      for (int q = 0; q < each; ++q) prefix[q] = prefix_sum(values[q]);
#pragma unroll
      for (int q = 0; q < each; ++q) {
        const int at = first + q * 32 + lane;
        if (at < entries) own[at] = before + prefix[q] - values[q];
        before += __shfl_sync(all_lanes, prefix[q], 31);
      }
    }
    share = warp_sum(share);
    if (lane == 0) {
      loads[expert] = before;
      const float copies = static_cast<float>(call.tokens) * static_cast<float>(call.choices);
      terms[expert] = share / static_cast<float>(call.tokens) *
                      (static_cast<float>(before) * (static_cast<float>(call.experts) / copies));
    }
  }
  __syncthreads();
  if (warp != 0) return;
  int with = 0, without = 0;
  float total = 0;
  for (int first = 0; first < call.experts; first += 32) {
    const int expert = first + lane;
    const bool exists = expert < call.experts;
    const int own = exists ? loads[expert] : 0, taken = call.capacity < 0 ? own : min(own, call.capacity);
    const int taken_sum = prefix_sum(taken), rest_sum = prefix_sum(own - taken);
    if (exists) {
      starts[expert] = with + taken_sum - taken;
      starts[call.experts + expert] = without + rest_sum - (own - taken);
      sizes[expert] = taken;
      load[expert] = own;
      total += terms[expert];
    }
    with += __shfl_sync(all_lanes, taken_sum, 31);
    without += __shfl_sync(all_lanes, rest_sum, 31);
  }
  total = warp_sum(total);
  if (lane != 0) return;
  starts[2 * call.experts] = with;
  *loss = call.load_balancing ? total : 0;
}

// Places each copy: after those of preceding blocks, and after preceding ones of its own block. A warp handles
// one choice of 32 tokens.
__global__ void __launch_bounds__(32 * warps)
    place(const int* experts, const int* counts, const int* starts, const int* sizes, float* weights, int* permutation,
          int* inverse, Call call) {
  extern __shared__ int earlier[];  // [choices][row_warps][experts]: copies per expert of these 32 tokens
  const int lane = threadIdx.x % 32, first = blockIdx.x * block_tokens, blocks = gridDim.x;
  for (int i = threadIdx.x; i < call.choices * row_warps * call.experts; i += blockDim.x) earlier[i] = 0;
  __syncthreads();
  const int tasks = call.choices * row_warps;
  constexpr int each = (max_choices * row_warps + warps - 1) / warps;
  int expert[each], rank[each];
#pragma unroll
  for (int q = 0; q < each; ++q) {
    const int task = threadIdx.x / 32 + q * warps, choice = task / row_warps;
    const int token = first + task % row_warps * 32 + lane;
    const bool exists = task < tasks && token < call.tokens;
    expert[q] = exists ? experts[static_cast<int64_t>(token) * call.choices + choice] : -1;
    const unsigned same = __match_any_sync(all_lanes, expert[q]);
    rank[q] = __popc(same & ((1u << lane) - 1));
    if (exists && rank[q] == 0) earlier[task * call.experts + expert[q]] = __popc(same);
  }
  __syncthreads();
#pragma unroll
  for (int q = 0; q < each; ++q) {
    if (expert[q] < 0) continue;
    const int task = threadIdx.x / 32 + q * warps, choice = task / row_warps, part = task % row_warps;
    int own = rank[q] + counts[(expert[q] * call.choices + choice) * blocks + blockIdx.x];
    for (int i = 0; i < part; ++i) own += earlier[(choice * row_warps + i) * call.experts + expert[q]];
    const int taken = sizes[expert[q]];
    const bool has_room = own < taken;
    const int at =
        has_room ? starts[expert[q]] + own : starts[2 * call.experts] + starts[call.experts + expert[q]] + own - taken;
    const int64_t copy = static_cast<int64_t>(first + part * 32 + lane) * call.choices + choice;
    permutation[at] = static_cast<int>(copy);
    inverse[copy] = at;
    if (!has_room) weights[copy] = 0;
  }
}

// ---- handlers -----------------------------------------------------------------------------------------------------

template <class T, int per_lane>
void start_forward(const ffi::CallFrame* frame, const Call& call, cudaStream_t stream) {
  const int blocks = static_cast<int>(blocks_for(call.tokens));
  auto* weights = data_of<float>(result(frame, 0));
  auto *experts = data_of<int>(result(frame, 1)), *counts = data_of<int>(result(frame, 7));
  auto *sizes = data_of<int>(result(frame, 4)), *starts = data_of<int>(result(frame, 9));
  auto* shares = data_of<float>(result(frame, 8));
  const std::size_t histogram = sizeof(int) * static_cast<std::size_t>(call.experts) * (call.choices + warps);
  choose<T, per_lane><<<blocks, 32 * warps, histogram, stream>>>(data_of<T>(operand(frame, 0)), weights, experts,
                                                                 counts, shares, call);
  arrange<<<1, 1024, 0, stream>>>(counts, shares, starts, sizes, data_of<int>(result(frame, 5)),
                                  data_of<float>(result(frame, 6)), blocks, call);
  const std::size_t earlier = sizeof(int) * static_cast<std::size_t>(call.choices * row_warps * call.experts);
  static const cudaError_t room = cudaFuncSetAttribute(place, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       sizeof(int) * max_choices * row_warps * max_experts);
  if (room != cudaSuccess) return;  // cudaGetLastError reports it again
  place<<<blocks, 32 * warps, earlier, stream>>>(experts, counts, starts, sizes, weights,
                                                 data_of<int>(result(frame, 2)), data_of<int>(result(frame, 3)), call);
}

template <class T, int per_lane>
void start_backward(const ffi::CallFrame* frame, const Call& call, cudaStream_t stream) {
  pull<T, per_lane><<<(call.tokens + pull_warps - 1) / pull_warps, 32 * pull_warps, 0, stream>>>(
      data_of<float>(operand(frame, 0)), data_of<float>(operand(frame, 1)), data_of<T>(operand(frame, 2)),
      data_of<int>(operand(frame, 3)), data_of<float>(operand(frame, 4)), data_of<int>(operand(frame, 5)),
      data_of<T>(result(frame, 0)), call);
}

template <class T, int per_lane>
void start(const ffi::CallFrame* frame, const Call& call, bool is_forward, cudaStream_t stream) {
  if (call.experts > 32 * per_lane && per_lane < max_experts / 32) {
    return start < T, per_lane < max_experts / 32 ? 2 * per_lane : per_lane > (frame, call, is_forward, stream);
  }
  is_forward ? start_forward<T, per_lane>(frame, call, stream) : start_backward<T, per_lane>(frame, call, stream);
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const ffi::Buffer& logits = operand(frame, is_forward ? 0 : 2);
  const ffi::Buffer& experts = is_forward ? result(frame, 1) : operand(frame, 3);
  const Call call{static_cast<int>(logits.dims[0]),
                  static_cast<int>(logits.dims[1]),
                  static_cast<int>(experts.dims[1]),
                  static_cast<int>(integer_attribute(frame, "capacity", -1)),
                  integer_attribute(frame, "renormalize", 1) != 0,
                  integer_attribute(frame, "load_balancing", 1) != 0};
  if (call.experts > max_experts || call.choices > max_choices || (logits.dtype != f32 && logits.dtype != bf16))
    return ffi::failure(frame, "moe_routing: the CUDA kernel takes float32 and bfloat16 logits of up to 256 experts");
  const auto stream = static_cast<cudaStream_t>(ffi::stream_of(frame));
  logits.dtype == f32 ? start<float, 1>(frame, call, is_forward, stream)
                      : start<__nv_bfloat16, 1>(frame, call, is_forward, stream);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

void* moe_routing(ffi::CallFrame* frame) { return run(frame, true); }
void* moe_routing_grad(ffi::CallFrame* frame) { return run(frame, false); }

constexpr KernelRecord records[] = {{"capibara_moe_routing", moe_routing, ffi::command_buffer_compatible},
                                    {"capibara_moe_routing_grad", moe_routing_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers moe_routing_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
