// Attention written out in programs, found after optimisation: what is replaced, what is left, and equal values.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "compiler/optimise/pipeline.h"
#include "kernels/fuse.h"
#include "program/ir/build.h"
#include "program/ir/nested.h"
#include "program/trace/stage.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

Array normal(int64_t seed, Shape shape) {
  return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)});
}

bool all(const Program&, const Equation&) { return true; }
bool none(const Program&, const Equation&) { return false; }

Program optimised(const FlatFunction& function, const Arrays& arguments, const passes::Keep& claims) {
  Types types;
  for (const Array& argument : arguments) types.push_back(argument.type());
  OptimiseOptions options;
  options.fuse = [&](const Program& program) { return fuse_attention(program, claims); };
  return optimise(stage(function, types, "f").program, options);
}

int count(const Program& program, std::string_view name) {
  int found = 0;
  for (const Equation& equation : program.equations()) found += equation.primitive.is(name);
  return found;
}

int count_within(const Program& program, std::string_view name) {
  int found = count(program, name);
  for (const Equation& equation : program.equations()) {
    for_each_program(equation.attrs, [&](const Program& held) { found += count_within(held, name); });
  }
  return found;
}

// Checks for equality up to rounding, with NaN and infinities at the same positions.
void expect_same(const Arrays& got, const Arrays& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto a = got[i].astype(DType::float32).to_vector<double>(),
               b = want[i].astype(DType::float32).to_vector<double>();
    EXPECT_EQ(got[i].shape(), want[i].shape());
    double most = 1;
    for (double value : b) most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const bool same = std::isnan(b[k]) ? std::isnan(a[k]) : a[k] == b[k] || std::abs(a[k] - b[k]) <= 2e-5 * most;
      EXPECT_TRUE(same) << "result " << i << ", element " << k << ": " << a[k] << ", not " << b[k];
      if (!same) break;
    }
  }
}

// Fuses the function, and compares its values with the unfused function.
Program expect_fused(const FlatFunction& function, const Arrays& arguments) {
  const Program fused = optimised(function, arguments, all);
  EXPECT_EQ(count(fused, "flash_attention"), 1) << fused;
  EXPECT_EQ(count(fused, "exp"), 0) << fused;  // except in the loop for unusual calls
  expect_same(evaluate_program(fused, arguments), function(arguments));
  return fused;
}

Arrays heads() { return {normal(0, {2, 9, 4, 8}), normal(1, {2, 11, 2, 8}), normal(2, {2, 11, 2, 8})}; }

TEST(FuseAttention, ReplacesTheFunctionOfJax) {
  for (const bool causal : {false, true}) {
    const Program fused = expect_fused(
        [=](std::span<const Array> in) {
          return Arrays{jax::nn::dot_product_attention(in[0], in[1], in[2], {.is_causal = causal})};
        },
        heads());
    EXPECT_NE(fused.to_string().find(causal ? "causal=True" : "causal=False"), std::string::npos) << fused;
    EXPECT_EQ(count(fused, "select_n"), 1) << fused;  // selects the number of iterations
  }
}

TEST(FuseAttention, ReplacesItsGradientAsWell) {
  Arrays arguments = heads();
  arguments.push_back(normal(3, {1, 4, 1, 11}));
  const Program fused = expect_fused(
      [](std::span<const Array> in) {
        auto loss = [](const Array& q, const Array& k, const Array& v, const Array& bias) {
          const Array y = jax::nn::dot_product_attention(q, k, v, {.bias = bias});
          return jnp::sum(y * y);
        };
        const auto [dq, dk, dv, db] = jax::grad<0, 1, 2, 3>(loss)(in[0], in[1], in[2], in[3]);
        return Arrays{dq, dk, dv, db};
      },
      arguments);
  EXPECT_EQ(count_within(fused, "flash_attention_grad"), 1) << fused;
}

// Rows that see no key keep their values, the mean of all values, and their cotangents.
TEST(FuseAttention, KeepsRowsWithoutKeys) {
  const Array seen = lax::broadcasted_iota(DType::int32, {1, 1, 9, 11}, 2) != array<int32_t>({4}, Shape{});
  const Program fused = expect_fused(
      [=](std::span<const Array> in) {
        auto attend = [&](const Array& q, const Array& k, const Array& v) {
          return jax::nn::dot_product_attention(q, k, v, {.mask = seen});
        };
        auto loss = [&](const Array& q, const Array& k, const Array& v) {
          const Array y = attend(q, k, v);
          return jnp::sum(y * y);
        };
        const auto [dq, dk, dv] = jax::grad<0, 1, 2>(loss)(in[0], in[1], in[2]);
        return Arrays{attend(in[0], in[1], in[2]), dq, dk, dv};
      },
      heads());
  EXPECT_NE(fused.to_string().find("mask=True"), std::string::npos) << fused;
}

