// Options of compilations by name, as jit(compiler_options=...) takes them; each backend has its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace capibara {

using CompilerOptions = std::map<std::string, std::variant<bool, int64_t, double, std::string>>;

// The options of this thread's compilation: the process's, overridden by those of the innermost scope.
CompilerOptions compiler_options();
void set_default_compiler_options(CompilerOptions options);  // of the process

class [[nodiscard]] CompilerOptionsScope {
 public:
  explicit CompilerOptionsScope(CompilerOptions options);
  ~CompilerOptionsScope();
  CompilerOptionsScope(const CompilerOptionsScope&) = delete;
  CompilerOptionsScope& operator=(const CompilerOptionsScope&) = delete;

 private:
  CompilerOptions previous_;
};

}  // namespace capibara
