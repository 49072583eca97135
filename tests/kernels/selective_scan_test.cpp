// The selective scan: the CPU backend's kernels against the composition, derivatives and batches as single calls.
#include <capibara/capibara.h>
#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;

TEST(SelectiveScan, IsTheLoopOverItsSteps) {
  const Array u = drawn(0, {2, 70, 5}), A = -jnp::exp(drawn(1, {5, 3})), B = drawn(2, {2, 70, 3}),
              C = drawn(3, {2, 70, 3});
  MambaOptions options;
  options.delta = jnp::abs(drawn(4, {2, 70, 5}));
  options.z = drawn(5, {2, 70, 5});
  options.D = drawn(6, {5});
  const Array fused = mamba_ssm_kernel(u, A, B, C, options);
  options.use_associative_scan = false;
  expect_near(fused, mamba_ssm_kernel(u, A, B, C, options), 1e-4);
}

// By hand: h = 1/2 h + 2 u with exp(delta A) = 1/2, delta B = 2, y = 3 h + u.
TEST(SelectiveScan, HasTheValuesOfASmallExample) {
  const Array u = array<float>({1, 0, 2}, Shape{3, 1}), ones = jnp::ones({3, 1});
  const Array A = array<float>({-0.69314718f}, Shape{1, 1});
  SelectiveScanOptions options;
  options.D = jnp::ones({1});
  const auto [y, last] = selective_scan(u, ones, A, ones * 2.0f, ones * 3.0f, options);
  expect_near(y, array<float>({7, 3, 15.5}, Shape{3, 1}), 1e-5);
  expect_near(last, array<float>({4.5}, Shape{1, 1}), 1e-5);
}

TEST(SelectiveScan, StaysOneCallUnderTheTransforms) {
  const Array u = jnp::ones({4, 2, 9, 3}), A = jnp::ones({3, 2}), B = jnp::ones({2, 9, 2});
  auto loss = [&](const Array& x, const Array& matrix) { return jnp::sum(selective_scan(x, x, matrix, B, B).first); };
  const std::string text =
      jax::make_jaxpr(jax::vmap([&](const Array& x) { return jax::grad<0, 1>(loss)(x, A); }))(u).to_string();
  EXPECT_NE(text.find("= selective_scan["), std::string::npos) << text;
  EXPECT_NE(text.find("= selective_scan_grad["), std::string::npos) << text;
  EXPECT_EQ(text.find("composed_tangent"), std::string::npos) << text;
  EXPECT_EQ(text.find("scan["), text.find("selective_scan[") + 10) << text;  // no loop from the composition
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using SelectiveScanKernel = cpu::KernelTest;

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

std::vector<DType> kernel_dtypes() {
  std::vector<DType> dtypes = {DType::float32, DType::float64, DType::bfloat16};
#if defined(__aarch64__)
  dtypes.push_back(DType::float16);
#endif
  return dtypes;
}

struct Extent {
  int64_t batch, length, dim, states, chunk;
};
// Sizes of one; channels that do not fill a vector, partial chunks, several blocks of channels.
const Extent extents[] = {{1, 1, 1, 1, 4},   {2, 5, 3, 2, 4},    {1, 9, 16, 16, 4},
                          {2, 11, 21, 5, 8}, {1, 6, 150, 3, 64}, {1, 3, 530, 1, 2}};

Types operands(const Extent& e, DType dtype, bool gated, bool resets) {
  const DType wide = dtype == DType::float64 ? dtype : DType::float32;
  const ArrayType row = cpu::type_of(dtype, {e.batch, e.length, e.dim}),
                  column = cpu::type_of(dtype, {e.batch, e.length, e.states}), vector = cpu::type_of(wide, {e.dim});
  Types types = {row,    row,    cpu::type_of(wide, {e.dim, e.states}),         column, column,
                 vector, vector, cpu::type_of(wide, {e.batch, e.dim, e.states})};
  if (gated) types.push_back(row);
  if (resets) types.push_back(cpu::type_of(DType::bool_, {e.batch, e.length}));
  return types;
}

cpu::Tolerance tolerance_of(DType dtype) {
  const double unit = cpu::epsilon_of(dtype);
  return {dtype == DType::float64 ? 1e-9 : 2e-3 + 40 * unit, dtype == DType::float64 ? 1e-11 : 1e-4 + 4 * unit};
}

TEST_F(SelectiveScanKernel, ForwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : kernel_dtypes()) {
    for (const Extent& e : extents) {
      for (const bool option : {false, true}) {
        const Attrs attrs = {
            {"chunk_size", e.chunk}, {"delta_softplus", option}, {"gated", option}, {"resets", !option}};
        check_kernel({"selective_scan", operands(e, dtype, option, !option), attrs, {}, tolerance_of(dtype)});
      }
    }
  }
}

TEST_F(SelectiveScanKernel, BackwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : kernel_dtypes()) {
    for (const Extent& e : extents) {
      for (const bool option : {false, true}) {
        const Attrs attrs = {
            {"chunk_size", e.chunk}, {"delta_softplus", option}, {"gated", option}, {"resets", option}};
        Types types = operands(e, dtype, option, option);
        const Types results = primitive("selective_scan")->type(types, attrs).types;
        types.insert(types.begin(), results.begin(), results.end());
        cpu::Tolerance tolerance = tolerance_of(dtype);
        tolerance.absolute *= 50;  // sums over hundreds of channels, and states that grow with every step
        tolerance.relative *= 20;
        check_kernel({"selective_scan_grad", types, attrs, {}, tolerance});
      }
    }
  }
}

// With few elements it becomes generated code, like every operation.
TEST_F(SelectiveScanKernel, ServesInsideOfPrograms) {
  const Array u = jnp::ones({1, 256, 64}), A = jnp::ones({64, 16}), B = jnp::ones({1, 256, 16});
  const Program program = jax::make_jaxpr(
      [](const Array& x, const Array& a, const Array& b) { return selective_scan(x, x, a, b, b).first; })(u, A, B);
  const std::string text = *backend("cpu").compiled_text(program, {});
  EXPECT_NE(text.find("host 0("), std::string::npos) << text;
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(int64_t states, DType dtype, bool cuda_kernels) {
  const Array u = jnp::ones({2, 70, 33}, {.dtype = dtype}), B = jnp::ones({2, 70, states}, {.dtype = dtype});
  const Program program = jax::make_jaxpr([](const Array& x, const Array& a, const Array& b) {
    return jax::grad<0, 1>(
        [&](const Array& p, const Array& q) { return jnp::sum(selective_scan(p, p, q, b, b).first); })(x, a);
  })(u, jnp::ones({33, states}), B);
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(SelectiveScanCuda, GoesOutAsCallsOfItsKernels) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const std::string with = gradient_text(16, dtype, true);
    EXPECT_NE(with.find("@capibara_selective_scan("), std::string::npos) << with;
    EXPECT_NE(with.find("@capibara_selective_scan_grad("), std::string::npos) << with;
    EXPECT_NE(with.find("chunk_size = 64 : i64"), std::string::npos) << with;
  }
  EXPECT_EQ(gradient_text(16, DType::float32, false).find("@capibara_"), std::string::npos);
  EXPECT_NE(gradient_text(64, DType::float32, true).find("@capibara_"), std::string::npos);
}

TEST(SelectiveScanCuda, LeavesWhatDoesNotFit) {
  EXPECT_EQ(gradient_text(65, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text(16, DType::float16, true).find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
