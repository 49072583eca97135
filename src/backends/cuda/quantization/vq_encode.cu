// The codes nearest to vectors, as a foreign call of XLA programs: scores stay in the registers of tensor core
// products.
//
// A warp holds rows of vectors as fragments for the whole run over the codebook; all warps of a block read the same
// tile of codes from shared memory, while the next one is copied there. Of each product only the greatest score of
// every row and its code are kept: per score three instructions, which is what bounds short vectors. A first kernel
// finds each code's offset and factor, and the first code that is NaN. Hopper has a kernel of its own for vectors of
// 64, 128, 256 and 512 elements (vq_nearest_hopper.h).
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

#include "backends/cuda/quantization/vq_tiles.h"

namespace capibara::cuda {
namespace {

enum Metric : int32_t { euclidean, cosine, dot_product };

// Vectors whose fragments have room in registers: 1, 2, 4, 8, 16 or 32 groups of 16 elements.
constexpr bool holds_vector(int64_t dim) { return dim >= 16 && dim <= 512 && (dim & (dim - 1)) == 0; }

}  // namespace
}  // namespace capibara::cuda

#ifndef __CUDACC__  // ---- the claim ---------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

// bfloat16, whose scores the tensor cores compute as the definition does; other types stay compositions.
std::optional<KernelCall> claim_encode(const ClaimArgs& args) {
  const ArrayType &vectors = args.inputs[0], &codes = args.inputs[1];
  if (vectors.dtype != DType::bfloat16 || vectors.size() == 0 || !holds_vector(vectors.shape.back()))
    return std::nullopt;
  const int64_t count = codes.shape[codes.shape.size() - 2], batch = codes.size() / (count * codes.shape.back());
  if (batch > 65535) return std::nullopt;
  ArrayType terms, first_nan;
  terms.shape = {2, batch, count};
  first_nan.shape = {batch};
  first_nan.dtype = DType::int32;
  // The codebook as Hopper's tensor cores read it.
  ArrayType tiles;
  tiles.shape = {has_tiles(vectors.shape.back())
                     ? batch * tile_count(count, vectors.shape.back()) * tile_bytes(vectors.shape.back()) / 4
                     : 1};
  const std::string& metric = args.attrs.text("distance_metric");
  return KernelCall{"capibara_vq_encode",
                    concat("metric = ",
                           metric == "euclidean" ? 0
                           : metric == "cosine"  ? 1
                                                 : 2,
                           " : i32"),
                    {terms, first_nan, tiles}};
}

}  // namespace

