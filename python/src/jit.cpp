// jit for Python functions: the compiled function object, its calls and its cache.
#include "jit.h"

#include <capibara/default_device.h>
#include <capibara/placement.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/backend.h"
#include "config_values.h"
#include "core/runtime/caches.h"
#include "core/runtime/transfer_guard.h"
#include "core/sharding/explicit.h"
#include "key_hook.h"
#include "program/trace/trace.h"
#include "ref_checks.h"
#include "transforms/jit_entry.h"

#include <structmember.h>

namespace capibara::python {

namespace {

FlatFunction traced_function(const JitFunction& jit, const JitCall& call, TreeDef& out) {
  return [&jit, &call, &out](std::span<const Array> leaves) {
    nb::gil_scoped_acquire lock;
    TracedCall traced(jit.function, "jit", [&call] { return numbered_arguments(call); });
    nb::object both = unflatten_arrays(call.in, leaves);
    nb::object arguments = with_static(call, both[0], false);
    nb::object named = nb::steal(PyDict_Copy(nb::object(both[1]).ptr()));
    for (nb::handle entry : call.named_statics) named[nb::object(entry[0])] = nb::object(entry[2]);
    nb::object result = call_python(jit.function, arguments, named);
    refuse_returned_refs(jit.function, "jit", result, leaves);
    std::vector<nb::object> objects;
    PyTree tree = flatten(result, objects);
    Arrays arrays = result_arrays(jit.function, tree, objects, "jit");
    out = leaves_behind(nb::cast(tree), arrays.size());
    return arrays;
  };
}

// jax_explain_cache_misses: the Python function called before a function is traced; invalid when the option is off.
nb::object& miss_explainer() {
  static auto* explainer = new nb::object;  // never freed: the interpreter may be finalized by then
  return *explainer;
}

void explain_miss(const JitFunction& jit, const JitCall& call) {
  auto described = [](nb::handle in, const Types& types, const Config& settings) {
    nb::list avals;
    for (const ArrayType& type : types) avals.append(type_object(type));
    return nb::make_tuple(nb::borrow(in), avals, config_dict(settings));
  };
  nb::list known;
  for (const detail::KnownCall& one : detail::known_calls(*jit.cache)) {
    nb::object key = static_object(one.in);
    known.append(described(nb::object(key[2]), one.types, one.settings));
  }
  Types types;
  for (const Array& leaf : call.leaves) types.push_back(leaf.type());
  miss_explainer()(jit.function, known, described(nb::cast(call.in), types, config()));
}

// Records what identifies a call when it is repeated. Calls with tracers or refs are not recorded.
void remember(const JitFunction& jit, const JitCall& call, const std::shared_ptr<const detail::JitEntry>& entry) {
  RecentCall recent;
  for (const Array& leaf : call.leaves) {
    if (leaf.is_tracer() || leaf.type().ref) return;
    recent.types.push_back(leaf.type());
    recent.committed.push_back(leaf.committed());
    recent.places = recent.places || leaf.committed();
  }
  if (!detail::jit_entry_lasts(*entry)) return;
  recent.positional = call.positional;
  recent.statics = call.statics;
  for (nb::handle one : call.named_statics) recent.named_statics.emplace_back(nb::object(one[0]), nb::object(one[2]));
  recent.in = call.in;
  recent.settings = config_key() ^ context_mesh_key();
  recent.entry = entry;
  nb::object out = static_object(detail::jit_entry_structure(*entry));
  recent.out = nb::cast<const PyTree&>(out);
  jit.recent->add(std::move(recent));
}

// Releases the GIL, unless the program takes less time than that.
Arrays run_entry(const detail::JitEntry& entry, std::span<const Array> leaves) {
  if (detail::jit_entry_is_short(entry)) return detail::call_jit_entry(entry, leaves);
  nb::gil_scoped_release other_threads_run;
  return detail::call_jit_entry(entry, leaves);
}

bool is_staged(const Trace* trace) {
  for (; trace; trace = trace->parent.get()) {
    if (std::string_view(trace->kind()) == "jit") return true;
  }
  return false;
}

// jit(device=...): moves the arguments there, wherever they are. A program that is being traced runs as a whole on
// one platform.
nb::object call_on_device(const JitFunction& jit, const Device& device, PyObject* args, PyObject* kwargs) {
  const std::string outside = default_platform();
  const DefaultDeviceScope scope(device);
  if (detail::jit_disabled()) return call_python(jit.function, args, kwargs);
  JitCall call = take_apart(jit.settings, jit.function, args, kwargs);
  bool staged = is_staged(current_trace().get());
  for (Array& leaf : call.leaves) {
    if (leaf.is_tracer())
      staged = staged || is_staged(leaf.body()->trace());
    else if (!leaf.type().ref)
      leaf = jax::device_put(leaf, device);
  }
  if (staged && default_platform() != outside) {
    throw ValueError(concat("Received incompatible devices for jitted computation: jit(", jit.name, ") is to run on ",
                            to_string(device), ", but the program that calls it runs on platform ", outside,
                            "; give the outer jit the same device or backend"));
  }
  auto entry = find_entry(jit, call);
  return rebuild(*entry, run_entry(*entry, call.leaves));
}

nb::object call_jit(const JitFunction& jit, PyObject* args, PyObject* kwargs) {
  if (jit.settings.device) return call_on_device(jit, *jit.settings.device, args, kwargs);
  if (detail::jit_disabled()) return call_python(jit.function, args, kwargs);
  const bool now = evaluating();
  if (now) {
    Arrays leaves;
    if (const std::shared_ptr<const RecentCall> recent = jit.recent->find(args, kwargs, leaves)) {
      return unflatten_arrays(recent->out, run_entry(*recent->entry, leaves));
    }
  }
  JitCall call = take_apart(jit.settings, jit.function, args, kwargs);
  auto entry = find_entry(jit, call);
  if (!now) return rebuild(*entry, detail::call_jit_entry(*entry, call.leaves));
  Arrays outputs = run_entry(*entry, call.leaves);
  remember(jit, call, entry);
  return rebuild(*entry, outputs);
}

// With debug_nans or debug_infs: after a hit the function runs again without jit, on the original arguments. If the
// bad value occurs again, the error of that run, which names the user's line, replaces the current
// one.
void find_bad_value_without_jit(const JitFunction& jit, PyObject* args, PyObject* kwargs) {
  const Config& settings = config();
  if (!(settings.debug_nans || settings.debug_infs) || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const nb::object result = nb::steal(PyObject_Call(jit.function.ptr(), args, kwargs));
  if (result.is_valid()) {
    PyErr_NormalizeException(&type, &value, &traceback);
    const std::string text = nb::cast<std::string>(nb::str(nb::handle(value)));
    PyErr_Format(type,
                 "%s; the de-optimized function did not show it again: it comes from an input or a literal that "
                 "Python's numbers take, or from how the program was compiled",
                 text.c_str());
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return;
  }
  if (PyErr_ExceptionMatches(PyExc_FloatingPointError) || PyErr_ExceptionMatches(PyExc_ZeroDivisionError)) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback);
  }
}

// Adds the names of arguments on different devices to the current error.
void name_arguments_elsewhere(const JitFunction& jit, PyObject* args, PyObject* kwargs) {
  if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const std::string text = nb::cast<std::string>(nb::str(nb::handle(value)));
  if (text.starts_with("Received incompatible devices for jitted computation. Got argument with shape ")) {
    PyObject* named = guarded([&] {
      const JitCall call = take_apart(jit.settings, jit.function, args, kwargs);
      nb::list leaves;
      for (const Array& leaf : call.leaves) leaves.append(nb::cast(leaf));
      return nb::object(nb::module_::import_("capibara.jax._placing")
                            .attr("arguments_elsewhere")(jit.function, numbered_arguments(call), leaves))
          .release()
          .ptr();
    });
    if (!named) PyErr_Clear();
    if (named && named != Py_None) {
      const nb::object arguments = nb::steal(PyTuple_Pack(1, named));
      PyObject_SetAttrString(value, "args", arguments.ptr());
    }
    Py_XDECREF(named);
  }
  PyErr_Restore(type, value, traceback);
}

// A call of a jitted function is an API boundary: filters the frames of the current error.
void filter_frames_of_call() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  static PyObject* filter =
      nb::object(nb::module_::import_("capibara._tracebacks").attr("filter_frames_of_call")).release().ptr();
  const nb::object done = nb::steal(PyObject_CallOneArg(filter, value));
  if (!done.is_valid()) PyErr_Clear();  // the user's error is the one to show
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, PyException_GetTraceback(value));
}

