// Forms that XLA's compilers take, as rules of composition.
#include "backends/pjrt/xla_forms.h"

#include <capibara/lax.h>

#include "optimise/passes.h"

namespace capibara::pjrt {

namespace {

namespace lax = jax::lax;

Arrays dot_of_one_type(std::span<const Array> inputs, const Attrs& attrs) {
  static const Primitive dot_general = primitive("dot_general");
  const DType dtype = dot_general->type(Types{inputs[0].type(), inputs[1].type()}, attrs).types[0].dtype;
  return capibara::bind(dot_general, Arrays{lax::convert_element_type(inputs[0], dtype), lax::convert_element_type(inputs[1], dtype)}, attrs);
}

Arrays solve_in_float32(std::span<const Array> inputs, const Attrs& attrs) {
  static const Primitive triangular_solve = primitive("triangular_solve");
  const Arrays wide = {lax::convert_element_type(inputs[0], DType::float32), lax::convert_element_type(inputs[1], DType::float32)};
  return {lax::convert_element_type(capibara::bind(triangular_solve, wide, attrs)[0], inputs[0].dtype())};
}

LowerRule form_of_xla(const Program& program, const Equation& equation) {
  static const Primitive reduce = primitive("reduce"), dot_general = primitive("dot_general"), triangular_solve = primitive("triangular_solve");
  const auto dtype = [&](std::size_t i) { return program.type(equation.inputs[i]).dtype; };
  if (equation.primitive == reduce && equation.inputs.size() == 2 && passes::known_monoid(equation.attrs.program("jaxpr"))) {
    return passes::fold_from_identity;
  }
  if (equation.primitive == dot_general && dtype(0) != dtype(1) && (dtype(0) == DType::float64 || dtype(1) == DType::float64)) return dot_of_one_type;
  if (equation.primitive == triangular_solve && (dtype(0) == DType::float16 || dtype(0) == DType::bfloat16)) return solve_in_float32;
  return {};
}

}  // namespace

Program in_forms_of_xla(const Program& program) {
  return passes::compose(program, [](const Program&, const Equation&) { return true; }, form_of_xla);
}

}  // namespace capibara::pjrt
