// Dot products and convolutions of the CPU backend against the reference kernels.
#include <capibara/lax.h>

#include "backends/kernel_cases.h"
#include "primitives/window_shape.h"

namespace capibara::cpu {
namespace {

Attrs dot_attrs(DotDimensionNumbers numbers, Attr preferred = {}, Attr precision = {}) {
  return {{"dimension_numbers", numbers}, {"precision", precision}, {"preferred_element_type", preferred}, {"out_sharding", Attr()}};
}

// Every rounding of a sum of `terms` products of numbers up to 2 x 2, in the type of the sum, and one of the result.
Tolerance sum_tolerance(DType operand, DType out, int64_t terms) {
  if (!is_inexact(out)) return {};
  double sum = real_dtype(operand) == DType::float64 ? epsilon_of(DType::float64) : epsilon_of(DType::float32);
  if (real_dtype(out) == DType::float64) sum = epsilon_of(DType::float64);
  return {sum * 4 * (static_cast<double>(terms) + 4), epsilon_of(out)};
}

void check_matmul(DType dtype, int64_t m, int64_t k, int64_t n, bool left_transposed = false, bool right_transposed = false) {
  DotDimensionNumbers numbers{{left_transposed ? 0 : 1}, {right_transposed ? 1 : 0}, {}, {}};
  Shape lhs = left_transposed ? Shape{k, m} : Shape{m, k}, rhs = right_transposed ? Shape{n, k} : Shape{k, n};
  check_kernel({"dot_general", {type_of(dtype, lhs), type_of(dtype, rhs)}, dot_attrs(numbers), {}, sum_tolerance(dtype, dtype, k)});
}

TEST(DotGeneral, OfEveryDtype) {
  for (DType dtype : {DType::bool_, DType::int4, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64,
                      DType::float8_e4m3fn, DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    check_matmul(dtype, 5, 7, 3);
    check_matmul(dtype, 37, 41, 29);
    check_matmul(dtype, 13, 400, 17);
  }
}

TEST(DotGeneral, OfAwkwardSizes) {
  for (int64_t m : {0, 1, 2, 7, 67}) {
    for (int64_t k : {0, 1, 3, 71, 401}) {
      for (int64_t n : {0, 1, 5, 73}) check_matmul(DType::float32, m, k, n);
    }
  }
}

TEST(DotGeneral, OfTransposedOperands) {
  for (bool left : {false, true}) {
    for (bool right : {false, true}) {
      for (DType dtype : {DType::float32, DType::complex64, DType::int32}) {
        check_matmul(dtype, 33, 65, 47, left, right);
        check_matmul(dtype, 1, 333, 47, left, right);
        check_matmul(dtype, 47, 333, 1, left, right);
        check_matmul(dtype, 3, 2, 2, left, right);
      }
    }
  }
}

TEST(DotGeneral, OfManyBlocks) {
  check_matmul(DType::float32, 300, 800, 1600);
  check_matmul(DType::float32, 600, 390, 50);  // more rows than are packed at once
  check_matmul(DType::float64, 140, 400, 200);
  check_matmul(DType::complex128, 64, 400, 70);
}

TEST(DotGeneral, OfLongVectors) {
  for (DType dtype : {DType::float32, DType::float64, DType::complex64, DType::int32}) {
    check_kernel({"dot_general", {type_of(dtype, {50001}), type_of(dtype, {50001})}, dot_attrs({{0}, {0}, {}, {}}), {}, sum_tolerance(dtype, dtype, 50001)});
  }
}

TEST(DotGeneral, WithBatchAndScatteredDimensions) {
  // batch 1 and 3, contracting 0 and 4 of the left operand; the free ones do not continue each other.
  DotDimensionNumbers numbers{{0, 4}, {3, 1}, {1, 3}, {2, 0}};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::complex64, DType::uint64}) {
    check_kernel({"dot_general", {type_of(dtype, {4, 3, 6, 5, 7, 2}), type_of(dtype, {5, 7, 3, 4, 9})}, dot_attrs(numbers), {}, sum_tolerance(dtype, dtype, 28)});
    check_kernel({"dot_general", {type_of(dtype, {64, 3, 20}), type_of(dtype, {64, 20, 5})}, dot_attrs({{2}, {1}, {0}, {0}}), {}, sum_tolerance(dtype, dtype, 20)});
    check_kernel({"dot_general", {type_of(dtype, {3, 70, 90}), type_of(dtype, {3, 90, 80})}, dot_attrs({{2}, {1}, {0}, {0}}), {}, sum_tolerance(dtype, dtype, 90)});
  }
}

TEST(DotGeneral, WithAPreferredDtypeOrAnAlgorithm) {
  auto check = [](DType lhs, DType rhs, DType out, Attr precision) {
    Tolerance tolerance = sum_tolerance(out, out, 50);
    check_kernel({"dot_general", {type_of(lhs, {20, 50}), type_of(rhs, {50, 30})}, dot_attrs({{1}, {0}, {}, {}}, out, precision), {}, tolerance});
  };
  check(DType::bfloat16, DType::bfloat16, DType::float32, {});
  check(DType::float16, DType::float16, DType::float32, {});
  check(DType::int8, DType::int8, DType::int32, {});
  check(DType::int32, DType::int32, DType::int64, {});
  check(DType::float32, DType::float32, DType::float64, {});
  check(DType::bfloat16, DType::float32, DType::float32, {});
  check(DType::float32, DType::float32, DType::float32, "BF16_BF16_F32");
  check(DType::float8_e4m3fn, DType::float8_e5m2, DType::float32, {});
}

}  // namespace
}  // namespace capibara::cpu
