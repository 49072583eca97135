// Layers: linear maps, their activations, and models built from them.
#include "models/named/builder.h"

namespace capibara::models {

namespace {

ShapeTemplate with_size(const char* text, std::size_t position, const Value& size) {
  ShapeTemplate shape(text);
  if (size.given() && !size.is_none()) shape.dims[position] = {.size = size.integer()};
  return shape;
}

// input weight^T + bias
Term affine(Builder& b, const Term& input, const Term& weight, const Term* bias) {
  Term product = matmul(input, transpose(weight));
  return bias ? b.add("Add", {}, {{"left", product}, {"right", *bias}}) : product;
}

Model linear(const Arguments& a) {
  Builder b(a);
  const Value& size = a["dimension"];
  Term input = b.input("input"), weight = b.weight("weight");
  NamedShapes shapes = {{"input", "N, V..., d_in"},
                        {"weight", with_size("d_out, d_in", 0, size)},
                        {"output", with_size("N, V..., d_out", 2, size)}};
  if (a.flag("use_bias")) {
    Term bias = b.weight("bias");
    b.output("output", affine(b, input, weight, &bias));
    shapes.emplace_back("bias", with_size("d_out", 0, size));
  } else {
    b.output("output", affine(b, input, weight, nullptr));
  }
  b.shapes(shapes);
  return b.finish();
}

Model elementwise_affine(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), weight = b.input("weight");
  Term scaled = input * weight;
  b.output("output", scaled + b.input("bias"));
  return b.finish();
}

Model layer(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), weight = b.weight("weight"), bias = b.weight("bias");
  Term hidden =
      b.add("Linear", {{"dimension", a["dimension"]}}, {{"input", input}, {"weight", weight}, {"bias", bias}});
  Model activation = model_argument(a["activation"]);
  b.output("output", b.add(activation, {{activation.cin().key, hidden}}));
  return b.finish();
}

// dimensions and activations of the layers; or input_size, hidden_sizes and output_size with one activation in between.
Model perceptron(const Arguments& a) {
  Builder b(a);
  std::vector<Value> sizes;
  std::vector<Value> activations;
  if (a.given("dimensions")) {
    sizes = a["dimensions"].list();
    activations = a["activations"].list();
    if (sizes.size() != activations.size() || sizes.empty()) {
      throw ValueError(concat("models: MLP: dimensions and activations need the same length, at least 1; got ",
                              sizes.size(), " and ", activations.size()));
    }
  } else if (a.given("output_size") || a.given("hidden_sizes")) {
    if (a.given("hidden_sizes")) sizes = a["hidden_sizes"].list();
    activations.assign(sizes.size(), a.given("activation") ? a["activation"] : Value("Relu"));
    if (a.given("output_size")) {
      sizes.push_back(a["output_size"]);
      activations.push_back(a.given("output_activation") ? a["output_activation"] : Value("Buffer"));
    }
  } else {
    throw TypeError("models: MLP: give activations and dimensions, or input_size, hidden_sizes and output_size");
  }
  std::string weight = "weight", bias = "bias";
  if (a.given("input_name_templates")) {
    const Value& names = a["input_name_templates"];
    if (names.has("weight")) weight = names["weight"].text();
    if (names.has("bias")) bias = names["bias"].text();
  }
  Term term = b.input("input");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // A model used as the activation of several layers is copied for each.
    Value activation = activations[i];
    if (activation.is_model()) activation = to_specification(activation.model());
    Term w = b.weight(concat(weight, i)), c = b.weight(concat(bias, i));
    term = b.add("Layer", {{"activation", activation}, {"dimension", sizes[i]}},
                 {{"input", term}, {"weight", w}, {"bias", c}});
  }
  b.output("output", term);
  if (a.given("input_size")) b.shapes({{"input", with_size("N, V..., d", 2, a["input_size"])}});
  return b.finish();
}

Model silu(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input");
  b.output("output", input * operate("Sigmoid", input));
  return b.finish();
}

