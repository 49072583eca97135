// Matmuls of ragged groups: values, derivatives and batches, the blockwise program, and the kernel of the CPU backend,
// which also serves ragged dot products.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <numeric>

#include "backends/backend.h"
#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"
#include "lax/contract/ragged_blocks.h"
#include "lax/contract/ragged_dot.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

// One matmul for each group; `sizes` must be valid.
Array plain(const Array& x, const Array& weights, const std::vector<int>& sizes) {
  Arrays parts;
  int64_t row = 0;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    const Array rows = lax::slice_in_dim(x, row, row + sizes[g]);
    parts.push_back(jnp::matmul(rows, lax::index_in_dim(weights, static_cast<int64_t>(g), 0, false)));
    row += sizes[g];
  }
  parts.push_back(jnp::zeros({x.shape(0) - row, weights.shape(2)}));
  return lax::concatenate(parts, 0);
}

const std::vector<std::vector<int>> ragged = {{3, 0, 5, 2}, {10, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 10}};

TEST(GroupedMatmul, MultipliesEachGroupByItsOwnMatrix) {
  const Array x = drawn(0, {10, 6}), weights = drawn(1, {4, 6, 5});
  for (const std::vector<int>& sizes : ragged) {
    const Array counts = array<int>(sizes), want = plain(x, weights, sizes);
    expect_near(grouped_matmul(x, weights, counts), want, 1e-5);
    expect_near(jax::jit([&](const Array& a) { return grouped_matmul(a, weights, counts); })(x), want, 1e-5);
    expect_near(grouped_matmul(x, jnp::swapaxes(weights, 1, 2), counts, {.transpose_weights = true}), want, 1e-5);
    expect_near(lax::ragged_dot(x, weights, counts), want, 1e-5);
  }
}

// Negative sizes are zero, and sizes beyond the last row are clipped.
TEST(GroupedMatmul, ClipsSizes) {
  const Array x = drawn(0, {4, 3}), weights = drawn(1, {3, 3, 2});
  const Array want = plain(x, weights, {2, 0, 2});
  expect_near(grouped_matmul(x, weights, array<int>({2, -3, 9})), want, 1e-5);
  expect_near(multiply_ragged_rows(x, weights, array<int>({2, -3, 9}), false, {Attr(), DType::float32}), want, 1e-5);
}

TEST(GroupedMatmul, HasDerivativesOfEveryOrder) {
  const Array x = drawn(0, {10, 6}), weights = drawn(1, {4, 6, 5}), dx = drawn(2, {10, 6}), dw = drawn(3, {4, 6, 5});
  for (const std::vector<int>& sizes : ragged) {
    const Array counts = array<int>(sizes);
    auto both = [&](auto&& check) {
      auto fused = [&](const Array& a, const Array& w) { return jnp::sum(jnp::sin(grouped_matmul(a, w, counts))); };
      auto loops = [&](const Array& a, const Array& w) { return jnp::sum(jnp::sin(plain(a, w, sizes))); };
      check(fused, loops);
    };
    both([&](auto fused, auto loops) {
      const auto got = jax::grad<0, 1>(fused)(x, weights), want = jax::grad<0, 1>(loops)(x, weights);
      expect_near(std::get<0>(got), std::get<0>(want), 1e-4);
      expect_near(std::get<1>(got), std::get<1>(want), 1e-4);
      auto along = [&](auto f) { return std::get<1>(jax::jvp(f, std::tuple(x, weights), std::tuple(dx, dw))); };
      expect_near(along(fused), along(loops), 1e-3);
      auto twice = [&](auto f) {
        return jax::grad<0, 1>([&, f](const Array& a, const Array& w) {
          const auto gradient = jax::grad<0, 1>(f)(a, w);
          return jnp::sum(std::get<0>(gradient) * dx) + jnp::sum(std::get<1>(gradient) * dw);
        })(x, weights);
      };
      const auto second = twice(fused), expected = twice(loops);
      expect_near(std::get<0>(second), std::get<0>(expected), 1e-3);
      expect_near(std::get<1>(second), std::get<1>(expected), 1e-3);
    });
  }
}

