// Arithmetic kernels: sums, products, quotients, powers, rounding, signs, extrema.
#include <cmath>
#include <limits>

#include "backends/reference/elementwise.h"
#include "lax/math/complex_roots.h"
#include "lax/math/exponential.h"

namespace capibara::reference {

namespace {

// Integers compute modulo 2^64 and narrow afterwards: every width wraps.
template <Integer T>
std::uint64_t wide(T x) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

struct Neg {
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(0 - wide(x));
  }
  template <std::floating_point T>
  T operator()(T x) const {
    return -x;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return {-x.real(), -x.imag()};
  }
};

struct Sign {
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(x > 0 ? 1 : x == 0 ? 0 : -1);
  }
  template <std::floating_point T>
  T operator()(T x) const {
    return math::sign(x);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return drop(math::sign(lift(x)));
  }
};

struct Abs {
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(x < 0 ? 0 - wide(x) : wide(x));
  }
  template <std::floating_point T>
  T operator()(T x) const {
    return std::fabs(x);
  }
  template <class T>
  T operator()(std::complex<T> x) const {
    return math::abs(lift(x));
  }
};

// Comparisons preserve the bits of the operand they select, and library rounding may work on bits: jax treats denormals
// as zero there too.
template <std::floating_point T>
T without_denormals(T x) {
  return std::abs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}

struct Floor {
  template <std::floating_point T>
  T operator()(T x) const {
    return std::floor(without_denormals(x));
  }
};

struct Ceil {
  template <std::floating_point T>
  T operator()(T x) const {
    return std::ceil(without_denormals(x));
  }
};

Arrays floor(const KernelArgs& args) { return apply_unary(args, Floor{}); }
Arrays ceil(const KernelArgs& args) { return apply_unary(args, Ceil{}); }

Arrays round(const KernelArgs& args) {
  const bool to_even = args.attrs.integer("rounding_method") == 1;
  return apply_unary(
      args, [to_even]<std::floating_point T>(T x) { return to_even ? math::round_nearest_even(x) : math::round(x); });
}

struct Add {
  bool operator()(bool x, bool y) const { return x || y; }
  template <Integer T>
  T operator()(T x, T y) const {
    return static_cast<T>(wide(x) + wide(y));
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return x + y;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return {x.real() + y.real(), x.imag() + y.imag()};
  }
};

struct Sub {
  template <Integer T>
  T operator()(T x, T y) const {
    return static_cast<T>(wide(x) - wide(y));
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return x - y;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return {x.real() - y.real(), x.imag() - y.imag()};
  }
};

struct Mul {
  bool operator()(bool x, bool y) const { return x && y; }
  template <Integer T>
  T operator()(T x, T y) const {
    return static_cast<T>(wide(x) * wide(y));
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return x * y;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return drop(lift(x) * lift(y));
  }
};

// Division by zero gives all ones, and the lowest integer divided by -1 gives itself, as XLA defines them.
struct Div {
  template <Integer T>
  T operator()(T x, T y) const {
    if (y == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(0 - wide(x));
    return static_cast<T>(x / y);
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return x / y;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return drop(lift(x) / lift(y));
  }
};

struct Rem {
  template <Integer T>
  T operator()(T x, T y) const {
    if (y == 0) return x;
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
    return static_cast<T>(x % y);
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return std::fmod(x, y);
  }
};

struct Pow {
  // Negative powers of integers truncate: only those of 1 and -1 are nonzero.
  template <Integer T>
  T operator()(T x, T y) const {
    if (y < 0) {
      if (x == 1) return 1;
      if (x == static_cast<T>(-1)) return static_cast<T>(y % 2 == 0 ? 1 : -1);
      return x == 0 ? static_cast<T>(-1) : T{0};
    }
    return static_cast<T>(math::integer_pow<std::uint64_t>(wide(x), static_cast<std::int64_t>(y), 1));
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return math::pow(x, y);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return drop(math::pow(lift(x), lift(y)));
  }
};

struct IntegerPow {
  std::int64_t y;

  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(math::integer_pow<std::uint64_t>(wide(x), y, 1));
  }
  template <std::floating_point T>
  T operator()(T x) const {
    return math::integer_pow<T>(x, y, 1);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return drop(math::integer_pow<math::Complex<T>>(lift(x), y, {1, 0}));
  }
};

