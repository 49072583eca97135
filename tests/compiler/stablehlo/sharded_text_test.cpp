// Texts of programs over several devices: shard_map as written, Shardy's dialect as read, and rejected
// texts.
#include <capibara/capibara.h>
#include <capibara/collective.h>
#include <capibara/config.h>
#include <capibara/control.h>
#include <capibara/shard_map.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include <cmath>

#include "backends/backend.h"
#include "core/sharding/device_groups.h"
#include "program/trace/stage.h"

using namespace capibara;
namespace lax = capibara::jax::lax;
namespace jnp = capibara::jax::numpy;

namespace {

using Floats = std::vector<float>;
using Function = std::function<Array(const Array&)>;

class ShardedText : public testing::Test {
 protected:
  Mesh mesh_{{"data", "model"}, {4, 2}, {}};
  PartitionSpec rows_{{{"data"}}}, cells_{{{"data"}, {"model"}}}, whole_{};
  Array x_ = lax::reshape(lax::iota(DType::float32, 64), {8, 8});

  Function mapped(const Function& function, const PartitionSpec& in, const PartitionSpec& out,
                  AxisList axes = {}) const {
    NamedSharding devices;
    devices.platform = "cpu";
    devices.mesh = mesh_;
    for (int id = 0; id < 8; ++id) devices.devices.push_back(id);
    jax::ShardMapOptions options{devices, {in}, {out}, std::move(axes), false};
    return [=](const Array& x) {
      return jax::shard_map([=](const Arrays& parts) { return Arrays{function(parts[0])}; }, options)({x})[0];
    };
  }

  Program program_of(const Function& function) const {
    return stage([&](std::span<const Array> in) { return Arrays{function(in[0])}; }, Types{x_.type()}, "f").program;
  }

  std::string text_of(const Function& function) const { return to_stablehlo(program_of(function)); }

  // The text read back gives the same values, in lanes and device by device.
  void expect_same_values(const Function& function) const {
    const std::string text = text_of(function);
    SCOPED_TRACE(text);
    const Program again = from_stablehlo(text);
    EXPECT_EQ(to_stablehlo(again), text);
    const Floats wanted = function(x_).to_vector<float>();
    for (const char* platform : {"cpu", "reference"}) {
      Config settings = config();
      settings.platform = platform;
      ConfigScope scope(settings);
      const Floats got = default_backend().compile(again)->execute(Arrays{x_}, {})[0].to_vector<float>();
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << platform;
    }
  }

