// The rows that the norm kernels take, and how the kernels are called.
#pragma once

#include "backends/cuda/claims.h"
#include "backends/cuda/rows/norm_split.h"

namespace capibara::cuda {

// True for float32, bfloat16 and float16.
inline bool is_row_type(DType dtype) {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

inline bool fits_norm(const ArrayType& rows) {
  return is_row_type(rows.dtype) && rows.size() > 0 && holds_row(rows.shape.back(), storage_size(rows.dtype));
}

inline std::optional<KernelCall> claim_norm(const ClaimArgs& args, const ArrayType& x, const char* target) {
  if (!fits_norm(x)) return std::nullopt;
  return KernelCall{target, float_setting("epsilon", args.attrs.real("epsilon")), {}};
}

// `sums`: the number of gradients that are sums over rows.
inline std::optional<KernelCall> claim_norm_grad(const ClaimArgs& args, const ArrayType& x, const char* target,
                                                 int64_t sums) {
  if (!fits_norm(x)) return std::nullopt;
  const int64_t columns = x.shape.back(), row_pieces = columns * storage_size(x.dtype) / 16;
  ArrayType partial;
  partial.shape = {sums, backward_grid(x.size() / columns, row_pieces, args.multiprocessors), columns};
  return KernelCall{target, "", {partial}};
}

}  // namespace capibara::cuda
