// The processes that take part in an exchange, according to the operation.
#pragma once

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

struct ProcessId {
  int64_t replica = 0, partition = 0;
  friend bool operator==(ProcessId, ProcessId) = default;
};

struct Grid {
  int64_t replicas = 1, partitions = 1;
};

using Group = std::vector<ProcessId>;

int64_t channel_of(const Operation& operation);  // 0: none
// Rows of replica_groups; -1 pads short rows. A single row of `count` if the text has none.
std::vector<Ints> id_groups(const Operation& operation, int64_t count);
std::vector<Group> process_groups(const Operation& operation, const Grid& grid);

}  // namespace capibara::stablehlo
