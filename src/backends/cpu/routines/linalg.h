// Linear algebra in loop form: replaces LAPACK under jit.
#pragma once

#include "backends/cpu/routines/algebra.h"

namespace capibara::cpu::routines {

// ---- parameters: the inputs, the outputs, then scratch memory ------------------------------------------------------
Function cholesky(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function lu(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function triangular_solve(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function geqrf(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function householder_product(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function eigh(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function svd(const Types& inputs, const Types& outputs, const Attrs& attrs);

// ---- batches: an array is `count` contiguous matrices (or vectors) -------------------------------------------------
int32_t parameter_for(Builder& builder, const ArrayType& type, bool written);
int64_t matrix_count(const ArrayType& type, std::size_t rank = 2);
Matrix matrix_of(int32_t buffer, const ArrayType& type, const Position& number, std::size_t rank = 2);

}  // namespace capibara::cpu::routines
