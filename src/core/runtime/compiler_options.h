// Options of compilations by name, as jit(compiler_options=...) gives them; each backend knows its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace capibara {

using CompilerOptions = std::map<std::string, std::variant<bool, int64_t, double, std::string>>;

// Of the compilation that this thread runs: the process's, with those of the innermost scope over them.
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
