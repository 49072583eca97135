// The interpreter's lock: who may take it, and objects that are let go without holding it.
#pragma once

#include <nanobind/nanobind.h>

#include <cxxabi.h>
#include <unistd.h>

#include <cassert>

#include "core/runtime/interrupt.h"

namespace nb = nanobind;

namespace capibara::python {

// Runs code that takes the interpreter's lock. Where the interpreter has ended meanwhile, Python ends the thread by
// unwinding it, through frames of ours that hold Python's objects: a thread that this happens to stops for good
// instead, as the process is about to end.
template <class Body>
auto or_stop(Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Takes the interpreter's lock, for user code and for Python's objects. Threads of the pool never do (debug builds
// check it): whoever holds the lock may be waiting for them.
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

// Lets an object go on any thread; it stays for ever where the interpreter is gone.
inline void let_go(nb::object& object) noexcept {
  PyObject* pointer = object.release().ptr();
  if (!pointer || !Py_IsInitialized()) return;
  const InterpreterLock lock;
  Py_DECREF(pointer);
}

}  // namespace capibara::python
