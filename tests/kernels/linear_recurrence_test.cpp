// The linear recurrence: the kernel of the CPU backend against the composition, and associative_scan based on it.
#include <capibara/capibara.h>
#include <gtest/gtest.h>

#include "backends/kernel_cases.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

using Pair = std::pair<Array, Array>;

TEST(LinearRecurrence, IsItsDefinition) {
  const Array a = array<float>({2, 3, 4}), b = array<float>({1, 1, 1});
  EXPECT_EQ(linear_recurrence(a, b).to_vector<float>(), (std::vector<float>{1, 4, 17}));
  EXPECT_EQ(linear_recurrence(a, b, {.reverse = true}).to_vector<float>(), (std::vector<float>{9, 4, 1}));
  EXPECT_EQ(linear_recurrence(a, b, {.initial = Array(10.0f)}).to_vector<float>(), (std::vector<float>{21, 64, 257}));
}

TEST(LinearRecurrence, ServesAssociativeScans) {
  auto combine = [](const Pair& x, const Pair& y) {
    const Array carried = y.first * x.second;
    return Pair(x.first * y.first, carried + y.second);
  };
  auto other = [](const Pair& x, const Pair& y) {
    const Array carried = x.first * x.second;
    return Pair(x.first * y.first, carried + y.second);
  };
  const Array a = jax::random::uniform(jax::random::key(0), {.shape = {3, 20}}),
              b = jax::random::normal(jax::random::key(1), {.shape = {3, 20}});
  auto text = [&](auto function, bool tpu_optimized) {
    return jax::make_jaxpr([&](const Array& x, const Array& y) {
             return lax::associative_scan(function, Pair(x, y), {.axis = 1, .tpu_optimized = tpu_optimized});
           })(a, b)
        .to_string();
  };
  EXPECT_NE(text(combine, true).find("linear_recurrence["), std::string::npos);
  EXPECT_EQ(text(combine, false).find("linear_recurrence["), std::string::npos);
  EXPECT_EQ(text(other, true), text(other, false));
  const Pair fast = lax::associative_scan(combine, Pair(a, b), {.axis = 1, .tpu_optimized = true}),
             slow = lax::associative_scan(combine, Pair(a, b), {.axis = 1});
  const auto got = fast.second.to_vector<double>(), want = slow.second.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5);
}

using LinearRecurrenceKernel = cpu::KernelTest;

TEST_F(LinearRecurrenceKernel, IsTheComposition) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  std::vector<DType> dtypes = {DType::float32, DType::float64, DType::bfloat16};
#if defined(__aarch64__)
  dtypes.push_back(DType::float16);
#endif
  for (DType dtype : dtypes) {
    const double unit = cpu::epsilon_of(dtype);
    // Results are up to 2 ^ length.
    const cpu::Tolerance tolerance = {dtype == DType::float64 ? 1e-9 : 1e-2,
                                      dtype == DType::float64 ? 1e-11 : 1e-4 + 4 * unit};
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 7, 1}, Shape{20, 5, 1}, Shape{2, 6, 9}, Shape{1, 5, 600}}) {
      for (const bool reverse : {false, true}) {
        const ArrayType step = cpu::type_of(dtype, shape), start = cpu::type_of(dtype, {shape[0], shape[2]});
        check_kernel({"linear_recurrence", {step, step, start}, {{"reverse", reverse}}, {}, tolerance});
      }
    }
  }
}

}  // namespace
}  // namespace capibara::kernels
