// name_reductions: turns a reduction whose region is one known operation, starting from its identity, into the named
// reduction.
#include <capibara/lax.h>

#include <cmath>

#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "program/ir/handles.h"

namespace capibara::passes {

namespace {

const Primitive& reduction_of(Monoid monoid) {
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.combines == Combines::axes && primitive->traits.monoid == monoid) return primitive;
  }
  throw InternalError("name_reductions: a monoid without a reduction");
}

}  // namespace

std::optional<Monoid> known_monoid(const Program& region) {
  const DType dtype = region.type(region.invars()[0]).dtype;
  if (is_bool(dtype) || is_complex(dtype)) return std::nullopt;
  return recognise_monoid(region);
}

namespace {

// Compares bits: sums that start from -0 preserve the sign of zeros, named reductions do not.
bool is_exact_identity(Monoid monoid, const Array& value) {
  return is_identity_element(monoid, value) &&
         (!is_floating(value.dtype()) || value.item<double>() != 0 || !std::signbit(value.item<double>()));
}

}  // namespace

bool starts_from_identity(const Program& program, const Equation& reduce, Monoid monoid) {
  const Atom initial = reduce.inputs[1];
  if (initial.is_literal()) return is_exact_identity(monoid, program.literal(initial));
  for (std::size_t i = 0; i < program.constvars().size(); ++i) {
    if (Atom(program.constvars()[i]) == initial) return is_exact_identity(monoid, program.constants()[i]);
  }
  return false;
}

std::optional<Monoid> named_reduction(const Program& program, const Equation& equation) {
  if (equation.primitive != prim::reduce() || equation.inputs.size() != 2) return std::nullopt;
  const std::optional<Monoid> monoid = known_monoid(equation.attrs.program("jaxpr"));
  return monoid && starts_from_identity(program, equation, *monoid) ? monoid : std::nullopt;
}

namespace {

// The attributes of the named reduction, made from those of `reduce`.
Attrs reduction_attrs(Monoid monoid, const Attrs& attrs) {
  const Ints& dimensions = attrs.ints("dimensions");
  if (monoid == Monoid::add) return {{"axes", dimensions}, {"out_sharding", Attr()}};
  return {{"axes", dimensions}};
}

Program named_program(const Program& program, NestedPass& nested) {
  if (!changes(program, nested,
               [&](const Equation& equation) { return named_reduction(program, equation).has_value(); }))
    return program;
  bool changed = false;
  Program::Body body = program.body();
  for (Equation& equation : body.equations) {
    if (std::optional<Monoid> monoid = named_reduction(program, equation)) {
      equation.attrs = reduction_attrs(*monoid, equation.attrs);
      equation.primitive = reduction_of(*monoid);
      equation.inputs.resize(1);
      changed = true;
      continue;
    }
    Attrs attrs = nested(equation.attrs);
    changed |= !same_object(attrs, equation.attrs);
    equation.attrs = std::move(attrs);
  }
  return changed ? Program(std::move(body)) : program;
}

}  // namespace

Arrays fold_from_identity(std::span<const Array> inputs, const Attrs& attrs) {
  const Program region = attrs.program("jaxpr");
  const Monoid monoid = known_monoid(region).value();
  const Array folded = capibara::bind(reduction_of(monoid), inputs.first(1), reduction_attrs(monoid, attrs))[0];
  return apply_region(region, Arrays{jax::lax::broadcast(inputs[1], folded.shape()), folded});
}

Program name_reductions(const Program& program) { return NestedPass(named_program)(program); }

}  // namespace capibara::passes
