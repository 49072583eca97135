// Program forms for plugins: without operations that XLA computes differently or rejects, and with the same values.
#include <gtest/gtest.h>

#include <capibara/capibara.h>

#include "backends/backend.h"
#include "backends/pjrt/xla_forms.h"

namespace capibara::pjrt {
namespace {

std::vector<double> values(const Program& program, const Arrays& inputs) {
  return backend("reference").compile(program)->execute(inputs, {})[0].to_vector<double>();
}

Array ramp(const Shape& shape, DType dtype) {
  std::vector<double> elements(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = 1 + 0.25 * static_cast<double>(i % 11);
  return Array::from_host(DType::float64, shape, elements.data()).astype(dtype);
}

TEST(XlaForms, AReductionTakesItsInitialValueOnce) {
  const Program program = from_stablehlo(
      "func.func @main(%a: tensor<4x6xi32>) -> tensor<4xi32> {\n"
      "  %c = stablehlo.constant dense<3> : tensor<i32>\n"
      "  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x6xi32>, "
      "tensor<i32>) -> tensor<4xi32>\n"
      "  return %0 : tensor<4xi32>\n}\n");
  const Program form = in_forms_of_xla(program);
  for (const Equation& equation : form.equations()) {
    if (equation.primitive != primitive("reduce")) continue;
    ASSERT_TRUE(equation.inputs[1].is_literal()) << form.to_string();
    EXPECT_EQ(form.literal(equation.inputs[1]).to_vector<int>(), std::vector<int>{0}) << form.to_string();
  }
  const Array x = ramp({4, 6}, DType::int32);
  EXPECT_EQ(values(form, {x}), values(program, {x}));
}

TEST(XlaForms, ATriangularSystemOf16BitsIsSolvedInFloat32) {
  const Program program = from_stablehlo(
      "func.func @main(%a: tensor<4x4xf16>, %b: tensor<4x1xf16>) -> tensor<4x1xf16> {\n"
      "  %0 = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, "
      "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}"
      " : (tensor<4x4xf16>, tensor<4x1xf16>) -> tensor<4x1xf16>\n  return %0 : tensor<4x1xf16>\n}\n");
  const Program form = in_forms_of_xla(program);
  for (const Equation& equation : form.equations()) {
    if (equation.primitive != primitive("triangular_solve")) continue;
    EXPECT_EQ(form.type(equation.inputs[0]).dtype, DType::float32);
  }
  const Arrays inputs = {ramp({4, 4}, DType::float16), ramp({4, 1}, DType::float16)};
  const std::vector<double> expected = values(program, inputs), got = values(form, inputs);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-3 * std::abs(expected[i]) + 1e-3);
}

}  // namespace
}  // namespace capibara::pjrt
