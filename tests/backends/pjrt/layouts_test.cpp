// Host calls and kernels after operations that change array layouts: their elements arrive in row-major
// order.
#include "backends/pjrt/on_plugin.h"

#include "backends/pjrt/prepare.h"
#include "program/trace/stage.h"

#include <capibara/callback.h>
#include <capibara/kernels.h>
#include <capibara/linalg.h>

#include <cmath>

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

using Layouts = OnPlugin;

Array numbers(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return jnp::reshape(jnp::sin(jnp::arange(static_cast<double>(count)) * 0.7), shape);
}

// Host calls that would reveal any other order of the elements.
Array weighted_on_host(const Array& x, bool ordered) {
  const auto host = [](const std::vector<Array>& arguments) {
    std::vector<float> values = arguments[0].to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<float>(i % 97);
    return std::vector<Array>{Array::from_host(DType::float32, arguments[0].shape(), values.data())};
  };
  if (ordered) return jax::io_callback(host, {x.type()}, {x}, {.ordered = true})[0];
  return jax::pure_callback(host, {x.type()}, {x})[0];
}

// The producers: each lets a compiler choose the layout of its result.
Array transposed(const Array& x) { return lax::transpose(x * 2, {3, 1, 0, 2}); }
Array convolved(const Array& x) {
  return lax::conv_general_dilated(x, numbers({6, x.shape(1), 3, 3}),
                                   {.window_strides = {1, 1}, .padding_mode = "SAME"});
}
Array channels_last(const Array& x) { return lax::transpose(convolved(x), {0, 2, 3, 1}); }

void expect_reference_values(const std::function<Array(const Array&)>& function, const Array& x,
                             const std::function<Arrays(const Program&, const Arrays&)>& on_reference,
                             double allowed = 1e-4) {
  const FlatFunction flat = [&](std::span<const Array> inputs) { return Arrays{function(inputs[0])}; };
  const Program program = stage(flat, Types{x.type()}, "f").program;
  const Arrays inputs = {x};
  const Array want = on_reference(program, inputs)[0], got = default_backend().compile(program)->execute(inputs, {})[0];
  ASSERT_EQ(got.shape(), want.shape());
  const std::vector<float> a = got.to_vector<float>(), b = want.to_vector<float>();
  double scale = 1;
  for (float value : b) scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], allowed * scale) << "element " << i;
}

TEST_F(Layouts, OfOperandsOfCallbacksAreThoseOfTheProgram) {
  const Array x = numbers({2, 5, 7, 4});
  for (Array (*producer)(const Array&) : {transposed, convolved, channels_last}) {
    for (bool ordered : {false, true}) {
      expect_reference_values([&](const Array& v) { return weighted_on_host(producer(v), ordered); }, x, on_reference);
      // And after the call: its results are read in the same order.
      expect_reference_values([&](const Array& v) { return producer(weighted_on_host(producer(v), ordered)); }, x,
                              on_reference);
    }
  }
}

TEST_F(Layouts, OfOperandsOfKernelsAreThoseOfTheProgram) {
  const Array x = numbers({2, 5, 8, 8}), scale = numbers({8}), bias = numbers({8}) + 1;
  const auto last_axis = [](const Array& v) { return lax::transpose(convolved(v), {0, 1, 3, 2}); };
  expect_reference_values([&](const Array& v) { return kernels::layer_norm(last_axis(v), scale, bias); }, x,
                          on_reference);
  const auto loss = [&](const Array& v) { return jnp::sum(jnp::sin(kernels::layer_norm(last_axis(v), scale, bias))); };
  expect_reference_values([&](const Array& v) { return jax::grad(loss)(v); }, x, on_reference, 1e-3);
}

