// Tests of StableHLO's portable artifacts and of exported functions, on jax's files and on ours.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "backends/backend.h"
#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/operations_check.h"
#include "compiler/stablehlo/read.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "data/recordings.h"

namespace capibara::stablehlo {
namespace {

namespace lax = jax::lax;

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The recorded files with a suffix, by name.
std::map<std::string, std::string> recorded(const std::string& suffix) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(oracle::recording("artifacts"))) {
    if (entry.path().extension() == suffix) files[entry.path().stem().string()] = file_bytes(entry.path());
  }
  return files;
}

ConfigScope with_settings(const char* platform) {
  Config settings = config();
  settings.platform = platform;
  settings.enable_x64 = true;
  settings.default_matmul_precision = "highest";
  return ConfigScope(settings);
}

void expect_error(const std::string& bytes, const std::string& part) {
  try {
    read_bytecode(bytes);
    ADD_FAILURE() << "no error about " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Artifact, IsTheProgramOfItsText) {
  const auto texts = recorded(".mlir"), files = recorded(".exported");
  ASSERT_GE(files.size(), 20u);
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(may_be_exported(bytes));
    EXPECT_EQ(from_stablehlo(read_exported_file(bytes).module), from_stablehlo(texts.at(name)));
  }
}

TEST(Artifact, OfEveryVersionComputesItsValues) {
  const auto files = recorded(".mlirbc");
  ASSERT_GE(files.size(), 20u);
  for (const char* platform : {"cpu", "reference"}) {
    const ConfigScope scope = with_settings(platform);
    for (const auto& [name, bytes] : files) {
      SCOPED_TRACE(platform + (": " + name));
      CheckLog log;
      log.parts_share_error = std::string(platform) != "reference";
      const CheckScope checks(log);
      default_backend().compile(from_stablehlo(bytes))->execute({}, {});
      EXPECT_GT(log.expectations, 0u);
      for (const std::string& failure : log.failures) ADD_FAILURE() << failure;
    }
  }
}

TEST(Artifact, WrittenAgainHasTheSameTree) {
  for (const char* suffix : {".mlirbc", ".exported"}) {
    for (const auto& [name, bytes] : recorded(suffix)) {
      SCOPED_TRACE(name);
      const Module module = read_file(is_bytecode(bytes) ? bytes : read_exported_file(bytes).module);
      EXPECT_EQ(print_tree(read_bytecode(write_bytecode(module))), print_tree(module));
    }
  }
}

TEST(Artifact, KeepsShardingsOfSeveralDevices) {
  const char* text = R"(
module @sharded attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(
      %a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}p1], replicated={"y"}>}) -> tensor<4x2xf32> {
    %b = sdy.sharding_constraint %a <@mesh, [{"x", ?}, {}]> : tensor<4x2xf32>
    %c = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
        manual_axes={"x", "y"} (%d: tensor<2x2xf32>) {
      %e = stablehlo.add %d, %d : tensor<2x2xf32>
      sdy.return %e : tensor<2x2xf32>
    } : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %c : tensor<4x2xf32>
  }
})";
  const Module module = parse_module(text);
  const std::string written = write_bytecode(module);
  EXPECT_EQ(print_tree(read_bytecode(written)), print_tree(module));
  EXPECT_EQ(from_stablehlo(written), from_stablehlo(text));
}

TEST(Artifact, HoldsRegionsThatReadValuesFromOutside) {
  const char* text = R"(
func.func public @main(%n: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%i = %0, %s = %n) : tensor<i32>, tensor<i32>
  cond {
    %2 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %n : tensor<i32>
    %3 = stablehlo.add %2, %s : tensor<i32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
  }
  %4 = stablehlo.add %1#1, %n : tensor<i32>
  return %4 : tensor<i32>
})";
  EXPECT_EQ(from_stablehlo(write_bytecode_of_text(text)), from_stablehlo(text));
}

