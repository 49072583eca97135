// The reader's state: the functions of a module that are programs already, and the values of the function being read.
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

// The axes that the code being read is manual over: its numbers of devices are positions in the mesh.
struct ManualScope {
  Mesh mesh;
  AxisList bound;  // in the order of the mesh
};

class ModuleReader {
 public:
  ModuleReader(const Module& module, const ReadOptions& options)
      : module_(module), options_(options), open_sizes_(stablehlo::has_open_sizes(module)) {}

  Program read_entry();
  // Whether functions are read for the sizes of each call.
  bool has_open_sizes() const { return open_sizes_; }
  const ReadOptions& options() const { return options_; }
  // The function an operation names; ParseError where there is none.
  const Function& function_of(const Operation& operation, const Attribute& symbol) const;
  // As it declares itself: of no open sizes.
  Program program_of(const Function& function);
  Arrays call(const Function& function, const Arrays& operands);

  Mesh mesh_of(const Operation& operation, const std::string& name) const {
    return find_mesh(module_, operation, name).mesh;
  }
  // For those who number its devices; UnsupportedError for a mesh whose devices are in another order.
  Mesh mesh_in_order(const Operation& operation, const std::string& name) const;
  const ManualScope* manual() const { return manual_.empty() ? nullptr : &manual_.back(); }
  void enter(ManualScope scope) { manual_.push_back(std::move(scope)); }
  void leave() { manual_.pop_back(); }

 private:
  // A function as it was read. Results that are known while the text is read stay so.
  struct Read {
    Program program;  // undefined while the function is being read
    Arrays known;     // undefined where the program computes the result
  };
  const Read& read_function(const Function& function, const Types& types, const Arrays& operands);

  const Module& module_;
  const ReadOptions& options_;
  const bool open_sizes_;
  // By the axes that they are called under, and the sizes that they are called for.
  std::map<std::pair<const Function*, std::string>, Read> functions_;
  std::vector<ManualScope> manual_;  // of maps within maps
};

// The elements of the attribute 'value'; many equal ones are a broadcast, which takes no memory before it is used.
NdArray read_constant(const Operation& operation);

// Reads the operations of one function under the current staging trace. A token is no array, a tuple several.
class BodyReader {
 public:
  BodyReader(ModuleReader& module, const Function& function);

  ModuleReader& module() { return module_; }
  void define(ValueId id, Arrays arrays) { values_[static_cast<std::size_t>(id)] = std::move(arrays); }
  // The arguments of the function, in flat order.
  void define_arguments(const Function& function, std::span<const NdArray> arrays);

  const Block& block() const { return *block_; }  // the one being read
  const Arrays& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  // Reads a block to its end; returns the operands of its terminator.
  Arrays run(const Block& block);
  void read(const Operation& operation);
  Arrays operands_of(const Operation& operation) const;
  void set_results(const Operation& operation, const Arrays& results);
  // By its row in the table, with these operands.
  Arrays read_row(const Operation& operation, const OperationRow& row, Arrays operands);

  // A region as a program; values of the function around it become leading inputs. Where sizes are open, its arguments
  // have the types of these operands, and those that are fixed their values.
  Staged stage_region(const Operation& operation, const Region& region, const Arrays& operands = {},
                      const std::vector<bool>& fixed = {});
  // A region that may not read such values.
  Program closed_region(const Operation& operation, const Region& region);

 private:
  // An operation whose results have known sizes where it needs them.
  void read_closed(const Operation& operation, const Arrays& operands);

  ModuleReader& module_;
  std::vector<Arrays> values_;  // by id
  const Block* block_;
};

// The arrays that a value of this type consists of; the sizes that it leaves open are `dynamic_size`.
Types flat_types(const Operation& operation, const Type& type);
Types result_types(const Operation& operation);

// What an operation without a row does: results from operands.
using OperationRule = Arrays (*)(BodyReader&, const Operation&, const Arrays&);
OperationRule find_structure_rule(std::string_view operation);  // calls, control flow, tuples: read_structure.cpp
OperationRule find_composed_rule(std::string_view operation);   // operations made of others: read_composed.cpp
OperationRule find_exchange_rule(std::string_view operation);   // between processes: read_exchange.cpp
OperationRule find_sharding_rule(std::string_view operation);   // of Shardy: read_manual.cpp
// An exchange between the devices of the manual computation being read: read_devices.cpp.
Arrays read_between_devices(BodyReader& body, const Operation& operation, const Arrays& operands);
// Reads what a text says by the number of a device as a position along an axis; false: read it as any other.
bool read_axis_index(BodyReader& body, const Operation& operation);
void check_sharding(const ModuleReader& module, const Operation& operation, const Attribute& sharding,
                    std::size_t rank);
Arrays read_custom_call(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp
Arrays read_expectation(BodyReader& body, const Operation& operation, const Arrays& operands);  // read_calls.cpp

// The integers of a constant operand; UnsupportedError where the value is not known before the program runs.
Ints constant_integers(const Operation& operation, const Arrays& operands, std::size_t index);
void require_operands(const Operation& operation, const Arrays& operands, std::size_t count);

inline Arrays bind_named(std::string_view name, const Arrays& inputs, const Attrs& attrs = {}) {
  return capibara::bind(primitive(name), inputs, attrs);
}

}  // namespace capibara::stablehlo
