// Which attention goes to cuDNN, and whether its calls give XLA's compiler the same information as jax's. Values are
// checked on a GPU: benchmarks/gpu.
#include "backends/pjrt/calls/cudnn.h"

#include <capibara/capibara.h>
#include <capibara/kernels.h>
#include <capibara/kernels/attention.h>
#include <capibara/linalg.h>
#include <capibara/nn/attention.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/pjrt/call_texts.h"
#include "backends/pjrt/prepare.h"
#include "data/recordings.h"
#include "program/trace/stage.h"

namespace capibara::pjrt {
namespace {

namespace lax = jax::lax;
using kernels::FlashAttentionOptions;
using Functional = std::function<Arrays(std::span<const Array>)>;

ArrayType type_of(DType dtype, Shape shape) {
  ArrayType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

std::string text_of(const Functional& function, const Types& types, int64_t capability = 90) {
  const FlatFunction flat = [&](std::span<const Array> inputs) { return function(inputs); };
  return prepare(stage(flat, types, "f").program, {}, {false, {}, [=] { return capability; }}).text;
}

void expect_equal_calls(const Calls& ours, const Calls& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(target_of(ours[i]), target_of(theirs[i]));
    EXPECT_EQ(ours[i].attributes.find("api_version"), theirs[i].attributes.find("api_version"));
    EXPECT_EQ(ours[i].attributes.size(), theirs[i].attributes.size());
    EXPECT_EQ(tensors_of(ours[i]), tensors_of(theirs[i]));
    for (std::size_t k = 0; k < ours[i].results.size(); ++k) {
      EXPECT_EQ(ours[i].results[k].type.element(), theirs[i].results[k].type.element());
    }
    auto mine = config_of(ours[i]), other = config_of(theirs[i]);
    const auto is_of_a_product = [](const auto& leaf) {
      return leaf.first.find("_dot_dimension_numbers.") != std::string::npos;
    };
    EXPECT_EQ(std::erase_if(mine, is_of_a_product), std::erase_if(other, is_of_a_product));
    EXPECT_EQ(mine, other);
  }
}

// ---- programs -----------------------------------------------------------------------------------------------------

Array exchanged(const Array& x) { return lax::transpose(x, {0, 2, 1, 3}); }

// Attention on arrays [batch, length, heads, dim], like jax's.
Functional attention(const FlashAttentionOptions& options, bool has_bias = false) {
  return [=](std::span<const Array> in) {
    FlashAttentionOptions own = options;
    if (has_bias) own.bias = in[3];
    return Arrays{exchanged(kernels::flash_attention(exchanged(in[0]), exchanged(in[1]), exchanged(in[2]), own))};
  };
}

Functional gradient(const FlashAttentionOptions& options) {
  return [=](std::span<const Array> in) {
    auto [y, pull] = jax::vjp(
        [&](const Array& q, const Array& k, const Array& v) {
          return exchanged(kernels::flash_attention(exchanged(q), exchanged(k), exchanged(v), options));
        },
        in[0], in[1], in[2]);
    auto [dq, dk, dv] = pull(in[3]);
    return Arrays{y, dq, dk, dv};
  };
}

Types qkv(DType dtype, int64_t queries, int64_t keys, int64_t heads, int64_t groups, int64_t size, int64_t batch = 2) {
  return {type_of(dtype, {batch, queries, heads, size}), type_of(dtype, {batch, keys, groups, size}),
          type_of(dtype, {batch, keys, groups, size})};
}

Types with(Types types, ArrayType more) {
  types.push_back(std::move(more));
  return types;
}

const FlashAttentionOptions causal{.causal = true};

TEST(Cudnn, IsToldWhatJaxTellsIt) {
  const std::filesystem::path folder = oracle::recording("cudnn");  // by make_cudnn_texts.py
  const auto theirs = [&](const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder / (name + ".mlir")).rdbuf();
    return calls_of(text.str());
  };
  const auto half = DType::bfloat16;
  const Types equal = qkv(half, 1024, 1024, 8, 8, 128), grouped = qkv(half, 1024, 1024, 8, 2, 128);
  expect_equal_calls(calls_of(text_of(attention(causal), equal)), theirs("fwd"));
  expect_equal_calls(calls_of(text_of(attention(causal), grouped)), theirs("gqa_causal"));
  const FlashAttentionOptions window{.causal = true, .window = std::pair<int64_t, int64_t>(127, 0)};
  expect_equal_calls(calls_of(text_of(attention(window), equal)), theirs("window"));
  const Types biased = with(equal, type_of(half, {1, 8, 1024, 1024}));
  expect_equal_calls(calls_of(text_of(attention({}, true), biased)), theirs("bias"));
  expect_equal_calls(calls_of(text_of(gradient(causal), with(equal, equal[0]))), theirs("grad"));
}

// ---- what every call specifies ------------------------------------------------------------------------------------

TEST(Cudnn, TakesArraysByHeadsAsTheyLie) {
  const Types types = {type_of(DType::float16, {1, 4, 6, 16}), type_of(DType::float16, {1, 2, 10, 16}),
                       type_of(DType::float16, {1, 2, 10, 16})};
  const auto plain = [](std::span<const Array> in) {
    return Arrays{kernels::flash_attention(in[0], in[1], in[2], {.scale = 0.5})};
  };
  const Calls calls = calls_of(text_of(plain, types));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(target_of(calls[0]), "__cudnn$fmhaSoftmax");
  EXPECT_EQ(layouts_of(calls[0], "operand_layouts"), std::vector<Ints>(3, {3, 2, 1, 0}));
  EXPECT_EQ(layouts_of(calls[0], "result_layouts"), (std::vector<Ints>{{3, 2, 1, 0}, {0}}));
  const std::vector<Tensor> expected = {{{1, 4, 6, 16}, {384, 96, 16, 1}},
                                        {{1, 2, 10, 16}, {320, 160, 16, 1}},
                                        {{1, 2, 10, 16}, {320, 160, 16, 1}},
                                        {{1, 4, 6, 16}, {384, 96, 16, 1}},
                                        {{0}, {1}}};
  EXPECT_EQ(tensors_of(calls[0]), expected);
  const auto config = config_of(calls[0]);
  const std::string path = "cudnn_fmha_backend_config.";
  EXPECT_EQ(config.at(path + "fmha_scale"), "0.5");
  EXPECT_EQ(config.at(path + "mask_type"), "NO_MASK");
  EXPECT_EQ(config.at(path + "intermediate_tensor_shape.element_type"), "F16");
  EXPECT_EQ(config.at(path + "intermediate_tensor_shape.dimensions.3"), "10");
}

TEST(Cudnn, GivesGradientsTheOutputItNeeds) {
  const Types types = qkv(DType::bfloat16, 6, 10, 4, 2, 16);
  const Calls calls = calls_of(text_of(gradient({}), with(types, types[0])));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].results.size(), 3u);  // with the log-sum-exp
  EXPECT_EQ(target_of(calls[1]), "__cudnn$fmhaSoftmaxBackward");
  ASSERT_EQ(calls[1].operands.size(), 6u);
  EXPECT_EQ(calls[1].operands[3].id, calls[0].results[1].id);
  EXPECT_EQ(calls[1].operands[5].id, calls[0].results[0].id);
  EXPECT_EQ(layouts_of(calls[1], "operand_layouts"),
            (std::vector<Ints>{{3, 1, 2, 0}, {3, 1, 2, 0}, {3, 1, 2, 0}, {2, 1, 0}, {3, 1, 2, 0}, {3, 1, 2, 0}}));
  EXPECT_EQ(layouts_of(calls[1], "result_layouts"), (std::vector<Ints>{{3, 1, 2, 0}, {3, 1, 2, 0}, {3, 1, 2, 0}, {0}}));
}

