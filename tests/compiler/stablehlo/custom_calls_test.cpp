// Custom calls known only to a plugin's compiler: read, kept unchanged, passed on, and rejected by other backends.
#include <capibara/capibara.h>

#include "backends/backend.h"
#include "backends/pjrt/prepare.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "compiler/stablehlo/write.h"
#include "data/recordings.h"
#include "lax/linalg/lapack_calls.h"
#include "program/ir/build.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace capibara::stablehlo {
namespace {

// The custom calls of a text, in order.
std::vector<Operation> calls_of(const std::string& text) {
  std::vector<Operation> calls;
  for (const Function& function : parse_module(text).functions) {
    for (const Operation& operation : function.body.operations) {
      if (operation.name == "stablehlo.custom_call") calls.push_back(operation);
    }
  }
  return calls;
}

// Layouts as lists of integers, however they are written: dense<0> and dense<[0]> are the same.
std::vector<Ints> layouts_of(const Operation& call, const char* name) {
  std::vector<Ints> lists;
  if (const auto* array = call.attributes.find(name).as<Array>()) {
    for (const Attribute& layout : array->elements) lists.push_back(integers_of(layout).value());
  }
  return lists;
}

void expect_same_calls(const std::string& got, const std::string& want) {
  const std::vector<Operation> ours = calls_of(got), theirs = calls_of(want);
  ASSERT_EQ(ours.size(), theirs.size()) << got;
  ASSERT_FALSE(ours.empty());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].attributes.size(), theirs[i].attributes.size()) << got;
    for (const auto& [name, attribute] : theirs[i].attributes) {
      if (name.ends_with("_layouts")) {
        EXPECT_EQ(layouts_of(ours[i], name.c_str()), layouts_of(theirs[i], name.c_str())) << name;
      } else {
        EXPECT_EQ(ours[i].attributes.find(name), attribute) << name << " in " << got;
      }
    }
    ASSERT_EQ(ours[i].operands.size(), theirs[i].operands.size());
    for (std::size_t k = 0; k < ours[i].operands.size(); ++k)
      EXPECT_EQ(ours[i].operands[k].type, theirs[i].operands[k].type);
    ASSERT_EQ(ours[i].results.size(), theirs[i].results.size());
    for (std::size_t k = 0; k < ours[i].results.size(); ++k)
      EXPECT_EQ(ours[i].results[k].type, theirs[i].results[k].type);
  }
}

// A function with one call on %x: 2x3 floats.
std::string calling(const std::string& call) {
  return "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n  " + call +
         "\n  return %y : tensor<2x3xf32>\n}\n";
}
const std::string signature = " : (tensor<2x3xf32>) -> tensor<2x3xf32>";

const std::vector<std::string>& opaque_texts() {
  static const std::vector<std::string> texts = {
      calling("%y = stablehlo.custom_call @plain(%x)" + signature),
      calling(
          "%y = stablehlo.custom_call @\"of odd name\"(%x) {api_version = 1 : i32, backend_config = \"a\\22b\\0A\"}" +
          signature),
      calling(
          "%y = stablehlo.custom_call @typed(%x) {api_version = 4 : i32, backend_config = {a = 1 : ui8, b = 0.1 : f32, "
          "c = \"text\", d = [1 : i64, true], e = array<i64: 3, 4>, f = array<f64: 0.5>, g = dense<[[1, 2], [3, 4]]> : "
          "tensor<2x2xi32>, "
          "h, \"odd name\" = f32, i = 0x7FC00000 : f32, j = array<i1: true, false>, k = -2.5e-3 : f64, l = "
          "array<i32>}}" +
          signature),
      calling("%y = stablehlo.custom_call @laid_out(%x) {has_side_effect = true, operand_layouts = [dense<[0, 1]> : "
              "tensor<2xindex>], "
              "result_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = "
              "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = "
              "[]>]}" +
              signature),
      calling("%y:2 = stablehlo.custom_call @two(%x, %x) {mhlo.frontend_attributes = {k = \"v\"}, mhlo.sharding = "
              "\"{replicated}\"} : "
              "(tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<0xui8>)\n  %z = stablehlo.add %y#0, %x : "
              "tensor<2x3xf32>\n  "
              "%w:2 = stablehlo.custom_call @two(%z, %x) {result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<0> "
              ": tensor<1xindex>]} : "
              "(tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<0xui8>)"),
  };
  return texts;
}

std::string closed(std::string text) {  // adapts the return to the last call, whose result has another name
  const std::size_t at = text.find("return %y :");
  if (text.find("%w:2") != std::string::npos) text.replace(at, 9, "return %w#0");
  return text;
}

TEST(CustomCalls, OfUnknownTargetsAreWrittenAsTheyWereRead) {
  for (const std::string& text : opaque_texts()) {
    expect_same_calls(write_program(from_stablehlo(closed(text)), {}), closed(text));
  }
}

