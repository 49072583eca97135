// jax.numpy: sorting, extreme positions, searching in sorted arrays, and the positions of nonzero elements.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::numpy {

struct ArgmaxOptions {
  std::optional<int64_t> axis = {};  // by default of the flattened array
  bool keepdims = false;
};
// The first position of the greatest (least) element; a NaN counts as both.
Array argmax(const Array& a, const ArgmaxOptions& options = {});
Array argmin(const Array& a, const ArgmaxOptions& options = {});
// NaNs are skipped; -1 where all are NaN.
Array nanargmax(const Array& a, const ArgmaxOptions& options = {});
Array nanargmin(const Array& a, const ArgmaxOptions& options = {});

struct SortOptions {
  std::optional<int64_t> axis = -1;  // std::nullopt: of the flattened array
  bool stable = true;
  bool descending = false;
};
Array sort(const Array& a, const SortOptions& options = {});
struct ArgsortOptions {
  std::optional<int64_t> axis = -1;
  bool stable = true;
  bool descending = false;
  std::optional<DType> dtype = {};
};
Array argsort(const Array& a, const ArgsortOptions& options = {});
// By the last key first, then by those before it.
Array lexsort(const std::vector<Array>& keys, int64_t axis = -1);
Array sort_complex(const Array& a);
// The kth element in its sorted place, smaller ones before it, greater ones behind it.
Array partition(const Array& a, int64_t kth, int64_t axis = -1);
Array argpartition(const Array& a, int64_t kth, int64_t axis = -1);

struct SearchsortedOptions {
  std::string side = "left";  // or "right"
  std::optional<Array> sorter = {};
  std::string method = "scan";  // "scan", "scan_unrolled", "sort" or "compare_all"; all give the same result
};
// Where each v is to be inserted into the sorted a.
Array searchsorted(const Array& a, const Array& v, const SearchsortedOptions& options = {});
struct DigitizeOptions {
  bool right = false;
  std::string method = "scan";
};
Array digitize(const Array& x, const Array& bins, const DigitizeOptions& options = {});

// The result's size is the count of nonzero elements, which must be concrete, or `size`, then filled up.
struct NonzeroOptions {
  std::optional<int64_t> size = {};
  std::vector<Array> fill_value = {};  // none: zeros; one: for all dimensions; else one for each
};
std::vector<Array> nonzero(const Array& a, const NonzeroOptions& options = {});
Array flatnonzero(const Array& a, const NonzeroOptions& options = {});
Array argwhere(const Array& a, const NonzeroOptions& options = {});

struct CompressOptions {
  std::optional<int64_t> axis = {};
  std::optional<int64_t> size = {};
  Array fill_value = 0;
};
// The slices of a for which the condition holds.
Array compress(const Array& condition, const Array& a, const CompressOptions& options = {});
struct ExtractOptions {
  std::optional<int64_t> size = {};
  Array fill_value = 0;
};
Array extract(const Array& condition, const Array& arr, const ExtractOptions& options = {});

}  // namespace capibara::jax::numpy
