// Chooses what is composed; turns reductions and scatters by a region into scans.
#include "backends/cpu/rewrites/compose_regions.h"

#include <capibara/control.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "backends/cpu/kernels/kernels.h"
#include "compiler/optimise/passes.h"
#include "lax/reduce/reduction_rules.h"
#include "lax/shape/shape.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"

namespace capibara::cpu {

namespace lax = jax::lax;

namespace {

// True if data decides which equations run.
bool holds_branches(const Program& program) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::while_() || equation.primitive == prim::cond()) return true;
    if (any_program(equation.attrs, holds_branches)) return true;
  }
  return false;
}

}  // namespace

LowerRule region_rule(const Program& program, const Equation& equation) {
  return has_own_kernel(program, equation) ? LowerRule() : region_rule_without_kernels(program, equation);
}

LowerRule region_rule_without_kernels(const Program& program, const Equation& equation) {
  const Primitive& primitive = equation.primitive;
  static const std::unordered_map<const PrimitiveRecord*, LowerRule> rules = {
      {&prim::reduce().record(), regions::reduce},
      {&prim::reduce_window().record(), regions::reduce_window},
      {&prim::reduce_window_max().record(), regions::named_window(Monoid::max)},
      {&prim::reduce_window_min().record(), regions::named_window(Monoid::min)},
      {&prim::reduce_window_sum().record(), regions::named_window(Monoid::add)},
      {&prim::scatter().record(), regions::scatter},
      {&prim::select_and_scatter().record(), regions::select_and_scatter},
      {&prim::sort_general().record(), regions::sort},
  };
  const auto rule = rules.find(&primitive.record());
  if (rule == rules.end()) return {};
  if (primitive == prim::reduce() && passes::named_reduction(program, equation)) return {};
  if (primitive == prim::scatter() && equation.attrs["update_jaxpr"].is_none()) return {};
  return rule->second;
}

namespace regions {

Arrays apply_each(const Program& region, const Arrays& inputs) {
  if (inputs[0].ndim() == 0 || !holds_branches(region)) return apply_region(region, inputs);
  const bool single = inputs[0].size() == 1;
  Arrays flat;
  for (const Array& input : inputs) flat.push_back(lax::reshape(input, single ? Shape{} : Shape{input.size()}));
  const auto one = [&](std::span<const Array> scalars) { return apply_region(region, scalars); };
  Arrays outputs = single ? one(flat) : lax::detail::scan_flat(one, {}, flat, std::nullopt, false, 1);
  for (Array& output : outputs) output = lax::reshape(output, inputs[0].shape());
  return outputs;
}

// The reduced dimensions are moved to the front, in row-major order, and folded row by row.
Arrays reduce(std::span<const Array> inputs, const Attrs& attrs) {
  const std::size_t count = inputs.size() / 2;
  const Program region = attrs.program("jaxpr");
  if (passes::known_monoid(region)) return passes::fold_from_identity(inputs, attrs);
  Ints dimensions = attrs.ints("dimensions");
  std::sort(dimensions.begin(), dimensions.end());
  Ints order = dimensions;
  Shape shape = {1};
  for (int64_t d : order) shape[0] *= inputs[0].shape(d);
  for (int64_t d = 0; d < inputs[0].ndim(); ++d) {
    if (std::binary_search(dimensions.begin(), dimensions.end(), d)) continue;
    order.push_back(d);
    shape.push_back(inputs[0].shape(d));
  }
  const Shape kept(shape.begin() + 1, shape.end());
  Arrays rows, totals;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(lax::reshape(lax::transpose(inputs[i], order), shape));
    totals.push_back(lax::broadcast(inputs[count + i], kept));
  }
  if (element_count(shape) == 0) return totals;
  const auto step = [&](std::span<const Array> both) { return apply_each(region, Arrays(both.begin(), both.end())); };
  return lax::detail::scan_flat(step, totals, rows, std::nullopt, false, 1);
}

// One update at a time, index vector by index vector, so that updates of the same element fold in order. Their targets
// are what the scatter's own gather reads from an array of positions.
Arrays scatter(std::span<const Array> inputs, const Attrs& attrs) {
  const std::size_t count = inputs.size() / 2;
  const Array &operand = inputs[0], &updates = inputs[count + 1];
  const Program region = attrs.program("update_jaxpr");
  if (updates.size() == 0 || operand.size() == 0)
    return Arrays(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count));
  const auto& dims = attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  const DType index = operand.size() > std::numeric_limits<int32_t>::max() ? DType::int64 : DType::int32;
  Array places = lax::reshape(lax::iota(index, operand.size()), operand.shape());
  const bool clip = mode_of(attrs) == lax::GatherScatterMode::clip;
  places = lax::gather(places, inputs[count], inverse_of(dims), window_sizes(dims, operand.ndim(), updates.shape()),
                       {.mode = clip ? lax::GatherScatterMode::clip : lax::GatherScatterMode::fill_or_drop,
                        .fill_value = exact_scalar(index, -1)});
  Ints order;
  const Ints& inner = dims.update_window_dims;
  for (int64_t d = 0; d < updates.ndim(); ++d) {
    if (std::find(inner.begin(), inner.end(), d) == inner.end()) order.push_back(d);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  const auto in_order = [&](const Array& x) { return lax::reshape(lax::transpose(x, order), {x.size()}); };
  Arrays carry, sequence = {in_order(places)};
  for (std::size_t i = 0; i < count; ++i) {
    carry.push_back(lax::reshape(inputs[i], {operand.size()}));
    sequence.push_back(in_order(inputs[count + 1 + i]));
  }
  const auto step = [&](std::span<const Array> both) {
    const Array& place = both[count];
    const Array is_inside = lax::ge(place, exact_scalar(index, 0));
    Arrays arguments;  // of one element each, which is written back to where it was read
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(lax::dynamic_slice_in_dim(both[i], place, 1, 0, false));
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(lax::reshape(both[count + 1 + i], {1}));
    Arrays results = apply_each(region, arguments);
    for (std::size_t i = 0; i < count; ++i) {
      const Array kept = lax::select(is_inside, results[i], arguments[i]);
      results[i] = lax::dynamic_update_slice_in_dim(both[i], kept, place, 0, false);
    }
    return results;
  };
  Arrays results = lax::detail::scan_flat(step, carry, sequence, std::nullopt, false, 1);
  for (Array& result : results) result = lax::reshape(result, operand.shape());
  return results;
}

}  // namespace regions

}  // namespace capibara::cpu
