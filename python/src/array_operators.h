// The operators of arrays in Python.
#pragma once

#include <nanobind/nanobind.h>

namespace capibara::python {

PyType_Slot* array_operator_slots();

}  // namespace capibara::python
