// capibara show: the program of a StableHLO file, as jaxpr text.
#include <cstdio>

#include <capibara/program.h>

#include "command.h"
#include "program/stablehlo/parser.h"
#include "program/stablehlo/read.h"

namespace capibara::command {

int show(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError{"one file is needed"};
  for (const stablehlo::Module& module : stablehlo::parse_modules(read_text(arguments.words[0]))) {
    Program program = stablehlo::read_module(module);
    if (arguments.has("lowered")) program = lower(program);
    const std::string text = arguments.has("stablehlo") ? to_stablehlo(program) : program.to_string();
    std::printf("%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  }
  return 0;
}

}  // namespace capibara::command
