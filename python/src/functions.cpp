// The functions of the library's table as Python callables: one type for all of them.
#include <capibara/default_device.h>
#include <capibara/lax.h>

#include <nanobind/stl/string.h>

#include "backends/result_placement.h"
#include "bindings.h"
#include "core/runtime/transfer_guard.h"
#include "key_hook.h"
#include "lax/operators/explicit_x64.h"
#include "lax/operators/promote.h"
#include "lax/operators/promotion_scope.h"
#include "library/table/function.h"
#include "program/trace/trace.h"
#include "requested_sharding.h"
#include "staged_results.h"

#include <structmember.h>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace capibara::python {

namespace {

constexpr std::size_t max_parameters = 64;

struct LibraryFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  const library::Function* record;
  const library::Signature* parsed;  // null until the first call or query
  PromotionScope::Rule promotions;
  bool fills, takes_prototype, is_reshape;  // arrays filled with a number; functions like zeros_like; jax.numpy.reshape
  PyObject* name;
  PyObject* module;
  PyObject* dict;
};

// Parsed on first use: most functions of a module are never called.
const library::Signature& signature_of(LibraryFunction& function) {
  if (!function.parsed) {
    function.parsed = new library::Signature(function.record->signature);
    if (function.parsed->parameters().size() > max_parameters)
      throw InternalError(concat(function.record->name, " has more parameters than a call can distinguish"));
  }
  return *function.parsed;
}

[[noreturn]] void raise_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw nb::python_error();
}

std::string_view text_of(PyObject* unicode) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(unicode, &size);
  return {text, static_cast<std::size_t>(size)};
}

// True if an object is the sharding of a type outside any mesh: requesting it has no effect.
bool splits_nothing(PyObject* object) {
  if (object == Py_None) return false;
  nb::object answer = nb::steal(PyObject_GetAttrString(object, "splits_nothing"));
  if (answer.is_valid()) return answer.ptr() == Py_True;
  PyErr_Clear();
  return false;
}

// Functions of NumPy and SciPy's special functions and distributions promote their arguments; those of other modules
// take arguments of several kinds.
PromotionScope::Rule promotion_rule(std::string_view module) {
  const bool promotes =
      module.ends_with(".numpy") || module.ends_with(".special") || module.find(".stats") != module.npos;
  return promotes ? PromotionScope::first : PromotionScope::none;
}

// Places a result on the device or sharding passed as `device`.
nb::object placed(nb::object result, PyObject* device) {
  if (device == Py_None) return result;
  return nb::module_::import_("capibara.jax._placing").attr("device_put")(result, nb::handle(device));
}

// The argument of functions like zeros_like: anything with a shape and a dtype, whose values are not read.
library::Value prototype_value(PyObject* object) {
  const bool is_array = nb::isinstance<Array>(object) || nb::hasattr(object, "__array_interface__");
  if (is_array || nb::hasattr(object, "_as_zeros") || !nb::hasattr(object, "shape") || !nb::hasattr(object, "dtype")) {
    return to_value(object);
  }
  ArrayType type;
  for (nb::handle size : nb::handle(object).attr("shape")) type.shape.push_back(nb::cast<int64_t>(size));
  type.dtype = canonical(to_dtype(nb::handle(object).attr("dtype")));
  return jax::lax::zeros(type);
}

bool fills_arrays(std::string_view name) {
  static const std::set<std::string_view> filled = {"ones",      "zeros",      "full",      "empty",      "eye",
                                                    "ones_like", "zeros_like", "full_like", "empty_like", "identity"};
  return filled.count(name) > 0;
}

// Filling an array with a host number is a transfer, which a guard may forbid.
void check_transfer(const LibraryFunction& function) {
  if (!function.fills || !transfer::is_guarded(transfer::Direction::host_to_device) || !evaluating()) return;
  transfer::check(transfer::Direction::host_to_device,
                  [&] { return concat("the number that ", function.record->name, " fills an array with"); });
}

