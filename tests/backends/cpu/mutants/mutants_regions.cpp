// Samples of operations with scalar regions, and of scans written in another order.
#include "backends/cpu/mutants/mutants.h"

#include "backends/cpu/execution/backend.h"
#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/regions/registers.h"
#include "backends/cpu/rewrites/compose_regions.h"
#include "backends/cpu/rewrites/unroll.h"
#include "backends/cpu/rewrites/unshare.h"
#include "backends/cpu/rewrites/weighted_sum.h"
#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "program/ir/handles.h"

#include <capibara/control.h>
#include <capibara/lax.h>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

bool any_equation(const Program& program, const std::function<bool(const Equation&)>& holds) {
  for (const Equation& equation : program.equations()) {
    if (holds(equation)) return true;
  }
  return false;
}

std::function<bool(const Program&)> composes(std::string name) {
  return [=](const Program& program) {
    return any_equation(program, [&](const Equation& equation) {
      return equation.primitive.is(name) && static_cast<bool>(cpu::region_rule(program, equation));
    });
  };
}

Array product_and_sum(const Array& a, const Array& b) { return lax::add(a, lax::mul(number(a, 0.5), b)); }
Array greater_size(const Array& a, const Array& b) { return lax::select(lax::gt(lax::abs(a), lax::abs(b)), a, b); }

Recognizer reductions() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}), floats({n[0], n[1]}), floats({})};
  };
  return {"reductions by a region",
          composes("reduce"),
          {{"one",
            {6, 9},
            inputs,
            [](std::span<const Array> x) {
              return Arrays{lax::reduce(x[0], x[2], product_and_sum, {1}), lax::reduce(x[0], x[2], lax::add, {0})};
            }},
           {"two", {6, 9}, inputs, [](std::span<const Array> x) {
              const auto both = [](const Arrays& a, const Arrays& b) {
                const Array larger = lax::gt(a[0], b[0]);
                return Arrays{lax::select(larger, a[0], b[0]), lax::select(larger, a[1], b[1])};
              };
              return lax::reduce(Arrays{x[0], x[1]}, {number(x[0], -5), number(x[1], 0)}, both, {1});
            }}}};
}

Recognizer windows() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), floats({})}; };
  Recognizer result{"windows by a region",
                    composes("reduce_window"),
                    {{"sliding",
                      {6, 9},
                      inputs,
                      [](std::span<const Array> x) {
                        return Arrays{lax::reduce_window(x[0], x[1], greater_size, {2, 3},
                                                         {.strides = {1, 2}, .padding_mode = "SAME"}),
                                      lax::reduce_window(x[0], x[1], product_and_sum, {2, 2})};
                      }},
                     {"prefixes",
                      {6, 9},
                      inputs,
                      [](std::span<const Array> x) {
                        const int64_t n = x[0].shape(1);
                        return Arrays{lax::reduce_window(x[0], x[1], greater_size, {1, n},
                                                         {.padding = lax::Padding{{0, 0}, {n - 1, 0}}})};
                      }},
                     {"suffixes", {6, 9}, inputs, [](std::span<const Array> x) {
                        const int64_t n = x[0].shape(1);
                        return Arrays{lax::reduce_window(x[0], x[1], greater_size, {1, n},
                                                         {.padding = lax::Padding{{0, 0}, {0, n - 1}}})};
                      }}}};
  result.samples.back().keeps_regions = result.samples.back().finite = true;
  return result;
}

Program region(Array (*fold)(const Array&, const Array&), DType dtype) {
  return stage_region("test", [&](std::span<const Array> x) { return Arrays{fold(x[0], x[1])}; },
                      {scalar_type(dtype), scalar_type(dtype)});
}

Recognizer scatters() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0]}), integers({n[1], 1}, -2, static_cast<double>(n[0]) + 2), floats({n[1]})};
  };
  auto scatter = [](const char* mode) {
    return [=](std::span<const Array> x) {
      return capibara::bind(primitive("scatter"), Arrays{x[0], x[1], x[2]},
                            {{"dimension_numbers", ScatterDimensionNumbers{{}, {0}, {0}, {}, {}}},
                             {"indices_are_sorted", false},
                             {"unique_indices", false},
                             {"mode", mode},
                             {"update_jaxpr", region(product_and_sum, x[0].dtype())},
                             {"update_consts", Attr::List{}}});
    };
  };
  return {"scatters by a region",
          composes("scatter"),
          {{"dropping", {7, 9}, inputs, scatter("fill_or_drop")}, {"clipping", {7, 9}, inputs, scatter("clip")}}};
}

