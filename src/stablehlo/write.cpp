// The writer: functions for nested programs, one line for each equation, regions inline.
#include "stablehlo/write.h"
#include "program/handles.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <capibara/config.h>
#include <capibara/error.h>

#include "program/source.h"
#include "program/views.h"
#include "stablehlo/borders.h"
#include "stablehlo/operations.h"
#include "stablehlo/syntax.h"
#include "stablehlo/write_calls.h"

namespace capibara::stablehlo {

namespace {

// A program that is called: written once as a function, however often it is called.
struct Callee {
  Program program;
  std::string symbol;
};

class ModuleWriter {
 public:
  explicit ModuleWriter(const WriteOptions& options) : options_(options) { symbols_.insert("main"); }

  // The name of a mesh; it is declared at the head of the module.
  std::string mesh_symbol(const Mesh& mesh) {
    for (std::size_t i = 0; i < meshes_.size(); ++i) {
      if (meshes_[i] == mesh) return i == 0 ? "@mesh" : concat("@mesh_", i - 1);
    }
    meshes_.push_back(mesh);
    return mesh_symbol(mesh);
  }

  std::string write(const Program& main);
  std::string symbol_of(const Program& program, const std::string& name);
  const WriteOptions& options() const { return options_; }
  // The attributes of an argument or a result of the main function: those given, and how it is placed on devices.
  std::string argument_attributes(std::size_t index, const Program& program) {
    return attributes(options_.argument_attributes, index, argument_borders_, program.type(program.invars()[index]).rank());
  }
  std::string result_attributes(std::size_t index, const Program& program) {
    return attributes(options_.result_attributes, index, result_borders_, program.type(program.outputs()[index]).rank());
  }
  // Demands on arguments and results of main are their attributes, not operations.
  bool is_border(const std::string& symbol, const Equation& equation) const {
    return symbol == "main" && border_equations_.count(&equation) != 0;
  }

 private:
  std::string unique_symbol(const std::string& name);
  std::string attributes(const std::vector<std::string>& given, std::size_t index, const std::vector<BorderDemand>& demands, int64_t rank);

