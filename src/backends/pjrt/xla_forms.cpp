// Rewrites into forms that XLA's compilers handle, as composition rules.
#include "backends/pjrt/xla_forms.h"

#include <capibara/lax.h>

#include "compiler/optimise/passes.h"
#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "program/ir/handles.h"

namespace capibara::pjrt {

namespace {

namespace lax = jax::lax;

// Reduces from the identity of the monoid, then combines the initial value with the result.
Arrays start_last(std::span<const Array> inputs, const Attrs& attrs) {
  const Program region = attrs.program("jaxpr");
  const Array identity = identity_element(recognise_monoid(region).value(), inputs[0].dtype());
  const Array folded = capibara::bind(prim::reduce(), Arrays{inputs[0], identity}, attrs)[0];
  return apply_region(region, Arrays{lax::broadcast(inputs[1], folded.shape()), folded});
}

Arrays solve_in_float32(std::span<const Array> inputs, const Attrs& attrs) {
  const Arrays wide = {lax::convert_element_type(inputs[0], DType::float32),
                       lax::convert_element_type(inputs[1], DType::float32)};
  return {lax::convert_element_type(capibara::bind(prim::triangular_solve(), wide, attrs)[0], inputs[0].dtype())};
}

// The only window of a scalar contains just the scalar.
Arrays reduce_scalars(std::span<const Array> inputs, const Attrs& attrs) {
  const auto operands = inputs.first(inputs.size() / 2), starts = inputs.last(inputs.size() / 2);
  Arrays pairs(starts.begin(), starts.end());
  pairs.insert(pairs.end(), operands.begin(), operands.end());
  return apply_region(attrs.program("jaxpr"), pairs);
}

Arrays scatter_scalar(std::span<const Array> inputs, const Attrs& attrs) {
  return apply_region(attrs.program("scatter_jaxpr"), Arrays{inputs[2], inputs[1]});
}

LowerRule form_of_xla(const Program& program, const Equation& equation) {
  if (equation.primitive == prim::reduce() && equation.inputs.size() == 2) {
    const std::optional<Monoid> monoid = recognise_monoid(equation.attrs.program("jaxpr"));
    return monoid && !passes::starts_from_identity(program, equation, *monoid) ? start_last : LowerRule();
  }
  if (equation.primitive == prim::triangular_solve() && bits(program.type(equation.inputs[0]).dtype) == 16) {
    return solve_in_float32;
  }
  const bool scalar = !equation.inputs.empty() && program.type(equation.inputs[0]).rank() == 0;
  if (scalar && equation.primitive == prim::reduce_window()) return reduce_scalars;
  if (scalar && equation.primitive == prim::select_and_scatter()) return scatter_scalar;
  return {};
}

}  // namespace

Program in_forms_of_xla(const Program& program) {
  return passes::compose(
      program, [](const Program&, const Equation&) { return true; }, form_of_xla);
}

}  // namespace capibara::pjrt
