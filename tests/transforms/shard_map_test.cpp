// shard_map: lanes of compiled programs compute what devices do one after the other, and what the unsharded function
// does.
#include <capibara/capibara.h>
#include <capibara/shard_map.h>
#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/host_shards.h"

namespace capibara {

namespace {

namespace lax = jax::lax;

const Mesh grid{{"data", "model"}, {4, 2}, {}};
const PartitionSpec cells{{{"data"}, {"model"}}, {}, {}}, rows{{{"data"}}, {}, {}}, columns{{{}, {"model"}}, {}, {}},
    whole{};

class ShardMap : public testing::Test {
 protected:
  ShardMap() : scope_(eight_devices()) {}

  static Config eight_devices() {
    Config settings = config();
    settings.num_cpu_devices = 8;
    return settings;
  }
  static NamedSharding mesh() { return jax::make_sharding(grid, {}); }

 private:
  ConfigScope scope_;
};

Array numbers(Shape shape, double scale = 0.1) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(scale * static_cast<double>(i * i % 97)));
  return array<float>(values, shape);
}

void expect_near(const Array& a, const Array& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

using Body = std::function<Arrays(const Arrays&)>;

Arrays on_reference(const Body& body, const Arrays& inputs) {
  Config settings = config();
  settings.platform = "reference";
  ConfigScope scope(settings);
  return body(inputs);
}

}  // namespace

TEST_F(ShardMap, LanesComputeWhatDevicesDoOneAfterTheOther) {
  struct Case {
    const char* name;
    Body body;
    PartitionSpec out;
  };
  const std::vector<std::pair<int64_t, int64_t>> ring{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, gaps{{0, 2}, {3, 1}};
  const std::vector<Case> cases{
      {"psum", [](const Arrays& x) { return Arrays{lax::psum(x[0], {"data"})}; }, columns},
      {"psum of two",
       [](const Arrays& x) {
         return Arrays{lax::psum(x[0], {"model", "data"})};
       },
       whole},
      {"pmax", [](const Arrays& x) { return Arrays{lax::pmax(x[0], {"data"})}; }, columns},
      {"all_gather", [](const Arrays& x) { return Arrays{lax::all_gather(x[0], "data", {.tiled = true})}; }, cells},
      {"all_gather of two",
       [](const Arrays& x) {
         return Arrays{lax::all_gather(x[0], lax::AxisNames{"model", "data"}, {.axis = 1})};
       },
       cells},
      {"psum_scatter", [](const Arrays& x) { return Arrays{lax::psum_scatter(x[0], "model", {.tiled = true})}; },
       cells},
      {"all_to_all", [](const Arrays& x) { return Arrays{lax::all_to_all(x[0], "model", 1, 0, {.tiled = true})}; },
       cells},
      {"ring", [=](const Arrays& x) { return Arrays{lax::ppermute(x[0], "data", ring)}; }, cells},
      {"gaps", [=](const Arrays& x) { return Arrays{lax::ppermute(x[0], "data", gaps)}; }, cells},
      {"index",
       [](const Arrays& x) {
         return Arrays{x[0] * lax::convert_element_type(lax::axis_index("data"), DType::float32)};
       },
       cells},
  };
  const Arrays inputs{numbers({8, 8})};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const Body map = jax::shard_map(one.body, {.mesh = mesh(), .in_specs = {cells}, .out_specs = {one.out}});
    expect_near(map(inputs)[0], on_reference(map, inputs)[0]);
  }
}

TEST_F(ShardMap, GradientOfAMeanOverDevicesIsThatOfTheWholeBatch) {
  const Array x = numbers({8, 4}), w = numbers({4, 3}, 0.3);
  for (bool check_vma : {true, false}) {
    const Body map = jax::shard_map(
        [](const Arrays& in) {
          return Arrays{lax::pmean(jax::numpy::mean(jax::numpy::tanh(jax::numpy::matmul(in[0], in[1]))), {"data"})};
        },
        {.mesh = mesh(), .in_specs = {rows, whole}, .out_specs = {whole}, .check_vma = check_vma});
    auto sharded = [&](const Array& v) { return map({x, v})[0]; };
    auto plain = [&](const Array& v) { return jax::numpy::mean(jax::numpy::tanh(jax::numpy::matmul(x, v))); };
    expect_near(jax::grad(sharded)(w), jax::grad(plain)(w));
    expect_near(jax::jit(jax::grad(sharded))(w), jax::grad(plain)(w));
  }
}

TEST_F(ShardMap, CollectiveUnderAPredicateThatVariesIsRefused) {
  const Body map = jax::shard_map(
      [](const Arrays& in) {
        const Array predicate = lax::gt(jax::numpy::sum(in[0]), Array(0.0f));
        return Arrays{lax::cond(
            predicate, [](const Array& y) { return lax::psum(y, {"data"}); },
            [](const Array& y) { return lax::pmax(y, {"data"}); }, in[0])};
      },
      {.mesh = mesh(), .in_specs = {cells}, .out_specs = {cells}});
  try {
    map({numbers({8, 4})});
    FAIL() << "nothing was raised";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("some devices would wait for ever"), std::string::npos) << error.what();
  }
}

TEST_F(ShardMap, ResultsArePlacedAsTheirSpecificationsSay) {
  const Body map = jax::shard_map([](const Arrays& in) { return Arrays{in[0] * Array(2.0f)}; },
                                  {.mesh = mesh(), .in_specs = {cells}, .out_specs = {cells}});
  const std::optional<NamedSharding> placed = jax::placement(map({numbers({8, 4})})[0]);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->spec, cells);
  EXPECT_EQ(placed->devices.size(), 8u);
}

TEST_F(ShardMap, PartsOfAPlacedArrayAreViewsWhereTheyAreContiguous) {
  const Array x = numbers({8, 4});
  const Array placed = jax::device_put(x, jax::make_sharding(grid, rows));
  const std::vector<Array> shards = jax::addressable_shards(placed);
  ASSERT_EQ(shards.size(), 8u);
  EXPECT_EQ(shards[2].raw_data(), placed.raw_data() + 2 * 4 * sizeof(float));
  EXPECT_EQ(shards[2].raw_data(), shards[3].raw_data());  // replicas share
  expect_near(jax::join_shards({8, 4}, jax::make_sharding(grid, rows), shards), x, 0);
  const std::vector<Array> inner = jax::addressable_shards(jax::device_put(x, jax::make_sharding(grid, cells)));
  expect_near(jax::join_shards({8, 4}, jax::make_sharding(grid, cells), inner), x, 0);
}

}  // namespace capibara
