// Attention that programs write out, found in their optimised form: what is replaced, what is left, and equal values.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "kernels/fuse.h"
#include "optimise/pipeline.h"
#include "program/build.h"
#include "trace/stage.h"

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

// Fuses the function, and compares its values with those that it has by itself.
Program expect_fused(const FlatFunction& function, const Arrays& arguments) {
  const Program fused = optimised(function, arguments, all);
  EXPECT_EQ(count(fused, "flash_attention"), 1) << fused;
  EXPECT_EQ(count(fused, "exp"), 0) << fused;
  const Arrays got = evaluate_program(fused, arguments), want = function(arguments);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto a = got[i].to_vector<double>(), b = want[i].to_vector<double>();
    EXPECT_EQ(got[i].shape(), want[i].shape());
    for (std::size_t k = 0; k < b.size(); ++k) EXPECT_NEAR(a[k], b[k], 2e-5) << "result " << i << ", element " << k;
  }
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
    EXPECT_EQ(count(fused, "select_n"), 0) << fused;
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
  EXPECT_EQ(count(fused, "flash_attention_grad"), 1) << fused;
}

// Neither do the values of rows that see no key change, nor what they pull back: the mean of all values.
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
  EXPECT_EQ(count(optimised(written(true, false), arguments, all), "flash_attention"), 0);  // maxima of columns
  EXPECT_EQ(count(optimised(written(false, true), arguments, all), "flash_attention"), 0);  // sums are a result
}

}  // namespace
}  // namespace capibara::kernels
