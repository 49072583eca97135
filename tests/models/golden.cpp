// The runner of recorded cases. The kind of a file follows from the fields of its cases.
#include "models/golden.h"

#include <capibara/numpy.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace capibara::models {

namespace {

constexpr double tolerance = 1e-12;

// A number that Python recorded as null.
Array reference(const Value& value) {
  ConfigScope scope = jax::enable_x64();
  std::vector<double> numbers;
  Shape shape;
  auto fill = [&](auto&& self, const Value& entry, std::size_t depth) -> void {
    if (!entry.is_list()) {
      numbers.push_back(entry.number());
      return;
    }
    if (shape.size() == depth) shape.push_back(static_cast<int64_t>(entry.list().size()));
    for (const Value& part : entry.list()) self(self, part, depth + 1);
  };
  fill(fill, value, 0);
  return Array::from_host(DType::float64, shape, numbers.data());
}

}  // namespace

void expect_close(const std::string& key, const Value& got, const Value& wanted) {
  if (wanted.is_dictionary()) {  // recorded for several libraries
    expect_close(key, got, wanted["jax"]);
    return;
  }
  if (got.is_list() && wanted.is_list() && !got.list().empty()) {
    for (std::size_t i = 0; i < got.list().size(); ++i)
      expect_close(concat(key, "[", i, "]"), got.list()[i], wanted.list().at(i));
    return;
  }
  Array expected = reference(wanted);
  if (!got.is_array() && !got.is_number()) throw Mismatch(concat(key, ": expected an array, got ", got.to_string()));
  Array actual = got.is_array() ? got.array() : reference(got);
  if (actual.shape() != expected.shape()) {
    throw Mismatch(concat(key, ": expected ", to_string(expected.type()), ", got ", to_string(actual.type())));
  }
  ConfigScope scope = jax::enable_x64();
  std::vector<double> a = actual.to_vector<double>(), b = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    double error = std::abs(a[i] - b[i]);
    bool equal = a[i] == b[i] || error <= tolerance || error <= tolerance * std::abs(b[i]);
    if (!equal)
      throw Mismatch(
          concat(key, "[", i, "]: expected ", reference(b[i]).to_string(), ", got ", a[i], " (", error, ")"));
  }
}