Recognizer selections() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}), floats({n[0], (n[1] + 1) / 2}), floats({})};
  };
  return {"selections in windows by a region",
          composes("select_and_scatter"),
          {{"by size", {5, 8}, inputs, [](std::span<const Array> x) {
              const DType dtype = x[0].dtype();
              const Program select = stage_region(
                  "test", [](std::span<const Array> y) { return Arrays{lax::ge(lax::abs(y[0]), lax::abs(y[1]))}; },
                  {scalar_type(dtype), scalar_type(dtype)});
              return capibara::bind(primitive("select_and_scatter"), x,
                                    {{"select_jaxpr", select},
                                     {"select_consts", Attr::List{}},
                                     {"scatter_jaxpr", region(product_and_sum, dtype)},
                                     {"scatter_consts", Attr::List{}},
                                     {"window_dimensions", Ints{1, 2}},
                                     {"window_strides", Ints{1, 2}},
                                     {"padding", Attr::List{Attr(Ints{0, 0}), Attr(Ints{0, x[0].shape(1) % 2})}}});
            }}}};
}

Recognizer sorts() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{integers({n[0], n[1]}, -20, 20), integers({n[0], n[1]}, -20, 20)};
  };
  auto sorted = [](ScalarFunction before, int64_t axis) {
    return [=](std::span<const Array> x) {
      Types types;
      for (const Array& y : x) types.insert(types.end(), 2, scalar_type(y.dtype()));
      return capibara::bind(
          primitive("sort_general"), x,
          {{"comparator", stage_region("test", before, types)}, {"dimension", axis}, {"is_stable", true}});
    };
  };
  const ScalarFunction up = [](std::span<const Array> x) { return Arrays{lax::lt(x[0], x[1])}; };
  const ScalarFunction down = [](std::span<const Array> x) { return Arrays{lax::gt(x[2], x[3])}; };
  const ScalarFunction by_size = [](std::span<const Array> x) {
    return Arrays{lax::lt(lax::abs(x[0]), lax::abs(x[1]))};
  };
  const ScalarFunction by_both = [](std::span<const Array> x) {
    return Arrays{lax::bitwise_or(lax::lt(x[0], x[1]), lax::bitwise_and(lax::eq(x[0], x[1]), lax::lt(x[2], x[3])))};
  };
  return {"sorts by a region",
          composes("sort_general"),
          {{"up", {4, 21}, inputs, sorted(up, 1)},
           {"down", {21, 4}, inputs, sorted(down, 0)},
           {"by size", {4, 21}, inputs, sorted(by_size, 1)},
           {"by both", {4, 21}, inputs, sorted(by_both, 1)}}};
}

// A scan with one carry: x[0] steps, x[1] initial value, x[2] a constant.
FlatFunction steps(bool reverse, int64_t unroll, bool stacks) {
  return [=](std::span<const Array> x) {
    return lax::detail::scan_flat(
        [&](std::span<const Array> both) {
          const Array next = lax::add(lax::mul(both[0], lax::tanh(both[1])), lax::max(x[2], both[1]));
          return stacks ? Arrays{next, lax::mul(next, both[1])} : Arrays{next};
        },
        {x[1]}, {x[0]}, std::nullopt, reverse, unroll);
  };
}

Recognizer unrolled() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), floats({n[1]}), floats({n[1]})}; };
  auto applies = [](const Program& program) {
    return any_equation(
        program, [&](const Equation& equation) { return static_cast<bool>(cpu::unroll_rule(program, equation)); });
  };
  return {"unrolled scans",
          applies,
          {{"forward", {11, 5}, inputs, steps(false, 3, true)}, {"backward", {10, 70}, inputs, steps(true, 4, true)}}};
}

Recognizer blocks() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), floats({n[1]}), floats({n[1]})}; };
  auto applies = [](const Program& program) {
    return any_equation(cpu::optimised(program), [&](const Equation& equation) {
      return equation.primitive == prim::scan() && cpu::runs_in_blocks(equation);
    });
  };
  const FlatFunction numbers = [](std::span<const Array> x) {
    const Array first = lax::index_in_dim(x[2], 0, 0, false);
    return lax::detail::scan_flat(
        [&](std::span<const Array> both) {
          const Array factor = lax::mul(both[1], number(both[1], 0.75));
          return Arrays{lax::add(lax::mul(both[0], lax::broadcast(factor, both[0].shape())), both[2]), factor,
                        lax::sub(both[0], both[2])};
        },
        {x[1], first}, {x[0]}, std::nullopt, false, 1);
  };
  return {"scans by blocks",
          applies,
          {{"stacked", {6, 200}, inputs, steps(false, 1, true)},
           {"last", {6, 1100}, inputs, steps(true, 1, false)},
           {"with numbers", {6, 200}, inputs, numbers}}};
}

