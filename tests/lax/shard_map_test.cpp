// shard_map from C++: computation and exchanges on devices, its derivatives, and rejected calls.
#include <capibara/capibara.h>
#include <capibara/collective.h>
#include <capibara/config.h>
#include <capibara/control.h>
#include <capibara/shard_map.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace capibara;
namespace lax = capibara::jax::lax;

namespace {

using Floats = std::vector<float>;

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

class ShardMap : public testing::Test {
 protected:
  ConfigScope devices_{with_eight_devices()};
  Mesh mesh_{{"data", "model"}, {4, 2}, {}};
  PartitionSpec rows_{{{"data"}}}, cells_{{{"data"}, {"model"}}};
  Array x_ = lax::reshape(lax::iota(DType::float32, 32), {8, 4});

  Array mapped(const std::function<Array(const Array&)>& function, const PartitionSpec& in, const PartitionSpec& out,
               const Array& x, bool check_vma = true) const {
    jax::ShardMapOptions options{jax::make_sharding(mesh_, {}), {in}, {out}, {}, check_vma};
    return jax::shard_map([&](const Arrays& parts) { return Arrays{function(parts[0])}; }, options)({x})[0];
  }

  // The error message of mapping a function; empty if there is none.
  std::string refusal(const std::function<Array(const Array&)>& function, const PartitionSpec& in,
                      const PartitionSpec& out, const Array& x) const {
    try {
      mapped(function, in, out, x);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

}  // namespace

// Along one axis, while another axis splits a later dimension of the parts.
TEST_F(ShardMap, MovesDimensionsOfPartsThatAnotherAxisSplits) {
  const Array stacked = mapped([](const Array& part) { return lax::all_gather(part, "data"); }, cells_,
                               PartitionSpec{{{}, {"data"}, {"model"}}}, x_, false);
  EXPECT_EQ(stacked.shape(), (Shape{4, 8, 4}));
  EXPECT_EQ(lax::index_in_dim(lax::index_in_dim(stacked, 1, 0, false), 1, 0, false).to_vector<float>(),
            (Floats{12, 13, 14, 15}));
  const Array exchanged =
      mapped([](const Array& part) { return lax::all_to_all(part, "model", 1, 0); }, cells_, cells_, x_, false);
  EXPECT_EQ(exchanged.shape(), (Shape{8, 4}));
  // Each row is the column of one device: [x(0, 0), x(1, 0)] of the first, then [x(0, 1), x(1, 1)].
  EXPECT_EQ(lax::index_in_dim(exchanged, 0, 0, false).to_vector<float>(), (Floats{0, 4, 1, 5}));
  EXPECT_EQ(lax::index_in_dim(exchanged, 1, 0, false).to_vector<float>(), (Floats{2, 6, 3, 7}));
}

TEST_F(ShardMap, GivesEachDeviceItsPart) {
  const Array shapes = mapped(
      [](const Array& part) {
        EXPECT_EQ(part.shape(), (Shape{2, 2}));
        return lax::add(part, part);
      },
      cells_, cells_, x_);
  EXPECT_EQ(shapes.to_vector<float>(), lax::add(x_, x_).to_vector<float>());
}

TEST_F(ShardMap, SumsOverOneAxisAndOverAll) {
  const Array columns =
      mapped([](const Array& part) { return lax::psum(part, {"data"}); }, cells_, PartitionSpec{{{}, {"model"}}}, x_);
  // Rows 0, 2, 4, 6 and rows 1, 3, 5, 7.
  EXPECT_EQ(columns.to_vector<float>(), (Floats{48, 52, 56, 60, 64, 68, 72, 76}));
  const Array all = mapped(
      [](const Array& part) {
        return lax::psum(lax::reduce_sum(part, {.axes = {0, 1}}), {"data", "model"});
      },
      cells_, {}, x_);
  EXPECT_EQ(all.item<float>(), 496);
}

TEST_F(ShardMap, PassesValuesAround) {
  const Array moved = mapped(
      [](const Array& part) {
        return lax::ppermute(part, "data", {{0, 1}, {1, 2}, {2, 3}});
      },
      rows_, rows_, x_);
  Floats expected(32, 0);
  for (std::size_t i = 8; i < 32; ++i) expected[i] = static_cast<float>(i - 8);
  EXPECT_EQ(moved.to_vector<float>(), expected);
  const Array gathered = mapped(
      [](const Array& part) { return lax::all_gather(part, "data", {.axis = 0, .tiled = true}); }, rows_, rows_, x_);
  EXPECT_EQ(gathered.shape(), (Shape{32, 4}));
}

// The dimension split by the other axis comes after the dimension that the gather inserts.
TEST_F(ShardMap, StacksPartsWhoseColumnsAreSplitToo) {
  const Array stacked = mapped([](const Array& part) { return lax::all_gather(part, "data", {}); }, cells_,
                               {{{}, {"data"}, {"model"}}}, x_);
  const Array expected = lax::broadcast_in_dim(lax::reshape(x_, {4, 2, 4}), {4, 4, 2, 4}, {0, 2, 3});
  EXPECT_EQ(stacked.to_vector<float>(), lax::reshape(expected, {4, 8, 4}).to_vector<float>());
}

TEST_F(ShardMap, TellsDevicesApart) {
  const Array index = mapped(
      [](const Array& part) {
        const Array own = lax::convert_element_type(lax::axis_index("data"), DType::float32);
        return lax::broadcast_in_dim(own, part.shape(), {});
      },
      rows_, rows_, x_);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(index.to_vector<float>()[i], static_cast<float>(i / 8));
}

TEST_F(ShardMap, IsCompiledAndDifferentiated) {
  const Array w = lax::reshape(lax::iota(DType::float32, 4), {4});
  auto loss = [&](const Array& weights) {
    jax::ShardMapOptions options{jax::make_sharding(mesh_, {}), {{}, rows_}, {{}}, {}, true};
    return jax::shard_map(
        [](const Arrays& in) {
          const Array products = lax::mul(in[1], lax::broadcast_in_dim(in[0], in[1].shape(), {1}));
          return Arrays{lax::psum(lax::reduce_sum(lax::mul(products, products), {.axes = {0, 1}}), {"data", "model"})};
        },
        options)({weights, x_})[0];
  };
  // sum over both devices of each row pair: 2 sum_ij x_ij^2 w_j^2
  const Floats gradient = jax::jit(jax::grad(loss))(w).to_vector<float>();
  const Floats x = x_.to_vector<float>();
  for (std::size_t j = 0; j < 4; ++j) {
    double expected = 0;
    for (std::size_t i = 0; i < 8; ++i) expected += 4.0 * x[4 * i + j] * x[4 * i + j] * static_cast<double>(j);
    EXPECT_NEAR(gradient[j], expected, 1e-5 * std::max(1.0, expected));
  }
}

TEST_F(ShardMap, AddsSumsInATree) {
  // In any other order the small numbers are lost in the large ones.
  const Array big = array<float>({1e8f, -1e8f, 1, 2, 3, 4, 5e7f, -5e7f});
  const Array sum = jax::shard_map(
      [](const Arrays& part) { return Arrays{lax::psum(part[0], {"i"})}; },
      {.mesh = jax::make_sharding(Mesh{{"i"}, {8}, {}}, {}), .in_specs = {PartitionSpec{{{"i"}}}}, .out_specs = {{}}})(
      {big})[0];
  EXPECT_EQ(sum.to_vector<float>(), Floats{10});
}

TEST_F(ShardMap, RefusesWhatDoesNotFit) {
  auto same = [](const Array& part) { return part; };
  EXPECT_NE(refusal(same, rows_, rows_, lax::iota(DType::float32, 6)).find("does not divide"), std::string::npos);
  EXPECT_NE(refusal(same, cells_, cells_, lax::iota(DType::float32, 8)).find("has 2 entries"), std::string::npos);
  EXPECT_NE(refusal(same, rows_, {}, x_).find("varies over the mesh axis 'data'"), std::string::npos);
  EXPECT_NE(
      refusal([](const Array& part) { return lax::psum(part, {"other"}); }, rows_, rows_, x_).find("unbound axis name"),
      std::string::npos);
}

TEST_F(ShardMap, RefusesCarriesThatVaryMoreThanTheyBegan) {
  const std::string text = refusal(
      [](const Array& part) {
        return lax::fori_loop(
            0, 3, [&](const Array&, const Array& c) { return lax::add(c, part); }, lax::full({2, 4}, Array(0.0f)));
      },
      rows_, rows_, x_);
  EXPECT_NE(text.find("float32[2,4] and leaves as float32[2,4]{V:data}"), std::string::npos) << text;
  EXPECT_NE(text.find("pcast(..., ('data',), to='varying')"), std::string::npos) << text;
}

TEST_F(ShardMap, RefusesCollectivesThatSomeDevicesWouldMiss) {
  const std::string text = refusal(
      [](const Array& part) {
        const Array sum = lax::reduce_sum(part, {.axes = {0, 1}});
        return lax::cond(
            lax::gt(sum, Array(2.0f)),
            [](const Array& a) {
              return lax::ppermute(a, "data", {{0, 1}});
            },
            [](const Array& a) { return a; }, part);
      },
      rows_, rows_, x_);
  EXPECT_NE(text.find("some devices would wait for ever"), std::string::npos) << text;
}
