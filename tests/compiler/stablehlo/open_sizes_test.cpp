// Texts with dynamic sizes: read for the sizes of a call, and rejected if these do not determine all others.
#include <gtest/gtest.h>

#include <capibara/exported.h>
#include <capibara/lax.h>
#include <capibara/program.h>

#include "compiler/stablehlo/exported/size_expression.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/read.h"

namespace capibara {

namespace {

ArrayType floats(Shape shape) {
  ArrayType type;
  type.shape = std::move(shape);
  type.dtype = DType::float32;
  return type;
}

Array counting(const Shape& shape) {
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i));
  return Array::from_host(DType::float32, shape, values.data());
}

Arrays run(const char* text, const Arrays& arguments) {
  Types types;
  for (const Array& argument : arguments) types.push_back(argument.type());
  return jax::ProgramFunction(from_stablehlo(text, types))(arguments);
}

// A function that reshapes its rows by a size that it takes as a number.
constexpr const char* doubled = R"(
func.func public @main(%arg0: tensor<?x3xf32>) -> tensor<?xf32> {
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %1 = call @flat(%0, %arg0) : (tensor<i32>, tensor<?x3xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func private @flat(%arg0: tensor<i32>, %arg1: tensor<?x3xf32>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.multiply %arg0, %c : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %arg1, %1 : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %3 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
  %4 = stablehlo.dynamic_broadcast_in_dim %3, %1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %5 = stablehlo.multiply %2, %4 : tensor<?xf32>
  return %5 : tensor<?xf32>
}
)";

}  // namespace

TEST(OpenSizes, FollowFromTheArguments) {
  for (const int64_t rows : {1, 2, 5}) {
    const Array result = run(doubled, {counting({rows, 3})})[0];
    ASSERT_EQ(result.shape(), Shape{rows * 3});
    for (int64_t i = 0; i < rows * 3; ++i)
      EXPECT_EQ(result.to_vector<float>()[static_cast<std::size_t>(i)], static_cast<float>(i * rows));
  }
}

TEST(OpenSizes, AreNeededBeforeTheTextIsRead) {
  EXPECT_THROW(from_stablehlo(doubled), stablehlo::UnsupportedError);
  EXPECT_THROW(from_stablehlo(doubled, {floats({2, 4})}), ParseError);
  EXPECT_THROW(from_stablehlo(doubled, {floats({2, 3}), floats({2})}), ParseError);
}

TEST(OpenSizes, GoThroughLoops) {
  // The loop carries the number of rows without changing it; the body makes an array with that many rows.
  constexpr const char* text = R"(
func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %size = %n, %x = %arg0) : tensor<i32>, tensor<i32>, tensor<?xf32>
  cond {
    %c = stablehlo.compare LT, %i, %size, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %row = stablehlo.dynamic_broadcast_in_dim %f, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %sum = stablehlo.add %x, %row : tensor<?xf32>
    stablehlo.return %next, %size, %sum : tensor<i32>, tensor<i32>, tensor<?xf32>
  }
  return %0#2 : tensor<?xf32>
}
)";
  EXPECT_EQ(run(text, {counting({4})})[0].to_vector<float>(), (std::vector<float>{6, 7, 8, 9}));
}

TEST(OpenSizes, AssertionsAreChecked) {
  constexpr const char* text = R"(
func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %ok = stablehlo.compare GE, %n, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "got {0}, and {0} is too few",
    has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return %arg0 : tensor<?xf32>
}
)";
  EXPECT_EQ(run(text, {counting({3})})[0].size(), 3);
  try {
    run(text, {counting({2})});
    FAIL() << "expected an error";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "got 2, and 2 is too few");
  }
}

TEST(OpenSizes, ThatFollowFromValuesAreRefused) {
  constexpr const char* text = R"(
func.func public @main(%arg0: tensor<?xf32>, %arg1: tensor<1xi32>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.dynamic_broadcast_in_dim %c, %arg1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
)";
  ArrayType integer = floats({1});
  integer.dtype = DType::int32;
  EXPECT_THROW(from_stablehlo(text, {floats({2}), integer}), stablehlo::UnsupportedError);
}

TEST(OpenSizes, FunctionsThatCallThemselvesEnd) {
  constexpr const char* text = R"(
func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %0 = call @f(%n, %arg0) : (tensor<i32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f(%n: tensor<i32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %more = stablehlo.add %n, %n : tensor<i32>
  %1 = stablehlo.add %more, %n : tensor<i32>
  %0 = call @f(%1, %x) : (tensor<i32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
)";
  EXPECT_THROW(from_stablehlo(text, {floats({1})}), ParseError);
}

TEST(SizeExpressions, AreThoseOfJax) {
  const std::map<std::string, int64_t> sizes = {{"b", 7}, {"n", 4}};
  const std::pair<const char*, int64_t> rows[] = {{"12", 12},
                                                  {"b", 7},
                                                  {"2*b + 1", 15},
                                                  {"b - n - 1", 2},
                                                  {"-1*n + b", 3},
                                                  {"b^2*n", 196},
                                                  {"floordiv(b, 2)", 3},
                                                  {"floordiv(n - b, 2) + 5", 3},
                                                  {"mod(n - b, 5)", 2},
                                                  {"max(b - 9, 0) + min(b, n)", 4},
                                                  {"(b + 1)*2", 16}};
  for (const auto& [text, value] : rows) EXPECT_EQ(stablehlo::size_of(text, sizes), value) << text;
  for (const char* text : {"", "c", "b +", "b b", "n - b", "floordiv(b, 0)", "gcd(b, n)", "b^99",
                           "99999999999999999999", "b*9223372036854775807", "2b"})
    EXPECT_THROW(stablehlo::size_of(text, sizes), ValueError) << text;
  EXPECT_THROW(stablehlo::size_of(std::string(10000, '('), sizes), ValueError);
  EXPECT_THROW(stablehlo::size_of(std::string(100000, '-') + "1", sizes), ValueError);
}

}  // namespace capibara
