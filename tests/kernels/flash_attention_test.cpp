// Blockwise attention: its values and derivatives, batches, the kernels of the CPU backend against the composition, and
// the text of its CUDA calls.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

Array plain(const Array& query, const Array& key, const Array& value) {
  const double scale = 1 / std::sqrt(static_cast<double>(query.shape(3)));
  return jnp::matmul(jax::nn::softmax(jnp::matmul(query, jnp::swapaxes(key, 2, 3)) * scale), value);
}
Array fused(const Array& query, const Array& key, const Array& value) { return flash_attention(query, key, value); }

TEST(FlashAttention, HasTheValuesOfItsDefinition) {
  const Array q = drawn(0, {2, 3, 20, 8}), k = drawn(1, {2, 3, 31, 8}), v = drawn(2, {2, 3, 31, 5});
  expect_near(flash_attention(q, k, v), plain(q, k, v), 1e-5);
  expect_near(jax::jit(fused)(q, k, v), plain(q, k, v), 1e-5);
}

TEST(FlashAttention, HasTheGradientOfItsDefinition) {
  const Array q = drawn(0, {1, 2, 20, 8}), k = drawn(1, {1, 2, 31, 8}), v = drawn(2, {1, 2, 31, 5}),
              w = drawn(3, {1, 2, 20, 5});
  auto loss = [&](auto function) {
    return [&w, function](const Array& a, const Array& b, const Array& c) { return jnp::sum(function(a, b, c) * w); };
  };
  const auto got = jax::grad<0, 1, 2>(loss(fused))(q, k, v), want = jax::grad<0, 1, 2>(loss(plain))(q, k, v);
  expect_near(std::get<0>(got), std::get<0>(want), 1e-5);
  expect_near(std::get<1>(got), std::get<1>(want), 1e-5);
  expect_near(std::get<2>(got), std::get<2>(want), 1e-5);
}

struct Sizes {
  int64_t batch, heads, groups, queries, keys, size, value_size;
};

// The gradient of a bias shared by batch entries is their sum; GPUs store the gradients of 16-bit floats first.
TEST(FlashAttention, HasTheGradientOfABias) {
  const Sizes sizes[] = {{2, 2, 2, 130, 136, 64, 64}, {3, 2, 1, 72, 200, 24, 40}, {1, 2, 2, 65, 64, 128, 128}};
  for (const Sizes& s : sizes) {
    for (int64_t entries : {int64_t{1}, s.batch}) {
      auto narrow = [](int64_t seed, Shape shape) { return drawn(seed, std::move(shape)).astype(DType::bfloat16); };
      const Array q = narrow(0, {s.batch, s.heads, s.queries, s.size}),
                  k = narrow(1, {s.batch, s.groups, s.keys, s.size}),
                  v = narrow(2, {s.batch, s.groups, s.keys, s.value_size}),
                  bias = narrow(3, {entries, s.heads, s.queries, s.keys}),
                  w = drawn(4, {s.batch, s.heads, s.queries, s.value_size});
      auto fused_loss = [&](const Array& a, const Array& b, const Array& c, const Array& d) {
        return jnp::sum(flash_attention(a, b, c, {.bias = d}).astype(DType::float32) * w);
      };
      auto plain_loss = [&](const Array& a, const Array& b, const Array& c, const Array& d) {
        auto wide = [](const Array& x) { return x.astype(DType::float32); };
        auto repeated = [&](const Array& x) { return jnp::repeat(wide(x), s.heads / s.groups, {.axis = 1}); };
        const double scale = 1 / std::sqrt(static_cast<double>(s.size));
        const Array logits = jnp::matmul(wide(a), jnp::swapaxes(repeated(b), 2, 3)) * scale + wide(d);
        return jnp::sum(jnp::matmul(jax::nn::softmax(logits), repeated(c)) * w);
      };
      const auto got = jax::jit(jax::grad<0, 1, 2, 3>(fused_loss))(q, k, v, bias);
      const auto want = jax::jit(jax::grad<0, 1, 2, 3>(plain_loss))(q, k, v, bias);
      auto compare = [](const Array& a, const Array& b) {
        const auto values = b.to_vector<double>();
        double most = 0;
        for (double value : values) most = std::max(most, std::abs(value));
        expect_near(a, b, 0.015 * most);
      };
      compare(std::get<0>(got), std::get<0>(want));
      compare(std::get<1>(got), std::get<1>(want));
      compare(std::get<2>(got), std::get<2>(want));
      compare(std::get<3>(got), std::get<3>(want));
    }
  }
}

