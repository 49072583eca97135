// The hook of the key reuse checker: calls that may consume keys go through a Python function.
#pragma once

#include "bindings.h"

namespace capibara::python {

// Sets the function of (callable, args, kwargs) that intercepts calls, or None; calls made inside it are direct.
void set_key_hook(nb::object hook);
bool has_key_hook();
PyObject* call_key_hook(PyObject* callable, PyObject* args, PyObject* kwargs) noexcept;

}  // namespace capibara::python