namespace {

Value input_value(const Value& value, bool list) {
  if (!list) return value;
  ConfigScope scope = jax::enable_x64();
  List arrays;
  for (const Value& entry : value.list()) arrays.push_back(reference(entry));
  return arrays;
}

// The model of a case, with its losses and regularizations if it has any.
Model model_of(const Value& test, const Value& specification) {
  Model model = from_specification(specification);
  if (!test.has("output_specs")) return model;
  TrainModel train(model);
  for (const auto& [output, spec] : test["output_specs"].entries()) {
    const Value& loss = spec["loss"];
    if (!loss.given()) continue;
    Entries connections = {{"input", output}};
    if (spec.has("target_key")) connections.emplace_back("target", spec["target_key"]);
    std::vector<Model> steps;
    if (spec.has("reduce_steps")) {
      for (const Value& step : spec["reduce_steps"].list()) {
        if (!step.is_dictionary()) {
          steps.push_back(from_specification(step));
          continue;
        }
        steps.push_back(make((step.has("fn") ? step["fn"] : step["name"]).text(),
                             step.has("params") ? step["params"].entries() : Entries{}));
      }
    }
    Model loss_model = loss.is_text()
                           ? make(loss.text())
                           : make(loss["fn"].text(), loss.has("params") ? loss["params"].entries() : Entries{});
    train.add_loss(loss_model, steps, connections, spec["loss_coef"]);
  }
  if (test.has("regularizations")) {
    for (const Value& penalty : test["regularizations"].list()) {
      Entries connections;
      for (const auto& [key, value] : penalty.entries()) {
        if (key == "model" || key == "coef" || key == "regex" || key == "reg_key" || key == "args") continue;
        connections.emplace_back(key, value);
      }
      const Value& coefficient = penalty["coef"];
      Value number = coefficient.is_dictionary() ? Value(Tensor{coefficient["tensor"]}) : coefficient;
      Entries others(connections.begin() + 1, connections.end());
      bool pattern = penalty["regex"].is<bool>() && penalty["regex"].boolean();
      train.add_regularization(from_specification(penalty["model"]), number, connections[0].second.text(), pattern,
                               connections[0].first, others);
    }
  }
  if (test["final_loss_combiner"].is_text()) train.set_loss_combiner(make(test["final_loss_combiner"].text()));
  return train.model();
}

Model model_of(const Value& test) { return model_of(test, test["model"]); }

std::set<std::string> names_of(const Value& list) {
  std::set<std::string> names;
  if (list.is_list()) {
    for (const Value& name : list.list()) names.insert(name.text());
  }
  return names;
}

void run_evaluation(const Value& test) {
  Model model = model_of(test);
  bool lists = test["inputs"]["is_list"].is<bool>();
  CompileOptions options{.discard_keys = names_of(test["discard_keys"]), .jit = false};
  ValueMap inputs;
  for (const auto& [key, value] : test["inputs"].entries()) {
    if (key != "is_list") inputs[key] = input_value(value, lists);
  }
  if (test.has("static_keys")) {
    for (const auto& [key, value] : test["static_keys"].entries()) {
      // Results of inner models that a case fixes: they are inputs here.
      std::string own = key.find("TsnePJoint") != std::string::npos ? "p_joint" : key;
      options.constant_keys[own] = value;
    }
  }
  for (const auto& [key, value] : test["results"]["grad"].entries()) {
    if (!options.constant_keys.count(key)) options.trainable_keys.insert(key);
  }
  CompiledModel compiled = compile(model, wide(), options);
  bool train = test.has("output_specs");
  Evaluation result;
  if (train) {
    result = compiled.evaluate_with_gradients(inputs);
  } else {
    ValueMap gradients;
    if (test.has("output_grads")) {
      for (const auto& [key, value] : test["output_grads"].entries()) {
        if (value.is_none()) continue;
        gradients[key == "predictions" ? "prediction" : key] = value;
      }
    }
    result = compiled.evaluate(inputs, {}, gradients);
  }
  for (const auto& [key, wanted] : test["results"]["eval"].entries()) {
    std::string own = key == "predictions" ? "prediction" : key;
    if (!result.outputs.count(own)) throw Mismatch(concat("there is no output '", own, "'"));
    expect_close(key, result.outputs[own], wanted);
  }
  for (const auto& [key, wanted] : test["results"]["grad"].entries()) {
    if (wanted.is_none()) continue;
    if (!result.gradients.count(key)) throw Mismatch(concat("there is no gradient of '", key, "'"));
    expect_close("gradient of " + key, result.gradients[key], wanted);
  }
  for (const auto& [key, value] : result.outputs) {
    if (!test["results"]["eval"].has(key) && !(key == "prediction"))
      throw Mismatch(concat("an output more: '", key, "'"));
  }
  if (test.has("reference_shapes")) {
    auto shapes = compiled.get_shapes();
    for (const auto& [key, wanted] : test["reference_shapes"].entries()) {
      for (std::size_t i = 0; i < wanted.list().size(); ++i) {
        if (wanted.list()[i].is_none() || !shapes.count(key) || !shapes[key]) continue;
        if ((*shapes[key]).at(i) != wanted.list()[i].integer()) throw Mismatch(concat("shape of '", key, "'"));
      }
    }
  }
}

// One primitive: its only output, and gradients of its inputs.
void run_primitive(const Value& test) {
  Model model = from_specification(test["model"]);
  CompileOptions options{.jit = false};
  ValueMap inputs;
  for (const auto& [key, value] : test["inputs"].entries()) inputs[key] = value;
  if (test.has("static_inputs")) {
    for (const auto& [key, value] : test["static_inputs"].entries()) options.constant_keys[key] = value;
  }
  // An argument of the model here that was an input in the recorded function's case.
  if (model.type_name() == "LeakyRelu" && !test["model"].is_dictionary()) model = make("LeakyRelu", {{"slope", 0.2}});
  const Value& gradients = test["results"]["grad"];
  if (gradients.is_dictionary()) {
    for (const auto& entry : gradients.entries()) options.trainable_keys.insert(entry.first);
  }
  CompiledModel compiled = compile(model, wide(), options);
  std::string output = compiled.output_keys().at(0);
  Evaluation result;
  if (test.has("output_grad"))
    result = compiled.evaluate(inputs, {}, {{output, test["output_grad"]}});
  else
    result.outputs = compiled.evaluate(inputs);
  expect_close(output, result.outputs[output], test["results"]["eval"]);
  if (!gradients.is_dictionary()) return;
  for (const auto& [key, wanted] : gradients.entries()) {
    if (!result.gradients.count(key)) throw Mismatch(concat("there is no gradient of '", key, "'"));
    expect_close("gradient of " + key, result.gradients[key], wanted);
  }
}

void expect_names(const char* what, std::vector<std::string> got, const Value& wanted) {
  std::vector<std::string> expected;
  for (const Value& name : wanted.list()) expected.push_back(name.text());
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  if (got == expected) return;
  auto text = [](const std::vector<std::string>& names) {
    std::string joined;
    for (const std::string& name : names) joined += name + " ";
    return joined;
  };
  throw Mismatch(concat(what, ": expected ", text(expected), "got ", text(got)));
}

void run_static_keys(const Value& test) {
  CompileOptions options{.discard_keys = names_of(test["discard_keys"]), .inference = true};
  ConfigScope scope = jax::enable_x64();
  for (const auto& [key, shape] : test["static_input_shapes"].entries()) {
    options.constant_keys[key] = jax::numpy::ones(Shape(shape.integers()), {.dtype = DType::float64});
  }
  expect_names("static keys", compile(model_of(test), wide(), options).static_keys(), test["results"]["static_keys"]);
}

void run_discard_keys(const Value& test) {
  CompileOptions options{.discard_keys = names_of(test["discard_keys"]), .inference = true};
  CompiledModel compiled = compile(model_of(test), wide(), options);
  expect_names("outputs", compiled.output_keys(), test["results"]["output_keys"]);
  expect_names("discarded keys", compiled.discarded_keys(), test["results"]["discard_keys"]);
}

// Shapes among the arguments of a model with losses may belong to targets, which only the whole model has.
Value without_shapes(const Value& model) {
  Entries fields;
  for (const auto& [key, value] : model.entries()) {
    if (key != "args") {
      fields.emplace_back(key, value);
      continue;
    }
    Entries arguments;
    for (const auto& argument : value.entries()) {
      if (argument.first != "shapes") arguments.push_back(argument);
    }
    fields.emplace_back(key, Value::dictionary(arguments));
  }
  return Value::dictionary(fields);
}

void run_shapes(const Value& test) {
  auto shapes = inferred_shapes(test, {});
  std::size_t compared = 0;
  for (const auto& [recorded, wanted] : test["results"].entries()) {
    const std::string key = recorded == "b" ? "bias" : recorded;
    if (!shapes.count(key)) continue;  // inner results have other names here; weights were recorded as [input, output]
    ++compared;
    std::vector<std::optional<int64_t>> expected;
    for (const Value& size : wanted.list())
      expected.push_back(size.is_none() ? std::nullopt : std::optional(size.integer()));
    if (shapes[key] != expected) throw Mismatch(concat("shape of '", key, "' should be ", wanted.to_string()));
  }
  if (compared == 0) throw Mismatch("no recorded shape was found");
}

void run_error(const Value& test) {
  const std::string& kind = test["error_info"]["error_type"].text();
  try {
    run_evaluation(test);
  } catch (const KeyError&) {
    if (kind == "KeyError") return;
    throw;
  } catch (const ValueError&) {
    if (kind == "ValueError") return;
    throw;
  } catch (const Mismatch&) {
    if (kind == "AssertionError") return;
    throw;
  }
  throw Mismatch(concat("expected ", kind, ", got a result"));
}

// The gradient of broadcast arrays: summed over the broadcast dimensions.
void run_reduction(const Value& test) {
  ConfigScope scope = jax::enable_x64();
  Shape shape(test["kwargs"]["input_shape"].integers());
  Array gradient = reference(test["kwargs"]["gradient"]);
  Model model;
  model |= make("BroadcastTo", {{"shape", Value(gradient.shape())}}).connect({{"input", "x"}, {"output", "y"}});
  Shape target = gradient.shape();
  while (target.size() > shape.size() && target[0] == 1) target.erase(target.begin());
  Model expanded;
  expanded |= make("Multiply").connect({{"left", "x"}, {"right", "one"}, {"output", "y"}});
  CompiledModel compiled = compile(expanded, wide(), {.data_keys = {"one"}, .trainable_keys = {"x"}, .jit = false});
  ValueMap x = {{"x", jax::numpy::ones(shape, {.dtype = DType::float64})}};
  Array ones = jax::numpy::ones(target.size() < shape.size() ? shape : target, {.dtype = DType::float64});
  Evaluation result = compiled.evaluate(x, {{"one", ones}}, {{"y", gradient.reshape(ones.shape())}});
  expect_close("gradient", result.gradients["x"], test["result"]);
}

void run_case(const std::string& file, const Value& test) {
  if (test.has("error_info")) return run_error(test);
  if (test.has("kwargs")) return run_reduction(test);
  if (test.has("iterations") || test.has("input_info") || test.has("static_input_info")) return run_random(test);
  if (test["results"].has("static_keys")) return run_static_keys(test);
  if (test["results"].has("output_keys")) return run_discard_keys(test);
  if (file.find("shape") != std::string::npos) return run_shapes(test);
  if (test.has("output_grad") || !test["results"]["eval"].is_dictionary() || test["results"]["eval"].has("jax"))
    return run_primitive(test);
  run_evaluation(test);
}

}  // namespace

