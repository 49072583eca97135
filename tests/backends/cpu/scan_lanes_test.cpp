// Scans of elementwise operations on small carries: lanes past the end, sequences, huge arguments; against the
// reference backend.
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

#include "backends/cpu/small_programs.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;

TEST(ScanLanes, CarriesOfEverySizeRunAsOneByOne) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const double tolerance = dtype == DType::float64 ? 1e-12 : dtype == DType::float32 ? 1e-4 : 0.1;
    for (int64_t size : {2, 4, 5, 8, 9, 13, 16, 33}) {
      expect_as_reference(
          [&](std::span<const Array> x) {
            return Arrays{lax::fori_loop(
                0, 7, [&](Array, Array carry) { return carry * 0.5f + x[1] * lax::sin(carry) + lax::tanh(carry); },
                x[0])};
          },
          {values({size}, dtype), values({size}, dtype, 0.3f)}, tolerance);
    }
  }
}

TEST(ScanLanes, HugeArgumentsOfOneLaneLeaveTheOthersAlone) {
  expect_as_reference(
      [](std::span<const Array> x) {
        return Arrays{lax::fori_loop(
            0, 3, [&](Array, Array carry) { return lax::sin(carry * x[1]) + lax::cos(carry); }, x[0])};
      },
      {values({9}, DType::float64), lax::exp(values({9}, DType::float64, 14) * 2.0)}, 1e-6);
}

TEST(ScanLanes, SequencesAreReadAndWrittenInPlace) {
  for (int64_t size : {4, 6, 8, 9}) {
    for (bool reverse : {false, true}) {
      expect_as_reference(
          [&](std::span<const Array> x) {
            const auto [last, stacked] = lax::scan(
                [](Array carry, Array one) {
                  const Array next = lax::tanh(carry + one) * 0.9f;
                  return std::pair(next, next * one);
                },
                x[0], x[1], {.reverse = reverse});
            return Arrays{last, stacked};
          },
          {values({size}, DType::float32), values({11, size}, DType::float32)}, 1e-5);
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
