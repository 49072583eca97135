// Operations with scalar regions, containing loops and branches: compiled without an interpreter, with the
// reference's values.
#include <capibara/control.h>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/generated_code.h"
#include "backends/cpu/kernels/host.h"
#include "backends/cpu/small_programs.h"
#include "lax/reduce/monoid.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;

// Checks for the reference's values, and that generated code calls no reference kernel.
void expect_compiled(const Maker& function, const Arrays& inputs, double tolerance = 1e-6) {
  NEEDS_COMPILER();
  for (const HostKernel& kernel : lower_to_loops(optimised(program_of(function, inputs))).kernels) {
    const Primitive* left = reference_primitive(kernel);
    EXPECT_EQ(left, nullptr) << left->name();
  }
  expect_as_reference(function, inputs, tolerance);
}

Array scalar(float value) { return Array(value); }

// The sum, unless `b` is negative: a data-dependent branch.
Array add_by_branch(const Array& a, const Array& b) {
  const auto add = [](const Array& x, const Array& y) { return lax::add(x, y); };
  const auto skip = [](const Array& x, const Array&) { return x; };
  return lax::cond(lax::ge(b, scalar(0)), add, skip, a, b);
}

// Halves the second until it is at most 1/8; in the branch not taken the loop would not terminate.
Array add_by_loop(const Array& a, const Array& b) {
  const auto is_large = [](const Array& x) { return lax::gt(x, scalar(0.125f)); };
  const auto halve = [](const Array& x) { return lax::mul(x, scalar(0.5f)); };
  const auto looped = [&](const Array& x, const Array& y) { return lax::add(x, lax::while_loop(is_large, halve, y)); };
  const auto endless = [](const Array& x, const Array& y) {
    return lax::add(x, lax::while_loop([](const Array& z) { return lax::lt(z, scalar(0.5f)); },
                                       [](const Array& z) { return z; }, y));
  };
  return lax::cond(lax::lt(b, scalar(2)), looped, endless, a, b);
}

Array add_by_fori(const Array& a, const Array& b) {
  return lax::fori_loop(
      0, 3, [&](const Array&, const Array& x) { return lax::add(lax::mul(x, scalar(0.5f)), b); }, a);
}

const std::vector<Array (*)(const Array&, const Array&)> folds = {add_by_branch, add_by_loop, add_by_fori};

TEST(CompiledRegions, ReduceOverSomeAxes) {
  for (auto fold : folds) {
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 2}, Ints{0, 1, 2}, Ints{}}) {
      expect_compiled([&](std::span<const Array> x) { return Arrays{lax::reduce(x[0], x[1], fold, axes)}; },
                      {values({3, 4, 5}), scalar(0.25f)});
    }
  }
}

TEST(CompiledRegions, ReduceOfSeveralOperandsAndOfKnownOperationsFromAnyStart) {
  const auto both = [](const Arrays& a, const Arrays& b) {
    const Array larger = lax::gt(a[0], b[0]);
    return Arrays{lax::select(larger, a[0], b[0]), lax::select(larger, a[1], b[1])};
  };
  expect_compiled(
      [&](std::span<const Array> x) {
        return lax::reduce(Arrays{x[0], x[1]}, {scalar(-5), scalar(0)}, both, {1});
      },
      {values({3, 7}), values({3, 7}, DType::float32, 2)});
  expect_compiled([](std::span<const Array> x) { return Arrays{lax::reduce(x[0], x[1], lax::add, {1})}; },
                  {values({3, 7}), scalar(2)}, 1e-5);
  expect_compiled([](std::span<const Array> x) { return Arrays{lax::reduce(x[0], x[1], lax::max, {0})}; },
                  {values({3, 7}), scalar(0.5f)});
  expect_compiled(
      [](std::span<const Array> x) { return Arrays{lax::reduce(x[0], Array(false), lax::bitwise_or, {0})}; },
      {values({3, 7}, DType::bool_)});
}

