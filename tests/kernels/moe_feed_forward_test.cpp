// The mixture-of-experts layer: against the sum over all experts, its derivatives, the kernels that move rows.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

struct Layer {
  Array tokens, gate, up, down, gated;
};
Layer layer() {
  return {drawn(0, {2, 9, 6}), drawn(1, {6, 5}), drawn(2, {5, 6, 7}), drawn(3, {5, 7, 6}), drawn(4, {5, 6, 7})};
}

// Every expert sees every token; the weights of those not chosen are zero.
Array dense(const Layer& all, const Array& tokens, int64_t top_k, bool gated) {
  const Array x = tokens.reshape({-1, 6});
  const MoeRouting r = moe_routing_kernel(x, 5, top_k, true, {.gate = all.gate});
  Array out = jnp::zeros({18, 6});
  for (int64_t e = 0; e < 5; ++e) {
    auto of = [&](const Array& weights) { return lax::index_in_dim(weights, e, 0, false); };
    Array hidden = jax::nn::silu(jnp::matmul(x, of(gated ? all.gated : all.up)));
    if (gated) hidden = hidden * jnp::matmul(x, of(all.up));
    const Array chosen = lax::convert_element_type(r.experts == Array(static_cast<int>(e)), DType::float32);
    const Array weight = jnp::sum(r.weights * chosen, {.axis = 1, .keepdims = true});
    out = out + weight * jnp::matmul(hidden, of(all.down));
  }
  return out.reshape(tokens.shape());
}

TEST(MoeFeedForward, IsTheSumOverExperts) {
  const Layer all = layer();
  for (bool gated : {true, false}) {
    auto fused = [&](const Array& tokens, const Array& gate, const Array& up, const Array& down) {
      MoeFeedForwardOptions options;
      if (gated) options.gate_weights = all.gated;
      return moe_feed_forward(tokens, gate, up, down, 2, options).output;
    };
    auto plain = [&](const Array& tokens, const Array& gate, const Array& up, const Array& down) {
      return dense({tokens, gate, up, down, all.gated}, tokens, 2, gated);
    };
    expect_near(fused(all.tokens, all.gate, all.up, all.down), plain(all.tokens, all.gate, all.up, all.down), 1e-4);
    auto gradients = [&](auto f) {
      auto loss = [f](const Array& a, const Array& b, const Array& c, const Array& d) {
        return jnp::sum(jnp::sin(f(a, b, c, d)));
      };
      return jax::grad<0, 1, 2, 3>(loss)(all.tokens, all.gate, all.up, all.down);
    };
    const auto got = gradients(fused), want = gradients(plain), compiled = gradients(jax::jit(fused));
    expect_near(std::get<0>(got), std::get<0>(want), 2e-3);
    expect_near(std::get<1>(got), std::get<1>(want), 2e-3);
    expect_near(std::get<2>(got), std::get<2>(want), 2e-3);
    expect_near(std::get<3>(got), std::get<3>(want), 2e-3);
    expect_near(std::get<0>(compiled), std::get<0>(want), 2e-3);
    expect_near(std::get<2>(compiled), std::get<2>(want), 2e-3);
  }
}

// Neither the layer nor its derivative has a scatter or an array [tokens, experts, capacity].
TEST(MoeFeedForward, IsMadeOfItsKernels) {
  const Layer all = layer();
  auto loss = [&](const Array& tokens, const Array& up) {
    return jnp::sum(moe_feed_forward(tokens, all.gate, up, all.down, 2).output);
  };
  const std::string text = jax::make_jaxpr(jax::grad<0, 1>(loss))(all.tokens, all.up).to_string();
  for (const char* name : {"moe_routing[", "moe_routing_grad[", "moe_dispatch ", "moe_combine ", "moe_combine_grad ",
                           "grouped_matmul[", "grouped_outer "}) {
    EXPECT_NE(text.find(concat("= ", name)), std::string::npos) << name << "\n" << text;
  }
  EXPECT_EQ(text.find("scatter"), std::string::npos) << text;
}

