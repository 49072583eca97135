// jax.numpy: sorting, extreme positions, searching in sorted arrays, and the positions of nonzero elements.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::numpy {

struct ArgmaxOptions {
  std::optional<int64_t> axis = {};  // absent: of the flattened array
  bool keepdims = false;
};
// The first position of the largest element. A NaN counts as the greatest and as the least element.
Array argmax(const Array& a, const ArgmaxOptions& options = {});
// The first position of the least element.
Array argmin(const Array& a, const ArgmaxOptions& options = {});
// The first position of the largest element that is not NaN; -1 where all are.
Array nanargmax(const Array& a, const ArgmaxOptions& options = {});
// The first position of the least element that is not NaN; -1 where all are.
Array nanargmin(const Array& a, const ArgmaxOptions& options = {});

struct SortOptions {
  std::optional<int64_t> axis = -1;  // std::nullopt: of the flattened array
  bool stable = true;
  bool descending = false;
};
// The elements in ascending order along an axis, NaNs last.
Array sort(const Array& a, const SortOptions& options = {});
struct ArgsortOptions {
  std::optional<int64_t> axis = -1;
  bool stable = true;
  bool descending = false;
  std::optional<DType> dtype = {};
};
// The positions that sort an array along an axis.
Array argsort(const Array& a, const ArgsortOptions& options = {});
// The positions that sort by several keys, the last one first.
Array lexsort(const std::vector<Array>& keys, int64_t axis = -1);
// The sorted elements as complex numbers.
Array sort_complex(const Array& a);
// The array with its kth element in sorted position, smaller ones before it, greater ones after it.
Array partition(const Array& a, int64_t kth, int64_t axis = -1);
// The positions that partition an array around its kth element.
Array argpartition(const Array& a, int64_t kth, int64_t axis = -1);

struct SearchsortedOptions {
  std::string side = "left";  // or "right"
  std::optional<Array> sorter = {};
  std::string method = "scan";  // "scan", "scan_unrolled", "sort" or "compare_all"; all give the same result
};
// Where values are to be inserted into a sorted vector.
Array searchsorted(const Array& a, const Array& v, const SearchsortedOptions& options = {});
struct DigitizeOptions {
  bool right = false;
  std::string method = "scan";
};
// The bin that each value belongs to.
Array digitize(const Array& x, const Array& bins, const DigitizeOptions& options = {});

// The result's size is the number of nonzero elements, which must be concrete, or `size`, padded with fill_value.
struct NonzeroOptions {
  std::optional<int64_t> size = {};
  std::vector<Array> fill_value = {};  // none: zeros; one: for all dimensions; else one per dimension
};
// The positions of the elements that are not zero, one array for each dimension.
std::vector<Array> nonzero(const Array& a, const NonzeroOptions& options = {});
// The positions of the elements that are not zero in the flattened array.
Array flatnonzero(const Array& a, const NonzeroOptions& options = {});
// The positions of the elements that are not zero, one row for each.
Array argwhere(const Array& a, const NonzeroOptions& options = {});

struct CompressOptions {
  std::optional<int64_t> axis = {};
  std::optional<int64_t> size = {};
  Array fill_value = 0;
};
// The slices along an axis for which a condition holds.
Array compress(const Array& condition, const Array& a, const CompressOptions& options = {});
struct ExtractOptions {
  std::optional<int64_t> size = {};
  Array fill_value = 0;
};
// The elements for which a condition holds.
Array extract(const Array& condition, const Array& arr, const ExtractOptions& options = {});

}  // namespace capibara::jax::numpy