// The Python function of (jitted function, args, kwargs) that lifts mutable values above arrays out of calls; null
// while the program has none.
PyObject* lifting_hook = nullptr;

PyObject* call_without_lifting(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  const JitFunction& jit = *nb::inst_ptr<JitFunction>(self);
  if (has_hook(Hook::keys) && evaluating()) return call_hook(Hook::keys, self, args, kwargs);
  // Guards check every argument that comes from the host, so no earlier call may be reused.
  if (transfer::is_guarded(transfer::Direction::host_to_device)) jit.recent->clear();
  PyObject* result = guarded([&] { return call_jit(jit, args, kwargs).release().ptr(); });
  if (!result) {
    find_bad_value_without_jit(jit, args, kwargs);
    name_arguments_elsewhere(jit, args, kwargs);
    filter_frames_of_call();
  }
  return result;
}

PyObject* call_jit_slot(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  if (!lifting_hook) return call_without_lifting(self, args, kwargs);
  const nb::object names = kwargs ? nb::borrow(kwargs) : nb::object(nb::dict());
  return PyObject_CallFunctionObjArgs(lifting_hook, self, args, names.ptr(), nullptr);
}

int traverse_jit(PyObject* self, visitproc visit, void* arg) noexcept {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<JitFunction>(self)->function.ptr());
  if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_VISIT(*attributes);  // __wrapped__ and the function's own
  return 0;
}
int clear_jit(PyObject* self) noexcept {
  if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_CLEAR(*attributes);
  nb::inst_ptr<JitFunction>(self)->function.reset();
  nb::inst_ptr<JitFunction>(self)->recent->clear();
  return 0;
}
PyObject* bind_jit_method(PyObject* self, PyObject* instance, PyObject*) noexcept {
  if (!instance || instance == Py_None) return nb::borrow(self).release().ptr();
  return PyMethod_New(self, instance);
}
PyType_Slot jit_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_jit)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_jit)},
                           {Py_tp_descr_get, reinterpret_cast<void*>(bind_jit_method)},
                           {Py_tp_call, reinterpret_cast<void*>(call_jit_slot)},
                           {0, nullptr}};

}  // namespace

