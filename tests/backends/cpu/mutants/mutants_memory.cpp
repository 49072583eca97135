// Samples of results written over the values that they replace: updates, carries, scatters, donated inputs.
#include "backends/cpu/mutants/mutants.h"

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/groups/reuse.h"
#include "backends/cpu/rewrites/unshare.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

// True if a loop body writes a result over the carry that it replaces.
bool replaces_a_carry(const Program& program) {
  cpu::Analyses analyses;
  const Program best = cpu::unshare(cpu::optimised(program));
  for (const Equation& equation : best.equations()) {
    if (equation.primitive != prim::scan()) continue;
    const ScanView view(equation);
    const Program body = cpu::unshare(view.body());
    for (std::size_t i = 0; i < view.carry(); ++i) {
      if (cpu::may_replace(analyses.of(body), body.invars()[view.consts() + i], i)) return true;
    }
  }
  return false;
}

// True if the program allocates less than two arrays of its first input's type.
bool needs_no_copy(const Program& program) {
  const ArrayType type = program.type(program.invars()[0]);
  return cpu::lower_to_loops(cpu::optimised(program)).arena_bytes < 2 * type.size() * storage_size(type.dtype);
}

bool takes_an_input(const Program& program) {
  const cpu::Lowered lowered =
      cpu::lower_to_loops(cpu::optimised(program), std::vector<bool>(program.invars().size(), true));
  return std::any_of(lowered.outputs.begin(), lowered.outputs.end(), [](const cpu::Lowered::Output& output) {
    return output.from == cpu::Lowered::Output::From::donated;
  });
}

std::vector<Input> rows(const Ints& n) {
  return {floats({n[0], n[1]}), floats({n[0], n[1]}), integers({}, -1, static_cast<double>(n[0]) + 1)};
}

Arrays loop(const lax::detail::FlatFunction& body, const Arrays& carry, int64_t length) {
  return lax::detail::scan_flat(body, carry, {lax::iota(DType::int32, length)}, std::nullopt, false, 1);
}

Recognizer updates_in_loops() {
  return {"carries updated in place",
          replaces_a_carry,
          {{"rows",
            {20, 17},
            rows,
            [](std::span<const Array> x) {
              return loop(
                  [&](std::span<const Array> both) {
                    const Array row = lax::dynamic_slice_in_dim(both[0], both[1], 1, 0),
                                other = lax::dynamic_slice_in_dim(both[0], lax::add(both[1], x[2]), 1, 0);
                    return Arrays{lax::dynamic_update_slice_in_dim(
                                      both[0], lax::add(lax::mul(row, number(row, 0.5)), other), both[1], 0),
                                  row};
                  },
                  {x[0]}, 8);
            }},
           {"elements",
            {20, 17},
            rows,
            [](std::span<const Array> x) {
              return loop(
                  [&](std::span<const Array> both) {
                    const Array most = lax::reduce_max(both[0], {.axes = {1}});
                    const Array next = lax::sub(both[0], lax::mul(x[1], number(x[1], 0.25)));
                    return Arrays{next, most};
                  },
                  {x[0]}, 5);
            }},
           {"two carries",
            {20, 17},
            rows,
            [](std::span<const Array> x) {
              return lax::detail::scan_flat(
                  [&](std::span<const Array> both) {
                    const Array next = lax::add(both[0], lax::rev(both[1], {0}));
                    return Arrays{lax::mul(next, number(next, 0.5)),
                                  lax::sub(both[1], lax::mul(both[0], number(next, 0.125)))};
                  },
                  {x[0], x[1]}, {}, 4, false, 1);
            }},
           {"scatter", {20, 17}, rows, [](std::span<const Array> x) {
              return loop(
                  [&](std::span<const Array> both) {
                    const Array places =
                        lax::reshape(lax::add(lax::broadcast(both[1], {3}), lax::iota(DType::int32, 3)), {3, 1});
                    const Array taken = lax::gather(both[0], places, {{1}, {0}, {0}, {}, {}}, {1, both[0].shape(1)});
                    return Arrays{lax::scatter_add(both[0], places, lax::mul(taken, number(taken, 0.5)),
                                                   {{1}, {0}, {0}, {}, {}})};
                  },
                  {x[0]}, 6);
            }}}};
}

