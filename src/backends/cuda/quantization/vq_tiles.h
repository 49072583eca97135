// How a codebook is cut into tiles for Hopper's tensor cores: what its kernels and their claim have to agree on.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CAPIBARA_ON_BOTH __host__ __device__
#else
#define CAPIBARA_ON_BOTH
#endif

namespace capibara::cuda {

// Vectors whose products run there: parts of 64 elements.
CAPIBARA_ON_BOTH constexpr bool has_tiles(int64_t dim) { return dim == 64 || dim == 128 || dim == 256 || dim == 512; }
// Codes of a tile: three tiles have room in shared memory.
CAPIBARA_ON_BOTH constexpr int codes_of_tile(int64_t dim) { return dim > 256 ? 64 : 128; }
CAPIBARA_ON_BOTH constexpr int64_t tile_count(int64_t codes, int64_t dim) {
  return (codes + codes_of_tile(dim) - 1) / codes_of_tile(dim);
}
// Codes, then an offset and a factor for each, in whole parts of 1024 bytes.
inline constexpr int tile_terms = 1024;
CAPIBARA_ON_BOTH constexpr int64_t tile_bytes(int64_t dim) { return codes_of_tile(dim) * dim * 2 + tile_terms; }

}  // namespace capibara::cuda
