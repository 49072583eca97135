// Propagation and partition of small programs, checked by the resulting PartitionSpecs and collectives.
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/numpy.h>
#include <capibara/partition.h>
#include <capibara/shard_map.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "core/sharding/mesh_attr.h"
#include "program/trace/stage.h"

namespace capibara::sharding {
namespace {

namespace lax = jax::lax;
namespace jnp = jax::numpy;

const Mesh mesh{{"data", "model"}, {4, 2}, {}};

NamedSharding split(std::vector<AxisList> dims) {
  return {"cpu", {0, 1, 2, 3, 4, 5, 6, 7}, mesh, PartitionSpec{std::move(dims), {}, {}}, ""};
}

ArrayType f32(Shape shape) { return {std::move(shape), DType::float32, false, false, {}}; }

Program traced(const std::function<Arrays(std::span<const Array>)>& function, const Types& types) {
  return stage(function, types, "f").program;
}

std::vector<std::string> specs(const Program& program, const MaybeShardings& inputs) {
  std::vector<std::string> texts;
  const auto shardings = output_shardings(program, inputs);
  for (const NamedSharding& sharding : *shardings) texts.push_back(spec_text(sharding.spec));
  return texts;
}

std::vector<std::string> operations(const PartitionedProgram& program) {
  std::vector<std::string> names;
  for (const InsertedCollective& one : program.collectives) {
    std::string name = one.operation;
    for (const std::string& axis : one.axes) name += " " + axis;
    names.push_back(name);
  }
  return names;
}
using Names = std::vector<std::string>;

const Types two_matrices{f32({16, 8}), f32({8, 32})};

Program product() {
  return traced([](std::span<const Array> in) { return Arrays{jnp::matmul(in[0], in[1])}; }, two_matrices);
}

TEST(Propagate, TheGramMatrixKeepsTheRowsOfItsFirstOperand) {
  const Program gram = traced(
      [](std::span<const Array> in) {
        const Array transposed = lax::transpose(in[0], {1, 0});
        return Arrays{jnp::matmul(in[0], transposed)};
      },
      {f32({16, 8})});
  EXPECT_EQ(specs(gram, {split({{"data"}, {"model"}})}), Names{"P('data',)"});
}

TEST(Propagate, AClosedInputIsNotSplitFurther) {
  EXPECT_EQ(specs(product(), {split({{"data"}}), split({{}, {"model"}})}), Names{"P('data', 'model')"});
  EXPECT_EQ(specs(product(), {split({{}, {"model"}}), split({{"model"}})}), Names{"P()"});
}

TEST(Propagate, CarriesOfLoopsAreAsTheyBegin) {
  const Program loop = traced(
      [](std::span<const Array> in) {
        return lax::detail::scan_flat(
            [](std::span<const Array> args) {
              return Arrays{lax::sin(args[0]), lax::cos(args[0])};
            },
            {in[0]}, {}, 3, false, 1);
      },
      {f32({16, 8})});
  EXPECT_EQ(specs(loop, {split({{"data"}, {"model"}})}), (Names{"P('data', 'model')", "P(None, 'data', 'model')"}));
}

// The rows of a batch and the columns of a table compete for the axis: the operand that is broadcast loses.
TEST(Propagate, WhatAnOperationRepeatsIsWeaker) {
  const Program sum =
      traced([](std::span<const Array> in) { return Arrays{lax::add(in[0], in[1])}; }, {f32({16, 8}), f32({1, 8})});
  EXPECT_EQ(specs(sum, {split({{"data"}}), split({{}, {"data"}})}), Names{"P('data',)"});
  EXPECT_EQ(specs(sum, {std::nullopt, split({{}, {"data"}})}), Names{"P(None, 'data')"});
}

// Both reads of the matrix compete for the axis of the result, each for another dimension.
TEST(Propagate, AnAxisSplitsOneDimensionOfAMatrixThatIsReadTwice) {
  const Program diagonal = traced(
      [](std::span<const Array> in) {
        return Arrays{jnp::einsum("ki,ik->i", {in[0], in[0]})};
      },
      {f32({8, 8})});
  const PartitionedProgram parts = partition(diagonal, {std::nullopt}, {split({{"data"}})});
  EXPECT_EQ(parts.local.input_types()[0].size(), 16);
}

TEST(Partition, RowsTimesWholeWeightsNeedNothing) {
  const PartitionedProgram parts = partition(product(), {split({{"data"}}), split({})});
  EXPECT_EQ(operations(parts), Names{});
  EXPECT_EQ(parts.local.output_types()[0].shape, (Shape{4, 32}));
}

TEST(Partition, AContractionThatIsSplitIsSummed) {
  const PartitionedProgram parts = partition(product(), {split({{"data"}, {"model"}}), split({{"model"}})});
  EXPECT_EQ(operations(parts), Names{"psum model"});
}

TEST(Partition, ASumThatIsWantedSplitIsScattered) {
  const Program deep = traced([](std::span<const Array> in) { return Arrays{jnp::matmul(in[0], in[1])}; },
                              {f32({16, 128}), f32({128, 32})});
  const PartitionedProgram parts = partition(deep, {split({{}, {"model"}}), split({{"model"}})}, {split({{"model"}})});
  EXPECT_EQ(operations(parts), Names{"psum_scatter model"});
}

TEST(Partition, AnAxisMovesBetweenDimensionsByAllToAll) {
  const Program same = traced([](std::span<const Array> in) { return Arrays{in[0]}; }, {f32({16, 8})});
  EXPECT_EQ(operations(partition(same, {split({{"data"}})}, {split({{}, {"data"}})})), Names{"all_to_all data"});
  EXPECT_EQ(operations(partition(same, {split({{"data"}})}, {split({})})), Names{"all_gather data"});
  EXPECT_EQ(operations(partition(same, {split({})}, {split({{"data"}, {"model"}})})), Names{});
  EXPECT_EQ(operations(partition(same, {split({{"data", "model"}})}, {split({{"model", "data"}})})),
            Names{"ppermute model data"});
}

TEST(Partition, ASplitTableIsReadByMasks) {
  const Program lookup = traced([](std::span<const Array> in) { return Arrays{jnp::take(in[0], in[1], {.axis = 0})}; },
                                {f32({64, 128}), {{8}, DType::int32, false, false, {}}});
  EXPECT_EQ(operations(partition(lookup, {split({{"data"}}), split({})}, {split({})})), Names{"psum data"});
}

TEST(Partition, CountsAndDrawsNeedNothing) {
  const Program count = traced(
      [](std::span<const Array> in) {
        const Array numbers = lax::broadcasted_iota(DType::float32, {16, 8}, 0);
        return Arrays{lax::add(in[0], numbers)};
      },
      {f32({16, 8})});
  EXPECT_EQ(operations(partition(count, {split({{"data"}, {"model"}})})), Names{});
}

TEST(Partition, AWeightIsGatheredOnceForAllItsReaders) {
  const Program twice = traced(
      [](std::span<const Array> in) {
        const Array first = jnp::matmul(in[0], in[1]);
        return Arrays{jnp::matmul(lax::tanh(first), in[1])};
      },
      {f32({64, 32}), f32({32, 32})});
  EXPECT_EQ(operations(partition(twice, {split({{"data"}}), split({{"data"}})})), Names{"all_gather data"});
}

// A copy made inside a loop belongs to its body; the copy from before the loop is read there.
TEST(Partition, ALoopReadsTheCopyThatWasMadeBeforeIt) {
  const Program loop = traced(
      [](std::span<const Array> in) {
        const Array first = jnp::matmul(in[0], in[1]);
        const Arrays last = lax::detail::scan_flat(
            [&](std::span<const Array> args) { return Arrays{lax::tanh(jnp::matmul(args[0], in[1]))}; }, {first}, {}, 3,
            false, 1);
        return Arrays{jnp::matmul(last[0], in[1])};
      },
      {f32({64, 32}), f32({32, 32})});
  EXPECT_EQ(operations(partition(loop, {split({{"data"}}), split({{"data"}})})), Names{"all_gather data"});
}

// The function sees the whole array along the axis that the map does not use.
TEST(Partition, AMapOverSomeAxesHasTheOthersWhole) {
  const auto devices = split({});
  const Program program = traced(
      [&](std::span<const Array> in) {
        const std::function<Arrays(const Arrays&)> sum = [](const Arrays& parts) {
          return Arrays{lax::psum(parts[0], {"data"})};
        };
        return jax::shard_map(sum, {devices, {PartitionSpec{{{"data"}}}}, {PartitionSpec{}}, {"data"}})({in[0]});
      },
      {f32({16, 8})});
  const PartitionedProgram parts = partition(program, {split({{"data"}, {"model"}})}, {split({})});
  EXPECT_EQ(operations(parts), Names{"all_gather model"});
  EXPECT_EQ(parts.local.output_types()[0].shape, (Shape{4, 8}));
}

TEST(Partition, SaysTheLineAndTheCause) {
  const PartitionedProgram parts = partition(product(), {split({{"data"}, {"model"}}), split({{"model"}})});
  EXPECT_NE(parts.text().find("each device has a part of what dot_general combines"), std::string::npos)
      << parts.text();
  EXPECT_EQ(parts.collectives[0].bytes, 4 * 32 * 4);  // 2 (n-1)/n of 4 rows of 32 floats
}

TEST(Partition, RefusesProgramsWithoutAMesh) { EXPECT_THROW(partition(product(), {}), ValueError); }

}  // namespace
}  // namespace capibara::sharding
