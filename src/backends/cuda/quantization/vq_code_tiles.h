// A codebook laid out in tiles as Hopper's tensor cores read them.
#pragma once

#include "backends/cuda/quantization/hopper_products.h"

namespace capibara::cuda {
namespace {

// One warp for each code of the padded codebook: its tile, and score = product * factor + offset.
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
}  // namespace capibara::cuda
