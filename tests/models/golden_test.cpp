// Recorded cases of named models, an optional suite (./run golden FOLDER): at least 95 % of them must pass.
#include "models/golden.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

namespace capibara::models {

TEST(Golden, AtLeast95PercentOfTheRecordedCasesPass) {
  std::string folder = golden_folder();
  if (folder.empty()) GTEST_SKIP() << "no folder of recorded cases: ./run golden FOLDER";
  std::vector<CaseResult> results = run_golden_folder(folder);
  std::map<std::string, std::pair<int, int>> files;  // passed, all
  int passed = 0;
  for (const CaseResult& result : results) {
    auto& [good, all] = files[result.file];
    good += result.failure.empty();
    passed += result.failure.empty();
    ++all;
    if (!result.failure.empty())
      std::cout << result.file << " " << result.name << ": " << result.failure.substr(0, 300) << "\n";
  }
  for (const auto& [file, counts] : files) std::cout << file << ": " << counts.first << " of " << counts.second << "\n";
  std::cout << "all: " << passed << " of " << results.size() << "\n";
  ASSERT_FALSE(results.empty());
  EXPECT_GE(passed, 0.95 * static_cast<double>(results.size()));
}

// Six recorded shapes are not unique: another shape also fits the case and leads to the same output.
TEST(Golden, RecordedShapesThatAreNotInferredAreNotTheOnlyOnes) {
  const std::string folder = golden_folder();
  if (folder.empty()) GTEST_SKIP() << "no folder of recorded cases: ./run golden FOLDER";
  const Value tests = read_cases(folder + "/shape_directed_test.json");
  struct Other {
    const char *name, *key, *shape;
  };
  for (const Other& other : {Other{"test_composite_1_init_shapes_3", "input2", "134, 47, 1, 37, 43"},
                             Other{"test_composite_1_init_shapes_5", "input1", "1, 1, 1, 1, 134, 47, 1, 37, 43"},
                             Other{"test_composite_1_static_shapes_2", "input2", "134, 47, 1, 37, 43"},
                             Other{"test_composite_1_static_inputs_3", "input1", "1, 1, 1, 1, 134, 47, 1, 37, 43"},
                             Other{"test_composite_2_static_shapes_2", "input2", "3, 4"},
                             Other{"test_composite_3_static_shapes_2", "input2", "7"}}) {
    if (!tests.has(other.name)) continue;  // a folder of other cases
    const Value& test = tests[other.name];
    const Shapes recorded = inferred_shapes(test, {{other.key, ShapeTemplate(test["results"][other.key])}});
    const Shapes another = inferred_shapes(test, {{other.key, ShapeTemplate(other.shape)}});
    EXPECT_NE(recorded.at(other.key), another.at(other.key)) << other.name;
    EXPECT_EQ(recorded.at("output"), another.at("output")) << other.name;
    EXPECT_FALSE(inferred_shapes(test, {}).at(other.key) == recorded.at(other.key)) << other.name;
  }
}

// The gradients recorded with two different sets of output gradients belong to neither, but to the sum of all outputs,
// as the note in these cases says.
TEST(Golden, RecordedGradientsOfGaussianProcessesAreThoseOfTheSumOfOutputs) {
  const std::string folder = golden_folder();
  if (folder.empty()) GTEST_SKIP() << "no folder of recorded cases: ./run golden FOLDER";
  const Value tests = read_cases(folder + "/models_directed_test.json");
  const std::string name = "test_GaussProcessRegressionLayer";
  if (!tests.has(name)) GTEST_SKIP() << "no case " << name;
  const Value &test = tests[name], &gradients = test["results"]["grad"];
  ASSERT_EQ(gradients.to_string(), tests[name + "_2"]["results"]["grad"].to_string());
  CompileOptions options{.jit = false};
  ValueMap inputs;
  for (const auto& [key, value] : test["inputs"].entries()) inputs[key] = value;
  for (const auto& entry : gradients.entries()) options.trainable_keys.insert(entry.first);
  const CompiledModel compiled = compile(from_specification(test["model"]), wide(), options);
  const Value columns = List{List{1.0}, List{1.0}};
  Evaluation result =
      compiled.evaluate(inputs, {}, {{"loss", List{1.0}}, {"prediction", columns}, {"confidence", columns}});
  for (const char* key : {"label", "mu"}) expect_close(key, result.gradients[key], gradients[key]);
}

}  // namespace capibara::models