// jax's reshape calls the method of NumPy arrays, so that they stay concrete inside jit. Null: not that case.
PyObject* reshaped_by_numpy(const LibraryFunction& function, PyObject* const* arguments, std::size_t given,
                            PyObject* names) {
  if (!function.is_reshape || evaluating() || given == 0 || given > 3) return nullptr;
  static PyObject* ndarray = nb::module_::import_("numpy").attr("ndarray").ptr();
  if (reinterpret_cast<PyObject*>(Py_TYPE(arguments[0])) != ndarray) return nullptr;
  PyObject* shape = given > 1 ? arguments[1] : nullptr;
  nb::object order = given > 2 ? nb::borrow(arguments[2]) : nb::object(nb::str("C"));
  for (Py_ssize_t k = 0; k < (names ? PyTuple_GET_SIZE(names) : 0); ++k) {
    PyObject* value = arguments[given + static_cast<std::size_t>(k)];
    const std::string_view name = text_of(PyTuple_GET_ITEM(names, k));
    if (name == "shape" && !shape)
      shape = value;
    else if (name == "order" && given < 3)
      order = nb::borrow(value);
    else if (value != Py_None)
      return nullptr;
  }
  if (!shape) return nullptr;
  return nb::handle(arguments[0]).attr("reshape")(nb::handle(shape), nb::arg("order") = order).release().ptr();
}

PyObject* call_function(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* names) noexcept {
  return guarded([&]() -> PyObject* {
    auto& function = *reinterpret_cast<LibraryFunction*>(self);
    const std::size_t given = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
    if (PyObject* known = reshaped_by_numpy(function, arguments, given, names)) return known;
    check_transfer(function);
    const library::Signature& signature = signature_of(function);
    const auto& parameters = signature.parameters();
    library::Values values(parameters.size());
    std::bitset<max_parameters> filled;
    const std::size_t positional = std::min(given, signature.positional_count());
    const std::string_view name = function.record->name;
    for (std::size_t i = 0; i < positional; ++i) {
      values[i] = i == 0 && function.takes_prototype ? prototype_value(arguments[0]) : to_value(arguments[i]);
      filled[i] = true;
    }
    if (given > positional) {
      if (!signature.has_variadic()) {
        raise_type_error(concat(name, "() takes ", signature.positional_count(), " positional argument",
                                signature.positional_count() == 1 ? "" : "s", " but ", given, " were given"));
      }
      library::Values rest;
      for (std::size_t i = positional; i < given; ++i) rest.push_back(to_value(arguments[i]));
      values[signature.positional_count()] = library::Value::tuple_of(std::move(rest));
      filled[signature.positional_count()] = true;
    }
    library::Sequence others;  // the arguments of **name: a tuple whose fields are the keywords
    others.type_name = "keywords";
    std::optional<RequestedSharding> requested;
    PyObject* device = Py_None;
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t k = 0; k < keywords; ++k) {
      std::string_view keyword = text_of(PyTuple_GET_ITEM(names, k));
      int index = signature.find(keyword);
      const library::Parameter* parameter = index < 0 ? nullptr : &parameters[static_cast<std::size_t>(index)];
      if (!parameter && signature.has_keywords()) {
        others.fields.emplace_back(keyword);
        others.items.push_back(to_value(arguments[given + static_cast<std::size_t>(k)]));
        continue;
      }
      if (!parameter || parameter->kind == library::Parameter::variadic ||
          parameter->kind == library::Parameter::keywords || parameter->kind == library::Parameter::positional_only) {
        raise_type_error(concat(name, "() got an unexpected keyword argument '", keyword, "'"));
      }
      if (filled[static_cast<std::size_t>(index)]) {
        raise_type_error(concat(name, "() got multiple values for argument '", keyword, "'"));
      }
      PyObject* argument = arguments[given + static_cast<std::size_t>(k)];
      if (keyword == "out_sharding") {
        if (argument != Py_None && !splits_nothing(argument))
          requested = requested_out_sharding(argument, name_in_errors(text_of(function.module), std::string(name)));
        argument = Py_None;
      }
      if (keyword == "device") std::swap(device, argument);  // the function makes the array, then it is placed
      values[static_cast<std::size_t>(index)] = to_value(argument);
      filled[static_cast<std::size_t>(index)] = true;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (filled[i]) continue;
      if (parameters[i].default_value) {
        values[i] = *parameters[i].default_value;
      } else if (parameters[i].kind == library::Parameter::variadic) {
        values[i] = library::Value::tuple_of(library::Values());
      } else if (parameters[i].kind == library::Parameter::keywords) {
        values[i] = others;
      } else {
        raise_type_error(concat(name, "() missing 1 required ",
                                parameters[i].kind == library::Parameter::keyword_only ? "keyword-only" : "positional",
                                " argument: '", parameters[i].name, "'"));
      }
    }
    PromotionScope promotions(function.promotions);
    if (requested)
      return from_value(call_asking(*function.record, signature, std::move(values), *requested)).release().ptr();
    library::Value result = function.record->call(library::Arguments(function.record->name, signature, values));
    if (chosen_device() && result.get_if<Array>()) result = placed_by_default({*result.get_if<Array>()})[0];
    if (!evaluating())
      result = staged(std::move(result), std::span(arguments, given + static_cast<std::size_t>(keywords)));
    return placed(from_value(result), device).release().ptr();
  });
}

