// The reader's state: the module's functions that are already programs, and the values of the function being read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <capibara/sharding.h>

#include "compiler/stablehlo/open_sizes.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/read.h"
#include "compiler/stablehlo/syntax/syntax.h"
#include "program/ir/build.h"

namespace capibara::stablehlo {

// The axes over which the current code is manual: device numbers in it are positions in the mesh.
struct ManualScope {
  Mesh mesh;
  AxisList bound;  // in the order of the mesh
};

class ModuleReader {
 public:
  ModuleReader(const Module& module, const ReadOptions& options)
      : module_(module), options_(options), open_sizes_(stablehlo::has_open_sizes(module)) {}

  Program read_entry();
  // True if functions are read for the sizes of each call.
  bool has_open_sizes() const { return open_sizes_; }
  const ReadOptions& options() const { return options_; }
  // The function that an operation refers to; ParseError if there is none.
  const Function& function_of(const Operation& operation, const Attribute& symbol) const;
  // With the types that it declares: for functions without open sizes.
  Program program_of(const Function& function);
  Arrays call(const Function& function, const Arrays& operands);

  Mesh mesh_of(const Operation& operation, const std::string& name) const {
    return find_mesh(module_, operation, name).mesh;
  }
  // For code with device numbers; UnsupportedError for a mesh whose devices are in another order.
  Mesh mesh_in_order(const Operation& operation, const std::string& name) const;
  const ManualScope* manual() const { return manual_.empty() ? nullptr : &manual_.back(); }
  void enter(ManualScope scope) { manual_.push_back(std::move(scope)); }
  void leave() { manual_.pop_back(); }

 private:
  // The program of a function. Results known while the text is read are kept as values.
  struct Read {
    Program program;  // undefined while the function is being read
    Arrays known;     // undefined if the program computes the result
  };
  const Read& read_function(const Function& function, const Types& types, const Arrays& operands);

  const Module& module_;
  const ReadOptions& options_;
  const bool open_sizes_;
  // Keyed by the manual axes of the caller and the sizes of the call.
  std::map<std::pair<const Function*, std::string>, Read> functions_;
  std::vector<ManualScope> manual_;  // of nested manual computations
};

// The elements of the attribute 'value'; a large splat is a broadcast, which takes no memory until it is used.
NdArray read_constant(const Operation& operation);

// Reads the operations of one function under the current staging trace. A token is no array, a tuple several arrays.
class BodyReader {
 public:
  BodyReader(ModuleReader& module, const Function& function);

  ModuleReader& module() { return module_; }
  void define(ValueId id, Arrays arrays) { values_[static_cast<std::size_t>(id)] = std::move(arrays); }
  // Defines the arguments of the function, in flat order.
  void define_arguments(const Function& function, std::span<const NdArray> arrays);

  const Block& block() const { return *block_; }  // the one being read
  const Arrays& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  // Reads a block to its end; returns the operands of its terminator.
  Arrays run(const Block& block);
  void read(const Operation& operation);
  Arrays operands_of(const Operation& operation) const;
  void set_results(const Operation& operation, const Arrays& results);
  // Reads an operation by its row in the table, with these operands.
  Arrays read_row(const Operation& operation, const OperationRow& row, Arrays operands);

  // A region as a program; values of the enclosing function become leading inputs. With open sizes, its arguments have
  // the types of these operands, and for those that are fixed, also their values.
  Staged stage_region(const Operation& operation, const Region& region, const Arrays& operands = {},
                      const std::vector<bool>& fixed = {});
  // A region that may not use such values.
  Program closed_region(const Operation& operation, const Region& region);

 private:
  // Reads an operation whose result sizes are known if it needs them.
  void read_closed(const Operation& operation, const Arrays& operands);

  ModuleReader& module_;
  std::vector<Arrays> values_;  // by id
  const Block* block_;
};

// The arrays that a value of this type consists of; open sizes are `dynamic_size`.
Types flat_types(const Operation& operation, const Type& type);
Types result_types(const Operation& operation);

// The rule of an operation without a row: results from operands.
using OperationRule = Arrays (*)(BodyReader&, const Operation&, const Arrays&);
OperationRule find_structure_rule(std::string_view operation);  // calls, control flow, tuples: read_structure.cpp
OperationRule find_composed_rule(std::string_view operation);   // composed of other operations: read_composed.cpp
OperationRule find_exchange_rule(std::string_view operation);   // between processes: read_exchange.cpp
OperationRule find_sharding_rule(std::string_view operation);   // of Shardy: read_manual.cpp
// An exchange between the devices of the manual computation being read: read_devices.cpp.
Arrays read_between_devices(BodyReader& body, const Operation& operation, const Arrays& operands);
// Reads an expression of the device number as a position along an axis; false: read it like any other operation.
bool read_axis_index(BodyReader& body, const Operation& operation);
void check_sharding(const ModuleReader& module, const Operation& operation, const Attribute& sharding,
                    std::size_t rank);
Arrays read_custom_call(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp
Arrays read_expectation(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp

// The integers of a constant operand; UnsupportedError if the value is unknown until the program runs.
Ints constant_integers(const Operation& operation, const Arrays& operands, std::size_t index);
void require_operands(const Operation& operation, const Arrays& operands, std::size_t count);

inline Arrays bind_named(std::string_view name, const Arrays& inputs, const Attrs& attrs = {}) {
  return capibara::bind(primitive(name), inputs, attrs);
}

}  // namespace capibara::stablehlo
