// jax.numpy: reading and writing at indices, choosing by conditions, diagonals and triangles, packed bits.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capibara::jax::numpy {

using Arrays = std::vector<Array>;

// ---- at indices --------------------------------------------------------------------------------------------------
struct TakeOptions {
  std::optional<int64_t> axis;  // nothing: of the flattened array
  std::string mode;             // "fill" (the default), "wrap" or "clip"
  bool unique_indices = false;
  bool indices_are_sorted = false;
  std::optional<Array> fill_value;  // by default NaN, or the least integer
};
Array take(const Array& a, const Array& indices, const TakeOptions& options = {});
struct TakeAlongAxisOptions {
  std::optional<int64_t> axis = -1;
  std::string mode;  // "fill" (the default), "clip", "promise_in_bounds" or "one_hot"
  std::optional<Array> fill_value;
  std::optional<bool> wrap_negative_indices;
};
Array take_along_axis(const Array& arr, const Array& indices, const TakeAlongAxisOptions& options = {});
// Arrays do not change: these need .inplace = false and return the changed array.
struct PutOptions {
  std::string mode;  // by default indices out of bounds are dropped; "clip" or "wrap"
  bool inplace = true;
};
Array put(const Array& a, const Array& ind, const Array& v, const PutOptions& options = {});
Array put_along_axis(const Array& arr, const Array& indices, const Array& values, std::optional<int64_t> axis,
                     const PutOptions& options = {});
struct PlaceOptions {
  bool inplace = true;
};
Array place(const Array& arr, const Array& mask, const Array& vals, const PlaceOptions& options = {});
Arrays ix_(const Arrays& args);
Arrays unravel_index(const Array& indices, const Arrays& shape);
Arrays unravel_index(const Array& indices, const Shape& shape);
struct RavelMultiIndexOptions {
  std::string mode = "raise";  // or wrap, clip, ignore
  std::string order = "C";     // or F
  std::optional<DType> dtype;
};
Array ravel_multi_index(const Arrays& multi_index, const Shape& dims, const RavelMultiIndexOptions& options = {});

// ---- by conditions and functions ---------------------------------------------------------------------------------
struct ChooseOptions {
  std::string mode = "raise";  // or wrap, clip
};
Array choose(const Array& a, const Arrays& choices, const ChooseOptions& options = {});
Array select(const Arrays& condlist, const Arrays& choicelist, const Array& default_ = 0);
using ElementFunction = std::function<Array(const Array& element)>;
// The last function, where there is one more than conditions, applies where no condition holds.
Array piecewise(const Array& x, const Array& condlist, const std::vector<ElementFunction>& funclist);
Array apply_along_axis(const std::function<Array(const Array& vector)>& func1d, int64_t axis, const Array& arr);
Arrays apply_along_axis(const std::function<Arrays(const Array& vector)>& func1d, int64_t axis, const Array& arr);
Array apply_over_axes(const std::function<Array(const Array&, int64_t axis)>& func, const Array& a, const Ints& axes);

// ---- diagonals and triangles -------------------------------------------------------------------------------------
struct DiagOptions {
  int64_t k = 0;
};
Array diag(const Array& v, const DiagOptions& options = {});
Array diagflat(const Array& v, const DiagOptions& options = {});
struct DiagonalOptions {
  int64_t offset = 0;
  int64_t axis1 = 0;
  int64_t axis2 = 1;
};
Array diagonal(const Array& a, const DiagonalOptions& options = {});
struct TraceOptions {
  Array offset = 0;
  int64_t axis1 = 0;
  int64_t axis2 = 1;
  std::optional<DType> dtype;
};
Array trace(const Array& a, const TraceOptions& options = {});
Arrays diag_indices(int64_t n, int64_t ndim = 2);
Arrays diag_indices_from(const Array& arr);
Array tril(const Array& m, const DiagOptions& options = {});
Array triu(const Array& m, const DiagOptions& options = {});
struct TriangleOptions {
  int64_t k = 0;
  std::optional<int64_t> m;  // columns; by default n
};
std::pair<Array, Array> tril_indices(int64_t n, const TriangleOptions& options = {});
std::pair<Array, Array> triu_indices(int64_t n, const TriangleOptions& options = {});
std::pair<Array, Array> tril_indices_from(const Array& arr, const DiagOptions& options = {});
std::pair<Array, Array> triu_indices_from(const Array& arr, const DiagOptions& options = {});
struct MaskIndicesOptions {
  std::optional<int64_t> size;
};
// Where a mask of ones(n, n), such as tril makes, is not zero.
std::pair<Array, Array> mask_indices(int64_t n, const std::function<Array(const Array&)>& mask_func,
                                     const MaskIndicesOptions& options = {});
struct FillDiagonalOptions {
  bool wrap = false;
  bool inplace = true;
};
Array fill_diagonal(const Array& a, const Array& val, const FillDiagonalOptions& options = {});

// ---- bits --------------------------------------------------------------------------------------------------------
struct BitsOptions {
  std::optional<int64_t> axis;
  std::optional<int64_t> count;  // of unpackbits: how many bits to keep
  std::string bitorder = "big";  // or little
};
Array packbits(const Array& a, const BitsOptions& options = {});
Array unpackbits(const Array& a, const BitsOptions& options = {});

}  // namespace capibara::jax::numpy