std::shared_ptr<const detail::JitEntry> find_entry(const JitFunction& jit, const JitCall& call) {
  const bool takes_refs =
      std::any_of(call.leaves.begin(), call.leaves.end(), [](const Array& leaf) { return leaf.type().ref; });
  const auto check_refs = [&](std::span<const Array> captured) {
    if (takes_refs)
      refuse_shared_refs(jit.function, "jit", call.leaves, captured, [&call] { return numbered_arguments(call); });
  };
  check_refs({});
  auto entry = detail::find_jit_entry(*jit.cache, call.structure, call.leaves);
  if (entry) {
    check_refs(entry->captured);
    return entry;
  }
  if (miss_explainer().is_valid()) explain_miss(jit, call);
  TreeDef out;
  entry = detail::trace_jit_entry(*jit.cache, call.structure, call.leaves, traced_function(jit, call, out), out,
                                  donated_leaves(jit.settings, call));
  check_refs(entry->captured);
  return entry;
}

nb::object rebuild(const detail::JitEntry& entry, const Arrays& outputs) {
  nb::object tree = static_object(detail::jit_entry_structure(entry));
  return unflatten_arrays(nb::cast<const PyTree&>(tree), outputs);
}

CompilerOptions options_of(nb::handle pairs) {
  CompilerOptions options;
  for (nb::handle pair : pairs) {
    const std::string name = nb::cast<std::string>(nb::object(pair[0]));
    const nb::object value = pair[1];
    if (nb::isinstance<nb::bool_>(value))
      options[name] = nb::cast<bool>(value);
    else if (nb::isinstance<nb::int_>(value))
      options[name] = nb::cast<int64_t>(value);
    else if (nb::isinstance<nb::float_>(value))
      options[name] = nb::cast<double>(value);
    else
      options[name] = nb::cast<std::string>(nb::str(value));
  }
  return options;
}

