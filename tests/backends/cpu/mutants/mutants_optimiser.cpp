// Samples of programs that the optimiser's passes recognise.
#include "backends/cpu/mutants/mutants.h"

#include "compiler/optimise/passes.h"
#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "program/ir/nested.h"

#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/numpy.h>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

int count(const Program& program, std::string_view name) {
  int found = 0;
  for (const Equation& equation : program.equations()) {
    found += equation.primitive.is(name);
    for_each_program(equation.attrs, [&](const Program& inner) { found += count(inner, name); });
  }
  return found;
}

// True for programs that a pass makes shorter.
std::function<bool(const Program&)> shortens(Program (*pass)(const Program&)) {
  return [pass](const Program& program) {
    return random_programs::equation_count(passes::dce(pass(program))) < random_programs::equation_count(program);
  };
}
std::function<bool(const Program&)> removes(Program (*pass)(const Program&), std::string name) {
  return [=](const Program& program) { return count(passes::dce(pass(program)), name) < count(program, name); };
}

std::vector<Input> matrix(const Ints& n) { return {floats({n[0], n[1]})}; }
std::vector<Input> two_matrices(const Ints& n) { return {floats({n[0], n[1]}), floats({n[0], n[1]})}; }
std::vector<Input> whole_matrices(const Ints& n) {
  return {integers({n[0], n[1]}, -9, 9), integers({n[0], n[1]}, -9, 9)};
}

Recognizer algebra() {
  return {"simplify: arithmetic",
          shortens(passes::simplify),
          {{"neutral",
            {5, 7},
            two_matrices,
            [](std::span<const Array> x) {
              const Array a = lax::mul(x[0], number(x[0], 1)), b = lax::sub(a, number(x[0], 0)),
                          c = lax::div(b, number(x[0], 1));
              return Arrays{lax::add(c, lax::mul(spread(x[1], -0.0), x[1])), lax::add(x[1], spread(x[1], -0.0))};
            }},
           {"twice",
            {5, 7},
            two_matrices,
            [](std::span<const Array> x) {
              const Array a = lax::neg(lax::neg(x[0])), b = lax::select(lax::lt(x[0], x[1]), a, a);
              return Arrays{lax::mul(b, x[1]), lax::integer_pow(b, 1), lax::copy(lax::stop_gradient(a))};
            }},
           {"conversions",
            {5, 7},
            two_matrices,
            [](std::span<const Array> x) {
              const Array narrow = lax::convert_element_type(x[0], DType::bfloat16),
                          wide = lax::convert_element_type(narrow, DType::float64);
              const Array whole = lax::convert_element_type(lax::convert_element_type(x[1], DType::int8), DType::int32);
              return Arrays{lax::convert_element_type(wide, DType::float32),
                            lax::convert_element_type(whole, DType::float32),
                            lax::convert_element_type(whole, DType::uint8)};
            }},
           {"whole numbers",
            {5, 7},
            whole_matrices,
            [](std::span<const Array> x) {
              const Array a = lax::mul(x[0], number(x[0], 0)), b = lax::bitwise_and(x[0], number(x[0], -1)),
                          c = lax::bitwise_or(b, number(x[0], 0));
              const Array d = lax::bitwise_xor(lax::bitwise_not(lax::bitwise_not(c)), number(x[0], 0)),
                          e = lax::shift_left(d, number(x[0], 0));
              return Arrays{lax::add(a, x[1]), lax::add(e, number(x[0], 0)),
                            lax::convert_element_type(lax::convert_element_type(e, DType::int64), DType::int16)};
            }},
           {"parts", {5, 7}, two_matrices, [](std::span<const Array> x) {
              const Array z = lax::complex(x[0], x[1]);
              return Arrays{lax::real(z), lax::mul(lax::imag(z), x[0])};
            }}}};
}

Recognizer scalars() {
  return {"simplify: scalars",
          shortens(passes::simplify),
          {{"spread",
            {6, 4},
            two_matrices,
            [](std::span<const Array> x) {
              const Array two = spread(x[0], 2), half = spread(x[0], 0.5);
              const Array a = lax::mul(x[0], two), b = lax::clamp(spread(x[0], -1), a, spread(x[0], 1));
              return Arrays{lax::add(b, lax::mul(two, half)), lax::select(lax::lt(x[1], two), x[1], half)};
            }},
           {"reshapes", {6, 4}, two_matrices, [](std::span<const Array> x) {
              const Shape flat = {x[0].size()};
              const Array a = lax::reshape(lax::exp(x[0]), flat), b = lax::reshape(lax::tanh(x[1]), flat);
              return Arrays{lax::mul(lax::add(a, b), a)};
            }}}};
}

