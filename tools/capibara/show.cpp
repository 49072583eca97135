// capibara show: the program of a StableHLO file, as it was read, after a pass, or on its way to machine code.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include <capibara/program.h>

#include "backends/cpu/execution/backend.h"
#include "command.h"
#include "optimise/pipeline.h"
#include "stablehlo/parser.h"
#include "stablehlo/read.h"

namespace capibara::command {

namespace {

int show_passes() {
  std::size_t width = 0;
  for (const passes::Pass& pass : passes::list()) width = std::max(width, std::string_view(pass.name).size());
  for (const passes::Pass& pass : passes::list()) std::printf("%-*s  %s\n", static_cast<int>(width), pass.name, pass.doc);
  return 0;
}

}  // namespace

int show(const Arguments& arguments) {
  if (arguments.has("passes")) return show_passes();
  if (arguments.words.size() != 1) throw UsageError{"one file is needed"};
  for (const stablehlo::Module& module : stablehlo::parse_modules(read_text(arguments.words[0]))) {
    Program program = stablehlo::read_module(module);
    if (arguments.has("lowered")) program = lower(program);
    if (arguments.has("after")) program = optimise(program, {.after = arguments.text("after", "")});
    const std::string text = arguments.has("loops")       ? cpu::loops_text(program)
                             : arguments.has("ir")        ? cpu::ir_text(program)
                             : arguments.has("stablehlo") ? to_stablehlo(program)
                                                          : program.to_string();
    std::printf("%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  }
  return 0;
}

}  // namespace capibara::command
