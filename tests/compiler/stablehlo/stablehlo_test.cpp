// Tests of the StableHLO bridge: reading our text gives the lowered program again, and bad text is rejected.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/program.h>

#include "compiler/stablehlo/catalog_programs.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/operations_check.h"
#include "compiler/stablehlo/read.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "compiler/stablehlo/write.h"
#include "compiler/stablehlo/write_collective.h"
#include "program/trace/stage.h"

#include <gtest/gtest.h>

namespace capibara {
namespace {

namespace lax = jax::lax;

Array strong(const Array& array) { return Array::from_buffer(array.type().strong(), array.buffer()); }

Attr without_weak_types(const Attr& attr);

// Removes what text cannot express: weak types, and explicit strides of one in slices.
Program without_weak_types(const Program& program) {
  Program::Body body = program.body();
  for (ArrayType& type : body.var_types) type.weak_type = false;
  for (Array& literal : body.literals) literal = strong(literal);
  for (Array& constant : body.constants) constant = strong(constant);
  for (Equation& equation : body.equations) {
    std::vector<Attrs::Entry> entries;
    for (const auto& [name, attr] : equation.attrs.entries()) {
      entries.emplace_back(name, name == "weak_type" ? Attr(false) : without_weak_types(attr));
    }
    equation.attrs = Attrs(std::move(entries));
    // Only floats distinguish total order from the usual order.
    const std::string& name = equation.primitive.name();
    if (name.ends_with("_to") && !is_floating(program.type(equation.inputs[0]).dtype)) {
      equation.primitive = primitive(name.substr(0, 2));
    }
    const Attr* strides = equation.primitive.is("slice") ? equation.attrs.find("strides") : nullptr;
    if (strides && strides->get_if<Ints>()) {
      const Ints& steps = *strides->get_if<Ints>();
      if (std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; })) {
        equation.attrs = equation.attrs.with("strides", Attr());
      }
    }
  }
  return Program(std::move(body));
}

Attr without_weak_types(const Attr& attr) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) return Attr(without_weak_types(**program));
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    Attr::List copy;
    for (const Attr& entry : **list) copy.push_back(without_weak_types(entry));
    return Attr(std::move(copy));
  }
  return attr;
}

void expect_round_trip(const Program& program) {
  const Program lowered = lower(program);
  const std::string text = to_stablehlo(program);
  SCOPED_TRACE(text);
  const Program again = from_stablehlo(text);
  EXPECT_EQ(without_weak_types(again), without_weak_types(lowered)) << again << "\n" << lowered;
  EXPECT_EQ(to_stablehlo(again), text);
  verify(again);
}

TEST(StableHlo, ReadOfWriteIsTheLoweredProgramForEveryPrimitive) {
  ConfigScope wide = jax::enable_x64();
  const DType dtypes[] = {DType::bool_,     DType::int8,          DType::int32,   DType::uint8,   DType::uint32,
                          DType::uint64,    DType::float16,       DType::float32, DType::float64, DType::bfloat16,
                          DType::complex64, DType::float8_e4m3fn, DType::int4};
  int tested = 0;
  catalog_programs::for_each_case(dtypes, [&](const catalog_programs::Case& one) {
    SCOPED_TRACE(one.name);
    if (one.name.starts_with("sharding_constraint"))
      return;  // it has no text on a single device; see sharded_text_test.cpp
    try {
      lower(one.program);
    } catch (const NotImplementedError&) {
      return;  // callbacks and similar ones have no text
    }
    expect_round_trip(one.program);
    ++tested;
  });
  EXPECT_GT(tested, 1000);
}

TEST(StableHlo, EveryPrimitiveOfTheSubsetHasAText) {
  for (const Primitive& primitive : catalog()) {
    if (primitive->stablehlo.empty()) continue;
    const std::string& name = primitive.name();
    const bool special = name == "jit" || name == "while" || name == "cond" || name == "round" ||
                         name == "custom_call" || name == "create_token" || name == "after_all" ||
                         name == "rng_uniform" || name == "sharding_constraint";
    const bool of_devices = name == "shard_map" || name == "axis_index" || stablehlo::is_collective(primitive);
    EXPECT_TRUE(special || of_devices || stablehlo::find_row(primitive, {})) << name;
  }
}

