// jax.numpy: products of arrays and sums over shared axes.
#pragma once

#include <capibara/lax.h>
#include <capibara/numpy/axis.h>

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace capibara::jax::numpy {

using Arrays = std::vector<Array>;

struct ProductOptions {
  std::string precision;  // "", "default", "high", "highest" or a dot algorithm
  std::optional<DType> preferred_element_type;
};
// The sum of products over the last axis of a and the second to last of b.
Array dot(const Array& a, const Array& b, const ProductOptions& options = {});
// The matrix product; leading axes are batches.
Array matmul(const Array& a, const Array& b, const ProductOptions& options = {});
// The dot product of the flattened arrays, a conjugated.
Array vdot(const Array& a, const Array& b, const ProductOptions& options = {});
// The sum of products over the last axes.
Array inner(const Array& a, const Array& b, const ProductOptions& options = {});
// The product of each element of a with each of b.
Array outer(const Array& a, const Array& b);
// Matrices times vectors; leading axes are batches.
Array matvec(const Array& x1, const Array& x2);
// Conjugated vectors times matrices; leading axes are batches.
Array vecmat(const Array& x1, const Array& x2);
struct VecdotOptions {
  int64_t axis = -1;
  std::string precision;
  std::optional<DType> preferred_element_type;
};
// The dot product of vectors along an axis, x1 conjugated.
Array vecdot(const Array& x1, const Array& x2, const VecdotOptions& options = {});
struct TensordotOptions {
  std::optional<std::pair<Ints, Ints>> axes;  // of a and of b
  int64_t count = 2;                          // without axes: the number of last axes of a and first axes of b
  std::string precision;
  std::optional<DType> preferred_element_type;
};
// The sum of products over several axes.
Array tensordot(const Array& a, const Array& b, const TensordotOptions& options = {});
// The Kronecker product: blocks of b scaled by the elements of a.
Array kron(const Array& a, const Array& b);
struct CrossOptions {
  int64_t axisa = -1, axisb = -1, axisc = -1;
  std::optional<int64_t> axis;  // all three
};
// The cross product of vectors of two or three components.
Array cross(const Array& a, const Array& b, const CrossOptions& options = {});

// ---- einsum ------------------------------------------------------------------------------------------------------
// Which operands to contract at each step, by position in the list; the result is appended to it.
using ContractionPath = std::vector<Ints>;
struct EinsumOptions {
  // "auto", "optimal", "greedy" ...; "unoptimized" from left to right; or a path
  std::variant<std::string, ContractionPath> optimize = std::string("auto");
  std::string precision;
  std::optional<DType> preferred_element_type;
  std::function<Array(const Array&, const Array&, const DotDimensionNumbers&, const lax::DotOptions&)> dot_general;
};
// Sums of products named by the labels of axes: einsum('ij,jk->ik', a, b).
Array einsum(const std::string& subscripts, const Arrays& operands, const EinsumOptions& options = {});
struct EinsumPath {
  ContractionPath path;
  std::string equation;  // with ellipses and the output written out
  double naive_cost = 0, optimized_cost = 0, largest_intermediate = 0;
  std::string text;  // a table of the steps
};
// The order in which einsum contracts its operands, and what it costs.
EinsumPath einsum_path(const std::string& subscripts, const std::vector<Shape>& shapes,
                       const EinsumOptions& options = {});

}  // namespace capibara::jax::numpy
