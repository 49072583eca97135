// One Adam step on many tensors as one operation: its meaning as a composition, its record, the function.
#include <capibara/kernels/dense.h>

#include "kernels/composed.h"
#include "kernels/rows.h"
#include "lax/control/control.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

// (parameters..., gradients..., means..., squares..., step, rate) -> (parameters..., means..., squares...)
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const std::size_t count = (in.size() - 2) / 4;
  const Array step = in[4 * count], rate = in[4 * count + 1];
  Arrays parameters, means, squares;
  for (std::size_t i = 0; i < count; ++i) {
    const DType wide = in[2 * count + i].dtype();
    const auto number = [&](double value) { return scalar_of(wide, value); };
    const double b1 = attrs.real("b1"), b2 = attrs.real("b2"), decay = attrs.real("weight_decay");
    const Array p = in[i].astype(wide), g = in[count + i].astype(wide), t = step.astype(wide), r = rate.astype(wide);
    const Array old_mean = number(b1) * in[2 * count + i], old_square = number(b2) * in[3 * count + i];
    const Array m = old_mean + number(1 - b1) * g, v = old_square + number(1 - b2) * g * g;
    const Array first = number(1) - lax::pow(number(b1), t), second = number(1) - lax::pow(number(b2), t);
    // All divisions but one are by scalars, since elementwise division is slow.
    const Array denominator = lax::sqrt(v * (number(1) / second)) + number(attrs.real("epsilon"));
    Array next = p - (r / first) * (m / denominator);
    if (decay != 0) next = next - r * number(decay) * p;
    parameters.push_back(next.astype(in[i].dtype()));
    means.push_back(m);
    squares.push_back(v);
  }
  append(parameters, means);
  append(parameters, squares);
  return parameters;
}

TypeResult type_rule(std::span<const ArrayType> types, const Attrs&) {
  if (types.size() < 6 || (types.size() - 2) % 4 != 0) {
    throw TypeError(
        concat("adam_update: expected as many gradients, means and squares as parameters, then step and "
               "learning_rate, got ",
               types.size(), " operands"));
  }
  const std::size_t count = (types.size() - 2) / 4;
  Types results;
  for (std::size_t i = 0; i < count; ++i) {
    const ArrayType& p = types[i];
    if (!is_floating(p.dtype))
      throw TypeError(concat("adam_update: expected floating arrays (argument 'parameters'), got ", to_string(p)));
    const ArrayType wide = p.strong().with_dtype(sum_dtype(p.dtype));
    if (types[count + i].shape != p.shape || !is_floating(types[count + i].dtype))
      throw TypeError(concat("adam_update: expected a floating array of shape ", to_string(p.strong()),
                             " (argument 'gradients', number ", i, "), got ", to_string(types[count + i])));
    require_type("adam_update", "means", types[2 * count + i], wide);
    require_type("adam_update", "squares", types[3 * count + i], wide);
    results.push_back(p.strong());
  }
  for (std::size_t k = 0; k < 2; ++k) {
    const ArrayType& scalar = types[4 * count + k];
    if (scalar.rank() != 0 || (!is_floating(scalar.dtype) && !is_integer(scalar.dtype)))
      throw TypeError(concat("adam_update: expected a real scalar (argument '", k == 0 ? "step" : "learning_rate",
                             "'), got ", to_string(scalar)));
    for (std::size_t i = 0; i < count; ++i) results.push_back(types[(2 + k) * count + i].strong());
  }
  return results;
}

PrimitiveRecord record_of() {
  PrimitiveRecord record =
      fused_record("adam_update", "One step of Adam on many tensors: new parameters, means and squares.");
  record.type = type_rule;
  record.lower = compose;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    double flops = 0;
    for (std::size_t i = 0; i < types.size() / 4; ++i) flops += count_flops(14, types[i]);
    return flops;
  };
  record.samples = [](DType dtype) {
    const Attrs attrs = {{"b1", 0.9}, {"b2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.01}};
    const auto of = [](DType element, Shape shape) {
      return scalar_of(element, 0).type().with_shape(std::move(shape));
    };
    const DType wide = sum_dtype(dtype);
    const ArrayType a = of(dtype, {3, 4}), b = of(dtype, {7}), c = of(wide, {3, 4}), d = of(wide, {7});
    Sample sample{{a, b, a, b, c, d, c, d, of(wide, {}), of(wide, {})}, attrs};
    sample.low = 0.5;  // squares and steps are positive
    return std::vector<Sample>{sample};
  };
  return composed(std::move(record));
}

}  // namespace

Family adam_update_records() { return {record_of()}; }

AdamState adam_update(const Arrays& parameters, const Arrays& gradients, const Arrays& means, const Arrays& squares,
                      const Array& step, const AdamOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("adam_update"));
  const std::size_t count = parameters.size();
  if (count == 0) return {};
  for (const auto& [name, list] :
       {std::pair("gradients", &gradients), std::pair("means", &means), std::pair("squares", &squares)}) {
    if (list->size() != count) {
      throw ValueError(concat("adam_update: expected ", count, " arrays as in parameters (argument '", name, "'), got ",
                              list->size()));
    }
  }
  Arrays operands = parameters;
  append(operands, gradients);
  append(operands, means);
  append(operands, squares);
  operands.push_back(step);
  operands.push_back(options.learning_rate);
  const Arrays out = capibara::bind(
      handle, operands,
      {{"b1", options.b1}, {"b2", options.b2}, {"epsilon", options.epsilon}, {"weight_decay", options.weight_decay}});
  const auto part = [&](std::size_t i) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(i * count);
    return Arrays(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  return {part(0), part(1), part(2)};
}

}  // namespace capibara::kernels
