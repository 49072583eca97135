// Dot products of the CPU backend against the reference kernels.
#include <capibara/lax.h>

#include <array>

#include "backends/sum_tolerance.h"

namespace capibara::cpu {
namespace {

Attrs dot_attrs(DotDimensionNumbers numbers, Attr preferred = {}, Attr precision = {}) {
  return {{"dimension_numbers", numbers},
          {"precision", precision},
          {"preferred_element_type", preferred},
          {"out_sharding", Attr()}};
}

class DotGeneral : public KernelTest {
 protected:
  void check_matmul(DType dtype, int64_t m, int64_t k, int64_t n, bool left_transposed = false,
                    bool right_transposed = false) {
    DotDimensionNumbers numbers{{left_transposed ? 0 : 1}, {right_transposed ? 1 : 0}, {}, {}};
    Shape lhs = left_transposed ? Shape{k, m} : Shape{m, k}, rhs = right_transposed ? Shape{n, k} : Shape{k, n};
    check_kernel({"dot_general",
                  {type_of(dtype, lhs), type_of(dtype, rhs)},
                  dot_attrs(numbers),
                  {},
                  sum_tolerance(dtype, dtype, k)});
  }
};

TEST_F(DotGeneral, OfEveryDtype) {
  for (DType dtype : {DType::bool_, DType::int4, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32,
                      DType::uint32, DType::int64, DType::uint64, DType::float8_e4m3fn, DType::bfloat16, DType::float16,
                      DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    check_matmul(dtype, 5, 7, 3);
    check_matmul(dtype, 37, 41, 29);
    check_matmul(dtype, 13, 400, 17);
  }
}

TEST_F(DotGeneral, OfAwkwardSizes) {
  for (int64_t m : {0, 1, 2, 7, 67}) {
    for (int64_t k : {0, 1, 3, 71, 401}) {
      for (int64_t n : {0, 1, 5, 73}) check_matmul(DType::float32, m, k, n);
    }
  }
}

TEST_F(DotGeneral, OfTransposedOperands) {
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

TEST_F(DotGeneral, OfManyBlocks) {
  check_matmul(DType::float32, 300, 800, 1600);
  check_matmul(DType::float32, 600, 390, 50);  // more rows than are packed at once
  check_matmul(DType::float64, 140, 400, 200);
  check_matmul(DType::complex128, 64, 400, 70);
}

TEST_F(DotGeneral, OfLongVectors) {
  for (DType dtype : {DType::float32, DType::float64, DType::complex64, DType::int32}) {
    check_kernel({"dot_general",
                  {type_of(dtype, {50001}), type_of(dtype, {50001})},
                  dot_attrs({{0}, {0}, {}, {}}),
                  {},
                  sum_tolerance(dtype, dtype, 50001)});
  }
}

TEST_F(DotGeneral, WithBatchAndScatteredDimensions) {
  // The left operand has batch dimensions 1 and 3, contracting 0 and 4; its free dimensions are not contiguous.
  DotDimensionNumbers numbers{{0, 4}, {3, 1}, {1, 3}, {2, 0}};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::complex64, DType::uint64}) {
    check_kernel({"dot_general",
                  {type_of(dtype, {4, 3, 6, 5, 7, 2}), type_of(dtype, {5, 7, 3, 4, 9})},
                  dot_attrs(numbers),
                  {},
                  sum_tolerance(dtype, dtype, 28)});
    check_kernel({"dot_general",
                  {type_of(dtype, {64, 3, 20}), type_of(dtype, {64, 20, 5})},
                  dot_attrs({{2}, {1}, {0}, {0}}),
                  {},
                  sum_tolerance(dtype, dtype, 20)});
    check_kernel({"dot_general",
                  {type_of(dtype, {3, 70, 90}), type_of(dtype, {3, 90, 80})},
                  dot_attrs({{2}, {1}, {0}, {0}}),
                  {},
                  sum_tolerance(dtype, dtype, 90)});
  }
}

TEST_F(DotGeneral, WithAPreferredDtypeOrAnAlgorithm) {
  auto check = [this](DType lhs, DType rhs, DType out, Attr precision) {
    Tolerance tolerance = sum_tolerance(out, out, 50);
    check_kernel({"dot_general",
                  {type_of(lhs, {20, 50}), type_of(rhs, {50, 30})},
                  dot_attrs({{1}, {0}, {}, {}}, out, precision),
                  {},
                  tolerance});
  };
  check(DType::bfloat16, DType::bfloat16, DType::float32, {});
  check(DType::float16, DType::float16, DType::float32, {});
  check(DType::int8, DType::int8, DType::int32, {});
  check(DType::uint8, DType::uint8, DType::int32, {});
  check(DType::int8, DType::uint8, DType::int32, {});
  check(DType::uint8, DType::int8, DType::int32, {});
  check(DType::int32, DType::int32, DType::int64, {});
  check(DType::float32, DType::float32, DType::float64, {});
  check(DType::bfloat16, DType::float32, DType::float32, {});
  check(DType::float32, DType::float32, DType::float32, "BF16_BF16_F32");
  check(DType::float8_e4m3fn, DType::float8_e5m2, DType::float32, {});
}

TEST_F(DotGeneral, OfNarrowTypesInEveryOrder) {
  for (DType dtype : {DType::bfloat16, DType::float16, DType::int8, DType::uint8, DType::float64}) {
    for (bool left : {false, true}) {
      for (bool right : {false, true}) {
        check_matmul(dtype, 31, 67, 45, left, right);
        check_matmul(dtype, 9, 129, 12, left, right);
        check_matmul(dtype, 1, 77, 130, left, right);
        check_matmul(dtype, 130, 77, 1, left, right);
        check_matmul(dtype, 200, 1100, 97, left, right);  // several blocks of k
      }
    }
  }
}

TEST_F(DotGeneral, OfFewRowsAndColumnsButALongSum) {
  for (DType dtype : {DType::float32, DType::float64, DType::int32, DType::bfloat16}) {
    check_matmul(dtype, 7, 30011, 5);
    check_matmul(dtype, 64, 9001, 48, true, false);
    check_matmul(dtype, 3, 5000, 3, true, false);
  }
}

TEST_F(DotGeneral, OfManyTinyMatrices) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t m : {1, 2, 3, 4}) {
      for (int64_t n : {1, 3, 4}) {
        check_kernel({"dot_general",
                      {type_of(dtype, {5001, m, 3}), type_of(dtype, {5001, 3, n})},
                      dot_attrs({{2}, {1}, {0}, {0}}),
                      {},
                      sum_tolerance(dtype, dtype, 3)});
      }
    }
    check_matmul(dtype, 50001, 3, 3);
    for (int64_t k : {1, 2, 3, 4}) {
      for (int64_t n : {1, 2, 3, 4}) check_matmul(dtype, 4097, k, n);
    }
    check_matmul(dtype, 5001, 4, 2, false, true);
    check_kernel({"dot_general",
                  {type_of(dtype, {501, 3, 3}), type_of(dtype, {501, 3})},
                  dot_attrs({{2}, {1}, {0}, {0}}),
                  {},
                  sum_tolerance(dtype, dtype, 3)});
  }
}

