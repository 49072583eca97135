// The index family: values at and beyond the bounds, rules against each other, errors.
#include "counted.h"
#include "rule_checks.h"

#include "lax/shape/shape.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
using Floats = std::vector<float>;

TEST(Index, LoweredProgramsComputeTheSameForEveryDtype) {
  for (DType dtype : array_dtypes()) rule_checks::check_lowering(index_family(), dtype);
}
TEST(Index, BatchedEqualsLooped) { rule_checks::check_batching(index_family()); }
TEST(Index, TransposeIsTheAdjointOfTheTangent) { rule_checks::check_derivatives(index_family(), true); }

TEST(Index, DynamicSlicesAreMovedInside) {
  Array x = counted({5});
  EXPECT_EQ(lax::dynamic_slice(x, {4}, {3}).to_vector<float>(), (Floats{2, 3, 4}));
  EXPECT_EQ(lax::dynamic_slice(x, {-2}, {1}).to_vector<float>(), (Floats{3}));
  EXPECT_EQ(lax::dynamic_slice(x, {array<int>({-9}).reshape({})}, {2}).to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(lax::dynamic_update_slice(x, array<float>({9, 8}), {7}).to_vector<float>(), (Floats{0, 1, 2, 9, 8}));
  EXPECT_EQ(lax::dynamic_slice_in_dim(counted({2, 3}), 1, 2, 1).to_vector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(lax::dynamic_index_in_dim(counted({2, 3}), -1, 0, false).to_vector<float>(), (Floats{3, 4, 5}));
  EXPECT_EQ(lax::dynamic_update_index_in_dim(counted({2, 2}), array<float>({7, 8}), 1, 0).to_vector<float>(),
            (Floats{0, 1, 7, 8}));
  EXPECT_THROW(lax::dynamic_slice(x, {-1}, {1}, false), ValueError);
  EXPECT_THROW(lax::dynamic_slice(x, {0}, {6}), TypeError);
  EXPECT_THROW(lax::dynamic_slice(x, {0, 0}, {1}), ValueError);
}

const GatherDimensionNumbers rows{{1}, {0}, {0}, {}, {}};

TEST(Index, GatherModes) {
  Array x = counted({3, 2}), i = array<int>({{2}, {-1}, {7}});
  EXPECT_EQ(lax::gather(x, i, rows, {1, 2}).to_vector<float>(), (Floats{4, 5, 0, 1, 4, 5}));
  lax::GatherOptions fill{.mode = lax::GatherScatterMode::fill_or_drop, .fill_value = Array(9)};
  EXPECT_EQ(lax::gather(x, i, rows, {1, 2}, fill).to_vector<float>(), (Floats{4, 5, 9, 9, 9, 9}));
  fill.fill_value = std::nullopt;
  EXPECT_TRUE(std::isnan(lax::gather(x, i, rows, {1, 2}, fill).to_vector<float>()[2]));
  Array bytes = lax::convert_element_type(x, DType::uint8);
  EXPECT_EQ(lax::gather(bytes, i, rows, {1, 2}, fill).to_vector<int>()[3], 255);
  Array words = lax::convert_element_type(x, DType::int32);
  EXPECT_EQ(lax::gather(words, i, rows, {1, 2}, fill).to_vector<int>()[3], INT32_MIN);
}

TEST(Index, ScatterAccumulatesRepeatsAndDropsOutside) {
  Array x = counted({4}), i = array<int>({{1}, {1}, {-1}, {9}}), u = array<float>({10, 20, 30, 40});
  ScatterDimensionNumbers dims{{}, {0}, {0}, {}, {}};
  EXPECT_EQ(lax::scatter_add(x, i, u, dims).to_vector<float>(), (Floats{0, 31, 2, 3}));
  EXPECT_EQ(lax::scatter_sub(x, i, u, dims).to_vector<float>(), (Floats{0, -29, 2, 3}));
  EXPECT_EQ(lax::scatter_mul(x, i, u, dims).to_vector<float>(), (Floats{0, 200, 2, 3}));
  EXPECT_EQ(lax::scatter_max(x, i, u, dims).to_vector<float>(), (Floats{0, 20, 2, 3}));
  EXPECT_EQ(lax::scatter_min(x, i, u, dims).to_vector<float>(), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(lax::scatter(x, i, u, dims, {.mode = lax::GatherScatterMode::clip}).to_vector<float>(),
            (Floats{30, 20, 2, 40}));
  Array applied = lax::scatter_apply(x, array<int>({{1}, {3}}), [](const Array& v) { return lax::neg(v); }, dims, {2});
  EXPECT_EQ(applied.to_vector<float>(), (Floats{0, -1, 2, -3}));
}

TEST(Index, ScatterDropsWholeWindows) {
  ScatterDimensionNumbers dims{{0}, {}, {0}, {}, {}};
  EXPECT_EQ(lax::scatter(counted({4}), array<int>({3}), array<float>({8, 9}), dims).to_vector<float>(),
            (Floats{0, 1, 2, 3}));
}

TEST(Index, LowPrecisionSumsRoundAtEveryStep) {
  Array x = lax::full({1}, 256.0, DType::bfloat16);
  Array i = array<int>({{0}, {0}}), u = lax::full({2}, 1.0, DType::bfloat16);
  EXPECT_EQ(lax::scatter_add(x, i, u, {{}, {0}, {0}, {}, {}}).to_vector<float>(), (Floats{256}));
}

TEST(Index, GeneralScatterTakesSeveralOperands) {
  ArrayType f;
  ArrayType types[] = {f, f, f, f};
  Program region = stage(
                       [](std::span<const Array> in) -> Arrays {
                         return {lax::add(in[0], in[2]), lax::mul(in[1], in[3])};
                       },
                       types, "")
                       .program;
  Arrays inputs{counted({3}), counted({3}), array<int>({{1}, {2}}), array<float>({10, 20}), array<float>({10, 20})};
  Attrs attrs{{"dimension_numbers", ScatterDimensionNumbers{{}, {0}, {0}, {}, {}}},
              {"indices_are_sorted", false},
              {"unique_indices", false},
              {"mode", "fill_or_drop"},
              {"update_jaxpr", region},
              {"update_consts", Attr::List{}}};
  Arrays out = capibara::bind(primitive("scatter"), inputs, attrs);
  EXPECT_EQ(out[0].to_vector<float>(), (Floats{0, 11, 22}));
  EXPECT_EQ(out[1].to_vector<float>(), (Floats{0, 10, 40}));
}

TEST(Index, OneOfSeveralWritesWinsInValueAndTangentAlike) {
  Array i = array<int>({{1}, {1}});
  ScatterDimensionNumbers dims{{}, {0}, {0}, {}, {}};
  FlatFunction f = [&](std::span<const Array> in) -> Arrays { return {lax::scatter(in[0], i, in[1], dims)}; };
  Arrays primals{counted({3}), array<float>({5, 6})}, tangents{array<float>({1, 2, 3}), array<float>({50, 60})};
  JvpResult result = jvp_flat(f, primals, tangents);
  Floats value = result.primals[0].to_vector<float>(), tangent = result.tangents[0].to_vector<float>();
  EXPECT_EQ(tangent[1], value[1] * 10);
  EXPECT_EQ(tangent[0], 1);
  EXPECT_EQ(tangent[2], 3);
}

TEST(Index, TiesOfScatterMaxShareTheTangent) {
  Array i = array<int>({{0}, {0}});
  FlatFunction f = [&](std::span<const Array> in) -> Arrays {
    return {lax::scatter_max(in[0], i, in[1], {{}, {0}, {0}, {}, {}})};
  };
  JvpResult result = jvp_flat(f, Arrays{array<float>({4, 1}), array<float>({4, 4})},
                              Arrays{array<float>({3, 5}), array<float>({6, 9})});
  EXPECT_EQ(result.tangents[0].to_vector<float>(), (Floats{6, 5}));
}

TEST(Index, BadDimensionNumbersAreNamed) {
  Array x = counted({3, 2}), i = array<int>({{0}});
  auto message = [&](GatherDimensionNumbers dims, Ints sizes) -> std::string {
    try {
      lax::gather(x, i, dims, sizes);
    } catch (const TypeError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({{1}, {0}, {2}, {}, {}}, {1, 2}).find("Invalid start_index_map mapping; domain is [0, 2)"),
            std::string::npos);
  EXPECT_NE(message({{1}, {0}, {0}, {}, {}}, {1, 3})
                .find("Slice size at index 1 in gather op is out of range, must be within [0, 2], got 3"),
            std::string::npos);
  EXPECT_NE(message({{1}, {0}, {0}, {}, {}}, {2, 2})
                .find("collapse slice dims with bound 1, but bound is 2 for index 0 at position 0"),
            std::string::npos);
  EXPECT_NE(message({{1}, {0}, {0}, {}, {}}, {1}).find("one slice size for every input dimension"), std::string::npos);
  EXPECT_NE(message({{5}, {0}, {0}, {}, {}}, {1, 2}).find("Offset dimension 0 in gather op is out of bounds; got 5"),
            std::string::npos);
  EXPECT_THROW(lax::gather(x, counted({1, 1}), rows, {1, 2}), ValueError);
  EXPECT_THROW(lax::scatter(x, i, counted({1, 3}), {{1}, {0}, {0}, {}, {}}), TypeError);
  EXPECT_THROW(lax::scatter(x, i, array<int>({{1, 2}}), {{1}, {0}, {0}, {}, {}}), TypeError);
}

}  // namespace
}  // namespace capibara
