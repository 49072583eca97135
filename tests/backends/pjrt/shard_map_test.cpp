// shard_map on the four devices of a plugin: each runs its own program, with the values of the reference backend.
#include "backends/pjrt/on_plugin.h"

#include <capibara/collective.h>
#include <capibara/control.h>
#include <capibara/shard_map.h>
#include <capibara/transforms.h>

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
using Function = std::function<Array(const Array&)>;

class ShardMaps : public OnPlugin {
 protected:
  const PartitionSpec rows_{{{"x"}}}, cells_{{{"x"}, {"y"}}}, whole_{};
  const Array x_ = array<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Shape{4, 4});

  // A mesh over devices of the current platform at the time of the call.
  static Function mapped(const Function& function, const PartitionSpec& in, const PartitionSpec& out,
                         const AxisList& axes = {}, bool check = false) {
    return [=](const Array& x) {
      const NamedSharding devices = jax::make_sharding(Mesh{{"x", "y"}, {2, 2}}, {});
      jax::ShardMapOptions options{devices, {in}, {out}, axes, check};
      return jax::shard_map([=](const Arrays& parts) { return Arrays{function(parts[0])}; }, options)({x})[0];
    };
  }

  void expect_reference(const Function& function) const {
    const std::vector<float> wanted = [&] {
      Config settings = config();
      settings.platform = "reference";
      ConfigScope scope(settings);
      return function(array<float>(x_.to_vector<float>(), x_.shape())).to_vector<float>();
    }();
    for (const bool compiled : {true, false}) {
      const Array result = compiled ? jax::jit(function)(x_) : function(x_);
      EXPECT_EQ(result.device().platform, plugin_platform());
      const std::vector<float> got = result.to_vector<float>();
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])));
    }
  }
};

TEST_F(ShardMaps, RunEveryCollective) {
  const std::vector<std::pair<const char*, Function>> bodies = {
      {"psum",
       [](const Array& x) {
         return lax::psum(x, {"x", "y"}) + x;
       }},
      {"pmax", [](const Array& x) { return lax::pmax(x, {"x"}) - x; }},
      {"pmin", [](const Array& x) { return lax::pmin(x, {"y"}) * x; }},
      {"all_gather", [](const Array& x) { return jnp::sum(lax::all_gather(x, "x", {.axis = 1})) + x; }},
      {"tiled all_gather", [](const Array& x) { return lax::all_gather(x, "y", {.axis = 1, .tiled = true}); }},
      {"psum_scatter", [](const Array& x) { return lax::psum_scatter(x, "y", {.scatter_dimension = 0}) + x; }},
      {"tiled psum_scatter",
       [](const Array& x) { return lax::psum_scatter(x, "x", {.scatter_dimension = 1, .tiled = true}); }},
      {"all_to_all", [](const Array& x) { return lax::all_to_all(x, "x", 1, 0) * 2; }},
      {"tiled all_to_all", [](const Array& x) { return lax::all_to_all(x, "x", 1, 0, {.tiled = true}); }},
      {"ppermute",
       [](const Array& x) {
         return lax::ppermute(x, "x", {{0, 1}});
       }},
      {"ppermute of both",
       [](const Array& x) {
         return lax::ppermute(x, lax::AxisNames{"x", "y"}, {{0, 3}, {3, 1}});
       }},
      {"pbroadcast", [](const Array& x) { return lax::pbroadcast(x, "x", 1); }},
      {"axis_index", [](const Array& x) { return x * (lax::axis_index("x") + lax::axis_index("y") * 10); }},
      {"groups",
       [](const Array& x) {
         return lax::psum(x, {"x", "y"}, {{0, 3}, {1, 2}});
       }},
  };
  for (const auto& [name, body] : bodies) {
    SCOPED_TRACE(name);
    expect_reference(mapped(body, cells_, cells_));
  }
}

TEST_F(ShardMaps, HoldLoopsBranchesAndMaps) {
  expect_reference(mapped(
      [](const Array& x) {
        return lax::fori_loop(
            0, 3, [](const Array&, const Array& c) { return lax::psum(c, {"x"}) * 0.25 + 1; }, x);
      },
      cells_, cells_));
  expect_reference(mapped(
      [](const Array& x) {
        return lax::cond(
            lax::axis_index("x") > 0, [](const Array& y) { return y * 2; }, [](const Array& y) { return y - 1; }, x);
      },
      cells_, cells_));
  expect_reference(mapped([](const Array& x) { return x * lax::axis_index("x"); }, rows_, rows_, {"x"}));
  const Function inner = mapped([](const Array& x) { return x + lax::psum(x, {"y"}) * lax::axis_index("x"); },
                                PartitionSpec{{{}, {"y"}}}, PartitionSpec{{{}, {"y"}}}, {"y"});
  expect_reference(mapped([=](const Array& x) { return inner(x * 2); }, rows_, rows_, {"x"}));
}

TEST_F(ShardMaps, HaveDerivatives) {
  for (const bool check : {false, true}) {
    const Function loss = mapped(
        [](const Array& x) {
          return lax::psum(jnp::sum(lax::sin(x) * x), {"x", "y"});
        },
        cells_, whole_, {}, check);
    expect_reference([=](const Array& x) { return jax::grad([=](const Array& y) { return loss(y); })(x); });
  }
}

TEST_F(ShardMaps, PlaceResultsAsTheySay) {
  const Array y = jax::jit(mapped([](const Array& x) { return x + 1; }, cells_, cells_))(x_);
  const std::optional<NamedSharding> placed = jax::placement(y);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->devices.size(), 4u);
  EXPECT_EQ(placed->spec.dims, cells_.dims);
  EXPECT_EQ(jax::addressable_shards(y)[3].to_vector<float>(), (std::vector<float>{11, 12, 15, 16}));
}

TEST_F(ShardMaps, TakeArraysThatArePlacedOtherwise) {
  NamedSharding columns = jax::make_sharding(Mesh{{"x", "y"}, {2, 2}}, PartitionSpec{{{}, {"x"}}});
  const Array placed = jax::device_put(x_, columns);
  const Array y = jax::jit(mapped([](const Array& x) { return lax::psum(x, {"x"}); }, rows_, whole_))(placed);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{8, 10, 12, 14, 16, 18, 20, 22}));
}

TEST_F(ShardMaps, RefuseDevicesThatDiffer) {
  NamedSharding two = jax::make_sharding(Mesh{{"x"}, {2}}, PartitionSpec{{{"x"}}});
  const Array placed = jax::device_put(x_, two);
  try {
    jax::jit(mapped([](const Array& x) { return x; }, rows_, rows_))(placed);
    FAIL() << "ran";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("Received incompatible devices"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace capibara::pjrt