TEST_F(DotGeneral, OfEveryWayToShareItOut) {
  for (DType dtype : {DType::float32, DType::bfloat16}) {
    check_matmul(dtype, 16, 1024, 500);
    check_matmul(dtype, 200, 520, 600, false, true);
    check_matmul(dtype, 1, 700, 1100, false, true);
    check_matmul(dtype, 1100, 700, 1, true, false);
  }
}

TEST_F(DotGeneral, OfSmallMatricesAsTheyLie) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t m : {1, 5, 8, 17, 64}) {
      for (int64_t k : {1, 3, 4, 18, 64, 131}) {
        for (int64_t n : {4, 8, 12, 20, 64, 66}) check_matmul(dtype, m, k, n);
      }
    }
    check_kernel({"dot_general",
                  {type_of(dtype, {9, 20, 33}), type_of(dtype, {9, 33, 28})},
                  dot_attrs({{2}, {1}, {0}, {0}}),
                  {},
                  sum_tolerance(dtype, dtype, 33)});
    check_kernel({"dot_general",
                  {type_of(dtype, {20, 9, 33}), type_of(dtype, {33, 9, 28})},
                  dot_attrs({{2}, {0}, {1}, {1}}),
                  {},
                  sum_tolerance(dtype, dtype, 33)});
  }
}

TEST_F(DotGeneral, OfVectorsByMatricesInParts) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::complex64, DType::int32}) {
    check_matmul(dtype, 1, 515, 1300);
    check_matmul(dtype, 1, 1030, 4100);
    check_matmul(dtype, 9000, 70, 1, true, false);
  }
}

TEST_F(DotGeneral, KeepsConstantOperandsPacked) {
  for (DType dtype :
       {DType::float32, DType::float64, DType::bfloat16, DType::float16, DType::int8, DType::uint8, DType::int32}) {
    for (bool transposed : {false, true}) {
      for (auto [m, k, n] : {std::array<int64_t, 3>{16, 700, 300},
                             {3, 129, 77},
                             {300, 600, 130},
                             {1, 300, 400},
                             {130, 300, 3},
                             {260, 1100, 33},
                             {7, 5000, 9}}) {
        const DotDimensionNumbers numbers{{1}, {transposed ? 1 : 0}, {}, {}};
        for (const std::vector<bool>& constants : {std::vector<bool>{false, true}, {true, false}, {true, true}}) {
          check_kernel({"dot_general",
                        {type_of(dtype, {m, k}), type_of(dtype, transposed ? Shape{n, k} : Shape{k, n})},
                        dot_attrs(numbers),
                        {},
                        sum_tolerance(dtype, dtype, k),
                        constants});
        }
      }
    }
  }
}

TEST_F(DotGeneral, CarriesNaNAndInfinities) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    check_kernel({"dot_general",
                  {type_of(dtype, {203, 3}), type_of(dtype, {3, 3})},
                  dot_attrs({{1}, {0}, {}, {}}),
                  {Values::awkward, Values::awkward},
                  sum_tolerance(dtype, dtype, 3)});
    for (int64_t size : {3, 20, 70}) {
      check_kernel({"dot_general",
                    {type_of(dtype, {size, 2}), type_of(dtype, {2, size})},
                    dot_attrs({{1}, {0}, {}, {}}),
                    {Values::awkward, Values::awkward},
                    sum_tolerance(dtype, dtype, 2)});
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