Model regression(const Arguments& a, const std::string& decision, const std::string& key) {
  Builder b(a);
  Term input = b.input("input"), weight = b.weight("weight"), bias = b.weight("bias");
  Term scores = b.add("Linear", {{"dimension", 1}}, {{"input", input}, {"weight", weight}, {"bias", bias}});
  b.output("output", scores);
  b.output(key, operate(decision, scores));
  return b.finish({"input"}, {"output"});
}

Model polynomial_regression(const Arguments& a) {
  Builder b(a);
  Term features = operate("PolynomialFeatures", b.input("input"), {{"degree", a["degree"]}});
  Term weight = b.weight("weight"), bias = b.weight("bias");
  b.output("output",
           b.add("Linear", {{"dimension", a["dimension"]}}, {{"input", features}, {"weight", weight}, {"bias", bias}}));
  return b.finish();
}

// Multi-head attention over one sequence, with linear maps for queries, keys, values and the result.
Model multi_head_attention(const Arguments& a) {
  Builder b(a);
  int64_t dim = a["dim"].integer(), heads = a["num_heads"].integer();
  if (heads <= 0 || dim % heads != 0) {
    throw ValueError(concat("models: MultiHeadAttention: dim ", dim, " is not a multiple of num_heads ", heads));
  }
  Term input = b.input("input");
  Term sizes = operate("Shape", input);
  Term batch = index(sizes, 0), length = index(sizes, 1);
  auto projected = [&](const std::string& name) {
    Term weight = b.weight("w_" + name), bias = b.weight("bias_" + name);
    Term flat = b.add("Linear", {{"dimension", dim}}, {{"input", input}, {"weight", weight}, {"bias", bias}});
    return operate("Transpose", reshape(flat, {batch, length, Value(heads), Value(dim / heads)}),
                   {{"axes", {0, 2, 1, 3}}});
  };
  Term query = projected("q"), key = projected("k"), value = projected("v");
  Term mixed =
      b.add("ScaledDotProduct", {{"is_causal", a["is_causal"]}}, {{"query", query}, {"key", key}, {"value", value}});
  Term joined = reshape(operate("Transpose", mixed, {{"axes", {0, 2, 1, 3}}}), {batch, length, Value(dim)});
  Term weight = b.weight("w_o"), bias = b.weight("bias_o");
  b.output("output", b.add("Linear", {{"dimension", dim}}, {{"input", joined}, {"weight", weight}, {"bias", bias}}));
  ShapeTemplate shape("N, L, D");
  shape.dims[2] = {.size = dim};
  b.shapes({{"input", shape}, {"output", shape}});
  return b.finish();
}

}  // namespace

Records layer_records() {
  return {
      {"Linear", "dimension=None, use_bias=True, input, weight, bias", "", "input weight^T + bias.", {}, {}, linear},
      {"ElementWiseAffine", "input, weight, bias", "", "input * weight + bias.", {}, {}, elementwise_affine},
      {"Layer",
       "activation, dimension=None, input, weight, bias",
       "",
       "A linear layer and its activation.",
       {},
       {},
       layer},
      {"MLP",
       "activations=None, dimensions=None, input_name_templates=None, input, input_size=None, hidden_sizes=None, "
       "output_size=None, activation=None, output_activation=None",
       "",
       "Layers in a row; weights are weight0, bias0, weight1, ...",
       {},
       {},
       perceptron},
      {"SiLU", "input", "", "input * sigmoid(input).", {}, {}, silu},
      {"LogisticRegression",
       "input, weight, bias",
       "",
       "A score and its probability, probs_output.",
       {},
       {},
       [](const Arguments& a) { return regression(a, "Sigmoid", "probs_output"); }},
      {"LinearSVM",
       "input, weight, bias",
       "",
       "A score and its sign, decision_output.",
       {},
       {},
       [](const Arguments& a) { return regression(a, "Sign", "decision_output"); }},
      {"PolynomialRegression",
       "degree, dimension=None, input, weight, bias",
       "",
       "A linear layer on polynomial features.",
       {},
       {},
       polynomial_regression},
      {"MultiHeadAttention",
       "dim, num_heads, is_causal=False, input",
       "",
       "Attention with several heads on [batch, length, dim].",
       {},
       {},
       multi_head_attention},
  };
}

}  // namespace capibara::models
