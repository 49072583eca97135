// The Python functions that intercept calls.
#include "key_hook.h"

#include <array>

namespace capibara::python {

namespace {

std::array<PyObject*, hook_count> hooks{};
thread_local std::array<bool, hook_count> inside{};

}  // namespace

void set_hook(Hook kind, nb::object function) {
  PyObject*& hook = hooks[static_cast<std::size_t>(kind)];
  PyObject* const before = hook;
  hook = function.is_none() ? nullptr : function.release().ptr();
  Py_XDECREF(before);
}

bool has_hook(Hook kind) {
  const auto index = static_cast<std::size_t>(kind);
  return hooks[index] && !inside[index];
}

PyObject* call_hook(Hook kind, PyObject* callable, PyObject* args, PyObject* kwargs) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  const nb::object kept = nb::borrow(hooks[index]);  // another thread may reset the hook during the call
  const nb::object names = kwargs ? nb::borrow(kwargs) : nb::object(nb::dict());
  inside[index] = true;
  PyObject* const result = PyObject_CallFunctionObjArgs(kept.ptr(), callable, args, names.ptr(), nullptr);
  inside[index] = false;
  return result;
}

}  // namespace capibara::python
