// Weights with fewer bits: bfloat16 for all parameters, codes for the matrices of language models and of any other.
#include <capibara/training/weights.h>

#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/safetensors.h>
#include <capibara/training/language_model.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "models/training/coded_program.h"
#include "program/trace/stage.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

constexpr const char* format_key = "capibara.codes";

bool is_format(const std::string& text) { return text == "int8" || text == "int4" || text == "vq"; }

// How matrices become codes.
struct Format {
  std::string name;
  int64_t block = 0;
  kernels::QuantizeVectorsOptions vectors = QuantizeModelOptions().vectors;

  bool fits(const Array& matrix, int64_t axis) const {
    return name != "vq" || fits_codebooks(matrix.shape(), axis, vectors);
  }
};

// The contracted axis of a language model's matrix; -1 for parameters that are not matrices.
int64_t summed_axis(const std::string& name, const Array& array) {
  if (name == "embedding") return 1;  // rows are looked up, and are the outputs of a tied head
  if (array.ndim() == 2 && name.ends_with(".weight")) return 0;
  const bool expert = name.ends_with(".gate") || name.ends_with(".up") || name.ends_with(".down");
  return array.ndim() == 3 && expert ? 1 : -1;
}

void store(Parameters& to, const std::string& name, const kernels::QuantizedMatrix& matrix) {
  to[name + ".codes"] = matrix.codes;
  to[name + ".scale"] = matrix.scale;
  if (matrix.codebook) to[name + ".codebook"] = *matrix.codebook;
}

// kernels::quantize, with the parameter's name in its errors.
kernels::QuantizedMatrix quantized(const std::string& name, const Array& matrix, const Format& format, int64_t axis) {
  try {
    if (format.name != "vq")
      return kernels::quantize(matrix, {.format = format.name, .block = format.block, .axis = axis});
    kernels::QuantizeVectorsOptions options = format.vectors;
    options.axis = axis;
    return kernels::quantize_vectors(matrix, options);
  } catch (const ValueError& error) {
    throw ValueError(concat("parameter '", name, "': ", error.what()));
  }
}

// A matrix, or one per expert [experts, inputs, outputs].
void store_quantized(Parameters& to, const std::string& name, const Array& array, int64_t axis, const Format& format) {
  if (array.ndim() == 2) {
    store(to, name, quantized(name, array, format, axis));
    return;
  }
  Arrays codes, scales, codebooks;
  for (int64_t expert = 0; expert < array.shape(0); ++expert) {
    const auto one = quantized(name, lax::index_in_dim(array, expert, 0, false), format, 0);
    codes.push_back(one.codes);
    scales.push_back(one.scale);
    if (one.codebook) codebooks.push_back(*one.codebook);
  }
  to[name + ".codes"] = lax::stack(codes, 0);
  to[name + ".scale"] = lax::stack(scales, 0);
  if (!codebooks.empty()) to[name + ".codebook"] = lax::stack(codebooks, 0);
}

Parameters language_codes(const char* operation, const Parameters& parameters, const Format& format) {
  Parameters result;
  for (const auto& [name, array] : parameters) {
    if (!is_floating(array.dtype())) {
      throw ValueError(concat(operation, ": parameter '", name, "' has type ", to_string(array.type()),
                              "; expected floats, as they were trained"));
    }
    const int64_t axis = is_format(format.name) ? summed_axis(name, array) : -1;
    if (axis < 0 || !format.fits(array, axis))
      result[name] = lax::convert_element_type(array, format.name == "bfloat16" ? DType::bfloat16 : DType::float32);
    else
      store_quantized(result, name, array, axis, format);
  }
  return result;
}

