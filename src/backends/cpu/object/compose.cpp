// Chooses the operations to compose for an object; convolutions become one matmul per window element.
#include "backends/cpu/object/compose.h"

#include <capibara/config.h>
#include <capibara/control.h>

#include <numeric>
#include <set>
#include <unordered_map>

#include "backends/cpu/execution/options.h"
#include "backends/cpu/groups/work.h"
#include "backends/cpu/regions/registers.h"
#include "backends/cpu/rewrites/compose_regions.h"
#include "backends/cpu/rewrites/unroll.h"
#include "backends/cpu/rewrites/weighted_sum.h"
#include "backends/cpu/routines/routine.h"
#include "compiler/optimise/pipeline.h"
#include "lax/linalg/lapack_calls.h"
#include "lax/shape/shape.h"
#include "lax/sort/sort.h"
#include "program/ir/handles.h"
#include "program/ir/wide_types.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu {

namespace lax = jax::lax;

namespace {

// True if the equation has a function in loop form.
bool has_routine(const Program& program, const Equation& equation) {
  if (!equation.effects.empty()) return false;
  Types inputs;
  for (Atom input : equation.inputs) inputs.push_back(program.type(input));
  if (equation.primitive == prim::gather())  // out-of-bounds indices: masked by its lower rule
    return lax::GatherScatterMode::fill_or_drop != mode_of(equation.attrs);
  const Types outputs = equation.primitive->type(inputs, equation.attrs).types;
  return write_routine(equation.primitive, inputs, outputs, equation.attrs, false).has_value();
}

bool needs_no_kernel(const Program& program, const Equation& equation) {
  if (equation.primitive->traits.moves == Moves::several) return false;
  return work_of(program, equation) != Work::host || fits_registers(program, equation) ||
         has_routine(program, equation);
}

// True for LAPACK calls whose primitive has a routine. Others stay calls, which the object then rejects.
bool calls_known_routine(const Equation& equation) {
  static const std::set<std::string> known = {"geqrf", "gesdd", "gesvd", "getrf", "heevd", "orgqr", "syevd", "ungqr"};
  return equation.primitive == prim::custom_call() &&
         known.count(lapack_routine(equation.attrs.text("call_target_name"))) != 0;
}

LowerRule object_rule(const Program& program, const Equation& equation) {
  if (LowerRule unrolled = unroll_rule(program, equation)) return unrolled;
  if (LowerRule sum = weighted_sum_rule(program, equation)) return sum;
  if (needs_no_kernel(program, equation)) return {};
  if (calls_known_routine(equation)) {
    return [](std::span<const Array> inputs, const Attrs& attrs) { return compose_custom_call(inputs, attrs); };
  }
  static const std::unordered_map<const PrimitiveRecord*, LowerRule> rules = {
      {&primitive("conv_general_dilated").record(), objects::convolution},
      {&primitive("sort_general").record(), objects::sort_general},
      {&primitive("top_k").record(), objects::top_k},
  };
  if (const auto rule = rules.find(&equation.primitive.record()); rule != rules.end()) return rule->second;
  return region_rule_without_kernels(program, equation);
}

}  // namespace

Program optimised_for_object(const Program& program) {
  const ConfigScope scope(config_for(program));  // compositions take their types from the program's
  OptimiseOptions options = chosen_options(compiler_options());
  options.keep = needs_no_kernel;
  options.own_rule = object_rule;
  return optimise(program, options);
}

