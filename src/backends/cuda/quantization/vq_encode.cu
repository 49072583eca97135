// The codes nearest to vectors, as a foreign call of XLA programs: scores stay in the accumulator registers of tensor
// cores.
//
// A warp holds rows of vectors as fragments for the whole pass over the codebook; all warps of a block read the same
// tile of codes from shared memory while the next one is being copied. Of each matmul only the largest score of
// every row and its code are kept: three instructions per score, which is the bottleneck for short vectors. A first
// kernel computes each code's offset and factor, and the first code that is NaN. Hopper has a separate kernel for
// vectors of 64, 128, 256 and 512 elements.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

#ifdef __CUDACC__
#define CAPIBARA_ON_BOTH __host__ __device__
#else
#define CAPIBARA_ON_BOTH
#endif

namespace capibara::cuda {

// ---- the split of a codebook into tiles for Hopper's tensor cores, shared by the kernels and their claim

// True for vectors that use it: multiples of 64 elements.
CAPIBARA_ON_BOTH constexpr bool has_tiles(int64_t dim) { return dim == 64 || dim == 128 || dim == 256 || dim == 512; }
// Codes per tile: three tiles fit in shared memory.
CAPIBARA_ON_BOTH constexpr int codes_of_tile(int64_t dim) { return dim > 256 ? 64 : 128; }
CAPIBARA_ON_BOTH constexpr int64_t tile_count(int64_t codes, int64_t dim) {
  return (codes + codes_of_tile(dim) - 1) / codes_of_tile(dim);
}
// Codes, followed by an offset and a factor for each, in multiples of 1024 bytes.
inline constexpr int tile_terms = 1024;
CAPIBARA_ON_BOTH constexpr int64_t tile_bytes(int64_t dim) { return codes_of_tile(dim) * dim * 2 + tile_terms; }

namespace {

enum Metric : int32_t { euclidean, cosine, dot_product };

// True for vectors whose fragments fit in registers: 1, 2, 4, 8, 16 or 32 groups of 16 elements.
constexpr bool holds_vector(int64_t dim) { return dim >= 16 && dim <= 512 && (dim & (dim - 1)) == 0; }

}  // namespace
}  // namespace capibara::cuda

#ifndef __CUDACC__  // ---- the claim ---------------------------------------------------------------------------------

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

// Takes bfloat16, whose scores the tensor cores compute as the definition does; other types remain compositions.
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
  // The codebook in the layout of Hopper's tensor cores.
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

#include "backends/cuda/bulk_copies.h"
#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"

// Hopper's tensor cores, used by warpgroups: codes in shared memory, vectors and scores in registers.
//
// Codes are in tiles of 128, or 64, that a first kernel has put into the layout of the tensor cores, rows of 128 bytes
// with permuted 16-byte pieces; each tile is followed by the factors and offsets of its scores. One bulk copy
// loads it, and barriers in shared memory signal when it has arrived and when all readers are done.

