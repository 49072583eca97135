// Activations as int8: the scale of what each matrix of codes multiplies, found by running batches.
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/training/weights.h>

#include <bit>
#include <cmath>
#include <optional>

#include "program/ir/build.h"
#include "program/ir/source.h"
#include "program/ir/views.h"
#include "program/trace/stage.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

constexpr const char* operation = "quantize_activations";
// Magnitudes are counted by the upper half of their float32: bins of 1/128 of their size.
constexpr int64_t bin_count = 1 << 15;
constexpr int bin_shift = 16;

// The names of matrices whose matmuls can take activations as int8: int8 codes with one scale for each output.
std::vector<std::string> int8_matrices(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, codes] : parameters) {
    if (!name.ends_with(".codes") || codes.dtype() != DType::int8) continue;
    const std::string stem = name.substr(0, name.size() - 6);
    const auto scale = parameters.find(stem + ".scale");
    if (scale == parameters.end() || scale->second.ndim() < 2 || scale->second.shape(-1) != 1) continue;
    names.push_back(stem);
  }
  if (!names.empty()) return names;
  throw ValueError(concat(operation, ": expected a model with int8 codes and a scale for each output (argument ",
                          "'model'), got none among ", parameters.size(),
                          " parameters; quantize_model(model, \"int8\") makes them"));
}

// ---- what the matrices multiply -----------------------------------------------------------------------------------

constexpr int no_matrix = -1;

// A value of a program; `matrix` says of which its codes are.
struct Tracked {
  Array array;
  int matrix = no_matrix;
};
struct Multiplied {
  int matrix;
  Array x;
};

// Evaluates a program under the current trace and lists what is multiplied by codes outside of loops.
std::vector<Tracked> evaluate(const Program& program, std::vector<Tracked> inputs, std::vector<Multiplied>& found) {
  static const Primitive& matmul = *new Primitive(primitive("quantized_matmul"));
  std::vector<Tracked> values(static_cast<std::size_t>(program.var_count()));
  const auto read = [&](Atom atom) {
    return atom.is_literal() ? Tracked{program.literal(atom)} : values[static_cast<std::size_t>(atom.code)];
  };
  for (std::size_t i = 0; i < program.constvars().size(); ++i)
    values[static_cast<std::size_t>(program.constvars()[i].id)].array = program.constants()[i];
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values[static_cast<std::size_t>(program.invars()[i].id)] = std::move(inputs[i]);
  for (const Equation& equation : program.equations()) {
    std::vector<Tracked> operands, results;
    bool tracked = false;
    for (Atom input : equation.inputs) {
      operands.push_back(read(input));
      tracked = tracked || operands.back().matrix != no_matrix;
    }
    SourceScope scope(equation.source);
    const Program* called = tracked ? called_program(equation) : nullptr;
    if (called) {
      results = evaluate(*called, operands, found);
    } else {
      Arrays arrays;
      for (const Tracked& operand : operands) arrays.push_back(operand.array);
      if (equation.primitive == matmul && operands[1].matrix != no_matrix && !equation.attrs.boolean("transposed"))
        found.push_back({operands[1].matrix, arrays[0]});
      for (Array& one : capibara::bind(equation.primitive, arrays, equation.attrs)) results.push_back({std::move(one)});
      // Codes remain those of their matrix where one of several is taken.
      const int of = operands.empty() ? no_matrix : operands[0].matrix;
      for (Tracked& one : results) one.matrix = one.array.dtype() == DType::int8 ? of : no_matrix;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!equation.outputs[i].dropped())
        values[static_cast<std::size_t>(equation.outputs[i].id)] = std::move(results[i]);
    }
  }
  std::vector<Tracked> outputs;
  for (Atom output : program.outputs()) outputs.push_back(read(output));
  return outputs;
}

// What a batch shows of the values that each matrix multiplies.
struct Observed {
  Array largest;  // float32 [matrices]: maximum magnitude; -1 if the program multiplies by the matrix nowhere
  Array counts;   // int32 [matrices, bins]; no bins unless requested
};

