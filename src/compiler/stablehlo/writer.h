// The writer's state: a module's functions and meshes, and the values of the function being written.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/stablehlo/borders.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/write.h"
#include "compiler/stablehlo/write_calls.h"
#include "compiler/stablehlo/write_collective.h"

namespace capibara::stablehlo {

// A called program: written once as a function, however many calls there are.
struct Callee {
  Program program;
  std::string symbol;
};

class ModuleWriter {
 public:
  explicit ModuleWriter(const WriteOptions& options) : options_(options) { symbols_.insert("main"); }

  std::string write(const Program& main);

  const WriteOptions& options() const { return options_; }
  std::string symbol_of(const Program& program, const std::string& name);
  // The symbol of a mesh, which is declared at the start of the module.
  std::string mesh_symbol(const Mesh& mesh);
  // The attributes of an argument or result of the main function: those given, and its placement on devices.
  std::string argument_attributes(std::size_t index, const Program& program);
  std::string result_attributes(std::size_t index, const Program& program);
  // Placements required of main's arguments and results are their attributes, not operations.
  bool is_border(const std::string& symbol, const Equation& equation) const;
  int next_channel() { return ++channels_; }
  void note_devices(int64_t count);

 private:
  std::string unique_symbol(const std::string& name);
  std::string attributes(const std::vector<std::string>& given, std::size_t index,
                         const std::vector<BorderDemand>& demands, int64_t rank);

  WriteOptions options_;
  std::vector<Mesh> meshes_;  // in order of first use
  std::vector<BorderDemand> argument_borders_, result_borders_;
  std::set<const Equation*> border_equations_;
  std::vector<Callee> callees_;  // in order of first call
  std::unordered_map<std::size_t, std::vector<std::size_t>> callees_of_hash_;
  std::set<std::string> symbols_;
  std::map<std::string, int> next_suffix_;
  int channels_ = 0;     // of collectives
  int64_t devices_ = 1;  // of the program
};

std::string symbol_text(const std::string& name);  // @name, @"na me"

// One function: the equations of a program and of its nested regions.
class FunctionWriter {
 public:
  explicit FunctionWriter(ModuleWriter& module) : module_(module) {}

  std::string write(const Program& program, const std::string& symbol, const char* visibility);

 private:
  // The names of a program's variables.
  class Names {
   public:
    explicit Names(const Program& program) : names_(static_cast<std::size_t>(program.var_count())) {}
    void set(Var var, std::string name) { names_[static_cast<std::size_t>(var.id)] = std::move(name); }
    const std::string& operator[](Var var) const { return names_[static_cast<std::size_t>(var.id)]; }

   private:
    std::vector<std::string> names_;
  };

  // An equation with the names and types of its operands.
  struct Operands {
    const Equation& equation;
    std::vector<std::string> names;
    Types inputs, outputs;
  };

  // A program within an operation: its leading inputs are values of the enclosing function, the others block arguments.
  struct Region {
    Program program;
    std::span<const std::string> captured;
  };

  std::string new_value() { return "%" + std::to_string(next_value_++); }
  // %arg0: type for an input of a program.
  std::string new_argument(const Program& program, Var var, Names& names);
  void line(int level, const std::string& text, Source source = {});
  std::string location_text(Source source) const;

  std::string constant(const NdArray& value, int level);
  std::string narrow_constant(const NdArray& value, int level);
  // The name of an operand; a literal is written where it is first used in a block.
  std::string operand(const Program& program, const Names& names, Atom atom, int level);
  // Sets the names of an equation's outputs; returns the text before its operation.
  std::string define(Names& names, const Equation& equation);

  void write_body(const Program& program, Names& names, int level, const char* terminator);
  void write_region(const Region& region, int level);
  void write_equation(const Program& program, Names& names, const Equation& equation, int level);
  void write_call(Names& names, const Operands& own, int level);
  void write_constraint(Names& names, const Operands& own, int level);
  void write_row(const OperationRow& row, Names& names, Operands own, int level);
  void write_while(Names& names, const Operands& own, int level);
  void write_case(Names& names, const Operands& own, int level);
  void write_uniform(Names& names, Operands own, int level);
  void write_custom_call(const CallText& call, Names& names, const Operands& own, int level);
  // "op"(operands) <{attributes}> ({ region }, { region }) : types
  void write_generic(const std::string& operation, const std::vector<AttributeText>& attributes,
                     const std::vector<Region>& regions, Names& names, const Equation& equation,
                     std::span<const std::string> operands, std::span<const ArrayType> inputs, const Types& outputs,
                     int level);
  // For several devices: write_collective.cpp.
  void write_manual(Names& names, const Operands& own, int level);
  void write_axis_index(Names& names, const Equation& equation, int level);
  void write_collective(CollectiveText text, Names& names, const Operands& own, int level);

  ModuleWriter& module_;
  std::string out_;
  int next_value_ = 0;
  int next_argument_ = 0;
  std::string symbol_;                                        // of the function
  std::vector<std::map<std::string, std::string>> literals_;  // by dense text, for each open block
};

}  // namespace capibara::stablehlo
