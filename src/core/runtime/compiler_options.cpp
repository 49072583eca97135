// Options of compilations: the process's, and those of the thread that compiles.
#include "core/runtime/compiler_options.h"

#include <mutex>
#include <utility>

namespace capibara {

namespace {

std::mutex options_mutex;
CompilerOptions& default_options() {
  static auto* options = new CompilerOptions;  // never freed: programs are compiled until the very end
  return *options;
}
thread_local CompilerOptions own;

}  // namespace

CompilerOptions compiler_options() {
  CompilerOptions all = own;
  std::lock_guard lock(options_mutex);
  all.insert(default_options().begin(), default_options().end());
  return all;
}

void set_default_compiler_options(CompilerOptions options) {
  std::lock_guard lock(options_mutex);
  default_options() = std::move(options);
}

CompilerOptionsScope::CompilerOptionsScope(CompilerOptions options)
    : previous_(std::exchange(own, std::move(options))) {}
CompilerOptionsScope::~CompilerOptionsScope() { own = std::move(previous_); }

}  // namespace capibara
