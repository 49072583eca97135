// Partitioner: evaluates a program equation by equation on the parts of one device, under a trace that records it.
#pragma once

#include <capibara/partition.h>
#include <capibara/primitive.h>

#include <map>
#include <memory>

#include "compiler/partition/extended.h"
#include "compiler/partition/propagate.h"

namespace capibara::sharding {

// A value on one device, and the other layouts in which it is already available: a weight gathered for a matmul is not
// gathered again for its gradient.
struct Local {
  Array array;
  Layout layout;
  std::shared_ptr<std::map<Layout, Array>> copies = nullptr;  // null for literals
};
using Locals = std::vector<Local>;

class Partitioner {
 public:
  explicit Partitioner(const NamedSharding& devices)
      : devices_(devices), mesh_(devices.mesh), resharder_(devices.mesh) {}

  // The outputs, in the layouts that `shardings` assigns to them.
  Arrays run(const Program& program, const Shardings& shardings, Locals inputs);

  const std::vector<InsertedCollective>& collectives() const { return collectives_; }

 private:
  // One equation, with the types of whole arrays.
  struct Step {
    const Equation& equation;
    const Types &operand_types, &result_types;
    const Locals& operands;
    const std::vector<Layout>& wanted;
    const std::vector<Shardings>* nested;  // of its nested programs

    EquationTypes types() const { return {equation.primitive, operand_types, result_types, equation.attrs}; }
  };

  Arrays step(const Step& step);
  Arrays scan(const Step& step);
  Arrays while_loop(const Step& step);
  Arrays cond(const Step& step);
  Arrays map(const Step& step);
  Arrays custom(const Step& step);
  Arrays plain(const Step& step);
  Arrays lowered(const Step& step);  // empty if it cannot be composed
  bool is_lowered(const Step& step, const ExtendedFactors& extended) const;

  Array resharded(const ArrayType& type, const Array& x, const Placed& from, const Layout& to,
                  const std::string& cause);
  Array resharded(const ArrayType& type, const Local& x, const Layout& to, const std::string& cause);
  std::string needed_as(const Step& step, std::size_t operand, const Layout& to) const;

  const NamedSharding& devices_;
  const Mesh& mesh_;
  Resharder resharder_;
  std::vector<InsertedCollective> collectives_;
  int64_t times_ = 1;
};

}  // namespace capibara::sharding