TEST(CompiledRegions, ReduceOfNothing) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}}) {
    expect_compiled(
        [](std::span<const Array> x) { return Arrays{lax::reduce(x[0], scalar(1.5f), add_by_branch, {0})}; },
        {values(shape)});
  }
}

TEST(CompiledRegions, Windows) {
  const std::vector<lax::WindowOptions> options = {
      {},
      {.strides = {2, 1}, .padding_mode = "SAME"},
      {.padding = lax::Padding{{1, 2}, {0, 3}}, .base_dilation = {2, 1}, .window_dilation = {1, 2}}};
  for (auto fold : folds) {
    for (const lax::WindowOptions& each : options) {
      expect_compiled(
          [&](std::span<const Array> x) {
            return Arrays{lax::reduce_window(x[0], scalar(0.25f), fold, {2, 3}, each)};
          },
          {values({5, 6})});
    }
  }
}

TEST(CompiledRegions, WindowsThatReachFromEachElementToAnEnd) {
  for (const lax::Padding& padding : {lax::Padding{{0, 0}, {5, 0}}, lax::Padding{{0, 0}, {0, 5}}}) {
    expect_compiled(
        [&](std::span<const Array> x) {
          return Arrays{lax::reduce_window(x[0], scalar(0), add_by_branch, {1, 6}, {.padding = padding})};
        },
        {values({3, 6})});
    expect_compiled(
        [&](std::span<const Array> x) {
          return Arrays{lax::reduce_window_sum(x[0], {1, 6}, {.padding = padding})};
        },
        {values({3, 6})}, 1e-5);
  }
  expect_compiled(
      [](std::span<const Array> x) {
        return Arrays{lax::reduce_window_max(x[0], {2, 6}, {.padding = lax::Padding{{0, 0}, {5, 0}}})};
      },
      {values({3, 6})});
}

Program region(Array (*fold)(const Array&, const Array&)) {
  return stage_region("test", [&](std::span<const Array> x) { return Arrays{fold(x[0], x[1])}; },
                      {scalar_type(DType::float32), scalar_type(DType::float32)});
}

Attrs scatter_attrs(Array (*fold)(const Array&, const Array&), ScatterDimensionNumbers dims, const char* mode) {
  return {
      {"dimension_numbers", std::move(dims)}, {"indices_are_sorted", false},  {"unique_indices", false}, {"mode", mode},
      {"update_jaxpr", region(fold)},         {"update_consts", Attr::List{}}};
}

TEST(CompiledRegions, ScatterFoldsUpdatesThatMeetInOrder) {
  const int32_t some[] = {1, 3, 1, 9, -1, 1}, others[] = {2, 0, 2, 7};
  const Array points = Array::from_host(DType::int32, {6}, some), columns = Array::from_host(DType::int32, {4}, others);
  for (auto fold : folds) {
    for (const char* mode : {"fill_or_drop", "clip"}) {
      const auto at_points = [&](std::span<const Array> x) {
        return capibara::bind(primitive("scatter"), Arrays{x[0], lax::reshape(x[1], {6, 1}), x[2]},
                              scatter_attrs(fold, {{}, {0}, {0}, {}, {}}, mode));
      };
      expect_compiled(at_points, {values({5}), points, values({6})});
      // Windows of three rows and two columns; window dimensions come before index dimensions.
      const auto windows = [&](std::span<const Array> x) {
        return capibara::bind(primitive("scatter"), Arrays{x[0], lax::reshape(x[1], {4, 1}), x[2]},
                              scatter_attrs(fold, {{0, 1}, {}, {1}, {}, {}}, mode));
      };
      expect_compiled(windows, {values({3, 5}), columns, values({3, 2, 4})});
    }
  }
}

