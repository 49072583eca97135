// Index expressions between Python's brackets, and x.at[...].
#pragma once

#include <capibara/indexing.h>

#include "bindings.h"

namespace capibara::python {

// The entries of x[key]. Raises as jax does for lists, floats and traced slice bounds.
std::vector<Index> index_entries(nb::handle key, const Array& array);

void bind_array_indexing(nb::module_& m, nb::class_<Array>& array);

}  // namespace capibara::python