Array all_elements(const Array& x) {
  return lax::reshape(lax::abs(lax::convert_element_type(x, DType::float32)), {x.size()});
}

Observed observe(const ModelParts::Function& function, const std::vector<std::string>& matrices, bool counts,
                 const Parameters& parameters, const Arrays& batch) {
  std::vector<std::string> names;
  std::vector<ArrayType> types;
  std::vector<Tracked> leaves;
  for (const auto& [name, array] : parameters) {
    names.push_back(name);
    types.push_back(array.type());
    leaves.push_back({array});
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      if (name == matrices[i] + ".codes") leaves.back().matrix = static_cast<int>(i);
    }
  }
  const auto whole = [&](std::span<const Array> arrays) {
    Parameters all;
    for (std::size_t i = 0; i < names.size(); ++i) all[names[i]] = arrays[i];
    return Arrays{function(all, batch)};
  };
  const Staged staged = stage(whole, types, "calibration");
  std::vector<Tracked> inputs;
  for (const Array& one : staged.captured) inputs.push_back({one});
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  std::vector<Multiplied> found;
  evaluate(staged.program, std::move(inputs), found);

  Arrays largest, bins;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    Array most = lax::full({}, -1.0F);
    Array count = lax::full({counts ? bin_count : 0}, 0, DType::int32);
    for (const Multiplied& one : found) {
      if (one.matrix != static_cast<int>(i) || one.x.size() == 0) continue;
      const Array sizes = all_elements(one.x);
      most = lax::max(most, lax::reduce_max(sizes, {.axes = {0}}));
      if (!counts) continue;
      const Array bits = lax::bitcast_convert_type(sizes, DType::int32);
      const Array bin = lax::shift_right_logical(bits, lax::full_like(bits, static_cast<double>(bin_shift)));
      count = lax::scatter_add(count, lax::expand_dims(bin, {1}), lax::full_like(bin, 1.0),
                               {.inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}});
    }
    largest.push_back(most);
    bins.push_back(count);
  }
  return {lax::stack(largest, 0), lax::stack(bins, 0)};
}

// ---- scales --------------------------------------------------------------------------------------------------------

// Maxima, and counts of magnitudes, of all batches.
struct Magnitudes {
  std::vector<float> largest;
  std::vector<std::vector<int64_t>> counts;

  void add(const Observed& one, const std::vector<std::string>& matrices, int64_t batch) {
    const std::vector<float> most = one.largest.to_vector<float>();
    const std::vector<int32_t> bins = one.counts.to_vector<int32_t>();
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      if (!std::isfinite(most[i])) {
        throw ValueError(concat(operation, ": batch ", batch, " of the loader (argument 'loader'): expected finite ",
                                "activations, what the matrix '", matrices[i], "' multiplies has ", most[i],
                                "; look for it in the batch, or in a step of training that diverged"));
      }
      largest[i] = std::max(largest[i], most[i]);
      const std::size_t width = bins.size() / matrices.size();
      for (std::size_t bin = 0; bin < width; ++bin) counts[i][bin] += bins[i * width + bin];
    }
  }

  // The magnitude that this share of the values does not exceed, to 1/128.
  float percentile(std::size_t matrix, double percent) const {
    if (percent == 100) return largest[matrix];
    int64_t all = 0, below = 0;
    for (int64_t count : counts[matrix]) all += count;
    const auto enough = static_cast<int64_t>(std::ceil(static_cast<double>(all) * percent / 100));
    for (std::size_t bin = 0; bin < counts[matrix].size(); ++bin) {
      below += counts[matrix][bin];
      if (below >= enough) {
        const float end = std::bit_cast<float>(static_cast<std::uint32_t>(bin + 1) << bin_shift);
        return std::min(end, largest[matrix]);
      }
    }
    return largest[matrix];
  }
};

