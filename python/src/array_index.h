// Index expressions between Python's brackets, and x.at[...].
#pragma once

#include <capibara/indexing.h>

#include "bindings.h"

#include <functional>

namespace capibara::python {

// The entries of x[key]. Raises as jax does for lists, floats and traced slice bounds.
std::vector<Index> index_entries(nb::handle key, const Array& array);

// What x[key] reads from: x, or the part selected by windows (jax.ds) in the key, and how to write that part back.
struct IndexedPart {
  Array array;
  std::vector<Index> indices;
  std::function<Array(const Array&)> put_back;  // empty where `array` is x itself
};
IndexedPart indexed_part(const Array& array, nb::handle key);
Array read_index(const Array& array, nb::handle key);  // x[key]

void bind_array_indexing(nb::module_& m, nb::class_<Array>& array);

}  // namespace capibara::python
