// The parser of StableHLO text: the trees it returns, and its errors for wrong text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser.h"

namespace capibara::stablehlo {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The only operation of a function whose arguments are %a, %b: tensor<2x3xf32> and %i: tensor<i32>.
Operation parse_one(const std::string& text) {
  const std::string arguments = "%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %i: tensor<i32>";
  Module module = parse_module("func.func @f(" + arguments + ") {\n" + text + "\n}");
  EXPECT_EQ(module.functions.at(0).body.operations.size(), 1u);
  return module.functions.at(0).body.operations.at(0);
}

std::string error_of(const std::string& text) {
  try {
    parse_modules(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

std::string body_error(const std::string& text) {
  return error_of("func.func @f(%a: tensor<2xf32>) {\n" + text + "\n}");
}

template <class T>
std::vector<T> elements_of(const Attribute& attribute) {
  const DenseElements* dense = attribute.as<DenseElements>();
  if (!dense) return {};
  std::vector<T> values(dense->bytes->size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), dense->bytes->data(), dense->bytes->size());
  return values;
}

Attribute constant(const std::string& literal_and_type) {
  return parse_one("%0 = stablehlo.constant " + literal_and_type).attributes.find("value");
}

std::vector<std::int64_t> integers(const Operation& operation, std::string_view name) {
  return integers_of(operation.attributes.find(name)).value();
}

std::string word(const Operation& operation, std::string_view name) {
  const Attribute attribute = operation.attributes.find(name);
  const DialectAttribute* dialect = attribute.as<DialectAttribute>();
  return dialect ? dialect->value : "absent";
}

TEST(Syntax, PrettyAndGenericTextGiveOneTree) {
  const std::string pretty = print_tree(parse_module(read_text("tests/compiler/stablehlo/every_form.pretty.mlir")));
  const std::string generic = print_tree(parse_module(read_text("tests/compiler/stablehlo/every_form.generic.mlir")));
  EXPECT_EQ(pretty, generic);
  EXPECT_GT(pretty.size(), 10000u);
}

TEST(Syntax, ModuleHasNameAttributesAndFunctions) {
  const Module module = parse_module(R"(
    module @jit_f attributes {mhlo.num_replicas = 1 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%arg0: tensor<2x?xf32> {jax.arg = "x"} loc("x")) -> (tensor<2x?xf32> {jax.result_info = "r"}) {
        %0 = call @g(%arg0) : (tensor<2x?xf32>) -> tensor<2x?xf32>
        return %0 : tensor<2x?xf32>
      }
      func.func private @g(tensor<2x?xf32>) -> tensor<2x?xf32>
    })");
  EXPECT_EQ(module.name, "jit_f");
  EXPECT_EQ(module.attributes.find("mhlo.num_replicas").as<Integer>()->value, 1);
  ASSERT_EQ(module.operations.size(), 1u);
  EXPECT_EQ(module.operations[0].name, "sdy.mesh");
  const Function* main = module.find_function("main");
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->visibility, "public");
  EXPECT_EQ(main->arguments.at(0).type.dims(), (std::vector<std::int64_t>{2, dynamic_size}));
  EXPECT_EQ(main->arguments[0].attributes.find("jax.arg").as<String>()->value, "x");
  EXPECT_EQ(name_of_location(main->arguments[0].location), "x");
  EXPECT_EQ(main->results.at(0).attributes.find("jax.result_info").as<String>()->value, "r");
  EXPECT_EQ(main->body.operations.at(0).name, "func.call");
  EXPECT_EQ(main->body.operations[0].attributes.find("callee").as<SymbolReference>()->name, "g");
  EXPECT_EQ(main->body.operations[0].position.line, 5);
  EXPECT_EQ(main->body.operations[0].position.column, 14);
  EXPECT_EQ(main->value_count, 2);
  EXPECT_TRUE(module.find_function("g")->is_declaration);
}

TEST(Syntax, DividersSeparateModules) {
  const auto modules =
      parse_modules("// a\n\n// -----\nfunc.func @a() { return }\n// -----\nmodule @m {}\nmodule @n {}\n");
  ASSERT_EQ(modules.size(), 3u);
  EXPECT_EQ(modules[0].functions.at(0).name, "a");
  EXPECT_EQ(modules[1].name, "m");
  EXPECT_EQ(modules[2].position.line, 7);
  EXPECT_THROW(parse_module("module @m {}\nmodule @n {}"), ParseError);
}

TEST(Syntax, ValuesAreNumberedInOrderOfDefinition) {
  const Module module = parse_module(R"(
    func.func @f(%a: tensor<i32>) -> tensor<i32> {
      %0:2 = stablehlo.while(%x = %a, %y = %a) : tensor<i32>, tensor<i32>
      cond {
        %c = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        stablehlo.return %y, %x : tensor<i32>, tensor<i32>
      }
      return %0#1 : tensor<i32>
    })");
  const Function& function = module.functions.at(0);
  const Operation& loop = function.body.operations.at(0);
  const Block& body = loop.regions.at(1).blocks.at(0);
  EXPECT_EQ(loop.regions[0].blocks.at(0).arguments.at(1).id, 2);
  EXPECT_EQ(loop.regions[0].blocks[0].operations.at(0).results.at(0).id, 3);
  EXPECT_EQ(body.arguments.at(0).id, 4);
  EXPECT_EQ(body.operations.at(0).operands.at(0).id, 5);
  EXPECT_EQ(loop.results.at(0).id, 6);
  EXPECT_EQ(function.body.operations.at(1).operands.at(0).id, 7);
  EXPECT_EQ(function.value_count, 8);
}

TEST(Syntax, ReduceThatAppliesAnOperationHasItsRegion) {
  const Operation reduce = parse_module(R"(
    func.func @f(%a: tensor<2x3xf32>, %z: tensor<f32>) {
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    })")
                               .functions.at(0)
                               .body.operations.at(0);
  EXPECT_EQ(integers(reduce, "dimensions"), std::vector<std::int64_t>{1});
  const Block& block = reduce.regions.at(0).blocks.at(0);
  EXPECT_EQ(block.arguments.size(), 2u);
  EXPECT_EQ(block.operations.at(0).name, "stablehlo.add");
  EXPECT_EQ(block.operations[0].results.at(0).type.text(), "tensor<f32>");
  EXPECT_EQ(block.operations.at(1).name, "stablehlo.return");
}

TEST(Syntax, ReducerPairsBecomeFirstsThenSeconds) {
  const Operation reduce = parse_module(R"(
    func.func @f(%a: tensor<3xf32>, %b: tensor<3xi32>, %z: tensor<f32>, %y: tensor<i32>) {
      %0:2 = stablehlo.reduce(%a init: %z), (%b init: %y) across dimensions = [0] : (tensor<3xf32>, tensor<3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
       reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>)  {
        stablehlo.return %q, %r : tensor<f32>, tensor<i32>
      }
    })")
                               .functions.at(0)
                               .body.operations.at(0);
  const Block& block = reduce.regions.at(0).blocks.at(0);
  EXPECT_EQ(block.arguments.at(1).type.text(), "tensor<i32>");
  EXPECT_EQ(block.operations.at(0).operands.at(0).id, block.arguments.at(2).id);
  EXPECT_EQ(block.operations[0].operands.at(1).id, block.arguments.at(1).id);
}

TEST(Syntax, PrettyArgumentsBecomeAttributes) {
  const Operation compare =
      parse_one("%0 = stablehlo.compare  GE, %a, %b,  FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>");
  EXPECT_EQ(word(compare, "comparison_direction"), "GE");
  EXPECT_EQ(word(compare, "compare_type"), "FLOAT");
  const Operation slice = parse_one("%0 = stablehlo.slice %a [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>");
  EXPECT_EQ(integers(slice, "start_indices"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(integers(slice, "limit_indices"), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(integers(slice, "strides"), (std::vector<std::int64_t>{1, 2}));
  const Operation call = parse_one(
      "%0 = stablehlo.custom_call @\"a b\"(%a) {backend_config = \"\\22x\\22\"} : (tensor<2x3xf32>) -> tensor<f32>");
  EXPECT_EQ(call.attributes.find("call_target_name").as<String>()->value, "a b");
  EXPECT_EQ(call.attributes.find("backend_config").as<String>()->value, "\"x\"");
  const Operation composite = parse_one(
      "%0 = stablehlo.composite \"my.op\" %a, %b {decomposition = @d, composite_attributes = {n = 2 : i64}} : "
      "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>");
  EXPECT_EQ(composite.attributes.find("name").as<String>()->value, "my.op");
  EXPECT_EQ(composite.operands.size(), 2u);
  EXPECT_TRUE(composite.attributes.find("composite_attributes").as<Dictionary>()->contains("n"));
  const Operation probe = parse_one("%0 = interpreter.probe %a, probe_id = \"p\" : tensor<2x3xf32>");
  EXPECT_EQ(probe.attributes.find("probe_id").as<String>()->value, "p");
  const Operation check = parse_one("check.expect_eq_const %i, dense<3> : tensor<i32>");
  EXPECT_TRUE(check.results.empty());
  EXPECT_EQ(elements_of<std::int32_t>(check.attributes.find("value")), std::vector<std::int32_t>{3});
}

TEST(Syntax, ConvolutionNumbersAreFields) {
  const Operation operation = parse_module(R"(
    func.func @f(%x: tensor<1x8x3xf32>, %w: tensor<4x3x3xf32>) {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[1, 2]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x3xf32>, tensor<4x3x3xf32>) -> tensor<1x4x5xf32>
    })")
                                  .functions.at(0)
                                  .body.operations.at(0);
  const Attribute numbers = operation.attributes.find("dimension_numbers");
  const Dictionary& fields = numbers.as<DialectAttribute>()->fields;
  EXPECT_EQ(fields.find("input_feature_dimension").as<Integer>()->value, 2);
  EXPECT_EQ(fields.find("kernel_output_feature_dimension").as<Integer>()->value, 0);
  EXPECT_EQ(integers_of(fields.find("kernel_spatial_dimensions")), std::vector<std::int64_t>{2});
  EXPECT_EQ(integers_of(fields.find("output_spatial_dimensions")), std::vector<std::int64_t>{2});
  EXPECT_EQ(integers(operation, "window_strides"), std::vector<std::int64_t>{2});
  EXPECT_EQ(integers(operation, "padding"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(integers(operation, "window_reversal"), std::vector<std::int64_t>{1});
}

TEST(Syntax, DenseLiteralsBecomeBytes) {
  EXPECT_EQ(elements_of<float>(constant("dense<[[1.5, -2.0], [0x7F800000, 1e-3]]> : tensor<2x2xf32>")),
            (std::vector<float>{1.5f, -2.0f, HUGE_VALF, 1e-3f}));
  EXPECT_EQ(elements_of<float>(constant("dense<\"0x0000803F000000C0\"> : tensor<2xf32>")),
            (std::vector<float>{1.0f, -2.0f}));
  EXPECT_EQ(elements_of<float>(constant("dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>")),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(elements_of<std::int8_t>(constant("dense<[-8, 7, 0xF]> : tensor<3xi4>")),
            (std::vector<std::int8_t>{-8, 7, -1}));
  EXPECT_EQ(elements_of<std::uint8_t>(constant("dense<[true, false, 1]> : tensor<3xi1>")),
            (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(elements_of<std::uint64_t>(constant("dense<[18446744073709551615, 0]> : tensor<2xui64>")),
            (std::vector<std::uint64_t>{~0ull, 0}));
  EXPECT_EQ(elements_of<std::uint16_t>(constant("dense<[1.0, 65504.0, 1e6, 5.9604645e-08]> : tensor<4xf16>")),
            (std::vector<std::uint16_t>{0x3C00, 0x7BFF, 0x7C00, 1}));
  EXPECT_EQ(elements_of<std::uint8_t>(constant("dense<[1.0, 448.0, 0x7F]> : tensor<3xf8E4M3FN>")),
            (std::vector<std::uint8_t>{0x38, 0x7E, 0x7F}));
  EXPECT_TRUE(constant("dense<> : tensor<0x3xf32>").as<DenseElements>()->bytes->empty());
  EXPECT_EQ(elements_of<std::int32_t>(constant("dense<[1, // one\n 2]> : tensor<2xi32>")),
            (std::vector<std::int32_t>{1, 2}));
}

TEST(Syntax, EqualElementsAreKeptAsSplat) {
  for (const char* literal :
       {"dense<7> : tensor<9xi16>", "dense<[7, 7]> : tensor<2xi16>", "dense<\"0x0700\"> : tensor<5xi16>"}) {
    const Attribute value = constant(literal);
    EXPECT_TRUE(value.as<DenseElements>()->splat) << literal;
    EXPECT_EQ(elements_of<std::int16_t>(value), std::vector<std::int16_t>{7}) << literal;
  }
  EXPECT_FALSE(constant("dense<7> : tensor<i16>").as<DenseElements>()->splat);
  // A splat costs nothing, however large.
  EXPECT_TRUE(constant("dense<0.0> : tensor<1099511627776xf32>").as<DenseElements>()->splat);
}

TEST(Syntax, PackedBooleansOfOlderTextsAreUnpacked) {
  const Attribute value = constant("dense<\"0x0180\"> : tensor<16xi1>");
  std::vector<std::uint8_t> expected(16);
  expected[0] = expected[15] = 1;
  EXPECT_EQ(elements_of<std::uint8_t>(value), expected);
}

TEST(Syntax, AliasesMayFollowTheirUse) {
  const Module module = parse_module(R"(
#loc1 = loc("inner")
module {
  func.func @f(%a: !t) {
    %0 = stablehlo.constant #value loc(#loc2)
    return loc(callsite("a" at "file.py":3:4 to :9))
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/add"(#loc1))
#value = dense<2> : tensor<i32>
!t = tensor<2xf32>
)");
  const Function& function = module.functions.at(0);
  EXPECT_EQ(function.arguments.at(0).type.text(), "tensor<2xf32>");
  EXPECT_EQ(name_of_location(function.body.operations.at(0).location), "jit(f)/add");
  const Location* site = function.body.operations.at(1).location.as<Location>();
  EXPECT_EQ(site->kind, Location::Kind::call_site);
  EXPECT_EQ(site->children.at(1).as<Location>()->line, 3);
}

TEST(Syntax, UnknownAttributesKeepTheirText) {
  const Operation operation = parse_one(
      R"("my.op"() <{a = #sdy.sharding<@mesh, [{"x"}, {}]>, b = affine_map<(d0) -> (d0)>, c, d = #my<kind [1]>}> : () -> ())");
  EXPECT_EQ(operation.attributes.find("a").as<DialectAttribute>()->text, "@mesh, [{\"x\"}, {}]");
  EXPECT_EQ(operation.attributes.find("b").as<OpaqueAttribute>()->text, "affine_map<(d0) -> (d0)>");
  EXPECT_NE(operation.attributes.find("c").as<Unit>(), nullptr);
  EXPECT_EQ(operation.attributes.find("d").as<DialectAttribute>()->kind, "kind");
  EXPECT_EQ(operation.attributes.find("d").as<DialectAttribute>()->text, "[1]");
}

TEST(Syntax, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(error_of("func.func @f() {\n  %0 = \"a.b\"(%x) : (f32) -> ()\n}"),
            "2:14: expected a defined value, got %x");
  EXPECT_EQ(error_of("module {"), "1:9: expected '}', got the end of the text");
  EXPECT_EQ(body_error("%a = stablehlo.abs %a : tensor<2xf32>"),
            "2:1: expected a new value name, got %a, which is defined already");
  EXPECT_EQ(body_error("%0 = stablehlo.abs %a : tensor<3xf32>"),
            "2:20: stablehlo.abs: expected operand 0 of type tensor<2xf32> as it was defined, got tensor<3xf32>");
  EXPECT_EQ(body_error("%0:2 = stablehlo.abs %a : tensor<2xf32>"),
            "2:8: stablehlo.abs: expected names for 1 results, got 2");
  EXPECT_EQ(body_error("%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>"),
            "2:31: expected 2 elements in dimension 0 of tensor<2xi32>, got 3");
  EXPECT_EQ(body_error("%0 = stablehlo.constant dense<300> : tensor<i8>"), "2:31: expected a number that fits i8");
  EXPECT_EQ(body_error("%0 = stablehlo.constant dense<\"0x0102\"> : tensor<4xi32>"),
            "2:31: expected 4 elements of 4 bytes for tensor<4xi32>, got 2 bytes");
  EXPECT_EQ(body_error("%0 = stablehlo.constant dense_resource<r> : tensor<4xi32>"),
            "2:25: expected dense<...>, got dense_resource<...>: write the elements into the text");
  EXPECT_EQ(body_error("%0 = stablehlo.abs %a : tensor<2xf32> {x}"), "2:39: expected an operation, got '{'");
  EXPECT_EQ(body_error("frobnicate %a"), "2:1: expected an operation, got 'frobnicate'");
  EXPECT_EQ(body_error("\"a.b\"() {x = 1, x = 2} : () -> ()"), "2:1: expected each attribute once, got 'x' twice");
  EXPECT_EQ(body_error("\"a.b\"() {x = #y} : () -> ()"),
            "2:14: expected a known attribute, got the undefined alias '#y'");
  EXPECT_EQ(body_error("\"a.b\"() {x = \"y\n"), "2:14: expected a closing '\"' on the same line, got none");
}

TEST(Syntax, SizesBeyondReasonAreRefused) {
  EXPECT_EQ(error_of("func.func @f(%a: tensor<99999999999x99999999999xf32>)"),
            "1:37: expected a tensor of at most 2^56 elements");
  EXPECT_EQ(error_of("func.func @f(%a: tensor<99999999999999999999xf32>)"),
            "1:25: expected a tensor of at most 2^56 elements");
  std::string ones;
  for (int i = 0; i < 100; ++i) ones += "1x";
  EXPECT_EQ(error_of("func.func @f(%a: tensor<" + ones + "f32>)"), "1:153: expected at most 64 dimensions");
  EXPECT_EQ(body_error("%0:99999999999 = stablehlo.abs %a : tensor<2xf32>"),
            "2:1: expected 1 to 1048576 results, got 99999999999");
}

TEST(Syntax, NestingIsBounded) {
  const auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  const std::string message = "expected at most 200 levels of nesting";
  const int deep = 100000;
  EXPECT_NE(body_error("\"a.b\"() {x = " + repeat("[", deep)).find(message), std::string::npos);
  EXPECT_NE(body_error("\"a.b\"() {x = " + repeat("{x = ", deep)).find(message), std::string::npos);
  EXPECT_NE(body_error("\"a.b\"() : " + repeat("(", deep)).find(message), std::string::npos);
  EXPECT_NE(body_error(repeat("\"a.b\"() ({", deep)).find(message), std::string::npos);
  EXPECT_NE(body_error("return loc(" + repeat("\"a\"(", deep)).find(message), std::string::npos);
  EXPECT_NE(error_of("func.func @f(%a: " + repeat("tuple<", deep)).find(message), std::string::npos);
  EXPECT_NE(error_of("#a = [#b]\n#b = [#a]\n").find("does not contain itself"), std::string::npos);
}

TEST(Syntax, AliasesCannotGrowATypeWithoutBound) {
  std::string text = "!t0 = tensor<f32>\n";
  for (int i = 1; i < 60; ++i) {
    const std::string previous = "!t" + std::to_string(i - 1);
    text += "!t" + std::to_string(i) + " = tuple<" + previous + ", " + previous + ">\n";
  }
  EXPECT_NE(error_of(text).find("expected a smaller type"), std::string::npos);
  std::string chain = "#a0 = []\n";
  for (int i = 1; i < 2000; ++i) {
    chain += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_NE(error_of(chain).find("expected a smaller attribute"), std::string::npos);
}

TEST(Syntax, CutAndGarbledTextNeverCrashes) {
  for (const char* path :
       {"tests/compiler/stablehlo/every_form.pretty.mlir", "tests/compiler/stablehlo/every_form.generic.mlir"}) {
    const std::string text = read_text(path);
    for (std::size_t length = 0; length < text.size(); length += 41) error_of(text.substr(0, length));
    std::uint32_t state = 1;
    for (int round = 0; round < 300; ++round) {
      std::string garbled = text;
      for (int change = 0; change < 3; ++change) {
        state = state * 1664525 + 1013904223;
        const std::size_t at = (state >> 8) % garbled.size();
        garbled[at] = "(){}[]<>,:=%#@!\"x0-"[state % 19];
      }
      error_of(garbled);
    }
  }
}

}  // namespace
}  // namespace capibara::stablehlo
