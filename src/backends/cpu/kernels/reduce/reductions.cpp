// Named reductions of few elements outside of generated code: one pass over the operand, in order.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>

#include "backends/cpu/kernels/small_families.h"
#include "core/array/element.h"
#include "lax/reduce/monoid.h"

namespace capibara::cpu {

namespace {

template <class C>
bool is_less(const C& a, const C& b) {
  if constexpr (is_complex_number<C>)
    return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
  else
    return a < b;
}

// 32-bit floats are summed in 64 bits and rounded once.
template <Monoid M, class C>
using Total = std::conditional_t<
    M == Monoid::add && std::is_same_v<C, float>, double,
    std::conditional_t<M == Monoid::add && std::is_same_v<C, std::complex<float>>, std::complex<double>, C>>;

template <Monoid M, class C>
C combined(const C& a, const C& b) {
  if constexpr (M == Monoid::max || M == Monoid::min) {
    if (a != a) return a;  // NaN wins
    if (b != b) return b;
    if constexpr (std::is_floating_point_v<C>) {
      if (a == b) return std::signbit(a) == (M == Monoid::max) ? b : a;
    }
    return is_less(a, b) == (M == Monoid::max) ? b : a;
  } else if constexpr (std::is_same_v<C, bool>) {
    if constexpr (M == Monoid::add || M == Monoid::bit_or)
      return a || b;
    else if constexpr (M == Monoid::bit_xor)
      return a != b;
    else
      return a && b;
  } else if constexpr (std::is_integral_v<C>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // integers wrap
    if constexpr (M == Monoid::add)
      return static_cast<C>(x + y);
    else if constexpr (M == Monoid::mul)
      return static_cast<C>(x * y);
    else if constexpr (M == Monoid::bit_and)
      return static_cast<C>(x & y);
    else if constexpr (M == Monoid::bit_or)
      return static_cast<C>(x | y);
    else
      return static_cast<C>(x ^ y);
  } else if constexpr (M == Monoid::add) {
    return a + b;
  } else if constexpr (is_complex_number<C>) {
    // Rounds as XLA does on the CPU: one product first, the other fused with the sum.
    return C(std::fma(a.real(), b.real(), -(a.imag() * b.imag())), std::fma(a.imag(), b.real(), a.real() * b.imag()));
  } else {
    return a * b;
  }
}

template <Monoid M, class C>
inline constexpr bool has_meaning =
    M == Monoid::add || M == Monoid::mul || M == Monoid::max || M == Monoid::min || std::is_integral_v<C>;

// The result each element of the operand belongs to, as runs along the innermost dimension.
struct Runs {
  Shape outer;   // all dimensions but the last
  Ints strides;  // of the results, by dimension; 0 for reduced ones
  int64_t run = 1, run_stride = 0;

  Runs(const Shape& shape, const Ints& axes) : strides(shape.size(), 0) {
    int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end()) continue;
      strides[d] = stride;
      stride *= shape[d];
    }
    if (shape.empty()) return;
    outer.assign(shape.begin(), shape.end() - 1);
    run = shape.back();
    run_stride = strides.back();
  }

  // Calls visit(first element, first result) for each run, in the order of the elements.
  template <class F>
  void for_each(F&& visit) const {
    const int64_t count = element_count(outer);
    Ints index(outer.size(), 0);
    int64_t result = 0;
    for (int64_t i = 0; i < count; ++i) {
      visit(i * run, result);
      for (std::size_t d = outer.size(); d-- > 0;) {
        result += strides[d];
        if (++index[d] < outer[d]) break;
        result -= strides[d] * outer[d];
        index[d] = 0;
      }
    }
  }
};

// A buffer, its dtype and its number of elements.
struct Held {
  std::byte* data;
  DType dtype;
  int64_t count;
};

// totals[i * stride] = totals[i * stride] op values[i].
template <Monoid M, class C>
void fold_run(Total<M, C>* totals, int64_t stride, const C* values, int64_t count) {
  using T = Total<M, C>;
  for (int64_t i = 0; i < count; ++i)
    totals[i * stride] = combined<M, T>(totals[i * stride], static_cast<T>(values[i]));
}

// The code around the loops: compiled for each type, not for each operation.
template <class C, class T>
[[gnu::noinline]] void reduce_runs(const Runs& runs, Held x, Held out, const Array& identity,
                                   void (*fold)(T* totals, int64_t stride, const C* values, int64_t count)) {
  const ReadElements<C> elements(x.dtype, x.data, x.count);
  Elements<T> totals(out.count);
  std::fill(totals.begin(), totals.end(), static_cast<T>(load_as<C>(x.dtype, identity.raw_data(), 0)));
  runs.for_each([&](int64_t first, int64_t result) {
    fold(totals.data() + result, runs.run_stride, elements.data() + first, runs.run);
  });
  Elements<C> rounded(out.count);
  for (int64_t i = 0; i < out.count; ++i) rounded[i] = static_cast<C>(totals[i]);
  store_range<C>(out.dtype, out.data, out.count, rounded.data());
}

template <Monoid M>
HostKernel make_reduction(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  auto runs = std::make_shared<const Runs>(x.shape, request.attrs.ints("axes"));
  const DType dtype = x.dtype, result_dtype = out.dtype;
  const int64_t count = x.size(), results = out.size();
  if (is_key(dtype)) return {};
  // A single element is its own sum, including the sign of zero, as in jax; complex infinities times one would contain
  // NaN.
  if (count == results && dtype == result_dtype && (M == Monoid::add || !is_complex(dtype))) {
    const auto bytes = static_cast<std::size_t>(count * storage_size(dtype));
    return [bytes](std::byte* const* buffers) { std::copy_n(buffers[0], bytes, buffers[1]); };
  }
  const Array identity = identity_element(M, dtype);
  return visit_compute(dtype, [&]<class C>(Type<C>) -> HostKernel {
    if constexpr (has_meaning<M, C>) {
      return [=](std::byte* const* buffers) {
        reduce_runs<C, Total<M, C>>(*runs, {buffers[0], dtype, count}, {buffers[1], result_dtype, results}, identity,
                                    fold_run<M, C>);
      };
    } else {
      return {};
    }
  });
}

}  // namespace

KernelMakers reduction_makers() {
  return {{"reduce_and", make_reduction<Monoid::bit_and>}, {"reduce_max", make_reduction<Monoid::max>},
          {"reduce_min", make_reduction<Monoid::min>},     {"reduce_or", make_reduction<Monoid::bit_or>},
          {"reduce_prod", make_reduction<Monoid::mul>},    {"reduce_sum", make_reduction<Monoid::add>},
          {"reduce_xor", make_reduction<Monoid::bit_xor>}};
}

}  // namespace capibara::cpu
