// Results of library functions inside of jit.
#pragma once

#include <Python.h>

#include <span>

#include "library/table/value.h"

namespace capibara::python {

// Inside of jit the arrays that a function makes are traced, those that it returns as they were given are not.
library::Value staged(library::Value result, std::span<PyObject* const> arguments);

}  // namespace capibara::python