Recognizer updates() {
  return {
      "updates in place",
      needs_no_copy,
      {{"slice",
        {40, 50},
        rows,
        [](std::span<const Array> x) {
          const Array y = lax::tanh(x[0]), row = lax::dynamic_slice_in_dim(y, x[2], 1, 0);
          return Arrays{lax::mul(lax::dynamic_update_slice_in_dim(y, lax::mul(row, number(row, 2)), x[2], 0), x[1])};
        }},
       {"static",
        {40, 50},
        rows,
        [](std::span<const Array> x) {
          const Array y = lax::exp(x[0]), part = lax::slice_in_dim(x[1], 0, x[1].shape(0) / 2);
          return Arrays{lax::tanh(lax::dynamic_update_slice(y, part, {Array(int32_t{3}), Array(int32_t{0})}))};
        }},
       {"scatter", {40, 50}, rows, [](std::span<const Array> x) {
          const Array y = lax::tanh(x[0]),
                      places = lax::reshape(lax::add(lax::broadcast(x[2], {4}), lax::iota(x[2].dtype(), 4)), {4, 1});
          return Arrays{lax::scatter_add(y, places, lax::slice_in_dim(x[1], 0, 4), {{1}, {0}, {0}, {}, {}})};
        }}}};
}

Recognizer donations() {
  Recognizer result{"results in donated memory",
                    takes_an_input,
                    {{"elements",
                      {200, 90},
                      rows,
                      [](std::span<const Array> x) {
                        return Arrays{lax::sub(x[0], lax::mul(x[1], number(x[1], 2))), lax::add(x[1], number(x[1], 1))};
                      }},
                     {"update",
                      {200, 90},
                      rows,
                      [](std::span<const Array> x) {
                        const Array row = lax::dynamic_slice_in_dim(x[1], x[2], 2, 0);
                        return Arrays{lax::dynamic_update_slice_in_dim(
                            x[0], lax::add(row, lax::dynamic_slice_in_dim(x[0], x[2], 2, 0)), x[2], 0)};
                      }},
                     {"loop",
                      {200, 90},
                      rows,
                      [](std::span<const Array> x) {
                        return loop(
                            [&](std::span<const Array> both) {
                              return Arrays{lax::dynamic_update_slice_in_dim(
                                  both[0], lax::dynamic_slice_in_dim(x[1], both[1], 1, 0), lax::add(both[1], x[2]), 0)};
                            },
                            {x[0]}, 5);
                      }},
                     {"exchanged", {200, 90}, rows, [](std::span<const Array> x) {
                        return Arrays{lax::mul(x[1], number(x[1], 3)), lax::sub(x[0], x[1])};
                      }}}};
  for (Sample& sample : result.samples) sample.donates = true;
  return result;
}

Recognizer copies() {
  auto applies = [](const Program& program) {
    return cpu::unshare(program).equations().size() > program.equations().size();
  };
  return {"a broadcast for each reader",
          applies,
          {{"broadcasts",
            {20, 17},
            rows,
            [](std::span<const Array> x) {
              const Array row = lax::broadcast_in_dim(lax::index_in_dim(x[0], 0, 0, false), x[0].shape(), {1});
              const Array places = lax::broadcasted_iota(DType::int32, x[0].shape(), 0);
              return Arrays{lax::mul(row, x[0]), lax::add(row, x[1]),
                            lax::lt(places, lax::broadcast(x[2], x[0].shape())), lax::mul(places, places)};
            }},
           {"in loops", {20, 17}, rows, [](std::span<const Array> x) {
              const Array half = lax::broadcast(number(x[0], 0.5), x[0].shape());
              const Arrays out =
                  loop([&](std::span<const Array> both) { return Arrays{lax::add(lax::mul(both[0], half), half)}; },
                       {lax::add(x[0], half)}, 3);
              return Arrays{out[0], lax::sub(x[1], half)};
            }}}};
}

}  // namespace

std::vector<Recognizer> memory_recognizers() { return {updates_in_loops(), updates(), donations(), copies()}; }

}  // namespace capibara::mutants