TEST_F(Layouts, OfMatricesOfLapackAreThoseOfTheProgram) {
  const Array x = numbers({3, 6, 6});
  const auto swapped = [](const Array& v) { return lax::transpose(v, {0, 2, 1}) * 3; };
  const auto symmetric = [&](const Array& v) { return swapped(v) + v * 3; };
  expect_reference_values([&](const Array& v) { return jnp::abs(jnp::linalg::qr(swapped(v)).R); }, x, on_reference,
                          1e-3);
  expect_reference_values([&](const Array& v) { return jnp::linalg::eigvalsh(symmetric(v)); }, x, on_reference, 1e-3);
  expect_reference_values([&](const Array& v) { return jnp::linalg::inv(swapped(v) + jnp::eye(6) * 5); }, x,
                          on_reference, 1e-3);
}

TEST_F(Layouts, AreWrittenForEveryOperandAndResultTokensIncluded) {
  const FlatFunction flat = [](std::span<const Array> inputs) {
    return Arrays{weighted_on_host(transposed(inputs[0]), true)};
  };
  const Array x = numbers({2, 5, 7, 4});
  const std::string text = prepare(stage(flat, Types{x.type()}, "f").program, {false}, {}, nullptr, {}).text;
  EXPECT_NE(text.find("operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>]"),
            std::string::npos)
      << text;
}

TEST_F(Layouts, OfConstantsOfAFewBitsNeedNoLiteralOfTheirType) {
  for (const auto& [type, element] :
       {std::pair{"i2", "1"}, {"ui2", "1"}, {"i4", "-3"}, {"ui4", "9"}, {"f4E2M1FN", "1.5"}}) {
    const std::string tensor = concat("tensor<3x", type, ">");
    const Program program =
        from_stablehlo(concat("func.func @main() -> tensor<3xf32> {\n  %0 = stablehlo.constant dense<[", element, ", ",
                              element, ", ", element, "]> : ", tensor, "\n  %1 = stablehlo.convert %0 : (", tensor,
                              ") -> tensor<3xf32>\n  return %1 : tensor<3xf32>\n}\n"));
    const std::string text = prepare(program, {}, {}, nullptr, {}).text;
    EXPECT_EQ(text.find(concat("> : ", tensor, "\n")), std::string::npos) << text;
    EXPECT_EQ(default_backend().compile(program)->execute({}, {})[0].to_vector<float>(),
              std::vector<float>(3, std::stof(element)))
        << type;
  }
  const Program six = from_stablehlo(
      "func.func @main(%a: tensor<f32>) -> tensor<f6E2M3FN> {\n  %0 = stablehlo.convert %a : (tensor<f32>) -> "
      "tensor<f6E2M3FN>\n  return %0 : tensor<f6E2M3FN>\n}\n");
  EXPECT_THROW(default_backend().compile(six)->execute(Arrays{Array(1.0f)}, {}), NotImplementedError);
}

// The unused bits of a byte, which a compiler may leave undefined, do not reach the host.
TEST_F(Layouts, OfNumbersOfAFewBitsHaveNoOthersInTheirBytes) {
  for (DType dtype : {DType::int4, DType::uint4, DType::int2}) {
    std::vector<int64_t> seen, bytes;
    const auto host = [&](const std::vector<Array>& arguments) {
      seen = arguments[0].to_vector<int64_t>();
      for (std::size_t i = 0; i < seen.size(); ++i) bytes.push_back(static_cast<int8_t>(arguments[0].raw_data()[i]));
      return arguments;
    };
    const auto f = jax::jit([&](const Array& x, const Array& y) {
      const Array narrow = lax::bitwise_xor(lax::convert_element_type(x, dtype), lax::convert_element_type(y, dtype));
      return lax::convert_element_type(jax::pure_callback(host, {narrow.type()}, {narrow})[0], DType::int32);
    });
    const std::vector<int64_t> got = f(array<int>({7, -8, -8, 3}), array<int>({0, 7, -8, 1})).to_vector<int64_t>();
    EXPECT_EQ(got, seen) << to_string(dtype);
    EXPECT_EQ(bytes, seen) << to_string(dtype);
    EXPECT_EQ(got[2], 0) << to_string(dtype);
  }
}

}  // namespace
}  // namespace capibara::pjrt