TEST(CustomCalls, OfUnknownTargetsReachAPluginAsTheyWereRead) {
  for (const std::string& text : opaque_texts()) {
    const pjrt::Prepared prepared = pjrt::prepare(from_stablehlo(closed(text)), {});
    expect_same_calls(prepared.text, closed(text));
    EXPECT_EQ(prepared.calls, nullptr) << "the host has nothing to do";
  }
}

TEST(CustomCalls, OfJaxToCudnnAreWrittenAsTheyWereRead) {
  const std::filesystem::path folder = oracle::recording("cudnn");
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".mlir") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    SCOPED_TRACE(entry.path().string());
    const Program program = from_stablehlo(text.str());
    expect_same_calls(write_program(program, {}), text.str());
    expect_same_calls(pjrt::prepare(program, {}).text, text.str());
    EXPECT_TRUE(opaque_call(program).starts_with("__cudnn$fmha"));
    ++count;
  }
  EXPECT_EQ(count, 6);
}

std::string error_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const NotImplementedError& error) {
    return error.what();
  }
  return "";
}

TEST(CustomCalls, OfUnknownTargetsAreRefusedByNativeBackendsByName) {
  const Program program = from_stablehlo(opaque_texts()[0]);
  const Arrays inputs = {jax::numpy::ones({2, 3})};
  for (const char* name : {"cpu", "reference"}) {
    const std::string message = error_of([&] { backend(name).compile(program)->execute(inputs, {}); });
    EXPECT_NE(message.find("have no function 'plain'\nHint: "), std::string::npos) << name << ": " << message;
  }
}

TEST(CustomCalls, OfUnknownTargetsAreRefusedOnTheCpuBeforeAnythingRuns) {
  const Program program = from_stablehlo(opaque_texts()[0]);
  EXPECT_THROW(backend("cpu").compile(program), NotImplementedError);
}

TEST(CustomCalls, OfUnknownTargetsHaveNeitherDerivativesNorBatches) {
  const Program program = from_stablehlo(opaque_texts()[0]);
  const auto called = [&](const NdArray& x) { return evaluate_program(program, Arrays{x})[0]; };
  const NdArray x = jax::numpy::ones({2, 3}), many = jax::numpy::ones({4, 2, 3});
  const auto along = [&](const NdArray& v) { return jax::jvp(called, std::tuple(v), std::tuple(v)); };
  const std::string derivative = error_of([&] { jax::make_jaxpr(along)(x); });
  EXPECT_NE(derivative.find("a call of 'plain' cannot be differentiated"), std::string::npos) << derivative;
  const std::string batch = error_of([&] { jax::make_jaxpr(jax::vmap(called))(many); });
  EXPECT_NE(batch.find("a call of 'plain' cannot be batched"), std::string::npos) << batch;
}

TEST(CustomCalls, OfUnknownTargetsInsideFunctionsAreFound) {
  const std::string text =
      "func.func private @g(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.custom_call @inner(%x) : (tensor<f32>) "
      "-> tensor<f32>\n"
      "  return %0 : tensor<f32>\n}\nfunc.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = func.call @g(%x) : "
      "(tensor<f32>) -> tensor<f32>\n"
      "  return %0 : tensor<f32>\n}\n";
  EXPECT_EQ(opaque_call(from_stablehlo(text)), "inner");
  EXPECT_EQ(opaque_call(from_stablehlo("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")),
            "");
}

// A call with a side effect is kept, gets no additional operands, and is not part of the order of host calls.
TEST(CustomCalls, WithASideEffectStayWhereNobodyReadsTheirResults) {
  const std::string text =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.custom_call @heard(%x) {has_side_effect = true} : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  %1 = stablehlo.custom_call @unheard(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %x : tensor<2xf32>\n}\n";
  const std::vector<Operation> calls = calls_of(pjrt::prepare(from_stablehlo(text), {}).text);
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls[0].operands.size(), 1u);
  EXPECT_EQ(calls[0].results.size(), 1u);
  EXPECT_EQ(calls[0].attributes.find("has_side_effect"), Attribute::of(true));
}

TEST(CustomCalls, ThatCannotBePassedOnSayWhy) {
  const auto refusal = [](const std::string& text) { return error_of([&] { from_stablehlo(text); }); };
  const std::string token =
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.create_token : !stablehlo.token\n"
      "  %1:2 = stablehlo.custom_call @ordered(%x, %0) : (tensor<f32>, !stablehlo.token) -> (tensor<f32>, "
      "!stablehlo.token)\n"
      "  return %1#0 : tensor<f32>\n}\n";
  EXPECT_NE(refusal(token).find("custom call @ordered has a token or a tuple"), std::string::npos) << refusal(token);
  const std::string calls =
      calling("%y = stablehlo.custom_call @caller(%x) {called_computations = [@main]}" + signature);
  EXPECT_NE(refusal(calls).find("custom call @caller calls functions of the module"), std::string::npos)
      << refusal(calls);
}

}  // namespace
}  // namespace capibara::stablehlo
