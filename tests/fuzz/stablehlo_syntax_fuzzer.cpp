// A libFuzzer target: no text may crash the StableHLO parser, exhaust the stack or hang it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& module : capibara::stablehlo::parse_modules(text)) print_tree(module);
  } catch (const capibara::ParseError&) {
  }
  return 0;
}
