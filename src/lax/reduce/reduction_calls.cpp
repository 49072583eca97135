// Preparation of the operands of reduce and reduce_window before they bind.
#include "lax/reduce/reduction_calls.h"

namespace capibara::jax::lax {

std::optional<Monoid> monoid_of(const BinaryFunction& function) {
  using Pointer = Array (*)(const Array&, const Array&);
  const Pointer* target = function.target<Pointer>();
  if (!target) return std::nullopt;
  const std::pair<Pointer, Monoid> known[] = {{add, Monoid::add},
                                              {mul, Monoid::mul},
                                              {max, Monoid::max},
                                              {min, Monoid::min},
                                              {bitwise_and, Monoid::bit_and},
                                              {bitwise_or, Monoid::bit_or},
                                              {bitwise_xor, Monoid::bit_xor}};
  for (const auto& [candidate, monoid] : known) {
    if (*target == candidate) return monoid;
  }
  return std::nullopt;
}

Arrays adopt_dtypes(const std::string& op, const Arrays& operands, const Arrays& init_values) {
  if (operands.empty()) throw ValueError(concat(op, ": at least one operand is needed (argument 'operands')"));
  if (operands.size() != init_values.size()) {
    throw ValueError(concat(op, ": must have as many init_values as operands, got ", operands.size(), " operands and ",
                            init_values.size(), " init_values"));
  }
  Arrays adopted;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    DType dtype = operands[i].dtype();
    bool convert = init_values[i].weak_type() && init_values[i].dtype() != dtype;
    adopted.push_back(convert ? convert_element_type(init_values[i], dtype) : init_values[i]);
  }
  return adopted;
}

Program variadic_region(const std::string& op, const Computation& computation, const Arrays& init_values) {
  Types types;
  for (int side = 0; side < 2; ++side) {
    for (const Array& value : init_values) types.push_back(scalar_type(value.dtype()));
  }
  auto n = static_cast<std::ptrdiff_t>(init_values.size());
  return stage_region(
      op,
      [&](std::span<const Array> xs) {
        return computation(Arrays(xs.begin(), xs.begin() + n), Arrays(xs.begin() + n, xs.end()));
      },
      types);
}

Computation widen(const BinaryFunction& computation) {
  return [&computation](const Arrays& x, const Arrays& y) { return Arrays{computation(x[0], y[0])}; };
}

}  // namespace capibara::jax::lax
