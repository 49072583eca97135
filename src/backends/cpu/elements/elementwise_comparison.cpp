// Comparisons, tests of floats, and selection in loop form.
#include "backends/cpu/elements/elementwise.h"

namespace capibara::cpu {

namespace {

Element eq_complex(const Call& call) { return element_of(math::eq(call.complex(0), call.complex(1))); }
Element ne_complex(const Call& call) { return element_of(math::ne(call.complex(0), call.complex(1))); }

// Two keys are equal when all their words are.
template <bool equal>
Element compare_keys(const Call& call) {
  Builder& b = call.b;
  Value result = no_value;
  for (int i = 0; i < call.in[0].count; ++i) {
    const Value part = b.compute(equal ? Op::eq : Op::ne, call.in[0].parts[i], call.in[1].parts[i]);
    result = i == 0 ? part : b.compute(equal ? Op::bit_and : Op::bit_or, result, part);
  }
  return Element(result);
}

// A float's bits as an integer in total order: negative codes are reversed.
Value total_order_key(const Call& call, std::size_t operand) {
  Builder& b = call.b;
  const DType dtype = call.type();
  const Scalar integer = integer_of(stored_type(dtype));
  Value code = b.convert(Op::bitcast, integer, stored_value(b, dtype, call.in[operand]));
  if (bits(dtype) < 8) code = b.compute(Op::shift_left, code, b.constant_int(integer, 8 - bits(dtype)));
  const int width = 8 * byte_size(integer);
  const Value backwards = b.compute(Op::bit_xor, code, b.constant_int(integer, ~(INT64_MIN >> (64 - width))));
  return b.compute(Op::select, b.compute(Op::lt, code, b.constant_int(integer, 0)), backwards, code);
}

template <Op op>
Element total_order(const Call& call) {
  return Element(call.b.compute(op, total_order_key(call, 0), total_order_key(call, 1)));
}

Element finite(const Call& call) { return element_of(math::is_finite(call.number(0))); }

enum class Infinity { any, positive, negative };
template <Infinity which>
Element infinite(const Call& call) {
  const Number x = which == Infinity::any ? math::abs(call.number(0)) : call.number(0);
  const double infinity = which == Infinity::negative ? -math::infinity : math::infinity;
  return element_of(math::eq(x, math::constant(infinity, x)));
}

// A boolean selects between two cases, an integer among any number; an index out of range is clamped.
Element select_by_truth(const Call& call) {
  if (call.in.size() == 2) return call.in[1];
  return select_element(call.b, call.value(0), call.in[2], call.in[1]);
}
Element select_by_number(const Call& call) {
  Builder& b = call.b;
  const Value which = call.value(0);
  Element chosen = call.in[1];
  for (std::size_t i = 2; i < call.in.size(); ++i) {
    const Value place = b.constant_int(b.type(which), static_cast<int64_t>(i) - 1);
    const Value reached = b.compute(is_unsigned(call.type()) ? Op::ge_unsigned : Op::ge, which, place);
    chosen = select_element(b, reached, call.in[i], chosen);
  }
  return chosen;
}

}  // namespace

ElementwiseRows comparison_rows() {
  constexpr Writer eq = write_binary<Op::eq>, ne = write_binary<Op::ne>;
  return {
      {"eq", eq, eq, eq, eq_complex, compare_keys<true>},
      {"ne", ne, ne, ne, ne_complex, compare_keys<false>},
      {"ge", write_binary<Op::ge_unsigned>, write_signed_or_not<Op::ge, Op::ge_unsigned>, write_binary<Op::ge>, nullptr,
       nullptr},
      {"gt", write_binary<Op::gt_unsigned>, write_signed_or_not<Op::gt, Op::gt_unsigned>, write_binary<Op::gt>, nullptr,
       nullptr},
      {"le", write_binary<Op::le_unsigned>, write_signed_or_not<Op::le, Op::le_unsigned>, write_binary<Op::le>, nullptr,
       nullptr},
      {"lt", write_binary<Op::lt_unsigned>, write_signed_or_not<Op::lt, Op::lt_unsigned>, write_binary<Op::lt>, nullptr,
       nullptr},
      {"eq_to", eq, eq, total_order<Op::eq>, eq_complex, nullptr},
      {"le_to", write_binary<Op::le_unsigned>, write_signed_or_not<Op::le, Op::le_unsigned>, total_order<Op::le>,
       eq_complex, nullptr},
      {"lt_to", write_binary<Op::lt_unsigned>, write_signed_or_not<Op::lt, Op::lt_unsigned>, total_order<Op::lt>,
       eq_complex, nullptr},
      {"is_finite", nullptr, nullptr, finite, nullptr, nullptr},
      {"is_inf", nullptr, nullptr, infinite<Infinity::any>, nullptr, nullptr},
      {"is_pos_inf", nullptr, nullptr, infinite<Infinity::positive>, nullptr, nullptr},
      {"is_neg_inf", nullptr, nullptr, infinite<Infinity::negative>, nullptr, nullptr},
      {"select_n", select_by_truth, select_by_number, nullptr, nullptr, nullptr},
  };
}

}  // namespace capibara::cpu
