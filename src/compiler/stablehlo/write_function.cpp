// Writes functions: one line per equation, regions inline.
#include <capibara/error.h>

#include "compiler/stablehlo/writer.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"
#include "program/ir/views.h"

namespace capibara::stablehlo {

namespace {

bool is_plain_symbol(const std::string& name) {
  if (name.empty() || (!std::isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_')) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '$' && c != '.') return false;
  }
  return true;
}

std::string joined(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::string symbol_text(const std::string& name) { return "@" + (is_plain_symbol(name) ? name : quoted_text(name)); }

std::string FunctionWriter::new_argument(const Program& program, Var var, Names& names) {
  std::string name = "%arg" + std::to_string(next_argument_++);
  std::string text = name + ": " + type_text(program.type(var));
  names.set(var, std::move(name));
  return text;
}

std::string FunctionWriter::write(const Program& program, const std::string& symbol, const char* visibility) {
  Names names(program);
  symbol_ = symbol;
  const bool main = symbol == "main";
  std::string arguments;
  for (std::size_t i = 0; i < program.invars().size(); ++i) {
    arguments += (i ? ", " : "") + new_argument(program, program.invars()[i], names);
    if (main) arguments += module_.argument_attributes(i, program);
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

void FunctionWriter::line(int level, const std::string& text, Source source) {
  out_.append(static_cast<std::size_t>(level) * 2, ' ');
  out_ += text;
  out_ += location_text(source);
  out_ += '\n';
}

std::string FunctionWriter::location_text(Source source) const {
  if (!module_.options().locations || source.id == 0) return "";
  const SourceInfo info = source_info(source);
  std::string file = info.file.empty() ? "" : concat(quoted_text(info.file), ":", info.line, ":0");
  if (info.name_scope.empty()) return file.empty() ? "" : " loc(" + file + ")";
  return " loc(" + quoted_text(info.name_scope) + (file.empty() ? "" : "(" + file + ")") + ")";
}

// ---- values ------------------------------------------------------------------------------------------------------

std::string FunctionWriter::constant(const NdArray& value, int level) {
  if (module_.options().widen_narrow_constants && is_sub_byte(value.dtype()) && bits(value.dtype()) > 1)
    return narrow_constant(value, level);
  std::string name = new_value();
  line(level, name + " = stablehlo.constant " + dense_text(value));
  return name;
}

std::string FunctionWriter::narrow_constant(const NdArray& value, int level) {
  const NdArray wide = widened(value);
  const std::string type = type_text(wide.type()), number = new_value(), kept = new_value(), name = new_value();
  line(level, number + " = stablehlo.constant " + dense_text(wide));
  line(level, kept + " = stablehlo.optimization_barrier " + number + " : " + type);
  line(level, name + " = stablehlo.convert " + kept + " : (" + type + ") -> " + type_text(value.type()));
  return name;
}

std::string FunctionWriter::operand(const Program& program, const Names& names, Atom atom, int level) {
  if (!atom.is_literal()) return names[atom.var()];
  const NdArray& value = program.literal(atom);
  const std::string key = dense_text(value);
  for (const auto& scope : literals_) {
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  }
  return literals_.back()[key] = constant(value, level);
}

std::string FunctionWriter::define(Names& names, const Equation& equation) {
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

// ---- equations ---------------------------------------------------------------------------------------------------

void FunctionWriter::write_body(const Program& program, Names& names, int level, const char* terminator) {
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

void FunctionWriter::write_equation(const Program& program, Names& names, const Equation& equation, int level) {
  Operands own{equation, {}, {}, {}};
  for (Atom input : equation.inputs) {
    own.names.push_back(operand(program, names, input, level));
    own.inputs.push_back(program.type(input));
  }
  // Only the primitive can infer the types of dropped outputs.
  bool dropped = false;
  for (Var output : equation.outputs) dropped |= output.dropped();
  if (dropped) {
    own.outputs = equation.primitive->type(own.inputs, equation.attrs).types;
  } else {
    for (Var output : equation.outputs) own.outputs.push_back(program.type(output));
  }
  const Primitive& primitive = equation.primitive;
  const WriteArgs args{equation.attrs, own.inputs, own.outputs};
  if (primitive == prim::jit()) {
    write_call(names, own, level);
  } else if (primitive == prim::while_()) {
    write_while(names, own, level);
  } else if (primitive == prim::cond()) {
    write_case(names, own, level);
  } else if (primitive == prim::create_token() || primitive == prim::after_all()) {
    const std::string left = define(names, equation);
    line(level, left + "stablehlo.after_all " + joined(own.names) + " : !stablehlo.token", equation.source);
  } else if (primitive == prim::rng_uniform()) {
    write_uniform(names, own, level);
  } else if (primitive == prim::sharding_constraint()) {
    write_constraint(names, own, level);
  } else if (primitive == prim::shard_map()) {
    write_manual(names, own, level);
  } else if (primitive == prim::axis_index()) {
    write_axis_index(names, equation, level);
  } else if (std::optional<CollectiveText> text = find_collective(primitive, args)) {
    write_collective(std::move(*text), names, own, level);
  } else if (const OperationRow* row = find_row(primitive, equation.attrs)) {
    write_row(*row, names, std::move(own), level);
  } else if (std::optional<CallText> call = find_call(primitive, args)) {
    write_custom_call(*call, names, own, level);
  } else {
    throw NotImplementedError(concat("to_stablehlo: primitive '", primitive.name(), "' has no StableHLO text"));
  }
}

void FunctionWriter::write_call(Names& names, const Operands& own, int level) {
  const Attrs& attrs = own.equation.attrs;
  const std::string symbol = module_.symbol_of(attrs.program("jaxpr"), attrs.text("name"));
  const std::string left = define(names, own.equation);
  line(level,
       left + "func.call " + symbol_text(symbol) + "(" + joined(own.names) +
           ") : " + signature_text(own.inputs, own.outputs),
       own.equation.source);
}

// sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : type
void FunctionWriter::write_constraint(Names& names, const Operands& own, int level) {
  const Attrs& attrs = own.equation.attrs;
  const NamedSharding& placement = *attrs.opaque<PlacementAttr>("sharding")->placement;
  if (placement.devices.size() == 1 || module_.is_border(symbol_, own.equation))
    return names.set(own.equation.outputs[0], own.names[0]);
  const std::string body = shardy_text(placement.spec, own.inputs[0].shape.size(), attrs.ints("unconstrained_dims"));
  const std::string mesh = module_.mesh_symbol(placement.mesh);
  line(level,
       concat(define(names, own.equation), "sdy.sharding_constraint ", own.names[0], " <", mesh, ", ", body,
              "> : ", type_text(own.inputs[0])),
       own.equation.source);
}

void FunctionWriter::write_row(const OperationRow& row, Names& names, Operands own, int level) {
  const Equation& equation = own.equation;
  std::vector<AttributeText> attributes;
  if (row.write) attributes = row.write({equation.attrs, own.inputs, own.outputs});
  if (!row.order.empty()) {
    std::vector<std::string> ordered;
    Types types;
    for (std::size_t from : row.order) {
      ordered.push_back(own.names.at(from));
      types.push_back(own.inputs.at(from));
    }
    own.names = std::move(ordered);
    own.inputs = std::move(types);
  }
  if (row.form != Form::generic) {
    const std::string left = define(names, equation);
    bool same = row.form == Form::elementwise && own.outputs.size() == 1;
    for (const ArrayType& type : own.inputs) same = same && type_text(type) == type_text(own.outputs[0]);
    const bool listed = equation.primitive == prim::optimization_barrier();
    const std::string types = listed ? types_text(own.outputs)
                              : same ? type_text(own.outputs[0])
                                     : signature_text(own.inputs, own.outputs);
    line(level, left + std::string(row.operation) + " " + joined(own.names) + " : " + types, equation.source);
    return;
  }
  std::vector<Region> regions;
  for (std::string_view name : row.regions) regions.push_back({equation.attrs.program(name), {}});
  write_generic(std::string(row.operation), attributes, regions, names, equation, own.names, own.inputs, own.outputs,
                level);
}

void FunctionWriter::write_generic(const std::string& operation, const std::vector<AttributeText>& attributes,
                                   const std::vector<Region>& regions, Names& names, const Equation& equation,
                                   std::span<const std::string> operands, std::span<const ArrayType> inputs,
                                   const Types& outputs, int level) {
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

void FunctionWriter::write_region(const Region& region, int level) {
  Names names(region.program);
  std::string arguments;
  for (std::size_t i = 0; i < region.program.invars().size(); ++i) {
    const Var var = region.program.invars()[i];
    if (i < region.captured.size()) {
      names.set(var, region.captured[i]);
      continue;
    }
    arguments += (arguments.empty() ? "" : ", ") + new_argument(region.program, var, names);
  }
  if (!arguments.empty()) line(level - 1, "^bb0(" + arguments + "):");
  write_body(region.program, names, level, "stablehlo.return");
}

void FunctionWriter::write_while(Names& names, const Operands& own, int level) {
  const WhileView loop(own.equation);
  const std::vector<Region> regions = {{loop.condition(), loop.cond_consts(own.names)},
                                       {loop.body(), loop.body_consts(own.names)}};
  write_generic("stablehlo.while", {}, regions, names, own.equation, loop.carry(own.names), loop.carry(own.inputs),
                own.outputs, level);
}

void FunctionWriter::write_case(Names& names, const Operands& own, int level) {
  const CondView view(own.equation);
  std::vector<Region> regions;
  for (const Program& branch : view.branches()) regions.push_back({branch, view.operands(own.names)});
  write_generic("stablehlo.case", {}, regions, names, own.equation, std::span(own.names).first(1),
                std::span(own.inputs).first(1), own.outputs, level);
}

// In StableHLO the shape is an operand.
void FunctionWriter::write_uniform(Names& names, Operands own, int level) {
  const Ints& shape = own.equation.attrs.ints("shape");
  ArrayType type;
  type.shape = {static_cast<int64_t>(shape.size())};
  type.dtype = DType::int64;
  own.names.push_back(new_value());
  own.inputs.push_back(type);
  line(level, own.names.back() + " = stablehlo.constant dense<" + (shape.empty() ? "" : list_text(shape)) +
                  "> : " + type_text(type));
  write_generic("stablehlo.rng", {{"rng_distribution", "#stablehlo<rng_distribution UNIFORM>"}}, {}, names,
                own.equation, own.names, own.inputs, own.outputs, level);
}

void FunctionWriter::write_custom_call(const CallText& call, Names& names, const Operands& own, int level) {
  // A call may return more values than the equation has outputs.
  const Equation& equation = own.equation;
  const std::string value = new_value();
  const Types& results = call.results.empty() ? own.outputs : call.results;
  const bool single = results.size() == 1;
  for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
    if (equation.outputs[i].dropped()) continue;
    const std::size_t from = call.order.empty() ? i : call.order[i];
    names.set(equation.outputs[i], single ? value : value + "#" + std::to_string(from));
  }
  std::string left = results.empty() ? "" : value + (single ? "" : ":" + std::to_string(results.size())) + " = ";
  line(level,
       left + "stablehlo.custom_call " + symbol_text(call.target) + "(" + joined(own.names) + ") {" + call.attributes +
           "} : " + signature_text(own.inputs, results),
       equation.source);
}

}  // namespace capibara::stablehlo