// Programs read from files may have int64 indices.
TEST(CompiledRegions, TakeWideIndicesWithoutX64) {
  const int32_t some[] = {1, 3, 1, 9, -1, 1};
  const Array points = [&] {
    const ConfigScope x64 = jax::enable_x64();
    return lax::convert_element_type(Array::from_host(DType::int32, {6, 1}, some), DType::int64);
  }();
  ASSERT_EQ(points.dtype(), DType::int64);
  for (const char* mode : {"fill_or_drop", "clip"}) {
    const auto at_points = [&](std::span<const Array> x) {
      return capibara::bind(primitive("scatter"), x, scatter_attrs(folds[0], {{}, {0}, {0}, {}, {}}, mode));
    };
    expect_compiled(at_points, {values({5}), points, values({6})});
  }
}

TEST(CompiledRegions, SelectAndScatter) {
  const auto less_by_branch = [](std::span<const Array> x) {
    const auto yes = [](const Array& a, const Array& b) { return lax::ge(a, b); };
    const auto no = [](const Array& a, const Array& b) { return lax::lt(lax::abs(a), lax::abs(b)); };
    return Arrays{lax::cond(lax::gt(x[0], scalar(0)), yes, no, x[0], x[1])};
  };
  const ArrayType type = scalar_type(DType::float32);
  const Program select = stage_region("test", less_by_branch, {type, type});
  for (auto fold : folds) {
    const Attrs attrs = {{"select_jaxpr", select},
                         {"select_consts", Attr::List{}},
                         {"scatter_jaxpr", region(fold)},
                         {"scatter_consts", Attr::List{}},
                         {"window_dimensions", Ints{2, 3}},
                         {"window_strides", Ints{1, 2}},
                         {"padding", Attr::List{Attr(Ints{1, 0}), Attr(Ints{1, 1})}}};
    expect_compiled([&](std::span<const Array> x) { return capibara::bind(primitive("select_and_scatter"), x, attrs); },
                    {values({4, 6}), values({4, 3}, DType::float32, 2), scalar(0.125f)});
  }
}

Arrays sorted(const ScalarFunction& before, std::span<const Array> operands, int64_t axis) {
  Types types;
  for (const Array& x : operands) types.insert(types.end(), 2, scalar_type(x.dtype()));
  return capibara::bind(
      primitive("sort_general"), operands,
      {{"comparator", stage_region("test", before, types)}, {"dimension", axis}, {"is_stable", true}});
}

TEST(CompiledRegions, Sort) {
  // By magnitude, negative numbers first by a branch; many are equal.
  const ScalarFunction by_branch = [](std::span<const Array> x) {
    const auto by_size = [](const Array& a, const Array& b) {
      return lax::lt(lax::round(lax::abs(a)), lax::round(lax::abs(b)));
    };
    const auto negative = [](const Array& a, const Array&) { return lax::lt(a, scalar(0)); };
    return Arrays{
        lax::cond(lax::eq(lax::lt(x[0], scalar(0)), lax::lt(x[1], scalar(0))), by_size, negative, x[0], x[1])};
  };
  const ScalarFunction ascending = [](std::span<const Array> x) { return Arrays{lax::lt(x[0], x[1])}; };
  const ScalarFunction descending = [](std::span<const Array> x) {
    return Arrays{lax::gt(lax::round(x[2]), lax::round(x[3]))};
  };
  const ScalarFunction downwards = [](std::span<const Array> x) { return Arrays{lax::gt(x[2], x[3])}; };
  // Ascending by one operand; ties descending by the other.
  const ScalarFunction both = [](std::span<const Array> x) {
    const Array a = lax::round(x[0]), b = lax::round(x[1]);
    return Arrays{lax::bitwise_or(lax::lt(a, b), lax::bitwise_and(lax::eq(a, b), lax::lt(x[3], x[2])))};
  };
  for (const ScalarFunction& before : {by_branch, ascending, descending, downwards, both}) {
    for (int64_t axis : {0, 1}) {
      expect_compiled([&](std::span<const Array> x) { return sorted(before, x, axis); },
                      {values({21, 70}, DType::float32, 3), values({21, 70}, DType::float32, 2)}, 0);
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