Recognizer columns() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[1], n[0]}), floats({n[1]}), floats({n[1]})}; };
  auto applies = [](const Program& program) {
    return any_equation(cpu::read_columns(cpu::unshare(cpu::optimised(program))),
                        [](const Equation& equation) { return equation.attrs.has("layouts"); });
  };
  auto moved = [](bool reverse, bool flipped) {
    return [=](std::span<const Array> x) {
      Array sequence = lax::transpose(x[0], {1, 0});
      if (flipped) sequence = lax::rev(sequence, {0});
      const Arrays results = steps(reverse, 1, true)(Arrays{sequence, x[1], x[2]});
      return Arrays{results[0], lax::transpose(results[1], {1, 0})};
    };
  };
  return {"scans along columns",
          applies,
          {{"forward", {9, 130}, inputs, moved(false, false)}, {"flipped", {9, 130}, inputs, moved(true, true)}}};
}

Recognizer registers() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), floats({n[1]}), floats({n[1]})}; };
  auto applies = [](const Program& program) {
    const Program best = cpu::optimised(program);
    return any_equation(best, [&](const Equation& equation) {
      return equation.primitive->traits.control != Control::none && cpu::fits_registers(best, equation);
    });
  };
  const FlatFunction matrices = [](std::span<const Array> x) {
    return lax::detail::scan_flat(
        [&](std::span<const Array> both) {
          const Array square = lax::mul(lax::broadcast_in_dim(both[0], {both[0].shape(0), both[0].shape(0)}, {0}),
                                        lax::broadcast_in_dim(both[1], {both[0].shape(0), both[0].shape(0)}, {1}));
          return Arrays{lax::tanh(lax::reduce_sum(square, {.axes = {1}})), lax::reduce_max(square, {.axes = {0}})};
        },
        {x[1]}, {x[0]}, std::nullopt, false, 1);
  };
  const FlatFunction branches = [](std::span<const Array> x) {
    return lax::detail::scan_flat(
        [&](std::span<const Array> both) {
          const Array first = lax::index_in_dim(both[0], 0, 0, false), chooses = lax::gt(first, number(first, 0));
          const auto yes = [](const Array& a, const Array& b) { return lax::add(a, b); };
          const auto no = [](const Array& a, const Array& b) { return lax::mul(a, b); };
          return Arrays{lax::cond(chooses, yes, no, both[0], both[1]), first};
        },
        {x[1]}, {x[0]}, std::nullopt, true, 1);
  };
  return {"loops in registers",
          applies,
          {{"elementwise", {12, 3}, inputs, steps(false, 1, true)},
           {"matrices", {9, 3}, inputs, matrices},
           {"branches", {9, 2}, inputs, branches}}};
}

Recognizer weighted_sums() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0]}), floats({n[1], n[0], n[2]}), floats({n[1], n[0]}), floats({n[1], n[2]})};
  };
  auto dot = [](const Array& a, const Array& b, Ints a_axes, Ints b_axes, Ints a_batch = {}, Ints b_batch = {}) {
    return lax::dot_general(a, b, {std::move(a_axes), std::move(b_axes), std::move(a_batch), std::move(b_batch)});
  };
  auto applies = [](const Program& program) {
    return any_equation(program, [&](const Equation& equation) {
      return static_cast<bool>(cpu::weighted_sum_rule(program, equation));
    });
  };
  return {"weighted sums",
          applies,
          {{"of stages",
            {7, 20, 2},
            inputs,
            [=](std::span<const Array> x) {
              const Array sum = dot(x[0], x[1], {0}, {1});
              return Arrays{sum, lax::add(x[3], lax::mul(sum, number(sum, 0.5)))};
            }},
           {"of a batch", {5, 12, 3}, inputs, [=](std::span<const Array> x) {
              return Arrays{dot(x[2], x[1], {1}, {1}, {0}, {0}), dot(x[1], x[2], {1}, {1}, {0}, {0})};
            }}}};
}

}  // namespace

std::vector<Recognizer> region_recognizers() {
  return {weighted_sums(), reductions(), windows(), scatters(), selections(),
          sorts(),         unrolled(),   blocks(),  columns(),  registers()};
}

}  // namespace capibara::mutants
