// What results of one nest share: how large a nest may become, and whether two results are made of the same values.
#pragma once

#include "backends/cpu/groups/fuse.h"

namespace capibara::cpu {

inline constexpr int max_group = 96;  // equations in one nest: larger ones compile slowly and spill

// Whether a nest may take in one more equation. One that waits for many values which loops have yet to compute may grow
// beyond the limit of others: each of them would be stored and read again.
bool has_room(const Program& program, const Fusion& fusion, int equation, int group);

// Whether an equation reads, directly or through others that its loops can compute, a value that a group reads too, or
// will: one that loops have yet to compute and that results of the group are made of. `readers`: by variable.
bool reads_with(const Program& program, const Fusion& fusion, const std::vector<std::vector<int>>& readers,
                int equation, int group);

}  // namespace capibara::cpu
