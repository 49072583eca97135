// Lists of the elementwise primitives whose value is one template of this folder. Each is below its templates; the
// backends generate their code from the lists (math.h joins them), so that no backend needs a row for a formula.
#pragma once

#include <tuple>

namespace capibara::math {

enum class Numbers { real, real_and_complex };

// The primitive is function(x, ...) of one abstract value per operand.
template <int count, Numbers numbers, class F>
struct Formula {
  using Function = F;  // without state
  static constexpr int operands = count;
  static constexpr bool is_complex = numbers == Numbers::real_and_complex;

  const char* primitive;
};

template <int operands, Numbers numbers = Numbers::real, class Function>
constexpr Formula<operands, numbers, Function> formula(const char* primitive, Function) {
  return {primitive};
}

template <int operands, class Function>
constexpr auto complex_formula(const char* primitive, Function function) {
  return formula<operands, Numbers::real_and_complex>(primitive, function);
}

}  // namespace capibara::math
