// While the reuse of keys is looked for: calls that may use keys are handed to a Python function first.
#pragma once

#include "bindings.h"

namespace capibara::python {

// The function of (callable, args, kwargs) that calls go through, or nothing; calls inside of it go the usual way.
void set_key_hook(nb::object hook);
bool has_key_hook();
PyObject* call_key_hook(PyObject* callable, PyObject* args, PyObject* kwargs) noexcept;

}  // namespace capibara::python
