// Sets the variables with which libtpu compiles without a TPU.
#include "backends/pjrt/tpu_environment.h"

#include <cstdlib>
#include <string_view>

#include <capibara/error.h>

namespace capibara::pjrt {

std::string accelerator_type(const std::string& topology) {
  // Some generations count chips, others cores, two per chip.
  struct Generation {
    std::string_view topology, type;
    int64_t per_chip;
  };
  static constexpr Generation generations[] = {{"v2", "v2", 2},         {"v3", "v3", 2},      {"v4", "v4", 2},
                                               {"v5e", "v5litepod", 1}, {"v5p", "v5p", 2},    {"v5", "v5p", 2},
                                               {"v6e", "v6e", 1},       {"tpu7x", "tpu7x", 2}};
  const std::size_t colon = topology.find(':');
  if (colon == std::string::npos) return "";
  int64_t chips = 1, size = 0;
  for (const char letter : topology.substr(colon + 1) + "x") {
    if (letter == 'x') {
      chips *= size;
      size = 0;
    } else if (letter >= '0' && letter <= '9' && size < 100000) {
      size = size * 10 + (letter - '0');
    } else {
      return "";
    }
  }
  for (const Generation& generation : generations) {
    if (chips > 0 && topology.substr(0, colon) == generation.topology)
      return concat(generation.type, "-", chips * generation.per_chip);
  }
  return "";
}

void set_tpu_environment(const std::string& topology) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "true", 0);  // compilation needs no device: several processes may do it at once
  if (const std::string type = accelerator_type(topology); !type.empty())
    setenv("TPU_ACCELERATOR_TYPE", type.c_str(), 0);
}

}  // namespace capibara::pjrt
