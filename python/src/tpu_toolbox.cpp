// TPUConfig, memory, performance and sharding of the TPU toolbox from Python.
#include <capibara/tpu.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "calls.h"
#include "tpu.h"
#include "training_models.h"

namespace capibara::python {

namespace {

std::string shown(nb::handle object) { return nb::cast<std::string>(nb::repr(object)); }
// The text, or the repr of another object, which will be rejected where text is expected.
std::string text_or_repr(nb::handle object) {
  return PyUnicode_Check(object.ptr()) ? nb::cast<std::string>(object) : shown(object);
}

// ---- fields ------------------------------------------------------------------------------------------------------

// A field's value; an object of any other type becomes its repr, which every field rejects.
tpu::FieldValue field_value(nb::handle given) {
  PyObject* object = given.ptr();
  if (given.is_none()) return {};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow ? tpu::FieldValue(overflow * 1e30) : tpu::FieldValue(static_cast<int64_t>(value));
  }
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyUnicode_Check(object)) return nb::cast<std::string>(given);
  std::vector<int64_t> sizes;
  if (nb::hasattr(given, "shape") && nb::hasattr(given, "item") && nb::len(nb::object(given.attr("shape"))) == 0)
    return field_value(given.attr("item")());
  if ((PyTuple_Check(object) || PyList_Check(object)) && nb::try_cast(given, sizes)) return sizes;
  return shown(given);
}

nb::object python_value(const tpu::FieldValue& value) {
  if (const auto* sizes = std::get_if<std::vector<int64_t>>(&value)) return int_tuple(*sizes);
  if (const auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  if (const auto* integer = std::get_if<int64_t>(&value)) return nb::int_(*integer);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return nb::str(text->c_str());
  return nb::none();
}

nb::dict fields_of(const tpu::TPUConfig& config) {
  nb::dict fields;
  for (const std::string& name : tpu::TPUConfig::fields()) fields[name.c_str()] = python_value(config.get(name));
  return fields;
}

nb::tuple figure(const tpu::Figure& figure) { return nb::make_tuple(figure.value, figure.origin); }

nb::object whole_if(double number) {
  if (number == std::floor(number)) return nb::int_(static_cast<int64_t>(number));
  return nb::float_(number);
}

nb::dict metrics_dict(const tpu::PerformanceMetrics& metrics) {
  nb::dict d;
  d["total_tflops"] = metrics.total_tflops;
  d["memory_bandwidth_gb_s"] = metrics.memory_bandwidth_gb_s;
  d["interconnect_bandwidth_gb_s"] = metrics.interconnect_bandwidth_gb_s;
  d["utilization"] = figure(metrics.utilization);
  d["throughput_samples_s"] = figure(metrics.throughput_samples_s);
  return d;
}

nb::dict memory_config_dict(const tpu::MemoryConfig& memory) {
  nb::dict d;
  d["use_mixed_precision"] = memory.use_mixed_precision;
  d["compute_dtype"] = memory.compute_dtype;
  d["param_dtype"] = memory.param_dtype;
  d["memory_per_chip"] = memory.memory_per_chip;
  d["usable_gib_per_device"] = memory.usable_gib_per_device;
  d["remat_policy"] = memory.remat_policy;
  d["memory_optimization"] = memory.memory_optimization;
  return d;
}

nb::tuple spec_entries(const PartitionSpec& spec) {
  nb::list entries;
  for (const AxisList& axes : spec.dims) entries.append(nb::tuple(nb::cast(axes)));
  return nb::tuple(entries);
}

// ---- requests ----------------------------------------------------------------------------------------------------

// The name of a preset, a dictionary of sizes, or the name and the sizes of a model of the protocol.
tpu::PlannedModel planned_model(nb::handle given, const std::string& operation) {
  if (PyUnicode_Check(given.ptr())) return nb::cast<std::string>(given);
  if (PyTuple_Check(given.ptr())) return {nb::cast<std::string>(given[0]), model_sizes(nb::cast<nb::dict>(given[1]))};
  const nb::dict sizes = nb::cast<nb::dict>(given);
  for (auto [key, value] : sizes) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    if (name == "name" || name == "kind") continue;
    const tpu::FieldValue size = field_value(value);
    const auto* integer = std::get_if<int64_t>(&size);
    if ((integer && *integer >= 0) || std::holds_alternative<bool>(size)) continue;
    throw TypeError(
        concat(operation, ": expected a number as '", name, "' of the sizes (argument 'model'), got ", shown(value)));
  }
  return architecture_of(sizes);
}