TEST(Artifact, HasOperationsOfStablehloAlone) {
  const auto all = [](const NdArray& x) {
    return lax::erf(x) + lax::lgamma(x) + lax::asinh(x) + lax::top_k(x, 3).first + lax::nextafter(x, lax::cosh(x));
  };
  const NdArray x = lax::iota(DType::float32, 3) * NdArray(0.3f) + NdArray(0.2f);
  const Program program = jax::make_jaxpr(all)(x);
  const Module module = read_bytecode(write_program_bytecode(program));
  EXPECT_EQ(print_tree(module).find("= chlo."), std::string::npos);
  const std::vector<float> wanted = all(x).to_vector<float>();
  const std::vector<float> got = jax::ProgramFunction(read_module(module))({x})[0].to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f * std::abs(wanted[i]));
}

TEST(Artifact, NamesWhatItDoesNotKnow) {
  std::string bytes = write_bytecode_of_text(
      "func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "  %y = stablehlo.add %x, %x : tensor<f32>\n  return %y : tensor<f32>\n}");
  const std::size_t name = bytes.find("add_v1");
  ASSERT_NE(name, std::string::npos);
  std::string newer = bytes;
  newer.replace(name, 6, "add_v7");
  expect_error(newer, "vhlo.add_v7 is unknown; the file says \"StableHLO_v1.15.0\"");
  std::string other = bytes;
  other[4] = 0x0B;  // container version 5
  expect_error(other, "version 5");
  expect_error(bytes.substr(0, bytes.size() / 2), "bytecode: byte");
  EXPECT_THROW(write_bytecode_of_text("func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                                      "  %y = chlo.erf %x : tensor<?xf32> -> tensor<?xf32>\n"
                                      "  return %y : tensor<?xf32>\n}"),
               UnsupportedError);
}

TEST(Exported, FilesKeepTheirContent) {
  for (const auto& [name, bytes] : recorded(".exported")) {
    SCOPED_TRACE(name);
    const std::string written = write_exported_file(read_exported_file(bytes));
    EXPECT_EQ(write_exported_file(read_exported_file(written)), written);
    const jax::Exported read = jax::read_exported(written);
    EXPECT_EQ(read.platforms(), std::vector<std::string>{"cpu"});
    EXPECT_EQ(read.in_types().size(), read.in_tree().num_leaves());
    EXPECT_EQ(read.has_vjp(), name == "a_training_step");
  }
}

TEST(Exported, RunsWithTheTreesThatItWasExportedFor) {
  const NdArray x = lax::iota(DType::float32, 6), w = NdArray(2.0f);
  const auto f = jax::jit(
      [](const NdArray& x, const std::map<std::string, NdArray>& p) {
        return std::vector<NdArray>{x * p.at("w"), lax::sin(x)};
      },
      {.name = "f"});
  const std::map<std::string, NdArray> params{{"unused", x}, {"w", lax::reshape(w, {})}};
  const jax::Exported made = jax::export_lowered(f.lower(x, params), {.name = "f", .platforms = {"tpu", "cpu"}});
  EXPECT_EQ(made.kept_arguments(), (std::vector<std::size_t>{0, 2}));
  const jax::Exported read = jax::read_exported(made.serialize());
  EXPECT_EQ(read.name(), "f");
  const auto got = read.call<std::vector<NdArray>>(x, params);
  const auto wanted = f(x, params);
  ASSERT_EQ(got.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(got[i].to_vector<float>(), wanted[i].to_vector<float>());
  EXPECT_THROW(read.call<std::vector<NdArray>>(x), TypeError);
  EXPECT_THROW(read.call_flat(Arrays{x, x, x}), TypeError);
  const auto slope =
      jax::grad([&](const NdArray& v) { return jax::numpy::sum(read.call<std::vector<NdArray>>(v, params)[1]); });
  const std::vector<float> cosine = lax::cos(x).to_vector<float>(), own = slope(x).to_vector<float>();
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], cosine[i], 1e-6f);
}

TEST(Exported, OfOtherPlatformsIsRefusedByName) {
  const NdArray x = lax::iota(DType::float32, 2);
  const jax::Exported made =
      jax::export_lowered(jax::jit([](const NdArray& v) { return v + v; }).lower(x), {.platforms = {"tpu"}});
  try {
    made.call(x);
    ADD_FAILURE() << "no error";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("is for tpu, but is called on cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace capibara::stablehlo