// The parts of a language model with some parameters as codes: [outputs, ...] for matrices [inputs,
// outputs].
ModelParts language_parts(ModelParts parts, const Parameters& parameters) {
  parts.parameters = parameters;
  parts.init = {};
  parts.types.clear();
  for (const auto& [name, array] : parameters) parts.types[name] = array.type();
  if (parts.logical_axes) {
    std::map<std::string, std::vector<std::string>> of;
    for (const auto& [name, axes] : parts.logical_axes->of) {
      if (parameters.count(name + ".codes") == 0) {
        of[name] = axes;
        continue;
      }
      std::vector<std::string> own = axes;  // of outputs and, before these, experts
      if (name != "embedding") own.erase(own.end() - 2);
      if (name == "embedding") own.pop_back();
      own.push_back("");
      of[name + ".scale"] = own;
      if (parameters.count(name + ".codebook") != 0) {
        of[name + ".codebook"] = std::vector<std::string>(own.begin(), own.end() - 2);
        of[name + ".codebook"].resize(own.size() + 2);  // [..., stages, groups, entries, dim]
        own.push_back("");
      }
      of[name + ".codes"] = own;
    }
    parts.logical_axes->of = std::move(of);
  }
  if (parts.checkpointed) {
    parts.checkpointed = [inner = parts.checkpointed, parameters](int64_t every, const std::string& policy) {
      return language_parts(inner(every, policy), parameters);
    };
  }
  return parts;
}

// ---- any model ----------------------------------------------------------------------------------------------------

// Parameters stored as codes: the type that the model's functions expect.
using CodedTypes = std::map<std::string, ArrayType>;

// The model's function on parameters of which some are codes.
ModelParts::Function on_codes(ModelParts::Function function, const CodedTypes& coded, const char* name) {
  return jax::jit(
      [function = std::move(function), coded](const Parameters& given, const Arrays& batch) {
        std::vector<ArrayType> types;
        std::vector<std::string> names;
        std::vector<CodedInput> inputs;
        for (const auto& [own, type] : coded) {
          names.push_back(own);
          types.push_back(type);
          parameter(given, own + ".codes");
          inputs.push_back(*find_codes(given, own, type.shape[0]));
        }
        Parameters others = given;
        for (const auto& [own, type] : coded) {
          for (const char* ending : {".codes", ".scale", ".codebook", ".input_scale"}) others.erase(own + ending);
        }
        const auto whole = [&](std::span<const Array> matrices) {
          Parameters all = others;
          for (std::size_t i = 0; i < names.size(); ++i) all[names[i]] = matrices[i];
          return Arrays{function(all, batch)};
        };
        const Staged staged = stage(whole, types, "quantized");
        std::vector<CodedInput> operands(staged.captured.begin(), staged.captured.end());
        operands.insert(operands.end(), inputs.begin(), inputs.end());
        return evaluate_with_codes(staged.program, operands)[0];
      },
      {.name = name});
}

ModelParts coded_parts(const ModelParts& parts, const Format& format, const QuantizeModelOptions& options) {
  CodedTypes coded;
  ModelParts made;
  made.name = parts.name;
  for (const auto& [name, array] : parts.parameters) {
    const bool chosen =
        options.which ? options.which(name, array.type()) : becomes_codes(name, array.type()) && format.fits(array, 0);
    if (!chosen) {
      made.parameters[name] = array;
      continue;
    }
    if (array.ndim() != 2) {
      throw ValueError(concat("quantize_model: expected matrices (argument 'which'), got ", to_string(array.type()),
                              " for the parameter '", name, "'"));
    }
    store_quantized(made.parameters, name, array, 0, format);
    coded.emplace(name, array.type());
  }
  if (coded.empty()) {
    throw ValueError(
        concat("quantize_model: ", parts.name, " has no matrix to quantize (argument 'model'); only ",
               "floating arrays of two dimensions are, whose names say nothing of norm, bias, scale or ", "embed",
               format.name == "vq" ? concat(", with a multiple of ", format.vectors.dim * format.vectors.groups,
                                            " inputs and more vectors than the codebooks have entries")
                                   : ""));
  }
  if (parts.apply) made.apply = on_codes(parts.apply, coded, "apply");
  if (parts.loss) made.loss = on_codes(parts.loss, coded, "loss");
  if (parts.evaluate) made.evaluate = on_codes(parts.evaluate, coded, "evaluate");
  return made;
}

// ---- files --------------------------------------------------------------------------------------------------------

[[noreturn]] void refuse_tensor(const std::string& path, const std::string& name, const std::string& words) {
  throw ValueError(concat("load_weights: ", path, ": the tensor '", name, "' ", words));
}

