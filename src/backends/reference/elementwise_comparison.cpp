// Kernels of comparisons in the usual and the total order, is_finite, and select_n.
#include <cmath>
#include <cstring>

#include "backends/reference/elementwise.h"

namespace capibara::reference {

namespace {

template <class T>
concept Real = std::integral<T> || std::floating_point<T>;

struct Eq {
  template <class T>
  bool operator()(T x, T y) const {
    return x == y;
  }
};
struct Ge {
  template <Real T>
  bool operator()(T x, T y) const {
    return x >= y;
  }
};
struct Gt {
  template <Real T>
  bool operator()(T x, T y) const {
    return x > y;
  }
};
struct Le {
  template <Real T>
  bool operator()(T x, T y) const {
    return x <= y;
  }
};
struct Lt {
  template <Real T>
  bool operator()(T x, T y) const {
    return x < y;
  }
};
struct Ne {
  template <class T>
  bool operator()(T x, T y) const {
    return !(x == y);
  }
};

// Keys have no compute type: they are equal if their bytes are.
template <class F>
Arrays equality(const KernelArgs& args) {
  const DType dtype = args.inputs[0].dtype();
  if (!is_key(dtype)) return apply_binary(args, F{});
  const ArrayType& type = args.output_types[0];
  const BroadcastOperand a(args.inputs[0], type.shape), b(args.inputs[1], type.shape);
  Output out = allocate(type);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const bool equal =
        std::memcmp(element_address(dtype, a.data(), i * a.step()), element_address(dtype, b.data(), i * b.step()),
                    static_cast<std::size_t>(storage_size(dtype))) == 0;
    out.data[i] = std::byte{F{}(equal, true)};
  }
  return {out.array};
}

// Maps a float's bits to an integer that compares in the total order: negative ones are reversed.
std::int64_t total_order_key(DType dtype, const void* data, std::int64_t index) {
  const int width = bits(dtype);
  std::int64_t code = static_cast<std::int64_t>(load_bits(dtype, data, index) << (64 - width));
  if (code < 0) code ^= INT64_MAX;
  return code;
}

template <class F>
Arrays total_order(const KernelArgs& args) {
  const DType dtype = args.inputs[0].dtype();
  if (!is_floating(dtype)) {
    if (!is_complex(dtype)) return apply_binary(args, F{}, Denormals::keep);
    return apply_binary(args, Eq{}, Denormals::keep);
  }
  const ArrayType& type = args.output_types[0];
  const BroadcastOperand a(args.inputs[0], type.shape), b(args.inputs[1], type.shape);
  Output out = allocate(type);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    out.data[i] =
        std::byte{F{}(total_order_key(dtype, a.data(), i * a.step()), total_order_key(dtype, b.data(), i * b.step()))};
  }
  return {out.array};
}

struct IsFinite {
  template <std::floating_point T>
  bool operator()(T x) const {
    return std::isfinite(x);
  }
};
struct IsInf {
  template <std::floating_point T>
  bool operator()(T x) const {
    return std::isinf(x);
  }
};
struct IsPositiveInf {
  template <std::floating_point T>
  bool operator()(T x) const {
    return std::isinf(x) && x > 0;
  }
};
struct IsNegativeInf {
  template <std::floating_point T>
  bool operator()(T x) const {
    return std::isinf(x) && x < 0;
  }
};

// Moves bytes, so it works for every dtype. `which` out of range selects the nearest case.
Arrays select_n(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  const std::size_t element = static_cast<std::size_t>(storage_size(type.dtype));
  const BroadcastOperand which(args.inputs[0], type.shape);
  const std::span<const Array> cases = args.inputs.subspan(1);
  std::vector<const std::byte*> data;
  for (const Array& c : cases) data.push_back(c.raw_data());
  const std::int64_t last = static_cast<std::int64_t>(cases.size()) - 1;
  Output out = allocate(type);
  const std::int64_t size = type.size();
  const auto choose = [&](std::int64_t i) {
    const std::int64_t chosen = element_as_int64(which.dtype(), which.data(), i * which.step());
    return static_cast<std::size_t>(chosen < 0 ? 0 : chosen > last ? last : chosen);
  };
  if (which.step() == 0 || size == 0) {
    if (size > 0) std::memcpy(out.data, data[choose(0)], element * static_cast<std::size_t>(size));
    return {out.array};
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * element;
    std::memcpy(out.data + offset, data[choose(i)] + offset, element);
  }
  return {out.array};
}

}  // namespace

KernelList comparison_kernels() {
  return {
      {"eq", equality<Eq>},
      {"ne", equality<Ne>},
      {"ge", binary<Ge>},
      {"gt", binary<Gt>},
      {"le", binary<Le>},
      {"lt", binary<Lt>},
      {"eq_to", total_order<Eq>},
      {"le_to", total_order<Le>},
      {"lt_to", total_order<Lt>},
      {"is_finite", unary<IsFinite>},
      {"is_inf", unary<IsInf>},
      {"is_pos_inf", unary<IsPositiveInf>},
      {"is_neg_inf", unary<IsNegativeInf>},
      {"select_n", select_n},
  };
}

}  // namespace capibara::reference