TEST(FuseAttention, LeavesWhatNoKernelTakes) {
  const FlatFunction attend = [](std::span<const Array> in) {
    return Arrays{jax::nn::dot_product_attention(in[0], in[1], in[2])};
  };
  EXPECT_EQ(count(optimised(attend, heads(), none), "flash_attention"), 0);
}

TEST(FuseAttention, LeavesWhatIsNoSoftmax) {
  const auto written = [](bool shifted, bool shared) {
    return [=](std::span<const Array> in) {
      const Array logits = lax::dot_general(in[0], in[1], {{2}, {2}, {0}, {0}});
      const Array most = lax::reduce_max(logits, {.axes = {shifted ? 1 : 2}});
      const Array spread = lax::broadcast_in_dim(most, logits.shape(), {0, shifted ? 2 : 1});
      const Array exponentials = lax::exp(logits - spread);
      const Array sums = lax::expand_dims(lax::reduce_sum(exponentials, {.axes = {2}}), {2});
      const Array shares = exponentials / sums;
      const Array result = lax::dot_general(shares, in[2], {{2}, {1}, {0}, {0}});
      return shared ? Arrays{result, sums} : Arrays{result};
    };
  };
  const Arrays arguments = {normal(0, {3, 7, 8}), normal(1, {3, 7, 8}), normal(2, {3, 7, 8})};
  expect_fused(written(false, false), arguments);
  EXPECT_EQ(count(optimised(written(true, false), arguments, all), "flash_attention"), 0);  // maxima over columns
  EXPECT_EQ(count(optimised(written(false, true), arguments, all), "flash_attention"), 0);  // the sums are a result
}

// ---- conditions of the match ---------------------------------------------------------------------------------------

Arrays squares() { return {normal(0, {7, 7}), normal(1, {7, 7}), normal(2, {7, 7})}; }

// Checks that a function is left unchanged, with the same values.
void expect_left(const FlatFunction& function, const Arrays& arguments) {
  const Program program = optimised(function, arguments, all);
  EXPECT_EQ(count_within(program, "flash_attention"), 0) << program;
  expect_same(evaluate_program(program, arguments), function(arguments));
}

TEST(FuseAttention, LeavesOperandsThatContainEachOther) {
  const auto shares = [](std::span<const Array> in) {
    return jax::nn::softmax(jnp::matmul(in[0], jnp::transpose(in[1])));
  };
  expect_left([&](std::span<const Array> in) { return Arrays{jnp::matmul(shares(in), shares(in))}; }, squares());
  expect_left(
      [&](std::span<const Array> in) { return Arrays{jnp::matmul(shares(in), jnp::matmul(shares(in), in[2]))}; },
      squares());
  for (const bool transposed : {false, true}) {
    expect_left(
        [=](std::span<const Array> in) {
          const Array logits = jnp::matmul(in[0], jnp::transpose(in[1]));
          const Array doubled = logits + (transposed ? jnp::transpose(logits) : logits);
          return Arrays{jnp::matmul(jax::nn::softmax(doubled), in[2])};
        },
        squares());
  }
}

TEST(FuseAttention, LeavesArraysWithoutElements) {
  const FlatFunction attend = [](std::span<const Array> in) {
    return Arrays{jax::nn::dot_product_attention(in[0], in[1], in[2])};
  };
  for (const Shape& shape : {Shape{0, 4, 2, 3}, Shape{2, 0, 2, 3}, Shape{2, 4, 0, 3}}) {
    const Array x = jnp::zeros(shape);
    const Program program = optimised(attend, {x, x, x}, all);
    EXPECT_EQ(count_within(program, "flash_attention"), 0) << program;
    EXPECT_EQ(evaluate_program(program, Arrays{x, x, x})[0].shape(), shape);
  }
}

