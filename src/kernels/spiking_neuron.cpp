// Leaky integrate-and-fire neurons and their reverse derivative: their meaning as scans over time, records, function.
//
// The reverse derivative saves nothing of the forward pass: it runs the neurons again, which costs less than writing
// their potentials and reading them back.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/kernels/spiking.h>
#include <capibara/lax.h>

#include <numbers>

#include "kernels/composed.h"
#include "lax/families.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

DType state_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// ---- surrogates -------------------------------------------------------------------------------------------------

struct Surrogate {
  const char* name;
  double slope;  // default
};
constexpr Surrogate surrogates[] = {{"atan", 2},     {"sigmoid", 25},  {"fast_sigmoid", 25},
                                    {"triangle", 1}, {"rectangle", 1}, {"straight_through", 1}};

// The derivative of a spike at d = u - threshold.
Array surrogate_slope(const std::string& surrogate, double slope, const Array& d) {
  const auto number = [&](double value) { return lax::full_like(d, Array(value)); };
  const Array one = number(1);
  if (surrogate == "straight_through") return one;
  const Array scaled = d * number(slope);
  if (surrogate == "atan") {
    const Array angle = d * number(std::numbers::pi / 2 * slope);
    return number(slope / 2) / (one + angle * angle);
  }
  if (surrogate == "sigmoid") {
    const Array s = lax::logistic(scaled);
    return number(slope) * s * (one - s);
  }
  const Array size = lax::abs(scaled);
  if (surrogate == "fast_sigmoid") return lax::integer_pow(one + size, -2);
  if (surrogate == "triangle") return lax::max(number(0), one - size);
  return lax::select(lax::lt(size, number(0.5)), number(slope), number(0));
}

// ---- the composition --------------------------------------------------------------------------------------------

// The options, read from the attributes of an equation.
struct Neuron {
  double threshold, leak_rate, reset_value, slope;
  std::string reset, surrogate;
  bool detach_reset;

  explicit Neuron(const Attrs& attrs)
      : threshold(attrs.real("threshold")),
        leak_rate(attrs.real("leak_rate")),
        reset_value(attrs.real("reset_value")),
        slope(attrs.real("slope")),
        reset(attrs.text("reset")),
        surrogate(attrs.text("surrogate")),
        detach_reset(attrs.boolean("detach_reset")) {}

  // The potential before the reset by a spike.
  Array charged(const Array& potential, const Array& input) const {
    const Array rest = scalar_of(potential.dtype(), reset_value), rate = scalar_of(potential.dtype(), leak_rate);
    const Array leak = (potential - rest) * rate;
    return potential - leak + input.astype(potential.dtype());
  }

  Array distance(const Array& charge) const { return charge - scalar_of(charge.dtype(), threshold); }

  // 1 where the charge reaches the threshold, with the surrogate's derivative.
  Array spike(const Array& charge) const {
    auto step = jax::custom_jvp(
        [](Array d) { return lax::convert_element_type(lax::ge(d, lax::zeros_like(d)), d.dtype()); }, "spike");
    step.defjvps([surrogate = surrogate, slope = slope](const Array& tangent, const Array&, const Array& d) {
      return tangent * surrogate_slope(surrogate, slope, d);
    });
    return step(distance(charge));
  }

  Array after_reset(const Array& charge, const Array& spike) const {
    if (reset == "none") return charge;
    const Array kept = detach_reset ? lax::stop_gradient(spike) : spike;
    if (reset == "soft") return charge - scalar_of(charge.dtype(), threshold) * kept;
    const Array below = scalar_of(charge.dtype(), 1) - kept;
    return charge * below + scalar_of(charge.dtype(), reset_value) * kept;
  }
};

// (inputs [steps, neurons...], potential [neurons...]) -> (spikes [steps, neurons...], potential [neurons...])
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const Neuron neuron(attrs);
  const DType dtype = in[0].dtype();
  auto step = [&](const Array& potential, const Array& input) {
    const Array charge = neuron.charged(potential, input), spike = neuron.spike(charge);
    return std::pair(neuron.after_reset(charge, spike), spike.astype(dtype));
  };
  const auto [potential, spikes] = lax::scan(step, in[1], in[0]);
  return {spikes, potential};
}

