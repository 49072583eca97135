// Exchanges of lanes between the processes along an axis of a mesh.
#pragma once

#include "core/processes/exchange.h"
#include "core/sharding/process_grid.h"
#include "lax/families.h"

namespace capibara {

Family process_records();  // process_all_gather, process_permute, process_reduce

bool is_process_exchange(const Primitive& primitive);
// Starts one of these on raw memory, which belongs to the exchange until it is over; `owner` keeps it alive.
processes::Pending start_process_exchange(const Primitive& primitive, const ArrayType& operand, const Attrs& attrs,
                                          const std::byte* from, std::byte* to, std::shared_ptr<const void> owner);
// True if this exchange ends soon after any failure, so that only the caller has to own the memory.
bool lets_go_of_memory(const Attrs& attrs);

// [lanes of this process, ...] -> [lanes of all processes along the axis, ...]
Array process_all_gather(const Array& lanes, const std::string& operation, const ProcessAxis& axis);
// [lanes of this process, ...] -> [...]; `reduction`: psum, pmax, pmin. Sums add in a fixed tree over all lanes.
Array process_reduce(const Array& lanes, const std::string& reduction, const ProcessAxis& axis);

// The value of the process at position `source` of the axis, for which this one sends its own to `target`; -1: no one.
Array process_permute(const Array& x, const std::string& operation, const ProcessAxis& axis, int64_t source,
                      int64_t target);

}  // namespace capibara