TEST(GroupedMatmul, MapsOverRowsOverSizesAndOverWeights) {
  const Array x = drawn(0, {3, 10, 6}), weights = drawn(1, {4, 6, 5}), many = drawn(2, {3, 4, 6, 5});
  const Array sizes = array<int>({3, 0, 5, 2, 10, 0, 0, 0, 1, 1, 1, 1}).reshape({3, 4});
  auto row = [](const Array& all, int64_t i) { return lax::index_in_dim(all, i, 0, false); };
  Arrays shared, own;
  for (int64_t i = 0; i < 3; ++i) {
    shared.push_back(grouped_matmul(row(x, i), weights, row(sizes, i)));
    own.push_back(grouped_matmul(row(x, i), row(many, i), row(sizes, 0)));
  }
  auto map = [&](const Array& a, const Array& s) { return grouped_matmul(a, weights, s); };
  expect_near(jax::vmap(map)(x, sizes), jnp::stack(shared), 1e-5);
  expect_near(grouped_matmul(x, weights, sizes), jnp::stack(shared), 1e-5);
  auto map_weights = [&](const Array& a, const Array& w) { return grouped_matmul(a, w, row(sizes, 0)); };
  expect_near(jax::vmap(map_weights)(x, many), jnp::stack(own), 1e-5);
  // The weights are not copied for the batch.
  const std::string text = jax::make_jaxpr(jax::vmap(map))(x, sizes).to_string();
  EXPECT_NE(text.find("= grouped_matmul["), std::string::npos) << text;
  EXPECT_EQ(text.find("broadcast_in_dim"), std::string::npos) << text;
}

// Gradients of weights shared by a batch are summed over all its rows.
TEST(GroupedMatmul, SumsGradientsOfSharedWeights) {
  const Array x = drawn(0, {3, 10, 6}), weights = drawn(1, {4, 6, 5});
  const Array sizes = array<int>({3, 0, 5, 2, 10, 0, 0, 0, 1, 1, 1, 1}).reshape({3, 4});
  auto loss = [&](const Array& w) { return jnp::sum(jnp::sin(grouped_matmul(x, w, sizes))); };
  Array sum = jnp::zeros({4, 6, 5});
  for (int64_t i = 0; i < 3; ++i) {
    auto one = [&](const Array& w) {
      return jnp::sum(
          jnp::sin(grouped_matmul(lax::index_in_dim(x, i, 0, false), w, lax::index_in_dim(sizes, i, 0, false))));
    };
    sum = sum + jax::grad<0>(one)(weights);
  }
  expect_near(jax::grad<0>(loss)(weights), sum, 1e-4);
}

TEST(GroupedMatmul, NamesWhatDoesNotFit) {
  const Array x = jnp::ones({4, 3}), weights = jnp::ones({2, 3, 5}), sizes = array<int>({1, 3});
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const TypeError& error) {
      return error.what();
    }
    return "nothing was raised";
  };
  EXPECT_EQ(
      message([&] {
        grouped_matmul(x, jnp::ones({2, 4, 5}), sizes);
      }),
      "grouped_matmul: expected float32[2,3,columns] for x of float32[4,3] and 2 groups (argument 'weights'), got "
      "float32[2,4,5]");
  EXPECT_NE(message([&] { grouped_matmul(x, weights, jnp::ones({2})); }).find("argument 'group_sizes'"),
            std::string::npos);
  EXPECT_NE(message([&] { grouped_matmul(jnp::ones({3}), weights, sizes); }).find("argument 'x'"), std::string::npos);
}

// ---- the blockwise program ---------------------------------------------------------------------------------------

// Blocks of 8 to 128 rows; some groups fill several, others none.
TEST(RaggedBlocks, AreGroupsWhateverTheirSizes) {
  for (const auto& [rows, sizes] : std::vector<std::pair<int64_t, std::vector<int>>>{
           {1, {1}}, {9, {0, 9}}, {33, {8, 8, 16, 0}}, {300, {129, 0, 1, 128}}, {700, {650, 0, 50}}, {40, {3, 4, 5}}}) {
    const auto groups = static_cast<int64_t>(sizes.size());
    const Array x = drawn(0, {rows, 7}), weights = drawn(1, {groups, 7, 5}), y = drawn(2, {rows, 5});
    const Array counts = array<int>(sizes), want = plain(x, weights, sizes);
    expect_near(multiply_ragged_rows(x, weights, counts, false, {Attr(), DType::float32}), want, 1e-4);
    expect_near(multiply_ragged_rows(x, jnp::swapaxes(weights, 1, 2), counts, true, {Attr(), DType::float32}), want,
                1e-4);
    Arrays sums;
    int64_t row = 0;
    for (int size : sizes) {
      sums.push_back(jnp::matmul(lax::slice_in_dim(x, row, row + size).T(), lax::slice_in_dim(y, row, row + size)));
      row += size;
    }
    expect_near(multiply_ragged_inner(x, y, counts, {Attr(), DType::float32}), jnp::stack(sums), 1e-4);
  }
}

