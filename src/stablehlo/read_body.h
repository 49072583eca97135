// The reader's state: the functions of a module that are programs already, and the values of the function being read.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "program/build.h"
#include "stablehlo/operations.h"
#include "stablehlo/syntax.h"

namespace capibara::stablehlo {

class ModuleReader {
 public:
  explicit ModuleReader(const Module& module) : module_(module) {}

  Program read_entry();
  // The function an operation names; ParseError where there is none.
  const Function& function_of(const Operation& operation, const Attribute& symbol) const;
  const Program& program_of(const Function& function);
  Arrays call(const Function& function, const Arrays& operands);

 private:
  const Module& module_;
  std::unordered_map<const Function*, Program> programs_;  // undefined while the function is being read
};

// Reads the operations of one function under the current staging trace. A token is no array, a tuple several.
class BodyReader {
 public:
  BodyReader(ModuleReader& module, const Function& function);

  ModuleReader& module() { return module_; }
  void define(ValueId id, Arrays arrays) { values_[static_cast<std::size_t>(id)] = std::move(arrays); }
  // The arguments of the function, in flat order.
  void define_arguments(const Function& function, std::span<const NdArray> arrays);

  const Block& block() const { return *block_; }  // the one being read

  // Reads a block to its end; returns the operands of its terminator.
  Arrays run(const Block& block);
  void read(const Operation& operation);
  Arrays operands_of(const Operation& operation) const;
  void set_results(const Operation& operation, const Arrays& results);
  // By its row in the table, with these operands.
  Arrays read_row(const Operation& operation, const OperationRow& row, Arrays operands);

  // A region as a program; values of the function around it become leading inputs.
  Staged stage_region(const Operation& operation, const Region& region);
  // A region that may not read such values.
  Program closed_region(const Operation& operation, const Region& region);

 private:
  ModuleReader& module_;
  std::vector<Arrays> values_;  // by id
  const Block* block_;
};

// The arrays that a value of this type consists of.
Types flat_types(const Operation& operation, const Type& type);
Types result_types(const Operation& operation);

// What an operation without a row does: results from operands.
using OperationRule = Arrays (*)(BodyReader&, const Operation&, const Arrays&);
OperationRule find_structure_rule(std::string_view operation);   // calls, control flow, tuples: read_structure.cpp
OperationRule find_composed_rule(std::string_view operation);    // operations made of others: read_composed.cpp
OperationRule find_exchange_rule(std::string_view operation);    // between processes: read_exchange.cpp
Arrays read_custom_call(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp
Arrays read_expectation(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp

// The integers of a constant operand; UnsupportedError where the value is not known before the program runs.
Ints constant_integers(const Operation& operation, const Arrays& operands, std::size_t index);
void require_operands(const Operation& operation, const Arrays& operands, std::size_t count);

inline Arrays bind_named(std::string_view name, const Arrays& inputs, const Attrs& attrs = {}) {
  return capibara::bind(primitive(name), inputs, attrs);
}

}  // namespace capibara::stablehlo