// Examples of vmap join the batch, as does the output that the gradient needs.
TEST(Cudnn, TakesBatchesOfGradients) {
  const Types types = qkv(DType::bfloat16, 6, 10, 4, 2, 16);
  const auto batched = [](std::span<const Array> in) {
    const auto one = [](const Array& q, const Array& k, const Array& v, const Array& d) {
      auto [y, pull] = jax::vjp(
          [](const Array& a, const Array& b, const Array& c) { return kernels::flash_attention(a, b, c, causal); }, q,
          k, v);
      auto [dq, dk, dv] = pull(d);
      return std::tuple(dq, dk, dv);
    };
    auto [dq, dk, dv] = jax::vmap(one)(in[0], in[1], in[2], in[3]);
    return Arrays{dq, dk, dv};
  };
  const ArrayType q = type_of(DType::bfloat16, {3, 2, 4, 6, 16}), k = type_of(DType::bfloat16, {3, 2, 2, 10, 16});
  const Calls calls = calls_of(text_of(batched, {q, k, k, q}));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(target_of(calls[1]), "__cudnn$fmhaSoftmaxBackward");
  for (const std::size_t i : {0, 4, 5}) EXPECT_EQ(calls[1].operands[i].type.dims(), (Ints{6, 4, 6, 16}));
  EXPECT_EQ(calls[1].operands[3].type.dims(), (Ints{6, 4, 6}));
}