// Operations for which a backend may have a kernel stay one equation under transforms.
TEST(FlashAttention, StaysOneEquation) {
  const Array q = jnp::ones({1, 2, 4, 8}), many = jnp::ones({5, 1, 2, 4, 8});
  auto call = [&](const Array& a) { return flash_attention(a, q, q, {.causal = true}); };
  const std::string mapped = jax::make_jaxpr(jax::vmap(call))(many).to_string();
  EXPECT_NE(mapped.find("= flash_attention["), std::string::npos) << mapped;
  EXPECT_EQ(mapped.find("scan["), std::string::npos) << mapped;
  const std::string reverse =
      jax::make_jaxpr(jax::grad<0>(jax::jit([&](const Array& a) { return jnp::sum(call(a)); })))(q).to_string();
  EXPECT_NE(reverse.find("= flash_attention["), std::string::npos) << reverse;
  EXPECT_NE(reverse.find("= flash_attention_grad["), std::string::npos) << reverse;
  EXPECT_EQ(reverse.find("composed_tangent"), std::string::npos) << reverse;
}

// The log-sum-exp is also a result: its cotangent is an input of the gradient kernel.
TEST(FlashAttention, PullsBackThroughItsLogSumExp) {
  const Array q = drawn(0, {1, 2, 6, 4}), k = drawn(1, {1, 2, 7, 4}), v = drawn(2, {1, 2, 7, 4});
  const Primitive primitive = capibara::primitive("flash_attention");
  const Attrs attrs = {{"causal", true},  {"mask", false}, {"bias", false},       {"segments", false},
                       {"blocks", false}, {"scale", 0.5},  {"dropout_rate", 0.0}, {"window", Ints{-1, -1}},
                       {"sinks", 0},      {"prefix", 0},   {"query_offset", 1},   {"block_size", 0}};
  auto sum = [](const Arrays& out) { return jnp::sum(out[0] * out[0]) + jnp::sum(out[1] * out[1]); };
  auto bound = [&](const Array& a) { return sum(capibara::bind(primitive, Arrays{a, k, v}, attrs)); };
  auto composed = [&](const Array& a) { return sum(primitive->lower(Arrays{a, k, v}, attrs)); };
  expect_near(jax::grad<0>(bound)(q), jax::grad<0>(composed)(q), 1e-4);
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using AttentionKernel = cpu::KernelTest;

struct Options {
  bool causal = false, mask = false, bias = false, segments = false, sparse = false;
  double dropout = 0, scale = 0.4;
  Ints window = {-1, -1};
  int64_t sinks = 0, prefix = 0, offset = 0;
};

cpu::KernelCase make_case(DType dtype, const Sizes& s, const Options& o, bool backward) {
  const DType wide = dtype == DType::float64 ? dtype : DType::float32;
  const ArrayType q = cpu::type_of(dtype, {s.batch, s.heads, s.queries, s.size});
  const ArrayType k = cpu::type_of(dtype, {s.batch, s.groups, s.keys, s.size});
  const ArrayType v = cpu::type_of(dtype, {s.batch, s.groups, s.keys, s.value_size});
  Types inputs = {q, k, v};
  if (backward) {
    const ArrayType rows = cpu::type_of(wide, {s.batch, s.heads, s.queries});
    inputs = {cpu::type_of(dtype, {s.batch, s.heads, s.queries, s.value_size}), q, k, v, rows, rows};
  }
  const int64_t block = o.sparse ? 16 : 0;
  if (o.mask) inputs.push_back(cpu::type_of(DType::bool_, {s.batch, 1, s.queries, s.keys}));
  if (o.bias) inputs.push_back(cpu::type_of(dtype, {1, s.heads, s.queries, s.keys}));
  if (o.segments) inputs.push_back(cpu::type_of(DType::int32, {s.batch, s.queries}));
  if (o.segments) inputs.push_back(cpu::type_of(DType::int32, {1, s.keys}));
  if (o.dropout > 0) inputs.push_back(cpu::type_of(DType::uint32, {s.batch, 2}));
  if (o.sparse) inputs.push_back(cpu::type_of(DType::bool_, {1, s.heads, (s.queries + 15) / 16, (s.keys + 15) / 16}));
  const Attrs attrs = {{"causal", o.causal},        {"mask", o.mask},           {"bias", o.bias},
                       {"segments", o.segments},    {"blocks", o.sparse},       {"scale", o.scale},
                       {"dropout_rate", o.dropout}, {"window", o.window},       {"sinks", o.sinks},
                       {"prefix", o.prefix},        {"query_offset", o.offset}, {"block_size", block}};
  const double unit = cpu::epsilon_of(dtype);
  const std::string name = o.sparse ? "sparse_attention" : "flash_attention";
  // The log-sum-exp given to the gradient is arbitrary here: probabilities reach exp(10), and so do their errors.
  const cpu::Tolerance tolerance =
      backward ? cpu::Tolerance{dtype == DType::float64 ? 1e-8 : 2e-2 + 2e4 * unit, 2e-4 + 4 * unit}
               : cpu::Tolerance{dtype == DType::float64 ? 1e-12 : 2e-5 + 8 * unit, 4 * unit};
  return {backward ? name + "_grad" : name, inputs, attrs, {}, tolerance};
}

const Options all_options[] = {
    {},
    {.causal = true},
    {.causal = true, .bias = true, .dropout = 0.25},
    {.mask = true, .scale = -0.3},
    {.segments = true, .window = {9, 5}, .sinks = 3, .offset = 7},
    {.causal = true, .mask = true, .bias = true, .prefix = 11},
    {.sparse = true},
    {.causal = true, .segments = true, .sparse = true},
};
// One element; lengths that do not fill a tile; several blocks; few queries and many keys; one head with many keys.
const Sizes all_sizes[] = {{1, 1, 1, 1, 1, 1, 1},    {2, 4, 2, 5, 7, 3, 2},     {1, 2, 1, 97, 130, 20, 33},
                           {2, 2, 2, 1, 70, 16, 16}, {1, 1, 1, 200, 260, 8, 8}, {1, 2, 2, 13, 9, 256, 256}};

TEST_F(AttentionKernel, ForwardIsTheComposition) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    for (const Sizes& sizes : all_sizes) {
      for (const Options& options : all_options) check_kernel(make_case(dtype, sizes, options, false));
    }
  }
}

