// The comparator by which `sort` orders its operands, as the region of the general sort.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// (x0, y0, x1, y1, ...) -> whether x goes before y, lexicographically by the first num_keys operands.
Program sort_comparator(std::span<const ArrayType> operands, int64_t num_keys);

}  // namespace capibara