Recognizer shapes() {
  return {"simplify: shapes",
          shortens(passes::simplify),
          {{"reshapes",
            {4, 6},
            matrix,
            [](std::span<const Array> x) {
              const Shape &s = x[0].shape(), flat = {x[0].size()}, longer = {s[0], 1, s[1]};
              const Array a = lax::reshape(lax::reshape(x[0], flat), longer);
              return Arrays{lax::squeeze(a, {1}), lax::broadcast_in_dim(a, {s[0], 3, s[1]}, {0, 1, 2})};
            }},
           {"transposes",
            {4, 4},
            two_matrices,
            [](std::span<const Array> x) {
              const Array a = lax::transpose(lax::transpose(x[0], {1, 0}), {1, 0}),
                          b = lax::transpose(lax::reshape(x[1], {x[1].shape(0), 1, x[1].shape(1)}), {1, 0, 2});
              return Arrays{
                  a, b,
                  lax::transpose(lax::broadcast_in_dim(lax::index_in_dim(x[0], 0, 0, false), {x[0].shape(1), 3}, {0}),
                                 {1, 0})};
            }},
           {"slices",
            {4, 6},
            two_matrices,
            [](std::span<const Array> x) {
              const Shape& s = x[0].shape();
              const Array a = lax::slice(x[0], {0, 0}, s), b = lax::dynamic_slice(a, {Array(1), Array(2)}, s),
                          c = lax::dynamic_update_slice(b, x[1], {Array(3), Array(0)});
              const Array none = lax::slice(x[0], {0, 0}, {0, s[1]});
              return Arrays{lax::add(b, c), lax::concatenate({none, x[1], none}, 0),
                            lax::rev(lax::slice(x[1], {0, 0}, {s[0], 1}), {1})};
            }},
           {"reductions of nothing", {4, 6}, two_matrices, [](std::span<const Array> x) {
              const Array a = lax::expand_dims(x[0], {1}), b = lax::reduce_sum(a, {.axes = {1}}),
                          c = lax::reduce_max(a, {.axes = {1}});
              return Arrays{lax::mul(b, x[1]), c, lax::reduce_prod(x[1], {.axes = {}})};
            }}}};
}

Recognizer contractions() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1], n[2]}), floats({n[0], n[1], n[3]})};
  };
  return {"simplify: matmuls",
          removes(passes::simplify, "transpose"),
          {{"operands",
            {3, 5, 5, 5},
            inputs,
            [](std::span<const Array> x) {
              return Arrays{lax::dot_general(lax::transpose(x[0], {0, 2, 1}), lax::transpose(x[1], {0, 2, 1}),
                                             {{2}, {2}, {0}, {0}}),
                            lax::dot_general(lax::transpose(x[0], {2, 0, 1}), x[1], {{2}, {1}, {1}, {0}})};
            }},
           {"results", {3, 5, 5, 5}, inputs, [](std::span<const Array> x) {
              return Arrays{lax::transpose(lax::dot_general(x[0], x[1], {{1}, {1}, {0}, {0}}), {0, 2, 1})};
            }}}};
}

Recognizer indices() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}), integers({1}, -3, static_cast<double>(n[0]) + 3), floats({n[1]}),
                              integers({2}, -2, 6)};
  };
  auto gone = [](const Program& program) {
    const Program now = passes::simplify(program);
    return count(now, "gather") + count(now, "scatter") + count(now, "scatter-add") <
           count(program, "gather") + count(program, "scatter") + count(program, "scatter-add");
  };
  return {"simplify: indices",
          gone,
          {{"gather",
            {6, 5},
            inputs,
            [](std::span<const Array> x) {
              const Array row = lax::gather(x[0], x[1], {{0}, {0}, {0}, {}, {}}, {1, x[0].shape(1)},
                                            {.mode = lax::GatherScatterMode::clip});
              const Array one =
                  lax::gather(x[0], x[3], {{}, {0, 1}, {0, 1}, {}, {}}, {1, 1}, {.mode = lax::GatherScatterMode::clip});
              return Arrays{lax::mul(row, x[2]), one};
            }},
           {"scatter",
            {6, 5},
            inputs,
            [](std::span<const Array> x) {
              const ScatterDimensionNumbers rows{{0}, {0}, {0}, {}, {}};
              return Arrays{lax::scatter(x[0], x[1], x[2], rows),
                            lax::scatter_add(lax::exp(x[0]), x[1], x[2], rows, {.mode = lax::GatherScatterMode::clip})};
            }},
           {"scatter in a loop", {6, 5}, inputs, [](std::span<const Array> x) {
              return lax::detail::scan_flat(
                  [&](std::span<const Array> both) {
                    const Array place = lax::add(x[1], lax::broadcast(both[1], {1}));
                    return Arrays{lax::scatter_add(both[0], place, x[2], {{0}, {0}, {0}, {}, {}}),
                                  lax::gather(both[0], place, {{0}, {0}, {0}, {}, {}}, {1, x[0].shape(1)},
                                              {.mode = lax::GatherScatterMode::clip})};
                  },
                  {x[0]}, {lax::iota(DType::int32, 4)}, std::nullopt, false, 1);
            }}}};
}

// A reduction by a region, which lax::reduce would replace by a named reduction.
Array by_region(const Array& x, const Array& init, Array (*fold)(const Array&, const Array&), const Ints& dimensions) {
  const ArrayType type{{}, x.dtype(), false, false, {}};
  const Program region =
      stage_region("test", [&](std::span<const Array> y) { return Arrays{fold(y[0], y[1])}; }, {type, type});
  return capibara::bind(primitive("reduce"), Arrays{x, init}, {{"jaxpr", region}, {"dimensions", dimensions}})[0];
}