  WriteOptions options_;
  std::vector<Mesh> meshes_;  // in the order of their first use
  std::vector<BorderDemand> argument_borders_, result_borders_;
  std::set<const Equation*> border_equations_;
  std::vector<Callee> callees_;  // in the order of their first call
  std::unordered_map<std::size_t, std::vector<std::size_t>> callees_of_hash_;
  std::set<std::string> symbols_;
  std::map<std::string, int> next_suffix_;
};

bool is_plain_symbol(const std::string& name) {
  if (name.empty() || (!std::isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_')) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '$' && c != '.') return false;
  }
  return true;
}

std::string symbol_text(const std::string& name) { return "@" + (is_plain_symbol(name) ? name : quoted_text(name)); }

// One function: the equations of a program and of the regions within it.
class FunctionWriter {
 public:
  explicit FunctionWriter(ModuleWriter& module) : module_(module) {}

  std::string write(const Program& program, const std::string& symbol, const char* visibility) {
    Names names(program);
    symbol_ = symbol;
    const bool main = symbol == "main";
    std::string arguments;
    for (std::size_t i = 0; i < program.invars().size(); ++i) {
      const Var var = program.invars()[i];
      std::string name = "%arg" + std::to_string(next_argument_++);
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + type_text(program.type(var));
      if (main) arguments += module_.argument_attributes(i, program);
      names.set(var, std::move(name));
    }
    const Types results = program.output_types();
    std::string result_list;
    bool attributes = false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string own = main ? module_.result_attributes(i, program) : "";
      attributes = attributes || !own.empty();
      result_list += concat(i ? ", " : "", type_text(results[i]), own);
    }
    out_ = concat("  func.func ", visibility, " ", symbol_text(symbol), "(", arguments, ")");
    if (!results.empty()) out_ += results.size() == 1 && !attributes ? " -> " + result_list : " -> (" + result_list + ")";
    out_ += " {\n";
    write_body(program, names, 2, "return");
    return out_ + "  }\n";
  }

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

  std::string new_value() { return "%" + std::to_string(next_value_++); }

  void line(int level, const std::string& text, Source source = {}) {
    out_.append(static_cast<std::size_t>(level) * 2, ' ');
    out_ += text;
    out_ += location_text(source);
    out_ += '\n';
  }

  std::string location_text(Source source) const {
    if (!module_.options().locations || source.id == 0) return "";
    const SourceInfo info = source_info(source);
    std::string file = info.file.empty() ? "" : concat(quoted_text(info.file), ":", info.line, ":0");
    if (info.name_scope.empty()) return file.empty() ? "" : " loc(" + file + ")";
    return " loc(" + quoted_text(info.name_scope) + (file.empty() ? "" : "(" + file + ")") + ")";
  }

  std::string constant(const NdArray& value, int level) {
    if (module_.options().widen_narrow_constants && is_sub_byte(value.dtype()) && bits(value.dtype()) > 1) return narrow_constant(value, level);
    std::string name = new_value();
    line(level, name + " = stablehlo.constant " + dense_text(value));
    return name;
  }

  std::string narrow_constant(const NdArray& value, int level) {
    const NdArray wide = widened(value);
    const std::string type = type_text(wide.type()), number = new_value(), kept = new_value(), name = new_value();
    line(level, number + " = stablehlo.constant " + dense_text(wide));
    line(level, kept + " = stablehlo.optimization_barrier " + number + " : " + type);
    line(level, name + " = stablehlo.convert " + kept + " : (" + type + ") -> " + type_text(value.type()));
    return name;
  }

  // The name of an operand; a literal is written where it is first needed in a block.
  std::string operand(const Program& program, const Names& names, Atom atom, int level) {
    if (!atom.is_literal()) return names[atom.var()];
    const NdArray& value = program.literal(atom);
    const std::string key = dense_text(value);
    for (const auto& scope : literals_) {
      if (auto it = scope.find(key); it != scope.end()) return it->second;
    }
    return literals_.back()[key] = constant(value, level);
  }

  void write_body(const Program& program, Names& names, int level, const char* terminator) {
    literals_.emplace_back();
    for (std::size_t i = 0; i < program.constvars().size(); ++i) {
      names.set(program.constvars()[i], constant(program.constants()[i], level));
    }
    for (const Equation& equation : program.equations()) write_equation(program, names, equation, level);
    std::vector<std::string> results;
    for (Atom output : program.outputs()) results.push_back(operand(program, names, output, level));
    const Types types = program.output_types();
    std::string text = terminator;
    if (!results.empty()) text += " " + joined(results) + " : " + types_text(types);
    line(level, text);
    literals_.pop_back();
  }

  static std::string joined(std::span<const std::string> names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  // Names for the outputs of an equation, and the text that stands before its operation.
  std::string define(Names& names, const Equation& equation) {
    if (equation.outputs.empty()) return "";
    const std::string value = new_value();
    const bool single = equation.outputs.size() == 1;
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      if (!equation.outputs[i].dropped()) {
        names.set(equation.outputs[i], single ? value : value + "#" + std::to_string(i));
      }
    }
    return value + (single ? "" : ":" + std::to_string(equation.outputs.size())) + " = ";
  }

  void write_equation(const Program& program, Names& names, const Equation& equation, int level) {
    std::vector<std::string> operands;
    Types inputs;
    for (Atom input : equation.inputs) {
      operands.push_back(operand(program, names, input, level));
      inputs.push_back(program.type(input));
    }
    // The types of dropped outputs are known to the primitive alone.
    Types outputs;
    bool dropped = false;
    for (Var output : equation.outputs) dropped |= output.dropped();
    if (dropped) outputs = equation.primitive->type(inputs, equation.attrs).types;
    else {
      for (Var output : equation.outputs) outputs.push_back(program.type(output));
    }
    const Attrs& attrs = equation.attrs;
    if (equation.primitive == prim::jit()) {
      const std::string symbol = module_.symbol_of(attrs.program("jaxpr"), attrs.text("name"));
      const std::string left = define(names, equation);
      line(level, left + "func.call " + symbol_text(symbol) + "(" + joined(operands) + ") : " + signature_text(inputs, outputs),
           equation.source);
    } else if (equation.primitive == prim::while_()) {
      write_while(names, equation, operands, inputs, outputs, level);
    } else if (equation.primitive == prim::cond()) {
      write_case(names, equation, operands, inputs, outputs, level);
    } else if (equation.primitive == prim::create_token() || equation.primitive == prim::after_all()) {
      const std::string left = define(names, equation);
      line(level, left + "stablehlo.after_all " + joined(operands) + " : !stablehlo.token", equation.source);
    } else if (equation.primitive == prim::rng_uniform()) {
      write_uniform(names, equation, operands, inputs, outputs, level);
    } else if (equation.primitive == prim::sharding_constraint()) {
      write_constraint(names, equation, operands, inputs, level);
    } else if (const OperationRow* row = find_row(equation.primitive, attrs)) {
      write_row(*row, names, equation, operands, inputs, outputs, level);
    } else if (std::optional<CallText> call = find_call(equation.primitive, {attrs, inputs, outputs})) {
      write_custom_call(*call, names, equation, operands, inputs, outputs, level);
    } else {
      throw NotImplementedError(concat("to_stablehlo: primitive '", equation.primitive.name(), "' has no StableHLO text"));
    }
  }

  // sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : type
  void write_constraint(Names& names, const Equation& equation, const std::vector<std::string>& operands, const Types& inputs, int level) {
    const NamedSharding& placement = *equation.attrs.opaque<PlacementAttr>("sharding")->placement;
    if (placement.devices.size() == 1 || module_.is_border(symbol_, equation)) return names.set(equation.outputs[0], operands[0]);
    const std::string body = shardy_text(placement.spec, inputs[0].shape.size(), equation.attrs.ints("unconstrained_dims"));
    const std::string mesh = module_.mesh_symbol(placement.mesh);
    line(level, concat(define(names, equation), "sdy.sharding_constraint ", operands[0], " <", mesh, ", ", body, "> : ", type_text(inputs[0])),
         equation.source);
  }

  void write_row(const OperationRow& row, Names& names, const Equation& equation, std::vector<std::string> operands,
                 Types inputs, const Types& outputs, int level) {
    std::vector<AttributeText> attributes;
    if (row.write) attributes = row.write({equation.attrs, inputs, outputs});
    if (!row.order.empty()) {
      std::vector<std::string> ordered;
      Types types;
      for (std::size_t from : row.order) {
        ordered.push_back(operands.at(from));
        types.push_back(inputs.at(from));
      }
      operands = std::move(ordered);
      inputs = std::move(types);
    }
    if (row.form != Form::generic) {
      const std::string left = define(names, equation);
      bool same = row.form == Form::elementwise && outputs.size() == 1;
      for (const ArrayType& type : inputs) same = same && type_text(type) == type_text(outputs[0]);
      const bool listed = equation.primitive == prim::optimization_barrier();
      const std::string types = listed ? types_text(outputs) : same ? type_text(outputs[0]) : signature_text(inputs, outputs);
      line(level, left + std::string(row.operation) + " " + joined(operands) + " : " + types, equation.source);
      return;
    }
    std::vector<Region> regions;
    for (std::string_view name : row.regions) regions.push_back({equation.attrs.program(name), {}});
    write_generic(std::string(row.operation), attributes, regions, names, equation, operands, inputs, outputs, level);
  }

  // A program within an operation: its leading inputs are values of the function around, the others block arguments.
  struct Region {
    Program program;
    std::span<const std::string> captured;
  };

  // "op"(operands) <{attributes}> ({ region }, { region }) : types
  void write_generic(const std::string& operation, const std::vector<AttributeText>& attributes,
                     const std::vector<Region>& regions, Names& names, const Equation& equation,
                     std::span<const std::string> operands, std::span<const ArrayType> inputs, const Types& outputs,
                     int level) {
    const std::string left = define(names, equation);
    std::string text = left + "\"" + operation + "\"(" + joined(operands) + ")";
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      text += concat(i == 0 ? " <{" : ", ", attributes[i].name, " = ", attributes[i].value);
    }
    if (!attributes.empty()) text += "}>";
    const std::string signature = " : " + signature_text(inputs, outputs);
    if (regions.empty()) return line(level, text + signature, equation.source);
    line(level, text + " ({");
    for (std::size_t i = 0; i < regions.size(); ++i) {
      if (i != 0) line(level, "}, {");
      write_region(regions[i], level + 1);
    }
    line(level, "})" + signature, equation.source);
  }

