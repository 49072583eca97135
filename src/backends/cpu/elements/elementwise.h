// The table of elementwise primitives in loop form: one row per primitive, one writer per kind of number.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/elements/number.h"
#include "lax/math/complex.h"

namespace capibara::cpu {

// One application of a primitive to elements.
struct Call {
  Builder& b;
  const Attrs& attrs;
  std::span<const DType> types;  // of the operands
  DType out;
  std::span<const Element> in;
  int output;  // which result is requested

  DType type() const { return types[0]; }
  Value value(std::size_t i) const { return in[i].parts[0]; }
  Number number(std::size_t i) const { return {&b, in[i].parts[0]}; }
  math::Complex<Number> complex(std::size_t i) const { return {{&b, in[i].parts[0]}, {&b, in[i].parts[1]}}; }
};

using Writer = Element (*)(const Call&);

// A null writer: unsupported for operands of that kind.
struct ElementwiseRow {
  std::string_view name;
  Writer boolean, integer, real, complex, key;
};
using ElementwiseRows = std::vector<ElementwiseRow>;

ElementwiseRows arithmetic_rows();
ElementwiseRows exponential_rows();
ElementwiseRows bit_rows();
ElementwiseRows comparison_rows();
ElementwiseRows conversion_rows();
ElementwiseRows formula_rows();  // of math/, for primitives without a row of our own

inline Element element_of(Number x) { return Element(x.value); }
inline Element element_of(Truth x) { return Element(x.value); }
inline Element element_of(math::Complex<Number> x) { return Element(x.real.value, x.imag.value); }

// The integer type of equal width.
inline Scalar integer_of(Scalar type) {
  switch (byte_size(type)) {
    case 1:
      return Scalar::i8;
    case 2:
      return Scalar::i16;
    case 4:
      return Scalar::i32;
    default:
      return Scalar::i64;
  }
}

// Writers of plain operations.
template <Op op>
Element write_unary(const Call& call) {
  return Element(call.b.compute(op, call.value(0)));
}
template <Op op>
Element write_binary(const Call& call) {
  return Element(call.b.compute(op, call.value(0), call.value(1)));
}
template <Op op, Op op_unsigned>
Element write_signed_or_not(const Call& call) {
  return Element(call.b.compute(is_unsigned(call.type()) ? op_unsigned : op, call.value(0), call.value(1)));
}

}  // namespace capibara::cpu
