// Bit operations in loop form; integers narrower than a byte use their own width.
#include "backends/cpu/elements/elementwise.h"

namespace capibara::cpu {

namespace {

Element complement(const Call& call) {
  const Value ones = call.b.constant_int(call.b.type(call.value(0)), -1);
  return Element(call.b.compute(Op::bit_xor, call.value(0), ones));
}

// The bits of the dtype, without the copies of the sign above them.
Value own_bits(const Call& call, Value x) {
  if (!is_sub_byte(call.type())) return x;
  return call.b.compute(Op::bit_and, x, call.b.constant_int(Scalar::i8, (1 << bits(call.type())) - 1));
}

Element population_count(const Call& call) {
  return Element(call.b.compute(Op::population_count, own_bits(call, call.value(0))));
}

Element leading_zeros(const Call& call) {
  const Value count = call.b.compute(Op::leading_zeros, own_bits(call, call.value(0)));
  if (!is_sub_byte(call.type())) return Element(count);
  return Element(call.b.compute(Op::sub, count, call.b.constant_int(Scalar::i8, 8 - bits(call.type()))));
}

// Shift amounts are read as unsigned: negative ones exceed the width.
struct Amount {
  Value inside;  // i1: less than the width
  Value safe;    // 0 where it is not
};
Amount amount(const Call& call) {
  Builder& b = call.b;
  const Value y = own_bits(call, call.value(1));
  const Scalar type = b.type(y);
  const Value inside = b.compute(Op::lt_unsigned, y, b.constant_int(type, bits(call.type())));
  return {inside, b.compute(Op::select, inside, y, b.constant_int(type, 0))};
}

template <Op op>
Element shift(const Call& call) {
  const Amount by = amount(call);
  const Value moved = call.b.compute(op, own_bits(call, call.value(0)), by.safe);
  return Element(call.b.compute(Op::select, by.inside, moved, call.b.constant_int(call.b.type(moved), 0)));
}

// The highest bit is the sign, for unsigned dtypes too.
Element shift_right_arithmetic(const Call& call) {
  Builder& b = call.b;
  const Amount by = amount(call);
  const Scalar type = b.type(call.value(0));
  const int width = bits(call.type());
  Value x = call.value(0);
  if (is_sub_byte(call.type()) && is_unsigned(call.type())) {
    const Value places = b.constant_int(type, 8 - width);
    x = b.compute(Op::shift_right_arithmetic, b.compute(Op::shift_left, x, places), places);
  }
  const Value places = b.compute(Op::select, by.inside, by.safe, b.constant_int(type, width - 1));
  return Element(b.compute(Op::shift_right_arithmetic, x, places));
}

// One word of the Threefry block.
Element threefry(const Call& call) {
  const auto word = [&](std::size_t i) { return Word{&call.b, call.value(i)}; };
  const auto words = math::threefry2x32<Word>({word(0), word(1)}, {word(2), word(3)});
  return Element(words[static_cast<std::size_t>(call.output)].value);
}

}  // namespace

ElementwiseRows bit_rows() {
  constexpr Writer both = write_binary<Op::bit_and>, either = write_binary<Op::bit_or>,
                   differ = write_binary<Op::bit_xor>;
  return {
      {"not", complement, complement, nullptr, nullptr, nullptr},
      {"and", both, both, nullptr, nullptr, nullptr},
      {"or", either, either, nullptr, nullptr, nullptr},
      {"xor", differ, differ, nullptr, nullptr, nullptr},
      {"population_count", nullptr, population_count, nullptr, nullptr, nullptr},
      {"clz", nullptr, leading_zeros, nullptr, nullptr, nullptr},
      {"shift_left", nullptr, shift<Op::shift_left>, nullptr, nullptr, nullptr},
      {"shift_right_logical", nullptr, shift<Op::shift_right_logical>, nullptr, nullptr, nullptr},
      {"shift_right_arithmetic", nullptr, shift_right_arithmetic, nullptr, nullptr, nullptr},
      {"threefry2x32", nullptr, threefry, nullptr, nullptr, nullptr},
  };
}

}  // namespace capibara::cpu
