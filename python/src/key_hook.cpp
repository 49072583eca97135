// The Python function that intercepts calls while key reuse is being checked.
#include "key_hook.h"

namespace capibara::python {

namespace {

PyObject* hook = nullptr;
thread_local bool inside = false;

}  // namespace

void set_key_hook(nb::object function) {
  PyObject* const before = hook;
  hook = function.is_none() ? nullptr : function.release().ptr();
  Py_XDECREF(before);
}

bool has_key_hook() { return hook && !inside; }

PyObject* call_key_hook(PyObject* callable, PyObject* args, PyObject* kwargs) noexcept {
  const nb::object kept = nb::borrow(hook);  // another thread may reset the hook during the call
  const nb::object names = kwargs ? nb::borrow(kwargs) : nb::object(nb::dict());
  inside = true;
  PyObject* const result = PyObject_CallFunctionObjArgs(kept.ptr(), callable, args, names.ptr(), nullptr);
  inside = false;
  return result;
}

}  // namespace capibara::python
