// jax.numpy: creation of arrays, and queries on whole arrays: equality, shape, kind.
#pragma once

#include <capibara/array.h>
#include <capibara/attributes.h>
#include <capibara/numpy/axis.h>
#include <capibara/numpy/elementwise.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace capibara::jax::numpy {

using Arrays = std::vector<Array>;

// ---- from values --------------------------------------------------------------------------------------------------
struct ArrayOptions {
  std::optional<DType> dtype = std::nullopt;  // by default the object's own, weak type included
  bool copy = true;
  int64_t ndmin = 0;  // leading axes of size one are added until the array has this rank
};
// A new array from numbers, arrays, or nested sequences of them.
Array array(const Array& object, const ArrayOptions& options = {});
struct AsarrayOptions {
  std::optional<DType> dtype = std::nullopt;
  bool copy = false;
};
// An array from numbers, arrays, or nested sequences of them; an array is returned as it is.
Array asarray(const Array& a, const AsarrayOptions& options = {});
// A copy of the array.
Array copy(const Array& a);
struct AstypeOptions {
  bool copy = false;
};
// The elements converted to another dtype.
Array astype(const Array& x, DType dtype, const AstypeOptions& options = {});
struct FromstringOptions {
  std::optional<DType> dtype = std::nullopt;  // by default the default float
  int64_t count = -1;                         // all numbers
  std::string sep = " ";
};
// The numbers written in a text, separated by sep.
Array fromstring(const std::string& string, const FromstringOptions& options = {});

// ---- filled with one value ----------------------------------------------------------------------------------------
struct FillOptions {
  std::optional<DType> dtype = std::nullopt;
};
// An array of zeros.
Array zeros(const Shape& shape, const FillOptions& options = {});
// An array of ones.
Array ones(const Shape& shape, const FillOptions& options = {});
// An array of unspecified elements, which are zeros.
Array empty(const Shape& shape, const FillOptions& options = {});
// An array filled with one value, or with an array broadcast to the shape.
Array full(const Shape& shape, const Array& fill_value, const FillOptions& options = {});
struct LikeOptions {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Shape> shape = std::nullopt;
};
// Zeros of the type of another array.
Array zeros_like(const Array& a, const LikeOptions& options = {});
// Ones of the type of another array.
Array ones_like(const Array& a, const LikeOptions& options = {});
// An array of the type of another one, of unspecified elements, which are zeros.
Array empty_like(const Array& prototype, const LikeOptions& options = {});
// An array of the type of another one, filled with one value.
Array full_like(const Array& a, const Array& fill_value, const LikeOptions& options = {});

// ---- sequences ----------------------------------------------------------------------------------------------------
// A bound or step of arange, which must be concrete. The length is computed in double precision for numbers, in their
// own dtype for arrays.
class RangeBound {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> RangeBound(T value)
      : real_(static_cast<double>(value)), integer_(static_cast<int64_t>(value)), is_integer_(std::is_integral_v<T>) {}
  RangeBound(Array array) : array_(std::move(array)) {}

  const Array& array() const { return array_; }  // empty for a number
  bool is_integer() const { return is_integer_; }
  double real() const { return real_; }
  int64_t integer() const { return integer_; }

 private:
  Array array_;
  double real_ = 0;
  int64_t integer_ = 0;
  bool is_integer_ = false;
};
// Numbers from start (by default 0) up to but excluding stop.
// arange(stop), arange(start, stop), arange(start, stop, step).
Array arange(const RangeBound& start, const std::optional<RangeBound>& stop = std::nullopt,
             const std::optional<RangeBound>& step = std::nullopt, const FillOptions& options = {});
struct LinspaceOptions {
  int64_t num = 50;
  bool endpoint = true;
  std::optional<DType> dtype = std::nullopt;
  int64_t axis = 0;  // of the result
};
// Numbers evenly spaced from start to stop.
Array linspace(const Array& start, const Array& stop, const LinspaceOptions& options = {});
// linspace and its step: retstep=True.
std::pair<Array, Array> linspace_and_step(const Array& start, const Array& stop, const LinspaceOptions& options = {});
struct LogspaceOptions {
  int64_t num = 50;
  bool endpoint = true;
  Array base = 10.0;
  std::optional<DType> dtype = std::nullopt;
  int64_t axis = 0;
};
// Numbers evenly spaced on a logarithmic scale, from base^start to base^stop.
Array logspace(const Array& start, const Array& stop, const LogspaceOptions& options = {});
// Numbers from start to stop in geometric progression.
Array geomspace(const Array& start, const Array& stop, const LinspaceOptions& options = {});

// ---- matrices and grids -------------------------------------------------------------------------------------------
struct EyeOptions {
  std::optional<int64_t> M = std::nullopt;  // columns; by default as many as rows
  Array k = 0;                              // which diagonal
  std::optional<DType> dtype = std::nullopt;
};
// A matrix with ones on a diagonal and zeros elsewhere.
Array eye(int64_t N, const EyeOptions& options = {});
// The identity matrix.
Array identity(int64_t n, const FillOptions& options = {});
struct TriOptions {
  std::optional<int64_t> M = std::nullopt;
  int64_t k = 0;
  std::optional<DType> dtype = std::nullopt;  // by default float32
};
// A matrix with ones on and below a diagonal, and zeros above.
Array tri(int64_t N, const TriOptions& options = {});
struct MeshgridOptions {
  bool sparse = false;
  std::string indexing = "xy";  // or "ij"
};
// The coordinates of a grid's points, from the coordinates along each axis.
Arrays meshgrid(const Arrays& xi, const MeshgridOptions& options = {});
// The indices of every element of a grid.
Array indices(const Shape& dimensions, const FillOptions& options = {});
// The indices of a grid along each axis, to be broadcast: indices(..., sparse=True).
Arrays sparse_indices(const Shape& dimensions, const FillOptions& options = {});
// function(i, j, ...) at every index of a grid. The function is called once, on traced scalars.
Array fromfunction(const std::function<Array(const Arrays&)>& function, const Shape& shape,
                   const FillOptions& options = {});
Arrays fromfunction(const std::function<Arrays(const Arrays&)>& function, const Shape& shape,
                    const FillOptions& options = {});

// ---- queries ------------------------------------------------------------------------------------------------------
struct ArrayEqualOptions {
  bool equal_nan = false;
};
// Whether two arrays have the same shape and elements.
Array array_equal(const Array& a1, const Array& a2, const ArrayEqualOptions& options = {});
// Whether two arrays are equal after broadcasting.
Array array_equiv(const Array& a1, const Array& a2);
// Whether |a - b| <= atol + rtol |b| everywhere.
Array allclose(const Array& a, const Array& b, const CloseOptions& options = {});
// Whether this is a complex number or an array of them.
inline bool iscomplexobj(const Array& x) { return is_complex(x.dtype()); }
// Whether this is neither a complex number nor an array of them.
inline bool isrealobj(const Array& x) { return !iscomplexobj(x); }
// Whether this is a number or an array without axes.
inline bool isscalar(const Array& element) { return element.ndim() == 0; }
// The number of axes.
inline int64_t ndim(const Array& a) { return a.ndim(); }
// The sizes along the axes.
inline Shape shape(const Array& a) { return a.shape(); }
// The number of elements, in all or along some axes.
int64_t size(const Array& a, const Axis& axis = {});
// The shape to which all of these broadcast.
Shape broadcast_shapes(const std::vector<Shape>& shapes);

}  // namespace capibara::jax::numpy