  void write_region(const Region& region, int level) {
    Names names(region.program);
    std::string arguments;
    for (std::size_t i = 0; i < region.program.invars().size(); ++i) {
      const Var var = region.program.invars()[i];
      if (i < region.captured.size()) {
        names.set(var, region.captured[i]);
        continue;
      }
      std::string name = "%arg" + std::to_string(next_argument_++);
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + type_text(region.program.type(var));
      names.set(var, std::move(name));
    }
    if (!arguments.empty()) line(level - 1, "^bb0(" + arguments + "):");
    write_body(region.program, names, level, "stablehlo.return");
  }

  void write_while(Names& names, const Equation& equation, const std::vector<std::string>& operands, const Types& inputs,
                   const Types& outputs, int level) {
    const WhileView loop(equation);
    const std::vector<Region> regions = {{loop.condition(), loop.cond_consts(operands)},
                                         {loop.body(), loop.body_consts(operands)}};
    write_generic("stablehlo.while", {}, regions, names, equation, loop.carry(operands), loop.carry(inputs), outputs,
                  level);
  }

  void write_case(Names& names, const Equation& equation, const std::vector<std::string>& operands, const Types& inputs,
                  const Types& outputs, int level) {
    const CondView view(equation);
    std::vector<Region> regions;
    for (const Program& branch : view.branches()) regions.push_back({branch, view.operands(operands)});
    write_generic("stablehlo.case", {}, regions, names, equation, std::span(operands).first(1),
                  std::span(inputs).first(1), outputs, level);
  }