Claims vq_encode_claims() { return {{"vq_encode", claim_encode}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/quantization/vq_code_tiles.h"
#include "backends/cuda/quantization/vq_nearest_hopper.h"

namespace capibara::cuda {
namespace {

constexpr int warps = 8, padding = 8;  // padding: elements, so that rows of a tile meet in no bank
template <int groups>
constexpr int codes_at_once = groups > 16 ? 32 : 64;
constexpr float nothing = -__builtin_huge_valf();

// Of a code with this sum of squares.
struct Terms {
  int32_t metric;

  __device__ float offset(float square) const { return metric == euclidean ? -0.5f * square : 0.0f; }
  __device__ float factor(float square) const {
    return metric == cosine ? (square == 0 ? 0.0f : 1 / sqrtf(square)) : 1.0f;
  }
};

// One warp for each code: score = product * factor + offset.
__global__ void __launch_bounds__(256) code_terms(const __nv_bfloat16* codes, float* offsets, float* factors,
                                                  int32_t* first_nan, int count, int dim, Terms terms) {
  const int64_t code = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int64_t batch = blockIdx.y;
  if (code >= count) return;
  const __nv_bfloat16* from = codes + (batch * count + code) * dim;
  float square = 0;
  for (int i = threadIdx.x % 32; i < dim; i += 32) square += __bfloat162float(from[i]) * __bfloat162float(from[i]);
  for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
  if (threadIdx.x % 32 != 0) return;
  offsets[batch * count + code] = terms.offset(square);
  factors[batch * count + code] = terms.factor(square);
  if (isnan(square)) atomicMin(first_nan + batch, static_cast<int32_t>(code));
}

__device__ void copy_async(void* shared, const void* global, bool present) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(present ? 16 : 0));
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;\n" ::); }
template <int left>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(left));
}

// Two groups of 8 codes by 16 elements.
__device__ void load_codes(unsigned (&b)[4], const __nv_bfloat16* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(from));
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A block finds the codes of warps * 16 * tiles vectors of `groups` * 16 elements.
template <int groups, int tiles>
__global__ void __launch_bounds__(warps * 32)
    nearest(const __nv_bfloat16* vectors, const __nv_bfloat16* codes, const float* offsets, const float* factors,
            const int32_t* first_nan, int32_t* out, int64_t rows, int count, int32_t metric) {
  constexpr int dim = groups * 16, stride = dim + padding, tile_codes = codes_at_once<groups>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto* tile = reinterpret_cast<__nv_bfloat16*>(memory);                         // [2][tile_codes][stride]
  auto* terms = reinterpret_cast<float*>(memory + 2 * tile_codes * stride * 2);  // [2][2][tile_codes]
  const int64_t batch = blockIdx.y;
  vectors += batch * rows * dim;
  codes += batch * count * dim;
  offsets += batch * count;
  factors += batch * count;
  const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  const int64_t first_row = (static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / 32) * (16 * tiles);

  auto copy_tile = [&](int number) {
    const int begin = number * tile_codes, slot = number % 2;
    for (int i = threadIdx.x; i < tile_codes * (dim / 8); i += warps * 32) {
      const int code = i / (dim / 8), piece = i % (dim / 8);
      const bool present = begin + code < count;
      copy_async(tile + (slot * tile_codes + code) * stride + piece * 8,
                 codes + static_cast<int64_t>(present ? begin + code : 0) * dim + piece * 8, present);
    }
    for (int i = threadIdx.x; i < tile_codes; i += warps * 32) {
      const bool present = begin + i < count;
      terms[(slot * 2 + 0) * tile_codes + i] = present ? offsets[begin + i] : nothing;
      terms[(slot * 2 + 1) * tile_codes + i] = present ? factors[begin + i] : 0.0f;
    }
    commit_copies();
  };

  copy_tile(0);
  unsigned a[tiles][groups][4];
  bool bad[tiles][2];
#pragma unroll
  for (int t = 0; t < tiles; ++t) {
    bad[t][0] = bad[t][1] = false;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int64_t row = first_row + t * 16 + group + p % 2 * 8;
        a[t][g][p] =
            row < rows ? *reinterpret_cast<const unsigned*>(vectors + row * dim + g * 16 + p / 2 * 8 + member * 2) : 0u;
        bad[t][p % 2] = bad[t][p % 2] || is_nan_pair(a[t][g][p]);
      }
    }
  }
  float best[tiles][2];
  int at[tiles][2];
