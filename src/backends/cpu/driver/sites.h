// The call sites of a marked driver, described for profiles: equations, source line, operations, bytes.
#pragma once

#include <capibara/profile.h>

#include "backends/cpu/groups/reuse.h"

namespace capibara::cpu {

class Sites {
 public:
  // Adds the equations (by number) that one call computes; returns the site's number.
  int32_t add(const Program& program, const Analysis& known, const std::vector<int>& equations);
  // A whole loop.
  int32_t add_loop(const Program& program, const Equation& loop);
  // The rest of a loop iteration after a host call: operations and bytes are attributed to the loop's own site.
  int32_t add_rest(int32_t loop);
  int32_t add_copy(int64_t bytes);
  std::vector<profile::Slot> take() { return std::move(sites_); }

 private:
  int32_t named(profile::Slot site, const std::string& name);
  // Copies the source line and scope of an equation, if any.
  static void locate(profile::Slot& site, const Equation& equation);

  std::vector<profile::Slot> sites_;
};

// True if marks within the iterations of a loop would take a noticeable share of their time.
bool too_short_for_marks(const Program& body);

}  // namespace capibara::cpu
