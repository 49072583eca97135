// Randomized cases: inferred shapes, the compiled program against single operations, gradients against differences.
#include "models/golden.h"

#include <capibara/numpy.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace capibara::models {

namespace {

class Randomizer {
 public:
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  Shape shape(const Value& intervals) {
    Shape result;
    for (const Value& interval : intervals.list())
      result.push_back(between(interval.list()[0].integer(), interval.list()[1].integer()));
    return result;
  }
  Value pick(const Value& options) {
    const List& list = options.list();
    if (!list.empty() && list[0].is_list()) {  // one choice per entry
      List picked;
      for (const Value& entry : list) picked.push_back(pick(entry));
      return picked;
    }
    bool interval = list.size() == 2 && list[0].is<int64_t>() && list[1].is<int64_t>();
    if (interval) return between(list[0].integer(), list[1].integer());
    return list[static_cast<std::size_t>(between(0, static_cast<int64_t>(list.size()) - 1))];
  }
  Array values(const Value& info, const Shape& shape) {
    std::vector<double> numbers(static_cast<std::size_t>(element_count(shape)));
    if (info["mode"].is_text() && info["mode"].text() == "int") {
      const Value& interval = info["interval"];
      std::vector<int64_t> whole;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        whole.push_back(between(interval.list()[0].list()[0].integer(), interval.list()[1].list()[0].integer()));
      }
      return Array::from_host(DType::int64, shape, whole.data());
    }
    double total = 0;
    for (double& number : numbers) {
      number = normal_(engine_);
      if (info["is_positive"].is<bool>()) number = std::abs(number);
      total += number;
    }
    if (info["normalize"].is<bool>()) {
      for (double& number : numbers) number /= total;
    }
    Array array = Array::from_host(DType::float64, shape, numbers.data());
    return info["bool"].is<bool>() ? array > Array(0.0) : array;
  }

 private:
  std::mt19937 engine_{42};
  std::normal_distribution<double> normal_;
};

