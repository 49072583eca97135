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
Array reshape(const Array& a, const Shape& shape, const ReshapeOptions& options = {});
Array ravel(const Array& a, const ReshapeOptions& options = {});
Array resize(const Array& a, const Shape& new_shape);
Array transpose(const Array& a, const std::optional<Ints>& axes = std::nullopt);
Array permute_dims(const Array& a, const Ints& axes);
Array matrix_transpose(const Array& x);
Array moveaxis(const Array& a, const Axis& source, const Axis& destination);
Array swapaxes(const Array& a, int64_t axis1, int64_t axis2);
Array rollaxis(const Array& a, int64_t axis, int64_t start = 0);
Array expand_dims(const Array& a, const Axis& axis);
Array squeeze(const Array& a, const Axis& axis = {});
Array broadcast_to(const Array& array, const Shape& shape);
Arrays broadcast_arrays(const Arrays& args);
Array atleast_1d(const Array& x);
Array atleast_2d(const Array& x);
Array atleast_3d(const Array& x);

// ---- order -------------------------------------------------------------------------------------------------------
Array flip(const Array& m, const Axis& axis = {});
Array fliplr(const Array& m);
Array flipud(const Array& m);
struct Rot90Options {
  int64_t k = 1;
  std::pair<int64_t, int64_t> axes = {0, 1};
};
Array rot90(const Array& m, const Rot90Options& options = {});
// The shift is a number or one per axis; a traced shift rolls by a dynamic slice.
Array roll(const Array& a, const Array& shift, const Axis& axis = {});

// ---- joining and splitting ---------------------------------------------------------------------------------------
struct ConcatenateOptions {
  std::optional<int64_t> axis = 0;  // nothing: all arrays flattened
  std::optional<DType> dtype;
};
Array concatenate(const Arrays& arrays, const ConcatenateOptions& options = {});
using capibara::concat;  // the one that joins texts stays visible beside the one that joins arrays
Array concat(const Arrays& arrays, const ConcatenateOptions& options = {});
struct StackOptions {
  int64_t axis = 0;
  std::optional<DType> dtype;
};
Array stack(const Arrays& arrays, const StackOptions& options = {});
struct JoinOptions {
  std::optional<DType> dtype;
};
Array hstack(const Arrays& tup, const JoinOptions& options = {});
Array vstack(const Arrays& tup, const JoinOptions& options = {});
Array dstack(const Arrays& tup, const JoinOptions& options = {});
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
Array block(const Blocks& arrays);
Array append(const Array& arr, const Array& values, std::optional<int64_t> axis = std::nullopt);

// Where to cut: into a number of equal sections, or before each of the given positions.
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
Arrays split(const Array& ary, const Sections& indices_or_sections, int64_t axis = 0);
Arrays array_split(const Array& ary, const Sections& indices_or_sections, int64_t axis = 0);  // sizes may differ by one
Arrays hsplit(const Array& ary, const Sections& indices_or_sections);
Arrays vsplit(const Array& ary, const Sections& indices_or_sections);
Arrays dsplit(const Array& ary, const Sections& indices_or_sections);
Arrays unstack(const Array& x, int64_t axis = 0);

// ---- repetition --------------------------------------------------------------------------------------------------
Array tile(const Array& A, const Ints& reps);
struct RepeatOptions {
  std::optional<int64_t> axis;
  std::optional<int64_t> total_repeat_length;  // needed where the repeats are traced
};
Array repeat(const Array& a, const Array& repeats, const RepeatOptions& options = {});

// ---- padding -----------------------------------------------------------------------------------------------------
using PadWidths = std::vector<std::pair<int64_t, int64_t>>;  // before and after, one entry per axis or one for all
struct PadOptions {
  // constant, edge, linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap or empty
  std::string mode = "constant";
  std::optional<Array> constant_values;             // a scalar, (before, after) or one pair per axis
  std::optional<PadWidths> stat_length;             // how much of the array maximum, mean ... see
  std::vector<std::pair<Array, Array>> end_values;  // of linear_ramp
  std::string reflect_type = "even";                // or odd
};
Array pad(const Array& array, const PadWidths& pad_width, const PadOptions& options = {});
// Pads with zeros, then gives every vector along each axis to the function.
using PadFunction = std::function<Array(const Array& vector, std::pair<int64_t, int64_t> width, int64_t axis)>;
Array pad(const Array& array, const PadWidths& pad_width, const PadFunction& mode);

// ---- elements added and removed ----------------------------------------------------------------------------------
struct InsertOptions {
  std::optional<int64_t> axis;
};
Array insert(const Array& arr, const Array& obj, const Array& values, const InsertOptions& options = {});
struct DeleteOptions {
  std::optional<int64_t> axis;
  bool assume_unique_indices = false;  // then the indices may be traced
};
Array delete_(const Array& arr, const Array& obj, const DeleteOptions& options = {});
struct TrimZerosOptions {
  std::string trim = "fb";
  Axis axis;
};
Array trim_zeros(const Array& filt, const TrimZerosOptions& options = {});

}  // namespace capibara::jax::numpy