// A ragged dot whose copies for each group would be large is lowered to a loop.
TEST(RaggedBlocks, SpareTheCopiesOfLargeRaggedDots) {
  const Primitive primitive = capibara::primitive("ragged_dot_general");
  const Array x = drawn(0, {1100, 64}), weights = drawn(1, {16, 64, 64}), dy = drawn(2, {1100, 64});
  std::vector<int> sizes(16, 70);
  sizes[3] = 10;
  const Array counts = array<int>(sizes);
  auto lowered = [&](const Array& a, const Array& b, Attr numbers) {
    const Attrs attrs = {{"ragged_dot_dimension_numbers", std::move(numbers)},
                         {"precision", Attr()},
                         {"preferred_element_type", Attr()},
                         {"group_offset", Attr()},
                         {"out_sharding", Attr()}};
    const std::string text = jax::make_jaxpr([&](const Array& p, const Array& q) {
                               return primitive->lower(Arrays{p, q, counts}, attrs)[0];
                             })(a, b)
                                 .to_string();
    EXPECT_NE(text.find("scan["), std::string::npos) << text;
    EXPECT_EQ(text.find("16,1100"), std::string::npos) << text;
    expect_near(primitive->lower(Arrays{a, b, counts}, attrs)[0],
                capibara::bind(primitive, Arrays{a, b, counts}, attrs)[0], 1e-3);
  };
  lowered(x, weights, ragged_attr({{1}, {1}, {}, {}}, {0}, {0}));
  lowered(dy, weights, ragged_attr({{1}, {2}, {}, {}}, {0}, {0}));
  lowered(x, dy, ragged_attr({{0}, {0}, {}, {}}, {0}, {}));
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using GroupedMatmulKernel = cpu::KernelTest;

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

cpu::Tolerance tolerance_of(DType dtype, int64_t inner) {
  const double unit = cpu::epsilon_of(dtype);
  return {(dtype == DType::float64 ? 1e-14 : 1e-6) * static_cast<double>(inner + 8) + unit, 4 * unit};
}

constexpr DType dtypes[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};

// [batch], rows, inner, columns, groups
struct Case {
  Shape batch;
  int64_t rows, inner, columns, groups;
};
const Case cases[] = {{{}, 1, 1, 1, 1},     {{}, 23, 5, 9, 4},   {{}, 30, 40, 33, 3}, {{2}, 17, 8, 16, 5},
                      {{2, 2}, 6, 3, 2, 2}, {{}, 60, 64, 96, 9}, {{}, 4, 300, 20, 2}, {{}, 7, 0, 3, 2}};

Shape joined(Shape batch, std::initializer_list<int64_t> own) {
  batch.insert(batch.end(), own);
  return batch;
}

TEST_F(GroupedMatmulKernel, IsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : dtypes) {
    for (const auto& [batch, rows, inner, columns, groups] : cases) {
      const ArrayType x = cpu::type_of(dtype, joined(batch, {rows, inner}));
      const ArrayType sizes = cpu::type_of(DType::int32, joined(batch, {groups}));
      const std::vector<cpu::Values> values = {cpu::Values::plain, cpu::Values::plain, cpu::Values::indices};
      for (bool transposed : {false, true}) {
        const Shape matrices = transposed ? Shape{groups, columns, inner} : Shape{groups, inner, columns};
        for (const Shape& prefix : {Shape{}, batch}) {
          Shape shape = prefix;
          shape.insert(shape.end(), matrices.begin(), matrices.end());
          check_kernel({"grouped_matmul",
                        {x, cpu::type_of(dtype, shape), sizes},
                        {{"transpose_weights", transposed}},
                        values,
                        tolerance_of(dtype, inner)});
        }
      }
      const ArrayType y = cpu::type_of(dtype, joined(batch, {rows, columns}));
      check_kernel({"grouped_outer", {x, y, sizes}, {}, values, tolerance_of(dtype, rows)});
    }
  }
}

