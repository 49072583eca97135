// What a process survives, repeatedly: exhausted memory, files that are not plugins, handlers that fail.
#include "backends/pjrt/described_plugin.h"
#include "backends/pjrt/on_plugin.h"

#include "backends/pjrt/topology.h"

#include <capibara/callback.h>
#include <capibara/control.h>
#include <capibara/linalg.h>
#include <capibara/placement.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

using Survival = OnPlugin;

int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_all_well() {
  EXPECT_EQ(jax::jit([](const Array& x) { return x * 2 + 1; })(array<float>({1, 2})).to_vector<float>(),
            (std::vector<float>{3, 5}));
}

TEST_F(Survival, OfMemoryThatIsNotThereAgainAndAgain) {
  const auto f = jax::jit(
      [](const Array& x) { return lax::sort(jnp::sin(lax::iota(DType::float32, int64_t{1} << 41) * x))[Index(5)]; },
      {.name = "too_large"});
  EXPECT_NE(error_of([&] { f(Array(2.5f)).block_until_ready(); }), "");
  const int64_t before = resident_pages();
  for (int i = 0; i < 50; ++i) EXPECT_NE(error_of([&] { f(Array(2.5f)).block_until_ready(); }), "");
  EXPECT_LT(resident_pages() - before, (int64_t{64} << 20) / sysconf(_SC_PAGESIZE));
  expect_all_well();
}

TEST_F(Survival, OfMemoryThatIsNotThereOnSeveralDevices) {
  const NamedSharding placement = jax::make_sharding(Mesh{{"x"}, {4}}, PartitionSpec{{{"x"}}});
  const Array x = jax::device_put(jnp::ones({8}), placement);
  const auto f = jax::jit([](const Array& v) {
    return jnp::sum(lax::sort(lax::iota(DType::float32, int64_t{1} << 42) * v[Index(0)])) + v;
  });
  EXPECT_NE(error_of([&] { f(x).block_until_ready(); }), "");
  EXPECT_EQ((x + 1).to_vector<float>()[7], 2);
  expect_all_well();
}

TEST_F(Survival, OfFailingHandlersAgainAndAgain) {
  bool fails = true;
  const auto f = jax::jit(
      [&](const Array& x) {
        return jax::pure_callback(
            [&](const std::vector<Array>& values) -> std::vector<Array> {
              if (fails) throw ValueError("the handler fails");
              return values;
            },
            {x.type()}, {x + 1})[0];
      },
      {.name = "calls_back"});
  const Array x = jnp::ones({1024});
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(error_of([&] { f(x).block_until_ready(); }).find("the handler fails"), std::string::npos);
  const int64_t before = resident_pages();
  for (int i = 0; i < 200; ++i) error_of([&] { f(x).block_until_ready(); });
  EXPECT_LT(resident_pages() - before, (int64_t{16} << 20) / sysconf(_SC_PAGESIZE));
  fails = false;
  EXPECT_EQ(f(x).to_vector<float>()[0], 2);
  expect_all_well();
}

TEST_F(Survival, OfTextsThatDoNotCompile) {
  for (const char* text :
       {"", "no module", "module { func.func public @main() -> tensor<f32> { return } }", "module { }"}) {
    EXPECT_NE(error_of([&] { client("xla_cpu").compile(text, standard_options("xla_cpu"), "test"); }), "") << text;
  }
  expect_all_well();
}

TEST_F(Survival, OfDonatedInputsThatAreUsedAgain) {
  const auto f = jax::jit([](const Array& x) { return x + 1; }, {.donate_argnums = {0}});
  const Array x = jnp::arange(4.0) * 2;
  f(x);
  EXPECT_NE(error_of([&] { f(x); }), "");
  EXPECT_NE(error_of([&] { x.to_vector<float>(); }).find("deleted"), std::string::npos);
  expect_all_well();
}