TEST_F(AttentionKernel, BackwardIsTheComposition) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  for (DType dtype : {DType::float32, DType::float64}) {
    for (const Sizes& sizes : all_sizes) {
      if (sizes.size > 64) continue;  // logits are too large for any log-sum-exp
      for (const Options& options : all_options) check_kernel(make_case(dtype, sizes, options, true));
    }
  }
}

// softmax(scale q k^T + bias) v in float64, with key heads repeated for the query heads that share them.
Array defined(const Array& query, const Array& key, const Array& value, const Array& bias, bool causal) {
  auto wide = [](const Array& x) { return x.astype(DType::float64); };
  auto repeated = [&](const Array& x) { return jnp::repeat(wide(x), query.shape(1) / x.shape(1), {.axis = 1}); };
  const double scale = 1 / std::sqrt(static_cast<double>(query.shape(3)));
  const Array logits = jnp::matmul(wide(query), jnp::swapaxes(repeated(key), 2, 3)) * scale + wide(bias);
  const Array later =
      lax::broadcasted_iota(DType::int32, logits.shape(), 3) > lax::broadcasted_iota(DType::int32, logits.shape(), 2);
  const Array seen = causal ? jnp::where(later, -std::numeric_limits<double>::infinity(), logits) : logits;
  return jnp::matmul(jax::nn::softmax(seen), repeated(value));
}

