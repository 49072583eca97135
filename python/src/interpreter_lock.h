// The GIL: who may take it, and releasing objects without holding it.
#pragma once

#include <nanobind/nanobind.h>

#include <cxxabi.h>
#include <unistd.h>

#include <cassert>

#include "core/runtime/interrupt.h"

namespace nb = nanobind;

namespace capibara::python {

// Runs code that takes the GIL. If the interpreter has been finalized by then, Python ends the thread by unwinding it,
// through frames of ours that hold Python objects: such a thread blocks forever instead, as the process is about to
// exit.
template <class Body>
auto or_stop(Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Takes the GIL, to run user code or use Python objects. Threads of the pool never do (debug builds check it): the
// thread that holds the GIL may be waiting for them.
class InterpreterLock {
 public:
  InterpreterLock()
      : state_(or_stop([] {
          assert(!on_pool_thread());
          return PyGILState_Ensure();
        })) {}
  ~InterpreterLock() { PyGILState_Release(state_); }
  InterpreterLock(const InterpreterLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// Releases an object on any thread; leaks it if the interpreter is finalized.
inline void let_go(nb::object& object) noexcept {
  PyObject* pointer = object.release().ptr();
  if (!pointer || !Py_IsInitialized()) return;
  const InterpreterLock lock;
  Py_DECREF(pointer);
}

}  // namespace capibara::python
