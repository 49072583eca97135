// Writes modules: the main function, the functions that it calls, and the meshes that they use.
#include "compiler/stablehlo/write.h"

#include <algorithm>
#include <cctype>

#include <capibara/config.h>
#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/plain_operations.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "compiler/stablehlo/writer.h"
#include "lax/shard_map/shard_map_devices.h"
#include "program/ir/wide_types.h"
#include "program/trace/discharge.h"

namespace capibara::stablehlo {

std::string ModuleWriter::mesh_symbol(const Mesh& mesh) {
  for (std::size_t i = 0; i < meshes_.size(); ++i) {
    if (meshes_[i].axis_names == mesh.axis_names && meshes_[i].axis_sizes == mesh.axis_sizes)
      return i == 0 ? "@mesh" : concat("@mesh_", i - 1);
  }
  meshes_.push_back(mesh);
  return mesh_symbol(mesh);
}

std::string ModuleWriter::argument_attributes(std::size_t index, const Program& program) {
  return attributes(options_.argument_attributes, index, argument_borders_,
                    program.type(program.invars()[index]).rank());
}

std::string ModuleWriter::result_attributes(std::size_t index, const Program& program) {
  return attributes(options_.result_attributes, index, result_borders_, program.type(program.outputs()[index]).rank());
}

bool ModuleWriter::is_border(const std::string& symbol, const Equation& equation) const {
  return symbol == "main" && border_equations_.count(&equation) != 0;
}

void ModuleWriter::note_devices(int64_t count) { devices_ = std::max(devices_, count); }

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

std::string ModuleWriter::attributes(const std::vector<std::string>& given, std::size_t index,
                                     const std::vector<BorderDemand>& demands, int64_t rank) {
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
  note_devices(static_cast<int64_t>(borders.devices.size()));
  for (std::size_t i = 0; i < options_.argument_placements.size(); ++i) {
    const std::shared_ptr<const NamedSharding>& own = options_.argument_placements[i];
    const auto known = [&](const BorderDemand& demand) { return demand.index == i; };
    if (!own || own->devices.size() == 1 || std::any_of(argument_borders_.begin(), argument_borders_.end(), known))
      continue;
    note_devices(static_cast<int64_t>(own->devices.size()));
    argument_borders_.push_back({i, own});
  }
  std::string out = FunctionWriter(*this).write(main, "main", "public");
  for (std::size_t i = 0; i < callees_.size(); ++i) {  // grows during the loop
    const Callee callee = callees_[i];
    out += FunctionWriter(*this).write(callee.program, callee.symbol, "private");
  }
  std::string head = "module " + symbol_text(options_.module_name);
  if (devices_ > 1)
    head += concat(" attributes {mhlo.num_partitions = ", devices_, " : i32, mhlo.num_replicas = 1 : i32}");
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

std::string write_module(const Program& program, const WriteOptions& options) {
  return ModuleWriter(options).write(program);
}

}  // namespace capibara::stablehlo

namespace capibara {

namespace stablehlo {

std::string jit_module_name(std::string_view function) {
  std::string name = concat("jit_", function);
  for (char& c : name) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || (c & 0x80);
    if (!kept) c = '_';
  }
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  return name;
}

std::string write_program(const Program& program, const WriteOptions& options) {
  // A program read from a text may hold 64-bit types, whatever the configuration is for host values.
  const ConfigScope scope(config_for(program));
  const auto any_devices = [](const NamedSharding&) { return true; };
  return write_module(lower(with_device_programs(discharge(program).program, any_devices)), options);
}

std::string write_program_bytecode(const Program& program, const WriteOptions& options, bool takes_platform) {
  return write_bytecode_of_text(write_program(program, options), takes_platform);
}

std::string write_bytecode_of_text(std::string_view text, bool takes_platform) {
  // 64-bit types of a text are kept, whatever the configuration is for host values.
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  Module module = without_chlo(parse_module(text));
  for (Function& function : module.functions) {
    if (!takes_platform || function.name != "main") continue;
    const Dictionary name({{"jax.global_constant", Attribute::of(String{"_platform_index"})}});
    function.arguments.insert(function.arguments.begin(),
                              {function.value_count++, Type::tensor({}, "i32"), name, Attribute()});
  }
  return write_bytecode(module);
}

}  // namespace stablehlo

std::string to_stablehlo(const Program& program, const std::string& module_name) {
  return stablehlo::write_program(program, {.module_name = module_name});
}

}  // namespace capibara
