// A libFuzzer target: no bytes may crash the reader of .xplane.pb files, and what it reads can be written back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <capibara/error.h>
#include <capibara/profile_formats.h>

#include "io/files/json.h"
#include "operate/reports/xspace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const std::string written = capibara::profile::write_xspace(capibara::profile::read_xspace(bytes));
    if (capibara::profile::write_xspace(capibara::profile::read_xspace(written)) != written) std::abort();
    capibara::Json::parse(capibara::profile::to_trace_json(bytes), "trace");
  } catch (const capibara::ValueError&) {
  }
  return 0;
}
