// A program as an object file with its header.
#include <capibara/object_code.h>

#include <fstream>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/object/compose.h"
#include "backends/cpu/object/header.h"
#include "backends/cpu/object/targets.h"
#include "core/array/byte_count.h"
#include "program/trace/discharge.h"

namespace capibara {

namespace cpu {

namespace {

[[noreturn]] void refuse_calls(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < 5; ++i) list += concat(i > 0 ? "; " : "", names[i]);
  throw NotImplementedError(concat("compile_object: an object holds no code for ", list,
                                   names.size() > 5 ? concat(" and ", names.size() - 5, " more") : "",
                                   " (argument 'program'); expected operations that become loops, got calls of the ",
                                   "process: callbacks, collectives, custom calls and what only kernels compute stay ",
                                   "with jax::load_exported"));
}

constexpr std::size_t min_external_bytes = 256, weights_alignment = 64;

// `weights`: receives the constants that are not in the object; null if all are.
CFunction function_of(const std::string& name, const Program& program, const Lowered& lowered, std::string* weights) {
  CFunction function;
  function.name = name;
  function.inputs = program.invars().size();
  function.takes_weights = weights != nullptr;
  for (const Array& constant : lowered.constants) {
    const std::string_view bytes(reinterpret_cast<const char*>(constant.raw_data()), byte_count(constant.type()));
    function.constants.push_back({bytes});
    if (!weights || bytes.size() < min_external_bytes) continue;
    weights->resize((weights->size() + weights_alignment - 1) / weights_alignment * weights_alignment);
    function.constants.back().in_weights = static_cast<int64_t>(weights->size());
    *weights += bytes;
  }
  if (weights && weights->empty()) {
    throw ValueError(concat("compile_object: ", name, " has no constant of ", min_external_bytes,
                            " bytes or more (argument 'external_weights'); expected weights that the function closed ",
                            "over, got arguments alone; leave them out"));
  }
  for (const Lowered::Output& output : lowered.outputs) {
    using From = CFunction::Output::From;
    const From from = output.from == Lowered::Output::From::driver     ? From::driver
                      : output.from == Lowered::Output::From::input    ? From::input
                      : output.from == Lowered::Output::From::constant ? From::constant
                                                                       : From::output;
    function.outputs.push_back(
        {from, static_cast<std::size_t>(output.index), static_cast<int64_t>(byte_count(output.type))});
  }
  return function;
}

std::vector<std::pair<std::string, ArrayType>> named_types(const Types& types, const std::vector<std::string>& names,
                                                           const char* otherwise) {
  std::vector<std::pair<std::string, ArrayType>> list;
  for (std::size_t i = 0; i < types.size(); ++i) {
    list.emplace_back(i < names.size()    ? names[i]
                      : types.size() == 1 ? otherwise
                                          : concat(otherwise, "[", i, "]"),
                      types[i]);
  }
  return list;
}

}  // namespace

}  // namespace cpu

namespace jax {

ObjectCode compile_object(const Program& program, const ObjectOptions& options, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  if (holds_refs(program)) {
    throw NotImplementedError(
        "compile_object: the program reads or writes references (argument 'program'); expected a program on values");
  }
  const std::vector<cpu::Target> targets = cpu::object_targets(options.targets);
  const Program best = cpu::optimised_for_object(program);
  const cpu::Lowered lowered = cpu::lower_without_kernels(best);
  if (!lowered.kernel_names.empty()) cpu::refuse_calls(lowered.kernel_names);
  ObjectCode code;
  code.name = cpu::c_identifier(options.name.empty() ? program.name() : options.name);
  code.arena_bytes = lowered.arena_bytes;
  const cpu::CFunction function =
      cpu::function_of(code.name, program, lowered, options.external_weights ? &code.weights : nullptr);
  code.object = cpu::compiler().object_file(lowered.module, function, targets);
  cpu::ObjectHeader header{code.name,
                           options.targets,
                           cpu::named_types(program.input_types(), inputs, "args"),
                           cpu::named_types(program.output_types(), outputs, "result"),
                           code.arena_bytes,
                           0};
  header.takes_weights = function.takes_weights;
  header.weights_bytes = static_cast<int64_t>(code.weights.size());
  for (const cpu::CFunction::Constant& constant : function.constants) {
    if (constant.in_weights < 0) header.constant_bytes += static_cast<int64_t>(constant.bytes.size());
  }
  code.header = cpu::to_string(header);
  return code;
}

ObjectCode compile_object(const Exported& exported, const ObjectOptions& options) {
  const std::vector<std::string> all = argument_names(exported.in_tree());
  std::vector<std::string> inputs;
  for (std::size_t kept : exported.kept_arguments()) inputs.push_back(all.at(kept));
  ObjectOptions named = options;
  if (named.name.empty()) named.name = exported.name();
  if (exported.has_symbolic_sizes() && options.sizes.empty()) {
    throw ValueError(concat("compile_object: '", exported.name(), "' has symbolic sizes",
                            "\nHint: the option sizes (--sizes b=8,n=4) gives each name a value"));
  }
  const Program program = exported.program(exported.in_types(options.sizes));
  return compile_object(program, named, inputs, result_names(exported.out_tree()));
}

std::vector<std::string> argument_names(const TreeDef& in_tree) {
  std::vector<std::string> names;
  for (const KeyPath& path : in_tree.paths()) {
    const KeyPath inner(path.begin() + 1, path.end());
    names.push_back((path.at(0).number == 0 ? "args" : "kwargs") + keystr(inner));
  }
  return names;
}

std::vector<std::string> result_names(const TreeDef& out_tree) {
  std::vector<std::string> names;
  for (const KeyPath& path : out_tree.paths()) names.push_back("result" + keystr(path));
  return names;
}

void ObjectCode::write(const std::string& object_path, const std::string& header_path,
                       const std::string& weights_path) const {
  if (weights.empty() != weights_path.empty()) {
    throw ValueError(concat("compile_object: ", name, weights.empty() ? " has no" : " has",
                            " external weights (argument 'weights_path'); expected a path where there are some, got '",
                            weights_path, "'"));
  }
  std::vector<std::pair<const std::string*, const std::string*>> files = {{&object_path, &object},
                                                                          {&header_path, &header}};
  if (!weights.empty()) files.emplace_back(&weights_path, &weights);
  for (const auto& [path, bytes] : files) {
    std::ofstream file(*path, std::ios::binary);
    if (!file.write(bytes->data(), static_cast<std::streamsize>(bytes->size())).flush())
      throw RuntimeError(concat("compile_object: ", *path, " cannot be written"));
  }
}

}  // namespace jax

}  // namespace capibara
