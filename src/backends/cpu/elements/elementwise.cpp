// Looking up and applying elementwise primitives in loop form, and the monoids of reductions.
#include "backends/cpu/elements/elementwise.h"
#include "program/ir/handles.h"

#include <capibara/error.h>

#include <algorithm>
#include <unordered_map>

namespace capibara::cpu {

namespace {

const ElementwiseRow* find_row(const Primitive& primitive) {
  static const std::unordered_map<const PrimitiveRecord*, ElementwiseRow> rows = [] {
    std::unordered_map<const PrimitiveRecord*, ElementwiseRow> all;
    for (ElementwiseRows (*part)() :
         {arithmetic_rows, exponential_rows, bit_rows, comparison_rows, conversion_rows, formula_rows}) {
      // The first row of a primitive wins: our own before the formula.
      for (const ElementwiseRow& row : part()) all.emplace(&capibara::primitive(row.name).record(), row);
    }
    return all;
  }();
  const auto found = rows.find(&primitive.record());
  return found == rows.end() ? nullptr : &found->second;
}

Writer writer_for(const ElementwiseRow& row, DType dtype) {
  switch (kind(dtype)) {
    case Kind::boolean:
    case Kind::float0:
      return row.boolean;
    case Kind::signed_integer:
    case Kind::unsigned_integer:
      return row.integer;
    case Kind::floating:
      return row.real;
    case Kind::complex:
      return row.complex;
    case Kind::key:
      return row.key;
    default:
      return nullptr;
  }
}

// A key has no bits to bitcast, and of the complex types only complex64 fits in one 64-bit word.
bool is_single_word(DType dtype) { return is_integer(dtype) || is_floating(dtype) || dtype == DType::complex64; }

}  // namespace

bool is_elementwise(const Primitive& primitive, std::span<const DType> inputs, DType output) {
  const ElementwiseRow* row = find_row(primitive);
  if (!row || inputs.empty()) return false;
  if (std::find_if_not(inputs.begin(), inputs.end(), has_element) != inputs.end() || !has_element(output)) return false;
  if (primitive == prim::bitcast_convert_type()) {
    if (inputs[0] == output) return true;
    return bits(inputs[0]) == bits(output) && is_single_word(inputs[0]) && is_single_word(output);
  }
  // Codes of formats without infinities or with a single zero have their own order.
  if (primitive == prim::nextafter() && bits(inputs[0]) < 16) return false;
  return writer_for(*row, inputs[0]) != nullptr;
}

Element apply_elementwise(Builder& builder, const Primitive& primitive, const Attrs& attrs,
                          std::span<const DType> in_types, DType out_type, std::span<const Element> inputs,
                          int output) {
  const ElementwiseRow* row = find_row(primitive);
  const Writer writer = row ? writer_for(*row, in_types[0]) : nullptr;
  if (!writer) {
    throw InternalError(concat("cpu: generated code has no ", primitive.name(), " of ", dtype_name(in_types[0])));
  }
  const Element result = writer({builder, attrs, in_types, out_type, inputs, output});
  return result.stored != no_value ? result : rounded_element(builder, out_type, result);
}

// ---- reductions ---------------------------------------------------------------------------------------------------

namespace {

bool is_logical(DType dtype) { return is_bool(dtype) || dtype == DType::float0; }

}  // namespace

std::optional<Op> combine_op(Monoid monoid, DType dtype) {
  if (is_key(dtype) || is_sub_byte(dtype)) return std::nullopt;
  if (is_complex(dtype) && monoid != Monoid::add) return std::nullopt;
  const bool real = is_inexact(dtype);
  switch (monoid) {
    case Monoid::add:
      return is_logical(dtype) ? Op::bit_or : Op::add;
    case Monoid::mul:
      return is_logical(dtype) ? Op::bit_and : Op::mul;
    case Monoid::max:
      if (is_logical(dtype)) return Op::bit_or;
      return real ? Op::maximum : is_unsigned(dtype) ? Op::gt_unsigned : Op::gt;
    case Monoid::min:
      if (is_logical(dtype)) return Op::bit_and;
      return real ? Op::minimum : is_unsigned(dtype) ? Op::lt_unsigned : Op::lt;
    case Monoid::bit_and:
      return Op::bit_and;
    case Monoid::bit_or:
      return Op::bit_or;
    default:
      return Op::bit_xor;
  }
}

Element combine(Builder& builder, Monoid monoid, DType dtype, const Element& a, const Element& b) {
  const math::Complex<Number> x{{&builder, a.parts[0]}, {&builder, a.parts[1]}};
  const math::Complex<Number> y{{&builder, b.parts[0]}, {&builder, b.parts[1]}};
  if (is_complex(dtype)) {
    switch (monoid) {
      case Monoid::add:
        return element_of(x + y);
      case Monoid::mul:
        // One product is rounded, the other is fused with the sum, as in the reference backend.
        return element_of(math::Complex<Number>{math::multiply_add(x.real, y.real, -(x.imag * y.imag)),
                                                math::multiply_add(x.imag, y.real, x.real * y.imag)});
      case Monoid::max:
        return element_of(math::maximum(x, y));
      default:
        return element_of(math::minimum(x, y));
    }
  }
  const auto plain = [&](Op op) { return Element(builder.compute(op, a.parts[0], b.parts[0])); };
  const auto chosen = [&](Op op) {
    const Value first = builder.compute(op, a.parts[0], b.parts[0]);
    return Element(builder.compute(Op::select, first, a.parts[0], b.parts[0]));
  };
  if (is_sub_byte(dtype) && is_integer(dtype)) {
    if (monoid == Monoid::max) return chosen(is_signed(dtype) ? Op::gt : Op::gt_unsigned);
    if (monoid == Monoid::min) return chosen(is_signed(dtype) ? Op::lt : Op::lt_unsigned);
    const Op op = monoid == Monoid::add       ? Op::add
                  : monoid == Monoid::mul     ? Op::mul
                  : monoid == Monoid::bit_and ? Op::bit_and
                  : monoid == Monoid::bit_or  ? Op::bit_or
                                              : Op::bit_xor;
    return rounded_element(builder, dtype, plain(op));
  }
  if (is_floating(dtype)) {
    switch (monoid) {
      case Monoid::add:
        return plain(Op::add);
      case Monoid::mul:
        return plain(Op::mul);
      case Monoid::max:
        return plain(Op::maximum);
      default:
        return plain(Op::minimum);
    }
  }
  const Op op = *combine_op(monoid, dtype);
  const bool extremum = monoid == Monoid::max || monoid == Monoid::min;
  return extremum && !is_logical(dtype) ? chosen(op) : plain(op);
}

Element identity_element(Builder& builder, Monoid monoid, DType dtype) {
  const Array identity = capibara::identity_element(monoid, dtype);
  Element element = constant_element(builder, dtype, identity.raw_data());
  element.stored = no_value;
  return element;
}

}  // namespace capibara::cpu
