// Issues the library's warnings.
#include "core/runtime/warning.h"

#include <cstdio>
#include <memory>
#include <mutex>

namespace capibara {

namespace {

std::mutex warning_mutex;
std::shared_ptr<const WarningHandler> warning_handler;

}  // namespace

void warn(const std::string& text, WarningKind kind) {
  std::shared_ptr<const WarningHandler> current;
  {
    std::lock_guard lock(warning_mutex);
    current = warning_handler;
  }
  if (current) {
    (*current)(text, kind);
  } else {
    std::fprintf(stderr, "capibara: warning: %s\n", text.c_str());
  }
}

void set_warning_handler(WarningHandler next) {
  std::lock_guard lock(warning_mutex);
  warning_handler = next ? std::make_shared<const WarningHandler>(std::move(next)) : nullptr;
}

}  // namespace capibara
