// The selective scan of Mamba, forward and backward, as foreign calls of XLA programs: states stay in registers.
//
// A warp has a few states of 64 channels, the block's other warps the rest; whatever is common to all states of a
// channel is computed once and read from shared memory. The forward kernel is bound by exponentials, one per state and
// step. If there are too few channels to fill the GPU, segments of the sequence are processed in parallel, after a
// kernel that computes each segment's contribution to the state at its end. Gradients of B and C are sums over
// channels: warps add theirs, blocks write theirs, and a last kernel adds them in a fixed order, so that results are
// reproducible from run to run.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include "backends/cuda/recurrence/selective_scan_split.h"

#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

bool fits(std::span<const ArrayType> operands, const Attrs& attrs) {
  const ArrayType &u = operands[0], &A = operands[2];
  const int64_t states = A.shape[1], chunk = attrs.integer("chunk_size");
  if (u.dtype != DType::float32 && u.dtype != DType::bfloat16) return false;
  return u.size() > 0 && states > 0 && states <= max_states && chunk % tile_steps == 0 && chunk <= max_chunk &&
         u.shape[0] < 65536;
}

std::string settings_of(const Attrs& attrs) {
  std::string text = concat("chunk_size = ", attrs.integer("chunk_size"), " : i64");
  for (const char* name : {"delta_softplus", "gated", "resets"})
    text += concat(", ", name, " = ", attrs.boolean(name) ? 1 : 0, " : i64");
  return text;
}

// The contributions of segments, [batch, segments, rows, dim].
ArrayType segment_type(const ClaimArgs& args, std::span<const ArrayType> operands, const ScanSplit& split) {
  const Shape& u = operands[0].shape;
  const int64_t states = operands[2].shape[1], chunk = args.attrs.integer("chunk_size");
  const int64_t segments = scan_segments(split, u[0], u[2], (u[1] + chunk - 1) / chunk, args.multiprocessors);
  ArrayType type;
  type.shape = segments == 1 ? Shape{1, 1, 1, 1} : Shape{u[0], segments, states + added_rows, u[2]};
  return type;
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  if (!fits(args.inputs, args.attrs)) return std::nullopt;
  const ScanSplit split = forward_split(args.inputs[2].shape[1]);
  return KernelCall{"capibara_selective_scan", settings_of(args.attrs), {segment_type(args, args.inputs, split)}};
}

std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  const auto operands = args.inputs.subspan(3);
  if (!fits(operands, args.attrs)) return std::nullopt;
  const Shape& u = operands[0].shape;
  const ScanSplit split = backward_split(operands[2].shape[1]);
  if (backward_bytes(split) > args.shared_memory) return std::nullopt;
  ArrayType sums;  // of dB and dC, per block
  sums.shape = {u[0], split.blocks_of(u[2]), u[1], 2 * split.width()};
  // The contributions of segments to gradients, and their sums of dA, dD and dbias.
  const ArrayType segments = segment_type(args, operands, split);
  return KernelCall{"capibara_selective_scan_grad", settings_of(args.attrs), {sums, segments, segments}};
}

}  // namespace

