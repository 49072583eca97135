// Models: composition, names, expressions, summaries, and gradients against differences.
#include <capibara/models.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace capibara::models {

namespace {

Model two_layers() {
  Model model;
  model |= make("Linear", {{"dimension", 4}}).connect({{"input", "x"}, {"output", "h"}});
  model += make("Relu");
  model += make("Linear", {{"dimension", 2}}).connect({{"output", "y"}});
  return model;
}

}  // namespace

TEST(Models, WeightsWithoutNamesAreNumberedAndTheirShapesFollow) {
  CompiledModel compiled = compile(two_layers(), {}, {.shapes = {{"x", "3, 5"}}});
  EXPECT_EQ(compiled.trainable_keys(), (std::vector<std::string>{"bias_0", "bias_1", "weight_0", "weight_1"}));
  EXPECT_EQ(compiled.data_keys(), std::vector<std::string>{"x"});
  EXPECT_EQ(compiled.output_keys(), std::vector<std::string>{"y"});
  EXPECT_EQ(compiled.parameter_count(), 5 * 4 + 4 + 4 * 2 + 2);
  auto shapes = compiled.get_shapes();
  EXPECT_EQ(*shapes["weight_1"], (std::vector<std::optional<int64_t>>{2, 4}));
}

TEST(Models, ShapesFollowBackwardsFromAnOutput) {
  Model model;
  model |= make("Transpose", {{"axes", {1, 0, 2}}}).connect({{"input", "x"}, {"output", "t"}});
  model |= make("Relu").connect({{"input", "t"}, {"output", "y"}});
  auto shapes = compile(model, {}, {.shapes = {{"y", "2, 3, 4"}}}).get_shapes();
  EXPECT_EQ(*shapes["x"], (std::vector<std::optional<int64_t>>{3, 2, 4}));
}

TEST(Models, AnExpressionIsAModel) {
  Value x = IOKey{.name = "x"};
  Call square = make("Multiply").connect({{"left", "x"}, {"right", "x"}});
  Model model = Model::create({{"y", make("Sum").connect({{"input", square}})}});
  ValueMap outputs = compile(model, {}, {.trainable_keys = {"x"}}).evaluate({{"x", List{1.0, 2.0, 3.0}}});
  EXPECT_FLOAT_EQ(outputs.at("y").array().item<float>(), 14.0f);
}

TEST(Models, NestedModelsComputeTheSameAsFlatOnes) {
  Model inner = two_layers();
  Model outer;
  outer |= inner.connect({{"x", "in"}, {"y", "out"}});
  CompiledModel nested = compile(outer, {}, {.shapes = {{"in", "3, 5"}}}),
                flat = compile(two_layers(), {}, {.shapes = {{"x", "3, 5"}}});
  ValueMap params = flat.randomize_params(3), renamed;
  Array input = jax::numpy::ones({3, 5});
  Array a = flat.evaluate(params, {{"x", input}}).at("y").array(),
        b = nested.evaluate(params, {{"in", input}}).at("out").array();
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
}

TEST(Models, ASpecificationMakesTheSameModelAgain) {
  Model again = from_specification(to_specification(two_layers()));
  CompiledModel first = compile(two_layers(), {}, {.shapes = {{"x", "3, 5"}}}),
                second = compile(again, {}, {.shapes = {{"x", "3, 5"}}});
  EXPECT_EQ(first.text(), second.text());
}

TEST(Models, GradientsAreThoseOfDifferences) {
  CompiledModel compiled = compile(two_layers(), {.dtype = DType::float64}, {.shapes = {{"x", "3, 5"}}});
  ConfigScope scope = jax::enable_x64();
  ValueMap params = compiled.randomize_params(1);
  ValueMap data = {{"x", jax::numpy::reshape(jax::numpy::arange(15), {3, 5}).astype(DType::float64)}};
  Array ones = jax::numpy::ones({3, 2}, {.dtype = DType::float64});
  Array gradient = compiled.evaluate(params, data, {{"y", ones}}).gradients.at("bias_0").array();
  for (int64_t i = 0; i < 4; ++i) {
    double step = 1e-6, values[2];
    for (int side = 0; side < 2; ++side) {
      ValueMap moved = params;
      moved["bias_0"] = params["bias_0"].array().at(i).add(Array(side ? step : -step));
      values[side] = jax::numpy::sum(compiled.evaluate(moved, data).at("y").array()).item<double>();
    }
    EXPECT_NEAR(gradient.to_vector<double>()[static_cast<std::size_t>(i)], (values[1] - values[0]) / (2 * step), 1e-5);
  }
}

TEST(Models, ConstantsAreFoldedAndRepeatedOperationsRunOnce) {
  Model model;
  model |= make("Relu").connect({{"input", "c"}, {"output", "known"}});
  model |= make("Tanh").connect({{"input", "x"}, {"output", "a"}});
  model |= make("Tanh").connect({{"input", "x"}, {"output", "b"}});
  model |= make("Add").connect({{"left", "a"}, {"right", "b"}, {"output", "sum"}});
  model |= make("Add").connect({{"left", "sum"}, {"right", "known"}, {"output", "y"}});
  CompiledModel compiled = compile(model, {}, {.constant_keys = {{"c", List{-1.0, 2.0}}}});
  std::string text = compiled.text();
  EXPECT_EQ(text.find("Relu"), std::string::npos) << text;
  EXPECT_EQ(text.find("Tanh"), text.rfind("Tanh")) << text;
}

TEST(Models, TheProgramIsWrittenToAFileAndTheGraphDrawn) {
  std::string path = ::testing::TempDir() + "model.txt";
  CompiledModel compiled = compile(two_layers(), {}, {.shapes = {{"x", "3, 5"}}, .file_path = path});
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_NE(text.str().find("MatrixMultiply(left=x"), std::string::npos) << text.str();
  EXPECT_NE(compiled.svg().find("<svg"), std::string::npos);
  EXPECT_NE(two_layers().svg().find("Linear"), std::string::npos);
  EXPECT_NE(compiled.summary().find("parameters: 34"), std::string::npos) << compiled.summary();
}

TEST(Models, EveryModelOfTheCatalogHasASentenceAndAUniqueName) {
  std::set<std::string> names;
  for (const ModelEntry& entry : catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.sentence.ends_with(".")) << entry.name;
  }
  EXPECT_GE(names.size(), 160u);
}

TEST(Models, MetricsOfSmallTables) {
  Array predicted = array<float>({{0.9f, 0.1f, 0}, {0.2f, 0.7f, 0.1f}, {0.1f, 0.8f, 0.1f}, {0, 0.3f, 0.7f}});
  Array label = array<int64_t>({0, 1, 2, 2});
  auto value = [&](const std::string& name, Entries arguments) {
    arguments.emplace_back("is_label_one_hot", false);
    return compile(make(name, arguments))
        .evaluate({}, {{"pred", predicted}, {"label", label}})
        .at("output")
        .array()
        .item<float>();
  };
  EXPECT_FLOAT_EQ(value("Accuracy", {}), 0.75f);
  EXPECT_FLOAT_EQ(value("Precision", {{"average", "macro"}, {"n_classes", 3}}), (1.0f + 0.5f + 1.0f) / 3);
  EXPECT_FLOAT_EQ(value("Recall", {{"average", "macro"}, {"n_classes", 3}}), (1.0f + 1.0f + 0.5f) / 3);
  EXPECT_FLOAT_EQ(value("F1", {{"average", "weighted"}, {"n_classes", 3}}), 0.25f * 1 + 0.25f * 2 / 3 + 0.5f * 2 / 3);
}

}  // namespace capibara::models
