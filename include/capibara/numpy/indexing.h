// jax.numpy: reading and writing at indices, selection by conditions, diagonals and triangles, packed bits.
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
  std::optional<int64_t> axis;  // absent: of the flattened array
  std::string mode;             // "fill" (the default), "wrap" or "clip"
  bool unique_indices = false;
  bool indices_are_sorted = false;
  std::optional<Array> fill_value;  // by default NaN, or the smallest integer
};
// The slices at the indices along an axis; by default NaN or the least integer out of bounds.
Array take(const Array& a, const Array& indices, const TakeOptions& options = {});
struct TakeAlongAxisOptions {
  std::optional<int64_t> axis = -1;
  std::string mode;  // "fill" (the default), "clip", "promise_in_bounds" or "one_hot"
  std::optional<Array> fill_value;
  std::optional<bool> wrap_negative_indices;
};
// One element per index along an axis, as argsort and argmax give them.
Array take_along_axis(const Array& arr, const Array& indices, const TakeAlongAxisOptions& options = {});
// Arrays are immutable: these require .inplace = false and return the modified array.
struct PutOptions {
  std::string mode;  // by default indices out of bounds are dropped; "clip" or "wrap"
  bool inplace = true;
};
// A copy with values at indices of the flattened array; needs inplace=False.
Array put(const Array& a, const Array& ind, const Array& v, const PutOptions& options = {});
// A copy with one value per index along an axis; needs inplace=False.
Array put_along_axis(const Array& arr, const Array& indices, const Array& values, std::optional<int64_t> axis,
                     const PutOptions& options = {});
struct PlaceOptions {
  bool inplace = true;
};
// A copy with values, in order, where the mask is true; needs inplace=False.
Array place(const Array& arr, const Array& mask, const Array& vals, const PlaceOptions& options = {});
// Vectors shaped so that they index an open grid.
Arrays ix_(const Arrays& args);
// The coordinates of indices of a flattened array.
Arrays unravel_index(const Array& indices, const Arrays& shape);
Arrays unravel_index(const Array& indices, const Shape& shape);
struct RavelMultiIndexOptions {
  std::string mode = "raise";  // or wrap, clip, ignore
  std::string order = "C";     // or F
  std::optional<DType> dtype;
};
// The index into a flattened array of given coordinates.
Array ravel_multi_index(const Arrays& multi_index, const Shape& dims, const RavelMultiIndexOptions& options = {});

// ---- by conditions and functions ---------------------------------------------------------------------------------
struct ChooseOptions {
  std::string mode = "raise";  // or wrap, clip
};
// At each position the element of the choice that the index selects.
Array choose(const Array& a, const Arrays& choices, const ChooseOptions& options = {});
// At each position the element of the first choice whose condition holds.
Array select(const Arrays& condlist, const Arrays& choicelist, const Array& default_ = 0);
using ElementFunction = std::function<Array(const Array& element)>;
// At each position the value of the last function whose condition holds, or a constant.
// If there is one more function than conditions, the last one applies where no condition holds.
Array piecewise(const Array& x, const Array& condlist, const std::vector<ElementFunction>& funclist);
// A function of vectors applied to every vector along an axis.
Array apply_along_axis(const std::function<Array(const Array& vector)>& func1d, int64_t axis, const Array& arr);
Arrays apply_along_axis(const std::function<Arrays(const Array& vector)>& func1d, int64_t axis, const Array& arr);
// A function of an array and an axis applied for one axis after the other.
Array apply_over_axes(const std::function<Array(const Array&, int64_t axis)>& func, const Array& a, const Ints& axes);

// ---- diagonals and triangles -------------------------------------------------------------------------------------
struct DiagOptions {
  int64_t k = 0;
};
// A matrix with this diagonal, or the diagonal of a matrix.
Array diag(const Array& v, const DiagOptions& options = {});
// A matrix whose diagonal holds all elements.
Array diagflat(const Array& v, const DiagOptions& options = {});
struct DiagonalOptions {
  int64_t offset = 0;
  int64_t axis1 = 0;
  int64_t axis2 = 1;
};
// The diagonals of two axes, as the last axis.
Array diagonal(const Array& a, const DiagonalOptions& options = {});
struct TraceOptions {
  Array offset = 0;
  int64_t axis1 = 0;
  int64_t axis2 = 1;
  std::optional<DType> dtype;
};
// The sum over a diagonal.
Array trace(const Array& a, const TraceOptions& options = {});
// The indices of the main diagonal.
Arrays diag_indices(int64_t n, int64_t ndim = 2);
// The indices of the main diagonal of an array.
Arrays diag_indices_from(const Array& arr);
// The lower triangle, zeros elsewhere.
Array tril(const Array& m, const DiagOptions& options = {});
// The upper triangle, zeros elsewhere.
Array triu(const Array& m, const DiagOptions& options = {});
struct TriangleOptions {
  int64_t k = 0;
  std::optional<int64_t> m;  // columns; by default n
};
// The indices of the lower triangle.
std::pair<Array, Array> tril_indices(int64_t n, const TriangleOptions& options = {});
// The indices of the upper triangle.
std::pair<Array, Array> triu_indices(int64_t n, const TriangleOptions& options = {});
// The indices of the lower triangle of a matrix.
std::pair<Array, Array> tril_indices_from(const Array& arr, const DiagOptions& options = {});
// The indices of the upper triangle of a matrix.
std::pair<Array, Array> triu_indices_from(const Array& arr, const DiagOptions& options = {});
struct MaskIndicesOptions {
  std::optional<int64_t> size;
};
// The indices of an n x n array where a mask of ones is not zero.
std::pair<Array, Array> mask_indices(int64_t n, const std::function<Array(const Array&)>& mask_func,
                                     const MaskIndicesOptions& options = {});
struct FillDiagonalOptions {
  bool wrap = false;
  bool inplace = true;
};
// A copy with another main diagonal; needs inplace=False.
Array fill_diagonal(const Array& a, const Array& val, const FillDiagonalOptions& options = {});

// ---- bits --------------------------------------------------------------------------------------------------------
struct BitsOptions {
  std::optional<int64_t> axis;
  std::optional<int64_t> count;  // of unpackbits: how many bits to keep
  std::string bitorder = "big";  // or little
};
// Packs groups of eight booleans into the bits of bytes.
Array packbits(const Array& a, const BitsOptions& options = {});
// The bits of each byte as zeros and ones.
Array unpackbits(const Array& a, const BitsOptions& options = {});

}  // namespace capibara::jax::numpy