const ModelParts::Function& chosen_function(const ModelParts& parts, const std::string& name) {
  if (name == "loss" && parts.loss) return parts.loss;
  if (name == "apply" && parts.apply) return parts.apply;
  if (name.empty() && (parts.loss || parts.apply)) return parts.loss ? parts.loss : parts.apply;
  if (name != "loss" && name != "apply" && !name.empty())
    throw ValueError(concat(operation, ": expected 'loss' or 'apply' (argument 'function'), got '", name, "'"));
  throw TypeError(concat(operation, ": ", parts.name, " has no ", name.empty() ? "loss and no apply" : name,
                         " (argument 'model'), which calibration runs"));
}

void require_options(const ActivationOptions& options) {
  if (!(options.percentile > 0 && options.percentile <= 100)) {
    throw ValueError(
        concat(operation, ": expected more than 0 and at most 100 (argument 'percentile'), got ", options.percentile));
  }
  if (options.batches < 1)
    throw ValueError(concat(operation, ": expected 1 or more (argument 'batches'), got ", options.batches));
}

// The parts of a model with these scales among its parameters.
ModelParts with_scales(ModelParts parts, const Parameters& scales) {
  for (const auto& [name, scale] : scales) {
    parts.parameters[name] = scale;
    if (!parts.types.empty()) parts.types[name] = scale.type();
    if (parts.logical_axes) parts.logical_axes->of[name] = {""};
  }
  if (parts.checkpointed) {
    parts.checkpointed = [inner = parts.checkpointed, scales](int64_t every, const std::string& policy) {
      return with_scales(inner(every, policy), scales);
    };
  }
  return parts;
}

}  // namespace

Parameters activation_scales(const AnyModel& model, const Parameters& given, const CalibrationLoader& loader,
                             const ActivationOptions& options) {
  require_options(options);
  const std::vector<std::string> matrices = int8_matrices(given);
  Parameters scales;
  if (!loader) {
    for (const std::string& name : matrices) scales[name + ".input_scale"] = lax::full({0}, 0.0F);
    return scales;
  }
  Parameters parameters = given;  // without scales of an earlier calibration
  for (const std::string& name : matrices) parameters.erase(name + ".input_scale");
  const bool counts = options.percentile < 100;
  const auto run = jax::jit(
      [function = chosen_function(model.parts(), options.function), &matrices, counts](const Parameters& p,
                                                                                       const Arrays& batch) -> Arrays {
        const Observed one = observe(function, matrices, counts, p, batch);
        return {one.largest, one.counts};
      },
      {.name = "calibration"});
  Magnitudes seen{std::vector<float>(matrices.size(), -1.0F),
                  std::vector<std::vector<int64_t>>(matrices.size(), std::vector<int64_t>(counts ? bin_count : 0))};
  for (int64_t i = 0; i < options.batches; ++i) {
    const std::optional<Arrays> batch = loader();
    if (!batch) {
      throw ValueError(
          concat(operation, ": expected ", options.batches, " batches (argument 'loader'), got ", i,
                 i == 0 ? ": the loader is empty" : " before the loader ended; 'batches' sets their number"));
    }
    const Arrays results = run(parameters, *batch);
    seen.add({results[0], results[1]}, matrices, i);
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (seen.largest[i] < 0) continue;  // nothing is multiplied by it outside of loops
    const float largest = seen.percentile(i, options.percentile);
    scales[matrices[i] + ".input_scale"] = array<float>({largest > 0 ? largest / 127 : 1.0F});
  }
  if (!scales.empty()) return scales;
  throw ValueError(concat(operation, ": ", model.name(), " multiplies by none of its ", matrices.size(),
                          " int8 matrices with the calibrated function (argument 'function')"));
}

AnyModel quantize_activations(const AnyModel& model, const CalibrationLoader& loader,
                              const ActivationOptions& options) {
  const ModelParts& parts = model.parts();
  return AnyModel(with_scales(parts, activation_scales(model, parts.parameters, loader, options)));
}

}  // namespace capibara::training
