// AnyModel: validation of its parts, and the functions that call them.
#include <capibara/model.h>

#include <capibara/error.h>
#include <capibara/lax.h>
#include <capibara/random.h>

#include <algorithm>
#include <set>

#include "models/protocol/finite.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

std::string path_name(const KeyPath& path) {
  std::string name;
  for (const TreeKey& key : path) {
    if (!name.empty()) name += '.';
    const bool numbered = key.kind == TreeKey::index || key.kind == TreeKey::integer;
    name += numbered ? std::to_string(key.number) : key.name;
  }
  return name.empty() ? "parameters" : name;
}

[[noreturn]] void throw_missing(const ModelParts& parts, const char* function) {
  throw ValueError(concat("AnyModel.", function, ": the model '", parts.name, "' has no ", function));
}

void check_layers(const ModelParts& parts) {
  const ModelLayers& layers = *parts.layers;
  if (layers.count < 1) {
    throw ValueError(concat("AnyModel: the model '", parts.name, "' must have at least one layer, got ", layers.count));
  }
  if (!layers.start || !layers.run || !layers.finish) {
    throw ValueError(concat("AnyModel: layers of the model '", parts.name, "' need start, run and finish; ",
                            !layers.start ? "start"
                            : !layers.run ? "run"
                                          : "finish",
                            " is missing"));
  }
  const auto prefixes = static_cast<int64_t>(layers.prefixes.size());
  if (prefixes != 0 && prefixes != layers.count) {
    throw ValueError(concat("AnyModel: the model '", parts.name, "' has ", layers.count, " layers and ", prefixes,
                            " prefixes of their parameters"));
  }
  for (const std::string& prefix : layers.prefixes) {
    const auto it = parts.types.lower_bound(prefix);
    if (it == parts.types.end() || !it->first.starts_with(prefix)) {
      throw ValueError(concat("AnyModel: no parameter of the model '", parts.name, "' begins with the prefix '", prefix,
                              "' of a layer; the first parameter is '",
                              parts.types.empty() ? "" : parts.types.begin()->first, "'"));
    }
  }
}

void check_logical_axes(const ModelParts& parts) {
  for (const auto& [name, axes] : parts.logical_axes->of) {
    const auto it = parts.types.find(name);
    if (it == parts.types.end()) {
      throw ValueError(
          concat("AnyModel: logical axes name '", name, "', which is not a parameter of the model '", parts.name, "'"));
    }
    if (axes.size() != it->second.shape.size()) {
      throw ValueError(concat("AnyModel: '", name, "' of the model '", parts.name, "' is ", to_string(it->second),
                              " and has ", axes.size(), " logical axes; one is needed for each dimension"));
    }
  }
}

[[noreturn]] void throw_missing_parameter(const std::string& operation, const std::string& name, std::size_t given) {
  throw ValueError(
      concat(operation, ": the parameter '", name, "' is missing (argument 'parameters'), got ", given, " names"));
}

void require_parameters(const char* function, const ModelParts& parts, const Parameters& parameters) {
  for (const auto& [name, type] : parts.types) {
    if (!parameters.contains(name)) throw_missing_parameter(concat("AnyModel.", function), name, parameters.size());
  }
}

Array converted(const Array& array, DType dtype) {
  return is_inexact(array.dtype()) && !is_complex(array.dtype()) ? lax::convert_element_type(array, dtype) : array;
}

}  // namespace

namespace detail {

std::vector<std::string> parameter_names(const TreeDef& tree) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const KeyPath& path : tree.paths()) {
    names.push_back(path_name(path));
    if (!seen.insert(names.back()).second) {
      throw ValueError(concat("AnyModel: two parameters have the name '", names.back(), "'"));
    }
  }
  return names;
}

Parameters named_parameters(const std::vector<std::string>& names, std::span<const Array> leaves) {
  Parameters parameters;
  for (std::size_t i = 0; i < names.size(); ++i) parameters.emplace(names[i], leaves[i]);
  return parameters;
}

Arrays parameter_leaves(const char* operation, const std::vector<std::string>& names, const Parameters& parameters) {
  Arrays leaves;
  leaves.reserve(names.size());
  for (const std::string& name : names) {
    const auto it = parameters.find(name);
    if (it == parameters.end()) throw_missing_parameter(operation, name, parameters.size());
    leaves.push_back(it->second);
  }
  return leaves;
}