double positive_number(nb::handle given, const std::string& operation, const char* name) {
  double value = 0;
  if (PyBool_Check(given.ptr()) || !nb::try_cast(given, value) || !(value > 0))
    throw tpu::TPUError(concat(operation, ": ", name, " is a positive number, got ", shown(given)));
  return value;
}

int64_t positive_length(nb::handle given, const std::string& operation) {
  const double value = positive_number(given, operation, "sequence_length");
  if (value != std::floor(value) || value >= 0x1p53)
    throw tpu::TPUError(concat(operation, ": sequence_length is a whole number of tokens, got ", shown(given)));
  return static_cast<int64_t>(value);
}

std::string text_of(nb::handle given, const std::string& operation, const char* expected, const char* argument) {
  if (given.is_none()) return "";
  if (PyUnicode_Check(given.ptr())) return nb::cast<std::string>(given);
  throw TypeError(concat(operation, ": expected ", expected, " (argument '", argument, "'), got ", shown(given)));
}

// Builds a request from the named arguments of a Python function.
tpu::PlanRequest plan_request(const std::string& operation, const nb::dict& given) {
  tpu::PlanRequest request{planned_model(given["model"], operation)};
  request.sequence_length = positive_length(given["sequence_length"], operation);
  if (!nb::handle(given["batch_size"]).is_none())
    request.batch_size = positive_number(given["batch_size"], operation, "batch_size");
  request.tpu = text_of(given["tpu"], operation, "the name of a slice, such as 'v4-8'", "tpu");
  if (given.contains("mesh"))
    request.mesh = text_of(given["mesh"], operation, "a text such as 'fsdp=16,tensor=4'", "mesh");
  if (given.contains("remat")) request.remat = text_or_repr(given["remat"]);
  if (given.contains("flash")) request.flash = nb::cast<bool>(given["flash"]);
  return request;
}

// Adds the inputs that an answer is for.
template <class Answer>
nb::dict answer_of(nb::dict d, const Answer& answer) {
  d["tpu"] = answer.tpu;
  d["batch_size"] = whole_if(answer.batch_size);
  d["assumed"] = nb::cast(answer.assumed);
  return d;
}

nb::dict described_dict(nb::handle model, const std::string& operation) {
  const tpu::ModelDescription described = describe(planned_model(model, operation), operation);
  nb::dict d = model_dict(described.sizes);
  d["parameters"] = described.parameters;
  d["inferred"] = described.inferred;
  d["assumptions"] = nb::cast(described.assumptions);
  return d;
}

nb::dict bottlenecks_dict(const tpu::BottleneckAnalysis& found) {
  nb::dict d;
  d["origin"] = "modelled";
  d["compute_bound"] = figure(found.compute_bound);
  d["memory_bound"] = figure(found.memory_bound);
  d["communication_bound"] = figure(found.communication_bound);
  d["bound"] = found.bound;
  nb::list texts;
  for (const tpu::Recommendation& one : found.recommendations) texts.append(one.text);
  d["recommendations"] = texts;
  return answer_of(d, found);
}

nb::dict diagnosis_dict(const nb::dict& request, nb::handle target, nb::handle load_batch) {
  const char* operation = "diagnose_performance";
  tpu::DiagnosisTarget wanted;
  if (!target.is_none()) wanted.target_tflops = positive_number(target, operation, "target_tflops");
  if (!load_batch.is_none()) wanted.load_batch = [&] { return nb::cast<bool>(load_batch()); };
  const tpu::PerformanceDiagnosis found = diagnose_performance(plan_request(operation, request), wanted);
  nb::dict d;
  d["origin"] = "modelled";
  d["tflops"] = figure(found.tflops);
  d["target_tflops"] = target;
  nb::list issues;
  for (const tpu::PerformanceIssue& issue : found.issues) {
    nb::dict row;
    row["problem"] = issue.problem;
    row["impact"] = issue.impact;
    row["solution"] = issue.solution;
    issues.append(row);
  }
  d["issues"] = issues;
  return answer_of(d, found);
}