// (cotangent of spikes, cotangent of the last potential, inputs, potential) -> (cotangent of inputs, of potential)
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  const Neuron neuron(attrs);
  const DType dtype = in[2].dtype(), state = in[3].dtype();
  auto forward = [&](const Array& potential, const Array& input) {
    const Array charge = neuron.charged(potential, input);
    return std::pair(neuron.after_reset(charge, neuron.spike(charge)), charge);
  };
  const Array charges = lax::scan(forward, in[3], in[2]).second;
  const Array kept = scalar_of(state, 1 - neuron.leak_rate);
  auto backward = [&](const Array& cotangent, const std::pair<Array, Array>& at) {
    const auto& [charge, from_spike] = at;
    const Array slope = surrogate_slope(neuron.surrogate, neuron.slope, neuron.distance(charge));
    Array through = cotangent;
    if (neuron.reset == "hard") through = cotangent * (scalar_of(state, 1) - neuron.spike(charge));
    Array of_spike = from_spike.astype(state);
    if (neuron.reset != "none" && !neuron.detach_reset) {
      const Array jump =
          neuron.reset == "soft" ? scalar_of(state, -neuron.threshold) : scalar_of(state, neuron.reset_value) - charge;
      of_spike = of_spike + cotangent * jump;
    }
    const Array total = through + of_spike * slope;
    return std::pair(total * kept, total.astype(dtype));
  };
  const auto [potential, inputs] = lax::scan(backward, in[1], std::pair(charges, in[0]), {.reverse = true});
  return {inputs, potential};
}

// ---- types ------------------------------------------------------------------------------------------------------

ArrayType potential_type(const ArrayType& inputs) {
  ArrayType type = inputs.with_dtype(state_dtype(inputs.dtype)).strong();
  type.shape.erase(type.shape.begin());
  return type;
}

void require_steps(const char* op, const ArrayType& inputs) {
  if (inputs.rank() > 0 && is_floating(inputs.dtype)) return;
  throw TypeError(concat(op, ": expected a floating array [steps, ...] (argument 'inputs'), got ", to_string(inputs)));
}

void require_same(const char* op, const char* argument, const ArrayType& given, const ArrayType& expected) {
  if (given.shape == expected.shape && given.dtype == expected.dtype) return;
  throw TypeError(
      concat(op, ": expected ", to_string(expected), " (argument '", argument, "'), got ", to_string(given)));
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("spiking_neuron", types, 2);
  require_steps("spiking_neuron", types[0]);
  const ArrayType potential = potential_type(types[0]);
  require_same("spiking_neuron", "initial_potential", types[1], potential);
  return Types{types[0].strong(), potential};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("spiking_neuron_grad", types, 4);
  require_steps("spiking_neuron_grad", types[2]);
  const ArrayType potential = potential_type(types[2]);
  require_same("spiking_neuron_grad", "spikes", types[0], types[2].strong());
  require_same("spiking_neuron_grad", "potential", types[1], potential);
  require_same("spiking_neuron_grad", "initial_potential", types[3], potential);
  return Types{types[2].strong(), potential};
}

// ---- records ----------------------------------------------------------------------------------------------------

const Primitive& grad_primitive() {
  static const Primitive& handle = *new Primitive(primitive("spiking_neuron_grad"));
  return handle;
}

// A batch is more neurons: the mapped axis follows the steps, and comes first in potentials.
BatchResult batch_neurons(const BatchArgs& args) {
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const bool steps = args.inputs.size() == 2 ? i == 0 : i % 2 == 0;
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis, steps ? 1 : 0));
  }
  return {capibara::bind(args.primitive, inputs, args.attrs), {1, 0}};
}

Arrays pull_back(const PullbackArgs& args) {
  const Types types = {args.operands[0].type().strong(), potential_type(args.operands[0].type())};
  const Array spikes = instantiate(args.cotangents[0], types[0]), potential = instantiate(args.cotangents[1], types[1]);
  return capibara::bind(grad_primitive(), Arrays{spikes, potential, args.operands[0], args.operands[1]}, args.attrs);
}

