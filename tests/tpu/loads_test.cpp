// Measured loads, by count and time, and the resulting moves: hotspots disappear, models compute the same.
#include <capibara/device.h>
#include <capibara/kernels.h>
#include <capibara/lax.h>
#include <capibara/random.h>
#include <capibara/tpu.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace capibara::tpu {
namespace {

constexpr int64_t experts = 8, width = 16, hidden = 32;

Array counts_at(std::vector<int32_t> counts) {
  return Array::from_host(DType::int32, {static_cast<int64_t>(counts.size())}, counts.data());
}

// A layer of experts whose router prefers the first two.
AnyModel mixture() {
  auto drawn = [](int number, Shape shape) {
    return jax::random::normal(jax::random::key(number), {.shape = std::move(shape)}) * 0.3F;
  };
  std::vector<float> preference(static_cast<std::size_t>(experts), 0.0F);
  preference[0] = preference[1] = 0.2F;
  ModelParts parts;
  parts.name = "mixture";
  parts.parameters = {{"layers.0.router",
                       drawn(0, {width, experts}) + Array::from_host(DType::float32, {1, experts}, preference.data())},
                      {"layers.0.up", drawn(1, {experts, width, hidden})},
                      {"layers.0.down", drawn(2, {experts, hidden, width})}};
  parts.logical_axes = LogicalAxes{{{"layers.0.router", {"embed", ""}},
                                    {"layers.0.up", {"expert", "embed", "mlp"}},
                                    {"layers.0.down", {"expert", "mlp", "embed"}}},
                                   false,
                                   {}};
  parts.apply = [](const Parameters& p, const Arrays& batch) {
    return kernels::moe_feed_forward(batch[0], p.at("layers.0.router"), p.at("layers.0.up"), p.at("layers.0.down"), 2)
        .output;
  };
  return AnyModel(std::move(parts));
}

Array tokens_for(const AnyModel& model, const Array& x) {
  kernels::MoeRoutingOptions options;
  options.gate = model.parts().parameters.at("layers.0.router");
  return kernels::moe_routing_kernel(x, experts, 2, true, options).load;
}

double top(const std::vector<double>& amounts) { return *std::max_element(amounts.begin(), amounts.end()); }

TEST(Loads, AreSharesOfTheRoomOfEachDevice) {
  const Array even = device_load({3, 3, 3, 3}, 2, 2);
  for (const double load : even.to_vector<double>()) EXPECT_NEAR(load, 0.8, 1e-6);
  const Array uneven = device_load({6, 2, 2, 2}, 2, 2, 2);
  EXPECT_NEAR(uneven.to_vector<double>()[0], 1, 1e-6);
  EXPECT_EQ(detect_hotspots(uneven, 0.8), (std::vector<Hotspot>{{0, 0}}));
  EXPECT_EQ(device_load({0, 0}, 1, 2).to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_THROW(device_load({1, 2, 3}, 2, 2), ValueError);
  EXPECT_THROW(device_load({1, -2}, 1, 2), ValueError);
  EXPECT_EQ(tokens_by_device(counts_at({5, 1, 2, 2}), 2), (std::vector<double>{6, 4}));
  EXPECT_THROW(tokens_by_device(counts_at({5, 1, 2}), 2), ValueError);
}

TEST(Loads, ExpertsArePairedSoThatDevicesHaveEqualWork) {
  // The best pairing: 9 + 1, 8 + 2.
  EXPECT_EQ(balance_experts(counts_at({9, 8, 2, 1}), 2), (std::vector<int64_t>{0, 3, 1, 2}));
  std::vector<int64_t> order = balance_experts(counts_at({4, 4, 4, 4, 4, 4}), 3);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Loads, ReorderedExpertsTakeTheHotspotAwayAndTheModelComputesWhatItDid) {
  const int64_t devices = 4;
  const AnyModel model = mixture();
  const Array x = jax::lax::abs(jax::random::normal(jax::random::key(9), {.shape = {256, width}}));
  const std::vector<double> before = tokens_by_device(tokens_for(model, x), devices);
  ASSERT_FALSE(detect_hotspots(device_load(before, 1, devices), 0.8).empty());
  const AnyModel moved = reorder_experts(model, "layers.0.", balance_experts(tokens_for(model, x), devices));
  const std::vector<double> after = tokens_by_device(tokens_for(moved, x), devices);
  EXPECT_LT(top(after), 0.8 * top(before));
  const std::vector<float> got = moved.apply(moved.parts().parameters, {x}).to_vector<float>();
  const std::vector<float> want = model.apply(model.parts().parameters, {x}).to_vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4);
  EXPECT_THROW(reorder_experts(model, "layers.1.", {0, 1, 2, 3, 4, 5, 6, 7}), ValueError);
  EXPECT_THROW(reorder_experts(model, "layers.0.", {0, 0, 2, 3, 4, 5, 6, 7}), ValueError);
}

TEST(Loads, SecondsAreOfEachDevicesPart) {
  const Array x = jax::device_put(jax::random::normal(jax::random::key(0), {.shape = {8, 64}}),
                                  jax::make_sharding(Mesh{{"data"}, {1}, {}}, {}));
  int calls = 0;
  const std::vector<double> seconds = device_seconds([&](const Array& part) { return ++calls, part + 1.0F; }, x, 4);
  EXPECT_EQ(seconds.size(), 1U);
  EXPECT_EQ(calls, 5);
  EXPECT_GT(seconds[0], 0);
}

TEST(Loads, ArraysAreSplitAsTheDecisionSays) {
  const Mesh mesh{{"data", "model"}, {2, 4}, {}};
  const PartitionSpec both{{{"data", "model"}, {}}, {}, {}};
  using Dims = std::vector<AxisList>;
  EXPECT_EQ(fitted_spec(both, {16, 3}, mesh).dims, (Dims{{"data", "model"}, {}}));
  EXPECT_EQ(fitted_spec(both, {12, 3}, mesh).dims, (Dims{{}, {}}));
  EXPECT_EQ(fitted_spec(both, {5, 16, 3}, mesh).dims, (Dims{{}, {"data", "model"}, {}}));
  const Mesh one{{"data", "model"}, {1, 1}, {}};
  const AnyModel placed = reshard(mixture(), jax::make_sharding(one, {}), both);
  EXPECT_TRUE(jax::placement(placed.parts().parameters.at("layers.0.up")).has_value());
}

}  // namespace
}  // namespace capibara::tpu
