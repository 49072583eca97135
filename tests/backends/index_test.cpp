// gather and scatter of the CPU backend, and every kernel on the catalog's samples, against the reference kernels.
#include <capibara/config.h>

#include "backends/kernel_cases.h"
#include "kernels/family.h"
#include "lax/shape/shape.h"

namespace capibara::cpu {
namespace {

const std::vector<DType> plain_dtypes = {DType::bool_,   DType::int8,      DType::uint16,    DType::int32,
                                         DType::uint64,  DType::bfloat16,  DType::float16,   DType::float32,
                                         DType::float64, DType::complex64, DType::complex128};

class Gather : public KernelTest {
 protected:
  void check_gather(DType dtype, Shape operand, ArrayType indices, GatherDimensionNumbers dims, Ints sizes,
                    const char* mode) {
    check_kernel({"gather",
                  {type_of(dtype, std::move(operand)), std::move(indices)},
                  {{"dimension_numbers", dims},
                   {"slice_sizes", sizes},
                   {"unique_indices", false},
                   {"indices_are_sorted", false},
                   {"mode", mode},
                   {"fill_value", std::string(mode) == "fill_or_drop" ? Attr(int64_t{1}) : Attr()}},
                  {Values::plain, Values::indices}});
  }
};

TEST_F(Gather, ReadsRowsElementsAndWindows) {
  for (const char* mode : {"clip", "fill_or_drop", "promise_in_bounds"}) {
    for (DType dtype : plain_dtypes) {
      check_gather(dtype, {7, 5}, type_of(DType::int32, {11, 1}), {{1}, {0}, {0}, {}, {}}, {1, 5}, mode);  // rows
      check_gather(dtype, {7, 9}, type_of(DType::int64, {3, 4, 2}), {{}, {0, 1}, {0, 1}, {}, {}}, {1, 1},
                   mode);  // elements
      check_gather(dtype, {7, 9, 4}, type_of(DType::uint8, {5, 2}), {{1, 2, 3}, {}, {2, 0}, {}, {}}, {3, 9, 2},
                   mode);  // windows
      check_gather(dtype, {7, 9, 4}, type_of(DType::int32, {5, 1}), {{0, 1}, {1}, {1}, {}, {}}, {2, 1, 4},
                   mode);  // windows first
      check_gather(dtype, {3, 9, 4}, type_of(DType::int32, {6, 3, 1}), {{2}, {1}, {1}, {0}, {1}}, {1, 1, 4},
                   mode);  // batching
    }
    check_gather(DType::float32, {500, 64}, type_of(DType::int32, {3000, 1}), {{1}, {0}, {0}, {}, {}}, {1, 64}, mode);
    check_gather(DType::float32, {7, 0}, type_of(DType::int32, {3, 1}), {{1}, {0}, {0}, {}, {}}, {1, 0}, mode);
    check_gather(DType::float32, {7, 2}, type_of(DType::int32, {0, 1}), {{1}, {0}, {0}, {}, {}}, {1, 2}, mode);
  }
}

class Scatter : public KernelTest {
 protected:
  void check_scatter(const std::string& op, DType dtype, Shape operand, ArrayType indices, Shape updates,
                     ScatterDimensionNumbers dims, const char* mode, Tolerance tolerance = {},
                     Values values = Values::awkward) {
    std::string name = op == "replace" ? "scatter" : "scatter-" + op;
    check_kernel({name,
                  {type_of(dtype, std::move(operand)), std::move(indices), type_of(dtype, std::move(updates))},
                  {{"dimension_numbers", dims},
                   {"unique_indices", false},
                   {"indices_are_sorted", false},
                   {"mode", mode},
                   {"update_jaxpr", update_region(op, dtype)},
                   {"update_consts", Attr::List{}}},
                  {Values::plain, Values::indices, is_floating(dtype) ? values : Values::plain},
                  tolerance});
  }
};

TEST_F(Scatter, WritesRowsElementsAndWindowsInOrder) {
  for (const char* mode : {"clip", "fill_or_drop"}) {
    for (const char* op : {"replace", "add", "sub", "mul", "min", "max"}) {
      for (DType dtype : plain_dtypes) {
        if (dtype == DType::bool_ && std::string(op) != "replace") continue;
        check_scatter(op, dtype, {7, 5}, type_of(DType::int32, {11, 1}), {11, 5}, {{1}, {0}, {0}, {}, {}}, mode);
        check_scatter(op, dtype, {7, 9}, type_of(DType::int64, {3, 40, 2}), {3, 40}, {{}, {0, 1}, {0, 1}, {}, {}},
                      mode);
        check_scatter(op, dtype, {7, 9, 4}, type_of(DType::uint8, {5, 2}), {5, 3, 9, 2},
                      {{1, 2, 3}, {}, {2, 0}, {}, {}}, mode);
        check_scatter(op, dtype, {3, 9, 4}, type_of(DType::int32, {6, 3, 1}), {6, 3, 4}, {{2}, {1}, {1}, {0}, {1}},
                      mode);
      }
      check_scatter(op, DType::float32, {50, 300}, type_of(DType::int32, {2000, 1}), {2000, 300},
                    {{1}, {0}, {0}, {}, {}}, mode);
      for (DType dtype : {DType::bfloat16, DType::float32, DType::int64}) {
        check_scatter(op, dtype, {8, 16}, type_of(DType::int32, {20000, 1}), {20000, 16}, {{1}, {0}, {0}, {}, {}},
                      mode);  // threads split the operand
        check_scatter(op, dtype, {8}, type_of(DType::int32, {3001, 1}), {3001}, {{}, {0}, {0}, {}, {}}, mode);
      }
      check_scatter(op, DType::float32, {50, 3}, type_of(DType::int32, {0, 1}), {0, 3}, {{1}, {0}, {0}, {}, {}}, mode);
    }
  }
}

TEST_F(Scatter, DividesManyUpdatesOfFewElementsByTheShapesAlone) {
  for (const char* op : {"replace", "add", "sub", "max"}) {
    for (DType dtype :
         {DType::int32, DType::uint8, DType::int64, DType::bfloat16, DType::float16, DType::float32, DType::float64}) {
      const bool sums = std::string(op) == "add" && (dtype == DType::float32 || dtype == DType::float64);
      const Tolerance tolerance = sums ? Tolerance{1000 * epsilon_of(dtype), 1000 * epsilon_of(dtype)} : Tolerance{};
      check_scatter(op, dtype, {40}, type_of(DType::int32, {70000, 1}), {70000}, {{}, {0}, {0}, {}, {}}, "fill_or_drop",
                    tolerance, Values::plain);
      check_scatter(op, dtype, {5, 30}, type_of(DType::int64, {70000, 2}), {70000}, {{}, {0, 1}, {0, 1}, {}, {}},
                    "clip", tolerance, Values::plain);
    }
    check_scatter(op, DType::float32, {400000}, type_of(DType::int32, {50000, 1}), {50000}, {{}, {0}, {0}, {}, {}},
                  "fill_or_drop");  // threads split the operand
    for (int64_t run : {2, 3, 7, 16, 23, 65, 130}) {
      check_scatter(op, DType::float32, {9, run}, type_of(DType::int32, {4000, 1}), {4000, run},
                    {{1}, {0}, {0}, {}, {}}, "fill_or_drop");
      check_scatter(op, DType::int8, {3, run}, type_of(DType::int32, {400, 1}), {400, run}, {{1}, {0}, {0}, {}, {}},
                    "clip");
    }
  }
}

TEST_F(Scatter, MayWriteIntoItsOperand) {
  Types inputs = {type_of(DType::float32, {6}), type_of(DType::int32, {2, 1}), type_of(DType::float32, {2})};
  HostKernel kernel = host_kernel(primitive("scatter-add"), inputs, {inputs[0]},
                                  {{"dimension_numbers", ScatterDimensionNumbers{{}, {0}, {0}, {}, {}}},
                                   {"unique_indices", false},
                                   {"indices_are_sorted", false},
                                   {"mode", "clip"},
                                   {"update_jaxpr", update_region("add", DType::float32)},
                                   {"update_consts", Attr::List{}}});
  float x[] = {0, 1, 2, 3, 4, 5}, updates[] = {10, 20};
  int32_t indices[] = {3, 3};
  std::byte* buffers[] = {reinterpret_cast<std::byte*>(x), reinterpret_cast<std::byte*>(indices),
                          reinterpret_cast<std::byte*>(updates), reinterpret_cast<std::byte*>(x)};
  kernel(buffers);
  EXPECT_EQ(std::vector<float>(x, x + 6), (std::vector<float>{0, 1, 2, 33, 4, 5}));
}

class EveryKernel : public KernelTest {};

TEST_F(EveryKernel, AgreesOnTheSamplesOfTheCatalog) {
  Config wide = config();
  wide.enable_x64 = true;
  const ConfigScope scope(wide);  // compositions replace kernels that the reference lacks
  int checked = 0;
  const Family fused = kernel_family();
  for (const Primitive& primitive : catalog()) {
    KernelMaker make = find_kernel_maker(primitive);
    if (!make || !primitive->samples) continue;
    const bool is_fused =
        std::any_of(fused.begin(), fused.end(), [&](const auto& own) { return primitive.is(own.name); });
    const bool sums = is_fused || primitive.is("dot_general") || primitive.is("ragged_dot_general") ||
                      primitive.is("conv_general_dilated") || primitive.is("fft") || primitive.is("cholesky") ||
                      primitive.is("lu") || primitive.is("triangular_solve") || primitive.is("qr") ||
                      primitive.is("geqrf") || primitive.is("householder_product") || primitive.is("eigh");
    const bool is_series = primitive.is("igamma") || primitive.is("igammac") || primitive.is("igamma_grad_a") ||
                           primitive.is("random_gamma_grad") || primitive.is("regularized_incomplete_beta") ||
                           primitive.is("random_gamma");  // series_test.cpp compares them with float64
    for (DType dtype : {DType::bool_, DType::int32, DType::uint8, DType::bfloat16, DType::float32, DType::float64,
                        DType::complex64}) {
      if (!primitive->dtypes.empty() &&
          std::find(primitive->dtypes.begin(), primitive->dtypes.end(), dtype) == primitive->dtypes.end())
        continue;
      for (const Sample& sample : primitive->samples(dtype)) {
        Types outputs = primitive->type(sample.inputs, sample.attrs).types;
        if (!make({sample.inputs, outputs, sample.attrs, {}})) continue;
        std::vector<Values> values;
        for (const ArrayType& type : sample.inputs)
          values.push_back(sample.integers_are_indices && is_integer(type.dtype) ? Values::indices : Values::plain);
        Tolerance tolerance;
        // States grow from step to step, and so do their differences.
        const double steps = primitive.is("selective_scan_grad") || primitive.is("selective_scan") ? 128 : 1;
        if (is_series) tolerance = {512 * epsilon_of(dtype), 512 * epsilon_of(dtype)};
        if (sums && is_inexact(dtype)) tolerance = {64 * steps * epsilon_of(dtype), 4 * steps * epsilon_of(dtype)};
        check_kernel({primitive.name(), sample.inputs, sample.attrs, values, tolerance});
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 200);
}

}  // namespace
}  // namespace capibara::cpu
