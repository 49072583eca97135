// Callbacks: programs that call functions of Python, which each execution brings along.
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
  // `python_call` is a function of Python, called as python_call(function, values) with a text that describes the
  // operands and the results: see jax_plugins/capibara. It returns the text of an error, empty where there is none.
  explicit CallTable(void* python_call) : python_call_(python_call) {}

  // The functions that the next executions call; none: those of before.
  void set(const std::vector<void*>& functions);
  Arrays call(const stablehlo::NumberedCall& call, std::span<const Array> operands) const;

 private:
  void* python_call_;
  mutable std::mutex mutex_;
  std::vector<void*> functions_;
};

// The handlers that Python knows under a name: python_call(name, "") returns the addresses of the stages' functions.
std::optional<ffi::Handlers> python_target(void* python_call, const std::string& name);

// What the reader asks for each callback of a module.
stablehlo::ReadOptions reading_calls(std::shared_ptr<const CallTable> table);

}  // namespace capibara::pjrt::server
