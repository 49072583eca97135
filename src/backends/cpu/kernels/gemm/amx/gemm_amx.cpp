// Matmuls of bfloat16 and of bytes on AMX tiles.
#include "backends/cpu/kernels/gemm/amx/amx_tiles.h"
#include "backends/cpu/kernels/gemm/amx/gemm_amx_loops.h"

#if defined(__x86_64__)

namespace capibara::cpu {

template <class K>
using Loops = AmxRun<K, AmxTiles>;

#define CAPIBARA_PRODUCT(KIND)                                                                             \
  template <>                                                                                              \
  int64_t Product<KIND>::packed_left_size() const {                                                        \
    return inner_parts(rows.extent(), columns.extent(), inner) == 1 ? Loops<KIND>(*this).left_size() : 0;  \
  }                                                                                                        \
  template <>                                                                                              \
  int64_t Product<KIND>::packed_right_size() const {                                                       \
    return inner_parts(rows.extent(), columns.extent(), inner) == 1 ? Loops<KIND>(*this).right_size() : 0; \
  }                                                                                                        \
  template <>                                                                                              \
  void Product<KIND>::pack_left(P* to) const {                                                             \
    Loops<KIND>(*this).pack_whole_left(to);                                                                \
  }                                                                                                        \
  template <>                                                                                              \
  void Product<KIND>::pack_right(P* to) const {                                                            \
    Loops<KIND>(*this).pack_whole_right(to);                                                               \
  }                                                                                                        \
  template <>                                                                                              \
  void Product<KIND>::run() const {                                                                        \
    run_in_parts<Loops<KIND>>(*this);                                                                      \
  }
CAPIBARA_PRODUCT(AmxBfloat16)
CAPIBARA_PRODUCT(AmxSignedBytes)
CAPIBARA_PRODUCT(AmxUnsignedBytes)
CAPIBARA_PRODUCT(AmxSignedByUnsigned)
CAPIBARA_PRODUCT(AmxUnsignedBySigned)
#undef CAPIBARA_PRODUCT

}  // namespace capibara::cpu

#endif
