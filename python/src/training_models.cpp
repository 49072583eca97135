// The model protocol from Python: models made of Python functions, which are called only while programs are
// traced.
#include "training_models.h"

#include <capibara/models/protocol.h>
#include <capibara/training/language_model.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "interpreter_lock.h"
#include "models.h"

namespace capibara::python {

Parameters parameters_of(nb::handle object, const char* operation) {
  if (!PyDict_Check(object.ptr())) {
    throw TypeError(concat(operation, ": expected a dict of arrays by name (argument 'params'), got ",
                           nb::cast<std::string>(nb::repr(object))));
  }
  Parameters parameters;
  for (auto [name, array] : nb::borrow<nb::dict>(object)) {
    if (!PyUnicode_Check(name.ptr())) {
      throw TypeError(concat(operation, ": expected the name of an array (argument 'params'), got the key ",
                             nb::cast<std::string>(nb::repr(name))));
    }
    const std::string own = nb::cast<std::string>(name);
    parameters[own] = to_array(array, concat(operation, ": parameter '", own, "'").c_str());
  }
  return parameters;
}

nb::dict wrap_parameters(const Parameters& parameters) {
  nb::dict result;
  for (const auto& [name, array] : parameters) result[name.c_str()] = wrap(array);
  return result;
}

ModelSizes model_sizes(const nb::dict& given) {
  ModelSizes sizes;
  auto read = [&](const char* name, int64_t& field) {
    if (given.contains(name)) field = nb::cast<int64_t>(given[name]);
  };
  read("layers", sizes.layers);
  read("width", sizes.width);
  read("heads", sizes.heads);
  read("key_heads", sizes.key_heads);
  read("head_size", sizes.head_size);
  read("hidden", sizes.hidden);
  read("vocabulary", sizes.vocabulary);
  read("experts", sizes.experts);
  read("experts_per_token", sizes.experts_per_token);
  read("parameters", sizes.parameters);
  if (given.contains("gated")) sizes.gated = nb::cast<bool>(given["gated"]);
  if (given.contains("tied")) sizes.tied = nb::cast<bool>(given["tied"]);
  if (given.contains("inferred")) sizes.inferred = nb::cast<bool>(given["inferred"]);
  if (given.contains("assumptions")) sizes.assumptions = nb::cast<std::vector<std::string>>(given["assumptions"]);
  return sizes;
}

Arrays batch_of(nb::handle object, const char* operation) {
  Arrays batch;
  for (nb::handle array : nb::borrow<nb::sequence>(object)) batch.push_back(to_array(array, operation));
  return batch;
}

namespace {

using Kept = std::shared_ptr<const KeptObject>;

Kept kept_part(const nb::dict& parts, const char* name) {
  if (!parts.contains(name) || nb::handle(parts[name]).is_none()) return nullptr;
  return std::make_shared<const KeptObject>(nb::handle(parts[name]));
}

template <class... Arguments>
nb::object call_kept(const Kept& function, const Arguments&... arguments) {
  return call_python(function->get(), nb::make_tuple(arguments...));
}

ModelParts::Function batch_function(const nb::dict& parts, const char* name) {
  const Kept function = kept_part(parts, name);
  if (!function) return {};
  return [function, name](const Parameters& parameters, const Arrays& batch) {
    const InterpreterLock lock;
    return to_array(call_kept(function, wrap_parameters(parameters), wrap_all(batch)), name);
  };
}

// Python handles the structures; this only converts the functions' arguments and results.
ModelLayers layers_of(const nb::dict& given) {
  ModelLayers layers;
  layers.count = nb::cast<int64_t>(given["count"]);
  layers.prefixes = nb::cast<std::vector<std::string>>(given["prefixes"]);
  layers.start = [start = kept_part(given, "start")](const Parameters& parameters, const Arrays& batch) {
    const InterpreterLock lock;
    return batch_of(call_kept(start, wrap_parameters(parameters), wrap_all(batch)), "start");
  };
  layers.run = [run = kept_part(given, "run")](const Parameters& parameters, int64_t layer, const Arrays& carry) {
    const InterpreterLock lock;
    return batch_of(call_kept(run, wrap_parameters(parameters), nb::int_(layer), wrap_all(carry)), "run_layer");
  };
  layers.finish = [finish = kept_part(given, "finish")](const Parameters& parameters, const Arrays& carry,
                                                        const Arrays& batch) {
    const InterpreterLock lock;
    return to_array(call_kept(finish, wrap_parameters(parameters), wrap_all(carry), wrap_all(batch)), "finish");
  };
  if (const Kept output = kept_part(given, "output")) {
    layers.output = [output](const Parameters& parameters, const Arrays& carry) {
      const InterpreterLock lock;
      return to_array(call_kept(output, wrap_parameters(parameters), wrap_all(carry)), "output");
    };
  }
  return layers;
}

nb::dict python_sizes(const ModelSizes& sizes) {
  nb::dict result;
  result["layers"] = sizes.layers;
  result["width"] = sizes.width;
  result["heads"] = sizes.heads;
  result["key_heads"] = sizes.key_heads;
  result["head_size"] = sizes.head_size;
  result["hidden"] = sizes.hidden;
  result["vocabulary"] = sizes.vocabulary;
  result["experts"] = sizes.experts;
  result["experts_per_token"] = sizes.experts_per_token;
  result["gated"] = sizes.gated;
  result["tied"] = sizes.tied;
  result["parameters"] = sizes.parameters;
  result["inferred"] = sizes.inferred;
  result["assumptions"] = nb::cast(sizes.assumptions);
  return result;
}

nb::dict python_axes(const LogicalAxes& axes) {
  nb::dict result;
  result["of"] = nb::cast(axes.of);
  result["inferred"] = axes.inferred;
  result["assumptions"] = nb::cast(axes.assumptions);
  return result;
}

// The types of parameters that are arrays or ShapeDtypeStructs in Python.
ParameterTypes types_of_dict(const nb::dict& given) {
  ParameterTypes types;
  for (auto [name, leaf] : given) types[nb::cast<std::string>(name)] = leaf_type(leaf, "as_model").strong();
  return types;
}

AnyModel model_of_parts(const nb::dict& given) {
  ModelParts parts;
  parts.name = nb::cast<std::string>(given["name"]);
  parts.types = types_of_dict(nb::cast<nb::dict>(given["types"]));
  if (given.contains("parameters")) {
    parts.parameters = parameters_of(given["parameters"], "as_model");
    for (const auto& [name, array] : parts.parameters) parts.types[name] = array.type().strong();  // narrowed, perhaps
  }
  if (const Kept init = kept_part(given, "init")) {
    parts.init = [init](const Array& key) {
      const InterpreterLock lock;
      return parameters_of(call_kept(init, wrap(key)), "init");
    };
  }
  parts.apply = batch_function(given, "apply");
  parts.loss = batch_function(given, "loss");
  parts.evaluate = batch_function(given, "evaluate");
  if (given.contains("layers")) parts.layers = layers_of(nb::cast<nb::dict>(given["layers"]));
  if (given.contains("logical_axes")) {
    parts.logical_axes =
        LogicalAxes{nb::cast<std::map<std::string, std::vector<std::string>>>(given["logical_axes"]), false, {}};
  }
  if (given.contains("sizes")) parts.sizes = model_sizes(nb::cast<nb::dict>(given["sizes"]));
  return AnyModel(std::move(parts));
}

}  // namespace

void bind_training_models(nb::module_& m) {
  nb::class_<AnyModel>(m, "AnyModel", "Any model of the core: parameters by name, apply and loss.")
      .def_static("of_parts", model_of_parts)
      .def_static("of_language_model", [](const training::LanguageModel& model) { return AnyModel(model); })
      .def_static(
          "of_compiled",
          [](const ml::CompiledModel& model, const std::vector<std::string>& batch, const std::string& output,
             const std::string& loss, nb::handle loss_of, nb::handle parameters) {
            ml::TrainableOptions options{.batch = batch, .output = output, .loss = loss};
            for (auto& [name, array] : parameters_of(parameters, "as_model")) options.parameters[name] = array;
            if (!loss_of.is_none()) {
              options.loss_of = [function = std::make_shared<const KeptObject>(loss_of)](const ml::ValueMap& outputs,
                                                                                         const Arrays& arrays) {
                const InterpreterLock lock;
                nb::dict named;
                for (const auto& [key, value] : outputs) named[key.c_str()] = python_value(value);
                return to_array(call_kept(function, named, wrap_all(arrays)), "loss");
              };
            }
            return ml::trainable(model, options);
          },
          nb::arg("model"), nb::arg("batch"), nb::arg("output"), nb::arg("loss"), nb::arg("loss_of").none(),
          nb::arg("parameters"))
      .def_prop_ro("name", &AnyModel::name)
      .def("types",
           [](const AnyModel& model) {
             nb::dict result;
             for (const auto& [name, type] : model.types())
               result[name.c_str()] = nb::make_tuple(int_tuple(type.shape), numpy_dtype(type.dtype));
             return result;
           })
      .def("init",
           [](const AnyModel& model, nb::handle key) { return wrap_parameters(model.init(to_array(key, "init"))); })
      .def("apply",
           [](const AnyModel& model, nb::handle parameters, nb::handle batch) {
             return wrap(model.apply(parameters_of(parameters, "apply"), batch_of(batch, "apply")));
           })
      .def("loss",
           [](const AnyModel& model, nb::handle parameters, nb::handle batch) {
             return wrap(model.loss(parameters_of(parameters, "loss"), batch_of(batch, "loss")));
           })
      .def("evaluate",
           [](const AnyModel& model, nb::handle parameters, nb::handle batch) {
             return wrap(model.evaluate(parameters_of(parameters, "evaluate"), batch_of(batch, "evaluate")));
           })
      .def_prop_ro("layer_count", [](const AnyModel& model) { return model.layers() ? model.layers()->count : 0; })
      .def_prop_ro("has_apply", [](const AnyModel& model) { return bool(model.parts().apply); })
      .def_prop_ro("has_loss", [](const AnyModel& model) { return bool(model.parts().loss); })
      .def("logical_axes", [](const AnyModel& model) { return python_axes(model.logical_axes()); })
      .def("sizes", [](const AnyModel& model) { return python_sizes(model.sizes()); })
      .def("with_checkpointing", [](const AnyModel& model, int64_t every, const std::string& policy) {
        return enable_gradient_checkpointing(model, every, policy);
      });
  m.def("infer_sizes", [](const nb::dict& types) { return python_sizes(infer_sizes(types_of_dict(types))); });
  m.def("infer_logical_axes",
        [](const nb::dict& types) { return python_axes(infer_logical_axes(types_of_dict(types))); });
}

}  // namespace capibara::python