void require_greatest(const std::string& path, const std::string& name, const Array& codes, int64_t least,
                      int64_t greatest) {
  if (codes.size() == 0) return;
  Ints axes;
  for (int64_t dim = 0; dim < codes.ndim(); ++dim) axes.push_back(dim);
  const Array wide = lax::convert_element_type(codes, DType::int32);
  const int64_t low = lax::reduce_min(wide, {.axes = axes}).item<int32_t>(),
                high = lax::reduce_max(wide, {.axes = axes}).item<int32_t>();
  if (low >= least && high <= greatest) return;
  refuse_tensor(path, name, concat("has the code ", low < least ? low : high, ", expected ", least, " to ", greatest));
}

void check_codes(const std::string& path, const std::string& stem, const Parameters& all, int64_t inputs) {
  const std::string codes_name = stem + ".codes", scale_name = stem + ".scale";
  if (all.count(scale_name) == 0)
    refuse_tensor(path, codes_name, concat("has no tensor '", scale_name, "' of its scales"));
  kernels::QuantizedMatrix matrix = *find_codes(all, stem, inputs);
  for (const Array* part : {&matrix.scale, matrix.codebook ? &*matrix.codebook : nullptr}) {
    if (!part || part->size() == 0) continue;
    Ints axes;
    for (int64_t dim = 0; dim < part->ndim(); ++dim) axes.push_back(dim);
    const Array wide = lax::abs(lax::convert_element_type(*part, DType::float32));
    if (!std::isfinite(lax::reduce_max(wide, {.axes = axes}).item<float>()))
      refuse_tensor(path, part == &matrix.scale ? scale_name : stem + ".codebook", "is not finite");
  }
  if (matrix.codebook)
    require_greatest(path, codes_name, matrix.codes, 0, matrix.codebook->shape(-2) - 1);
  else if (matrix.codes.dtype() == DType::int8)
    require_greatest(path, codes_name, matrix.codes, -127, 127);
  if (matrix.input_scale && matrix.input_scale->size() == 1) {
    const Array wide = lax::convert_element_type(lax::reshape(*matrix.input_scale, {}), DType::float32);
    const float scale = wide.item<float>();
    if (!std::isfinite(scale) || scale <= 0)
      refuse_tensor(path, stem + ".input_scale", concat("is ", scale, ", expected a positive number"));
  }
  const int64_t rank = matrix.codebook ? 3 : 2;
  if (matrix.codes.ndim() == rank + 1) {  // of several experts
    if (matrix.codes.shape(0) == 0 || matrix.scale.ndim() == 0 || matrix.scale.shape(0) != matrix.codes.shape(0))
      refuse_tensor(
          path, scale_name,
          concat("has type ", to_string(matrix.scale.type()), " beside codes of ", to_string(matrix.codes.type())));
    for (Array* part : {&matrix.codes, &matrix.scale}) *part = lax::index_in_dim(*part, 0, 0, false);
    if (matrix.codebook) matrix.codebook = lax::index_in_dim(*matrix.codebook, 0, 0, false);
  }
  try {
    kernels::require_fit(matrix);
  } catch (const TypeError& error) {
    refuse_tensor(path, codes_name, concat("does not fit: ", error.what()));
  }
}

bool is_part(const std::string& name, const Parameters& all, const char* ending) {
  return name.ends_with(ending) && all.count(name.substr(0, name.size() - std::string(ending).size()) + ".codes") != 0;
}

}  // namespace

Parameters convert_weights(const Parameters& parameters, const std::string& weights) {
  if (weights != "float32" && weights != "bfloat16" && !is_format(weights)) {
    throw ValueError(concat("convert_weights: weights are float32, bfloat16, int8, int4 or vq, got '", weights, "'"));
  }
  return language_codes("convert_weights", parameters, {.name = weights});
}

bool becomes_codes(const std::string& name, const ArrayType& type) {
  if (type.shape.size() != 2 || !is_floating(type.dtype)) return false;
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* kept : {"norm", "bias", "scale", "embed"}) {
    if (lower.find(kept) != std::string::npos) return false;
  }
  return true;
}