Arrays integer_pow(const KernelArgs& args) { return apply_unary(args, IntegerPow{args.attrs.integer("y")}); }

struct Square {
  template <class T>
  requires Integer<T> || std::floating_point<T> T operator()(T x) const { return Mul{}(x, x); }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return drop(math::square(lift(x)));
  }
};

struct Max {
  bool operator()(bool x, bool y) const { return x || y; }
  template <Integer T>
  T operator()(T x, T y) const {
    return x > y ? x : y;
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return without_denormals(math::maximum(x, y));
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return drop(math::maximum(lift(x), lift(y)));
  }
};

struct Min {
  bool operator()(bool x, bool y) const { return x && y; }
  template <Integer T>
  T operator()(T x, T y) const {
    return x < y ? x : y;
  }
  template <std::floating_point T>
  T operator()(T x, T y) const {
    return without_denormals(math::minimum(x, y));
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x, std::complex<T> y) const {
    return drop(math::minimum(lift(x), lift(y)));
  }
};

struct Clamp {
  template <class T>
  T operator()(T low, T x, T high) const {
    return Min{}(Max{}(low, x), high);
  }
};

Arrays clamp(const KernelArgs& args) { return apply_ternary(args, Clamp{}); }

// The upper half of the product of two numbers of `bits` bits.
Arrays mulhi(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_binary(args, [width]<Integer T>(T x, T y) {
    if constexpr (sizeof(T) < 8) {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>((static_cast<Wide>(x) * static_cast<Wide>(y)) >> width);
    } else {
      __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>((static_cast<Wide>(x) * static_cast<Wide>(y)) >> 64);
    }
  });
}

// One step in the order of stored bit patterns, for any format.
Arrays nextafter(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  const BroadcastOperand a(args.inputs[0], type.shape), b(args.inputs[1], type.shape);
  const DType dtype = type.dtype;
  const std::uint64_t sign = std::uint64_t{1} << (bits(dtype) - 1);
  Output out = allocate(type);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const std::int64_t at = i * a.step(), to = i * b.step();
    const double x = load_as<double>(dtype, a.data(), at), y = load_as<double>(dtype, b.data(), to);
    std::uint64_t code = load_bits(dtype, a.data(), at);
    if (std::isnan(x) || std::isnan(y)) {
      store_as<double>(dtype, out.data, i, std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    if (x == y) {
      code = load_bits(dtype, b.data(), to);
    } else if (x == 0) {
      code = y > 0 ? 1 : sign | 1;
    } else {
      code = (x < y) == (x > 0) ? code + 1 : code - 1;
    }
    store_bits(dtype, out.data, i, code);
  }
  return {out.array};
}

}  // namespace

KernelList arithmetic_kernels() {
  return {
      {"neg", unary_exact<Neg>},
      {"sign", unary<Sign>},
      {"abs",
       [](const KernelArgs& args) -> Arrays {
         return apply_unary(args, Abs{}, is_complex(args.inputs[0].dtype()) ? Denormals::flush : Denormals::keep);
       }},
      {"floor", floor},
      {"ceil", ceil},
      {"round", round},
      {"add", binary<Add>},
      {"add_any", binary<Add>},
      {"sub", binary<Sub>},
      {"mul", binary<Mul>},
      {"mulhi", mulhi},
      {"div", binary<Div>},
      {"rem", binary<Rem>},
      {"pow", binary<Pow>},
      {"integer_pow", integer_pow},
      {"square", unary<Square>},
      {"max", binary<Max>},
      {"min", binary<Min>},
      {"clamp", clamp},
      {"nextafter", nextafter},
  };
}

}  // namespace capibara::reference