void bind_jit(nb::module_& m) {
  nb::class_<SharedCalls>(m, "SharedCalls");
  nb::class_<JitFunction> function(m, "JitFunction", nb::dynamic_attr(), nb::type_slots(jit_slots));
  function
      .def("clear_cache",
           [](const JitFunction& self) {
             self.recent->clear();
             detail::clear_jit_cache(*self.cache);
           })
      .def_prop_ro("_shared_calls",
                   [](const JitFunction& self) {
                     return SharedCalls{self.cache, self.recent};
                   })
      .def("_call_without_lifting",
           [](nb::handle self, nb::args args, nb::kwargs kwargs) {
             nb::object result = nb::steal(call_without_lifting(self.ptr(), args.ptr(), kwargs.ptr()));
             if (!result.is_valid()) throw nb::python_error();
             return result;
           })
      .def("_cache_size", [](const JitFunction& self) { return detail::jit_cache_size(*self.cache); })
      .def("__repr__", [](const JitFunction& self) {
        nb::object text = nb::steal(self.function.is_valid() ? PyObject_Repr(self.function.ptr()) : nullptr);
        if (text.is_valid()) return concat("<PjitFunction of ", nb::cast<std::string>(text), ">");
        PyErr_Clear();  // the function has no usable repr
        return std::string("<PjitFunction>");
      });
  m.def(
      "jit",
      [](nb::object function, std::vector<int> static_argnums, std::vector<std::string> static_argnames,
         std::vector<int> donate_argnums, std::vector<std::string> donate_argnames, bool keep_unused, bool inline_call,
         const std::optional<std::pair<std::string, int>>& device, nb::handle compiler_options,
         const SharedCalls* shared) {
        JitFunction jit;
        if (device) jit.settings.device = Device{device->first, device->second};
        jit.function = function;
        jit.name = function_name(function);
        jit.settings.static_positions = std::set<int>(static_argnums.begin(), static_argnums.end());
        jit.settings.static_names = std::move(static_argnames);
        jit.settings.donated_positions = std::set<int>(donate_argnums.begin(), donate_argnums.end());
        jit.settings.donated_names = std::move(donate_argnames);
        jax::JitOptions options;
        options.keep_unused = keep_unused;
        options.inline_ = inline_call;
        options.name = jit.name;
        if (shared)
          static_cast<SharedCalls&>(jit) = *shared;
        else
          jit.cache = detail::make_jit_cache(options, options_of(compiler_options));
        return jit;
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
      nb::arg().none());
  m.def("set_default_compiler_options", [](nb::handle options) { set_default_compiler_options(options_of(options)); });
  m.def("warn_of_captured_constants_above", &detail::warn_of_captured_constants_above);
  m.def(
      "set_miss_explainer",
      [](nb::object explainer) { miss_explainer() = explainer.is_none() ? nb::object() : explainer; },
      nb::arg().none());
  m.def("set_lifting_hook", [](nb::object hook) { lifting_hook = hook.release().ptr(); });  // set once, never freed
  m.def("clear_caches", [] { clear_caches(); });
  bind_jit_stages(m, function);
}

}  // namespace capibara::python
