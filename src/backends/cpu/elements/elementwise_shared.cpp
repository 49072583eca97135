// Elementwise primitives as formulas of a function: emitted once, called wherever needed.
#include <algorithm>
#include <memory>

#include "backends/cpu/elements/element.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr std::size_t max_operands = 3;  // of Op::apply

bool can_share(const Primitive& primitive, std::span<const DType> in_types, DType out_type) {
  const Cost cost = primitive->traits.cost;
  if (cost != Cost::function && cost != Cost::series) return false;
  if (primitive == prim::integer_pow() || in_types.size() > max_operands || !is_floating(out_type)) return false;
  return std::all_of(in_types.begin(), in_types.end(),
                     [&](DType type) { return is_floating(type) && computed_type(type) == computed_type(out_type); });
}

// True if a sum that is the only reader of an operand would fuse with a product passed for it: such a formula would
// round differently when inlined.
bool takes_products(const For& loop) {
  return std::any_of(loop.carries.begin(), loop.carries.end(), [&](const Carry& operand) {
    int uses = 0;
    bool in_sum = false;
    for (const Statement& statement : loop.body) {
      const auto* compute = std::get_if<Compute>(&statement.what);
      if (!compute) continue;
      for (Value value : {compute->a, compute->b, compute->c}) {
        if (value != operand.inside) continue;
        ++uses;
        in_sum |= compute->op == Op::add || compute->op == Op::sub;
      }
    }
    return uses == 1 && in_sum;
  });
}

// nullopt if the primitive must be inlined.
std::optional<Formula> formula_of(const std::string& name, const Primitive& primitive, const Attrs& attrs,
                                  std::span<const DType> in_types, DType out_type) {
  auto body = std::make_shared<Function>();
  body->name = name;
  Builder builder(*body);
  const Value zero = builder.constant(computed_type(out_type), 0);
  const std::vector<Builder::Initial> operands(in_types.size(), {zero, Op::add, zero});
  bool is_number = true;
  builder.loop(1, {.lanes = true}, operands, [&](Value, std::span<const Value> carried) {
    std::vector<Element> inputs;
    for (Value value : carried) inputs.emplace_back(value);
    // Computed in the type of the registers: the caller rounds to the dtype.
    const DType computed = computed_type(out_type) == Scalar::f64 ? DType::float64 : DType::float32;
    const Element result = apply_elementwise(builder, primitive, attrs, in_types, computed, inputs);
    is_number = result.count == 1 && builder.type(result.parts[0]) == computed_type(out_type);
    std::vector<Value> next(carried.begin(), carried.end());
    next[0] = result.parts[0];
    return next;
  });
  Formula formula{std::move(body)};
  const For& loop = loop_of(formula);
  if (!is_number || takes_products(loop)) return std::nullopt;
  for (const Statement& statement : loop.body) {
    const auto* compute = std::get_if<Compute>(&statement.what);
    if (!compute || compute->result != loop.carries[0].next || compute->op != Op::mul) continue;
    formula.factor_a = compute->a;
    formula.factor_b = compute->b;
  }
  return formula;
}

}  // namespace

Element apply_shared(Builder& builder, const Primitive& primitive, const Attrs& attrs, std::span<const DType> in_types,
                     DType out_type, std::span<const Element> inputs) {
  const auto write_out = [&] { return apply_elementwise(builder, primitive, attrs, in_types, out_type, inputs); };
  if (!can_share(primitive, in_types, out_type)) return write_out();
  const std::string name = concat(primitive.name(), "_", dtype_name(in_types[0]));
  std::vector<Formula>& formulas = builder.function().formulas;
  auto it = std::find_if(formulas.begin(), formulas.end(),
                         [&](const Formula& formula) { return formula.body->name == name; });
  if (it == formulas.end()) {
    std::optional<Formula> made = formula_of(name, primitive, attrs, in_types, out_type);
    if (!made) return write_out();
    it = formulas.insert(formulas.end(), std::move(*made));
  }
  std::vector<Value> operands;
  for (const Element& input : inputs) operands.push_back(input.parts[0]);
  const Value result = builder.apply(static_cast<std::size_t>(it - formulas.begin()), operands);
  return rounded_element(builder, out_type, Element(result));
}

}  // namespace capibara::cpu