Recognizer reductions() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), integers({n[0], n[1]}, -9, 9)}; };
  return {"name reductions",
          removes(passes::name_reductions, "reduce"),
          {{"sums and extremes",
            {6, 9},
            inputs,
            [](std::span<const Array> x) {
              const auto highest = is_floating(x[0].dtype()) ? -std::numeric_limits<double>::infinity()
                                                             : static_cast<double>(iinfo(x[0].dtype()).min);
              return Arrays{by_region(x[0], number(x[0], 0), lax::add, {1}),
                            by_region(x[0], number(x[0], highest), lax::max, {0}),
                            by_region(x[0], number(x[0], 1), lax::mul, {0, 1})};
            }},
           {"bits", {6, 9}, inputs, [](std::span<const Array> x) {
              const Array& y = x[1];
              return Arrays{by_region(y, number(y, 0), lax::bitwise_or, {1}),
                            by_region(y, number(y, -1), lax::bitwise_and, {0}),
                            by_region(y, number(y, 0), lax::bitwise_xor, {0}),
                            by_region(y, number(y, static_cast<double>(iinfo(y.dtype()).max)), lax::min, {1})};
            }}}};
}

Recognizer common() {
  return {"merge equal equations",
          shortens(passes::cse),
          {{"exponentials",
            {5, 7},
            two_matrices,
            [](std::span<const Array> x) {
              const Array a = lax::exp(x[0]), b = lax::exp(x[0]), c = lax::dot_general(a, x[1], {{1}, {1}, {}, {}}),
                          d = lax::dot_general(b, x[1], {{1}, {1}, {}, {}});
              return Arrays{lax::add(c, d), lax::mul(a, b)};
            }},
           {"reductions", {5, 7}, two_matrices, [](std::span<const Array> x) {
              const Array a = lax::reduce_max(x[0], {.axes = {1}}), b = lax::reduce_max(x[0], {.axes = {1}});
              const Array low = lax::argmin(x[1], 0), again = lax::argmin(x[1], 0);
              return Arrays{lax::sub(a, b), lax::add(low, again), lax::cumsum(x[0]), lax::cumsum(x[0])};
            }}}};
}

Recognizer known() {
  return {
      "fold",
      shortens(passes::fold),
      {{"numbers",
        {5, 7},
        two_matrices,
        [](std::span<const Array> x) {
          const Array a = lax::exp(number(x[0], 0.5)), b = lax::sub(a, lax::mul(number(x[0], 3), number(x[0], -0.0)));
          const Array limit = lax::convert_element_type(lax::floor(lax::mul(b, number(x[0], 2))), DType::int32);
          return Arrays{lax::mul(x[0], b), lax::lt(lax::broadcasted_iota(DType::int32, x[1].shape(), 1),
                                                   lax::broadcast(limit, x[1].shape()))};
        }},
       {"arrays", {5, 7}, two_matrices, [](std::span<const Array> x) {
          const Array some = random_programs::array_of(ArrayType{{3}, x[0].dtype(), false, false, {}}, {1, -2, 0.5});
          const Array sorted = lax::sort(lax::add(some, some)),
                      sum = lax::reduce_sum(lax::div(sorted, number(x[0], 3)), {.axes = {0}});
          return Arrays{lax::add(x[0], lax::broadcast(sum, x[0].shape())), lax::mul(sorted, some)};
        }}}};
}

Recognizer invariants() {
  auto moves = [](const Program& program) {
    const Program now = passes::hoist(passes::lift_constants(program));
    return now.equations().size() > program.equations().size();
  };
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), floats({n[1]}), floats({n[1]})}; };
  return {"hoist",
          moves,
          {{"scan",
            {5, 9},
            inputs,
            [](std::span<const Array> x) {
              return lax::detail::scan_flat(
                  [&](std::span<const Array> both) {
                    const Array weight = lax::exp(x[2]), next = lax::add(lax::mul(both[0], weight), both[2]);
                    return Arrays{next, both[1], lax::mul(next, lax::tanh(lax::mul(weight, both[1])))};
                  },
                  {x[1], x[2]}, {x[0]}, std::nullopt, false, 1);
            }},
           {"while", {5, 9}, inputs, [](std::span<const Array> x) {
              return lax::detail::while_flat(
                  [&](std::span<const Array> state) { return Arrays{lax::lt(state[0], Array(int32_t{4}))}; },
                  [&](std::span<const Array> state) {
                    const Array weight = lax::tanh(x[2]), sums = lax::reduce_sum(x[0], {.axes = {0}});
                    return Arrays{lax::add(state[0], Array(int32_t{1})), lax::add(lax::mul(state[1], weight), sums),
                                  state[2]};
                  },
                  {lax::convert_element_type(Array(0), DType::int32), x[1], x[2]});
            }}}};
}

}  // namespace

std::vector<Recognizer> optimiser_recognizers() {
  return {algebra(), scalars(), shapes(), contractions(), indices(), reductions(), common(), known(), invariants()};
}

}  // namespace capibara::mutants
