// Kernels of bit operations; integers narrower than a byte are truncated to their own width.
#include <bit>

#include "backends/reference/elementwise.h"

namespace capibara::reference {

namespace {

struct Not {
  bool operator()(bool x) const { return !x; }
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct And {
  template <std::integral T>
  T operator()(T x, T y) const {
    return static_cast<T>(x & y);
  }
};
struct Or {
  template <std::integral T>
  T operator()(T x, T y) const {
    return static_cast<T>(x | y);
  }
};
struct Xor {
  template <std::integral T>
  T operator()(T x, T y) const {
    return static_cast<T>(x ^ y);
  }
};

// The low `width` bits, the dtype's own.
template <Integer T>
std::uint64_t cut(T x, int width) {
  const std::uint64_t word = static_cast<Unsigned<T>>(x);
  return width >= 64 ? word : word & ((std::uint64_t{1} << width) - 1);
}

Arrays population_count(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_unary(args, [width]<Integer T>(T x) { return static_cast<T>(std::popcount(cut(x, width))); });
}

Arrays clz(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_unary(
      args, [width]<Integer T>(T x) { return static_cast<T>(std::countl_zero(cut(x, width)) - (64 - width)); });
}

// Shift amounts are read as unsigned: negative ones exceed the width.
Arrays shift_left(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_binary(args, [width]<Integer T>(T x, T y) {
    const std::uint64_t amount = cut(y, width);
    return amount >= static_cast<std::uint64_t>(width) ? T{0} : static_cast<T>(cut(x, width) << amount);
  });
}

Arrays shift_right_logical(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_binary(args, [width]<Integer T>(T x, T y) {
    const std::uint64_t amount = cut(y, width);
    return amount >= static_cast<std::uint64_t>(width) ? T{0} : static_cast<T>(cut(x, width) >> amount);
  });
}

Arrays shift_right_arithmetic(const KernelArgs& args) {
  const int width = bits(args.inputs[0].dtype());
  return apply_binary(args, [width]<Integer T>(T x, T y) {
    const std::uint64_t amount = cut(y, width);
    // The highest bit is the sign, for unsigned dtypes too.
    const std::int64_t value = static_cast<std::int64_t>(cut(x, width) << (64 - width)) >> (64 - width);
    return static_cast<T>(value >> (amount >= static_cast<std::uint64_t>(width) ? width - 1 : amount));
  });
}

}  // namespace

KernelList bit_kernels() {
  return {
      {"not", unary<Not>},
      {"and", binary<And>},
      {"or", binary<Or>},
      {"xor", binary<Xor>},
      {"population_count", population_count},
      {"clz", clz},
      {"shift_left", shift_left},
      {"shift_right_logical", shift_right_logical},
      {"shift_right_arithmetic", shift_right_arithmetic},
  };
}

}  // namespace capibara::reference
