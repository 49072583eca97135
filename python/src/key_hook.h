// Hooks: Python functions that calls go through while keys, or the numbers of jax.numpy, are being checked.
#pragma once

#include "bindings.h"

#include <cstddef>

namespace capibara::python {

enum class Hook { keys, numbers };  // calls that may consume keys; calls of jax.numpy whose numbers may be invalid
inline constexpr std::size_t hook_count = 2;

// Sets the function of (callable, args, kwargs) that intercepts calls, or None; calls made inside it are direct.
void set_hook(Hook, nb::object function);
bool has_hook(Hook);
PyObject* call_hook(Hook, PyObject* callable, PyObject* args, PyObject* kwargs) noexcept;

}  // namespace capibara::python
