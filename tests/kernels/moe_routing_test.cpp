// Routing of tokens to experts: values against plain loops, derivatives against a plain program, the kernel of the CPU
// backend against the composition.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backends/backend.h"
#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

// ---- values by loops ---------------------------------------------------------------------------------------------

struct Expected {
  std::vector<double> weights;
  std::vector<int> experts, permutation, inverse, sizes, load;
  double loss = 0;
};

Expected route(const std::vector<double>& logits, int tokens, int experts, int top_k, bool renormalize, int capacity) {
  Expected out;
  const int copies = tokens * top_k;
  out.load.assign(static_cast<std::size_t>(experts), 0);
  std::vector<double> mean(static_cast<std::size_t>(experts), 0);
  for (int t = 0; t < tokens; ++t) {
    const double* row = logits.data() + t * experts;
    std::vector<int> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
    double all = 0, chosen = 0;
    for (int e = 0; e < experts; ++e) all += std::exp(row[e]);
    for (int j = 0; j < top_k; ++j) chosen += std::exp(row[order[static_cast<std::size_t>(j)]]);
    for (int e = 0; e < experts; ++e) mean[static_cast<std::size_t>(e)] += std::exp(row[e]) / all / tokens;
    for (int j = 0; j < top_k; ++j) {
      const int e = order[static_cast<std::size_t>(j)];
      out.experts.push_back(e);
      out.weights.push_back(std::exp(row[e]) / (renormalize ? chosen : all));
      ++out.load[static_cast<std::size_t>(e)];
    }
  }
  std::vector<int> with, without;
  for (int e = 0; e < experts; ++e) {
    int taken = 0;
    for (int j = 0; j < top_k; ++j) {
      for (int t = 0; t < tokens; ++t) {
        const int copy = t * top_k + j;
        if (out.experts[static_cast<std::size_t>(copy)] != e) continue;
        if (taken < capacity) {
          with.push_back(copy);
          ++taken;
        } else {
          without.push_back(copy);
          out.weights[static_cast<std::size_t>(copy)] = 0;
        }
      }
    }
    out.sizes.push_back(taken);
    out.loss += experts * mean[static_cast<std::size_t>(e)] * out.load[static_cast<std::size_t>(e)] / copies;
  }
  out.permutation = with;
  out.permutation.insert(out.permutation.end(), without.begin(), without.end());
  out.inverse.resize(out.permutation.size());
  for (std::size_t i = 0; i < out.permutation.size(); ++i)
    out.inverse[static_cast<std::size_t>(out.permutation[i])] = static_cast<int>(i);
  return out;
}

TEST(MoeRouting, HasTheValuesOfItsDefinition) {
  struct Case {
    int tokens, experts, top_k;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{7, 5, 5}, Case{40, 8, 2}, Case{600, 32, 4}, Case{20, 80, 40}}) {
    const Array logits = drawn(c.tokens, {c.tokens, c.experts});
    for (bool renormalize : {true, false}) {
      for (double factor : {0.0, 0.5, 1.25}) {
        const int copies = c.tokens * c.top_k;
        const int capacity = factor == 0 ? copies : static_cast<int>(std::ceil(factor * copies / c.experts));
        const Expected want = route(logits.to_vector<double>(), c.tokens, c.experts, c.top_k, renormalize, capacity);
        auto call = [&](const Array& x) {
          MoeRoutingOptions options{.renormalize = renormalize};
          if (factor != 0) options.capacity_factor = factor;
          const MoeRouting r = moe_routing_kernel(x, c.experts, c.top_k, true, options);
          return std::tuple(r.weights, r.experts, r.permutation, r.inverse, r.group_sizes, r.load, r.aux_loss);
        };
        auto check = [&](const auto& got) {
          EXPECT_EQ(std::get<1>(got).template to_vector<int>(), want.experts);
          EXPECT_EQ(std::get<2>(got).template to_vector<int>(), want.permutation);
          EXPECT_EQ(std::get<3>(got).template to_vector<int>(), want.inverse);
          EXPECT_EQ(std::get<4>(got).template to_vector<int>(), want.sizes);
          EXPECT_EQ(std::get<5>(got).template to_vector<int>(), want.load);
          const auto weights = std::get<0>(got).template to_vector<double>();
          for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(weights[i], want.weights[i], 2e-6) << i;
          EXPECT_NEAR(std::get<6>(got).template to_vector<double>()[0], want.loss, 1e-5);
        };
        check(call(logits));
        check(jax::jit(call)(logits));
      }
    }
  }
}