bool fits_codebooks(const Shape& shape, int64_t axis, const kernels::QuantizeVectorsOptions& options) {
  const std::size_t rank = shape.size();
  const int64_t own = options.dim * options.groups, rows = shape[rank - 2], columns = shape[rank - 1];
  const bool splits =
      rank == 2 ? shape[static_cast<std::size_t>(axis)] % own == 0 : rows % own == 0 && columns % own == 0;
  return splits && rows * columns / options.dim >= 2 * options.entries * options.stages * options.groups;
}

AnyModel quantize_model(const AnyModel& model, const std::string& format, const QuantizeModelOptions& options) {
  if (!is_format(format))
    throw ValueError(concat("quantize_model: expected 'int8', 'int4' or 'vq' (argument 'format'), got '", format, "'"));
  ModelParts parts = model.parts();
  if (parts.parameters.empty()) {
    throw TypeError(concat("quantize_model: ", model.name(),
                           " has no parameters yet (argument 'model'); give it those that its init(key) makes"));
  }
  const Format made{.name = format, .block = options.block, .vectors = options.vectors};
  if (!model.target<LanguageModel>() || options.which) return AnyModel(coded_parts(parts, made, options));
  const Parameters coded = language_codes("quantize_model", parts.parameters, made);
  return AnyModel(language_parts(std::move(parts), coded));
}

int64_t parameter_bytes(const Parameters& parameters) {
  int64_t sum = 0;
  for (const auto& [name, array] : parameters) sum += array.size() * storage_size(array.dtype());
  return sum;
}

void save_weights(const std::string& path, const Parameters& parameters) {
  std::map<std::string, std::string> metadata;
  for (const auto& [name, array] : parameters) {
    if (!name.ends_with(".codes")) continue;
    const bool vectors = parameters.count(name.substr(0, name.size() - 6) + ".codebook") != 0;
    metadata[name] = vectors ? "vectors" : array.dtype() == DType::int8 ? "int8" : "int4";
  }
  metadata[format_key] = "1";
  save_safetensors(path, parameters, metadata);
}

Parameters load_weights(const std::string& path) {
  const SafetensorsFile file(path);
  const auto version = file.metadata().find(format_key);
  if (version == file.metadata().end() || version->second != "1") {
    throw ValueError(concat("load_weights: ", path, ": expected '", format_key, "' to be 1 in the metadata, got ",
                            version == file.metadata().end() ? "none" : version->second,
                            "; save_weights writes such files, load_safetensors reads others"));
  }
  Parameters all;
  for (const std::string& name : file.names()) all[name] = file.read(name);
  for (const auto& [name, array] : all) {
    if (!name.ends_with(".codes")) continue;
    const std::string stem = name.substr(0, name.size() - 6);
    const auto said = file.metadata().find(name);
    if (said == file.metadata().end()) refuse_tensor(path, name, "has no format in the metadata");
    const bool vectors = all.count(stem + ".codebook") != 0;
    const std::string found = vectors                         ? "vectors"
                              : array.dtype() == DType::int8  ? "int8"
                              : array.dtype() == DType::uint8 ? "int4"
                                                              : to_string(array.type());
    if (said->second != found) refuse_tensor(path, name, concat("is ", found, ", the metadata says ", said->second));
    const int64_t last = array.ndim() == 0 ? 0 : array.shape(-1);
    int64_t inputs = found == "int4" ? 2 * last : last;
    if (vectors) {
      const Array& codebook = all.at(stem + ".codebook");
      if (codebook.ndim() < 4 || array.ndim() < 3) refuse_tensor(path, name, "does not fit its codebook");
      inputs = array.shape(-2) * codebook.shape(-1);
    }
    check_codes(path, stem, all, inputs);
  }
  for (const auto& [name, array] : all) {
    if (is_part(name, all, ".codebook") && all.count(name.substr(0, name.size() - 9) + ".scale") == 0)
      refuse_tensor(path, name, "has no tensor of its scales");
  }
  return all;
}

}  // namespace capibara::training
