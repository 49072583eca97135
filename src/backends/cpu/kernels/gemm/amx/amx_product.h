// What matmul kernels do for AMX: the choice of its kinds, and operands in the layout of its tiles.
#pragma once

#include "backends/cpu/kernels/gemm/amx/amx_kinds.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/product.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

// As visit_narrow_product and visit_mixed_product. False: there is no AMX, or the types are others.
template <class F>
bool visit_amx_product([[maybe_unused]] const ProductTypes& types, [[maybe_unused]] F&& f) {
#if defined(__x86_64__)
  if (bits(types.out) > 32) return false;
  const auto are = [&types](DType lhs, DType rhs) { return types.lhs == lhs && types.rhs == rhs && has_amx(); };
  if (is_floating(types.out)) {
    if (types.lhs_rounded != types.lhs || types.rhs_rounded != types.rhs) return false;
    return are(DType::bfloat16, DType::bfloat16) && (f(AmxBfloat16{}, Type<Bfloat16Bits>{}), true);
  }
  if (!is_integer(types.out)) return false;
  if (are(DType::int8, DType::int8)) return f(AmxSignedBytes{}, Type<std::int8_t>{}), true;
  if (are(DType::uint8, DType::uint8)) return f(AmxUnsignedBytes{}, Type<std::uint8_t>{}), true;
  if (are(DType::int8, DType::uint8)) return f(AmxSignedByUnsigned{}, Type<std::int8_t>{}), true;
  if (are(DType::uint8, DType::int8)) return f(AmxUnsignedBySigned{}, Type<std::uint8_t>{}), true;
#endif
  return false;
}

// Packs one operand of any kind of matmul: only AMX distinguishes left from right.
template <class K, class S>
void pack_operand(const Matrix<S>& matrix, AmxSide side, int64_t first, int64_t count, int64_t k0, int64_t k,
                  int64_t width, typename K::Packed* out) {
  if constexpr (IsAmxKind<K>) {
    const AmxSource source{reinterpret_cast<const std::byte*>(matrix.data), sizeof(S), matrix.free, matrix.inner};
    pack_amx(source, side, first, count, k0, k, width, reinterpret_cast<std::byte*>(out));
  } else {
    pack_matrix<K, S>(matrix.data, matrix.free, matrix.inner, first, count, k0, k, width, out);
  }
}

// Sets how the right operand is stored, and the left one if tiles may read it in place.
template <class K, class S>
void read_in_place(const Matrix<S>& left, const Matrix<S>& right, Product<K>& product) {
  if constexpr (IsAmxKind<K>) {
    const bool neighbours = left.inner.is_regular() && (left.inner.stride() == 1 || left.inner.extent() == 1);
    product.right_stride = right.inner.is_regular() ? right.inner.stride() : 0;
    if (!neighbours || !left.free.is_regular()) return;
    product.left_in_place = left.data;
    product.left_stride = left.free.stride();
  }
}

}  // namespace capibara::cpu
