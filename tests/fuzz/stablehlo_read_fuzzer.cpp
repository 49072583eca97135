// A libFuzzer target: no text may crash the reader; a program that it returns is well typed and can be written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <capibara/error.h>
#include <capibara/program.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const capibara::Program program = capibara::from_stablehlo({reinterpret_cast<const char*>(data), size});
    capibara::verify(program);
    const std::string text = capibara::to_stablehlo(program);
    if (capibara::to_stablehlo(capibara::from_stablehlo(text)) != text) std::abort();
  } catch (const capibara::Error&) {
  }
  return 0;
}