  // The shape is an operand there.
  void write_uniform(Names& names, const Equation& equation, std::vector<std::string> operands, Types inputs,
                     const Types& outputs, int level) {
    const Ints& shape = equation.attrs.ints("shape");
    ArrayType type;
    type.shape = {static_cast<int64_t>(shape.size())};
    type.dtype = DType::int64;
    operands.push_back(new_value());
    inputs.push_back(type);
    line(level, operands.back() + " = stablehlo.constant dense<" + (shape.empty() ? "" : list_text(shape)) + "> : " + type_text(type));
    write_generic("stablehlo.rng", {{"rng_distribution", "#stablehlo<rng_distribution UNIFORM>"}}, {}, names, equation,
                  operands, inputs, outputs, level);
  }

  void write_custom_call(const CallText& call, Names& names, const Equation& equation,
                         const std::vector<std::string>& operands, const Types& inputs, const Types& outputs, int level) {
    // A call may yield more than the equation asks for.
    const std::string value = new_value();
    const Types& results = call.results.empty() ? outputs : call.results;
    const bool single = results.size() == 1;
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      if (equation.outputs[i].dropped()) continue;
      const std::size_t from = call.order.empty() ? i : call.order[i];
      names.set(equation.outputs[i], single ? value : value + "#" + std::to_string(from));
    }
    std::string left = results.empty() ? "" : value + (single ? "" : ":" + std::to_string(results.size())) + " = ";
    line(level, left + "stablehlo.custom_call " + symbol_text(call.target) + "(" + joined(operands) + ") {" +
                    call.attributes + "} : " + signature_text(inputs, results), equation.source);
  }

  ModuleWriter& module_;
  std::string out_;
  int next_value_ = 0;
  int next_argument_ = 0;
  std::string symbol_;  // of the function
  std::vector<std::map<std::string, std::string>> literals_;  // by dense text, for each open block
};