nb::tuple optimal_batch(nb::handle model, nb::handle length, nb::handle utilization, nb::handle memory, nb::handle tpu,
                        nb::handle version, bool flash) {
  const char* operation = "find_optimal_batch_size";
  tpu::BatchSizeRequest request{planned_model(model, operation), positive_length(length, operation)};
  if (PyBool_Check(utilization.ptr()) || !nb::try_cast(utilization, request.target_utilization)) {
    throw tpu::TPUError(concat(operation, ": target_utilization is above 0 and at most 1, got ", shown(utilization)));
  }
  double gigabytes = 0;
  if (!memory.is_none()) {
    if (PyBool_Check(memory.ptr()) || !nb::try_cast(memory, gigabytes))
      throw tpu::TPUError(concat(operation, ": available_memory_gb is that of whole chips, got ", shown(memory)));
    request.available_memory_gb = gigabytes;
  }
  request.tpu = text_of(tpu, operation, "the name of a slice, such as 'v4-8'", "tpu");
  request.tpu_version = text_or_repr(version);
  request.flash = flash;
  const tpu::PlannedBatch batch = find_optimal_batch_size(request);
  return nb::make_tuple(batch.sequences, batch.origin, batch.tpu, batch.assumed);
}

tpu::MemoryOptimizer memory_optimizer(nb::handle strategy, bool rematerialization, bool checkpointing,
                                      nb::handle layers) {
  tpu::MemoryOptions options;
  options.strategy = text_or_repr(strategy);
  options.enable_rematerialization = rematerialization;
  options.gradient_checkpointing = checkpointing;
  if (PyBool_Check(layers.ptr()) || !nb::try_cast(layers, options.activation_checkpointing_layers)) {
    throw tpu::TPUError(concat(
        "MemoryOptimizer: activation_checkpointing_layers is a number of layers, at least 1, got ", shown(layers)));
  }
  return tpu::MemoryOptimizer(options);
}

// ---- sharding ----------------------------------------------------------------------------------------------------

tpu::ShardingChoice sharding_choice(nb::handle strategy, nb::handle rules) {
  tpu::ShardingChoice choice;
  if (rules.is_none()) {
    choice.strategy = text_or_repr(strategy);
    return choice;
  }
  for (nb::handle rule : rules) {
    choice.rules.push_back({nb::cast<std::string>(rule[0]), nb::cast<std::vector<std::string>>(rule[1]),
                            nb::cast<std::string>(rule[2]), nb::cast<std::string>(rule[3])});
  }
  choice.rules.push_back({"", {}, "", "everything else is whole on every device"});
  return choice;
}

// (spec of each parameter in the order given, table as text) for [(name, array or its type)].
nb::tuple sharding_of(const std::string& operation, const nb::list& parameters,
                      const std::vector<std::string>& axis_names, const std::vector<int64_t>& axis_sizes,
                      nb::handle strategy, nb::handle rules) {
  ParameterTypes types;
  for (nb::handle row : parameters) {
    const std::string name = nb::cast<std::string>(row[0]);
    if (!types.emplace(name, leaf_type(row[1], operation.c_str()).strong()).second)
      throw ValueError(concat(operation, ": two parameters are called '", name, "' (argument 'model')"));
  }
  const training::ShardingTable table =
      tpu::sharding_table(types, Mesh{axis_names, axis_sizes, {}}, sharding_choice(strategy, rules), operation);
  nb::list specs;
  for (nb::handle row : parameters) specs.append(spec_entries(table.at(nb::cast<std::string>(row[0])).spec));
  return nb::make_tuple(specs, table.text());
}

nb::dict python_strategies() {
  nb::dict all;
  for (const std::string& name : training::sharding_strategies()) {
    nb::list rules;
    for (const training::ShardingRule& rule : training::sharding_strategy(name))
      rules.append(nb::make_tuple(rule.pattern, rule.dimensions, rule.largest, rule.why));
    all[name.c_str()] = rules;
  }
  return all;
}

