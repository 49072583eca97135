// Errors of models name the connection and both sides.
#include <capibara/models.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

namespace capibara::models {

namespace {

template <class Function>
std::string message(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

#define EXPECT_SAYS(text, ...) EXPECT_TRUE(says(text, {__VA_ARGS__})) << text

}  // namespace

TEST(ModelErrors, UnknownModelArgumentAndKeyAreAnsweredWithTheNearestName) {
  EXPECT_SAYS(message([] { make("Lienar"); }), "'Lienar'", "Did you mean 'Linear'");
  EXPECT_SAYS(message([] { make("Linear", {{"dimensoin", 3}}); }), "Linear(dimension=None", "Did you mean 'dimension'");
  EXPECT_SAYS(message([] {
                make("Relu", {{"shapes", Value::dictionary({{"inptu", List{2, 3}}})}});
              }),
              "Relu has no key 'inptu'", "Did you mean 'input'");
  Model model;
  EXPECT_SAYS(message([&] {
                model |= make("Relu").connect({{"inptu", "x"}});
              }),
              "Relu has no key 'inptu'", "Did you mean 'input'");
}

TEST(ModelErrors, AConnectionHasOneWriter) {
  Model model;
  model |= make("Relu").connect({{"input", "x"}, {"output", "y"}});
  EXPECT_SAYS(message([&] {
                model |= make("Tanh").connect({{"input", "x"}, {"output", "y"}});
              }),
              "'y' is already computed by Relu.output", "Tanh.output");
}

TEST(ModelErrors, ACallThatFailsLeavesTheModelAsItWas) {
  Model model;
  model |= make("Linear", {{"dimension", 4}}).connect({{"input", "x"}, {"output", "h"}});
  model |= make("Relu").connect({{"input", "h"}, {"output", "r"}});
  const std::vector<std::string> inputs = model.input_keys(), outputs = model.output_keys();
  const auto call = [](const char* name, const Entries& connections) { return make(name).connect(connections); };
  const std::vector<Call> wrong = {
      call("Sigmoid", {{"input", "r"}, {"output", "x"}}),                             // a cycle
      call("Sigmoid", {{"input", call("Tanh", {{"input", "r"}})}, {"output", "x"}}),  // through another call
      call("Sigmoid", {{"input", "x"}, {"output", "h"}}),                             // a second writer
      call("Add", {{"left", "r"}, {"right", "fresh"}, {"output", "h"}}),              // after a key is created
      call("Add", {{"left", "fresh"}, {"wrong", "x"}}),                               // an unknown key
  };
  for (const Call& one : wrong) {
    EXPECT_NE(message([&] { model |= one; }), "no error");
    EXPECT_EQ(model.input_keys(), inputs);
    EXPECT_EQ(model.output_keys(), outputs);
  }
  EXPECT_NE(message([&] { model += make("Add"); }), "no error");
  EXPECT_EQ(model.input_keys(), inputs);
  model += make("Tanh").connect({{"output", "y"}});
  CompiledModel compiled = compile(model, {}, {.shapes = {{"x", "2, 3"}}, .data_keys = {"x"}});
  EXPECT_EQ(compiled.output_keys(), std::vector<std::string>{"y"});
}

TEST(ModelErrors, CyclesAreRefused) {
  Model model;
  model |= make("Relu").connect({{"input", "a"}, {"output", "b"}});
  model |= make("Tanh").connect({{"input", "b"}, {"output", "c"}});
  EXPECT_SAYS(message([&] { model |= make("Sigmoid").connect({{"input", "c"}, {"output", "a"}}); }), "cycle", "'a'");
}

TEST(ModelErrors, CanonicalConnectionsMustBeOneAndOne) {
  Model model;
  model |= make("Relu").connect({{"input", "x"}});
  EXPECT_SAYS(message([&] { model += make("Add"); }), "2 free canonical inputs", "'left', 'right'");
  model |= make("Tanh").connect({{"input", "x"}});
  EXPECT_SAYS(message([&] { model += make("Relu"); }), "2 canonical outputs");
}

TEST(ModelErrors, ValuesThatDifferAreShown) {
  Model model;
  model |= make("Sum", {{"axis", 1}}).connect({{"input", "x"}, {"axis", IOKey{.name = "axis"}}});
  EXPECT_SAYS(message([&] { model.set_values({{"axis", 0}}); }), "'axis'", "the value 1", "cannot also be 0");
}

TEST(ModelErrors, ShapesThatContradictNameBothSides) {
  Model model;
  model |= make("Linear", {{"dimension", 3}}).connect({{"input", "x"}, {"bias", "bias"}, {"output", "y"}});
  EXPECT_SAYS(message([&] {
                compile(model, {}, {.shapes = {{"bias", "4"}}});
              }),
              "shape of 'bias'", "dimension 0", "is 4 for shapes['bias']", "3 for Linear");
  EXPECT_SAYS(message([&] {
                compile(model, {}, {.shapes = {{"x", "4"}}});
              }),
              "'x'", "Linear needs [N, V..., d_in]", "shapes['x'] gave [4]");
  Model sum;
  sum |= make("Add").connect({{"left", "a"}, {"right", "b"}, {"output", "c"}});
  EXPECT_SAYS(message([&] {
                compile(sum, {}, {.shapes = {{"a", "2, 3"}, {"b", "4"}}});
              }),
              "'left' and 'right'", "3 and 4");
}

TEST(ModelErrors, KeysOfCompileAndEvaluateAreChecked) {
  Model model;
  model |= make("Linear", {{"dimension", 3}}).connect({{"input", "x"}, {"output", "y"}});
  EXPECT_SAYS(message([&] { compile(model, {}, {.data_keys = {"xx"}}); }), "data_keys names 'xx'", "Did you mean 'x'");
  EXPECT_SAYS(message([&] { compile(model, {}, {.data_keys = {"x"}, .trainable_keys = {"x"}}); }),
              "'x' is in data_keys and in trainable_keys");
  EXPECT_SAYS(message([] { compile(Model()); }), "no output");
  CompiledModel compiled = compile(model);
  EXPECT_SAYS(message([&] {
                compiled.evaluate({{"weight", List{List{1.0}, List{1.0}, List{1.0}}}});
              }),
              "no value was given for 'bias', 'x'");
  EXPECT_SAYS(message([&] { compiled.randomize_params(); }), "the shape is not known of 'weight'", "shapes={...}");
  CompiledModel sized = compile(model, {}, {.shapes = {{"x", "2, 5"}}});
  ValueMap params = sized.randomize_params();
  EXPECT_SAYS(message([&] {
                sized.evaluate(params, {{"x", List{List{1.0, 2.0}}}});
              }),
              "'x' in data", "float32[1,2]", "[2, 5]");
  EXPECT_SAYS(message([&] {
                sized.evaluate(params, {{"x", jax::numpy::ones({2, 5})}}, {{"z", 1.0}});
              }),
              "output_gradients has 'z'");
}

TEST(ModelErrors, DataWithoutANameIsRefusedUnlessAskedFor) {
  Model model;
  model += make("Linear", {{"dimension", 3}});
  EXPECT_SAYS(message([&] { compile(model); }), "data keys without a name of their own: 'input'", "safe_names=False");
  EXPECT_EQ(compile(model, {}, {.safe_names = false}).data_keys(), std::vector<std::string>{"input"});
}

TEST(ModelErrors, JsonSaysWhere) {
  EXPECT_SAYS(message([] { parse_json("{\"a\": [1,\n 2,,]}"); }), "line 2", "column 4");
  EXPECT_SAYS(message([] { from_specification(parse_json("{\"args\": {}}")); }), "needs 'name'");
}

}  // namespace capibara::models
