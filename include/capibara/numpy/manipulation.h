// jax.numpy: changing the shape of arrays, joining and splitting them, repeating and padding.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capibara::jax::numpy {

using Arrays = std::vector<Array>;

// ---- shape -------------------------------------------------------------------------------------------------------
struct ReshapeOptions {
  std::string order = "C";  // row-major, or "F": column-major
};
// The same elements in another shape; one size may be -1.
Array reshape(const Array& a, const Shape& shape, const ReshapeOptions& options = {});
// The array flattened to one dimension.
Array ravel(const Array& a, const ReshapeOptions& options = {});
// The array in a new shape; elements are repeated or dropped as needed.
Array resize(const Array& a, const Shape& new_shape);
// The array with its axes permuted; by default reversed.
Array transpose(const Array& a, const std::optional<Ints>& axes = std::nullopt);
// The array with its axes in the given order.
Array permute_dims(const Array& a, const Ints& axes);
// The array with its last two axes exchanged.
Array matrix_transpose(const Array& x);
// The array with axes moved to other positions; the rest keep their order.
Array moveaxis(const Array& a, const Axis& source, const Axis& destination);
// The array with two axes exchanged.
Array swapaxes(const Array& a, int64_t axis1, int64_t axis2);
// The array with one axis moved back to the position before start.
Array rollaxis(const Array& a, int64_t axis, int64_t start = 0);
// The array with new axes of size one at these positions of the result.
Array expand_dims(const Array& a, const Axis& axis);
// The array without its axes of size one, or without the given ones.
Array squeeze(const Array& a, const Axis& axis = {});
// The array repeated along new axes and axes of size one.
Array broadcast_to(const Array& array, const Shape& shape);
// The arrays broadcast to their common shape.
Arrays broadcast_arrays(const Arrays& args);
// Turns scalars into arrays of one element.
Array atleast_1d(const Array& x);
// Adds leading axes of size one up to two dimensions.
Array atleast_2d(const Array& x);
// Adds axes of size one up to three dimensions.
Array atleast_3d(const Array& x);

// ---- order -------------------------------------------------------------------------------------------------------
// The elements in reverse order along axes.
Array flip(const Array& m, const Axis& axis = {});
// The columns in reverse order.
Array fliplr(const Array& m);
// The rows in reverse order.
Array flipud(const Array& m);
struct Rot90Options {
  int64_t k = 1;
  std::pair<int64_t, int64_t> axes = {0, 1};
};
// The array rotated k times by 90 degrees, from the first axis toward the second.
Array rot90(const Array& m, const Rot90Options& options = {});
// The elements shifted along axes; those shifted out at one end re-enter at the other.
// The shift is a number or one per axis; a traced shift rolls by a dynamic slice.
Array roll(const Array& a, const Array& shift, const Axis& axis = {});

// ---- joining and splitting ---------------------------------------------------------------------------------------
struct ConcatenateOptions {
  std::optional<int64_t> axis = 0;  // absent: all arrays flattened
  std::optional<DType> dtype;
};
// Arrays joined along an existing axis.
Array concatenate(const Arrays& arrays, const ConcatenateOptions& options = {});
using capibara::concat;  // keeps the concat that joins texts visible next to the one that joins arrays
// Arrays joined along an existing axis.
Array concat(const Arrays& arrays, const ConcatenateOptions& options = {});
struct StackOptions {
  int64_t axis = 0;
  std::optional<DType> dtype;
};
// Arrays of one shape joined along a new axis.
Array stack(const Arrays& arrays, const StackOptions& options = {});
struct JoinOptions {
  std::optional<DType> dtype;
};
// Arrays joined side by side, along the second axis.
Array hstack(const Arrays& tup, const JoinOptions& options = {});
// Arrays joined as rows, along the first axis.
Array vstack(const Arrays& tup, const JoinOptions& options = {});
// Arrays joined along the third axis.
Array dstack(const Arrays& tup, const JoinOptions& options = {});
// Vectors joined as the columns of a matrix.
Array column_stack(const Arrays& tup);

