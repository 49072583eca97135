// The call sites of a marked driver, described for profiles: equations, source line, operations, bytes.
#pragma once

#include <capibara/profile.h>

#include "backends/cpu/groups/reuse.h"

namespace capibara::cpu {

class Sites {
 public:
  // Equations that one call computes, by their numbers; returns the site's number.
  int32_t add(const Program& program, const Analysis& known, const std::vector<int>& equations);
  // A whole loop.
  int32_t add_loop(const Program& program, const Equation& loop);
  // What runs in an iteration of a loop after a call of the host: operations and bytes stay with the loop's own site.
  int32_t add_rest(int32_t loop);
  int32_t add_copy(int64_t bytes);
  std::vector<profile::Slot> take() { return std::move(sites_); }

 private:
  int32_t named(profile::Slot site, const std::string& name);
  // Takes over the line and the scope of an equation, where it has them.
  static void locate(profile::Slot& site, const Equation& equation);

  std::vector<profile::Slot> sites_;
};

// Whether marks within the iterations of a loop would take a noticeable part of them.
bool too_short_for_marks(const Program& body);

}  // namespace capibara::cpu