// None for float64: there the property tests compare derivatives with differences, which see steps, not surrogates.
std::vector<Attrs> sample_attrs(DType dtype) {
  if (dtype == DType::float64) return {};
  auto attrs = [](const char* reset, const char* surrogate, double slope, bool detach) {
    return Attrs{{"threshold", 0.75},      {"leak_rate", 0.25}, {"reset", reset},        {"reset_value", -0.125},
                 {"surrogate", surrogate}, {"slope", slope},    {"detach_reset", detach}};
  };
  return {attrs("hard", "atan", 2, false), attrs("soft", "sigmoid", 3, false), attrs("none", "triangle", 0.5, true)};
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "spiking_neuron", "Leaky integrate-and-fire neurons over time; returns spikes and the last potentials.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = batch_neurons;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 8.0 * static_cast<double>(types[0].size());
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Attrs& attrs : sample_attrs(dtype)) {
      const ArrayType inputs = scalar_of(dtype, 0).type().with_shape({6, 5});
      samples.push_back({{inputs, potential_type(inputs)}, attrs});
    }
    return samples;
  };
  return composed(std::move(record), {pull_back, {false, false}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record = fused_record(
      "spiking_neuron_grad", "Pulls cotangents back through spiking_neuron, whose potentials it computes again.");
  record.type = grad_type;
  record.lower = compose_grad;
  record.batch = batch_neurons;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 24.0 * static_cast<double>(types[2].size());
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Attrs& attrs : sample_attrs(dtype)) {
      const ArrayType inputs = scalar_of(dtype, 0).type().with_shape({6, 5}), potential = potential_type(inputs);
      samples.push_back({{inputs, potential, inputs, potential}, attrs});
    }
    return samples;
  };
  return composed(std::move(record));
}

// ---- arguments --------------------------------------------------------------------------------------------------

double default_slope(const std::string& surrogate) {
  for (const Surrogate& one : surrogates) {
    if (surrogate == one.name) return one.slope;
  }
  throw ValueError(concat("spiking_neuron: expected 'atan', 'sigmoid', 'fast_sigmoid', 'triangle', 'rectangle' or ",
                          "'straight_through' (argument 'surrogate'), got '", surrogate, "'"));
}

Attrs checked_attrs(const SpikingOptions& options) {
  if (options.reset != "hard" && options.reset != "soft" && options.reset != "none")
    throw ValueError(
        concat("spiking_neuron: expected 'hard', 'soft' or 'none' (argument 'reset'), got '", options.reset, "'"));
  if (!(options.leak_rate >= 0 && options.leak_rate <= 1))
    throw ValueError(
        concat("spiking_neuron: expected a number from 0 to 1 (argument 'leak_rate'), got ", options.leak_rate));
  const double slope = options.slope.value_or(default_slope(options.surrogate));
  if (!(slope > 0))
    throw ValueError(concat("spiking_neuron: expected a number above 0 (argument 'slope'), got ", slope));
  return {{"threshold", options.threshold},      {"leak_rate", options.leak_rate}, {"reset", options.reset},
          {"reset_value", options.reset_value},  {"surrogate", options.surrogate}, {"slope", slope},
          {"detach_reset", options.detach_reset}};
}

}  // namespace

Family spiking_neuron_records() { return {forward_record(), grad_record()}; }

SpikingResult spiking_neuron(const Array& inputs, const SpikingOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("spiking_neuron"));
  const Attrs attrs = checked_attrs(options);
  require_steps("spiking_neuron", inputs.type());
  const int64_t axis = checked_axis("spiking_neuron", options.axis, inputs.type());
  const Array steps = move_axis(inputs, axis, 0);
  const ArrayType type = potential_type(steps.type());
  const Array potential = options.initial_potential ? options.initial_potential->astype(type.dtype)
                                                    : lax::full(type.shape, Array(options.reset_value), type.dtype);
  Arrays results = capibara::bind(handle, Arrays{steps, potential}, attrs);
  return {move_axis(results[0], 0, axis), results[1]};
}

}  // namespace capibara::kernels
