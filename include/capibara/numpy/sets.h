// jax.numpy: distinct elements and operations on sets of them.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::numpy {

// The number of distinct elements must be known: from concrete values, or as `size`. Remaining slots are filled
// with fill_value, by default the least element.
struct UniqueOptions {
  bool return_index = false;    // of the first occurrence
  bool return_inverse = false;  // values(inverse_indices) is the input
  bool return_counts = false;
  std::optional<int64_t> axis = {};  // distinct slices along it; absent: distinct elements
  bool equal_nan = true;
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
struct UniqueResult {
  Array values;
  Array indices, inverse_indices, counts;  // empty handles unless requested
};
// The sorted distinct elements, or slices along an axis.
UniqueResult unique(const Array& ar, const UniqueOptions& options = {});

struct SizeOptions {
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
// The distinct elements, their first positions, the inverse and the counts. Like the other unique_ functions, it
// follows the array API: NaNs are distinct.
UniqueResult unique_all(const Array& x, const SizeOptions& options = {});
// The distinct elements and how often each occurs.
UniqueResult unique_counts(const Array& x, const SizeOptions& options = {});
// The distinct elements and the indices that rebuild the input from them.
UniqueResult unique_inverse(const Array& x, const SizeOptions& options = {});
// The sorted distinct elements.
Array unique_values(const Array& x, const SizeOptions& options = {});

struct SetOptions {
  bool assume_unique = false;
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
// The sorted elements that are in either array.
Array union1d(const Array& ar1, const Array& ar2, const SizeOptions& options = {});
// The sorted elements of the first array that are not in the second.
Array setdiff1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
// The sorted elements that are in exactly one of two arrays.
Array setxor1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
// The sorted elements that are in both arrays.
Array intersect1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
struct Intersection {
  Array values;
  Array indices1, indices2;  // positions of the values in the two arrays
};
// intersect1d and the positions of its elements in both arrays: return_indices=True.
Intersection intersect1d_with_indices(const Array& ar1, const Array& ar2, const SetOptions& options = {});

struct IsinOptions {
  bool assume_unique = false;
  bool invert = false;
  std::string method = "auto";  // or "compare_all", "binary_search", "sort"
};
// Whether each element is among the test elements.
Array isin(const Array& element, const Array& test_elements, const IsinOptions& options = {});

}  // namespace capibara::jax::numpy