namespace capibara::cuda {
namespace {

// The byte offset of a code's element in its tile of `codes`: parts of 64 elements, 128 bytes per code.
__host__ __device__ inline int tile_byte(int code, int element, int codes) {
  const int part = element / 64, piece = element % 64 / 8;
  return part * (codes * 128) + code * 128 + (piece ^ (code & 7)) * 16 + element % 8 * 2;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The descriptor of codes by 16 elements in shared memory: rows of 128 bytes, groups of eight 1024 bytes apart, pieces
// permuted.
__device__ inline uint64_t matrix_at(uint32_t address) {
  return static_cast<uint64_t>(address >> 4 & 0x3fff) | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The scores may be read only after this: it marks them as modified for the compiler.
template <int count>
__device__ void end_products(float (&c)[count]) {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (float& score : c) asm volatile("" : "+f"(score)::"memory");
}

// Multiplies the warpgroup's 64 vectors by 128 codes, 16 elements of each; `more` accumulates on the scores.
__device__ inline void multiply(float (&c)[64], const unsigned (&a)[4], uint64_t codes, int more) {
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63}, "
      "{%64, %65, %66, %67}, %68, more, 1, 1, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
        "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
        "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
        "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]),
        "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]),
        "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
        "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]),
        "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(codes), "r"(more));
}

// The same for 64 codes.
__device__ inline void multiply(float (&c)[32], const unsigned (&a)[4], uint64_t codes, int more) {
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, more, 1, 1, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
        "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
        "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
        "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(codes), "r"(more));
}

#endif

}  // namespace

// Lays out a codebook in tiles for Hopper's tensor cores.

namespace {

// One warp per code of the padded codebook: writes its tile, and the terms of score = product * factor + offset.
template <class Terms>
__global__ void __launch_bounds__(256) lay_out_codes(const __nv_bfloat16* codes, unsigned char* tiles,
                                                     int32_t* first_nan, int count, int dim, Terms terms) {
  const int code = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t batch = blockIdx.y, all_tiles = tile_count(count, dim), bytes = tile_bytes(dim);
  const int in_tile = codes_of_tile(dim), own_code = code % in_tile;
  const bool exists = code < count;
  if (code >= all_tiles * in_tile) return;
  unsigned char* tile = tiles + (batch * all_tiles + code / in_tile) * bytes;
  const __nv_bfloat16* from = codes + (batch * count + (exists ? code : 0)) * dim;
  float square = 0;
  for (int i = lane; i < dim; i += 32) {
    const __nv_bfloat16 value = exists ? from[i] : __nv_bfloat16(0.0f);
    *reinterpret_cast<__nv_bfloat16*>(tile + tile_byte(own_code, i, in_tile)) = value;
    square += __bfloat162float(value) * __bfloat162float(value);
  }
  for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
  if (lane != 0) return;
  auto* own = reinterpret_cast<float*>(tile + bytes - tile_terms) + own_code;
  own[0] = exists ? terms.offset(square) : -INFINITY;
  own[in_tile] = exists ? terms.factor(square) : 0.0f;
  if (exists && isnan(square)) atomicMin(first_nan + batch, code);
}

}  // namespace

// The codes nearest to vectors, with Hopper's tensor cores.
//
// A warpgroup holds 64 vectors in registers for a pass over the codebook, whose tiles all warpgroups of a block read
// from a ring in shared memory; blocks are persistent and process several sets of vectors. While one warpgroup searches
// for its largest scores, four or five instructions each, the tensor cores work for the others: both are bottlenecks.

namespace {

// True if either of two bfloat16 is NaN.
__device__ inline bool is_nan_pair(unsigned pair) {
  return (pair & 0x7fffu) > 0x7f80u || (pair >> 16 & 0x7fffu) > 0x7f80u;
}

// A thread's state for a vector: its largest score, the code of that score, and whether an element was NaN.
struct Nearest {
  float score;
  int code;
  bool bad;
};

// The code nearest to a vector, combined from the parts of four neighbouring threads. A vector with NaN gets code 0,
// like argmin; a code with NaN (if `nan_code` < `count`) is the nearest to every other vector.
__device__ inline int nearest_of_four(Nearest own, int nan_code, int count) {
  int any_bad = own.bad;
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const float score = __shfl_xor_sync(0xffffffffu, own.score, step);
    const int code = __shfl_xor_sync(0xffffffffu, own.code, step);
    any_bad |= __shfl_xor_sync(0xffffffffu, any_bad, step);
    if (score > own.score || (score == own.score && code < own.code)) own = {score, code, own.bad};
  }
  return any_bad ? 0 : nan_code < count ? nan_code : own.code;
}

// `groups` of 16 elements per vector; `scaled`: scores have factors.
template <int groups, int warpgroups, int stages, bool scaled>
__global__ void __launch_bounds__(warpgroups * 128, 1)
    nearest_on_hopper(const __nv_bfloat16* vectors, const unsigned char* tiles, const int32_t* first_nan, int32_t* out,
                      int64_t rows, int count) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int dim = groups * 16, bytes = static_cast<int>(tile_bytes(dim)), tile_codes = codes_of_tile(dim);
  constexpr int block_rows = warpgroups * 64;
  extern __shared__ unsigned char memory[];
  __shared__ uint64_t full[stages], empty[stages];
  // Tiles, and so stages, start at multiples of 1024 bytes.
  unsigned char* const ring = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const int all_tiles = static_cast<int>(tile_count(count, dim));
  const int64_t batch = blockIdx.y;
  vectors += batch * rows * dim;
  tiles += batch * all_tiles * static_cast<int64_t>(bytes);
  const int thread = threadIdx.x % 128, lane = thread % 32, group = lane / 4, member = lane % 4;
  const int own_row = threadIdx.x / 128 * 64 + thread / 32 * 16 + group;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      set_barrier(full + s, 1);
      set_barrier(empty + s, warpgroups * 4);
    }
    publish_barriers();
  }
  __syncthreads();
  const int64_t row_blocks = (rows + block_rows - 1) / block_rows;
  const auto iterations =
      static_cast<unsigned>(blockIdx.x < row_blocks ? (row_blocks - blockIdx.x - 1) / gridDim.x + 1 : 0);
  const unsigned total = iterations * all_tiles;
  auto bring = [&](unsigned number) {
    const unsigned slot = number % stages;
    if (number >= stages) await(empty + slot, (number / stages - 1) & 1);
    copy_bulk(ring + slot * bytes, tiles + static_cast<int64_t>(number % all_tiles) * bytes, bytes, full + slot);
  };
  constexpr unsigned ahead = stages - 2;  // others may be a tile or two behind the warpgroup that loads them
  if (threadIdx.x == 0) {
    for (unsigned number = 0; number < ahead && number < total; ++number) bring(number);
  }
  unsigned number = 0;
  for (unsigned iteration = 0; iteration < iterations; ++iteration) {
    const int64_t first = (blockIdx.x + static_cast<int64_t>(iteration) * gridDim.x) * block_rows + own_row;
    unsigned a[groups][4];
    bool bad[2] = {false, false};
#pragma unroll
    for (int g = 0; g < groups; ++g) {
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int64_t row = first + p % 2 * 8;
        const auto* from = reinterpret_cast<const unsigned*>(vectors + row * dim + g * 16 + p / 2 * 8 + member * 2);
        a[g][p] = row < rows ? *from : 0u;
        bad[p % 2] = bad[p % 2] || is_nan_pair(a[g][p]);
      }
    }
    float best[2] = {-INFINITY, -INFINITY};
    int at[2] = {0, 0};
    for (int tile = 0; tile < all_tiles; ++tile, ++number) {
      if (threadIdx.x == 0 && number + ahead < total) bring(number + ahead);
      __syncwarp();
      const unsigned slot = number % stages;
      await(full + slot, number / stages & 1);
      const unsigned char* const codes = ring + slot * bytes;
      const uint32_t address = shared_address(codes);
      float c[tile_codes / 2];
      begin_products();
#pragma unroll
      for (int g = 0; g < groups; ++g)
        multiply(c, a[g], matrix_at(address + g / 4 * (tile_codes * 128) + g % 4 * 32), g > 0);
      end_products(c);
      const auto* offsets = reinterpret_cast<const float*>(codes + bytes - tile_terms) + member * 2;
#pragma unroll
      for (int n = 0; n < tile_codes / 8; ++n) {
        const float2 offset = *reinterpret_cast<const float2*>(offsets + n * 8);
        float2 factor{1, 1};
        if (scaled) factor = *reinterpret_cast<const float2*>(offsets + tile_codes + n * 8);
        const int code = tile * tile_codes + n * 8 + member * 2;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float product = c[n * 4 + i], shift = i % 2 ? offset.y : offset.x;
          const float score = scaled ? product * (i % 2 ? factor.y : factor.x) + shift : product + shift;
          if (score > best[i / 2]) {
            best[i / 2] = score;
            at[i / 2] = code + i % 2;
          }
        }
      }
      __syncwarp();
      if (lane == 0) arrive(empty + slot);
    }
    const int nan_code = first_nan[batch];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int code = nearest_of_four({best[half], at[half], bad[half]}, nan_code, count);
      const int64_t row = first + half * 8;
      if (member == 0 && row < rows) out[batch * rows + row] = code;
    }
  }
#endif
}

constexpr int warps = 8, padding = 8;  // padding: elements, so that rows of a tile have no bank conflicts
template <int groups>
constexpr int codes_at_once = groups > 16 ? 32 : 64;
constexpr float nothing = -__builtin_huge_valf();

// The terms of the score, for a code with this sum of squares.
struct Terms {
  int32_t metric;

  __device__ float offset(float square) const { return metric == euclidean ? -0.5f * square : 0.0f; }
  __device__ float factor(float square) const {
    return metric == cosine ? (square == 0 ? 0.0f : 1 / sqrtf(square)) : 1.0f;
  }
};

// One warp per code: computes the terms of score = product * factor + offset.
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

// Loads two groups of 8 codes by 16 elements.
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
    // Each lane addresses one row of four 8-row groups of a shared tile: codes lane % 8 (+ 8), elements 0 or 8.
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
