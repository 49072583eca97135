// Compiled models and training models from Python.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "models.h"

namespace capibara::python {

namespace {

nb::dict python_map(const ml::ValueMap& map) {
  nb::dict result;
  for (const auto& [key, value] : map) result[key.c_str()] = python_value(value);
  return result;
}

ml::ValueMap value_map(nb::handle dictionary) {
  ml::ValueMap map;
  if (dictionary.is_none()) return map;
  for (auto& [key, value] : entries_of(dictionary)) map[key] = std::move(value);
  return map;
}

nb::list shape_list(const std::vector<std::optional<int64_t>>& sizes) {
  nb::list list;
  for (const std::optional<int64_t>& size : sizes) {
    if (size)
      list.append(*size);
    else
      list.append(nb::none());
  }
  return list;
}

std::set<std::string> key_set(nb::handle keys) {
  std::set<std::string> result;
  if (keys.is_none()) return result;
  for (nb::handle key : keys) result.insert(key_text(key));
  return result;
}

}  // namespace

void bind_compiled(nb::module_& m) {
  nb::class_<ml::CompiledModel> compiled(m, "CompiledModel");
  compiled.def(
      "_evaluate",
      [](const ml::CompiledModel& self, nb::handle params, nb::handle data, nb::handle output_gradients) -> nb::object {
        ml::ValueMap given = value_map(params), fixed = value_map(data);
        if (output_gradients.is_none() || output_gradients.ptr() == Py_False)
          return python_map(self.evaluate(given, fixed));
        ml::Evaluation result = output_gradients.ptr() == Py_True
                                    ? self.evaluate_with_gradients(given, fixed)
                                    : self.evaluate(given, fixed, value_map(output_gradients));
        return nb::make_tuple(python_map(result.outputs), python_map(result.gradients));
      },
      nb::arg("params").none(), nb::arg("data").none(), nb::arg("output_gradients").none());
  compiled.def("_randomize_params",
               [](const ml::CompiledModel& self, int64_t seed) { return python_map(self.randomize_params(seed)); });
  compiled.def("get_shapes", [](const ml::CompiledModel& self) {
    nb::dict result;
    for (const auto& [key, shape] : self.get_shapes()) {
      if (shape)
        result[key.c_str()] = shape_list(*shape);
      else
        result[key.c_str()] = nb::none();
    }
    return result;
  });
  compiled.def_prop_ro("input_keys", &ml::CompiledModel::input_keys);
  compiled.def_prop_ro("output_keys", &ml::CompiledModel::output_keys);
  compiled.def_prop_ro("trainable_keys", &ml::CompiledModel::trainable_keys);
  compiled.def_prop_ro("data_keys", &ml::CompiledModel::data_keys);
  compiled.def_prop_ro("static_keys", &ml::CompiledModel::static_keys);
  compiled.def_prop_ro("discarded_keys", &ml::CompiledModel::discarded_keys);
  compiled.def_prop_ro("parameter_count", &ml::CompiledModel::parameter_count);
  compiled.def("_summary", &ml::CompiledModel::summary);
  compiled.def("svg", &ml::CompiledModel::svg);
  compiled.def("text", &ml::CompiledModel::text);
  compiled.def(
      "program_text",
      [](const ml::CompiledModel& self, nb::handle params, nb::handle data) {
        return self.program(value_map(params), value_map(data)).to_string();
      },
      nb::arg("params").none(), nb::arg("data").none() = nb::none());
  compiled.def("propose_shardings", &ml::CompiledModel::propose_shardings);

  m.def("compile_model", [](const ml::Model& model, nb::handle dtype, bool jit, const std::string& precision,
                            const std::vector<int64_t>& device_mesh, const nb::dict& options) {
    ml::Backend backend{.dtype = to_dtype(dtype), .jit = jit, .precision = precision, .device_mesh = device_mesh};
    ml::CompileOptions chosen;
    chosen.shapes = shapes_of(options["shapes"]);
    for (auto [key, value] : nb::cast<nb::dict>(options["constant_keys"]))
      chosen.constant_keys[key_text(key)] = model_value(value);
    chosen.data_keys = key_set(options["data_keys"]);
    chosen.discard_keys = key_set(options["discard_keys"]);
    chosen.trainable_keys = key_set(options["trainable_keys"]);
    chosen.inference = nb::cast<bool>(options["inference"]);
    chosen.jit = jit;
    chosen.safe_names = nb::cast<bool>(options["safe_names"]);
    chosen.safe_shapes = nb::cast<bool>(options["safe_shapes"]);
    chosen.file_path = nb::cast<std::string>(options["file_path"]);
    return ml::compile(model, backend, chosen);
  });
}

void bind_train_model(nb::module_& m) {
  nb::class_<ml::TrainModel> train(m, "TrainModel");
  train.def(nb::init<const ml::Model&>());
  train.def(
      "add_loss",
      [](ml::TrainModel& self, const ml::Model& loss, std::optional<std::vector<ml::Model>> reduce_steps,
         nb::handle coef, const nb::kwargs& connections) {
        self.add_loss(loss, reduce_steps.value_or(std::vector<ml::Model>{}), entries_of(connections),
                      model_value(coef));
      },
      nb::arg("loss_model"), nb::arg("reduce_steps").none() = nb::none(), nb::arg("coef").none() = nb::none(),
      nb::arg("connections"));
  train.def(
      "add_regularization",
      [](ml::TrainModel& self, const ml::Model& model, nb::handle coef, const nb::kwargs& connections) {
        // The first keyword is the penalized quantity.
        std::optional<std::pair<std::string, nb::handle>> first;
        ml::Entries others;
        for (auto [key, value] : connections) {
          if (!first)
            first = {nb::cast<std::string>(key), value};
          else
            others.emplace_back(nb::cast<std::string>(key), model_value(value));
        }
        if (!first) throw TypeError("models: add_regularization: name a key: input='weight'");
        bool pattern = nb::hasattr(first->second, "pattern");
        std::string input = pattern ? nb::cast<std::string>(first->second.attr("pattern")) : key_text(first->second);
        self.add_regularization(model, model_value(coef), input, pattern, first->first, others);
      },
      nb::arg("model"), nb::arg("coef"), nb::arg("connections"));
  train.def(
      "add_metric",
      [](ml::TrainModel& self, const ml::Model& metric, std::optional<std::vector<ml::Model>> reduce_steps,
         std::optional<std::string> key_name, const nb::kwargs& connections) {
        self.add_metric(metric, reduce_steps.value_or(std::vector<ml::Model>{}), entries_of(connections),
                        key_name.value_or(""));
      },
      nb::arg("model"), nb::arg("reduce_steps").none() = nb::none(), nb::arg("key_name").none() = nb::none(),
      nb::arg("connections"));
  train.def("set_loss_combiner", &ml::TrainModel::set_loss_combiner);
  train.def("model", &ml::TrainModel::model);
}

}  // namespace capibara::python
