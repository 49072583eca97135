// jax.numpy's makers of arrays, and questions about whole arrays: equality, shape, kind.
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
  int64_t ndmin = 0;  // leading axes of size one are added up to this rank
};
Array array(const Array& object, const ArrayOptions& options = {});
struct AsarrayOptions {
  std::optional<DType> dtype = std::nullopt;
  bool copy = false;
};
Array asarray(const Array& a, const AsarrayOptions& options = {});
Array copy(const Array& a);
struct AstypeOptions {
  bool copy = false;
};
Array astype(const Array& x, DType dtype, const AstypeOptions& options = {});
struct FromstringOptions {
  std::optional<DType> dtype = std::nullopt;  // by default the default float
  int64_t count = -1;                         // all numbers
  std::string sep = " ";
};
Array fromstring(const std::string& string, const FromstringOptions& options = {});

// ---- of one value -------------------------------------------------------------------------------------------------
struct FillOptions {
  std::optional<DType> dtype = std::nullopt;
};
Array zeros(const Shape& shape, const FillOptions& options = {});
Array ones(const Shape& shape, const FillOptions& options = {});
Array empty(const Shape& shape, const FillOptions& options = {});  // zeros: arrays are never uninitialised
Array full(const Shape& shape, const Array& fill_value, const FillOptions& options = {});
struct LikeOptions {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Shape> shape = std::nullopt;
};
Array zeros_like(const Array& a, const LikeOptions& options = {});
Array ones_like(const Array& a, const LikeOptions& options = {});
Array empty_like(const Array& prototype, const LikeOptions& options = {});
Array full_like(const Array& a, const Array& fill_value, const LikeOptions& options = {});

// ---- sequences ----------------------------------------------------------------------------------------------------
// A bound or step of arange, which must be concrete. Numbers decide the length in double precision, arrays in their own.
class RangeBound {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  RangeBound(T value)
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
// arange(stop), arange(start, stop), arange(start, stop, step).
Array arange(const RangeBound& start, const std::optional<RangeBound>& stop = std::nullopt,
             const std::optional<RangeBound>& step = std::nullopt, const FillOptions& options = {});
struct LinspaceOptions {
  int64_t num = 50;
  bool endpoint = true;
  std::optional<DType> dtype = std::nullopt;
  int64_t axis = 0;  // of the result
};
Array linspace(const Array& start, const Array& stop, const LinspaceOptions& options = {});
// The same with the step, as NumPy's retstep=True.
std::pair<Array, Array> linspace_and_step(const Array& start, const Array& stop, const LinspaceOptions& options = {});
struct LogspaceOptions {
  int64_t num = 50;
  bool endpoint = true;
  Array base = 10.0;
  std::optional<DType> dtype = std::nullopt;
  int64_t axis = 0;
};
Array logspace(const Array& start, const Array& stop, const LogspaceOptions& options = {});
Array geomspace(const Array& start, const Array& stop, const LinspaceOptions& options = {});

// ---- matrices and grids -------------------------------------------------------------------------------------------
struct EyeOptions {
  std::optional<int64_t> M = std::nullopt;  // columns; by default as many as rows
  Array k = 0;                              // which diagonal
  std::optional<DType> dtype = std::nullopt;
};
Array eye(int64_t N, const EyeOptions& options = {});
Array identity(int64_t n, const FillOptions& options = {});
struct TriOptions {
  std::optional<int64_t> M = std::nullopt;
  int64_t k = 0;
  std::optional<DType> dtype = std::nullopt;  // by default float32
};
Array tri(int64_t N, const TriOptions& options = {});
struct MeshgridOptions {
  bool sparse = false;
  std::string indexing = "xy";  // or "ij"
};
Arrays meshgrid(const Arrays& xi, const MeshgridOptions& options = {});
Array indices(const Shape& dimensions, const FillOptions& options = {});
Arrays sparse_indices(const Shape& dimensions, const FillOptions& options = {});  // indices(..., sparse=True)
// function(i, j, ...) at every index; it is called once, on traced scalars.
Array fromfunction(const std::function<Array(const Arrays&)>& function, const Shape& shape,
                   const FillOptions& options = {});
Arrays fromfunction(const std::function<Arrays(const Arrays&)>& function, const Shape& shape,
                    const FillOptions& options = {});

// ---- questions ----------------------------------------------------------------------------------------------------
struct ArrayEqualOptions {
  bool equal_nan = false;
};
Array array_equal(const Array& a1, const Array& a2, const ArrayEqualOptions& options = {});
Array array_equiv(const Array& a1, const Array& a2);  // equal after broadcasting
Array allclose(const Array& a, const Array& b, const CloseOptions& options = {});
inline bool iscomplexobj(const Array& x) { return is_complex(x.dtype()); }
inline bool isrealobj(const Array& x) { return !iscomplexobj(x); }
inline bool isscalar(const Array& element) { return element.ndim() == 0; }
inline int64_t ndim(const Array& a) { return a.ndim(); }
inline Shape shape(const Array& a) { return a.shape(); }
int64_t size(const Array& a, const Axis& axis = {});
Shape broadcast_shapes(const std::vector<Shape>& shapes);

}  // namespace capibara::jax::numpy