TEST(StableHlo, RowsNamePrimitivesOfTheCatalog) {
  for (const stablehlo::OperationRow& row : stablehlo::operation_rows()) {
    EXPECT_TRUE(find_primitive(row.primitive)) << row.operation << " -> " << row.primitive;
  }
}

// ---- calls and control flow --------------------------------------------------------------------------------------

ArrayType vector_type(int64_t size) {
  ArrayType type;
  type.shape = {size};
  return type;
}

TEST(StableHlo, CallsOfOneProgramShareOneFunction) {
  const Types types = {vector_type(4)};
  const Program layer =
      stage([](std::span<const Array> in) { return Arrays{lax::tanh(in[0])}; }, types, "layer").program;
  const Program program = stage(
                              [&](std::span<const Array> in) {
                                Arrays x(in.begin(), in.end());
                                for (int i = 0; i < 48; ++i)
                                  x = capibara::bind(primitive("jit"), x, {{"jaxpr", layer}, {"name", "layer"}});
                                return x;
                              },
                              types, "f")
                              .program;
  const std::string text = to_stablehlo(program);
  std::size_t functions = 0;
  for (std::size_t at = text.find("func.func"); at != std::string::npos; at = text.find("func.func", at + 1))
    ++functions;
  EXPECT_EQ(functions, 2U);
  expect_round_trip(program);
  const Program again = from_stablehlo(text);
  EXPECT_EQ(again.equations()[0].attrs.program("jaxpr").identity(),
            again.equations()[47].attrs.program("jaxpr").identity());
}

TEST(StableHlo, FunctionsOfOneNameAreNumberedAndReadBack) {
  const Types types = {vector_type(2)};
  auto staged = [&](Array (*f)(const Array&)) {
    return stage([f](std::span<const Array> in) { return Arrays{f(in[0])}; }, types, "g").program;
  };
  const Program sine = staged(lax::sin), cosine = staged(lax::cos);
  const Program program = stage(
                              [&](std::span<const Array> in) {
                                Arrays x = capibara::bind(primitive("jit"), in, {{"jaxpr", sine}, {"name", "g"}});
                                return capibara::bind(primitive("jit"), x, {{"jaxpr", cosine}, {"name", "g"}});
                              },
                              types, "f")
                              .program;
  EXPECT_NE(to_stablehlo(program).find("@g_0"), std::string::npos);
  expect_round_trip(program);
}

TEST(StableHlo, LoopsReadValuesFromOutside) {
  const Program program = from_stablehlo(R"(
    func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<f32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %z = stablehlo.multiply %y, %x : tensor<f32>
        stablehlo.return %j, %z : tensor<i32>, tensor<f32>
      }
      return %r#0, %r#1 : tensor<i32>, tensor<f32>
    })");
  const Equation& loop = program.equations()[0];
  EXPECT_EQ(loop.attrs.integer("cond_nconsts"), 1);
  EXPECT_EQ(loop.attrs.integer("body_nconsts"), 1);
  const int32_t n = 3;
  const float x = 2;
  const Arrays out = evaluate_program(
      program, Arrays{Array::from_host(DType::int32, {}, &n), Array::from_host(DType::float32, {}, &x)});
  EXPECT_EQ(out[0].item<int>(), 3);
  EXPECT_EQ(out[1].item<float>(), 16);
  const std::string text = to_stablehlo(program);
  EXPECT_EQ(to_stablehlo(from_stablehlo(text)), text);
}

