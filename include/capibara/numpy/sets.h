// jax.numpy: distinct elements and operations on sets of them.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::numpy {

// The number of distinct elements must be known: from concrete values, or as `size`. What is then left over is filled
// with fill_value, by default the least element.
struct UniqueOptions {
  bool return_index = false;    // of the first occurrence
  bool return_inverse = false;  // values(inverse_indices) is the input
  bool return_counts = false;
  std::optional<int64_t> axis = {};  // distinct slices along it; by default distinct elements
  bool equal_nan = true;
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
struct UniqueResult {
  Array values;
  Array indices, inverse_indices, counts;  // empty handles where they are not asked for
};
UniqueResult unique(const Array& ar, const UniqueOptions& options = {});

struct SizeOptions {
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
// The same in the array API's form: NaNs are distinct.
UniqueResult unique_all(const Array& x, const SizeOptions& options = {});
UniqueResult unique_counts(const Array& x, const SizeOptions& options = {});
UniqueResult unique_inverse(const Array& x, const SizeOptions& options = {});
Array unique_values(const Array& x, const SizeOptions& options = {});

struct SetOptions {
  bool assume_unique = false;
  std::optional<int64_t> size = {};
  std::optional<Array> fill_value = {};
};
Array union1d(const Array& ar1, const Array& ar2, const SizeOptions& options = {});
Array setdiff1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
Array setxor1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
Array intersect1d(const Array& ar1, const Array& ar2, const SetOptions& options = {});
struct Intersection {
  Array values;
  Array indices1, indices2;  // where the values are in the two arrays
};
Intersection intersect1d_with_indices(const Array& ar1, const Array& ar2, const SetOptions& options = {});

struct IsinOptions {
  bool assume_unique = false;
  bool invert = false;
  std::string method = "auto";  // or "compare_all", "binary_search", "sort"
};
Array isin(const Array& element, const Array& test_elements, const IsinOptions& options = {});

}  // namespace capibara::jax::numpy