// A mask made from positions stays an array if their type cannot represent all of them.
TEST(FuseAttention, ReadsPositionsOfTypesThatHoldThem) {
  const auto attend = [](DType dtype, int64_t offset) {
    return [=](std::span<const Array> in) {
      const Array own = lax::broadcasted_iota(dtype, {7, 7}, 0), other = lax::broadcasted_iota(dtype, {7, 7}, 1);
      const Array shift = lax::full_like(own, array<int64_t>({offset}, Shape{}).astype(dtype));
      const Array seen = (own + shift) >= other;
      const Array logits = jnp::where(seen, jnp::matmul(in[0], jnp::transpose(in[1])), -1e30);
      return Arrays{jnp::matmul(jax::nn::softmax(logits), in[2])};
    };
  };
  const auto has_mask = [&](DType dtype, int64_t offset) {
    return expect_fused(attend(dtype, offset), squares()).to_string().find("mask=True") != std::string::npos;
  };
  EXPECT_FALSE(has_mask(DType::int32, 3));
  EXPECT_FALSE(has_mask(DType::int8, 121));
  EXPECT_TRUE(has_mask(DType::int8, 122));  // 6 + 122 overflows int8
  EXPECT_FALSE(has_mask(DType::uint8, 249));
  EXPECT_TRUE(has_mask(DType::uint8, 250));
}

// The cotangent of summed heads has no head axis.
TEST(FuseAttention, LeavesGradientsOfSummedHeads) {
  const FlatFunction gradient = [](std::span<const Array> in) {
    auto loss = [&](const Array& q, const Array& k, const Array& v) {
      const Array shares = jax::nn::softmax(jnp::einsum("bqhd,bkhd->bhqk", {q, k}));
      return jnp::sum(jnp::einsum("bhqk,bkhd->bqd", {shares, v}) * in[3]);
    };
    const auto [dq, dk, dv] = jax::grad<0, 1, 2>(loss)(in[0], in[1], in[2]);
    return Arrays{dq, dk, dv};
  };
  expect_left(gradient,
              {normal(0, {2, 5, 3, 4}), normal(1, {2, 5, 3, 4}), normal(2, {2, 5, 3, 4}), normal(3, {2, 5, 4})});
}

// Products with these scales underflow, or are 0.
TEST(FuseAttention, LeavesScalesOutOfRange) {
  for (const double scale : {1e-30, 0.0}) {
    expect_left(
        [=](std::span<const Array> in) {
          const Array logits = jnp::matmul(in[0], jnp::transpose(in[1])) * scale;
          return Arrays{jnp::matmul(jax::nn::softmax(logits), in[2])};
        },
        squares());
  }
}

// ---- NaN, infinities and huge values -------------------------------------------------------------------------------

// Causal attention by the definition: NaN in hidden keys makes every row NaN that multiplies them by 0.
Arrays causal_with_gradient(std::span<const Array> in, double hidden) {
  auto attend = [&](const Array& q, const Array& k, const Array& v) {
    const Array seen = lax::broadcasted_iota(DType::int32, {7, 7}, 0) >= lax::broadcasted_iota(DType::int32, {7, 7}, 1);
    return jnp::matmul(jax::nn::softmax(jnp::where(seen, jnp::matmul(q, jnp::transpose(k)), hidden)), v);
  };
  auto loss = [&](const Array& q, const Array& k, const Array& v) { return jnp::sum(attend(q, k, v) * in[3]); };
  const auto [dq, dk, dv] = jax::grad<0, 1, 2>(loss)(in[0], in[1], in[2]);
  return {attend(in[0], in[1], in[2]), dq, dk, dv};
}

TEST(FuseAttention, HasNanAndInfinityWhereTheProgramHasThem) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double hidden : {-1e30, -infinity}) {
    for (std::size_t which = 0; which < 3; ++which) {
      for (const double value : {nan, infinity, -infinity, 1e20, 3e38}) {
        Arrays arguments = squares();
        arguments.push_back(normal(3, {7, 7}));
        const Array row = lax::full({1, 7}, array<double>({value}, Shape{}).astype(DType::float32));
        arguments[which] = lax::dynamic_update_slice_in_dim(arguments[which], row, array<int32_t>({6}, Shape{}), 0);
        const FlatFunction function = [=](std::span<const Array> in) { return causal_with_gradient(in, hidden); };
        const Program fused = optimised(function, arguments, all);
        EXPECT_EQ(count(fused, "flash_attention"), 1) << fused;
        SCOPED_TRACE(concat("operand ", which, ", ", value, ", hidden ", hidden));
        expect_same(evaluate_program(fused, arguments), function(arguments));
      }
    }
  }
}

}  // namespace
}  // namespace capibara::kernels