struct CallArguments {
  nb::tuple positional;
  nb::dict named;
};

CallArguments collected(PyObject* const* arguments, std::size_t flags, PyObject* names) {
  const Py_ssize_t given = PyVectorcall_NARGS(flags), keywords = names ? PyTuple_GET_SIZE(names) : 0;
  nb::list positional;
  for (Py_ssize_t i = 0; i < given; ++i) positional.append(nb::handle(arguments[i]));
  nb::dict named;
  for (Py_ssize_t i = 0; i < keywords; ++i)
    named[nb::handle(PyTuple_GET_ITEM(names, i))] = nb::handle(arguments[given + i]);
  return {nb::tuple(positional), named};
}

PyObject* call_through(Hook hook, PyObject* self, PyObject* const* arguments, std::size_t flags,
                       PyObject* names) noexcept {
  return guarded([&]() -> PyObject* {
    const CallArguments call = collected(arguments, flags, names);
    PyObject* const result = call_hook(hook, self, call.positional.ptr(), call.named.ptr());
    if (!result) throw nb::python_error();
    return result;
  });
}

// A call that failed, maybe because a key or `impl` belongs to a generator that Python defines; if not, the error
// stays.
PyObject* call_python_generator(PyObject* self, PyObject* const* arguments, std::size_t flags,
                                PyObject* names) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const result = guarded([&]() -> PyObject* {
    const CallArguments call = collected(arguments, flags, names);
    return nb::module_::import_("capibara.jax._generators")
        .attr("call")(nb::handle(self), call.positional, call.named)
        .release()
        .ptr();
  });
  if (result == Py_NotImplemented) {
    Py_DECREF(result);
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

// Calls of jax.random functions, whose keys may be tracked for reuse.
PyObject* call_random_function(PyObject* self, PyObject* const* arguments, std::size_t flags,
                               PyObject* names) noexcept {
  PyObject* const result = has_hook(Hook::keys) ? call_through(Hook::keys, self, arguments, flags, names)
                                                : call_function(self, arguments, flags, names);
  if (result || !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))) return result;
  return call_python_generator(self, arguments, flags, names);
}

// Calls of jax.numpy functions, whose arguments and results may be checked.
PyObject* call_numeric_function(PyObject* self, PyObject* const* arguments, std::size_t flags,
                                PyObject* names) noexcept {
  if (has_hook(Hook::numbers)) return call_through(Hook::numbers, self, arguments, flags, names);
  return call_function(self, arguments, flags, names);
}

