// The shape family: values, rules against each other, edge cases, errors.
#include "counted.h"
#include "rule_checks.h"

#include "lax/shape/shape.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
using Floats = std::vector<float>;

TEST(Shape, LoweredProgramsComputeTheSameForEveryDtype) {
  for (DType dtype : array_dtypes()) rule_checks::check_lowering(shape_family(), dtype);
}
TEST(Shape, BatchedEqualsLooped) { rule_checks::check_batching(shape_family()); }
TEST(Shape, TransposeIsTheAdjointOfTheTangent) { rule_checks::check_derivatives(shape_family(), true); }

TEST(Shape, EveryRecordHasRulesAndSamples) {
  for (const Family& family : {shape_family(), index_family()}) {
    for (const PrimitiveRecord& record : family) {
      EXPECT_FALSE(record.doc.empty()) << record.name;
      EXPECT_TRUE(record.type && record.jvp && record.batch && record.samples) << record.name;
      EXPECT_TRUE(record.lower || !record.stablehlo.empty()) << record.name;
      EXPECT_FALSE(record.samples(DType::float32).empty()) << record.name;
    }
  }
}

TEST(Shape, BroadcastInDimPlacesDimensions) {
  Array x = array<float>({1, 2, 3});
  EXPECT_EQ(lax::broadcast_in_dim(x, {2, 3}, {1}).to_vector<float>(), (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(lax::broadcast_in_dim(x, {3, 2}, {0}).to_vector<float>(), (Floats{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(lax::broadcast_in_dim(counted({2, 3}), {3, 2}, {1, 0}).to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(lax::broadcast_in_dim(x, {3}, {0}).same_as(x));
}

TEST(Shape, ReshapeMayPermuteFirst) {
  EXPECT_EQ(lax::reshape(counted({2, 3}), {6}, {1, 0}).to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(counted({2, 3}).reshape({-1, 2}).shape(), (Shape{3, 2}));
  EXPECT_THROW(counted({2, 3}).reshape({-1, -1}), TypeError);
  EXPECT_THROW(counted({2, 3}).reshape({4}), TypeError);
  EXPECT_THROW(lax::reshape(counted({2, 3}), {7}), TypeError);
}

TEST(Shape, PadCutsDilatesAndFills) {
  Array x = array<float>({1, 2, 3});
  EXPECT_EQ(lax::pad(x, 9., {{1, 2, 0}}).to_vector<float>(), (Floats{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(lax::pad(x, 9., {{0, 0, 1}}).to_vector<float>(), (Floats{1, 9, 2, 9, 3}));
  EXPECT_EQ(lax::pad(x, 9., {{-1, -1, 0}}).to_vector<float>(), (Floats{2}));
  EXPECT_EQ(lax::pad(x, 9., {{-1, 1, 2}}).to_vector<float>(), (Floats{9, 9, 2, 9, 9, 3, 9}));
  EXPECT_EQ(lax::pad(x, 9., {{-3, 0, 0}}).shape(), Shape{0});
  EXPECT_EQ(lax::pad(array<float>(Floats{}), 9., {{1, 1, 5}}).to_vector<float>(), (Floats{9, 9}));
  EXPECT_THROW(lax::pad(x, 9., {{-4, 0, 0}}), ValueError);
  EXPECT_THROW(lax::pad(x, 9., {{0, 0, -1}}), ValueError);
  EXPECT_THROW(lax::pad(x, array<float>({1}), {{0, 0, 0}}), ValueError);
}

TEST(Shape, RevTileConcatenateSplitStack) {
  EXPECT_EQ(lax::rev(counted({2, 3}), {1}).to_vector<float>(), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(lax::tile(counted({2}), {2}).to_vector<float>(), (Floats{0, 1, 0, 1}));
  EXPECT_EQ(lax::concatenate({counted({2, 1}), counted({2, 2})}, 1).to_vector<float>(), (Floats{0, 0, 1, 1, 2, 3}));
  Arrays parts = lax::split(counted({2, 3}), {1, 2}, 1);
  EXPECT_EQ(parts[1].to_vector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(lax::stack({counted({2}), counted({2})}, -1).to_vector<float>(), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(lax::unstack(counted({2, 2}), 1)[1].to_vector<float>(), (Floats{1, 3}));
  EXPECT_THROW(lax::concatenate({counted({2}), counted({2, 1})}, 0), TypeError);
  EXPECT_THROW(lax::concatenate({counted({2}), array<int>({1})}, 0), TypeError);
  EXPECT_THROW(lax::split(counted({3}), {1, 1}, 0), ValueError);
  EXPECT_THROW(lax::stack({counted({2}), counted({3})}), ValueError);
  EXPECT_THROW(lax::unstack(Array(1.0)), ValueError);
}

TEST(Shape, IotaCountsInEveryNumberType) {
  EXPECT_EQ(lax::broadcasted_iota(DType::int32, {2, 3}, 1).to_vector<int>(), (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(lax::iota(DType::bfloat16, 300).to_vector<float>()[257], 256.0f);  // rounded to 8 bits
  EXPECT_EQ(lax::iota(DType::uint8, 258).to_vector<int>()[257], 1);
  EXPECT_THROW(lax::broadcasted_iota(DType::int32, {2}, 1), ValueError);
  EXPECT_THROW(lax::iota(DType::bool_, 2), TypeError);
}

TEST(Shape, SixteenDimensions) {
  Shape shape(16, 1);
  shape[3] = shape[9] = shape[15] = 2;
  Array x = counted(shape);
  Array y = x.transpose();
  EXPECT_EQ(y.shape()[0], 2);
  EXPECT_EQ(y.flatten().to_vector<float>(), (Floats{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(lax::rev(y.T(), {3}).flatten().to_vector<float>(), (Floats{4, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(Shape, WeakTypesPassThroughAndYield) {
  Array weak(2.0);
  EXPECT_TRUE(lax::broadcast(weak, {2}).weak_type());
  EXPECT_TRUE(lax::reshape(weak, {1}).weak_type());
  EXPECT_TRUE(lax::full({2}, weak).weak_type());
  EXPECT_FALSE(lax::full({2}, weak, DType::float32).weak_type());
  EXPECT_FALSE(lax::concatenate({lax::broadcast(weak, {1}), array<float>({1})}, 0).weak_type());
  EXPECT_TRUE(lax::stack({weak, weak}).weak_type());
}

TEST(Shape, AxesOutOfRangeNameTheOperation) {
  try {
    lax::squeeze(counted({2, 1}), {2});
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("squeeze: axis 2 is out of bounds for float32[2,1]"), std::string::npos);
  }
  EXPECT_THROW(lax::squeeze(counted({2, 1}), {0}), ValueError);
  EXPECT_THROW(lax::expand_dims(counted({2}), {0, 0}), ValueError);
  EXPECT_THROW(lax::transpose(counted({2, 1}), {0, 0}), TypeError);
  EXPECT_THROW(lax::rev(counted({2}), {1}), TypeError);
  EXPECT_THROW(lax::broadcast_shapes({{2}, {3}}), ValueError);
  EXPECT_EQ(lax::broadcast_shapes({{2, 1}, {3}, {}}), (Shape{2, 3}));
  EXPECT_EQ(lax::collapse(counted({2, 3, 4}), 1, 3).shape(), (Shape{2, 12}));
}

}  // namespace
}  // namespace capibara
