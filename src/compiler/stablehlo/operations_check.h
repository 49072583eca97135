// A program's expectations of its own values: the results of check.expect_* while a CheckScope is open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <capibara/primitive.h>

namespace capibara::stablehlo {

struct CheckLog {
  bool perturb = false;               // change one expected element beyond its tolerance: some expectation must fail
  bool parts_share_error = false;     // ULPs of a complex number are those of its magnitude: for sums in another order
  int64_t expectations = 0;           // compared so far, except those without elements
  std::vector<std::string> failures;  // one line each: operation, first differing element, how many differ
  std::map<std::string, Arrays> probes;
};

// Collects the expectations that programs evaluate on this thread. Without a scope, a failed expectation raises
// RuntimeError.
class CheckScope {
 public:
  explicit CheckScope(CheckLog& log);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

 private:
  CheckLog* previous_;
};

}  // namespace capibara::stablehlo