TEST(SurvivalOfPlugins, ThatAreNoLibrariesAtAll) {
  const std::string path = testing::TempDir() + "/no_plugin.so";
  std::ofstream(path) << "this is no library";
  const std::string error = error_of([&] { Plugin("xla_cpu", path); });
  EXPECT_NE(error.find(path), std::string::npos) << error;
  EXPECT_NE(error_of([] { Plugin("xla_cpu", "libm.so.6"); }), "");
}

TEST(StagingBlocks, AreLentMappedOnceAndLimited) {
  const std::string path = described_plugin();
  if (path.empty()) GTEST_SKIP() << "no C compiler for this machine";
  const Plugin plugin("cuda", path);
  Staging staging(plugin, nullptr);
  EXPECT_FALSE(staging.take(1000));
  EXPECT_FALSE(staging.take(Staging::max_bytes + 1));
  std::byte* first = nullptr;
  {
    const std::shared_ptr<std::byte> block = staging.take(3 << 20);
    ASSERT_TRUE(block);
    first = block.get();
    std::vector<std::byte> values(3 << 20, std::byte{7}), back(values.size());
    copy_in_parallel(block.get(), values.data(), values.size());
    copy_in_parallel(back.data(), block.get(), values.size());
    EXPECT_EQ(back, values);
    EXPECT_NE(staging.take(4 << 20).get(), first);  // it is in use
  }
  EXPECT_EQ(staging.mapped_bytes(), std::size_t{8} << 20);
  const std::shared_ptr<std::byte> again = staging.take(4 << 20), other = staging.take(4 << 20);
  EXPECT_TRUE(again.get() == first || other.get() == first);
  EXPECT_EQ(staging.mapped_bytes(), std::size_t{8} << 20);
  std::vector<std::shared_ptr<std::byte>> held;
  for (int i = 0; i < 8; ++i) held.push_back(staging.take(Staging::max_bytes));
  EXPECT_FALSE(held.back());
  EXPECT_LE(staging.mapped_bytes(), Staging::limit);
}

TEST(StagingBlocks, AreNoneWhereThePluginMapsNothing) {
  if (!has_plugin()) GTEST_SKIP() << "no XLA:CPU plugin is installed (xla-cpu-pjrt)";
  EXPECT_FALSE(client("xla_cpu").staging_block(2 << 20));
}

TEST(Topologies, SayWhichPluginTheyNeed) {
  EXPECT_EQ(topology_platform("v6e:8x8"), "tpu");
  EXPECT_EQ(topology_platform("v4:2x2x4"), "tpu");
  EXPECT_EQ(topology_platform("tpu7x:2x2x1"), "tpu");
  EXPECT_EQ(topology_platform("1x1x4"), "cuda");
  for (const char* wrong : {"", "v5e", "v5e:", "4", "x4", "1x", "a:b"})
    EXPECT_THROW(topology_platform(wrong), ValueError) << wrong;
  EXPECT_EQ(partition_count("module attributes {mhlo.num_partitions = 16 : i32}"), 16);
  EXPECT_EQ(partition_count("module { }"), 1);
}

TEST_F(Survival, OfTopologiesThatAPluginDoesNotDescribe) {
  const std::string error = error_of([] { Topology("xla_cpu", "v5e:4x4", {}); });
  EXPECT_NE(error.find("v5e:4x4"), std::string::npos) << error;
  expect_all_well();
}

TEST_F(Survival, CompilesForTheDevicesThatAreThere) {
  const Topology topology(client("xla_cpu"));
  EXPECT_EQ(topology.devices().size(), 4u);
  const Program program = jax::make_jaxpr([](const Array& x) { return jnp::matmul(x, x); })(jnp::ones({32, 32}));
  const auto compiled = topology.compile(stablehlo_text(program), standard_options("xla_cpu"), "test");
  EXPECT_EQ(compiled->memory_analysis().argument, 32 * 32 * 4);
  ASSERT_TRUE(compiled->serialized());
  EXPECT_TRUE(client("xla_cpu").load(*compiled->serialized()));
}

}  // namespace
}  // namespace capibara::pjrt
