// Shared by the rules of reductions, windows and cumulative operations.
#pragma once

#include <capibara/primitive.h>

#include "program/trace/trace.h"

namespace capibara {

PrimitiveRecord argmax_record();
PrimitiveRecord argmin_record();

// Dtypes that can be added: integers, real and complex floats.
inline const std::vector<DType> sum_dtypes = {
    DType::int2,     DType::int4,    DType::int8,    DType::int16,   DType::int32,     DType::int64,
    DType::uint2,    DType::uint4,   DType::uint8,   DType::uint16,  DType::uint32,    DType::uint64,
    DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128};

Shape without_axes(const Shape& shape, const Ints& axes);
BatchResult batch_reduction(const BatchArgs& args);

// Applies a program of scalars elementwise to arrays of equal shape, under the current trace.
Arrays apply_region(const Program& region, std::span<const Array> inputs);

// The jvp of folding operands over `axes` as a balanced tree of `combine` (first halves..., second halves...).
JvpResult reduction_tree_jvp(const FlatFunction& combine, const Arrays& init_values, std::span<const Array> primals,
                             std::span<const Array> tangents, const Ints& axes);

}  // namespace capibara
