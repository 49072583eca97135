// How codebooks are cut into tiles for Hopper's tensor cores: what the kernels and the claim have to agree on.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CAPIBARA_ON_BOTH __host__ __device__
#else
#define CAPIBARA_ON_BOTH
#endif

namespace capibara::cuda {

inline constexpr int hopper_codes = 128;  // of a tile

// Vectors whose products run there: parts of 64 elements.
CAPIBARA_ON_BOTH constexpr bool has_tiles(int64_t dim) { return dim == 64 || dim == 128 || dim == 256; }
CAPIBARA_ON_BOTH constexpr int64_t tile_count(int64_t codes) { return (codes + hopper_codes - 1) / hopper_codes; }
// Codes, then an offset and a factor for each.
CAPIBARA_ON_BOTH constexpr int64_t tile_bytes(int64_t dim) { return hopper_codes * dim * 2 + hopper_codes * 8; }

}  // namespace capibara::cuda