// Each gradient is within a few units of the largest one in the rounded type: probabilities and gradients of logits
// are rounded once.
TEST_F(AttentionKernel, NarrowGradientsAreThoseOfFloat64) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  const Sizes sizes[] = {{2, 4, 2, 70, 90, 40, 24}, {1, 2, 2, 200, 200, 64, 64}, {1, 3, 1, 5, 400, 16, 16}};
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const Sizes& s : sizes) {
      for (const bool causal : {false, true}) {
        auto narrow = [&](int64_t seed, Shape shape) { return drawn(seed, std::move(shape)).astype(dtype); };
        const Array q = narrow(0, {s.batch, s.heads, s.queries, s.size}),
                    k = narrow(1, {s.batch, s.groups, s.keys, s.size}),
                    v = narrow(2, {s.batch, s.groups, s.keys, s.value_size}), bias = narrow(3, {1, s.heads, 1, s.keys}),
                    w = narrow(4, {s.batch, s.heads, s.queries, s.value_size});
        auto fused_loss = [&](const Array& a, const Array& b, const Array& c, const Array& d) {
          const Array y = flash_attention(a, b, c, {.causal = causal, .bias = d});
          return jnp::sum(y.astype(DType::float64) * w.astype(DType::float64));
        };
        auto exact_loss = [&](const Array& a, const Array& b, const Array& c, const Array& d) {
          return jnp::sum(defined(a, b, c, d, causal) * w.astype(DType::float64));
        };
        const auto got = jax::jit(jax::grad<0, 1, 2, 3>(fused_loss))(q, k, v, bias);
        const auto want = jax::jit(jax::grad<0, 1, 2, 3>(exact_loss))(q, k, v, bias);
        auto compare = [&](const char* of, const Array& a, const Array& b) {
          EXPECT_EQ(a.dtype(), dtype);
          const auto own = a.astype(DType::float64).to_vector<double>(),
                     exact = b.astype(DType::float64).to_vector<double>();
          double most = 0, error = 0;
          for (std::size_t i = 0; i < exact.size(); ++i) {
            most = std::max(most, std::abs(exact[i]));
            error = std::max(error, std::abs(own[i] - exact[i]));
          }
          EXPECT_LE(error, 4 * cpu::epsilon_of(dtype) * most) << of << " " << to_string(dtype) << " causal " << causal;
        };
        compare("query", std::get<0>(got), std::get<0>(want));
        compare("key", std::get<1>(got), std::get<1>(want));
        compare("value", std::get<2>(got), std::get<2>(want));
        compare("bias", std::get<3>(got), std::get<3>(want));
      }
    }
  }
}

TEST_F(AttentionKernel, ServesCompiledPrograms) {
  const Array q = jnp::ones({1, 2, 64, 16});
  const Program program = jax::make_jaxpr(fused)(q, q, q);
  const std::string text = *backend("cpu").compiled_text(program, {});
  EXPECT_NE(text.find("host "), std::string::npos) << text;
}