void require_batch(const char* operation, std::size_t expected, std::size_t got, bool first) {
  if (first ? got >= expected : got == expected) return;
  throw ValueError(concat("AnyModel.", operation, ": expected a batch of ", expected,
                          expected == 1 ? " array" : " arrays", " (argument 'batch'), got ", got));
}

}  // namespace detail

Array AnyModel::some_key() { return jax::random::key(0); }

AnyModel::AnyModel(ModelParts given) {
  if (given.types.empty()) {
    if (!given.parameters.empty()) {
      for (const auto& [name, array] : given.parameters) given.types[name] = array.type();
    } else if (given.init) {
      for (const auto& [name, array] : jax::eval_shape(given.init, some_key())) given.types[name] = array.type();
    }
  }
  if (given.types.empty()) {
    throw ValueError(concat("AnyModel: the model '", given.name, "' has no parameters; it needs init or parameters"));
  }
  if (!given.init && given.parameters.empty()) {
    throw ValueError(concat("AnyModel: the model '", given.name, "' has neither init nor given parameters"));
  }
  if (given.layers) check_layers(given);
  if (given.logical_axes) check_logical_axes(given);
  parts_ = std::make_shared<const ModelParts>(std::move(given));
}

const std::string& AnyModel::name() const { return parts_->name; }

Parameters AnyModel::init(const Array& key) const {
  return parts_->parameters.empty() ? parts_->init(key) : parts_->parameters;
}

const ParameterTypes& AnyModel::types() const { return parts_->types; }

int64_t AnyModel::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, type] : parts_->types) count += type.size();
  return count;
}

Array AnyModel::apply(const Parameters& parameters, const Arrays& batch) const {
  if (!parts_->apply) throw_missing(*parts_, "apply");
  require_parameters("apply", *parts_, parameters);
  return parts_->apply(parameters, batch);
}

Array AnyModel::loss(const Parameters& parameters, const Arrays& batch) const {
  if (!parts_->loss) throw_missing(*parts_, "loss");
  require_parameters("loss", *parts_, parameters);
  Array loss = parts_->loss(parameters, batch);
  if (loss.ndim() != 0 || !is_inexact(loss.dtype()) || is_complex(loss.dtype())) {
    throw TypeError(concat("AnyModel.loss: the loss of the model '", parts_->name, "' must be a floating scalar, got ",
                           to_string(loss.type())));
  }
  return loss;
}

Array AnyModel::evaluate(const Parameters& parameters, const Arrays& batch) const {
  return parts_->evaluate ? parts_->evaluate(parameters, batch) : loss(parameters, batch);
}

Array AnyModel::loss_in(DType compute, const Parameters& parameters, const Arrays& batch) const {
  Parameters cast;
  for (const auto& [name, array] : parameters) cast[name] = converted(array, compute);
  Arrays inputs;
  for (const Array& array : batch) inputs.push_back(converted(array, compute));
  return lax::convert_element_type(loss(cast, inputs), DType::float32);
}

const ModelLayers* AnyModel::layers() const { return parts_->layers ? &*parts_->layers : nullptr; }

LogicalAxes AnyModel::logical_axes() const {
  return parts_->logical_axes ? *parts_->logical_axes : infer_logical_axes(parts_->types);
}

ModelSizes AnyModel::sizes() const {
  ModelSizes sizes = parts_->sizes ? *parts_->sizes : infer_sizes(parts_->types);
  if (sizes.parameters == 0) sizes.parameters = parameter_count();
  return sizes;
}

std::string AnyModel::first_bad_value(const Parameters& parameters, const Arrays& batch) const {
  for (const auto& [name, array] : parameters) {
    if (!all_finite(array)) return concat("parameter ", name);
  }
  if (parts_->first_bad_value) return parts_->first_bad_value(parameters, batch);
  if (const ModelLayers* layers = this->layers()) {
    auto finite = [](const Arrays& carry) { return std::all_of(carry.begin(), carry.end(), all_finite); };
    Arrays carry = layers->start(parameters, batch);
    if (!finite(carry)) return "the carry before the first layer";
    for (int64_t layer = 0; layer < layers->count; ++layer) {
      carry = layers->run(parameters, layer, carry);
      if (!finite(carry)) return concat("layer ", layer);
    }
  }
  return parts_->loss && !all_finite(loss(parameters, batch)) ? "the loss" : "";
}

}  // namespace capibara