#pragma unroll
  for (int t = 0; t < tiles; ++t) {
    best[t][0] = best[t][1] = nothing;
    at[t][0] = at[t][1] = 0;
  }
  const int tile_count = (count + tile_codes - 1) / tile_codes;
  for (int number = 0; number < tile_count; ++number) {
    if (number + 1 < tile_count) {
      copy_tile(number + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    const int slot = number % 2;
    // Of four groups of 8 rows of a shared tile, a lane names one row: codes lane % 8 (+ 8), elements 0 or 8.
    const __nv_bfloat16* own = tile + (slot * tile_codes + lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8;
    const float* tile_offsets = terms + slot * 2 * tile_codes;
    for (int n = 0; n < tile_codes; n += 16) {
      float c[tiles][2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 offset = *reinterpret_cast<const float2*>(tile_offsets + n + half * 8 + member * 2);
#pragma unroll
        for (int t = 0; t < tiles; ++t) {
          c[t][half][0] = c[t][half][2] = metric == cosine ? 0.0f : offset.x;
          c[t][half][1] = c[t][half][3] = metric == cosine ? 0.0f : offset.y;
        }
      }
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        unsigned b[4];
        load_codes(b, own + n * stride + g * 16);
#pragma unroll
        for (int t = 0; t < tiles; ++t) {
          multiply(c[t][0], a[t][g], b[0], b[1]);
          multiply(c[t][1], a[t][g], b[2], b[3]);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 factor{1, 1}, offset{0, 0};
        if (metric == cosine) {
          factor = *reinterpret_cast<const float2*>(tile_offsets + tile_codes + n + half * 8 + member * 2);
          offset = *reinterpret_cast<const float2*>(tile_offsets + n + half * 8 + member * 2);
        }
        const int code = number * tile_codes + n + half * 8 + member * 2;
#pragma unroll
        for (int t = 0; t < tiles; ++t) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float score = c[t][half][i];
            if (metric == cosine) score = score * (i % 2 ? factor.y : factor.x) + (i % 2 ? offset.y : offset.x);
            if (score > best[t][i / 2]) {
              best[t][i / 2] = score;
              at[t][i / 2] = code + i % 2;
            }
          }
        }
      }
    }
    __syncthreads();
  }
  const int nan_code = first_nan[batch];
#pragma unroll
  for (int t = 0; t < tiles; ++t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int code = nearest_of_four({best[t][half], at[t][half], bad[t][half]}, nan_code, count);
      const int64_t row = first_row + t * 16 + group + half * 8;
      if (member == 0 && row < rows) out[batch * rows + row] = code;
    }
  }
}

// ---- handler ------------------------------------------------------------------------------------------------------

int32_t metric_of(const ffi::CallFrame* frame) {
  int32_t number = 0;
  if (const void* value = ffi::find_attribute(frame, "metric"))
    std::memcpy(&number, static_cast<const ffi::Scalar*>(value)->value, sizeof number);
  return number;
}

