// vmap: axes per argument and per leaf, nesting, named axes, custom batching, and the errors of wrong axes.
#include "transforms/expect.h"

using capibara::Array;
using capibara::Shape;
using capibara::test::contains;
using capibara::test::expect_near;
using capibara::test::message_of;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Point {
  Array x, y;
};
CAPIBARA_TREE(Point, x, y)

namespace {

Array vector(std::initializer_list<float> values) { return capibara::array<float>(values); }
Array matrix() { return capibara::array<float>({{1, 2, 3}, {4, 5, 6}}); }
Array sum(const Array& x) { return lax::reduce_sum(x, {.axes = {0}}); }

TEST(Vmap, MapsTheLeadingAxisByDefault) {
  expect_near(jax::vmap(sum)(matrix()), {6, 15}, {2});
  expect_near(jax::vmap(sum, {.in_axes = 1})(matrix()), {5, 7, 9}, {3});
  expect_near(jax::vmap(sum, {.in_axes = -1})(matrix()), {5, 7, 9}, {3});
}

TEST(Vmap, OutAxesPlaceTheResult) {
  auto twice = [](Array x) { return x * 2.0f; };
  expect_near(jax::vmap(twice, {.out_axes = 1})(matrix()), {2, 8, 4, 10, 6, 12}, {3, 2});
  expect_near(jax::vmap(twice, {.out_axes = -1})(matrix()), {2, 8, 4, 10, 6, 12}, {3, 2});
  auto constant = [](Array) { return vector({7}); };
  expect_near(jax::vmap(constant)(matrix()), {7, 7}, {2, 1});
  expect_near(jax::vmap(constant, {.out_axes = std::nullopt})(matrix()), {7}, {1});
}

TEST(Vmap, AxesGoPerArgumentAndPerLeaf) {
  auto f = [](Point p, Array z, int n) { return p.x * p.y + z * static_cast<float>(n); };
  Array got = jax::vmap(f, {.in_axes = {{0, std::nullopt}, std::nullopt, 0}})(Point{vector({1, 2}), 10.0f}, 3.0f, 2);
  expect_near(got, {16, 26}, {2});
  auto pair = [](Array x) { return std::tuple(x, std::map<std::string, Array>{{"twice", x * 2.0f}}); };
  auto [same, named] = jax::vmap(pair, {.out_axes = {0, {1}}})(matrix());
  EXPECT_EQ(same.shape(), (Shape{2, 3}));
  EXPECT_EQ(named.at("twice").shape(), (Shape{3, 2}));
}

TEST(Vmap, NestsAndCommutesWithOtherTransforms) {
  auto product = [](Array x, Array y) { return x * y; };
  auto outer = jax::vmap(jax::vmap(product, {.in_axes = {std::nullopt, 0}}), {.in_axes = {0, std::nullopt}});
  expect_near(outer(vector({1, 2}), vector({3, 4, 5})), {3, 4, 5, 6, 8, 10}, {2, 3});
  auto slopes = jax::vmap(jax::grad([](Array x) { return lax::sin(x); }));
  expect_near(slopes(vector({0, 1})), {1, std::cos(1.0)}, {2});
  expect_near(jax::jit(slopes)(vector({0, 1})), {1, std::cos(1.0)}, {2});
  Array g = jax::grad([](Array x) { return sum(jax::vmap([](Array v) { return v * v; })(x)); })(vector({1, 2}));
  expect_near(g, {2, 4}, {2});
}

TEST(Vmap, TheProgramDoesNotGrowWithTheBatch) {
  auto count = [](int64_t size) {
    Array batch = jax::ShapeDtypeStruct({size, 3}, capibara::DType::float32);
    return jax::make_jaxpr(jax::vmap([](Array x) { return lax::sin(x) * sum(x); }))(batch).equations().size();
  };
  EXPECT_EQ(count(2), count(1000));
}

TEST(Vmap, AxisSizeStandsInForMappedArguments) {
  auto f = [](Array x) { return x + 1.0f; };
  expect_near(jax::vmap(f, {.in_axes = std::nullopt, .axis_size = 3})(1.0f), {2, 2, 2}, {3});
}

TEST(Vmap, CustomRulesReplaceBatching) {
  auto f = jax::custom_batching::custom_vmap([](Array x, Array y) { return x + y; }, "f");
  f.def_vmap([](int64_t size, const std::vector<bool>& batched, Array x, Array y) {
    EXPECT_EQ(size, 2);
    EXPECT_TRUE(batched[0]);
    EXPECT_FALSE(batched[1]);
    return std::tuple(x * 100.0f + y, true);
  });
  expect_near(f(1.0f, 2.0f), {3}, {});
  expect_near(jax::vmap(f, {.in_axes = {0, std::nullopt}})(vector({1, 2}), 5.0f), {105, 205}, {2});
}

TEST(Vmap, InconsistentSizesAreListedByArgument) {
  auto f = [](Array x, Point, Array) { return x; };
  EXPECT_EQ(message_of<capibara::ValueError>([&] {
              jax::vmap(f)(vector({1, 2, 3}), Point{vector({1, 2}), vector({1, 2})}, vector({1}));
            }),
            "vmap got inconsistent sizes for array axes to be mapped:\n"
            "  * most axes (2 of them) had size 2, e.g. axis 0 of args[1].x of type float32[2];\n"
            "  * one axis had size 3: axis 0 of args[0] of type float32[3];\n"
            "  * one axis had size 1: axis 0 of args[2] of type float32[1]");
}

TEST(Vmap, WrongAxesAreErrors) {
  auto f = [](Array x) { return x; };
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::vmap(f)(1.0f); }),
                       "rank should be at least 1, but is only 0"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::vmap(f, {.in_axes = 2})(matrix()); }),
                       "its shape is (2, 3)"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] {
                         jax::vmap(f, {.in_axes = {0, 0}})(matrix());
                       }),
                       "len(in_axes)=2, len(args)=1"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] {
                         jax::vmap(f, {.in_axes = {{0, 0}}})(matrix());
                       }),
                       "vmap in_axes specification must be a tree prefix of the corresponding value: at in_axes[0]"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::vmap(f, {.in_axes = std::nullopt})(matrix()); }),
                       "vmap must have at least one non-None value in in_axes"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::vmap(f, {.out_axes = std::nullopt})(matrix()); }),
                       "out_axes is None"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::vmap(f, {.out_axes = 4})(matrix()); }),
                       "out_axes 4 is out of bounds for array of dimension 2"));
}