TEST(StableHlo, BranchesShareTheValuesTheyRead) {
  const Program program = from_stablehlo(R"(
    func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %r = "stablehlo.if"(%p) ({
        %a = stablehlo.add %x, %x : tensor<f32>
        stablehlo.return %a : tensor<f32>
      }, {
        stablehlo.return %y : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %r : tensor<f32>
    })");
  const std::string text = to_stablehlo(program);
  EXPECT_EQ(to_stablehlo(from_stablehlo(text)), text);
  for (bool p : {true, false}) {
    const float x = 2, y = 7;
    const Arrays out = evaluate_program(
        program, Arrays{Array::from_host(DType::bool_, {}, &p), Array::from_host(DType::float32, {}, &x),
                        Array::from_host(DType::float32, {}, &y)});
    EXPECT_EQ(out[0].item<float>(), p ? 4 : 7);
  }
}

TEST(StableHlo, ANegativeCaseIndexTakesTheLastBranch) {
  const Program program = from_stablehlo(R"(
    func.func @main(%i: tensor<i32>) -> tensor<i32> {
      %a = stablehlo.constant dense<10> : tensor<i32>
      %b = stablehlo.constant dense<20> : tensor<i32>
      %r = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<i32> }, { stablehlo.return %b : tensor<i32> })
          : (tensor<i32>) -> tensor<i32>
      return %r : tensor<i32>
    })");
  for (auto [index, want] : {std::pair{-1, 20}, {0, 10}, {1, 20}, {9, 20}}) {
    EXPECT_EQ(evaluate_program(program, Arrays{Array::from_host(DType::int32, {}, &index)})[0].item<int>(), want)
        << index;
  }
  const std::string text = to_stablehlo(program);
  EXPECT_EQ(to_stablehlo(from_stablehlo(text)), text);
}

TEST(StableHlo, TuplesAndTokensLeaveNoTrace) {
  const Program program = from_stablehlo(R"(
    func.func @main(%x: tensor<f32>, %t: !stablehlo.token) -> (tensor<f32>, !stablehlo.token) {
      %p = stablehlo.tuple %x, %x : tuple<tensor<f32>, tensor<f32>>
      %y = stablehlo.get_tuple_element %p[1] : (tuple<tensor<f32>, tensor<f32>>) -> tensor<f32>
      %u = stablehlo.after_all %t, %t : !stablehlo.token
      return %y, %u : tensor<f32>, !stablehlo.token
    })");
  EXPECT_EQ(program.invars().size(), 1U);
  EXPECT_EQ(program.outputs().size(), 1U);
  EXPECT_TRUE(program.equations().empty());
}

// ---- constants ---------------------------------------------------------------------------------------------------

TEST(StableHlo, ConstantsKeepEveryBit) {
  ConfigScope wide = jax::enable_x64();
  auto check = [](const Array& constant) {
    const Program program = stage([&](std::span<const Array>) { return Arrays{constant}; }, Types{}, "f").program;
    const Program again = from_stablehlo(to_stablehlo(program));
    EXPECT_EQ(Attr(evaluate_program(again, Arrays{})[0]), Attr(constant)) << to_stablehlo(program);
  };
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  check(array<float>({0.0F, -0.0F, infinity, -infinity, nan, 1e-45F, 0.1F, 3.4028235e38F}));
  check(array<double>({0.1, 5e-324, 1e308, -2.0 / 3}));
  check(array<bool>({true, false, true}));
  check(array<uint64_t>({~uint64_t{0}, 1}));
  check(array<int64_t>({std::numeric_limits<int64_t>::min(), -1}));
  check(array<std::complex<float>>({{1, -2}, {nan, infinity}}));
  check(array<float>({}, Shape{0, 3}));
  std::vector<float> many;
  for (int i = 0; i < 5000; ++i) many.push_back(static_cast<float>(i) / 3);
  check(array<float>(many, Shape{50, 100}));
  for (DType dtype :
       {DType::bfloat16, DType::float16, DType::float8_e4m3fn, DType::float8_e5m2, DType::int4, DType::uint2}) {
    check(array<float>({0, 1, 2, 3, 1, 0}).astype(dtype));
  }
}

// ---- expectations ------------------------------------------------------------------------------------------------

std::vector<std::string> failures_of(const std::string& text) {
  stablehlo::CheckLog log;
  stablehlo::CheckScope scope(log);
  evaluate_program(from_stablehlo(text), Arrays{});
  return log.failures;
}

std::string expectation(const std::string& check, const std::string& got, const std::string& want,
                        const std::string& type) {
  return "func.func @main() { %a = stablehlo.constant dense<" + got + "> : " + type +
         " %b = stablehlo.constant dense<" + want + "> : " + type + " stablehlo.custom_call @check." + check +
         "(%a, %b) {has_side_effect = true} : (" + type + ", " + type + ") -> () return }";
}

