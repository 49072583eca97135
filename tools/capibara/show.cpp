// capibara show: prints the program of a StableHLO file, as read, after a pass, or on its way to machine code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <capibara/partition.h>
#include <capibara/program.h>

#include "backends/cpu/execution/backend.h"
#include "command.h"
#include "compiler/optimise/pipeline.h"
#include "program_file.h"

namespace capibara::command {

namespace {

int show_passes() {
  std::size_t width = 0;
  for (const passes::Pass& pass : passes::list()) width = std::max(width, std::string_view(pass.name).size());
  for (const passes::Pass& pass : passes::list())
    std::printf("%-*s  %s\n", static_cast<int>(width), pass.name, pass.doc);
  return 0;
}

NamedSharding mesh_of(const Arguments& arguments) {
  NamedSharding devices{"cpu", {}, {}, {}, ""};
  for (const auto& [name, size] : arguments.named_numbers("mesh", 1)) {
    devices.mesh.axis_names.push_back(name);
    devices.mesh.axis_sizes.push_back(size);
  }
  for (int64_t i = 0; i < devices.mesh.size(); ++i) devices.devices.push_back(static_cast<int>(i));
  return devices;
}

// One entry for each input, one name for each dimension: data,model;-,data+model
sharding::MaybeShardings shardings_of(const NamedSharding& devices, const std::string& text) {
  sharding::MaybeShardings shardings;
  for (const std::string& input : split(text, ';')) {
    NamedSharding own = devices;
    for (const std::string& dim : split(input, ','))
      own.spec.dims.push_back(dim.empty() || dim == "-" ? AxisList{} : split(dim, '+'));
    for (std::size_t dim = 0; dim < own.spec.dims.size(); ++dim) own.parts(dim);  // raises for axes that do not exist
    shardings.push_back(std::move(own));
  }
  return shardings;
}

std::string sharded_text(const Program& program, const Arguments& arguments) {
  sharding::MaybeShardings inputs;
  if (arguments.has("mesh")) inputs = shardings_of(mesh_of(arguments), arguments.text("in", ""));
  const sharding::PartitionedProgram parts = sharding::partition(program, inputs);
  return parts.local.to_string() + "\n" + parts.text();
}

}  // namespace

int show(const Arguments& arguments) {
  if (arguments.has("passes")) return show_passes();
  if (arguments.words.size() != 1) throw UsageError{"one file is needed"};
  const std::string target = arguments.text("write", "");
  if (!target.empty()) return write_program_file(arguments.words[0], target, sizes_of(arguments));
  for (const Program& read : read_programs(arguments.words[0], sizes_of(arguments))) {
    Program program = read;
    if (arguments.has("lowered")) program = lower(program);
    if (arguments.has("after")) program = optimise(program, {.after = arguments.text("after", "")});
    auto waiting = std::make_unique<Waiting>(concat("compiling ", arguments.words[0]));
    const std::string text = arguments.has("loops")       ? cpu::loops_text(program)
                             : arguments.has("sharded")   ? sharded_text(program, arguments)
                             : arguments.has("ir")        ? cpu::ir_text(program)
                             : arguments.has("stablehlo") ? to_stablehlo(program)
                                                          : program.to_string();
    waiting.reset();
    std::printf("%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  }
  return 0;
}

}  // namespace capibara::command
