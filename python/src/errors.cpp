// Translates every exception of the core to the class of capibara._errors that jax users catch.
#include <capibara/arithmetic_error.h>
#include <capibara/distributed.h>
#include <capibara/models/value.h>
#include <capibara/tpu/error.h>

#include <cstring>

#include "bindings.h"
#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/warning.h"
#include "interpreter_lock.h"

namespace capibara::python {

namespace {

// Sets an error of capibara._errors. Bytes of its text that are not UTF-8, which files may hold, are escaped.
void set_error(const char* name, const char* text) {
  PyObject* module = PyImport_ImportModule("capibara._errors");
  if (!module) return;
  PyObject* type = PyObject_GetAttrString(module, name);
  Py_DECREF(module);
  if (!type) return;
  if (PyObject* message = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace")) {
    PyErr_SetObject(type, message);
    Py_DECREF(message);
  }
  Py_DECREF(type);
}

}  // namespace

void set_current_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    switch (error.type()) {
      case nb::exception_type::type_error:
        PyErr_SetString(PyExc_TypeError, error.what());
        break;
      case nb::exception_type::value_error:
        PyErr_SetString(PyExc_ValueError, error.what());
        break;
      case nb::exception_type::index_error:
        PyErr_SetString(PyExc_IndexError, error.what());
        break;
      case nb::exception_type::key_error:
        PyErr_SetString(PyExc_KeyError, error.what());
        break;
      case nb::exception_type::attribute_error:
        PyErr_SetString(PyExc_AttributeError, error.what());
        break;
      case nb::exception_type::stop_iteration:
        PyErr_SetString(PyExc_StopIteration, error.what());
        break;
      case nb::exception_type::import_error:
        PyErr_SetString(PyExc_ImportError, error.what());
        break;
      case nb::exception_type::buffer_error:
        PyErr_SetString(PyExc_BufferError, error.what());
        break;
      default:
        PyErr_SetString(PyExc_RuntimeError, error.what());
        break;
    }
  } catch (const TracerBoolConversionError& error) {
    set_error("TracerBoolConversionError", error.what());
  } catch (const ConcretizationTypeError& error) {
    set_error("ConcretizationTypeError", error.what());
  } catch (const UnexpectedTracerError& error) {
    set_error("UnexpectedTracerError", error.what());
  } catch (const ProgramTypeError& error) {
    set_error("JaxprTypeError", error.what());
  } catch (const TypeError& error) {
    set_error("LibraryTypeError", error.what());
  } catch (const NonConcreteBooleanIndexError& error) {
    set_error("NonConcreteBooleanIndexError", error.what());
  } catch (const IndexError& error) {
    set_error("LibraryIndexError", error.what());
  } catch (const TypePromotionError& error) {
    set_error("TypePromotionError", error.what());
  } catch (const OverflowError& error) {
    set_error("LibraryOverflowError", error.what());
  } catch (const ZeroDivisionError& error) {
    set_error("LibraryZeroDivisionError", error.what());
  } catch (const tpu::TPUError& error) {
    set_error("TPUError", error.what());
  } catch (const ValueError& error) {
    set_error("LibraryValueError", error.what());
  } catch (const models::KeyError& error) {
    PyErr_SetString(PyExc_KeyError, error.what());
  } catch (const NameError& error) {
    set_error("LibraryNameError", error.what());
  } catch (const FloatingPointError& error) {
    set_error("LibraryFloatingPointError", error.what());
  } catch (const NotImplementedError& error) {
    set_error("LibraryNotImplementedError", error.what());
  } catch (const ShardingTypeError& error) {
    set_error("ShardingTypeError", error.what());
  } catch (const DistributedError& error) {
    set_error("DistributedError", error.what());
  } catch (const RuntimeError& error) {
    set_error("JaxRuntimeError", error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    set_error("InternalError", error.what());
  } catch (...) {
    set_error("InternalError", "an unknown C++ exception");
  }
}

nb::object error_class(const char* name) { return nb::module_::import_("capibara._errors").attr(name); }

void raise_python(const char* name, const std::string& text) {
  set_error(name, text.c_str());
  throw nb::python_error();
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const Error&) {
          set_current_error();
        } catch (const InternalError&) {
          set_current_error();
        }
      },
      nullptr);
  set_interrupt_handler([] {
    const InterpreterLock lock;
    if (PyErr_CheckSignals() < 0) throw nb::python_error();
  });
  // A thread that waits for a program in the background releases the GIL.
  set_wait_hooks([]() -> void* { return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr; },
                 [](void* state) {
                   if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
                 },
                 [] { return Py_IsInitialized() && PyGILState_Check() != 0; });
  set_warning_handler([](const std::string& text, WarningKind kind) {
    const InterpreterLock lock;
    PyObject* category = kind == WarningKind::future        ? PyExc_FutureWarning
                         : kind == WarningKind::runtime     ? PyExc_RuntimeWarning
                         : kind == WarningKind::deprecation ? PyExc_DeprecationWarning
                                                            : PyExc_UserWarning;
    if (PyErr_WarnEx(category, text.c_str(), 1) < 0) throw nb::python_error();
  });
}

}  // namespace capibara::python