// Larger heads, and empty arrays, are left to the composition.
TEST_F(AttentionKernel, LeavesWhatDoesNotFit) {
  const cpu::KernelMaker make = cpu::find_kernel_maker(primitive("flash_attention"));
  for (const Sizes& sizes : {Sizes{1, 1, 1, 4, 4, 257, 8}, Sizes{1, 1, 1, 4, 4, 8, 300}, Sizes{1, 1, 1, 0, 4, 8, 8},
                             Sizes{1, 1, 1, 4, 0, 8, 8}}) {
    const cpu::KernelCase test = make_case(DType::float32, sizes, {}, false);
    const Types outputs = primitive("flash_attention")->type(test.inputs, test.attrs).types;
    EXPECT_FALSE(make({test.inputs, outputs, test.attrs, {}})) << sizes.size;
  }
  const Array q = drawn(0, {1, 1, 6, 300});
  expect_near(flash_attention(q, q, q), plain(q, q, q), 1e-4);
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string call_text(const FlashAttentionOptions& options, DType dtype, const Shape& shape, bool cuda_kernels = true) {
  const Array q = jnp::ones(shape, {.dtype = dtype});
  const Program program = jax::make_jaxpr([&](const Array& a) {
    return jax::grad<0>([&](const Array& x) { return jnp::sum(jnp::sin(flash_attention(x, a, a, options))); })(a);
  })(q);
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(FlashAttentionCuda, GoesOutAsCallsOfItsKernels) {
  const FlashAttentionOptions dropped{.dropout_rate = 0.25, .causal = true, .dropout_key = jax::random::key(0)};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::string text = call_text(dropped, dtype, {1, 2, 100, 20});
    EXPECT_NE(text.find("@capibara_attention("), std::string::npos) << text;
    EXPECT_NE(text.find("@capibara_attention_grad("), std::string::npos) << text;
    EXPECT_NE(text.find("threshold = 16384 : i64"), std::string::npos) << text;  // out of 65536
    EXPECT_EQ(call_text(dropped, dtype, {1, 2, 100, 20}, false).find("@capibara_"), std::string::npos);
  }
}

TEST(FlashAttentionCuda, LeavesWhatDoesNotFit) {
  EXPECT_EQ(call_text({}, DType::float32, {1, 2, 10, 257}).find("@capibara_"), std::string::npos);
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  EXPECT_EQ(call_text({}, DType::float64, {1, 2, 10, 16}).find("@capibara_"), std::string::npos);
}

// One query and many keys: the keys are split over thread blocks.
TEST(FlashAttentionCuda, SplitsTheKeysOfFewQueries) {
  const Array q = jnp::ones({1, 4, 1, 64}), k = jnp::ones({1, 2, 4096, 64});
  const Program program =
      jax::make_jaxpr([&](const Array& a, const Array& b) { return flash_attention(a, b, b); })(q, k);
  const std::string text = pjrt::prepare(program, {}, {.cuda_kernels = true, .cusolver = {}}).text;
  EXPECT_NE(text.find("packed = 1 : i64"), std::string::npos) << text;
  EXPECT_NE(text.find("splits = 16 : i64"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor<16x4x64xf32>"), std::string::npos) << text;
}

// A bias shared by batch entries: gradients of logits are stored for as many heads as fit in the memory budget.
TEST(FlashAttentionCuda, StoresTheGradientsOfASharedBias) {
  auto text = [](int64_t entries, int64_t heads, int64_t length) {
    const Array q = jax::ShapeDtypeStruct({2, heads, length, 64}, DType::bfloat16),
                b = jax::ShapeDtypeStruct({entries, heads, length, length}, DType::bfloat16);
    const Program program = jax::make_jaxpr([](const Array& a, const Array& bias) {
      auto loss = [&](const Array& x, const Array& y) { return jnp::sum(flash_attention(x, a, a, {.bias = y})); };
      return std::get<1>(jax::grad<0, 1>(loss)(a, bias));
    })(q, b);
    return pjrt::prepare(program, {}, {.cuda_kernels = true, .cusolver = {}}).text;
  };
  EXPECT_NE(text(1, 3, 256).find("gradient_groups = 3 : i64"), std::string::npos);
  EXPECT_NE(text(1, 16, 8192).find("tensor<1x4x8192x8192xbf16>"), std::string::npos);  // 512 MiB
  EXPECT_NE(text(1, 3, 16384).find("tensor<1x1x16384x16384xbf16>"), std::string::npos);
  EXPECT_NE(text(1, 2, 32768).find("gradient_groups = 0 : i64"), std::string::npos);
  EXPECT_NE(text(2, 3, 256).find("gradient_groups = 0 : i64"), std::string::npos);
}

TEST(SparseAttentionCuda, GoesOutAsCallsOfItsKernels) {
  const Array q = jnp::ones({1, 2, 256, 64}, {.dtype = DType::bfloat16});
  const Program program = jax::make_jaxpr([&](const Array& a) {
    return jax::grad<0>([&](const Array& x) { return jnp::sum(sparse_attention(x, a, a)); })(a);
  })(q);
  const std::string text = pjrt::prepare(program, {}, {.cuda_kernels = true, .cusolver = {}}).text;
  EXPECT_NE(text.find("@capibara_attention("), std::string::npos) << text;
  EXPECT_NE(text.find("@capibara_attention_grad("), std::string::npos) << text;
  EXPECT_NE(text.find("block_size = 64 : i64"), std::string::npos) << text;
}

}  // namespace
}  // namespace capibara::kernels
