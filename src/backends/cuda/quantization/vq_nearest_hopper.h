// The codes nearest to vectors by Hopper's tensor cores.
//
// A warpgroup holds 64 vectors in registers for a run over the codebook, whose tiles all warpgroups of a block read
// from a ring of shared memory; blocks stay and take further vectors. While one warpgroup looks for its greatest
// scores, four or five instructions for each, the tensor cores work for the others: these two bound it.
#pragma once

#include "backends/cuda/quantization/hopper_products.h"

namespace capibara::cuda {
namespace {

// Whether one of two bfloat16 is NaN.
__device__ inline bool is_nan_pair(unsigned pair) {
  return (pair & 0x7fffu) > 0x7f80u || (pair >> 16 & 0x7fffu) > 0x7f80u;
}

// What a thread knows of a vector: its greatest score, whose code that is, and whether an element was NaN.
struct Nearest {
  float score;
  int code;
  bool bad;
};

// The code nearest to a vector of which four neighbouring threads have seen a part each. A vector with NaN gets code 0,
// as argmin has it; a code with NaN (`nan_code` of `count`) is the nearest to every other vector.
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

// `groups` of 16 elements for each vector; `scaled`: scores have factors.
template <int groups, int warpgroups, int stages, bool scaled>
__global__ void __launch_bounds__(warpgroups * 128, 1)
    nearest_on_hopper(const __nv_bfloat16* vectors, const unsigned char* tiles, const int32_t* first_nan, int32_t* out,
                      int64_t rows, int count) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int dim = groups * 16, bytes = static_cast<int>(tile_bytes(dim)), tile_codes = codes_of_tile(dim);
  constexpr int block_rows = warpgroups * 64;
  extern __shared__ unsigned char memory[];
  __shared__ uint64_t full[stages], empty[stages];
  // Tiles begin at multiples of 1024 bytes, and so does each stage.
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
  constexpr unsigned ahead = stages - 2;  // others may be a tile or two behind the warpgroup that brings them
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

}  // namespace
}  // namespace capibara::cuda
