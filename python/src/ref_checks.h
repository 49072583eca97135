// Errors for mutable arrays that a traced function returns, or gets twice. Defined in calls.cpp.
#pragma once

#include <functional>

#include "trees.h"

namespace capibara::python {

// Raises an error if the result holds a mutable array. `inputs` are the leaves of the function's arguments.
void refuse_returned_refs(nb::handle function, const char* purpose, nb::handle result, std::span<const Array> inputs);

// Raises an error if a mutable array is two of a function's arguments, or an argument and one of the captured values.
// `numbered` returns (args, kwargs) with each leaf replaced by its index.
void refuse_shared_refs(nb::handle function, const char* purpose, std::span<const Array> leaves,
                        std::span<const Array> captured, const std::function<nb::object()>& numbered);

}  // namespace capibara::python
