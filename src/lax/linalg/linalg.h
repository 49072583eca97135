// Shared by the primitives of linear algebra: matrix expressions as jax writes them, operand checks, and the records
// by file.
#pragma once

#include "lax/families.h"
#include "lax/rules.h"

namespace capibara {

std::vector<PrimitiveRecord> factor_records();      // cholesky, lu and their parts
std::vector<PrimitiveRecord> orthogonal_records();  // qr and its parts
std::vector<PrimitiveRecord> spectral_records();    // eig, eigh, svd, schur, hessenberg, tridiagonal
std::vector<PrimitiveRecord> solver_records();      // triangular_solve, tridiagonal_solve, symmetric_product

namespace linalg {

// ---- operands ---------------------------------------------------------------------------------------------------

// The operands of a linear algebra primitive, split into leading batch dimensions and the trailing matrix or vector.
struct Operands {
  Shape batch;
  std::vector<Shape> core;  // one per operand
  bool weak = true;         // all operands are weakly typed

  ArrayType type(DType dtype, std::initializer_list<int64_t> core_shape) const;
};
struct OperandRules {
  std::vector<int64_t> ranks;
  bool batched = true;  // true if leading batch dimensions are allowed
  bool real_only = false;
  bool same_dtypes = true;
};
Operands split_operands(const std::string& op, std::span<const ArrayType> types, const OperandRules& rules);
void require_square(const std::string& op, const Shape& core);

inline const std::vector<DType> lapack_dtypes = {DType::float32, DType::float64, DType::complex64, DType::complex128};
inline const std::vector<DType> inexact_dtypes = {DType::float32,    DType::float64,  DType::complex64,
                                                  DType::complex128, DType::bfloat16, DType::float16};

// One call on operands of the given shapes.
Sample sample(DType dtype, const std::vector<Shape>& shapes, Attrs attrs = {});
// One call on a matrix of each of the given shapes.
std::vector<Sample> matrix_samples(DType dtype, const std::vector<Shape>& shapes, const Attrs& attrs = {});
inline const std::vector<Shape> matrix_shapes = {{3, 3}, {4, 2}, {2, 4}, {2, 3, 2}, {1, 1}, {2, 0, 0}};

// A record of a decomposition: its name, doc, dtypes and batch rule.
PrimitiveRecord decomposition(std::string name, std::string doc);

// A check of lax functions: raises TypeError if x has fewer than two dimensions.
void require_matrices(const char* op, const Array& x);

// ---- matrices: the trailing two dimensions ----------------------------------------------------------------------

Array transposed(const Array& x);
Array adjoint(const Array& x);      // transposed and conjugated
Array symmetrized(const Array& x);  // (x + adjoint(x)) / 2
Array tril(const Array& x, int64_t k = 0);
Array triu(const Array& x, int64_t k = 0);
Array eye(DType dtype, int64_t rows, int64_t cols);
Array with_rank(const Array& x, int64_t rank);  // leading dimensions of size 1
Array diagonal(const Array& x);
Array diagonal_matrix(const Array& x);
// Rows or columns [begin, end) of the matrices.
Array rows(const Array& x, int64_t begin, int64_t end);
Array cols(const Array& x, int64_t begin, int64_t end);
// x @ y for equal batch dimensions; precision "" or "highest".
Array matmul(const Array& x, const Array& y, const std::string& precision = "");
// The matmul that jax writes as lax.dot or lax.batch_matmul with the highest precision.
Array product(const Array& x, const Array& y);
Array real_part(const Array& x);              // x if it is real
Array as_dtype(const Array& x, DType dtype);  // x if it has that dtype

struct TriangularForm {
  bool left_side = false, lower = false, transpose_a = false, conjugate_a = false, unit_diagonal = false;
};
Array triangular_solve(const Array& a, const Array& b, const TriangularForm& form);

// Applies a function of single matrices to every matrix of a batch.
using MatrixFunction = std::function<Array(std::span<const Array>)>;
Array map_batch(const MatrixFunction& function, std::span<const Array> inputs, int64_t batch_dims);

// x where lu, permutation = lu(a): a x = b (trans 0), transpose(a) x = b (1), adjoint(a) x = b (2), with broadcasting.
Array lu_solve(const Array& lu, const Array& permutation, const Array& b, int trans);
// a x = b by one factorization, also for derivatives; b is [..., m] or [..., m, k].
Array solve(const Array& a, const Array& b);

// ---- lowering ---------------------------------------------------------------------------------------------------

// Sets the rules that rewrite each decomposition as a call of jaxlib's LAPACK functions.
void add_lapack_lowering(std::vector<PrimitiveRecord>& records);

}  // namespace linalg

}  // namespace capibara