// jax 0.10.2's answers: spmd_constraint and spmd_constraint_used of the recording sharding_interface_answers.json.
TEST(Vmap, LiesOverAxesOfAMesh) {
  capibara::Config settings = capibara::config();
  settings.num_cpu_devices = 8;
  const capibara::ConfigScope scope(settings);
  const capibara::Mesh mesh{{"x", "y"}, {4, 2}};
  auto over = [&](const char* axis) {
    const capibara::NamedSharding placed = jax::make_sharding(mesh, capibara::PartitionSpec{{{axis}}});
    return [placed](const Array& row) { return lax::with_sharding_constraint(row, placed); };
  };
  const Array ones = lax::full({8, 4}, 1.0f);
  const Array placed = jax::jit(jax::vmap(over("y"), {.spmd_axis_name = {"x"}}))(ones);
  EXPECT_EQ(jax::placement(placed)->spec.dims, (std::vector<capibara::AxisList>{{"x"}, {"y"}}));
  EXPECT_TRUE(contains(
      message_of<capibara::ValueError>([&] { jax::jit(jax::vmap(over("x"), {.spmd_axis_name = {"x"}}))(ones); }),
      "vmap spmd_axis_name ('x',) cannot appear in with_sharding_constraint spec"));
}

}  // namespace