void bind_tpu_config(nb::module_& m) {
  nb::class_<tpu::TPUConfig>(m, "TPUConfig")
      .def("__init__",
           [](tpu::TPUConfig* self, const nb::dict& given) {
             tpu::TPUSettings settings;
             for (auto [name, value] : given) set_field(settings, nb::cast<std::string>(name), field_value(value));
             new (self) tpu::TPUConfig(std::move(settings));
           })
      .def(
          "set",
          [](tpu::TPUConfig& self, const std::string& field, nb::handle value) { self.set(field, field_value(value)); },
          nb::arg("field"), nb::arg("value").none())
      .def("fields", fields_of)
      .def("validate", &tpu::TPUConfig::validate)
      .def_prop_ro("memory_bytes", &tpu::TPUConfig::memory_bytes)
      .def_prop_ro("slice_name", &tpu::TPUConfig::slice_name)
      .def("get_total_tflops", &tpu::TPUConfig::get_total_tflops)
      .def("remat_policy", &tpu::TPUConfig::remat_policy)
      .def(
          "training",
          [](const tpu::TPUConfig& self, nb::handle model, nb::handle length, nb::handle batch) {
            const char* operation = "TPUConfig.training";
            std::optional<double> per_chip;
            if (!batch.is_none()) per_chip = positive_number(batch, operation, "batch_size_per_chip");
            return training_dict(
                self.training(planned_model(model, operation), positive_length(length, operation), per_chip));
          },
          nb::arg("model"), nb::arg("sequence_length").none(), nb::arg("batch_size_per_chip").none())
      .def(
          "get_performance_metrics",
          [](const tpu::TPUConfig& self, nb::handle model, nb::handle length) {
            const char* operation = "TPUConfig.get_performance_metrics";
            return metrics_dict(
                self.get_performance_metrics(planned_model(model, operation), positive_length(length, operation)));
          },
          nb::arg("model"), nb::arg("sequence_length").none())
      .def("sharding_spec",
           [](const tpu::TPUConfig& self, const std::vector<int64_t>& shape) {
             return spec_entries(tpu::sharding_spec(Shape(shape), self.logical_mesh()));
           })
      .def("logical_mesh", &tpu::TPUConfig::logical_mesh)
      .def("get_memory_config", [](const tpu::TPUConfig& self) { return memory_config_dict(self.get_memory_config()); })
      .def("detect_hotspots",
           [](tpu::TPUConfig& self, nb::handle load, double threshold) {
             self.set_load_threshold(threshold);
             return self.detect_hotspots(to_array(load, "detect_hotspots"));
           })
      .def("optimize_sharding", [](const tpu::TPUConfig& self) { return spec_entries(self.optimize_sharding()); })
      .def("xla_flags", &tpu::TPUConfig::xla_flags)
      .def("environment", &tpu::TPUConfig::environment);
  m.def("config_fields", &tpu::TPUConfig::fields);
  m.def("environment_text", tpu::environment_text);
  m.def("chip_of_this_machine", tpu::chip_of_this_machine);
  m.def("platforms", [](std::map<std::string, std::string> environment) {
    tpu::add_platforms(environment, tpu::chip_of_this_machine().has_value());
    return environment;
  });
}

}  // namespace

void bind_tpu_toolbox(nb::module_& m) {
  bind_tpu_config(m);
  m.def("describe", described_dict);
  m.def("estimate_step", [](const nb::dict& request) {
    const tpu::StepEstimate found = tpu::estimate_step(plan_request("estimate_step", request));
    return answer_of(step_dict(found.step), found);
  });
  m.def("analyze_bottlenecks", [](const nb::dict& request) {
    return bottlenecks_dict(tpu::analyze_bottlenecks(plan_request("analyze_bottlenecks", request)));
  });
  m.def("diagnose_performance", diagnosis_dict, nb::arg("request"), nb::arg("target_tflops").none(),
        nb::arg("load_batch").none());
  m.def("find_optimal_batch_size", optimal_batch, nb::arg("model"), nb::arg("sequence_length").none(),
        nb::arg("target_utilization").none(), nb::arg("available_memory_gb").none(), nb::arg("tpu").none(),
        nb::arg("tpu_version").none(), nb::arg("flash"));
  nb::class_<tpu::MemoryOptimizer>(m, "MemoryOptimizer")
      .def(
          "__init__",
          [](tpu::MemoryOptimizer* self, nb::handle strategy, bool rematerialization, bool checkpointing,
             nb::handle layers) {
            new (self) tpu::MemoryOptimizer(memory_optimizer(strategy, rematerialization, checkpointing, layers));
          },
          nb::arg("strategy").none(), nb::arg("enable_rematerialization"), nb::arg("gradient_checkpointing"),
          nb::arg("layers").none())
      .def_prop_ro("remat", &tpu::MemoryOptimizer::remat)
      .def("estimate_memory", [](const tpu::MemoryOptimizer& self, const nb::dict& request) {
        const tpu::MemoryEstimate found =
            self.estimate_memory(plan_request("MemoryOptimizer.estimate_memory", request));
        nb::dict d = memory_dict(found.plan);
        d["total_gb"] = figure(found.total_gb);
        d["remat"] = found.remat;
        return answer_of(d, found);
      });
  m.def("sharding", sharding_of, nb::arg("operation"), nb::arg("parameters"), nb::arg("axis_names"),
        nb::arg("axis_sizes"), nb::arg("strategy").none(), nb::arg("rules").none());
  m.def("strategies", python_strategies);
}

}  // namespace capibara::python
