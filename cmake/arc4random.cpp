// arc4random for wheels, which LLVM and libstdc++ call: glibc has it since 2.36, and wheels promise to run with 2.35.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();  // 4 bytes are never interrupted
  return value;
}