TEST(StableHlo, ExpectationsHaveTheTolerancesOfTheInterpreter) {
  const std::string f32 = "tensor<f32>";
  EXPECT_TRUE(failures_of(expectation("expect_close", "0x3F800003", "0x3F800000", f32)).empty());
  EXPECT_EQ(failures_of(expectation("expect_close", "0x3F800004", "0x3F800000", f32)).size(), 1U);
  EXPECT_TRUE(failures_of(expectation("expect_close", "0x00000001", "0x80000001", f32)).empty());  // both round to zero
  EXPECT_TRUE(failures_of(expectation("expect_close", "0x7FC00000", "0x7FC00001", f32)).empty());
  EXPECT_EQ(failures_of(expectation("expect_close", "0x7F800000", "0xFF800000", f32)).size(), 1U);
  EXPECT_TRUE(failures_of(expectation("expect_almost_eq", "1.0009", "1.0", f32)).empty());
  EXPECT_EQ(failures_of(expectation("expect_almost_eq", "1.0011", "1.0", f32)).size(), 1U);
  EXPECT_EQ(failures_of(expectation("expect_almost_eq", "1.0e-5", "-1.0e-5", f32)).size(), 1U);
  EXPECT_EQ(failures_of(expectation("expect_eq", "1", "2", "tensor<i32>")).size(), 1U);
}

// Memory for all elements of a constant's type is allocated when they are compared, not before.
TEST(StableHlo, ExpectedSplatsTakeNoMemoryBeforeTheyAreCompared) {
  const auto expected = [](const std::string& value, const std::string& type) {
    return "func.func @main() { %a = stablehlo.constant dense<2.5> : " + type + " check.expect_eq_const %a, dense<" +
           value + "> : " + type + " return }";
  };
  EXPECT_TRUE(from_stablehlo(expected("2.5", "tensor<17592186044416xf32>")).constants().empty());
  EXPECT_TRUE(failures_of(expected("2.5", "tensor<2097152xf32>")).empty());
  EXPECT_EQ(failures_of(expected("3.5", "tensor<2097152xf32>")).size(), 1U);
}

TEST(StableHlo, AFailedExpectationSaysWhere) {
  const std::vector<std::string> failures =
      failures_of(expectation("expect_eq", "[1, 2, 3]", "[1, 9, 3]", "tensor<3xi32>"));
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_NE(failures[0].find("1 of 3 elements differ, first at [1]: got 2, expected 9"), std::string::npos)
      << failures[0];
}

// ---- rejected texts ----------------------------------------------------------------------------------------------

std::string refusal_of(const std::string& text) {
  try {
    from_stablehlo(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_refusal(const std::string& text, const std::string& words) {
  EXPECT_NE(refusal_of(text).find(words), std::string::npos) << "got: " << refusal_of(text);
}

TEST(StableHlo, RefusesWhatMakesNoSense) {
  expect_refusal("", "expected");
  expect_refusal(
      "func.func @f(%x: tensor<f32>) -> tensor<f32> { %y = func.call @f(%x) : (tensor<f32>) -> tensor<f32> return %y : "
      "tensor<f32> }",
      "functions that call themselves");
  expect_refusal(
      "func.func @f(%x: tensor<f32>) -> tensor<f32> { %y = func.call @g(%x) : (tensor<f32>) -> tensor<f32> return %y : "
      "tensor<f32> }",
      "there is no function @g");
  expect_refusal(
      "func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> { %z = \"stablehlo.add\"(%x, %y) : "
      "(tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32> return %z : tensor<2xf32> }",
      "stablehlo.add");
  expect_refusal(
      "func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> { %z = \"stablehlo.sine\"(%x) : (tensor<2xf32>) -> "
      "tensor<3xf32> return %z : tensor<3xf32> }",
      "the text declares (tensor<3xf32>)");
  expect_refusal("func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }",
                 "sizes of the arguments are open");
  expect_refusal(
      "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %y = \"stablehlo.transpose\"(%x) <{permutation = \"a\"}> : "
      "(tensor<2xf32>) -> tensor<2xf32> return %y : tensor<2xf32> }",
      "expected a list of integers as attribute 'permutation'");
}

TEST(StableHlo, ErrorsSayLineAndOperation) {
  expect_refusal(
      "func.func @f(%x: tensor<f32>) -> tensor<f32> {\n  %y = \"stablehlo.nonsense\"(%x) : (tensor<f32>) -> "
      "tensor<f32>\n  return %y : tensor<f32>\n}",
      "2:");
}

}  // namespace
}  // namespace capibara
