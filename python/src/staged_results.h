// Results of library functions inside jit.
#pragma once

#include <Python.h>

#include <span>

#include "library/table/value.h"

namespace capibara::python {

// Inside jit, arrays that a function creates are traced; arguments that it returns unchanged are not.
library::Value staged(library::Value result, std::span<PyObject* const> arguments);

}  // namespace capibara::python
