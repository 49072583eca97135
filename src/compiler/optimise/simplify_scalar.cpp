// Rules that move scalars and reshapes through elementwise operations.
//
//   b = broadcast_in_dim[(4,)] 2.0; c = mul a b                  ->    c = mul a 2.0
//   b = reshape[(6,)] a; c = reshape[(6,)] d; e = mul b c        ->    b = mul a d; e = reshape[(6,)] b
#include "compiler/optimise/simplify.h"

#include <algorithm>

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;

bool may_be_scalar(Elementwise kind, std::size_t operand) {
  switch (kind) {
    case Elementwise::any_scalar:
      return true;
    case Elementwise::scalar_choice:
      return operand == 0;
    case Elementwise::scalar_bounds:
      return operand != 1;
    default:
      return false;
  }
}

// The scalar that was broadcast to this operand.
Result broadcast_scalar(Site& site, Atom atom) {
  const Equation* broadcast = site.simplifier.made_by(atom, prim::broadcast_in_dim());
  if (!broadcast || !is_plain(broadcast->attrs) || site.simplifier.type(broadcast->inputs[0]).rank() != 0)
    return std::nullopt;
  return broadcast->inputs[0];
}

Result take_scalars(Site& site) {
  std::vector<Atom> inputs(site.inputs.begin(), site.inputs.end());
  std::size_t arrays = 0, replaced = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (site.type(i).rank() == 0) continue;
    if (Result scalar = broadcast_scalar(site, inputs[i])) {
      inputs[i] = *scalar;
      ++replaced;
    } else {
      ++arrays;
    }
  }
  if (replaced == 0) return std::nullopt;
  if (arrays == 0) {
    // All elements are one number, which is computed once.
    Shape shape = site.output_type().shape;
    Atom value = site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
    return site.simplifier.add(prim::broadcast_in_dim(), {value}, broadcast_attrs(shape, {}), site.source);
  }
  bool changed = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == site.inputs[i]) continue;
    if (may_be_scalar(site.primitive->traits.elementwise, i)) {
      changed = true;
    } else {
      inputs[i] = site.inputs[i];
    }
  }
  if (!changed) return std::nullopt;
  Types types;
  for (Atom input : inputs) types.push_back(site.simplifier.type(input));
  // Operands of size 1 are broadcast to a larger one only if another operand has the full shape.
  if (site.primitive->type(types, site.attrs).types[0].shape != site.output_type().shape) return std::nullopt;
  return site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
}

// If all operands were reshaped from one shape, the operation is done in that shape: it fuses with their producers.
Result sink_reshape(Site& site) {
  Shape before, after;
  std::vector<Atom> inputs(site.inputs.begin(), site.inputs.end());
  bool joins = false, any = false;
  for (Atom& input : inputs) {
    const ArrayType& type = site.simplifier.type(input);
    if (type.rank() == 0) continue;
    const Equation* reshape = site.simplifier.made_by(input, prim::reshape());
    if (!reshape || !is_plain(reshape->attrs)) return std::nullopt;
    const ArrayType& source = site.simplifier.type(reshape->inputs[0]);
    if (source.rank() == 0 || (any && (source.shape != before || type.shape != after))) return std::nullopt;
    before = source.shape;
    after = type.shape;
    any = true;
    input = reshape->inputs[0];
    const Equation* maker = site.simplifier.maker(input);
    joins |= maker && maker->primitive->traits.elementwise != Elementwise::no;
  }
  if (!any || !joins) return std::nullopt;
  Atom value = site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
  return site.simplifier.add(prim::reshape(), {value}, reshape_attrs(after), site.source);
}

}  // namespace

void add_scalar_rules(Rules& rules) {
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.elementwise == Elementwise::no) continue;
    rules.add(primitive, take_scalars);
    rules.add(primitive, sink_reshape);
  }
}

}  // namespace capibara::passes
