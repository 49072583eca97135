// Arrays and programs over the four devices of a plugin: parts, values, donation, constraints, memories, errors.
#include "backends/pjrt/on_plugin.h"

#include "backends/pjrt/sharded_buffer.h"
#include "compiler/stablehlo/write.h"
#include "core/runtime/transfer_guard.h"

#include <capibara/linalg.h>
#include <capibara/placement.h>
#include <capibara/random.h>

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

class Devices : public OnPlugin {
 protected:
  void SetUp() override {
    OnPlugin::SetUp();
    if (IsSkipped()) return;
    grid_ = jax::make_sharding(Mesh{{"x", "y"}, {2, 2}}, {});
  }
  NamedSharding sharding(std::vector<std::vector<std::string>> dims) const {
    NamedSharding placement = grid_;
    placement.spec.dims = std::move(dims);
    return placement;
  }
  NamedSharding grid_;
  const Array x_ = array<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Shape{4, 4});
};

std::vector<float> values_on_reference(const std::function<Array(const Array&)>& function, const Array& x) {
  Config settings = config();
  settings.platform = "reference";
  ConfigScope scope(settings);
  return function(array<float>(x.to_vector<float>(), x.shape())).to_vector<float>();
}

TEST_F(Devices, AreAsManyAsWereAskedFor) {
  EXPECT_EQ(jax::devices("xla_cpu").size(), 4u);
  EXPECT_EQ(jax::local_devices("xla_cpu").size(), 4u);
}

TEST_F(Devices, HoldAnArrayEach) {
  for (const Device& device : jax::devices()) {
    const Array y = jax::device_put(x_, device);
    EXPECT_EQ(y.device(), device);
    EXPECT_TRUE(y.committed());
    const Array z = jax::jit([](const Array& v) { return v * 2; })(y);
    EXPECT_EQ(z.device(), device);
    EXPECT_EQ(z.to_vector<float>()[5], 10);
  }
}

TEST_F(Devices, HoldEqualPartsOfAnArray) {
  const Array y = jax::device_put(x_, sharding({{"x"}, {"y"}}));
  EXPECT_EQ(y.to_vector<float>(), x_.to_vector<float>());
  const std::vector<Array> shards = jax::addressable_shards(y);
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[0].to_vector<float>(), (std::vector<float>{0, 1, 4, 5}));
  EXPECT_EQ(shards[3].to_vector<float>(), (std::vector<float>{10, 11, 14, 15}));
  EXPECT_EQ(jax::join_shards({4, 4}, sharding({{"x"}, {"y"}}), shards).to_vector<float>(), x_.to_vector<float>());
  const std::vector<Array> columns = jax::addressable_shards(jax::device_put(x_, sharding({{}, {"y", "x"}})));
  EXPECT_EQ(columns[1].to_vector<float>(), (std::vector<float>{2, 6, 10, 14}));  // y is the major axis
}

TEST_F(Devices, GiveTheValuesOfTheReference) {
  const std::vector<std::function<Array(const Array&)>> functions = {
      [](const Array& v) { return v + 1; },
      [](const Array& v) { return jnp::matmul(v, v.T()); },
      [](const Array& v) { return jnp::sum(jnp::sin(v)); },
      [](const Array& v) { return jnp::sort(-v); },
      [](const Array& v) { return jnp::cumsum(v, {.axis = 1}); },
      [](const Array& v) {
        return v.reshape({2, 8});
      },
      [](const Array& v) {
        return lax::fori_loop(
            0, 4, [](const Array&, const Array& c) { return c * 0.5 + jnp::sum(c) * 0.01; }, v);
      },
      [](const Array& v) { return jax::grad([](const Array& w) { return jnp::sum(jnp::tanh(w) * w); })(v); },
      [](const Array& v) { return jax::vmap([](const Array& row) { return row * jnp::sum(row); })(v); },
  };
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const std::vector<float> want = values_on_reference(functions[f], x_);
    for (const auto& dims :
         std::vector<std::vector<std::vector<std::string>>>{{{"x"}}, {{}, {"x", "y"}}, {{"x"}, {"y"}}, {}}) {
      const std::vector<float> got = jax::jit(functions[f])(jax::device_put(x_, sharding(dims))).to_vector<float>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << "function " << f << " element " << i;
    }
  }
}

TEST_F(Devices, KeepResultsInParts) {
  const Array y = jax::jit([](const Array& v) { return v * 3; })(jax::device_put(x_, sharding({{"x"}, {"y"}})));
  ASSERT_TRUE(jax::placement(y));
  EXPECT_EQ(jax::placement(y)->shard_shape({4, 4}), (Shape{2, 2}));
  EXPECT_TRUE(std::dynamic_pointer_cast<ShardedBuffer>(y.buffer().device_memory()));
}

TEST_F(Devices, FollowConstraintsInsidePrograms) {
  const NamedSharding wanted = sharding({{"y"}, {"x"}});
  const Array y = jax::jit([&](const Array& v) { return lax::with_sharding_constraint(v + 1, wanted); })(x_);
  EXPECT_EQ(*jax::placement(y), wanted);
  EXPECT_EQ(y.to_vector<float>()[15], 16);
}