Claims selective_scan_claims() { return {{"selective_scan", claim_forward}, {"selective_scan_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/recurrence/selective_scan_segments.h"
#include "backends/cuda/recurrence/selective_scan_tiles.h"

// The forward kernel of the selective scan.
//
// A block processes a tile of 16 steps in three phases: its threads share the work common to all states, each
// warp advances its states through the tile, and the warps' parts of the outputs are added and written. The next tile
// is prefetched into registers; one barrier per tile.

namespace capibara::cuda {
namespace {

template <int Own, int Parts, int Lane>
struct ForwardMemory {
  static constexpr int channels = Lane * 32, width = Own * Parts;
  float dt[2][tile_steps][channels], driven[2][tile_steps][channels];
  float B[2][tile_steps][width], C[2][tile_steps][width];
  float partial[2][Parts][tile_steps][channels];
  float D[channels], bias[channels];
};

template <class T, int Own, int Parts, int Lane>
__global__ void __launch_bounds__(Parts * 32)
    forward(ScanInputs<T> in, ScanSizes s, const float* ends, T* y, float* last, float* starts) {
  using Where = Place<Own, Parts, Lane>;
  using Rows = TileRows<T, Where>;
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<ForwardMemory<Own, Parts, Lane>*>(shared);
  const Where place(s, blockIdx.z);
  const int lane_channel = threadIdx.x % 32 * Lane, first_state = place.part * Own;
  const int begin = place.segment * s.segment_chunks * s.chunk;
  const int end = min(s.length, begin + s.segment_chunks * s.chunk);
  float A[Lane][Own], h[Lane][Own];
  load_decays(in.A, place, A);
  load_states(in.initial, place, h);
  pass_segments(ends, s, place, A, 0, 1, h);
  load_vector(in.D, place, memory.D);
  load_vector(in.bias, place, memory.bias);
  __syncthreads();

  struct Tile {
    Rows u, delta, z;
    TileColumns<T, Where> B, C;
    TileResets resets;
  };
  auto fetch = [&](Tile& tile, int t0) {
    tile.u.fetch(in.u, place, t0, end);
    tile.delta.fetch(in.delta, place, t0, end);
    if (in.z) tile.z.fetch(in.z, place, t0, end);
    tile.B.fetch(in.B, place, t0, end);
    tile.C.fetch(in.C, place, t0, end);
    tile.resets.fetch(in.reset, place, t0, end);
  };
  auto store = [&](const Tile& tile, int t0, int slot) {
#pragma unroll
    for (int q = 0; q < Rows::count; ++q) {
      if (!Rows::is_one(q)) continue;
      const int step = Rows::step(q), channel = Rows::channel(q);
      const Quad<T>& u = tile.u.quads[q];
      float dt[4];
      step_sizes(tile.delta.quads[q], memory.bias + channel, s.has_softplus, t0 + step < end, dt);
      store_floats(&memory.dt[slot][step][channel], dt[0], dt[1], dt[2], dt[3]);
      store_floats(&memory.driven[slot][step][channel], dt[0] * u[0], dt[1] * u[1], dt[2] * u[2], dt[3] * u[3]);
    }
    tile.B.store(memory.B[slot][0]);
    tile.C.store(memory.C[slot][0]);
  };
  auto advance = [&](int slot, unsigned resets) {
    auto steps = [&](auto resetting) {
#pragma unroll
      for (int t = 0; t < tile_steps; ++t) {
        float dt[Lane], driven[Lane], B[Own], C[Own], sum[Lane];
        read_floats(&memory.dt[slot][t][lane_channel], dt);
        read_floats(&memory.driven[slot][t][lane_channel], driven);
        read_floats(&memory.B[slot][t][first_state], B);
        read_floats(&memory.C[slot][t][first_state], C);
        if (resetting.value && resets >> t & 1) {
#pragma unroll
          for (int l = 0; l < Lane; ++l) {
#pragma unroll
            for (int i = 0; i < Own; ++i) h[l][i] = 0;
          }
        }
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          sum[l] = 0;
#pragma unroll
          for (int i = 0; i < Own; ++i) {
            h[l][i] = exp2_fast(dt[l] * A[l][i]) * h[l][i] + driven[l] * B[i];
            sum[l] += h[l][i] * C[i];
          }
        }
        write_floats(&memory.partial[slot][place.part][t][lane_channel], sum);
      }
    };
    resets ? steps(std::true_type{}) : steps(std::false_type{});
  };
  auto write = [&](const Tile& tile, int t0, int slot) {
#pragma unroll
    for (int q = 0; q < Rows::count; ++q) {
      const int step = Rows::step(q), channel = Rows::channel(q);
      if (!Rows::is_one(q) || t0 + step >= end) continue;
      float sums[4] = {0, 0, 0, 0};
#pragma unroll
      for (int part = 0; part < Parts; ++part) {
        float own[4];
        read_floats(&memory.partial[slot][part][step][channel], own);
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] += own[i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[i] = ungated(sums[i] + memory.D[channel + i] * tile.u.quads[q][i], tile.z.quads[q], i, in.z != nullptr);
      store_quad(y + (place.first_row + t0 + step) * s.dim, place.first_channel + channel, s.dim, sums);
    }
  };

  Tile now, next;
  fetch(now, begin);
  store(now, begin, 0);
  __syncthreads();
  int slot = 0;
  for (int t0 = begin; t0 < end; t0 += tile_steps, slot ^= 1) {
    if (t0 % s.chunk == 0) {
      const int64_t index = static_cast<int64_t>(place.batch) * s.chunks + t0 / s.chunk;
#pragma unroll
      for (int i = 0; i < Own; ++i) {
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          if (place.exists(l, i)) starts[place.by_state(index, s.states, l, i)] = h[l][i];
        }
      }
    }
    const bool more = t0 + tile_steps < end;
    if (more) fetch(next, t0 + tile_steps);
    advance(slot, now.resets.bits());
    if (more) store(next, t0 + tile_steps, slot ^ 1);
    __syncthreads();
    write(now, t0, slot);
    now = next;
  }
  if (place.segment + 1 == s.segments) store_states(last, place, h);
}

template <int states, class T>
cudaError_t start_for(const ScanInputs<T>& in, const ScanSizes& s, T* y, float* last, float* starts, float* ends,
                      cudaStream_t stream) {
  constexpr ScanSplit split = forward_split(states);
  constexpr int own = split.own, parts = split.parts, lane = split.per_lane;
  if (s.segments > 1) {
    const cudaError_t status = start_scan_kernel<SegmentMemory<own, parts, lane>>(
        segment_ends<T, own, parts, lane, true>, scan_grid(split, s, s.segments - 1), split.threads(), stream, in,
        static_cast<const T*>(nullptr), s, ends);
    if (status != cudaSuccess) return status;
  }
  return start_scan_kernel<ForwardMemory<own, parts, lane>>(forward<T, own, parts, lane>,
                                                            scan_grid(split, s, s.segments), split.threads(), stream,
                                                            in, s, static_cast<const float*>(ends), y, last, starts);
}

// ---- handlers ----------------------------------------------------------------------------------------------------

// The operands starting at `first`.
template <class T>
ScanInputs<T> inputs_of(const ffi::CallFrame* frame, int first) {
  const bool gated = integer_attribute(frame, "gated", 0), resets = integer_attribute(frame, "resets", 0);
  auto rows = [&](int i) { return data_of<const T>(operand(frame, first + i)); };
  auto numbers = [&](int i) { return data_of<const float>(operand(frame, first + i)); };
  const uint8_t* reset = resets ? data_of<const uint8_t>(operand(frame, first + (gated ? 9 : 8))) : nullptr;
  return {rows(0),    rows(1),    rows(3),    rows(4),    gated ? rows(8) : nullptr,
          numbers(2), numbers(5), numbers(6), numbers(7), reset};
}

// `ends`: the index of the result that has a dimension of segments.
ScanSizes sizes_of(const ffi::CallFrame* frame, int first, int ends) {
  const ffi::Buffer &u = operand(frame, first), &A = operand(frame, first + 2);
  const int length = static_cast<int>(u.dims[1]), chunk = static_cast<int>(integer_attribute(frame, "chunk_size", 0));
  const int chunks = (length + chunk - 1) / chunk, segments = static_cast<int>(result(frame, ends).dims[1]);
  return {u.dims[0],
          length,
          static_cast<int>(u.dims[2]),
          static_cast<int>(A.dims[1]),
          chunk,
          chunks,
          segments,
          (chunks + segments - 1) / segments,
          integer_attribute(frame, "delta_softplus", 0) != 0};
}

template <class T>
cudaError_t start_forward(const ffi::CallFrame* frame, cudaStream_t stream) {
  const ScanSizes s = sizes_of(frame, 0, 3);
  const auto run = s.states <= 16 ? start_for<16, T> : start_for<max_states, T>;
  return run(inputs_of<T>(frame, 0), s, data_of<T>(result(frame, 0)), data_of<float>(result(frame, 1)),
             data_of<float>(result(frame, 2)), data_of<float>(result(frame, 3)), stream);
}

template <class T>
cudaError_t start_backward(const ffi::CallFrame* frame, cudaStream_t stream) {
  const ScanInputs<T> in = inputs_of<T>(frame, 3);
  const int scratch = in.z ? 9 : 8;
  auto rows = [&](int i) { return data_of<T>(result(frame, i)); };
  auto numbers = [&](int i) { return data_of<float>(result(frame, i)); };
  const ScanGradients<T> out{data_of<const T>(operand(frame, 0)),
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
                             numbers(scratch + 1),
                             numbers(scratch + 2),
                             numbers(scratch)};
  return start_scan_backward(in, sizes_of(frame, 3, scratch + 1), out, stream);
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const int32_t dtype = operand(frame, is_forward ? 0 : 3).dtype;
  cudaError_t status = cudaErrorInvalidValue;
  if (dtype == f32)
    status =
        is_forward ? start_forward<float>(frame, own_stream(frame)) : start_backward<float>(frame, own_stream(frame));
  else if (dtype == bf16)
    status = is_forward ? start_forward<__nv_bfloat16>(frame, own_stream(frame))
                        : start_backward<__nv_bfloat16>(frame, own_stream(frame));
  else
    return ffi::failure(frame, "selective_scan: the CUDA kernel takes float32 and bfloat16");
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
