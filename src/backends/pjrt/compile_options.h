// CompileOptions: the compile options passed to a plugin with the program, in the protocol buffers wire format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "backends/pjrt/api.h"

namespace capibara::pjrt {

struct CompileOptions {
  int64_t replicas = 1, partitions = 1;
  std::vector<int64_t> devices;  // one per replica and partition; empty: the plugin chooses
  // XLA settings by name. They override individual defaults: a whole set of debug options would replace all of them.
  std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides;

  std::string serialize() const;
};

// The arguments of a compilation: a program's text and its options, kept while the plugin reads them.
class CompileArguments {
 public:
  CompileArguments(std::string text, const CompileOptions& options)
      : text_(std::move(text)), options_(options.serialize()) {
    program_.code = text_.data();  // the interface does not promise not to modify it
    program_.code_size = text_.size();
    program_.format = "mlir";
    program_.format_size = 4;
  }
  CompileArguments(const CompileArguments&) = delete;
  template <class T>
  void give_to(abi::Args<T>& args) {
    args.program = &program_;
    args.options = options_.data();
    args.options_size = options_.size();
  }

 private:
  std::string text_, options_;
  abi::Args<abi::ProgramText> program_;
};

// The options for every program of a plugin for this platform: settings from CAPIBARA_XLA_OPTIONS, and those that the
// machine requires.
CompileOptions standard_options(const std::string& platform);

}  // namespace capibara::pjrt