  static std::string refusal(const std::string& text) {
    try {
      from_stablehlo(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  // A manual computation over a line of four devices, whose body takes %b: tensor<2xf32>.
  static std::string line(const std::string& body, const std::string& result = "tensor<8xf32>",
                          const std::string& in = "<@mesh, [{\"x\"}]>", const std::string& axes = "{\"x\"}") {
    return concat("module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%a: tensor<8xf32>) -> ", result,
                  " {\n    %r = sdy.manual_computation(%a) in_shardings=[", in, "] out_shardings=[<@mesh, [{\"x\"}]>] ",
                  "manual_axes=", axes, " (%b: tensor<2xf32>) {\n", body, "    } : (tensor<8xf32>) -> ", result,
                  "\n    return %r : ", result, "\n  }\n}\n");
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

// ---- writing -------------------------------------------------------------------------------------------------------

TEST_F(ShardedText, ShardMapIsAManualComputation) {
  const std::string text =
      text_of(mapped([](const Array& x) { return lax::psum(x, {"data"}); }, cells_, PartitionSpec{{{}, {"model"}}}));
  EXPECT_TRUE(has(text, "mhlo.num_partitions = 8")) << text;
  EXPECT_TRUE(has(text, "sdy.mesh @mesh = <[\"data\"=4, \"model\"=2]>")) << text;
  EXPECT_TRUE(
      has(text,
          "sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"data\"}, {\"model\"}]>] "
          "out_shardings=[<@mesh, [{}, {\"model\"}]>] manual_axes={\"data\", \"model\"} (%arg1: tensor<2x4xf32>)"))
      << text;
  EXPECT_TRUE(has(text,
                  "\"stablehlo.all_reduce\"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
                  "replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids = "
                  "unit}> ({"))
      << text;
  EXPECT_TRUE(has(text, "sdy.return")) << text;
}

TEST_F(ShardedText, FreeAxesLeaveDimensionsOpen) {
  const std::string text =
      text_of(mapped([](const Array& x) { return lax::psum(x, {"data"}); }, rows_, whole_, {"data"}));
  EXPECT_TRUE(has(text,
                  "in_shardings=[<@mesh, [{\"data\", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] "
                  "manual_axes={\"data\"}"))
      << text;
}

TEST_F(ShardedText, EveryCollectiveReadsBackToItsValues) {
  using lax::AxisNames;
  const std::vector<std::pair<const char*, Function>> bodies = {
      {"psum",
       [](const Array& x) {
         return lax::psum(x, {"model", "data"}) + x;
       }},
      {"pmax", [](const Array& x) { return lax::pmax(x, {"data"}) - x; }},
      {"pmin", [](const Array& x) { return lax::pmin(x, {"model"}) * x; }},
      {"all_gather", [](const Array& x) { return lax::all_gather(x, "data", {.axis = 1})[0] + jnp::sum(x); }},
      {"tiled all_gather",
       [](const Array& x) {
         return lax::all_gather(x, AxisNames{"model", "data"}, {.axis = 0, .tiled = true});
       }},
      {"psum_scatter", [](const Array& x) { return lax::psum_scatter(x, "model", {.scatter_dimension = 0}) + x; }},
      {"tiled psum_scatter",
       [](const Array& x) { return lax::psum_scatter(x, "data", {.scatter_dimension = 1, .tiled = true}); }},
      {"all_to_all", [](const Array& x) { return lax::all_to_all(x, "data", 1, 0) * 2; }},
      {"all_to_all back", [](const Array& x) { return lax::all_to_all(x, "model", 0, 1) * 2; }},
      {"tiled all_to_all", [](const Array& x) { return lax::all_to_all(x, "data", 1, 0, {.tiled = true}); }},
      {"ppermute",
       [](const Array& x) {
         return lax::ppermute(x, "data", {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
       }},
      {"ppermute with gaps",
       [](const Array& x) {
         return lax::ppermute(x, "data", {{0, 2}, {3, 1}});
       }},
      {"ppermute over two axes",
       [](const Array& x) {
         return lax::ppermute(x, AxisNames{"data", "model"}, {{0, 5}, {5, 7}, {7, 0}});
       }},
      {"pbroadcast", [](const Array& x) { return lax::pbroadcast(x, "data", 2); }},
      {"axis_index", [](const Array& x) { return x * (lax::axis_index("data") + lax::axis_index("model") * 10); }},
      {"groups of psum",
       [](const Array& x) {
         return lax::psum(x, {"data"}, {{0, 3}, {1, 2}});
       }},
      {"groups of all_gather",
       [](const Array& x) {
         return lax::all_gather(x, "data", {.tiled = true, .axis_index_groups = {{3, 0}, {1, 2}}});
       }},
      {"groups of psum_scatter",
       [](const Array& x) {
         return lax::psum_scatter(x, "data",
                                  {.scatter_dimension = 1, .tiled = true, .axis_index_groups = {{0, 2}, {1, 3}}});
       }},
      {"groups of all_to_all",
       [](const Array& x) {
         return lax::all_to_all(x, "data", 1, 0, {.tiled = true, .axis_index_groups = {{0, 2}, {3, 1}}});
       }},
      {"groups over two axes",
       [](const Array& x) {
         return lax::psum(x, {"data", "model"}, {{0, 7}, {1, 2}, {3, 4}, {5, 6}});
       }},
  };
  for (const auto& [name, body] : bodies) {
    SCOPED_TRACE(name);
    expect_same_values(mapped(body, cells_, cells_));
  }
}

TEST_F(ShardedText, LoopsBranchesAndCallsReadBack) {
  expect_same_values(mapped(
      [](const Array& x) {
        return lax::fori_loop(
            0, 3, [](const Array&, const Array& c) { return lax::psum(c, {"data"}) * 0.25 + 1; }, x);
      },
      cells_, cells_));
  expect_same_values(mapped(
      [](const Array& x) {
        return lax::cond(
            lax::axis_index("data") > 1, [](const Array& y) { return y * 2; }, [](const Array& y) { return y - 1; }, x);
      },
      cells_, cells_));
  expect_same_values(
      mapped([](const Array& x) { return jax::jit([](const Array& y) { return y - lax::pmean(y, {"model"}); })(x); },
             cells_, cells_));
}

TEST_F(ShardedText, MapsWithinMapsAndPartlyManualOnesReadBack) {
  expect_same_values(mapped([](const Array& x) { return x * lax::axis_index("data"); }, rows_, rows_, {"data"}));
  const Function inner = mapped([](const Array& x) { return x + lax::psum(x, {"model"}) * lax::axis_index("data"); },
                                PartitionSpec{{{}, {"model"}}}, PartitionSpec{{{}, {"model"}}}, {"model"});
  expect_same_values(mapped([=](const Array& x) { return inner(x * 2); }, rows_, rows_, {"data"}));
}

TEST_F(ShardedText, GradientsReadBack) {
  const Function loss = mapped(
      [](const Array& x) {
        return lax::psum(jnp::sum(lax::sin(x) * x), {"data", "model"});
      },
      cells_, whole_);
  expect_same_values([=](const Array& x) { return jax::grad([=](const Array& y) { return loss(y); })(x); });
}

TEST_F(ShardedText, CollectivesOutsideOfMapsAreRefused) {
  const Program program =
      stage(
          [](std::span<const Array> in) {
            return capibara::bind(primitive("psum"), in, {{"axes", Attr::List{"x"}}, {"axis_index_groups", Attr()}});
          },
          Types{x_.type()}, "f")
          .program;
  try {
    to_stablehlo(program);
    FAIL() << "was written";
  } catch (const NotImplementedError& error) {
    EXPECT_TRUE(has(error.what(), "psum over 'x' is outside of shard_map")) << error.what();
  }
}

// ---- reading -------------------------------------------------------------------------------------------------------

TEST_F(ShardedText, AnyOperationReducesAcrossDevices) {
  const Program program = from_stablehlo(line(R"(
      %c = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
             replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %m = stablehlo.multiply %p, %q : tensor<f32>
        stablehlo.return %m : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %c : tensor<2xf32>
)"));
  const Array x = array<float>({1, 2, 3, 4, 5, 6, 7, 8}, Shape{8});
  EXPECT_EQ(default_backend().compile(program)->execute(Arrays{x}, {})[0].to_vector<float>(),
            (Floats{105, 384, 105, 384, 105, 384, 105, 384}));
}

TEST_F(ShardedText, BroadcastsTakeTheFirstOfEachGroup) {
  const Program program = from_stablehlo(line(R"(
      %c = "stablehlo.collective_broadcast"(%b) <{replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>}>
             : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %c : tensor<2xf32>
)"));
  const Array x = array<float>({1, 2, 3, 4, 5, 6, 7, 8}, Shape{8});
  EXPECT_EQ(default_backend().compile(program)->execute(Arrays{x}, {})[0].to_vector<float>(),
            (Floats{5, 6, 3, 4, 5, 6, 3, 4}));
}

TEST_F(ShardedText, GroupsMayBeAxesOfTheMesh) {
  const auto text = [](const std::string& axes) {
    return concat(R"(
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", "y"}]>]
        manual_axes={"x", "y"} (%b: tensor<1xf32>) {
      %c = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [)",
                  axes, R"(]>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %m = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %m : tensor<f32>
      }) : (tensor<1xf32>) -> tensor<1xf32>
      sdy.return %c : tensor<1xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
)");
  };
  const Array x = array<float>({1, 2, 4, 8}, Shape{4});
  const std::string along_x = "#stablehlo.axis_ref<name = \"x\">", along_y = "#stablehlo.axis_ref<name = \"y\">";
  const auto values = [&](const std::string& axes) {
    return default_backend().compile(from_stablehlo(text(axes)))->execute(Arrays{x}, {})[0].to_vector<float>();
  };
  EXPECT_EQ(values(along_x), (Floats{5, 10, 5, 10}));
  EXPECT_EQ(values(along_y), (Floats{3, 3, 12, 12}));
  EXPECT_EQ(values(along_y + ", " + along_x), (Floats{15, 15, 15, 15}));
  const std::string part =
      "#stablehlo.axis_ref<name = \"x\", sub_axis_info = #stablehlo.sub_axis_info<pre_size = 1, size = 2>>";
  EXPECT_TRUE(has(refusal(text(part)), "parts of an axis are not supported, got a part of \"x\""))
      << refusal(text(part));
  EXPECT_TRUE(has(refusal(text("#stablehlo.axis_ref<name = \"q\">")), "has no axis \"q\""));
}

// Such a value is the sum of the parts on four devices: each adds one, so the result is larger by four.
TEST_F(ShardedText, SumsStillToBeTakenCountAsTaken) {
  const Program program = from_stablehlo(R"(
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}], unreduced={"x"}>]
        out_shardings=[<@mesh, [{}], unreduced={"x"}>] manual_axes={"x"} (%b: tensor<3xf32>) {
      %one = stablehlo.constant dense<1.0> : tensor<3xf32>
      %c = stablehlo.add %b, %one : tensor<3xf32>
      sdy.return %c : tensor<3xf32>
    } : (tensor<3xf32>) -> tensor<3xf32>
    return %r : tensor<3xf32>
  }
}
)");
  const Array x = array<float>({1, 2, 3}, Shape{3});
  EXPECT_EQ(default_backend().compile(program)->execute(Arrays{x}, {})[0].to_vector<float>(), (Floats{5, 6, 7}));
}

TEST_F(ShardedText, WhatMakesNoSenseIsRefusedByName) {
  const std::string back = "      sdy.return %b : tensor<2xf32>\n";
  const auto reduce = [](const std::string& groups) {
    return concat(
        "      %c = \"stablehlo.all_gather\"(%b) <{all_gather_dim = 0 : i64, channel_handle = ",
        "#stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = ", groups,
        ", use_global_device_ids}> : (tensor<2xf32>) -> tensor<8xf32>\n      sdy.return %c : tensor<8xf32>\n");
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {line(back, "tensor<8xf32>", "<@grid, [{\"x\"}]>"), "expected shardings of one mesh, got @grid and @mesh"},
      {line(back, "tensor<8xf32>", "<@mesh, [{\"y\"}]>"), "mesh @mesh has no axis \"y\""},
      {line(back, "tensor<8xf32>", "<@mesh, [{\"x\":(1)2}]>"),
       "parts of an axis are not supported, got a part of \"x\""},
      {line(back, "tensor<8xf32>", "<@mesh, [{\"x\"}], unreduced={\"x\"}>"), "expected axis \"x\" once"},
      {line(back, "tensor<8xf32>", "<@mesh, [{\"x\"}]>", "{\"z\"}"), "mesh @mesh has no axis \"z\""},
      {line(back, "tensor<8xf32>", "<@mesh, [{}]>"), "operand 0 must have parts of type float32[2], got float32[8]"},
      {line("      %i = stablehlo.constant dense<0> : tensor<4xi32>\n      %c = stablehlo.custom_call "
            "@ragged_all_to_all(%b, %b, "
            "%i, %i, %i, %i) {api_version = 4 : i32, backend_config = {replica_groups = dense<[[0, 1, 2, 3]]> : "
            "tensor<1x4xi64>}} : (tensor<2xf32>, tensor<2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, "
            "tensor<4xi32>) -> tensor<2xf32>\n      sdy.return %c : tensor<2xf32>\n"),
       "parts of different sizes (ragged_all_to_all) are not supported between devices"},
      {line(reduce("dense<[[0, 1, 2, 5]]> : tensor<1x4xi64>"), "tensor<32xf32>"),
       "there is no device 5 in a mesh of 4"},
      {line(reduce("dense<[[0, 1, 2, 2]]> : tensor<1x4xi64>"), "tensor<32xf32>"), "device 2 is in two groups"},
      {line(reduce("dense<[[0, 1, 2, -1], [3, -1, -1, -1]]> : tensor<2x4xi64>"), "tensor<32xf32>"),
       "groups of different sizes"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_TRUE(has(refusal(text), wanted)) << text << "\n" << refusal(text);
}

TEST_F(ShardedText, PlacementsOfArgumentsAreChecked) {
  const auto text = [](const std::string& sharding) {
    return concat(
        "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%a: tensor<8xf32> {sdy.sharding = ",
        sharding, "}) -> tensor<8xf32> {\n    return %a : tensor<8xf32>\n  }\n}\n");
  };
  EXPECT_EQ(refusal(text("#sdy.sharding<@mesh, [{\"x\"}]>")), "");
  EXPECT_TRUE(has(refusal(text("#sdy.sharding<@mesh, [{\"q\"}]>")), "has no axis \"q\""));
  EXPECT_TRUE(has(refusal(text("#sdy.sharding<@other, [{\"x\"}]>")), "there is no mesh @other"));
  EXPECT_TRUE(has(refusal(text("#sdy.sharding<@mesh, [{\"x\"}, {}]>")), "expected a sharding of 1 dimensions, got 2"));
}

// The device id is unknown if the compiler controls an axis.
TEST_F(ShardedText, NumbersOfDevicesNeedAllAxes) {
  const std::string text = R"(
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4xui32>) -> tensor<4xui32> {
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x", ?}]>]
        manual_axes={"x"} (%b: tensor<2xui32>) {
      %i = stablehlo.partition_id : tensor<ui32>
      %c = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<ui32>) -> tensor<2xui32>
      sdy.return %c : tensor<2xui32>
    } : (tensor<4xui32>) -> tensor<4xui32>
    return %r : tensor<4xui32>
  }
}
)";
  EXPECT_TRUE(has(refusal(text), "the number of a device depends on axis \"y\", which is not manual here"))
      << refusal(text);
}

// ---- device ids -----------------------------------------------------------------------------------------------------

TEST(DeviceGroups, FollowAxesAndBack) {
  const Mesh mesh{{"x", "y", "z"}, {2, 3, 2}, {}};
  const std::vector<AxisList> choices = {{"x"},      {"y"},      {"z"},           {"x", "z"},
                                         {"z", "x"}, {"y", "x"}, {"x", "y", "z"}, {"z", "y", "x"}};
  for (const AxisList& axes : choices) {
    const std::optional<GroupsAlongAxes> found = find_axes(mesh, mesh.axis_names, device_groups(mesh, axes));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->axes, axes);
    EXPECT_TRUE(found->index_groups.empty());
  }
  EXPECT_EQ(device_groups(mesh, {"z", "x"})[1], (Ints{2, 8, 3, 9}));
  const DeviceGroups halves{{0, 2}, {1}};
  const std::optional<GroupsAlongAxes> found =
      find_axes(mesh, mesh.axis_names, device_groups(mesh, {"y"}, {{0, 2}, {1}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->axes, (AxisList{"y"}));
  EXPECT_EQ(found->index_groups, halves);
  EXPECT_FALSE(find_axes(mesh, {"x", "z"}, device_groups(mesh, {"y"})));  // y is not among the axes
}
