// Matmuls of ragged groups of rows as loops over blocks of rows: memory is that of the operands and the result, work
// is proportional to the rows plus at most one block for each group.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// Groups are consecutive from the first row on. Negative sizes count as zero, rows that do not exist are in no group.
struct RaggedProduct {
  Attr precision;  // of dot_general
  DType out;
};
// [rows, inner] x [groups, inner, columns] -> [rows, columns]; rows in no group are zero. `transposed`: the matrices
// are [groups, columns, inner].
Array multiply_ragged_rows(const Array& x, const Array& matrices, const Array& sizes, bool transposed,
                           const RaggedProduct& product);
// [rows, inner] x [rows, columns] -> [groups, inner, columns]: the sum of x^T y over the rows of each group.
Array multiply_ragged_inner(const Array& x, const Array& y, const Array& sizes, const RaggedProduct& product);

}  // namespace capibara
