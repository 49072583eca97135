// Layer norm: its values, derivatives and batches, the kernel of the CPU backend, and the text of its CUDA
// calls.
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

Array plain(const Array& x, const Array& scale, const Array& bias) {
  const Array centered = x - jnp::mean(x, {.axis = -1, .keepdims = true});
  const Array normal = centered * lax::rsqrt(jnp::mean(centered * centered, {.axis = -1, .keepdims = true}) + 1e-5);
  return normal * scale + bias;
}

auto weighted(Array (*function)(const Array&, const Array&, const Array&), const Array& weights) {
  return [function, weights](const Array& x, const Array& scale, const Array& bias) {
    return jnp::sum(function(x, scale, bias) * weights);
  };
}
Array fused(const Array& x, const Array& scale, const Array& bias) { return layer_norm(x, scale, bias); }

TEST(LayerNorm, HasTheValuesOfItsDefinition) {
  const Array x = drawn(0, {4, 8}), scale = drawn(1, {8}), bias = drawn(2, {8});
  expect_near(layer_norm(x, scale, bias), plain(x, scale, bias), 1e-5);
  expect_near(jax::jit(fused)(x, scale, bias), plain(x, scale, bias), 1e-5);
}

TEST(LayerNorm, HasTheGradientOfItsDefinition) {
  const Array x = drawn(0, {2, 3, 8}), scale = drawn(1, {8}), bias = drawn(2, {8}), weights = drawn(3, {2, 3, 8});
  const auto got = jax::grad<0, 1, 2>(weighted(fused, weights))(x, scale, bias);
  const auto want = jax::grad<0, 1, 2>(weighted(plain, weights))(x, scale, bias);
  expect_near(std::get<0>(got), std::get<0>(want), 1e-4);
  expect_near(std::get<1>(got), std::get<1>(want), 1e-4);
  expect_near(std::get<2>(got), std::get<2>(want), 1e-4);
}

TEST(LayerNorm, HasForwardAndSecondDerivatives) {
  const Array x = drawn(0, {3, 8}), scale = drawn(1, {8}), bias = drawn(2, {8}), weights = drawn(3, {3, 8}),
              t = drawn(4, {3, 8});
  auto along = [&](auto function) {
    return std::get<1>(
        jax::jvp([&](const Array& a) { return function(a, scale, bias); }, std::tuple(x), std::tuple(t)));
  };
  expect_near(along(fused), along(plain), 1e-4);
  // Derivatives of the gradient: forward and reverse.
  auto gradient = [&](auto function) {
    return jax::grad<0>([&, function](const Array& a) { return weighted(function, weights)(a, scale, bias); });
  };
  auto twice = [&](auto function) {
    return jax::grad<0>([&, function](const Array& a) { return jnp::sum(gradient(function)(a) * t); })(x);
  };
  expect_near(twice(fused), twice(plain), 1e-3);
  auto forward = [&](auto function) { return std::get<1>(jax::jvp(gradient(function), std::tuple(x), std::tuple(t))); };
  expect_near(forward(fused), forward(plain), 1e-3);
}

// The means and deviations are also results: their cotangents go through the composition.
TEST(LayerNorm, PullsBackThroughItsStatistics) {
  const Array x = drawn(0, {3, 8}), scale = drawn(1, {8}), bias = drawn(2, {8});
  const Primitive primitive = capibara::primitive("layer_norm");
  auto statistics = [&](const Array& a) {
    const Arrays out = capibara::bind(primitive, Arrays{a, scale, bias}, {{"epsilon", 1e-5}});
    return jnp::sum(out[0] * out[0]) + jnp::sum(out[1]) + jnp::sum(out[2]);
  };
  auto composed = [&](const Array& a) {
    const Arrays out = primitive->lower(Arrays{a, scale, bias}, {{"epsilon", 1e-5}});
    return jnp::sum(out[0] * out[0]) + jnp::sum(out[1]) + jnp::sum(out[2]);
  };
  expect_near(jax::grad<0>(statistics)(x), jax::grad<0>(composed)(x), 1e-4);
}