TEST_F(GroupedMatmulKernel, ServesRaggedDotProducts) {
  const std::vector<cpu::Values> values = {cpu::Values::plain, cpu::Values::plain, cpu::Values::indices};
  auto check = [&](Shape lhs, Shape rhs, Shape sizes, Attr numbers, DType dtype, Attr preferred = Attr()) {
    check_kernel({"ragged_dot_general",
                  {cpu::type_of(dtype, std::move(lhs)), cpu::type_of(dtype, std::move(rhs)),
                   cpu::type_of(DType::int32, std::move(sizes))},
                  {{"ragged_dot_dimension_numbers", std::move(numbers)},
                   {"precision", Attr()},
                   {"preferred_element_type", std::move(preferred)},
                   {"group_offset", Attr()},
                   {"out_sharding", Attr()}},
                  values,
                  is_floating(dtype) ? tolerance_of(dtype, 40) : cpu::Tolerance{}});
  };
  for (DType dtype : {DType::float32, DType::bfloat16, DType::int32}) {
    check({30, 20}, {4, 20, 12}, {4}, ragged_attr({{1}, {1}, {}, {}}, {0}, {0}), dtype);
    check({30, 20}, {4, 12, 20}, {4}, ragged_attr({{1}, {2}, {}, {}}, {0}, {0}), dtype);
    check({20, 30}, {20, 12, 4}, {4}, ragged_attr({{0}, {0}, {}, {}}, {1}, {2}), dtype);
    check({30, 20}, {30, 12}, {4}, ragged_attr({{0}, {0}, {}, {}}, {0}, {}), dtype);
    check({3, 30, 20}, {4, 3, 20, 12}, {3, 4}, ragged_attr({{2}, {2}, {0}, {1}}, {1}, {0}), dtype);
    check({3, 30, 20}, {3, 30, 12}, {3, 4}, ragged_attr({{1}, {1}, {0}, {0}}, {1}, {}), dtype);
    check({3, 30, 20}, {4, 3, 20, 12}, {4}, ragged_attr({{2}, {2}, {0}, {1}}, {1}, {0}), dtype);
    check({8, 5, 20}, {4, 20, 12}, {4}, ragged_attr({{2}, {1}, {}, {}}, {0}, {0}), dtype);
  }
  check({30, 20}, {4, 20, 12}, {4}, ragged_attr({{1}, {1}, {}, {}}, {0}, {0}), DType::bfloat16, DType::float32);
}

// A group with most of the work is split, the others are distributed whole.
TEST_F(GroupedMatmulKernel, TakesUnequalGroups) {
  const Array x = drawn(0, {900, 96}), weights = drawn(1, {6, 96, 128});
  const std::vector<int> sizes = {5, 700, 0, 1, 120, 74};
  expect_near(backend("cpu").run(primitive("grouped_matmul"), Arrays{x, weights, array<int>(sizes)},
                                 {{"transpose_weights", false}})[0],
              plain(x, weights, sizes), 1e-3);
}

// Compiled programs call the kernel, also for ragged dots.
TEST_F(GroupedMatmulKernel, ServesPrograms) {
  for (bool is_ragged_dot : {false, true}) {
    const Program program = jax::make_jaxpr([&](const Array& x, const Array& w, const Array& s) {
      return is_ragged_dot ? lax::ragged_dot(x, w, s) : grouped_matmul(x, w, s);
    })(jnp::ones({300, 20}), jnp::ones({2, 20, 12}), array<int>({100, 200}));
    const std::string text = *backend("cpu").compiled_text(program, {});
    EXPECT_NE(text.find("host "), std::string::npos) << text;
    EXPECT_EQ(text.find("for "), std::string::npos) << text;
  }
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(int64_t inner, int64_t columns, DType dtype, bool is_ragged_dot, bool cuda_kernels = true) {
  const Array x = jnp::ones({40, inner}, {.dtype = dtype}), weights = jnp::ones({3, inner, columns}, {.dtype = dtype});
  const Program program = jax::make_jaxpr([&](const Array& a, const Array& b, const Array& s) {
    return jax::grad<0, 1>([&](const Array& p, const Array& q) {
      return jnp::sum(jnp::sin(is_ragged_dot ? lax::ragged_dot(p, q, s) : grouped_matmul(p, q, s)));
    })(a, b);
  })(x, weights, array<int>({10, 20, 5}));
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(GroupedMatmulCuda, GoesOutAsCallsOfItsKernels) {
  for (DType dtype : {DType::float32, DType::bfloat16}) {
    for (bool is_ragged_dot : {false, true}) {
      const std::string text = gradient_text(16, 24, dtype, is_ragged_dot);
      EXPECT_NE(text.find("@capibara_grouped_matmul("), std::string::npos) << text;
      EXPECT_NE(text.find("transposed = 0 : i64"), std::string::npos) << text;
      EXPECT_NE(text.find("transposed = 1 : i64"), std::string::npos) << text;
      EXPECT_NE(text.find("@capibara_grouped_outer("), std::string::npos) << text;
      EXPECT_EQ(gradient_text(16, 24, dtype, is_ragged_dot, false).find("@capibara_"), std::string::npos);
    }
  }
}

// Rows that are not multiples of 16 bytes, and other types: the composition is lowered.
TEST(GroupedMatmulCuda, LeavesWhatDoesNotFit) {
  for (bool is_ragged_dot : {false, true}) {
    EXPECT_EQ(gradient_text(12, 24, DType::bfloat16, is_ragged_dot).find("@capibara_"), std::string::npos);
    EXPECT_EQ(gradient_text(16, 6, DType::float32, is_ragged_dot).find("@capibara_"), std::string::npos);
    EXPECT_EQ(gradient_text(16, 24, DType::float16, is_ragged_dot).find("@capibara_"), std::string::npos);
  }
}

}  // namespace
}  // namespace capibara::kernels