// The functions of jax.numpy that jax checks for NaN and for divisors of zero.
bool checks_numbers(std::string_view name) {
  static const std::set<std::string_view> checked = {
      "acos",  "acosh",     "add",      "arccos", "arccosh",     "arcsin",       "arctanh", "asin",
      "atanh", "cos",       "divide",   "divmod", "float_power", "fmod",         "log",     "log10",
      "log1p", "log2",      "mod",      "pow",    "power",       "floor_divide", "hypot",   "sin",
      "sqrt",  "remainder", "subtract", "tan",    "true_divide"};
  return checked.count(name) > 0;
}

vectorcallfunc entry_point(std::string_view module, std::string_view name) {
  if (module.ends_with("random")) return call_random_function;
  return module == "numpy" && checks_numbers(name) ? call_numeric_function : call_function;
}

PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) noexcept {
  if (!instance || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

PyObject* represent(PyObject* self) noexcept {
  const auto& function = *reinterpret_cast<LibraryFunction*>(self);
  return PyUnicode_FromFormat("<function %U.%U>", function.module, function.name);
}

PyObject* get_doc(PyObject* self, void*) noexcept {
  const auto& function = *reinterpret_cast<LibraryFunction*>(self);
  std::string text = concat(library::text_of(*function.record), "\n\n", function.record->doc);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* get_signature(PyObject* self, void*) noexcept {
  return guarded([&]() -> PyObject* {
    auto& function = *reinterpret_cast<LibraryFunction*>(self);
    nb::object inspect = nb::module_::import_("inspect");
    nb::object kind = inspect.attr("Parameter");
    static const char* const kinds[] = {"POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY",
                                        "VAR_KEYWORD"};
    nb::list parameters;
    for (const library::Parameter& parameter : signature_of(function).parameters()) {
      nb::object default_value =
          parameter.default_value ? from_value(*parameter.default_value) : nb::object(kind.attr("empty"));
      nb::object annotation =
          parameter.annotation.empty() ? nb::object(kind.attr("empty")) : nb::object(nb::cast(parameter.annotation));
      parameters.append(kind(parameter.name, kind.attr(kinds[parameter.kind]), nb::arg("default") = default_value,
                             nb::arg("annotation") = annotation));
    }
    const std::string& result = signature_of(function).result();
    nb::object type = inspect.attr("Signature");
    nb::object annotation = result.empty() ? nb::object(type.attr("empty")) : nb::object(nb::cast(result));
    return type(parameters, nb::arg("return_annotation") = annotation).release().ptr();
  });
}

PyObject* get_ufunc_inputs(PyObject* self, void*) noexcept {
  return PyLong_FromLong(reinterpret_cast<LibraryFunction*>(self)->record->ufunc_inputs);
}

PyObject* reduce_function(PyObject* self, PyObject*) noexcept {
  return guarded([&]() -> PyObject* {
    const auto& function = *reinterpret_cast<LibraryFunction*>(self);
    nb::object find = nb::module_::import_("capibara._core").attr("library_function");
    return nb::make_tuple(find, nb::make_tuple(nb::borrow(function.module), nb::borrow(function.name))).release().ptr();
  });
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(LibraryFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(LibraryFunction, dict), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(LibraryFunction, name), READONLY, nullptr},
    {"__qualname__", T_OBJECT, offsetof(LibraryFunction, name), READONLY, nullptr},
    {"__module__", T_OBJECT, offsetof(LibraryFunction, module), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef attributes[] = {
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"nin", get_ufunc_inputs, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef function_methods[] = {
    {"__reduce__", reduce_function, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot function_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_tp_methods, function_methods},
    {0, nullptr},
};
PyType_Spec specification = {"capibara._core.LibraryFunction", sizeof(LibraryFunction), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                             function_slots};

PyObject* function_type() {
  static PyObject* type = PyType_FromSpec(&specification);
  return type;
}

// Functions live as long as the interpreter: one object per row.
nb::object make_function(std::string_view module, const library::Function& record) {
  auto* type = reinterpret_cast<PyTypeObject*>(function_type());
  auto* function = reinterpret_cast<LibraryFunction*>(type->tp_alloc(type, 0));
  if (!function) throw nb::python_error();
  function->vectorcall = entry_point(module, record.name);
  function->record = &record;
  function->parsed = nullptr;
  function->name = PyUnicode_FromStringAndSize(record.name.data(), static_cast<Py_ssize_t>(record.name.size()));
  std::string full = module.starts_with("capibara.") ? std::string(module) : concat("capibara.jax.", module);
  function->module = PyUnicode_FromStringAndSize(full.data(), static_cast<Py_ssize_t>(full.size()));
  function->dict = nullptr;
  function->promotions = promotion_rule(full);
  function->fills = fills_arrays(record.name);
  function->takes_prototype = record.name.ends_with("_like");
  function->is_reshape = record.name == "reshape" && full.ends_with(".numpy");
  return nb::steal(reinterpret_cast<PyObject*>(function));
}

std::map<std::pair<std::string, std::string>, PyObject*>& function_objects() {
  static auto* objects = new std::map<std::pair<std::string, std::string>, PyObject*>;
  return *objects;
}

}  // namespace

nb::object library_function(std::string_view module, std::string_view name) {
  PyObject*& object = function_objects()[{std::string(module), std::string(name)}];
  if (!object) {
    const library::Function* record = library::find_function(module, name);
    if (!record) return nb::none();
    object = make_function(module, *record).release().ptr();
  }
  return nb::borrow(object);
}

library::Value call_library(const char* module, const char* name, const library::Values& leading) {
  struct Entry {
    const library::Function* record;
    library::Signature signature;
  };
  static auto* entries = new std::map<std::pair<const char*, const char*>, Entry>;
  auto found = entries->find({module, name});
  if (found == entries->end()) {
    const library::Function* record = library::find_function(module, name);
    if (!record) throw NotImplementedError(concat("capibara.jax.", module, " has no function ", name));
    found = entries->emplace(std::pair(module, name), Entry{record, library::Signature(record->signature)}).first;
  }
  const library::Signature& signature = found->second.signature;
  const auto& parameters = signature.parameters();
  const std::size_t direct = std::min(leading.size(), signature.positional_count());
  library::Values values(leading.begin(), leading.begin() + static_cast<std::ptrdiff_t>(direct));
  for (std::size_t i = direct; i < parameters.size(); ++i) {
    if (parameters[i].kind == library::Parameter::variadic) {
      values.push_back(library::Value::tuple_of(
          library::Values(leading.begin() + static_cast<std::ptrdiff_t>(direct), leading.end())));
    } else {
      values.push_back(parameters[i].default_value.value_or(library::Value()));
    }
  }
  return found->second.record->call(library::Arguments(name, found->second.signature, values));
}

void bind_functions(nb::module_& m) {
  m.attr("LibraryFunction") = nb::borrow(function_type());
  m.def("set_explicit_x64_dtypes", [](const std::string& mode) {
    explicit_x64_dtypes() = mode == "allow"   ? ExplicitX64::allow
                            : mode == "error" ? ExplicitX64::error
                                              : ExplicitX64::warn;
  });
  m.def("library_function", [](std::string module, const std::string& name) {
    if (module.starts_with("capibara.jax.")) module = module.substr(13);
    return library_function(module, name);
  });
  m.def(
      "set_key_hook", [](nb::object hook) { set_hook(Hook::keys, std::move(hook)); }, nb::arg("hook").none());
  m.def(
      "set_number_hook", [](nb::object hook) { set_hook(Hook::numbers, std::move(hook)); }, nb::arg("hook").none());
  m.def("library_modules", [] {
    nb::list names;
    for (const library::Module& module : library::modules()) names.append(std::string(module.name));
    return names;
  });
  // Every function of a module of the table, by name.
  m.def("library_module", [](const std::string& module) {
    nb::dict functions;
    for (const library::Module& one : library::modules()) {
      if (one.name != module) continue;
      for (library::Family family : one.families) {
        for (const library::Function& function : family) {
          functions[nb::str(function.name.data(), function.name.size())] = library_function(module, function.name);
        }
      }
    }
    return functions;
  });
}

}  // namespace capibara::python
