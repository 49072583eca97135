// Programs of 16-bit floats, on this processor and with the instruction sets of older ones.
#include <capibara/lax.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "backends/cpu/small_programs.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;

TEST(HalfPrograms, FollowTheReference) {
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    const Maker mixed = [dtype](std::span<const Array> x) {
      const Array product = lax::dot(x[0], x[1]);
      const Array shifted = lax::exp(
          lax::sub(product, lax::broadcast_in_dim(lax::reduce_max(product, {.axes = {1}}), product.shape(), {0})));
      const Array wide = lax::convert_element_type(lax::tanh(shifted), DType::float64);
      const Array whole = lax::convert_element_type(x[0] * 9.0f, DType::int32);
      return Arrays{lax::reduce_sum(shifted, {.axes = {1}}), lax::convert_element_type(wide, dtype), whole,
                    lax::convert_element_type(whole, dtype)};
    };
    const double tolerance = dtype == DType::float16 ? 4e-3 : 3e-2;
    expect_as_reference(mixed, {values({37, 29}, dtype), values({29, 43}, dtype)}, tolerance);
  }
}

#if defined(__x86_64__)
TEST(CpuLevels, ProgramsOf16BitsAndConversionsRunOnLesserProcessors) {
  if (std::getenv("CAPIBARA_CPU_LEVEL")) GTEST_SKIP() << "CAPIBARA_CPU_LEVEL is set";
  char path[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", path, sizeof path - 1), 0);
  for (const char* level : {"baseline", "avx2", "avx512", "vnni"}) {
    const std::string command =
        concat("CAPIBARA_CPU_LEVEL=", level, " '", path,
               "' --gtest_brief=1 --gtest_filter='HalfPrograms.*:Operations.*Half*:SmallFloatNests.*:",
               "Floats*.ToAndFromIntegers' > /dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}
#endif

}  // namespace
}  // namespace capibara::cpu
