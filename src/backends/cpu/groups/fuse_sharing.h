// What results of one nest share: how large a nest may become, and whether two results depend on the same values.
#pragma once

#include "backends/cpu/groups/fuse.h"

namespace capibara::cpu {

inline constexpr int max_group = 96;  // equations in one nest: larger ones compile slowly and spill

// True if a nest may take in another equation. One that lacks many inputs, which loops have yet to compute, may exceed
// the usual limit: each of these would otherwise be stored and read again.
bool has_room(const Program& program, const Fusion& fusion, int equation, int group);

// True if an equation reads, directly or through others that its loops can compute, a value that a group also reads, or
// will read: one that loops have yet to compute and that results of the group depend on. `readers`: by variable.
bool reads_with(const Program& program, const Fusion& fusion, const std::vector<std::vector<int>>& readers,
                int equation, int group);

}  // namespace capibara::cpu
