// Vector quantization: codes by definition, batches, the kernel of the CPU backend, and the text of its CUDA calls.
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

Array plain(const Array& x, const Array& codebook) {
  const Array difference = jnp::expand_dims(x, -2) - codebook;
  return jnp::argmin(jnp::sum(difference * difference, {.axis = -1}), {.axis = -1});
}

void expect_equal(const Array& got, const Array& want) {
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_EQ(got.to_vector<int64_t>(), want.to_vector<int64_t>());
}

TEST(VqEncode, FindsTheNearestCode) {
  const Array x = drawn(0, {3, 50, 6}), codebook = drawn(1, {20, 6});
  expect_equal(vq_encode(x, codebook), plain(x, codebook));
  expect_equal(jax::jit([](const Array& a, const Array& b) { return vq_encode(a, b); })(x, codebook),
               plain(x, codebook));
}

TEST(VqEncode, MapsOverVectorsAndCodebooks) {
  const Array x = drawn(0, {3, 50, 6}), codebook = drawn(1, {20, 6}), codebooks = drawn(2, {3, 20, 6});
  const auto shared = jax::vmap([&](const Array& a) { return vq_encode(a, codebook); });
  expect_equal(shared(x), plain(x, codebook));
  const Array own = jax::vmap([](const Array& a, const Array& b) { return vq_encode(a, b); })(x, codebooks);
  for (int64_t i = 0; i < 3; ++i)
    expect_equal(lax::index_in_dim(own, i, 0, false),
                 plain(lax::index_in_dim(x, i, 0, false), lax::index_in_dim(codebooks, i, 0, false)));
  const std::string text = jax::make_jaxpr(shared)(x).to_string();
  EXPECT_NE(text.find("= vq_encode["), std::string::npos) << text;
}

TEST(VqQuantize, PassesCotangentsStraightThrough) {
  const Array x = drawn(0, {40, 6}), codebook = drawn(1, {20, 6}), weights = drawn(2, {40, 6});
  const auto [dx, dc] = jax::grad<0, 1>(
      [&](const Array& a, const Array& c) { return jnp::sum(vq_quantize(a, c).quantized * weights); })(x, codebook);
  EXPECT_EQ(dx.to_vector<float>(), weights.to_vector<float>());
  EXPECT_EQ(dc.to_vector<float>(), std::vector<float>(120, 0.0f));
}

TEST(VqEncode, RefusesOtherSizesByName) {
  try {
    vq_encode(jnp::ones({2, 3}), jnp::ones({4, 5}));
    FAIL() << "nothing was raised";
  } catch (const TypeError& error) {
    EXPECT_NE(std::string(error.what()).find("argument 'inputs'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(vq_encode(jnp::ones({2, 3}), jnp::ones({4, 3}), {.distance_metric = "near"}), ValueError);
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using VqEncodeKernel = cpu::KernelTest;

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

// One vector, one code, several blocks and chunks, inner dimensions of more than one block.
struct Case {
  Shape vectors, codes;
};
const Case cases[] = {{{1, 1}, {1, 1}},     {{5, 3}, {7, 3}},       {{2, 9, 4}, {2, 6, 4}},   {{33, 17}, {50, 17}},
                      {{100, 8}, {300, 8}}, {{70, 600}, {40, 600}}, {{65, 1100}, {33, 1100}}, {{500, 2}, {31, 2}}};

TEST_F(VqEncodeKernel, IsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : {DType::float32, DType::float64}) {
    for (const char* metric : {"euclidean", "cosine", "dot_product"}) {
      for (const Case& one : cases)
        check_kernel({"vq_encode",
                      {cpu::type_of(dtype, one.vectors), cpu::type_of(dtype, one.codes)},
                      {{"distance_metric", metric}}});
    }
  }
}

// NaN, infinities, zeros of both signs and many equal numbers.
TEST_F(VqEncodeKernel, IsTheCompositionOfAwkwardNumbers) {
  for (const char* metric : {"euclidean", "dot_product"}) {
    for (const Case& one : {cases[1], cases[3]}) {
      const Types types = {cpu::type_of(DType::float32, one.vectors), cpu::type_of(DType::float32, one.codes)};
      check_kernel({"vq_encode", types, {{"distance_metric", metric}}, {cpu::Values::awkward}});
      check_kernel({"vq_encode", types, {{"distance_metric", metric}}, {cpu::Values::plain, cpu::Values::awkward}});
    }
  }
}

// Compiled programs call the kernel.
TEST_F(VqEncodeKernel, ServesInPrograms) {
  const Program program = jax::make_jaxpr([](const Array& a, const Array& b) { return vq_encode(a, b); })(
      jnp::ones({64, 8}), jnp::ones({9, 8}));
  const std::string text = *backend("cpu").compiled_text(program, {});
  EXPECT_NE(text.find("host "), std::string::npos) << text;
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string encode_text(const Shape& vectors, const Shape& codes, DType dtype, bool cuda_kernels) {
  const Program program = jax::make_jaxpr([](const Array& a, const Array& b) { return vq_encode(a, b); })(
      jnp::ones(vectors, {.dtype = dtype}), jnp::ones(codes, {.dtype = dtype}));
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(VqEncodeCuda, GoesOutAsACallOfItsKernel) {
  for (const int64_t dim : {16, 64, 256, 512}) {
    const std::string with = encode_text({4096, dim}, {1024, dim}, DType::bfloat16, true);
    EXPECT_NE(with.find("@capibara_vq_encode("), std::string::npos) << with;
  }
  EXPECT_EQ(encode_text({4096, 64}, {1024, 64}, DType::bfloat16, false).find("@capibara_"), std::string::npos);
}

TEST(VqEncodeCuda, LeavesWhatDoesNotFit) {
  EXPECT_EQ(encode_text({4096, 64}, {1024, 64}, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(encode_text({4096, 64}, {1024, 64}, DType::float16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(encode_text({4096, 20}, {1024, 20}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(encode_text({4096, 1024}, {64, 1024}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(encode_text({0, 64}, {1024, 64}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
