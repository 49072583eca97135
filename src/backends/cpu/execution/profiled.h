// The twin of a compiled program that profiles run: the same driver with a mark before every call site.
#pragma once

#include <capibara/program.h>

#include <memory>
#include <vector>

#include "backends/cpu/execution/compiler.h"
#include "core/profile/recorder.h"
#include "core/runtime/once.h"

namespace capibara::cpu {

class Profiled {
 public:
  // `optimised`: the compiled program. Nothing is done until a profile runs the program.
  Profiled(std::string name, Program optimised, std::vector<bool> donated);
  Profiled(Profiled&&) noexcept;
  ~Profiled();
  // Compiles the twin, once; any thread may call first. Returns its driver.
  Entry prepare();
  // Of the twin's marks.
  const std::shared_ptr<const profile::SiteTable>& table() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara::cpu