namespace objects {

// For comparators with branches, which have no routine: a sorting network of exchanges.
Arrays sort_general(std::span<const Array> inputs, const Attrs& attrs) {
  return regions::sort_by_exchanges(attrs.program("comparator"), inputs, attrs.integer("dimension"));
}

// Sorts in ascending order from the end, so that the first of equal elements comes first after reversing.
Arrays top_k(std::span<const Array> inputs, const Attrs& attrs) {
  const Array& x = inputs[0];
  const int64_t last = x.ndim() - 1, k = attrs.integer("k");
  if (attrs.integer("axis") != last) return {};  // its lower rule moves it there
  const Array index = lax::broadcasted_iota(DType::int32, x.shape(), last);
  Arrays both = {lax::rev(x, {last}), lax::rev(index, {last})};
  static const Primitive sort = primitive("sort");
  both = capibara::bind(sort, both, {{"dimension", last}, {"is_stable", true}, {"num_keys", int64_t{1}}});
  for (Array& each : both) each = lax::slice_in_dim(lax::rev(each, {last}), 0, k, 1, last);
  return both;
}

// One window element after another: adds the part of the input it meets, times the kernel there.
Arrays convolution(std::span<const Array> inputs, const Attrs& attrs) {
  const auto& numbers = attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints &strides = attrs.ints("window_strides"), &dilation = attrs.ints("rhs_dilation"),
             &in_dilation = attrs.ints("lhs_dilation");
  const lax::Padding padding = padding_of(attrs["padding"]);
  const int64_t features = attrs.integer("feature_group_count"), batches = attrs.integer("batch_group_count");
  const int64_t groups = std::max(features, batches);
  const std::size_t space = strides.size();
  const DType dtype =
      attrs["preferred_element_type"].is_none() ? inputs[0].dtype() : attrs.dtype("preferred_element_type");

  // Input [batch, space..., in], kernel [window element, in, groups, out], both without padding and dilation.
  const auto channels_last = [](const Ints& spec, std::size_t leading) {
    Ints order;
    if (leading == 0) order.push_back(spec[0]);
    order.insert(order.end(), spec.begin() + 2, spec.end());
    return order;
  };
  Ints order = channels_last(numbers.lhs_spec, 0);
  order.push_back(numbers.lhs_spec[1]);
  Array x = lax::transpose(inputs[0], order);
  std::vector<lax::PadDim> pads = {{0, 0, 0}};
  for (std::size_t d = 0; d < space; ++d) pads.push_back({padding[d].first, padding[d].second, in_dilation[d] - 1});
  pads.push_back({0, 0, 0});
  x = lax::pad(x, scalar_of(x.dtype(), 0), pads);
  order = channels_last(numbers.rhs_spec, 1);
  order.insert(order.end(), {numbers.rhs_spec[1], numbers.rhs_spec[0]});
  Array kernel = lax::transpose(inputs[1], order);
  Ints window(kernel.shape().begin(), kernel.shape().end() - 2);
  const int64_t in = kernel.shape(-2), out = kernel.shape(-1) / groups, places = element_count(window);
  kernel = lax::reshape(kernel, {places, in, groups, out});

  Shape positions;  // spatial output shape
  Ints sizes = {x.shape(0)}, steps = {1};
  for (std::size_t d = 0; d < space; ++d) {
    const int64_t count =
        window_count(x.shape(static_cast<int64_t>(d) + 1), capibara::dilated(window[d], dilation[d]), strides[d]);
    positions.push_back(count);
    sizes.push_back(std::max<int64_t>(0, (count - 1) * strides[d] + 1));
    steps.push_back(strides[d]);
  }
  sizes.push_back(x.shape(-1));
  steps.push_back(1);
  const int64_t batch = x.shape(0), rows = element_count(positions);

  // The input that one window element meets: [groups, batch * positions, in].
  const auto met = [&](const Array& whole) {
    const Array strided = lax::slice(whole, Ints(sizes.size(), 0), sizes, steps);
    if (batches > 1) return lax::reshape(strided, {batches, batch / batches * rows, in});
    return lax::transpose(lax::reshape(strided, {batch * rows, groups, in}), {1, 0, 2});
  };
  const auto product = [&](const Array& patch, const Array& weights) {  // weights: [in, groups, out]
    return lax::dot_general(patch, weights, {{2}, {0}, {0}, {1}}, {.preferred_element_type = dtype});
  };
  const int64_t own_batch = batch / batches;
  const Array zero = lax::full({groups, own_batch * rows, out}, scalar_of(dtype, 0));
  Array sums = zero;
  if (places == 1 && zero.size() > 0) {
    sums = product(met(x), lax::reshape(kernel, {in, groups, out}));
  } else if (zero.size() > 0) {
    Arrays columns;
    for (std::size_t d = 0; d < space; ++d) {
      const Array along = lax::broadcasted_iota(DType::int32, window, static_cast<int64_t>(d));
      columns.push_back(lax::reshape(lax::mul(along, exact_scalar(DType::int32, dilation[d])), {places}));
    }
    const auto step = [&](std::span<const Array> both) {
      Arrays starts = {exact_scalar(DType::int32, 0)};
      starts.insert(starts.end(), both.begin() + 2, both.end());
      starts.push_back(exact_scalar(DType::int32, 0));
      const Array patch = met(lax::dynamic_slice(x, starts, sizes, false));
      return Arrays{lax::add(both[0], product(patch, both[1]))};
    };
    Arrays sequence = {kernel};
    sequence.insert(sequence.end(), columns.begin(), columns.end());
    sums = lax::detail::scan_flat(step, {zero}, sequence, std::nullopt, false, 1)[0];
  }

  // [groups, batch * positions, out] as [batch, features, positions...], then in the caller's layout.
  Shape shape = {groups, own_batch};
  shape.insert(shape.end(), positions.begin(), positions.end());
  shape.push_back(out);
  Array result = lax::reshape(sums, shape);
  Ints back = {1, 0, static_cast<int64_t>(shape.size()) - 1};
  for (std::size_t d = 0; d < space; ++d) back.push_back(static_cast<int64_t>(d) + 2);
  Shape natural = {own_batch, groups * out};
  natural.insert(natural.end(), positions.begin(), positions.end());
  result = lax::reshape(lax::transpose(result, back), natural);
  Ints out_order(numbers.out_spec.size());
  for (std::size_t i = 0; i < out_order.size(); ++i)
    out_order[static_cast<std::size_t>(numbers.out_spec[i])] = static_cast<int64_t>(i);
  return {lax::transpose(result, out_order)};
}

}  // namespace objects

}  // namespace capibara::cpu
