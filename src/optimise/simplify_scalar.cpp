// Rules that move scalars and reshapes through elementwise operations.
//
//   b = broadcast_in_dim[(4,)] 2.0; c = mul a b                  ->    c = mul a 2.0
//   b = reshape[(6,)] a; c = reshape[(6,)] d; e = mul b c        ->    b = mul a d; e = reshape[(6,)] b
#include "optimise/simplify.h"

#include <algorithm>
#include <unordered_map>

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;

// Which operands may have rank 0 beside others that do not: all, none, or the first (select_n), or all but the middle.
enum class Scalars { all, none, first, bounds };

const std::unordered_map<std::string_view, Scalars>& elementwise_table() {
  static const std::unordered_map<std::string_view, Scalars> table = [] {
    std::unordered_map<std::string_view, Scalars> all = {{"select_n", Scalars::first}, {"clamp", Scalars::bounds},
                                                         {"add_any", Scalars::none}};
    for (const char* name :
         {"add", "sub", "mul", "div", "rem", "pow", "max", "min", "nextafter", "atan2", "eq", "ne", "ge", "gt", "le", "lt",
          "and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"}) {
      all.emplace(name, Scalars::all);
    }
    for (const char* name :
         {"neg", "sign", "floor", "ceil", "round", "abs", "integer_pow", "square", "sqrt", "rsqrt", "cbrt", "exp", "exp2",
          "log", "expm1", "log1p", "tanh", "logistic", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
          "acosh", "atanh", "is_finite", "not", "population_count", "clz", "convert_element_type", "reduce_precision",
          "real", "imag", "complex", "conj", "erf", "erfc", "erf_inv", "lgamma", "digamma"}) {
      all.emplace(name, Scalars::none);
    }
    return all;
  }();
  return table;
}

bool may_be_scalar(Scalars scalars, std::size_t operand) {
  switch (scalars) {
    case Scalars::all: return true;
    case Scalars::none: return false;
    case Scalars::first: return operand == 0;
    case Scalars::bounds: return operand != 1;
  }
  return false;
}

// The rank-0 value that was broadcast to this operand.
Result broadcast_scalar(Site& site, Atom atom) {
  const Equation* broadcast = site.simplifier.made_by(atom, "broadcast_in_dim");
  if (!broadcast || !is_plain(broadcast->attrs) || site.simplifier.type(broadcast->inputs[0]).rank() != 0) return std::nullopt;
  return broadcast->inputs[0];
}

Result take_scalars(Site& site) {
  Scalars scalars = elementwise_table().at(site.primitive.name());
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
    // All of it is one number, computed once.
    Shape shape = site.output_type().shape;
    Atom value = site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
    return site.simplifier.add("broadcast_in_dim", {value}, broadcast_attrs(shape, {}), site.source);
  }
  bool changed = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == site.inputs[i]) continue;
    if (may_be_scalar(scalars, i)) {
      changed = true;
    } else {
      inputs[i] = site.inputs[i];
    }
  }
  if (!changed) return std::nullopt;
  Types types;
  for (Atom input : inputs) types.push_back(site.simplifier.type(input));
  // Operands of size 1 spread over a larger one only where another operand has the full shape.
  if (site.primitive->type(types, site.attrs).types[0].shape != site.output_type().shape) return std::nullopt;
  return site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
}

// Where all operands were reshaped from one shape, the operation is done at that shape: it joins what made them.
Result sink_reshape(Site& site) {
  Shape before, after;
  std::vector<Atom> inputs(site.inputs.begin(), site.inputs.end());
  bool joins = false, any = false;
  for (Atom& input : inputs) {
    const ArrayType& type = site.simplifier.type(input);
    if (type.rank() == 0) continue;
    const Equation* reshape = site.simplifier.made_by(input, "reshape");
    if (!reshape || !is_plain(reshape->attrs)) return std::nullopt;
    const ArrayType& source = site.simplifier.type(reshape->inputs[0]);
    if (source.rank() == 0 || (any && (source.shape != before || type.shape != after))) return std::nullopt;
    before = source.shape;
    after = type.shape;
    any = true;
    input = reshape->inputs[0];
    const Equation* maker = site.simplifier.maker(input);
    joins |= maker && is_elementwise(maker->primitive);
  }
  if (!any || !joins) return std::nullopt;
  Atom value = site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
  return site.simplifier.add("reshape", {value}, reshape_attrs(after), site.source);
}

}  // namespace

bool is_elementwise(const Primitive& primitive) { return elementwise_table().count(primitive.name()) != 0; }

void add_scalar_rules(Rules& rules) {
  for (const auto& [name, scalars] : elementwise_table()) {
    rules[name].push_back(take_scalars);
    rules[name].push_back(sink_reshape);
  }
}

}  // namespace capibara::passes