TEST_F(Devices, TakeDonatedParts) {
  const Array y = jax::device_put(x_, sharding({{"x"}}));
  const Array z = jax::jit([](const Array& v) { return v - 1; }, {.donate_argnums = {0}})(y);
  EXPECT_TRUE(y.is_deleted());
  EXPECT_EQ(z.to_vector<float>()[0], -1);
}

TEST_F(Devices, CallTheHostForDecompositions) {
  const Array a = x_ + jnp::eye(4) * 20;
  const auto f = jax::jit([](const Array& v) { return jnp::matmul(jnp::linalg::inv(v), v); });
  const std::vector<float> identity = f(jax::device_put(a, sharding({{"x"}}))).to_vector<float>();
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(identity[i], i % 5 == 0 ? 1 : 0, 1e-4);
}

TEST_F(Devices, ThatDifferAreRefused) {
  const Array a = jax::device_put(x_, sharding({{"x"}})), b = jax::device_put(x_, jax::devices()[3]);
  EXPECT_THROW(jax::jit([](const Array& v, const Array& w) { return v + w; })(a, b), ValueError);
  EXPECT_EQ((a + a).to_vector<float>()[1], 2);  // still usable after the errors
}

TEST_F(Devices, CannotHoldUnequalParts) {
  EXPECT_THROW(jax::device_put(jnp::ones({3, 4}), sharding({{"x"}})), ValueError);
  EXPECT_THROW(jax::device_put(jnp::ones({4}), sharding({{}, {"x"}})), ValueError);
  EXPECT_THROW(jax::device_put(x_, Device{"xla_cpu", 9}), ValueError);
}

TEST_F(Devices, OfOneMeshAreNamedInTheText) {
  const Program program = jax::make_jaxpr(
      [&](const Array& v) {
        return lax::with_sharding_constraint(v * 2, sharding({{"x"}, {"y"}}));
      },
      "f")(x_);
  stablehlo::WriteOptions options;
  options.argument_placements = {std::make_shared<const NamedSharding>(sharding({{}, {"y", "x"}}))};
  const std::string text = stablehlo::write_program(program, options);
  EXPECT_NE(text.find("mhlo.num_partitions = 4 : i32"), std::string::npos) << text;
  EXPECT_NE(text.find("sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>"), std::string::npos) << text;
  EXPECT_NE(text.find("%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"y\", \"x\"}]>}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("<@mesh, [{\"x\"}, {\"y\"}]> : tensor<4x4xf32>"), std::string::npos) << text;
}

TEST_F(Devices, HaveMemoriesOfSeveralKinds) {
  const DeviceInfo first = client("xla_cpu").info(0);
  ASSERT_FALSE(first.memories.empty());
  for (const DeviceInfo::Memory& memory : first.memories) {
    const Array y = jax::device_put(x_, NamedSharding{"xla_cpu", {0}, {}, {}, memory.kind});
    EXPECT_EQ(jax::placement(y)->memory_kind, memory.kind == first.default_memory ? "" : memory.kind);
    EXPECT_EQ(y.to_vector<float>(), x_.to_vector<float>());
    EXPECT_EQ((y + 1).to_vector<float>()[0], 1);  // copied to the device's memory for the operation
  }
  EXPECT_THROW(jax::device_put(x_, NamedSharding{"xla_cpu", {0}, {}, {}, "drum"}), ValueError);
}

TEST_F(Devices, AreGuardedAgainstSilentTransfers) {
  const Array y = jax::device_put(x_, jax::devices()[1]);
  transfer::set_for_thread(transfer::Direction::host_to_device, transfer::Guard::disallow);
  EXPECT_THROW(y + x_, RuntimeError);
  EXPECT_NO_THROW(jax::device_put(x_, jax::devices()[2]));
  EXPECT_EQ((y + y).to_vector<float>()[1], 2);
  transfer::set_for_thread(transfer::Direction::host_to_device, std::nullopt);
  EXPECT_EQ((y + 1).to_vector<float>()[0], 1);
}

TEST_F(Devices, TellWhatProgramsNeedThere) {
  const auto f = jax::jit([](const Array& v) { return jnp::matmul(v, v); });
  const auto compiled = f.lower(jnp::ones({64, 64})).compile();
  EXPECT_EQ(compiled.memory_analysis()->argument, 64 * 64 * 4);
  EXPECT_EQ(compiled.cost_analysis().flops, 2.0 * 64 * 64 * 64);
  const Array y = jax::device_put(jnp::ones({64, 64}), sharding({{"x"}}));
  const Program program = jax::make_jaxpr([](const Array& v) { return v + 1; })(y);
  const auto executable = default_backend().compile(program);
  const std::shared_ptr<const NamedSharding> placed = std::make_shared<const NamedSharding>(*jax::placement(y));
  EXPECT_EQ(executable->details({&placed, 1}).memory->argument, 32 * 64 * 4);  // half of the rows each
}

}  // namespace
}  // namespace capibara::pjrt
