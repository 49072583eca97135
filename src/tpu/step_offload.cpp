// Moves residuals of the layers to the host: arrays that the forward loop stacks for the backward loop leave the device
// there and return one layer at a time, as in jax's save_and_offload_only_these_names.
#include <capibara/error.h>

#include <set>

#include "program/ir/handles.h"
#include "program/ir/views.h"
#include "tpu/step_program.h"

namespace capibara::tpu {

namespace {

// The identity that tells XLA the memory space of its value.
Equation moved(const Program::Body& body, Atom from, Var to, const char* memory, Source source) {
  Attr::List types;
  types.emplace_back(body.var_types[static_cast<std::size_t>(to.id)]);
  const std::string attributes =
      concat("has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = \"", memory, "\"}");
  return {prim::custom_call(),
          {from},
          {to},
          {{"call_target_name", std::string("annotate_device_placement")},
           {"result_types", std::move(types)},
           {"has_side_effect", false},  // set only for XLA, which must not merge the copies
           {"attributes", attributes}},
          {},
          source};
}

Var variable_like(Program::Body& body, Atom atom) {
  body.var_types.push_back(body.var_types[static_cast<std::size_t>(atom.var().id)]);
  return Var{static_cast<int32_t>(body.var_types.size() - 1)};
}

// The loop's body with these stacked results on the host.
Program with_host_results(const ScanView& loop, const std::set<std::size_t>& chosen) {
  Program::Body body = loop.body().body();
  for (const std::size_t i : chosen) {
    Atom& result = body.outputs[loop.carry() + i];
    const Var host = variable_like(body, result);
    body.equations.push_back(moved(body, result, host, "pinned_host", {}));
    result = host;
  }
  return Program(std::move(body));
}

// The loop's body with these stacked operands on the host.
Program with_host_operands(const ScanView& loop, const std::set<std::size_t>& chosen) {
  Program::Body body = loop.body().body();
  std::vector<Equation> fetched;
  for (const std::size_t i : chosen) {
    Var& operand = body.invars[loop.first_xs() + i];
    const Var host = variable_like(body, operand);
    fetched.push_back(moved(body, host, operand, "device", {}));
    operand = host;
  }
  body.equations.insert(body.equations.begin(), fetched.begin(), fetched.end());
  return Program(std::move(body));
}

}  // namespace

Program offload_residuals(const Program& program) {
  Program::Body body = program.body();
  const auto is_scan = [](const Equation& equation) { return equation.primitive == prim::scan(); };
  for (Equation& forward : body.equations) {
    if (!is_scan(forward) || ScanView(forward).reverse()) continue;
    const ScanView first(forward);
    for (Equation& backward : body.equations) {
      if (!is_scan(backward) || !ScanView(backward).reverse()) continue;
      const ScanView second(backward);
      std::set<std::size_t> results, operands;
      for (std::size_t y = 0; y < first.ys(); ++y) {
        const Var stack = forward.outputs[first.carry() + y];
        for (std::size_t x = 0; x < second.xs(); ++x) {
          if (stack.dropped() || backward.inputs[second.first_xs() + x] != Atom(stack)) continue;
          results.insert(y);
          operands.insert(x);
        }
      }
      if (results.empty()) continue;
      forward.attrs = first.with(with_host_results(first, results), first.consts(), first.carry());
      backward.attrs = second.with(with_host_operands(second, operands), second.consts(), second.carry());
      return Program(std::move(body));
    }
  }
  throw ValueError("plan: the step has no residuals that its layers could keep on the host");
}

}  // namespace capibara::tpu
