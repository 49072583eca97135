// The graph on which layouts are propagated: values, and rules that relate their dimensions.
#pragma once

#include <capibara/factors.h>

#include "compiler/partition/propagate.h"

namespace capibara::sharding {

struct PropagatedValue {
  Layout layout;
  std::vector<bool> closed;  // dimensions that may not be split by more axes
  int64_t elements = 0;
};

enum class RuleKind : uint8_t {
  pass_through,  // elementwise, reshape, transpose, and the edges of loops and branches
  slice,         // dynamic_slice, dynamic_update_slice
  broadcast,
  other,
};

struct Rule {
  RuleKind kind;
  std::vector<int> operands, results;  // values; negative: a literal or unused
  Factors factors;
};

// The graph's values for a program's variables.
struct ProgramValues {
  std::vector<int> vars;     // negative: never defined
  std::vector<int> outputs;  // negative: a literal
  std::map<std::size_t, std::vector<std::pair<Program, ProgramValues>>> nested;
};

class PropagationGraph {
 public:
  explicit PropagationGraph(const Mesh& mesh) : mesh_(mesh) {}

  ProgramValues add_program(const Program& program, const Demands& inputs, const Demands& outputs);

  std::vector<PropagatedValue> values;
  std::vector<Rule> rules;
  std::vector<std::vector<std::size_t>> users;  // the rules that involve each value, in program order

 private:
  int add_value(const ArrayType& type, const std::optional<Demand>& demand = {});
  void add_rule(Rule rule);
  void add_edge(std::vector<int> from, std::vector<int> to, const Shape& shape);  // the same array
  void add_slices(int stacked, int one, const Shape& stack, bool reads);          // along dimension 0
  ProgramValues add_nested(const Program& program, std::vector<int> inputs);
  void add_equation(const Program& program, ProgramValues& own, std::size_t index);
  void add_scan(const Equation& equation, ProgramValues& own, std::size_t index, const std::vector<int>& operands,
                const std::vector<int>& results);
  void add_while(const Equation& equation, ProgramValues& own, std::size_t index, const std::vector<int>& operands,
                 const std::vector<int>& results);
  void add_cond(const Equation& equation, ProgramValues& own, std::size_t index, const std::vector<int>& operands,
                const std::vector<int>& results);
  void add_broadcasts(Types& types, std::vector<int>& operands, const ArrayType& result);
  void add_constraint(const Equation& equation, const ArrayType& type, int operand, int result);
  void add_map(const Equation& equation, const Types& types, const std::vector<int>& operands,
               const std::vector<int>& results);
  void fix(int value, const Layout& layout, const std::vector<int64_t>& open = {});

  const Mesh& mesh_;
};

// The factors along which layouts are propagated: those of the equation, and dimensions that an operation shifts or
// slices.
Factors propagated_factors(const EquationTypes& equation);

}  // namespace capibara::sharding