TEST(Cudnn, IsNotAskedForTheLogSumExpThatNobodyReads) {
  const Calls calls = calls_of(text_of(attention(causal), qkv(DType::bfloat16, 8, 8, 2, 2, 8)));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].results.size(), 2u);
}

TEST(Cudnn, MasksTheFutureForAWindowThatEndsAtTheQuery) {
  const FlashAttentionOptions before{.window = std::pair<int64_t, int64_t>(3, 0)};
  const Calls calls = calls_of(text_of(attention(before), qkv(DType::bfloat16, 8, 8, 2, 2, 8)));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(config_of(calls[0]).at("cudnn_fmha_backend_config.mask_type"), "CAUSAL");
  EXPECT_EQ(config_of(calls[0]).at("cudnn_fmha_backend_config.sliding_window_length"), "4");
}

// ---- what does not go to cuDNN ------------------------------------------------------------------------------------

int cudnn_calls(const std::string& text) {
  int count = 0;
  for (std::size_t at = text.find("@__cudnn$"); at != std::string::npos; at = text.find("@__cudnn$", at + 1)) ++count;
  return count;
}

TEST(Cudnn, LeavesTheRestToOthers) {
  const auto half = DType::bfloat16;
  const auto count = [](const FlashAttentionOptions& options, const Types& types, int64_t capability = 90) {
    return cudnn_calls(text_of(attention(options), types, capability));
  };
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 16)), 1);
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 16), 0), 0);  // no cuDNN
  EXPECT_EQ(count({}, qkv(DType::float32, 8, 8, 2, 2, 16)), 0);
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 12)), 0);
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 256)), 1);
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 256), 80), 0);
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 264)), 0);
  EXPECT_EQ(count({}, qkv(half, 1, 8, 2, 2, 16)), 0);  // one query: a kernel for decoding
  EXPECT_EQ(count({}, qkv(half, 8, 8, 2, 2, 16, 0)), 0);
  EXPECT_EQ(count({.causal = true, .query_offset = 2}, qkv(half, 4, 8, 2, 2, 16)), 0);
  EXPECT_EQ(count({.query_offset = 2}, qkv(half, 4, 8, 2, 2, 16)), 1);  // has no effect
  EXPECT_EQ(count({.window = std::pair<int64_t, int64_t>(2, 1)}, qkv(half, 8, 8, 2, 2, 16)), 0);
  EXPECT_EQ(count({.window = std::pair<int64_t, int64_t>(2, 0), .sinks = 1}, qkv(half, 8, 8, 2, 2, 16)), 0);
  const Array mask = jax::numpy::ones({2, 2, 8, 8}).astype(DType::bool_),
              ids = jax::numpy::zeros({2, 8}).astype(DType::int32);
  EXPECT_EQ(count({.attention_mask = mask}, qkv(half, 8, 8, 2, 2, 16)), 0);
  EXPECT_EQ(count({.segment_ids = ids}, qkv(half, 8, 8, 2, 2, 16)), 0);
  EXPECT_EQ(count({.dropout_rate = 0.5, .dropout_key = jax::random::key(0)}, qkv(half, 8, 8, 2, 2, 16)), 0);
  const Types types = qkv(half, 8, 8, 2, 2, 16);
  EXPECT_EQ(cudnn_calls(text_of(attention({}, true), with(types, type_of(half, {1, 2, 8, 8})))), 1);
  EXPECT_EQ(cudnn_calls(text_of(attention({}, true), with(types, type_of(half, {1, 2, 1, 8})))), 0);
  EXPECT_EQ(cudnn_calls(text_of(attention({}, true), with(types, type_of(DType::float32, {1, 2, 8, 8})))), 0);
}

