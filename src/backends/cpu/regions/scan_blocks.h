// Emits a scan with elementwise steps as one function: blocks of elements pass through all steps.
#pragma once

#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// The parameters are consts, initial values of carries, xs, final values of carries, ys. `in_place`: for each carry,
// whether its initial value is already in the memory of the final one; it is then no parameter of its own.
Function write_scan_blocks(const Equation& scan, const std::vector<bool>& in_place);

}  // namespace capibara::cpu
