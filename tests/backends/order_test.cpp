// Sorting, top-k, and cumulative operations of the CPU backend against the reference kernels: bitwise.
#include "backends/kernel_cases.h"

namespace capibara::cpu {
namespace {

const std::vector<DType> ordered = {DType::bool_,   DType::int4,    DType::int8,          DType::uint8,
                                    DType::int16,   DType::uint16,  DType::int32,         DType::uint32,
                                    DType::int64,   DType::uint64,  DType::float8_e4m3fn, DType::bfloat16,
                                    DType::float16, DType::float32, DType::float64};

class Sort : public KernelTest {
 protected:
  void check_sort(Types inputs, int64_t dimension, int64_t keys) {
    std::vector<Values> values(inputs.size(), Values::awkward);
    check_kernel({"sort", inputs, {{"dimension", dimension}, {"is_stable", true}, {"num_keys", keys}}, values});
  }
};
class TopK : public KernelTest {};
class Cumulative : public KernelTest {};

TEST_F(Sort, OfEveryDtypeIsStableAndTotal) {
  std::vector<DType> dtypes = ordered;
  dtypes.insert(dtypes.end(), {DType::complex64, DType::complex128});
  for (DType dtype : dtypes) {
    for (int64_t n : {0, 1, 2, 7, 300, 5003}) {
      check_sort({type_of(dtype, {n}), type_of(DType::int32, {n})}, 0, 1);
      check_sort({type_of(dtype, {n})}, 0, 1);
    }
  }
}

TEST_F(Sort, AlongAnyDimensionWithManyOperandsAndKeys) {
  for (int64_t dimension : {0, 1, 2}) {
    check_sort(
        {type_of(DType::float32, {5, 67, 3}), type_of(DType::int8, {5, 67, 3}), type_of(DType::complex128, {5, 67, 3})},
        dimension, 1);
    check_sort(
        {type_of(DType::int8, {5, 67, 3}), type_of(DType::float64, {5, 67, 3}), type_of(DType::bool_, {5, 67, 3})},
        dimension, 2);
    check_sort({type_of(DType::int8, {601, 2, 3}), type_of(DType::bfloat16, {601, 2, 3}),
                type_of(DType::float32, {601, 2, 3})},
               dimension, 3);
  }
  check_sort({type_of(DType::float32, {0, 3}), type_of(DType::int32, {0, 3})}, 1, 1);
  check_sort({type_of(DType::float32, {400, 50})}, 1, 1);
}

TEST_F(Sort, OfLongRowsIsSharedOutAmongThreads) {
  for (DType dtype : {DType::bool_, DType::int8, DType::uint16, DType::int32, DType::int64, DType::bfloat16,
                      DType::float16, DType::float32, DType::float64}) {
    check_sort({type_of(dtype, {70001})}, 0, 1);
    check_sort({type_of(dtype, {70001}), type_of(DType::float32, {70001})}, 0, 2);
    check_sort({type_of(dtype, {900, 37})}, 0, 1);
    for (int64_t n : {63, 64, 65, 96, 97, 4095, 4097}) check_sort({type_of(dtype, {2, n})}, 1, 1);
  }
}

TEST_F(TopK, OfEveryDtype) {
  for (DType dtype : ordered) {
    for (int64_t k : {0, 1, 5, 40}) {
      check_kernel({"top_k",
                    {type_of(dtype, {3, 40})},
                    {{"k", k}, {"axis", int64_t{1}}, {"operand_is_stable", Attr()}},
                    {Values::awkward}});
      check_kernel({"top_k",
                    {type_of(dtype, {3, 1000})},
                    {{"k", k}, {"axis", int64_t{1}}, {"operand_is_stable", Attr()}},
                    {Values::awkward}});
    }
  }
}

TEST_F(TopK, FewOfLongRowsAlongAnyDimension) {
  for (DType dtype : {DType::int8, DType::bfloat16, DType::float32, DType::int64}) {
    for (int64_t k : {1, 100}) {
      const Attrs along_last = {{"k", k}, {"axis", int64_t{1}}, {"operand_is_stable", Attr()}};
      check_kernel({"top_k", {type_of(dtype, {2, 70001})}, along_last, {Values::awkward}});  // in pieces
      check_kernel({"top_k", {type_of(dtype, {5, 3000})}, along_last, {Values::plain}});
      check_kernel({"top_k",
                    {type_of(dtype, {1003, 3})},
                    {{"k", k}, {"axis", int64_t{0}}, {"operand_is_stable", Attr()}},
                    {Values::awkward}});
    }
  }
}

TEST_F(Cumulative, OfEveryDtypeAndDirection) {
  std::vector<DType> dtypes = ordered;
  dtypes.insert(dtypes.end(), {DType::complex64, DType::complex128});
  for (const char* name : {"cumsum", "cumprod", "cummax", "cummin"}) {
    for (DType dtype : dtypes) {
      if (dtype == DType::bool_) continue;
      for (bool reverse : {false, true}) {
        for (const Shape& shape :
             {Shape{67}, Shape{3, 5, 7}, Shape{2, 31, 130}, Shape{11, 67}, Shape{0, 3}, Shape{1, 1}}) {
          int64_t axis = static_cast<int64_t>(shape.size()) / 2;
          check_kernel({name,
                        {type_of(dtype, shape)},
                        {{"axis", axis}, {"reverse", reverse}},
                        {is_floating(dtype) ? Values::awkward : Values::plain}});
        }
      }
    }
  }
}

TEST_F(Cumulative, SumsFewLongLanesInBlocks) {
  for (DType dtype : {DType::int32, DType::int64, DType::uint32, DType::float32, DType::float64}) {
    for (bool reverse : {false, true}) {
      for (const Shape& shape : {Shape{1, 300007}, Shape{3, 262144}, Shape{1, 65537}, Shape{9, 1031}}) {
        const bool blocks = is_floating(dtype) && shape[0] < 4 && shape[1] > 100000;
        const Tolerance tolerance = blocks ? Tolerance{1e5 * epsilon_of(dtype), 1e5 * epsilon_of(dtype)} : Tolerance{};
        check_kernel({"cumsum",
                      {type_of(dtype, shape)},
                      {{"axis", int64_t{1}}, {"reverse", reverse}},
                      {Values::plain},
                      tolerance});
        if (shape[1] < 2000)
          check_kernel(
              {"cumprod", {type_of(dtype, shape)}, {{"axis", int64_t{1}}, {"reverse", reverse}}, {Values::plain}});
      }
      check_kernel(
          {"cumprod", {type_of(dtype, {5, 9000})}, {{"axis", int64_t{0}}, {"reverse", reverse}}, {Values::plain}});
    }
  }
}

TEST_F(Cumulative, LogSumExp) {
  for (DType dtype : {DType::bfloat16, DType::float32, DType::float64}) {
    for (bool reverse : {false, true}) {
      check_kernel({"cumlogsumexp",
                    {type_of(dtype, {5, 31, 70})},
                    {{"axis", int64_t{1}}, {"reverse", reverse}},
                    {Values::awkward}});
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
