// Kernels of conversions: dtypes, bits, precision, complex parts; copies; functions mapped over elements.
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/reference/elementwise.h"
#include "program/derive/derive.h"

namespace capibara::reference {

namespace {

Arrays convert_element_type(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  Output out = allocate(args.output_types[0]);
  // A denormal float32 or float64 is false, as in jax; narrower floats are tested by their bits.
  const bool as_truth = is_bool(args.output_types[0].dtype) && bits(real_dtype(x.dtype())) >= 32;
  const DenormalScope scope(as_truth ? Denormals::flush : Denormals::keep);
  convert_elements(x.dtype(), x.raw_data(), args.output_types[0].dtype, out.data, x.size());
  return {out.array};
}

Arrays copy(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  Output out = allocate(args.output_types[0]);
  const std::size_t bytes = static_cast<std::size_t>(x.size() * storage_size(x.dtype()));
  if (bytes > 0) std::memcpy(out.data, x.raw_data(), bytes);
  return {out.array};
}

Arrays bitcast_convert_type(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  const ArrayType& type = args.output_types[0];
  const int old_bits = bits(x.dtype()), new_bits = bits(type.dtype);
  if (old_bits >= 8 && new_bits >= 8) return copy(args);

  // Narrow elements occupy a byte each in memory: joins or splits them, lowest bits first.
  Output out = allocate(type);
  const int many = old_bits > new_bits ? old_bits / new_bits : new_bits / old_bits;
  const int narrow = std::min(old_bits, new_bits);
  const std::uint64_t mask = (std::uint64_t{1} << narrow) - 1;
  if (old_bits == new_bits) {
    for (std::int64_t i = 0; i < type.size(); ++i) {
      const std::uint64_t word = load_bits(x.dtype(), x.raw_data(), i) & mask;
      if (is_integer(type.dtype))
        store_as<std::int64_t>(type.dtype, out.data, i, static_cast<std::int64_t>(word));
      else
        store_bits(type.dtype, out.data, i, word);
    }
  } else if (old_bits > new_bits) {
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::uint64_t word = load_bits(x.dtype(), x.raw_data(), i);
      for (int j = 0; j < many; ++j) {
        const std::uint64_t part = (word >> (j * narrow)) & mask;
        if (is_integer(type.dtype)) {
          store_as<std::int64_t>(type.dtype, out.data, i * many + j, static_cast<std::int64_t>(part));
        } else {
          store_bits(type.dtype, out.data, i * many + j, part);
        }
      }
    }
  } else {
    for (std::int64_t i = 0; i < type.size(); ++i) {
      std::uint64_t word = 0;
      for (int j = 0; j < many; ++j) word |= (load_bits(x.dtype(), x.raw_data(), i * many + j) & mask) << (j * narrow);
      store_bits(type.dtype, out.data, i, word);
    }
  }
  return {out.array};
}

// Rounds the mantissa to nearest even, then maps exponents out of range to infinity or zero.
struct ReducePrecision {
  int exponent_bits, mantissa_bits;
  bool narrower_range;  // than the operand's own format

  template <std::floating_point T>
  T operator()(T x) const {
    using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
    constexpr int mantissa = std::is_same_v<T, float> ? 23 : 52;
    constexpr int bias = std::is_same_v<T, float> ? 127 : 1023;
    if (std::isnan(x)) return x;
    Bits word = std::bit_cast<Bits>(x);
    if (mantissa_bits < mantissa) {
      const int dropped = mantissa - mantissa_bits;
      const Bits last = (word >> dropped) & 1;
      word += (Bits{1} << (dropped - 1)) - 1 + last;
      word &= ~((Bits{1} << dropped) - 1);
    }
    if (!narrower_range) return std::bit_cast<T>(word);
    const Bits sign = word & ~(static_cast<Bits>(~Bits{0}) >> 1);
    const int exponent = static_cast<int>((word & ~sign) >> mantissa);
    const int reduced_bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent > bias + reduced_bias) return std::bit_cast<T>(sign | (Bits{2 * bias + 1} << mantissa));
    if (exponent <= bias - reduced_bias) return std::bit_cast<T>(sign);
    return std::bit_cast<T>(word);
  }
};

Arrays reduce_precision(const KernelArgs& args) {
  const std::int64_t exponent = args.attrs.integer("exponent_bits");
  const std::int64_t mantissa = std::min<std::int64_t>(args.attrs.integer("mantissa_bits"), 64);
  const bool narrower = exponent < dtype_row(args.inputs[0].dtype()).exponent_bits;
  return apply_unary(
      args,
      ReducePrecision{static_cast<int>(std::min<std::int64_t>(exponent, 16)), static_cast<int>(mantissa), narrower},
      Denormals::keep);
}

struct RealPart {
  template <class T>
  T operator()(std::complex<T> x) const {
    return x.real();
  }
};
struct ImaginaryPart {
  template <class T>
  T operator()(std::complex<T> x) const {
    return x.imag();
  }
};
struct MakeComplex {
  template <std::floating_point T>
  std::complex<T> operator()(T re, T im) const {
    return {re, im};
  }
};
struct Conj {
  template <std::floating_point T>
  std::complex<T> operator()(T x) const {
    return {x, T{0}};
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return {x.real(), -x.imag()};
  }
};

// Runs the scalar program once, batched over all elements.
Arrays map(const KernelArgs& args) {
  const Program& program = args.attrs.program("jaxpr");
  const std::int64_t count = args.inputs.empty() ? 1 : args.inputs[0].size();
  const MappedAxis axis{"", count};
  const std::vector<bool> mapped(args.inputs.size(), true), instantiate(program.outputs().size(), true);
  const Program batched = batch_program(program, axis, mapped, instantiate).program;
  Arrays flat;
  for (const Array& x : args.inputs) flat.push_back(Array::from_buffer(x.type().with_shape({count}), x.buffer()));
  Arrays outputs = interpret(batched, flat);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = Array::from_buffer(args.output_types[i], outputs[i].buffer());
  }
  return outputs;
}

}  // namespace

KernelList conversion_kernels() {
  return {
      {"convert_element_type", convert_element_type},
      {"bitcast_convert_type", bitcast_convert_type},
      {"reduce_precision", reduce_precision},
      {"real", unary_exact<RealPart>},
      {"imag", unary_exact<ImaginaryPart>},
      {"complex", binary_exact<MakeComplex>},
      {"conj", unary_exact<Conj>},
      {"copy", copy},
      {"stop_gradient", [](const KernelArgs& args) -> Arrays { return {args.inputs[0]}; }},
      {"map", map},
  };
}

}  // namespace capibara::reference