TEST(LayerNorm, MapsOverRowsAndOverScales) {
  const Array x = drawn(0, {5, 4, 8}), scale = drawn(1, {8}), scales = drawn(2, {5, 8}), bias = drawn(3, {8});
  expect_near(jax::vmap([&](const Array& a) { return layer_norm(a, scale, bias); })(x), plain(x, scale, bias), 1e-5);
  expect_near(jax::vmap([&](const Array& a, const Array& s) { return layer_norm(a, s, bias); })(x, scales),
              plain(x, jnp::expand_dims(scales, 1), bias), 1e-5);
}

// Operations for which a backend may have a kernel stay one equation under transforms.
TEST(LayerNorm, StaysOneEquation) {
  const Array x = jnp::ones({5, 4, 8}), scale = jnp::ones({8});
  auto rows = [&](const Array& a) { return layer_norm(a, scale, scale); };
  const std::string mapped = jax::make_jaxpr(jax::vmap(rows))(x).to_string();
  EXPECT_NE(mapped.find("= layer_norm["), std::string::npos) << mapped;
  const std::string reverse =
      jax::make_jaxpr(jax::grad<0>(jax::jit([&](const Array& a) { return jnp::sum(rows(a)); })))(x).to_string();
  EXPECT_NE(reverse.find("= layer_norm["), std::string::npos) << reverse;
  EXPECT_NE(reverse.find("= layer_norm_grad "), std::string::npos) << reverse;
  EXPECT_EQ(reverse.find("composed_tangent"), std::string::npos) << reverse;
}

TEST(LayerNorm, RefusesOtherSizesByName) {
  try {
    layer_norm(jnp::ones({2, 3}), jnp::ones({4}), jnp::ones({3}));
    FAIL() << "nothing was raised";
  } catch (const TypeError& error) {
    EXPECT_NE(std::string(error.what()).find("argument 'scale'"), std::string::npos) << error.what();
  }
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using LayerNormKernel = cpu::KernelTest;

std::vector<DType> kernel_dtypes() {
  std::vector<DType> dtypes = {DType::float32, DType::float64, DType::bfloat16};
#if defined(__aarch64__)
  dtypes.push_back(DType::float16);
#endif
  return dtypes;
}

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

// One column, columns that do not fill a vector, several blocks of rows.
const Shape kernel_shapes[] = {{1}, {3, 1}, {5, 7}, {2, 3, 16}, {33, 67}, {9, 300}, {300, 24}};

cpu::Tolerance tolerance_of(DType dtype) {
  const double unit = cpu::epsilon_of(dtype);
  return {dtype == DType::float64 ? 1e-12 : 2e-5 + 2 * unit, 4 * unit};
}

TEST_F(LayerNormKernel, ForwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : kernel_dtypes()) {
    for (const Shape& shape : kernel_shapes) {
      const ArrayType x = cpu::type_of(dtype, shape), column = cpu::type_of(dtype, {shape.back()});
      if (shape.back() > 1)
        check_kernel({"layer_norm", {x, column, column}, {{"epsilon", 1e-5}}, {}, tolerance_of(dtype)});
      check_kernel(
          {"layer_norm", {x, column, column}, {{"epsilon", 0.5}}, {cpu::Values::awkward}, tolerance_of(dtype)});
    }
  }
}

TEST_F(LayerNormKernel, BackwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : kernel_dtypes()) {
    const DType wide = dtype == DType::float64 ? dtype : DType::float32;
    for (const Shape& shape : kernel_shapes) {
      const ArrayType x = cpu::type_of(dtype, shape), column = cpu::type_of(dtype, {shape.back()});
      const ArrayType row = cpu::type_of(wide, Shape(shape.begin(), shape.end() - 1));
      cpu::Tolerance tolerance = tolerance_of(dtype);
      tolerance.absolute *= 40;  // sums over hundreds of rows
      check_kernel({"layer_norm_grad", {x, x, column, row, row}, {}, {}, tolerance});
    }
  }
}