TEST(MoeRouting, ComputesLogitsByAGate) {
  const Array tokens = drawn(0, {3, 4, 6}), gate = drawn(1, {6, 5});
  const MoeRouting got = moe_routing_kernel(tokens, 5, 2, true, {.gate = gate});
  const MoeRouting want = moe_routing_kernel(jnp::matmul(tokens, gate), 5, 2);
  EXPECT_EQ(got.weights.shape(), (Shape{3, 4, 2}));
  expect_near(got.weights, want.weights, 1e-5);
  EXPECT_EQ(got.permutation.to_vector<int>(), want.permutation.to_vector<int>());
}

TEST(MoeRouting, PrefersTheLowerNumberAmongEqualLogits) {
  const MoeRouting r = moe_routing_kernel(jnp::zeros({3, 4}), 4, 2);
  EXPECT_EQ(r.experts.to_vector<int>(), (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(r.permutation.to_vector<int>(), (std::vector<int>{0, 2, 4, 1, 3, 5}));
}

// First choices come before second choices of any token.
TEST(MoeRouting, ServesFirstChoicesFirst) {
  const Array logits = array<float>({1, 2, 0, 2, 1, 0}).reshape({2, 3});
  const MoeRouting r = moe_routing_kernel(logits, 3, 2, true, {.capacity_factor = 0.75});
  EXPECT_EQ(r.experts.to_vector<int>(), (std::vector<int>{1, 0, 0, 1}));
  EXPECT_EQ(r.permutation.to_vector<int>(), (std::vector<int>{2, 0, 1, 3}));
  EXPECT_EQ(r.group_sizes.to_vector<int>(), (std::vector<int>{1, 1, 0}));
  EXPECT_EQ(r.load.to_vector<int>(), (std::vector<int>{2, 2, 0}));
  EXPECT_EQ(r.weights.to_vector<float>()[1], 0.0f);
  EXPECT_GT(r.weights.to_vector<float>()[0], 0.5f);
}

TEST(MoeRouting, KeepsNaNToItsToken) {
  std::vector<float> values(12, 0.5f);
  values[5] = std::nanf("");
  const MoeRouting r = moe_routing_kernel(array<float>(values).reshape({3, 4}), 4, 2);
  const auto weights = r.weights.to_vector<float>();
  EXPECT_EQ(weights[0], 0.5f);
  EXPECT_TRUE(std::isnan(weights[2]) && std::isnan(weights[3]));
  EXPECT_EQ(weights[4], 0.5f);
  EXPECT_EQ(r.experts.to_vector<int>()[2], 1);  // NaN is the maximum, as in lax.top_k
  EXPECT_TRUE(std::isnan(r.aux_loss.to_vector<float>()[0]));
}

TEST(MoeRouting, TakesNoTokens) {
  const MoeRouting r = moe_routing_kernel(jnp::zeros({0, 4}), 4, 2, true, {.capacity_factor = 1.0});
  EXPECT_EQ(r.weights.shape(), (Shape{0, 2}));
  EXPECT_EQ(r.permutation.shape(), (Shape{0}));
  EXPECT_EQ(r.group_sizes.to_vector<int>(), (std::vector<int>(4, 0)));
  EXPECT_EQ(r.aux_loss.to_vector<float>()[0], 0.0f);
}

// ---- derivatives -------------------------------------------------------------------------------------------------

// Weights and loss as a plain program: the softmax over the chosen logits or over all.
Array plain_loss(const Array& logits, int64_t top_k, bool renormalize, bool balance, const Array& factors) {
  const auto [values, experts] = lax::top_k(logits, top_k);
  const int64_t count = logits.shape(1);
  const Array all = jax::nn::softmax(logits);
  const Array weights = renormalize ? jax::nn::softmax(values) : jnp::take_along_axis(all, experts, {.axis = 1});
  Array loss = jnp::sum(weights * factors);
  if (balance) {
    const Array chosen = jnp::sum(jax::nn::one_hot(experts, count), {.axis = jnp::Axis({0, 1})});
    const double copies = static_cast<double>(logits.shape(0) * top_k);
    loss = loss + jnp::sum(jnp::mean(all, {.axis = 0}) * chosen) * Array(static_cast<double>(count) / copies) * 3.0;
  }
  return loss;
}

TEST(MoeRouting, HasTheDerivativesOfAPlainProgram) {
  const Array logits = drawn(0, {12, 6}), factors = drawn(1, {12, 3}), t = drawn(2, {12, 6});
  for (bool renormalize : {true, false}) {
    for (bool balance : {true, false}) {
      auto fused = [&](const Array& x) {
        const MoeRouting r = moe_routing_kernel(x, 6, 3, balance, {.renormalize = renormalize});
        return jnp::sum(r.weights * factors) + r.aux_loss * 3.0;
      };
      auto plain = [&](const Array& x) { return plain_loss(x, 3, renormalize, balance, factors); };
      expect_near(jax::grad<0>(fused)(logits), jax::grad<0>(plain)(logits), 1e-5);
      expect_near(jax::jit(jax::grad<0>(fused))(logits), jax::grad<0>(plain)(logits), 1e-5);
      auto along = [&](auto f) { return std::get<1>(jax::jvp(f, std::tuple(logits), std::tuple(t))); };
      expect_near(along(fused), along(plain), 1e-5);
      auto twice = [&](auto f) {
        return jax::grad<0>([&, f](const Array& x) { return jnp::sum(jax::grad<0>(f)(x) * t); })(logits);
      };
      expect_near(twice(fused), twice(plain), 1e-5);
    }
  }
}

// The weight of a dropped copy is a constant.
TEST(MoeRouting, GivesNoGradientToDroppedCopies) {
  const Array logits = drawn(3, {12, 4}), factors = drawn(1, {12, 2});
  const MoeRouting r = moe_routing_kernel(logits, 4, 2, false, {.capacity_factor = 0.5});
  const Array kept = lax::convert_element_type(lax::ne(r.weights, lax::zeros_like(r.weights)), DType::float32);
  EXPECT_LT(jnp::sum(kept).to_vector<float>()[0], 24.0f);
  auto fused = [&](const Array& x) {
    return jnp::sum(moe_routing_kernel(x, 4, 2, false, {.capacity_factor = 0.5}).weights * factors);
  };
  auto plain = [&](const Array& x) { return plain_loss(x, 2, true, false, factors * kept); };
  expect_near(jax::grad<0>(fused)(logits), jax::grad<0>(plain)(logits), 1e-5);
}

TEST(MoeRouting, MapsAsOneEquation) {
  const Array logits = drawn(0, {3, 8, 4});
  auto weights = [](const Array& x) { return moe_routing_kernel(x, 4, 2).weights; };
  Arrays rows;
  for (int64_t i = 0; i < 3; ++i) rows.push_back(weights(lax::index_in_dim(logits, i, 0, false)));
  expect_near(jax::vmap(weights)(logits), jnp::stack(rows), 1e-6);
  auto gradient = jax::vmap(jax::grad<0>(jax::jit([&](const Array& x) { return jnp::sum(jnp::sin(weights(x))); })));
  Arrays slopes;
  for (int64_t i = 0; i < 3; ++i) {
    slopes.push_back(jax::grad<0>([&](const Array& x) { return jnp::sum(jnp::sin(weights(x))); })(
        lax::index_in_dim(logits, i, 0, false)));
  }
  expect_near(gradient(logits), jnp::stack(slopes), 1e-6);
  const std::string text = jax::make_jaxpr(gradient)(logits).to_string();
  EXPECT_NE(text.find("= moe_routing["), std::string::npos) << text;
  EXPECT_NE(text.find("= moe_routing_grad["), std::string::npos) << text;
}

TEST(MoeRouting, NamesWhatDoesNotFit) {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was raised";
  };
  const Array tokens = jnp::ones({4, 6});
  EXPECT_EQ(message([&] { moe_routing_kernel(tokens, 6, 7); }),
            "moe_routing_kernel: expected a number from 1 to num_experts, 6 (argument 'top_k'), got 7");
  EXPECT_EQ(
      message([&] { moe_routing_kernel(tokens, 5, 2); }),
      "moe_routing_kernel: expected logits [..., 5] (argument 'tokens') where there is no gate, got float32[4,6]; "
      "pass gate=, float32[6,5], to compute them");
  EXPECT_EQ(message([&] { moe_routing_kernel(tokens, 5, 2, true, {.gate = tokens}); }),
            "moe_routing_kernel: expected float32[6,5] (argument 'gate'), got float32[4,6]");
  EXPECT_EQ(message([&] { moe_routing_kernel(tokens, 0, 1); }),
            "moe_routing_kernel: expected 1 or more experts (argument 'num_experts'), got 0");
  EXPECT_EQ(message([&] { moe_routing_kernel(tokens, 6, 2, true, {.capacity_factor = 0.0}); }),
            "moe_routing_kernel: expected a number above 0, or none for no limit (argument 'capacity_factor'), got 0");
  EXPECT_EQ(message([&] {
              moe_routing_kernel(jnp::ones({2, 6}, {.dtype = DType::int32}), 6, 2);
            }),
            "moe_routing_kernel: expected a floating array [..., features] (argument 'tokens'), got int32[2,6]");
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using MoeRoutingKernel = cpu::KernelTest;

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

constexpr DType dtypes[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};

TEST_F(MoeRoutingKernel, IsTheComposition) {
  const ConfigScope scope = wide_scope();
  struct Case {
    Shape logits;
    int64_t top_k, capacity;
  };
  for (DType dtype : dtypes) {
    const DType wide = dtype == DType::float64 ? dtype : DType::float32;
    const double exact = dtype == DType::float64 ? 1e-13 : 1e-5;
    for (const Case& c :
         {Case{{1, 1}, 1, -1}, Case{{300, 7}, 2, 40}, Case{{2, 513, 16}, 4, -1}, Case{{5, 90}, 50, 3}}) {
      const ArrayType logits = cpu::type_of(dtype, c.logits);
      const int64_t tokens = c.logits[c.logits.size() - 2], experts = c.logits.back();
      auto type = [&](DType of, std::initializer_list<int64_t> own) {
        Shape shape(c.logits.begin(), c.logits.end() - 2);
        shape.insert(shape.end(), own);
        return cpu::type_of(of, shape);
      };
      for (bool renormalize : {true, false}) {
        for (bool balance : {true, false}) {
          const Attrs attrs = {
              {"top_k", c.top_k}, {"capacity", c.capacity}, {"renormalize", renormalize}, {"load_balancing", balance}};
          check_kernel({"moe_routing", {logits}, attrs, {}, {exact, exact}});
          const ArrayType choices = type(wide, {tokens, c.top_k});
          const cpu::Tolerance tolerance{dtype == wide ? exact : 2e-2, 4 * cpu::epsilon_of(dtype)};
          using enum cpu::Values;
          check_kernel({"moe_routing_grad",
                        {choices, type(wide, {}), logits, type(DType::int32, {tokens, c.top_k}), choices,
                         type(DType::int32, {experts})},
                        attrs,
                        {plain, plain, plain, indices, plain, indices},
                        tolerance});
        }
      }
    }
  }
}

TEST_F(MoeRoutingKernel, ChoosesNaNAndInfinityAsTheComposition) {
  const ArrayType logits = cpu::type_of(DType::float32, {200, 12});
  for (bool renormalize : {true, false}) {
    const Attrs attrs = {{"top_k", 3}, {"capacity", 30}, {"renormalize", renormalize}, {"load_balancing", true}};
    check_kernel({"moe_routing", {logits}, attrs, {cpu::Values::awkward}, {1e-5, 1e-5}});
  }
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(int64_t experts, int64_t top_k, DType dtype, bool cuda_kernels) {
  const Program program = jax::make_jaxpr(jax::grad<0>([&](const Array& x) {
    return jnp::sum(moe_routing_kernel(x, experts, top_k).weights);
  }))(jnp::ones({40, experts}, {.dtype = dtype}));
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(MoeRoutingCuda, GoesOutAsCallsOfItsKernels) {
  const std::string with = gradient_text(8, 2, DType::float32, true);
  EXPECT_NE(with.find("@capibara_moe_routing("), std::string::npos) << with;
  EXPECT_NE(with.find("@capibara_moe_routing_grad("), std::string::npos) << with;
  EXPECT_NE(with.find("capacity = -1 : i64, renormalize = 1 : i64, load_balancing = 1 : i64"), std::string::npos)
      << with;
  EXPECT_EQ(gradient_text(8, 2, DType::float32, false).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text(300, 2, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text(40, 20, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text(8, 2, DType::float16, true).find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
