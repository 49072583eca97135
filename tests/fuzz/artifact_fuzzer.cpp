// A libFuzzer target: no bytes may crash the readers of artifacts and of exported functions; what they return can be
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <capibara/error.h>
#include <capibara/program.h>

#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/read.h"

using namespace capibara;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::string module(bytes);
    if (!stablehlo::is_bytecode(bytes)) {
      const stablehlo::ExportedFile file = stablehlo::read_exported_file(bytes);
      const std::string written = stablehlo::write_exported_file(file);
      if (stablehlo::write_exported_file(stablehlo::read_exported_file(written)) != written) std::abort();
      module = file.module;
      if (!stablehlo::is_bytecode(module)) return 0;
    }
    verify(stablehlo::read_module(stablehlo::read_bytecode(module)));
  } catch (const Error&) {
  }
  return 0;
}
