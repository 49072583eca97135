// Writes a scan with elementwise steps as one function: blocks of elements pass through all steps.
#pragma once

#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// The parameters are consts, first values of carries, xs, last values of carries, ys. `in_place`: for each carry,
// whether its first value is already in the memory of the last one; it is no parameter of its own then.
Function write_scan_blocks(const Equation& scan, const std::vector<bool>& in_place);

}  // namespace capibara::cpu
