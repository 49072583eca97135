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
Array dot(const Array& a, const Array& b, const ProductOptions& options = {});
Array matmul(const Array& a, const Array& b, const ProductOptions& options = {});
Array vdot(const Array& a, const Array& b, const ProductOptions& options = {});
Array inner(const Array& a, const Array& b, const ProductOptions& options = {});
Array outer(const Array& a, const Array& b);
Array matvec(const Array& x1, const Array& x2);
Array vecmat(const Array& x1, const Array& x2);
struct VecdotOptions {
  int64_t axis = -1;
  std::string precision;
  std::optional<DType> preferred_element_type;
};
Array vecdot(const Array& x1, const Array& x2, const VecdotOptions& options = {});
struct TensordotOptions {
  std::optional<std::pair<Ints, Ints>> axes;  // of a and of b
  int64_t count = 2;                          // without axes: how many of the last of a and the first of b
  std::string precision;
  std::optional<DType> preferred_element_type;
};
Array tensordot(const Array& a, const Array& b, const TensordotOptions& options = {});
Array kron(const Array& a, const Array& b);
struct CrossOptions {
  int64_t axisa = -1, axisb = -1, axisc = -1;
  std::optional<int64_t> axis;  // all three
};
Array cross(const Array& a, const Array& b, const CrossOptions& options = {});

// ---- einsum ------------------------------------------------------------------------------------------------------
// Which operands to contract at each step, by their places in the list; the result is put at its end.
using ContractionPath = std::vector<Ints>;
struct EinsumOptions {
  // "auto", "optimal", "greedy" ...; "unoptimized" from left to right; or a path
  std::variant<std::string, ContractionPath> optimize = std::string("auto");
  std::string precision;
  std::optional<DType> preferred_element_type;
  std::function<Array(const Array&, const Array&, const DotDimensionNumbers&, const lax::DotOptions&)> dot_general;
};
Array einsum(const std::string& subscripts, const Arrays& operands, const EinsumOptions& options = {});
struct EinsumPath {
  ContractionPath path;
  std::string equation;  // with ellipses and the output written out
  double naive_cost = 0, optimized_cost = 0, largest_intermediate = 0;
  std::string text;  // a table of the steps
};
EinsumPath einsum_path(const std::string& subscripts, const std::vector<Shape>& shapes,
                       const EinsumOptions& options = {});

}  // namespace capibara::jax::numpy