std::string ModuleWriter::unique_symbol(const std::string& name) {
  std::string base = name.empty() ? "function" : name, symbol = base;
  while (!symbols_.insert(symbol).second) symbol = base + "_" + std::to_string(next_suffix_[base]++);
  return symbol;
}

std::string ModuleWriter::symbol_of(const Program& program, const std::string& name) {
  std::vector<std::size_t>& alike = callees_of_hash_[program.hash()];
  for (std::size_t i : alike) {
    if (callees_[i].program == program) return callees_[i].symbol;
  }
  alike.push_back(callees_.size());
  callees_.push_back({program, unique_symbol(name)});
  return callees_.back().symbol;
}

std::string ModuleWriter::attributes(const std::vector<std::string>& given, std::size_t index, const std::vector<BorderDemand>& demands,
                                     int64_t rank) {
  std::string text = given.empty() ? "" : given.at(index);
  for (const BorderDemand& demand : demands) {
    if (demand.index != index || demand.placement->devices.size() == 1) continue;
    text += concat(text.empty() ? "" : ", ", "sdy.sharding = #sdy.sharding<", mesh_symbol(demand.placement->mesh), ", ",
                   shardy_text(demand.placement->spec, static_cast<std::size_t>(rank)), ">");
  }
  return text.empty() ? "" : concat(" {", text, "}");
}

std::string ModuleWriter::write(const Program& main) {
  const Borders borders = find_borders(main);
  argument_borders_ = borders.arguments;
  result_borders_ = borders.results;
  border_equations_.insert(borders.equations.begin(), borders.equations.end());
  std::size_t devices = borders.devices.size();
  for (std::size_t i = 0; i < options_.argument_placements.size(); ++i) {
    const std::shared_ptr<const NamedSharding>& own = options_.argument_placements[i];
    const auto told = [&](const BorderDemand& demand) { return demand.index == i; };
    if (!own || own->devices.size() == 1 || std::any_of(argument_borders_.begin(), argument_borders_.end(), told)) continue;
    devices = own->devices.size();
    argument_borders_.push_back({i, own});
  }
  std::string out = FunctionWriter(*this).write(main, "main", "public");
  for (std::size_t i = 0; i < callees_.size(); ++i) {  // grows while functions are written
    const Callee callee = callees_[i];
    out += FunctionWriter(*this).write(callee.program, callee.symbol, "private");
  }
  std::string head = "module " + symbol_text(options_.module_name);
  if (devices > 1) head += concat(" attributes {mhlo.num_partitions = ", devices, " : i32, mhlo.num_replicas = 1 : i32}");
  head += " {\n";
  for (const Mesh& mesh : meshes_) {
    std::string axes;
    for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) {
      axes += concat(i ? ", " : "", quoted_text(mesh.axis_names[i]), "=", mesh.axis_sizes[i]);
    }
    head += concat("  sdy.mesh ", mesh_symbol(mesh), " = <[", axes, "]>\n");
  }
  return head + out + "}\n";
}

}  // namespace

std::string write_module(const Program& program, const WriteOptions& options) {
  return ModuleWriter(options).write(program);
}

}  // namespace capibara::stablehlo

namespace capibara {

namespace {

bool has_wide_types(const Program& program) {
  for (const ArrayType& type : program.body().var_types) {
    if (canonicalize(type.dtype, false) != type.dtype) return true;
  }
  return false;
}

}  // namespace

namespace stablehlo {

std::string write_program(const Program& program, const WriteOptions& options) {
  // A program that was read may hold 64-bit types whatever the configuration says of host values.
  Config settings = config();
  settings.enable_x64 = settings.enable_x64 || has_wide_types(program);
  ConfigScope scope(settings);
  return write_module(lower(program), options);
}

}  // namespace stablehlo

std::string to_stablehlo(const Program& program, const std::string& module_name) {
  return stablehlo::write_program(program, {.module_name = module_name});
}

}  // namespace capibara
