#include "bindings.h"

namespace capibara::python {

// Libraries derive metaclasses from that of Array, `class Meta(type(jnp.ndarray))`, for classes of their own. That of
// nanobind is closed, and makes a bound class of whatever it initialises: one derived from it initialises as `type`
// does.
void open_metaclass(nb::handle bound) {
  PyTypeObject* meta = Py_TYPE(bound.ptr());
  const initproc own = meta->tp_init;
  nb::delattr(nb::handle(reinterpret_cast<PyObject*>(meta)), "__init__");
  meta->tp_init = own;
  meta->tp_flags |= Py_TPFLAGS_BASETYPE;
}

}  // namespace capibara::python
