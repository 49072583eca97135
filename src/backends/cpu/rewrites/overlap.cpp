// Each exchange is started where it was, and waited for where its result is first read:
//
//   g = process_reduce a;  b = dot c d;  e = mul b g
//       ->    g', n = exchange_start a;  b = dot c d;  g = exchange_wait g' n a;  e = mul b g
//
// Exchanges are started in their original order, which is the same in every process.
#include "backends/cpu/rewrites/overlap.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "backends/cpu/kernels/exchange.h"
#include "lax/collective/process_exchange.h"
#include "program/ir/copy.h"

namespace capibara::cpu {

namespace {

bool wanted() {
  const char* given = std::getenv("CAPIBARA_OVERLAP");
  return !given || std::string_view(given) != "0";
}

class Overlap {
 public:
  explicit Overlap(const Program& program) : copy_(program) {}

  Program operator()() {
    const std::vector<Equation>& equations = copy_.from().equations();
    for (std::size_t e = 0; e < equations.size(); ++e) {
      const Equation& equation = equations[e];
      wait_for_those_read(equation.inputs);
      const bool read_next = e + 1 < equations.size() && reads(equations[e + 1].inputs, equation.outputs[0]);
      if (!is_process_exchange(equation.primitive) || equation.outputs[0].dropped() || read_next)
        copy_.copy(equation);
      else
        start(equation);
    }
    wait_for_those_read(copy_.from().outputs());
    while (!under_way_.empty()) wait(0);  // results that no one reads
    return copy_.finish();
  }

 private:
  struct UnderWay {
    Equation exchange;
    std::vector<Atom> operands;  // of the wait, in the new program
  };

  static bool reads(const std::vector<Atom>& inputs, Var var) {
    return std::find(inputs.begin(), inputs.end(), Atom(var)) != inputs.end();
  }

  void start(const Equation& exchange) {
    const Atom operand = copy_(exchange.inputs[0]);
    const std::vector<Var> made =
        copy_.builder().add_equation(exchange_start(), {operand}, start_attrs(exchange), exchange.source);
    under_way_.push_back({exchange, {made[0], made[1], operand}});
  }

  void wait(std::size_t i) {
    const UnderWay one = under_way_[i];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
    const std::vector<Var> made = copy_.builder().add_equation(exchange_wait(), one.operands, {}, one.exchange.source);
    copy_.bind(one.exchange.outputs[0], made[0]);
  }

  void wait_for_those_read(const std::vector<Atom>& inputs) {
    for (std::size_t i = 0; i < under_way_.size();) {
      if (reads(inputs, under_way_[i].exchange.outputs[0]))
        wait(i);
      else
        ++i;
    }
  }

  Copy copy_;
  std::vector<UnderWay> under_way_;
};

}  // namespace

Program overlapped(const Program& program) {
  const std::vector<Equation>& equations = program.equations();
  const bool exchanges = std::any_of(equations.begin(), equations.end(),
                                     [](const Equation& equation) { return is_process_exchange(equation.primitive); });
  return exchanges && wanted() ? Overlap(program)() : program;
}

}  // namespace capibara::cpu
