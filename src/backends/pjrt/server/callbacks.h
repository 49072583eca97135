// Callbacks: programs that call Python functions, which are passed to each execution.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/ffi/targets.h"
#include "compiler/stablehlo/read.h"

namespace capibara::pjrt::server {

// The functions of one executable, by number.
class CallTable {
 public:
  // `python_call` is a Python function, called as python_call(function, values) with a text that describes the
  // operands and the results: see jax_plugins/capibara. It returns the text of an error, empty on success.
  explicit CallTable(void* python_call) : python_call_(python_call) {}

  // The functions for subsequent executions to call; empty: keep the previous ones.
  void set(const std::vector<void*>& functions);
  Arrays call(const stablehlo::NumberedCall& call, std::span<const Array> operands) const;

 private:
  void* python_call_;
  mutable std::mutex mutex_;
  std::vector<void*> functions_;
};

// The handlers registered in Python under a name: python_call(name, "") returns the addresses of the stages' functions.
std::optional<ffi::Handlers> python_target(void* python_call, const std::string& name);

// Options with which the reader resolves the callbacks of a module.
stablehlo::ReadOptions reading_calls(std::shared_ptr<const CallTable> table);

}  // namespace capibara::pjrt::server
