// Custom calls in StableHLO text that are unknown to this library, on a plugin whose compiler knows them.
#include "backends/pjrt/on_plugin.h"

namespace capibara::pjrt {
namespace {

using OpaqueCalls = OnPlugin;

// XLA:CPU has its own custom call for top-k of rows.
TEST_F(OpaqueCalls, RunWhereTheCompilerKnowsThem) {
  if (plugin_platform() != "xla_cpu") GTEST_SKIP() << "TopK is a function of XLA:CPU";
  const Program program = from_stablehlo(
      "func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {\n"
      "  %0:2 = stablehlo.custom_call @TopK(%x) {api_version = 1 : i32, operand_layouts = [dense<[1, 0]> : "
      "tensor<2xindex>], "
      "result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x4xf32>) -> "
      "(tensor<2x2xf32>, tensor<2x2xi32>)\n  return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>\n}\n");
  const std::vector<float> x = {1, 4, 2, 3, -1, -4, -2, 7};
  const Arrays inputs = {Array::from_host(DType::float32, {2, 4}, x.data())};
  const Arrays found = default_backend().compile(program)->execute(inputs, {});
  EXPECT_EQ(found[0].to_vector<float>(), (std::vector<float>{4, 3, 7, -1}));
  EXPECT_EQ(found[1].to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 3, 0}));
}

TEST_F(OpaqueCalls, AreRefusedByNameWhereItDoesNot) {
  const Program program = from_stablehlo(
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.custom_call @nobody_has_this(%x) : "
      "(tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  const Arrays inputs = {jax::numpy::ones({2})};
  try {
    default_backend().compile(program)->execute(inputs, {})[0].block_until_ready();
    FAIL() << "the plugin ran it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nobody_has_this"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace capibara::pjrt
