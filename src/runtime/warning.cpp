// The one way a warning takes out of the library.
#include "runtime/warning.h"

#include <cstdio>
#include <memory>
#include <mutex>

namespace capibara {

namespace {

std::mutex mutex;
std::shared_ptr<const WarningHandler> handler;

}  // namespace

void warn(const std::string& text, WarningKind kind) {
  std::shared_ptr<const WarningHandler> current;
  {
    std::lock_guard lock(mutex);
    current = handler;
  }
  if (current) {
    (*current)(text, kind);
  } else {
    std::fprintf(stderr, "capibara: warning: %s\n", text.c_str());
  }
}

void set_warning_handler(WarningHandler next) {
  std::lock_guard lock(mutex);
  handler = next ? std::make_shared<const WarningHandler>(std::move(next)) : nullptr;
}

}  // namespace capibara