// A block, or a list of blocks: {{a, b}, {c, d}} is two rows of two.
class Blocks {
 public:
  Blocks(Array array) : array_(std::move(array)) {}
  Blocks(std::vector<Blocks> items) : items_(std::move(items)), is_list_(true) {}
  Blocks(std::initializer_list<Blocks> items) : items_(items), is_list_(true) {}
  bool is_list() const { return is_list_; }
  const Array& array() const { return array_; }
  const std::vector<Blocks>& items() const { return items_; }

 private:
  Array array_;
  std::vector<Blocks> items_;
  bool is_list_ = false;
};
// An array assembled from nested lists of blocks.
Array block(const Blocks& arrays);
// An array with values appended at its end.
Array append(const Array& arr, const Array& values, std::optional<int64_t> axis = std::nullopt);

// Where to split: into a number of equal sections, or before each of the given positions.
class Sections {
 public:
  template <std::integral T>
  Sections(T count) : count_(static_cast<int64_t>(count)) {}
  Sections(Ints positions) : positions_(std::move(positions)) {}
  Sections(std::initializer_list<int64_t> positions) : positions_(positions) {}
  const std::optional<int64_t>& count() const { return count_; }
  const Ints& positions() const { return positions_; }

 private:
  std::optional<int64_t> count_;
  Ints positions_;
};
// Splits an array into equal sections, or at the given positions.
Arrays split(const Array& ary, const Sections& indices_or_sections, int64_t axis = 0);
// Splits an array into sections whose sizes differ by at most one, or at the given positions.
Arrays array_split(const Array& ary, const Sections& indices_or_sections, int64_t axis = 0);
// Splits an array along the second axis, or the first of a vector.
Arrays hsplit(const Array& ary, const Sections& indices_or_sections);
// Splits an array along the first axis.
Arrays vsplit(const Array& ary, const Sections& indices_or_sections);
// Splits an array along the third axis.
Arrays dsplit(const Array& ary, const Sections& indices_or_sections);
// The slices along an axis.
Arrays unstack(const Array& x, int64_t axis = 0);

// ---- repetition --------------------------------------------------------------------------------------------------
// The whole array repeated along each axis.
Array tile(const Array& A, const Ints& reps);
struct RepeatOptions {
  std::optional<int64_t> axis;
  std::optional<int64_t> total_repeat_length;  // required if the repeats are traced
};
// Each element repeated; traced repeats need total_repeat_length.
Array repeat(const Array& a, const Array& repeats, const RepeatOptions& options = {});

// ---- padding -----------------------------------------------------------------------------------------------------
using PadWidths = std::vector<std::pair<int64_t, int64_t>>;  // before and after, one entry per axis or one for all
struct PadOptions {
  // constant, edge, linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap or empty
  std::string mode = "constant";
  std::optional<Array> constant_values;             // a scalar, (before, after) or one pair per axis
  std::optional<PadWidths> stat_length;             // how much of the array maximum, mean ... read
  std::vector<std::pair<Array, Array>> end_values;  // of linear_ramp
  std::string reflect_type = "even";                // or odd
};
// The array padded at both ends of each axis; the mode says with which values.
Array pad(const Array& array, const PadWidths& pad_width, const PadOptions& options = {});
// Pads with zeros, then gives every vector along each axis to the function.
using PadFunction = std::function<Array(const Array& vector, std::pair<int64_t, int64_t> width, int64_t axis)>;
Array pad(const Array& array, const PadWidths& pad_width, const PadFunction& mode);

// ---- elements added and removed ----------------------------------------------------------------------------------
struct InsertOptions {
  std::optional<int64_t> axis;
};
// The array with values inserted before the given positions.
Array insert(const Array& arr, const Array& obj, const Array& values, const InsertOptions& options = {});
struct DeleteOptions {
  std::optional<int64_t> axis;
  bool assume_unique_indices = false;  // allows the indices to be traced
};
// The array without the given positions.
Array delete_(const Array& arr, const Array& obj, const DeleteOptions& options = {});
struct TrimZerosOptions {
  std::string trim = "fb";
  Axis axis;
};
// Zeros removed from the front and the back; the values must be concrete.
Array trim_zeros(const Array& filt, const TrimZerosOptions& options = {});

}  // namespace capibara::jax::numpy