bool close(double a, double b, double limit) {
  return a == b || std::abs(a - b) <= limit * std::max({1.0, std::abs(a), std::abs(b)}) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace

void run_random(const Value& test) {
  ConfigScope scope = jax::enable_x64();
  Randomizer random;
  const Value& spec = test["model"];
  for (int repetition = 0; repetition < 2; ++repetition) {
    std::map<std::string, Shape> shared;
    if (test.has("random_shapes")) {
      for (const auto& [name, shape] : test["random_shapes"].entries()) shared[name] = random.shape(shape);
    }
    Entries arguments;
    if (spec.has("regular_args")) arguments = spec["regular_args"].entries();
    if (spec.has("randomized_args")) {
      for (const auto& [key, options] : spec["randomized_args"].entries())
        arguments.emplace_back(key, random.pick(options));
    }
    Entries model_spec = {{"name", spec["name"]}, {"args", Value::dictionary(arguments)}};
    for (const char* field : {"assigned_differentiabilities", "assigned_types", "submodels", "connections"}) {
      if (spec.has(field)) model_spec.emplace_back(field, spec[field]);
    }
    Model model = from_specification(Value::dictionary(model_spec));
    auto shape_of = [&](const Value& shape) { return shape.is_text() ? shared.at(shape.text()) : random.shape(shape); };
    CompileOptions options;
    options.inference = test["inference"].is<bool>() && test["inference"].boolean();
    if (test.has("static_input_info")) {
      for (const auto& [key, info] : test["static_input_info"].entries()) {
        if (info.is_dictionary())
          options.constant_keys[key] = random.values(info, shape_of(info["shapes"]));
        else
          options.constant_keys[key] = Value(info).is_list() && info.list()[0].is_list() ? Value([&] {
            std::vector<int64_t> numbers;
            for (const Value& interval : info.list())
              numbers.push_back(random.between(interval.list()[0].integer(), interval.list()[1].integer()));
            return Value(array<int64_t>(numbers));
          }())
                                                                                         : info;
      }
    }
    std::map<std::string, Value> infos;
    if (test.has("input_info")) {
      for (const auto& [key, info] : test["input_info"].entries()) {
        infos[key] = info;
        Shape shape = shape_of(info["shapes"]);
        List sizes(shape.begin(), shape.end());
        options.shapes.emplace_back(key, ShapeTemplate(Value(sizes)));
      }
    }
    for (const std::string& key : model.input_keys()) {
      bool free = key[0] != '$' && key != "threshold" && key != "quantile" && !options.constant_keys.count(key);
      bool tensor = infos.count(key) || model.is_tensor(key);
      if (free && tensor) options.trainable_keys.insert(key);
    }
    CompiledModel compiled = compile(model, {.dtype = DType::float64}, options);
    // Shapes that a case does not specify become scalars.
    std::size_t given = options.shapes.size();
    for (const auto& [key, shape] : compiled.get_shapes()) {
      if (!shape && options.trainable_keys.count(key)) options.shapes.emplace_back(key, ShapeTemplate());
    }
    if (options.shapes.size() > given) compiled = compile(model, {.dtype = DType::float64}, options);
    ValueMap params;
    const ValueMap drawn = compiled.randomize_params(repetition);
    for (const auto& [key, value] : drawn) {
      params[key] = random.values(infos.count(key) ? infos[key] : Value(), value.array().shape());
    }
    ValueMap outputs = compiled.evaluate(params);
    auto shapes = compiled.get_shapes();
    for (const auto& [key, value] : outputs) {
      if (!value.is_array() || !shapes.count(key) || !shapes[key]) continue;
      for (std::size_t i = 0; i < shapes[key]->size(); ++i) {
        if ((*shapes[key])[i] != value.array().shape()[i])
          throw Mismatch(concat("the inferred shape of '", key, "' is wrong"));
      }
    }
    // Operation by operation, without a compiler.
    options.jit = false;
    CompiledModel plain = compile(model, wide(), options);
    for (const auto& [key, value] : plain.evaluate(params)) {
      std::vector<double> a = value.array().to_vector<double>(), b = outputs[key].array().to_vector<double>();
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (!close(a[i], b[i], 1e-10))
          throw Mismatch(concat("'", key, "': the program gives ", b[i], ", single operations ", a[i]));
      }
    }
    if (options.inference || params.empty()) continue;
    // The derivative along a random direction against a central difference.
    ValueMap weights, forward = params, backward = params;
    for (const auto& [key, value] : outputs) {
      if (value.is_array() && is_floating(value.array().dtype()))
        weights[key] = random.values({}, value.array().shape());
    }
    ValueMap gradients = compiled.evaluate(params, {}, weights).gradients;
    double slope = 0, step = 1e-6;
    for (const auto& [key, value] : params) {
      Array direction = random.values({}, value.array().shape()) * jax::numpy::absolute(value.array());
      slope += jax::numpy::sum(gradients[key].array() * direction).item<double>();
      forward[key] = value.array() + direction * Array(step);
      backward[key] = value.array() - direction * Array(step);
    }
    auto weighted = [&](const ValueMap& at_params) {
      double sum = 0;
      for (const auto& [key, value] : compiled.evaluate(at_params)) {
        if (weights.count(key)) sum += jax::numpy::sum(value.array() * weights[key].array()).item<double>();
      }
      return sum;
    };
    double difference = (weighted(forward) - weighted(backward)) / (2 * step);
    if (spec["name"].text() == "StopGradient") difference = 0;
    if (std::isnan(difference)) continue;  // outside the domain, as in log(-1)
    if (!close(slope, difference, 2e-3)) {
      throw Mismatch(concat("the derivative is ", slope, ", the difference quotient ", difference));
    }
  }
}

}  // namespace capibara::models
