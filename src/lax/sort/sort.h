// Shared by sorting and top_k, and the comparator by which `sort` orders its operands.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// (x0, y0, x1, y1, ...) -> true if x precedes y, lexicographically by the first num_keys operands.
Program sort_comparator(std::span<const ArrayType> operands, int64_t num_keys);

PrimitiveRecord top_k_record();
PrimitiveRecord approx_top_k_record();

inline const std::vector<DType> sortable_dtypes = {
    DType::bool_,  DType::int4,   DType::int8,   DType::int16,    DType::int32,   DType::int64,   DType::uint8,
    DType::uint16, DType::uint32, DType::uint64, DType::bfloat16, DType::float16, DType::float32, DType::float64};

// gather's dimension numbers for an index along `axis` that picks one element of every row.
GatherDimensionNumbers along_axis(int64_t rank, int64_t axis);

namespace jax::lax {

// A non-negative axis of x; raises ValueError.
int64_t normalised_axis(const std::string& op, int64_t axis, const Array& x, const char* argument);

}  // namespace jax::lax

}  // namespace capibara