TEST(Cudnn, LeavesGradientsOfLargeHeadsAndOfABias) {
  const auto half = DType::bfloat16;
  const Types large = qkv(half, 8, 8, 2, 2, 256), types = qkv(half, 8, 8, 2, 2, 16);
  EXPECT_EQ(cudnn_calls(text_of(gradient({}), with(large, large[0]))), 1);  // only forward
  const auto of_bias = [](bool wanted) {
    return [=](std::span<const Array> in) {
      auto [y, pull] = jax::vjp(
          [](const Array& q, const Array& b) { return kernels::flash_attention(q, q, q, {.bias = b}); }, in[0], in[1]);
      auto [dq, db] = pull(in[0]);
      return wanted ? Arrays{dq, db} : Arrays{dq};
    };
  };
  const Types biased = {type_of(half, {2, 2, 8, 16}), type_of(half, {1, 2, 8, 8})};
  EXPECT_EQ(cudnn_calls(text_of(of_bias(true), biased)), 1);
  EXPECT_EQ(cudnn_calls(text_of(of_bias(false), biased)), 2);
}

// A loop's body is a separate program.
TEST(Cudnn, TakesAttentionInsideLoops) {
  const auto looped = [](std::span<const Array> in) {
    return Arrays{lax::fori_loop(
        0, 3, [&](const Array&, const Array& x) { return kernels::flash_attention(x, x, x, causal); }, in[0])};
  };
  EXPECT_EQ(cudnn_calls(text_of(looped, {type_of(DType::bfloat16, {1, 2, 8, 16})})), 1);
}

// Attention written out in a program is found after tracing.
TEST(Cudnn, TakesAttentionThatProgramsWriteOut) {
  const auto attend = [](const Array& q, const Array& k, const Array& v) {
    return jax::nn::dot_product_attention(q, k, v, {.is_causal = true});
  };
  const Functional forwards = [=](std::span<const Array> in) { return Arrays{attend(in[0], in[1], in[2])}; };
  const Functional backwards = [=](std::span<const Array> in) {
    auto [y, pull] = jax::vjp(attend, in[0], in[1], in[2]);
    auto [dq, dk, dv] = pull(in[3]);
    return Arrays{y, dq, dk, dv};
  };
  const auto types = [](DType dtype, int64_t size) {
    return Types{type_of(dtype, {2, 8, 4, size}), type_of(dtype, {2, 8, 2, size}), type_of(dtype, {2, 8, 2, size}),
                 type_of(dtype, {2, 8, 4, size})};
  };
  const Types half = types(DType::bfloat16, 16), one = {half[0], half[1], half[2]};
  const std::string text = text_of(forwards, one);
  EXPECT_EQ(cudnn_calls(text), 1) << text;
  EXPECT_NE(text.find("CAUSAL"), std::string::npos) << text;
  EXPECT_EQ(text.find("exponential"), std::string::npos) << text;
  EXPECT_EQ(cudnn_calls(text_of(backwards, half)), 2);
  EXPECT_EQ(cudnn_calls(text_of(forwards, one, 0)), 0);
  // If only one of forward and backward could go, both stay unchanged.
  const std::string wide = text_of(backwards, types(DType::bfloat16, 256));
  EXPECT_EQ(cudnn_calls(wide), 0);
  EXPECT_NE(wide.find("exponential"), std::string::npos);
  EXPECT_EQ(cudnn_calls(text_of(backwards, types(DType::float32, 16))), 0);
}

// ---- layouts of all calls -----------------------------------------------------------------------------------------

TEST(Calls, OfOursStateTheLayoutOfEveryOperandAndResult) {
  const auto all = [](std::span<const Array> in) {
    const Array wide = in[0].astype(DType::float32), matrix = lax::reshape(wide, {2, 2, 8, 16});
    const Array norm = kernels::layer_norm(wide, jax::numpy::ones({16}), jax::numpy::zeros({16}));
    const Array square = lax::dot_general(matrix, matrix, {{3}, {3}, {0, 1}, {0, 1}});
    return Arrays{kernels::flash_attention(in[0], in[0], in[0]), norm, jax::numpy::linalg::eigvalsh(square),
                  jax::numpy::linalg::qr(matrix).Q};
  };
  const FlatFunction flat = [&](std::span<const Array> inputs) { return all(inputs); };
  const Program program = stage(flat, Types{type_of(DType::bfloat16, {2, 2, 8, 16})}, "f").program;
  for (const bool cusolver : {true, false}) {
    const Calls calls = calls_of(prepare(program, {}, {true, [=] { return cusolver; }, [] { return 90; }}).text);
    EXPECT_GE(calls.size(), 4u);
    for (const stablehlo::Operation& call : calls) {
      EXPECT_EQ(layouts_of(call, "operand_layouts").size(), call.operands.size()) << target_of(call);
      EXPECT_EQ(layouts_of(call, "result_layouts").size(), call.results.size()) << target_of(call);
    }
  }
}

}  // namespace
}  // namespace capibara::pjrt
