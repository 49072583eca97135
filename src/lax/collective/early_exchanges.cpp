// Gradients are summed right after they are computed, not at the end of the function that requested them:
//
//   a = dot ..;  b = dot ..;  c = process_reduce b;  d = process_reduce a
//       ->    a = dot ..;  d = process_reduce a;  b = dot ..;  c = process_reduce b
//
// A backend with asynchronous exchanges computes the other matmuls in the meantime.
#include "lax/collective/early_exchanges.h"

#include <algorithm>
#include <tuple>

#include "lax/collective/process_exchange.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"

namespace capibara {

namespace {

constexpr std::size_t max_steps = 16;  // between a value and its exchange

// True for a step without matmuls or nested programs: it may move with the exchange that it leads to.
bool is_small_step(const Equation& equation) {
  const Traits& traits = equation.primitive->traits;
  return equation.effects.empty() && equation.outputs.size() == 1 && !holds_programs(equation.attrs) &&
         (traits.elementwise != Elementwise::no || traits.moves != Moves::no ||
          equation.primitive == prim::all_gather());
}

struct Order {
  const Program& program;
  std::vector<int> definition;  // of each variable: its equation, -1 for inputs
  std::vector<bool> moves;      // by equation

  explicit Order(const Program& own)
      : program(own), definition(static_cast<std::size_t>(own.var_count()), -1), moves(own.equations().size(), false) {
    for (std::size_t e = 0; e < moves.size(); ++e) {
      for (Var output : program.equations()[e].outputs) {
        if (!output.dropped()) definition[static_cast<std::size_t>(output.id)] = static_cast<int>(e);
      }
    }
    for (std::size_t e = 0; e < moves.size(); ++e) {
      if (!is_process_exchange(program.equations()[e].primitive)) continue;
      std::size_t steps = 0;
      mark(static_cast<int>(e), steps);
    }
  }

  void mark(int e, std::size_t& steps) {
    moves[static_cast<std::size_t>(e)] = true;
    for (Atom input : program.equations()[static_cast<std::size_t>(e)].inputs) {
      const int from = input.is_literal() ? -1 : definition[static_cast<std::size_t>(input.code)];
      if (from < 0 || moves[static_cast<std::size_t>(from)] || ++steps > max_steps) continue;
      if (is_small_step(program.equations()[static_cast<std::size_t>(from)])) mark(from, steps);
    }
  }

  Program ordered() const {
    std::vector<std::tuple<int, int, int>> keys;  // the equation that it follows; whether it moves; itself
    for (std::size_t e = 0; e < moves.size(); ++e) {
      const int self = static_cast<int>(e);
      int behind = -1;
      for (Atom input : program.equations()[e].inputs) {
        const int from = input.is_literal() ? -1 : definition[static_cast<std::size_t>(input.code)];
        if (from >= 0)
          behind = std::max(
              behind, moves[static_cast<std::size_t>(from)] ? std::get<0>(keys[static_cast<std::size_t>(from)]) : from);
      }
      keys.push_back(moves[e] ? std::tuple(behind, 1, self) : std::tuple(self, 0, self));
    }
    if (std::is_sorted(keys.begin(), keys.end())) return program;
    std::sort(keys.begin(), keys.end());
    Program::Body body = program.body();
    body.equations.clear();
    for (const auto& key : keys)
      body.equations.push_back(program.equations()[static_cast<std::size_t>(std::get<2>(key))]);
    return Program(std::move(body));
  }
};

}  // namespace

Program with_early_exchanges(const Program& program) {
  const std::vector<Equation>& equations = program.equations();
  const auto exchanges = std::count_if(equations.begin(), equations.end(), [](const Equation& equation) {
    return is_process_exchange(equation.primitive);
  });
  return exchanges == 0 ? program : Order(program).ordered();
}

}  // namespace capibara