// Single-precision sums lose no more accuracy than in the composition.
TEST_F(LayerNormKernel, IsCloseToDoublePrecision) {
  const ConfigScope scope = wide_scope();
  const Array x = drawn(0, {64, 1000}) * 3.0f + 100.0f, scale = drawn(1, {1000}), bias = drawn(2, {1000}),
              dy = drawn(3, {64, 1000});
  const Attrs attrs = {{"epsilon", 1e-5}};
  auto all = [&](DType dtype, auto run) {
    auto as = [dtype](const Array& array) { return array.astype(dtype); };
    Arrays out = run("layer_norm", Arrays{as(x), as(scale), as(bias)}, attrs);
    const Arrays back = run("layer_norm_grad", Arrays{as(dy), as(x), as(scale), out[1], out[2]}, Attrs{});
    out.insert(out.end(), back.begin(), back.end());
    return out;
  };
  auto kernel = [](const char* name, const Arrays& in, const Attrs& own) {
    return backend("cpu").run(primitive(name), in, own);
  };
  auto composition = [](const char* name, const Arrays& in, const Attrs& own) {
    return backend("reference").run(primitive(name), in, own);
  };
  const Arrays exact = all(DType::float64, composition), singles = all(DType::float32, kernel);
  for (std::size_t i = 0; i < exact.size(); ++i)
    expect_near(singles[i].astype(DType::float64), exact[i], i < 3 ? 2e-4 : 2e-3);
}

// Compiled programs use generated code, which is faster.
TEST_F(LayerNormKernel, LeavesProgramsToTheCompiler) {
  const Program program = jax::make_jaxpr(fused)(jnp::ones({64, 512}), jnp::ones({512}), jnp::ones({512}));
  const std::string text = *backend("cpu").compiled_text(program, {});
  EXPECT_EQ(text.find("host "), std::string::npos) << text;
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(const Shape& shape, DType dtype, bool cuda_kernels) {
  const Array x = jnp::ones(shape, {.dtype = dtype}), column = jnp::ones({shape.back()}, {.dtype = dtype});
  const Program program = jax::make_jaxpr([](const Array& a, const Array& s, const Array& b) {
    return jax::grad<0, 1, 2>(
        [](const Array& p, const Array& q, const Array& r) { return jnp::sum(layer_norm(p, q, r)); })(a, s, b);
  })(x, column, column);
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(LayerNormCuda, GoesOutAsCallsOfItsKernels) {
  const std::string with = gradient_text({64, 16}, DType::float32, true);
  EXPECT_NE(with.find("@capibara_layer_norm("), std::string::npos) << with;
  EXPECT_NE(with.find("@capibara_layer_norm_grad("), std::string::npos) << with;
  EXPECT_EQ(gradient_text({64, 16}, DType::float32, false).find("@capibara_"), std::string::npos);
}

// Rows of other types, not multiples of 16 bytes, longer than a thread block supports, or empty: the composition is
// lowered.
TEST(LayerNormCuda, LeavesWhatDoesNotFit) {
  EXPECT_NE(gradient_text({4, 8192}, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_NE(gradient_text({4, 16384}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
  EXPECT_NE(gradient_text({4, 16384}, DType::float16, true).find("@capibara_"), std::string::npos);
  for (const auto& [shape, dtype] : std::initializer_list<std::pair<Shape, DType>>{{{64, 12}, DType::float16},
                                                                                   {{64, 6}, DType::float32},
                                                                                   {{64, 12}, DType::bfloat16},
                                                                                   {{4, 8196}, DType::float32},
                                                                                   {{0, 16}, DType::float32}}) {
    EXPECT_EQ(gradient_text(shape, dtype, true).find("@capibara_"), std::string::npos)
        << to_string(dtype) << " rows of " << shape.back();
  }
}

}  // namespace
}  // namespace capibara::kernels
