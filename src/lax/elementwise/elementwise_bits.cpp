// Bit operations on integers and booleans.
#include "lax/elementwise/elementwise.h"

namespace capibara::elementwise {

Family bit_records() {
  Family family;
  const auto add = [&](const char* name, const char* doc, std::size_t operands, unsigned accepted,
                       const char* stablehlo) -> PrimitiveRecord& {
    PrimitiveRecord r = record(name, doc, operands, accepted, stablehlo);
    r.jvp = zero_jvp();
    r.differentiable = false;
    return family.emplace_back(std::move(r));
  };
  add("not", "All bits inverted; logical not of booleans.", 1, bits, "stablehlo.not").traits.only_order = true;
  const auto add_monoid = [&](const char* name, const char* doc, const char* stablehlo,
                              Monoid monoid) -> PrimitiveRecord& {
    PrimitiveRecord& r = add(name, doc, 2, bits, stablehlo);
    combine_operands(r, monoid);
    return r;
  };
  add_monoid("and", "Bitwise and.", "stablehlo.and", Monoid::bit_and).traits.only_order = true;
  add_monoid("or", "Bitwise or.", "stablehlo.or", Monoid::bit_or).traits.only_order = true;
  add_monoid("xor", "Bitwise exclusive or.", "stablehlo.xor", Monoid::bit_xor);
  add("population_count", "The number of bits that are set.", 1, integers, "stablehlo.popcnt");
  add("clz", "The number of leading zero bits.", 1, integers, "stablehlo.count_leading_zeros");
  const SampleRange amounts{0.0, 7.0};
  add("shift_left", "x shifted left by y bits; zero from the width on.", 2, integers, "stablehlo.shift_left").samples =
      sample_calls(2, amounts);
  add("shift_right_arithmetic", "x shifted right by y bits, filled with its sign.", 2, integers,
      "stablehlo.shift_right_arithmetic")
      .samples = sample_calls(2, amounts);
  add("shift_right_logical", "x shifted right by y bits, filled with zeros.", 2, integers,
      "stablehlo.shift_right_logical")
      .samples = sample_calls(2, amounts);
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array bitwise_not(const Array& x) { return elementwise::call<"not">(x); }
Array bitwise_and(const Array& x, const Array& y) { return elementwise::call<"and">(x, y); }
Array bitwise_or(const Array& x, const Array& y) { return elementwise::call<"or">(x, y); }
Array bitwise_xor(const Array& x, const Array& y) { return elementwise::call<"xor">(x, y); }
Array population_count(const Array& x) { return elementwise::call<"population_count">(x); }
Array clz(const Array& x) { return elementwise::call<"clz">(x); }
Array shift_left(const Array& x, const Array& y) { return elementwise::call<"shift_left">(x, y); }
Array shift_right_arithmetic(const Array& x, const Array& y) {
  return elementwise::call<"shift_right_arithmetic">(x, y);
}
Array shift_right_logical(const Array& x, const Array& y) { return elementwise::call<"shift_right_logical">(x, y); }

}  // namespace capibara::jax::lax