TEST(MoeFeedForward, GivesZerosToTokensWithoutRoom) {
  const Layer all = layer();
  const Array same = jnp::ones({4, 6});
  const MoeFeedForwardResult result = moe_feed_forward(same, all.gate, all.up, all.down, 1, {.capacity_factor = 1.25});
  const auto values = result.output.to_vector<float>();
  EXPECT_NE(values[0], 0.0f);
  for (std::size_t i = 6; i < values.size(); ++i) EXPECT_EQ(values[i], 0.0f);
}

TEST(MoeFeedForward, NamesWhatDoesNotFit) {
  const Layer all = layer();
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was raised";
  };
  EXPECT_EQ(message([&] { moe_feed_forward(all.tokens, all.gate, all.down, all.down, 2); }),
            "moe_feed_forward: expected float32[5,6,6] (argument 'up'), got float32[5,7,6]");
  EXPECT_EQ(message([&] { moe_feed_forward(all.tokens, all.gate, all.up, all.down, 2, {.activation = "swish"}); }),
            "moe_feed_forward: expected 'silu', 'gelu' or 'relu' (argument 'activation'), got 'swish'");
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using MoeFeedForwardKernel = cpu::KernelTest;

TEST_F(MoeFeedForwardKernel, MovesRowsAsTheCompositions) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  using enum cpu::Values;
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    const DType wide = dtype == DType::float64 ? dtype : DType::float32;
    for (const Shape& batch : {Shape{}, Shape{3}}) {
      auto type = [&](DType of, std::initializer_list<int64_t> own) {
        Shape shape = batch;
        shape.insert(shape.end(), own);
        return cpu::type_of(of, shape);
      };
      for (int64_t features : {1, 19, 64}) {
        const ArrayType x = type(dtype, {6, features}), rows = type(dtype, {18, features}),
                        order = type(DType::int32, {18});
        const ArrayType weights = type(wide, {6, 3});
        const double unit = cpu::epsilon_of(dtype);
        check_kernel({"moe_dispatch", {x, order, order}, {}, {plain, indices, indices}});
        check_kernel({"moe_combine",
                      {rows, weights, order, order},
                      {},
                      {plain, plain, indices, indices},
                      {1e-5 + unit, 2 * unit}});
        check_kernel({"moe_combine_grad",
                      {x, rows, weights, order, order},
                      {},
                      {plain, plain, plain, indices, indices},
                      {2e-5 + unit, 2 * unit}});
      }
    }
  }
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(int64_t features, DType dtype, bool cuda_kernels = true) {
  auto ones = [&](const Shape& shape) { return jnp::ones(shape, {.dtype = dtype}); };
  const Program program = jax::make_jaxpr([&](const Array& tokens, const Array& gate) {
    return jax::grad<0, 1>([&](const Array& x, const Array& g) {
      return jnp::sum(moe_feed_forward(x, g, ones({4, features, 16}), ones({4, 16, features}), 2).output);
    })(tokens, gate);
  })(ones({20, features}), ones({features, 4}));
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(MoeFeedForwardCuda, MovesRowsByCallsOfItsKernels) {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::string text = gradient_text(24, dtype);
    for (const char* call : {"@capibara_moe_dispatch(", "@capibara_moe_combine(", "@capibara_moe_combine_grad("})
      EXPECT_NE(text.find(call), std::string::npos) << text;
    EXPECT_EQ(gradient_text(24, dtype, false).find("@capibara_"), std::string::npos);
  }
}

// Rows that are not multiples of 16 bytes: the composition is lowered.
TEST(MoeFeedForwardCuda, LeavesOddRows) {
  for (DType dtype : {DType::bfloat16, DType::float16})
    EXPECT_EQ(gradient_text(20, dtype).find("@capibara_moe_combine"), std::string::npos);
  EXPECT_NE(gradient_text(20, DType::float32).find("@capibara_moe_combine"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
