// The loops of elementwise kernels: operands broadcast to the output's shape, a function applied to each element.
#pragma once

#include <capibara/error.h>

#include <array>
#include <complex>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>

#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/complex.h"
#include "lax/math/denormals.h"

namespace capibara::reference {

// An operand broadcast to the output's shape: its own bytes, one repeated element (step 0), or an expanded copy.
class BroadcastOperand {
 public:
  BroadcastOperand(const Array& x, const Shape& shape);

  DType dtype() const { return dtype_; }
  const std::byte* data() const { return data_; }
  std::int64_t count() const { return count_; }
  std::int64_t step() const { return step_; }

 private:
  DType dtype_;
  const std::byte* data_;
  std::int64_t count_;
  std::int64_t step_;
  std::unique_ptr<std::byte[]> expanded_;
};

// Denormals count as zero in arithmetic; operations that only move bits keep them.
enum class Denormals { flush, keep };

class DenormalScope {
 public:
  explicit DenormalScope(Denormals denormals) {
    if (denormals == Denormals::flush) flush_.emplace();
  }

 private:
  std::optional<math::FlushDenormals> flush_;
};

// Output elements of the compute type R, written in place if the buffer stores R itself.
template <class R>
class OutputElements {
 public:
  explicit OutputElements(const ArrayType& type) : output_(allocate(type)), type_(type) {
    if (stored_as<R>(type.dtype)) {
      values_ = reinterpret_cast<R*>(output_.data);
    } else {
      owned_ = Elements<R>(type.size());
      values_ = owned_.data();
    }
  }
  R* values() { return values_; }
  Array finish() {
    if (owned_.size() > 0) store_range<R>(type_.dtype, output_.data, type_.size(), values_);
    return output_.array;
  }

 private:
  Output output_;
  ArrayType type_;
  Elements<R> owned_;
  R* values_;
};

[[noreturn]] inline void unsupported_dtype(DType dtype) {
  throw InternalError(concat("reference: no kernel of this operation for dtype ", dtype_name(dtype)));
}

// ---- one output from one, two or three operands -------------------------------------------------------------------

// The code around the loop over elements: compiled once per pair of types, not per function.
template <class C, class R>
[[gnu::noinline]] Arrays around_unary(const KernelArgs& args, Denormals denormals,
                                      FunctionRef<void(const C* x, R* out, std::int64_t count)> loop) {
  const DenormalScope scope(denormals);
  const Array& x = args.inputs[0];
  const ReadElements<C> in(x.dtype(), x.raw_data(), x.size());
  OutputElements<R> out(args.output_types[0]);
  loop(in.data(), out.values(), x.size());
  return {out.finish()};
}

// An operand's elements with stride `step`: 1, or 0 for a single element.
template <class C>
struct Steps {
  const C* data;
  std::int64_t step;
  const C& operator[](std::int64_t i) const { return data[i * step]; }
};

template <class C, class R>
[[gnu::noinline]] Arrays around_binary(const KernelArgs& args, Denormals denormals,
                                       FunctionRef<void(Steps<C> x, Steps<C> y, R* out, std::int64_t count)> loop) {
  const DenormalScope scope(denormals);
  const ArrayType& type = args.output_types[0];
  const BroadcastOperand a(args.inputs[0], type.shape), b(args.inputs[1], type.shape);
  const ReadElements<C> x(a.dtype(), a.data(), a.count()), y(b.dtype(), b.data(), b.count());
  OutputElements<R> out(type);
  loop({x.data(), a.step()}, {y.data(), b.step()}, out.values(), type.size());
  return {out.finish()};
}

template <class C>
[[gnu::noinline]] Arrays around_ternary(
    const KernelArgs& args, Denormals denormals,
    FunctionRef<void(Steps<C> x, Steps<C> y, Steps<C> z, C* out, std::int64_t count)> loop) {
  const DenormalScope scope(denormals);
  const ArrayType& type = args.output_types[0];
  const BroadcastOperand a(args.inputs[0], type.shape), b(args.inputs[1], type.shape), c(args.inputs[2], type.shape);
  const ReadElements<C> x(a.dtype(), a.data(), a.count()), y(b.dtype(), b.data(), b.count()),
      z(c.dtype(), c.data(), c.count());
  OutputElements<C> out(type);
  loop({x.data(), a.step()}, {y.data(), b.step()}, {z.data(), c.step()}, out.values(), type.size());
  return {out.finish()};
}

// The function is called with the compute type of the first operand's dtype, to which the other operands are converted;
// an unsupported dtype is an internal error, since type rules have already rejected it.
template <class F>
Arrays apply_unary(const KernelArgs& args, F function, Denormals denormals = Denormals::flush) {
  const DType dtype = args.inputs[0].dtype();
  return visit_compute(dtype, [&]<class C>(Type<C>) -> Arrays {
    if constexpr (std::is_invocable_v<F, C>) {
      using R = std::invoke_result_t<F, C>;
      return around_unary<C, R>(args, denormals, [&](const C* x, R* out, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = function(x[i]);
      });
    } else {
      unsupported_dtype(dtype);
    }
  });
}

template <class F>
Arrays apply_binary(const KernelArgs& args, F function, Denormals denormals = Denormals::flush) {
  const DType dtype = args.inputs[0].dtype();
  return visit_compute(dtype, [&]<class C>(Type<C>) -> Arrays {
    if constexpr (std::is_invocable_v<F, C, C>) {
      using R = std::invoke_result_t<F, C, C>;
      return around_binary<C, R>(args, denormals, [&](Steps<C> x, Steps<C> y, R* out, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = function(x[i], y[i]);
      });
    } else {
      unsupported_dtype(dtype);
    }
  });
}

template <class F>
Arrays apply_ternary(const KernelArgs& args, F function, Denormals denormals = Denormals::flush) {
  const DType dtype = args.inputs[0].dtype();
  return visit_compute(dtype, [&]<class C>(Type<C>) -> Arrays {
    if constexpr (std::is_invocable_v<F, C, C, C>) {
      return around_ternary<C>(args, denormals, [&](Steps<C> x, Steps<C> y, Steps<C> z, C* out, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = function(x[i], y[i], z[i]);
      });
    } else {
      unsupported_dtype(dtype);
    }
  });
}

// Makes a kernel from a stateless function object.
template <class F>
Arrays unary(const KernelArgs& args) {
  return apply_unary(args, F{});
}
template <class F>
Arrays binary(const KernelArgs& args) {
  return apply_binary(args, F{});
}
template <class F>
Arrays unary_exact(const KernelArgs& args) {
  return apply_unary(args, F{}, Denormals::keep);
}
template <class F>
Arrays binary_exact(const KernelArgs& args) {
  return apply_binary(args, F{}, Denormals::keep);
}

template <class T>
math::Complex<T> lift(std::complex<T> x) {
  return {x.real(), x.imag()};
}
template <class T>
std::complex<T> drop(math::Complex<T> x) {
  return {x.real, x.imag};
}

// bool does not count as an integer: its operations are logical.
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Loads and stores the bits of an element.
inline std::uint64_t load_bits(DType dtype, const void* data, std::int64_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, element_address(dtype, data, index), static_cast<std::size_t>(storage_size(dtype)));
  return word;
}
inline void store_bits(DType dtype, void* data, std::int64_t index, std::uint64_t word) {
  std::memcpy(element_address(dtype, data, index), &word, static_cast<std::size_t>(storage_size(dtype)));
}

KernelList arithmetic_kernels();
KernelList formula_kernels();
KernelList comparison_kernels();
KernelList bit_kernels();
KernelList conversion_kernels();

}  // namespace capibara::reference
