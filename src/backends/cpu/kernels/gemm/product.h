// Common to dot products and convolutions: the type they compute in, and operands and results in that type.
#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <optional>
#include <utility>

#include "backends/cpu/kernels/gemm/mixed_bytes.h"
#include "backends/cpu/kernels/gemm/round_to_bfloat16.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/array/element.h"

namespace capibara::cpu {

// The dtypes of a matmul: operands may be rounded first (two dtypes become the result's; an algorithm names a narrower
// one), then everything is computed in one type and converted to the result's.
struct ProductTypes {
  DType lhs, rhs, lhs_rounded, rhs_rounded, out;
};
ProductTypes product_types(const KernelRequest& request);

// Calls f(Type<T>{}) with the compute type: floats narrower than 32 bits in float, integers and booleans modulo 2^32
// or 2^64. False: operands are numbers of different kinds, which are left to the reference kernel.
template <class F>
bool visit_product_type(const ProductTypes& types, F&& f) {
  const DType all[] = {types.lhs_rounded, types.rhs_rounded, types.out};
  auto any = [&all](auto&& test) { return std::any_of(std::begin(all), std::end(all), test); };
  auto every = [&all](auto&& test) { return std::all_of(std::begin(all), std::end(all), test); };
  auto wide = [](DType dtype) { return dtype == DType::float64 || dtype == DType::complex128; };
  if (every([](DType d) { return is_inexact(d); })) {
    if (any([](DType d) { return is_complex(d); })) {
      if (!every([](DType d) { return is_complex(d); })) return false;
      any(wide) ? f(Type<std::complex<double>>{}) : f(Type<std::complex<float>>{});
    } else {
      any(wide) ? f(Type<double>{}) : f(Type<float>{});
    }
    return true;
  }
  if (every([](DType d) { return is_bool(d); })) return f(Type<std::uint32_t>{}), true;
  if (!every([](DType d) { return is_integer(d); })) return false;
  bits(types.out) == 64 ? f(Type<std::uint64_t>{}) : f(Type<std::uint32_t>{});
  return true;
}

// True if a buffer of `dtype` can be read as T without conversion.
template <class T>
bool same_bits(DType dtype) {
  if constexpr (std::is_integral_v<T>)
    return is_integer(dtype) && storage_size(dtype) == sizeof(T) && !is_sub_byte(dtype);
  else
    return stored_as<T>(dtype);
}

inline constexpr int64_t conversion_chunk = 16384;  // elements

// All elements of an operand as T: in place where possible, else converted into `hold`.
template <class T>
const T* product_operand(DType dtype, DType rounded, const std::byte* data, int64_t count, Scratch<T>& hold) {
  if (dtype == rounded && same_bits<T>(dtype)) return reinterpret_cast<const T*>(data);
  hold = Scratch<T>(count, "converted operand of a product");
  parallel_for_cost(
      (count + conversion_chunk - 1) / conversion_chunk, conversion_chunk * 1.0, [&](int64_t begin, int64_t end) {
        Scratch<std::byte> between;
        if (dtype != rounded)
          between = Scratch<std::byte>(conversion_chunk * storage_size(rounded), "rounded operand of a product");
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          int64_t first = chunk * conversion_chunk, size = std::min(conversion_chunk, count - first);
          const void* source = element_address(dtype, static_cast<const void*>(data), first);
          if (dtype != rounded) {
            convert_elements(dtype, source, rounded, between.data(), size);
            source = between.data();
          }
          load_range<T>(rounded, source, size, hold.data() + first);
        }
        return 0;
      });
  return hold.data();
}

// Memory in which sums of type T accumulate: the output, or a buffer whose parts are converted when complete.
template <class T>
class ProductResult {
 public:
  ProductResult(DType dtype, std::byte* data, int64_t count) : dtype_(dtype), data_(data), count_(count) {
    if (!same_bits<T>(dtype)) hold_ = Scratch<T>(count, "result of a product before its conversion");
  }
  T* values() { return hold_.data() ? hold_.data() : reinterpret_cast<T*>(data_); }
  std::byte* data() const { return data_; }
  bool converts() const { return hold_.data() != nullptr; }
  void convert(int64_t first, int64_t count) const {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype_ == DType::bfloat16) {
        return round_to_bfloat16(hold_.data() + first, reinterpret_cast<Bfloat16Bits*>(data_) + first, count);
      }
    }
    store_range<T>(dtype_, element_address(dtype_, static_cast<void*>(data_), first), count, hold_.data() + first);
  }
  void convert_all() const {
    if (!converts()) return;
    parallel_for_cost((count_ + conversion_chunk - 1) / conversion_chunk, conversion_chunk * 1.0,
                      [&](int64_t begin, int64_t end) {
                        const int64_t first = begin * conversion_chunk;
                        convert(first, std::min(end * conversion_chunk, count_) - first);
                        return 0;
                      });
  }

 private:
  DType dtype_;
  std::byte* data_;
  int64_t count_;
  Scratch<T> hold_;
};

// Operand types that are packed straight from memory, without a converted copy. False: other types.
template <class F>
bool visit_narrow_product(const ProductTypes& types, F&& f) {
  if (types.lhs != types.rhs || types.lhs != types.lhs_rounded || types.rhs != types.rhs_rounded) return false;
  const bool to_float = is_floating(types.out) && bits(types.out) <= 32,
             to_integer = is_integer(types.out) && bits(types.out) <= 32;
  if (to_float && types.lhs == DType::bfloat16) {
    has_tile<Bfloat16>() ? f(Bfloat16{}, Type<Bfloat16Bits>{}) : f(Singles{}, Type<Bfloat16Bits>{});
    return true;
  }
  if (to_float && types.lhs == DType::float16) return f(Singles{}, Type<HalfBits>{}), true;
  if (to_integer && types.lhs == DType::int8 && has_tile<SignedBytes>())
    return f(SignedBytes{}, Type<std::int8_t>{}), true;
  if (to_integer && types.lhs == DType::uint8 && has_tile<UnsignedBytes>())
    return f(UnsignedBytes{}, Type<std::uint8_t>{}), true;
  return false;
}

// The same for int8 by uint8 and the reverse, for matmuls whose left operand is also the tile's: their order matters.
template <class F>
bool visit_mixed_product(const ProductTypes& types, F&& f) {
  // Modulo 2^32 the result is the same whether or not operands are converted first.
  if (!is_integer(types.out) || bits(types.out) > 32) return false;
  const bool from_signed = types.lhs == DType::int8 && types.rhs == DType::uint8;
  const bool from_unsigned = types.lhs == DType::uint8 && types.rhs == DType::int8;
  if (from_signed && has_tile<SignedByUnsigned>()) return f(SignedByUnsigned{}, Type<std::int8_t>{}), true;
  if (from_unsigned && has_tile<UnsignedBySigned>()) return f(UnsignedBySigned{}, Type<std::uint8_t>{}), true;
  return false;
}

}  // namespace capibara::cpu
