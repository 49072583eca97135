// Source locations of equations: the line of the user's Python program that staged them.
#include <nanobind/stl/string.h>

#include <frameobject.h>

#include <map>
#include <set>
#include <tuple>

#include "bindings.h"
#include "program/ir/source.h"

namespace capibara::python {

namespace {

// Frames of files below this folder are internal.
std::string& package_folder() {
  static auto* folder = new std::string;
  return *folder;
}

// Files excluded by other libraries.
std::set<std::string, std::less<>>& excluded_files() {
  static auto* files = new std::set<std::string, std::less<>>;
  return *files;
}

bool is_internal(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) {
    PyErr_Clear();
    return true;
  }
  if (!package_folder().empty() && std::string_view(file).starts_with(package_folder())) return true;
  return !excluded_files().empty() && excluded_files().contains(std::string_view(file));
}

// The innermost frame of the user's program; null if there is none.
PyFrameObject* user_frame() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool internal = is_internal(code);
    Py_DECREF(code);
    if (!internal) return frame;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return nullptr;
}

Source find_line(Source scope) {
  if (!PyGILState_Check()) return scope;
  PyFrameObject* frame = user_frame();
  if (!frame) return scope;
  PyCodeObject* code = PyFrame_GetCode(frame);
  int line = PyFrame_GetLineNumber(frame);
  Py_DECREF(frame);
  // Code objects are kept alive, so that their addresses are never reused.
  static auto* known = new std::map<std::tuple<uint32_t, PyCodeObject*, int>, Source>;
  auto [it, added] = known->try_emplace({scope.id, code, line});
  if (added) {
    SourceInfo info = source_info(scope);
    if (info.file.empty()) {
      info.file = nb::cast<std::string>(nb::handle(code->co_filename));
      info.line = line;
    }
    it->second = intern(info);
  } else {
    Py_DECREF(code);
  }
  return it->second;
}

}  // namespace

void bind_sources(nb::module_& m) {
  m.def("set_package_folder", [](const std::string& folder) { package_folder() = folder; });
  m.def("exclude_source_file", [](const std::string& file) { excluded_files().insert(file); });
  m.def("current_source", [] {
    const SourceInfo info = source_info(current_source());
    return nb::make_tuple(info.name_scope, info.file, info.line);
  });
  set_source_finder(find_line);
}

}  // namespace capibara::python