template <int groups, int tiles>
cudaError_t start(const ffi::CallFrame* frame, int64_t batch, int64_t rows, int count, cudaStream_t stream) {
  constexpr int tile_codes = codes_at_once<groups>,
                bytes = 2 * tile_codes * (groups * 16 + padding) * 2 + 4 * tile_codes * 4;
  const auto* codes = static_cast<const __nv_bfloat16*>(operand(frame, 1).data);
  auto* offsets = static_cast<float*>(result(frame, 1).data);
  auto* first_nan = static_cast<int32_t*>(result(frame, 2).data);
  float* factors = offsets + batch * count;
  const int32_t metric = metric_of(frame);
  static const cudaError_t room =
      cudaFuncSetAttribute(nearest<groups, tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (room != cudaSuccess) return room;
  const dim3 code_blocks(static_cast<unsigned>((count + warps - 1) / warps), static_cast<unsigned>(batch));
  code_terms<<<code_blocks, warps * 32, 0, stream>>>(codes, offsets, factors, first_nan, count, groups * 16,
                                                     Terms{metric});
  constexpr int64_t block_rows = warps * 16 * tiles;
  const dim3 blocks(static_cast<unsigned>((rows + block_rows - 1) / block_rows), static_cast<unsigned>(batch));
  nearest<groups, tiles><<<blocks, warps * 32, bytes, stream>>>(
      static_cast<const __nv_bfloat16*>(operand(frame, 0).data), codes, offsets, factors, first_nan,
      static_cast<int32_t*>(result(frame, 0).data), rows, count, metric);
  return cudaGetLastError();
}

template <int groups, int warpgroups, int stages>
cudaError_t start_on_hopper(const ffi::CallFrame* frame, int64_t batch, int64_t rows, int count, cudaStream_t stream) {
  constexpr int bytes = stages * static_cast<int>(tile_bytes(groups * 16)) + 1024, block_rows = warpgroups * 64;
  const auto* codes = static_cast<const __nv_bfloat16*>(operand(frame, 1).data);
  auto* first_nan = static_cast<int32_t*>(result(frame, 2).data);
  auto* tiles = static_cast<unsigned char*>(result(frame, 3).data);
  const Terms terms{metric_of(frame)};
  const auto kernel = terms.metric == cosine ? nearest_on_hopper<groups, warpgroups, stages, true>
                                             : nearest_on_hopper<groups, warpgroups, stages, false>;
  const cudaError_t room = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (room != cudaSuccess) return room;
  const dim3 code_blocks(static_cast<unsigned>(tile_count(count, groups * 16) * codes_of_tile(groups * 16) / 8),
                         static_cast<unsigned>(batch));
  lay_out_codes<<<code_blocks, 256, 0, stream>>>(codes, tiles, first_nan, count, groups * 16, terms);
  const int64_t row_blocks = (rows + block_rows - 1) / block_rows, size = hopper_size();
  const dim3 blocks(static_cast<unsigned>(row_blocks < size ? row_blocks : size), static_cast<unsigned>(batch));
  kernel<<<blocks, warpgroups * 128, bytes, stream>>>(static_cast<const __nv_bfloat16*>(operand(frame, 0).data), tiles,
                                                      first_nan, static_cast<int32_t*>(result(frame, 0).data), rows,
                                                      count);
  return cudaGetLastError();
}

cudaError_t start_for(const ffi::CallFrame* frame, int64_t dim, int64_t batch, int64_t rows, int count,
                      cudaStream_t stream) {
  const cudaError_t cleared =
      cudaMemsetAsync(result(frame, 2).data, 0x7f, static_cast<std::size_t>(batch) * sizeof(int32_t), stream);
  if (cleared != cudaSuccess) return cleared;
  if (hopper_size() > 0 && has_tiles(dim)) {
    if (dim == 64) return start_on_hopper<4, 4, 4>(frame, batch, rows, count, stream);
    if (dim == 128) return start_on_hopper<8, 4, 4>(frame, batch, rows, count, stream);
    if (dim == 256) return start_on_hopper<16, 2, 3>(frame, batch, rows, count, stream);
    return start_on_hopper<32, 2, 3>(frame, batch, rows, count, stream);
  }
  switch (dim) {
    case 16:
      return start<1, 2>(frame, batch, rows, count, stream);
    case 32:
      return start<2, 2>(frame, batch, rows, count, stream);
    case 64:
      return start<4, 2>(frame, batch, rows, count, stream);
    case 128:
      return start<8, 2>(frame, batch, rows, count, stream);
    case 256:
      return start<16, 1>(frame, batch, rows, count, stream);
    default:
      return start<32, 1>(frame, batch, rows, count, stream);
  }
}

void* vq_encode(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const ffi::Buffer &vectors = operand(frame, 0), &codes = operand(frame, 1);
  const int64_t dim = vectors.dims[vectors.rank - 1], rows = vectors.dims[vectors.rank - 2];
  int64_t batch = 1;
  for (int64_t i = 0; i + 2 < vectors.rank; ++i) batch *= vectors.dims[i];
  if (vectors.dtype != bf16 || !holds_vector(dim))
    return ffi::failure(frame,
                        "vq_encode: the CUDA kernel takes bfloat16 vectors of 16, 32, 64, 128, 256 or 512 elements");
  const int count = static_cast<int>(codes.dims[codes.rank - 2]);
  const auto stream = static_cast<cudaStream_t>(ffi::stream_of(frame));
  const cudaError_t status = start_for(frame, dim, batch, rows, count, stream);
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

constexpr KernelRecord records[] = {{"capibara_vq_encode", vq_encode, ffi::command_buffer_compatible}};

}  // namespace

Handlers vq_encode_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
