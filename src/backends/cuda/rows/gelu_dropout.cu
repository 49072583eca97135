// GELU by tanh with dropout, forward and backward, as foreign calls of XLA programs: one read, one write per element.
//
// A thread owns eight neighbouring elements and computes the two threefry blocks that decide their dropout. Compiled
// compositions compute one block per element, four times the arithmetic.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__

#include <cmath>

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

std::optional<KernelCall> claim(const ClaimArgs& args, const ArrayType& x, const char* target) {
  if (!is_row_type(x.dtype)) return std::nullopt;
  if (x.size() == 0 || !args.attrs.boolean("approximate")) return std::nullopt;
  const auto kept = static_cast<double>(std::llround((1 - args.attrs.real("rate")) * 65536));
  return KernelCall{target, float_setting("kept", kept), {}};
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  return claim(args, args.inputs[0], "capibara_gelu_dropout");
}
std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  return claim(args, args.inputs[1], "capibara_gelu_dropout_grad");
}

}  // namespace

Claims gelu_dropout_claims() { return {{"gelu_dropout", claim_forward}, {"gelu_dropout_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/row_pieces.h"
#include "backends/cuda/threefry.h"

namespace capibara::cuda {
namespace {

constexpr int group_size = 8;  // elements per thread: two blocks of four

// The elements of a thread: 16 or 32 bytes.
template <class T>
struct alignas(16) Group {
  T values[group_size];
};

// The first `count` elements of a group.
template <class T>
__device__ void put_group(T* to, const float (&values)[group_size], int count) {
  constexpr int size = Piece<T>::size;
#pragma unroll
  for (int first = 0; first < group_size; first += size) {
    float piece[size];
#pragma unroll
    for (int i = 0; i < size; ++i) piece[i] = values[first + i];
    if (first + size <= count) {
      put_piece(to + first, piece);
    } else {
#pragma unroll
      for (int i = 0; i < size; ++i) {
        if (first + i < count) to[first + i] = from_float<T>(piece[i]);
      }
    }
  }
}

__device__ uint2 block_words(uint2 key, uint64_t block) {
  return threefry(key, static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(block));
}

template <bool Backward>
__device__ float activated(float x, float dy) {
  constexpr float scale = 1.5957691216f, cube = 0.044715f;  // 2 sqrt(2 / pi)
  const float square = x * x, share = __fdividef(1.0f, 1.0f + __expf(-scale * x * (1.0f + cube * square)));
  if (!Backward) return x * share;
  const float rise = scale * (1.0f + 3 * cube * square);
  return dy * (share + x * share * (1.0f - share) * rise);
}

template <class T, bool Backward>
__global__ void gelu_dropout_kernel(const T* __restrict__ dy, const T* __restrict__ x, const uint32_t* __restrict__ key,
                                    T* __restrict__ out, int64_t size, uint32_t kept, float factor) {
  const uint2 own_key{key[0], key[1]};
  const int64_t groups = (size + group_size - 1) / group_size, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t group = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; group < groups; group += step) {
    const int64_t first = group * group_size;
    const bool whole = first + group_size <= size;
    Group<T> values, cotangents;
    float results[group_size];
    if (whole) {
      values = *reinterpret_cast<const Group<T>*>(x + first);
      if (Backward) cotangents = *reinterpret_cast<const Group<T>*>(dy + first);
    } else {
#pragma unroll
      for (int i = 0; i < group_size; ++i) {
        const int64_t from = first + i < size ? first + i : size - 1;
        values.values[i] = x[from];
        if (Backward) cotangents.values[i] = dy[from];
      }
    }
    const uint2 words[2] = {block_words(own_key, 2 * group), block_words(own_key, 2 * group + 1)};
#pragma unroll
    for (int i = 0; i < group_size; ++i) {
      const uint32_t word = i % 4 < 2 ? words[i / 4].x : words[i / 4].y, bits = i % 2 ? word >> 16 : word & 0xffff;
      const float cotangent = Backward ? static_cast<float>(cotangents.values[i]) : 0.0f;
      const float value = activated<Backward>(static_cast<float>(values.values[i]), cotangent);
      results[i] = bits < kept ? value * factor : 0.0f;
    }
    put_group(out + first, results, whole ? group_size : static_cast<int>(size - first));
  }
}

template <class T, bool Backward>
void start(const ffi::CallFrame* frame, int64_t size, uint32_t kept, cudaStream_t stream) {
  constexpr int threads = 256, first = Backward ? 1 : 0;  // operand x
  const int64_t groups = (size + group_size - 1) / group_size, wanted = (groups + threads - 1) / threads;
  const auto blocks = static_cast<unsigned>(wanted < (1 << 20) ? wanted : 1 << 20);
  const float factor = kept == 0 ? 0.0f : static_cast<float>(65536.0 / kept);
  gelu_dropout_kernel<T, Backward><<<blocks, threads, 0, stream>>>(
      Backward ? static_cast<const T*>(operand(frame, 0).data) : nullptr,
      static_cast<const T*>(operand(frame, first).data), static_cast<const uint32_t*>(operand(frame, first + 1).data),
      static_cast<T*>(result(frame, 0).data), size, kept, factor);
}

template <bool Backward>
void* run(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, Backward ? 1 : 0);
  int64_t size = 1;
  for (int64_t i = 0; i < x.rank; ++i) size *= x.dims[i];
  const auto kept = static_cast<uint32_t>(float_attribute(frame, "kept", 65536.0f));
  const bool started =
      with_type(x.dtype, [&](auto number) { start<decltype(number), Backward>(frame, size, kept, own_stream(frame)); });
  return started ? outcome(frame)
                 : ffi::failure(frame, "gelu_dropout: the CUDA kernel takes float32, bfloat16 and float16");
}

constexpr KernelRecord records[] = {{"capibara_gelu_dropout", run<false>, ffi::command_buffer_compatible},
                                    {"capibara_gelu_dropout_grad", run<true>, ffi::command_buffer_compatible}};

}  // namespace

Handlers gelu_dropout_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