Shapes inferred_shapes(const Value& test, const std::vector<std::pair<std::string, ShapeTemplate>>& besides) {
  CompileOptions options{.shapes = besides, .inference = true};
  auto require = [&](const Value& shapes) {
    for (const auto& [key, shape] : shapes.entries()) options.shapes.emplace_back(key, ShapeTemplate(shape));
  };
  for (const char* field : {"static_shapes", "static_input_shapes", "shapes"}) {
    if (test.has(field)) require(test[field]);
  }
  const Value& model = test["model"];
  const bool whole = test.has("output_specs") && model.has("args") && model["args"].has("shapes");
  if (whole) require(model["args"]["shapes"]);
  return compile(model_of(test, whole ? without_shapes(model) : model), wide(), options).get_shapes();
}

Value read_cases(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return parse_json(text.str());
}

std::string golden_folder() {
  const char* given = std::getenv("CAPIBARA_GOLDEN_MODELS");
  return given ? given : "";
}

std::vector<CaseResult> run_golden_folder(const std::string& folder) {
  std::vector<CaseResult> results;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const Value tests = read_cases(path.string());
    for (const auto& [name, test] : tests.entries()) {
      CaseResult result{path.filename().string(), name, {}};
      try {
        run_case(result.file, test);
      } catch (const std::exception& error) {
        result.failure = error.what();
      }
      results.push_back(result);
    }
  }
  return results;
}

}  // namespace capibara::models
