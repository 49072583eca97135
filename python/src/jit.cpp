// jit for Python functions: the compiled function object, its cache, and its stages.
#include <capibara/default_device.h>
#include <capibara/jit.h>
#include <capibara/placement.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/backend.h"
#include "calls.h"
#include "config_values.h"
#include "jit_recent.h"
#include "key_hook.h"
#include "program/stablehlo/borders.h"
#include "runtime/caches.h"
#include "runtime/transfer_guard.h"
#include "trace/trace.h"
#include "transforms/jit_stages.h"

#include <structmember.h>

#include <algorithm>
#include <set>

namespace capibara::python {

namespace {

struct JitSettings {
  std::set<int> static_positions;
  std::vector<std::string> static_names;
  std::set<int> donated_positions;
  std::vector<std::string> donated_names;
  std::optional<Device> device;  // jit(device=..., backend=...)
};

// What all wrappers that jit makes of one function with the same settings share.
struct SharedCalls {
  std::shared_ptr<detail::JitCache> cache;
  std::shared_ptr<RecentCalls> recent = std::make_shared<RecentCalls>();
};

// What jit makes of a Python function.
struct JitFunction : SharedCalls {
  nb::object function;
  JitSettings settings;
  std::string name;
};

// A call taken apart: static arguments and structures in one hashable key, arrays in the leaves.
struct JitCall {
  nb::object key;  // (static positions and values, in tree, donation)
  PyTree in;
  Arrays leaves;
  std::vector<std::pair<std::size_t, nb::object>> fixed;  // static positional arguments
  nb::object fixed_names;
  std::size_t positional = 0;
  TreeDef structure;
};

bool at_position(const std::set<int>& positions, std::size_t i, std::size_t count) {
  const int place = static_cast<int>(i);
  return positions.count(place) || positions.count(place - static_cast<int>(count));
}

bool listed(const std::vector<std::string>& names, nb::handle name) {
  std::string text = nb::cast<std::string>(name);
  return std::find(names.begin(), names.end(), text) != names.end();
}

[[noreturn]] void refuse_unhashable(const JitFunction& jit, nb::handle value) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();  // its __hash__ raised an error of its own
  PyErr_Clear();
  throw ValueError(concat("Non-hashable static arguments are used in a jit function: static arguments of ", jit.name,
                          " must be hashable, got ", nb::cast<std::string>(nb::repr(value)), " of type ",
                          nb::cast<std::string>(nb::str(value.type())),
                          ", which is non-hashable. "
                          "Non-hashable static arguments are not supported."));
}

nb::object with_static(const JitCall& call, const nb::object& dynamic, bool hide_static);

// The pair (args, kwargs) of a call with the numbers of its leaves, by which errors name them.
nb::object numbered_arguments(const JitCall& call) {
  nb::object both = call.in.unflatten(numbers(call.in.num_leaves()));
  return nb::make_tuple(with_static(call, both[0], true), nb::object(both[1]));
}

// The leaves of a call as arrays; one that is none is named in the error.
Arrays argument_arrays(const JitFunction& jit, const JitCall& call, const std::vector<nb::object>& objects) {
  Arrays arrays;
  arrays.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const nb::object& object = objects[i];
    if (!nb::isinstance<Array>(object) && !is_number(object) && nb::hasattr(object, "__jax_array__")) {
      throw ValueError("Triggering __jax_array__() during abstractification is no longer supported: register the type as a "
                       "pytree, or call jnp.asarray on the argument.");
    }
    if (!evaluating() && nb::hasattr(object, "_as_zeros")) {  // a type alone, where only types matter
      arrays.push_back(nb::cast<Array>(object.attr("_as_zeros")()));
      continue;
    }
    try {
      arrays.push_back(to_operand(object, "jit"));
    } catch (const TypeError&) {
      nb::object name = nb::module_::import_("capibara._origins").attr("argument_name");
      throw TypeError(concat("Error interpreting argument to ", nb::cast<std::string>(nb::repr(jit.function)),
                             " as an abstract array. The problematic value is of type ",
                             nb::cast<std::string>(nb::str(object.type())), " and was passed to the function at path ",
                             nb::cast<std::string>(name(jit.function, numbered_arguments(call), i)),
                             ".\nHint: an argument that is no array must be named in static_argnums or static_argnames."));
    }
  }
  return arrays;
}

JitCall take_apart(const JitFunction& jit, nb::handle args, nb::handle kwargs) {
  JitCall call;
  const JitSettings& settings = jit.settings;
  call.positional = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  nb::list dynamic, fixed, fixed_names;
  for (std::size_t i = 0; i < call.positional; ++i) {
    nb::handle value(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)));
    if (at_position(settings.static_positions, i, call.positional)) {
      if (PyObject_Hash(value.ptr()) == -1) refuse_unhashable(jit, value);
      fixed.append(nb::make_tuple(i, nb::borrow(value.type()), nb::borrow(value)));
      call.fixed.emplace_back(i, nb::borrow(value));
    } else {
      dynamic.append(value);
    }
  }
  nb::dict named;
  if (kwargs.is_valid() && PyDict_Size(kwargs.ptr()) > 0) {
    nb::object keys = nb::steal(PyDict_Keys(kwargs.ptr()));
    PyList_Sort(keys.ptr());
    for (nb::handle key : keys) {
      nb::handle value(PyDict_GetItem(kwargs.ptr(), key.ptr()));
      if (listed(settings.static_names, key)) {
        if (PyObject_Hash(value.ptr()) == -1) refuse_unhashable(jit, value);
        fixed_names.append(nb::make_tuple(nb::borrow(key), nb::borrow(value.type()), nb::borrow(value)));
      } else {
        named[key] = value;
      }
    }
  }
  call.fixed_names = fixed_names;
  std::vector<PyTree> trees;
  std::vector<nb::object> objects;
  for (nb::handle value : dynamic) trees.push_back(flatten(value, objects));
  PyTree names_tree = flatten(named, objects);
  call.in = PyTree::tuple({PyTree::tuple(trees), names_tree});
  call.leaves = argument_arrays(jit, call, objects);
  call.key = nb::make_tuple(nb::tuple(fixed), nb::tuple(fixed_names), nb::cast(call.in), call.positional);
  call.structure = TreeDef::tuple({static_part(call.key), plain_leaves(call.leaves.size())});
  return call;
}

// Which leaves of a call may be overwritten by its results.
std::vector<bool> donated_leaves(const JitSettings& settings, const JitCall& call) {
  std::vector<bool> donated;
  const std::vector<PyTree> parts = call.in.children();
  std::size_t position = 0;
  for (const PyTree& argument : parts[0].children()) {
    while (at_position(settings.static_positions, position, call.positional)) ++position;
    donated.resize(donated.size() + argument.num_leaves(),
                   settings.donated_positions.count(static_cast<int>(position++)) != 0);
  }
  nb::dict names = nb::cast<nb::dict>(parts[1].unflatten(numbers(parts[1].num_leaves())));
  std::vector<bool> named(parts[1].num_leaves());
  for (auto [name, value] : names) {
    std::vector<nb::object> places;
    flatten(value, places);
    for (const nb::object& place : places) named[nb::cast<std::size_t>(place)] = listed(settings.donated_names, name);
  }
  donated.insert(donated.end(), named.begin(), named.end());
  return donated;
}

// All positional arguments from those that are not static.
nb::object with_static(const JitCall& call, const nb::object& dynamic, bool hide_static) {
  nb::object arguments = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(call.positional)));
  std::size_t next_fixed = 0, next = 0;
  for (std::size_t i = 0; i < call.positional; ++i) {
    nb::object value;
    if (next_fixed < call.fixed.size() && call.fixed[next_fixed].first == i) {
      const nb::object& fixed = call.fixed[next_fixed++].second;
      value = hide_static ? nb::none() : fixed;
    } else {
      value = dynamic[next++];
    }
    PyTuple_SET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i), value.release().ptr());
  }
  return arguments;
}

FlatFunction traced_function(const JitFunction& jit, const JitCall& call, TreeDef& out) {
  return [&jit, &call, &out](std::span<const Array> leaves) {
    nb::gil_scoped_acquire lock;
    TracedCall traced(jit.function, "jit", [&call] { return numbered_arguments(call); });
    nb::object both = unflatten_arrays(call.in, leaves);
    nb::object arguments = with_static(call, both[0], false);
    nb::object named = nb::steal(PyDict_Copy(nb::object(both[1]).ptr()));
    for (nb::handle entry : call.fixed_names) named[nb::object(entry[0])] = nb::object(entry[2]);
    nb::object result = call_python(jit.function, arguments, named);
    std::vector<nb::object> objects;
    PyTree tree = flatten(result, objects);
    Arrays arrays = result_arrays(jit.function, tree, objects, "jit");
    out = leaves_behind(nb::cast(tree), arrays.size());
    return arrays;
  };
}

// jax_explain_cache_misses: what Python calls before a function is traced; invalid where nobody asks.
nb::object& miss_explainer() {
  static auto* explainer = new nb::object;  // never freed: the interpreter may be gone by then
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

std::shared_ptr<const detail::JitEntry> find_entry(const JitFunction& jit, const JitCall& call) {
  auto entry = detail::find_jit_entry(*jit.cache, call.structure, call.leaves);
  if (entry) return entry;
  if (miss_explainer().is_valid()) explain_miss(jit, call);
  TreeDef out;
  return detail::trace_jit_entry(*jit.cache, call.structure, call.leaves, traced_function(jit, call, out), out,
                                 donated_leaves(jit.settings, call));
}

nb::object rebuild(const detail::JitEntry& entry, const Arrays& outputs) {
  nb::object tree = static_object(detail::jit_entry_structure(entry));
  return unflatten_arrays(nb::cast<const PyTree&>(tree), outputs);
}

// What a call should be recognised by when it comes again. Values that are being traced come once.
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
  recent.fixed = call.fixed;
  for (nb::handle one : call.fixed_names) recent.fixed_names.emplace_back(nb::object(one[0]), nb::object(one[2]));
  recent.in = call.in;
  recent.settings = config_key();
  recent.entry = entry;
  nb::object out = static_object(detail::jit_entry_structure(*entry));
  recent.out = nb::cast<const PyTree&>(out);
  jit.recent->add(std::move(recent));
}

// Other threads of the interpreter run meanwhile, where the program takes longer than letting them.
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

// jit(device=...): arguments go there, wherever they are. A program that is being traced runs as a whole on one platform.
nb::object call_on_device(const JitFunction& jit, const Device& device, PyObject* args, PyObject* kwargs) {
  const std::string outside = default_platform();
  const DefaultDeviceScope scope(device);
  if (detail::jit_disabled()) return call_python(jit.function, args, kwargs);
  JitCall call = take_apart(jit, args, kwargs);
  bool staged = is_staged(current_trace().get());
  for (Array& leaf : call.leaves) {
    if (leaf.is_tracer()) staged = staged || is_staged(leaf.body()->trace());
    else if (!leaf.type().ref) leaf = jax::device_put(leaf, device);
  }
  if (staged && default_platform() != outside) {
    throw ValueError(concat("Received incompatible devices for jitted computation: jit(", jit.name, ") is to run on ", to_string(device),
                            ", but the program that calls it runs on platform ", outside, "; give the outer jit the same device or backend"));
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
  JitCall call = take_apart(jit, args, kwargs);
  auto entry = find_entry(jit, call);
  if (!now) return rebuild(*entry, detail::call_jit_entry(*entry, call.leaves));
  Arrays outputs = run_entry(*entry, call.leaves);
  remember(jit, call, entry);
  return rebuild(*entry, outputs);
}

// With debug_nans or debug_infs: after a hit the function runs again as if it were not jitted, on the arguments as they were given.
// Where it meets the bad value itself, its error names the user's line and takes the place of the one that is set.
void find_bad_value_without_jit(const JitFunction& jit, PyObject* args, PyObject* kwargs) {
  const Config& settings = config();
  if (!(settings.debug_nans || settings.debug_infs) || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const nb::object result = nb::steal(PyObject_Call(jit.function.ptr(), args, kwargs));
  if (result.is_valid()) {
    PyErr_NormalizeException(&type, &value, &traceback);
    const std::string text = nb::cast<std::string>(nb::str(nb::handle(value)));
    PyErr_Format(type, "%s; the de-optimized function did not show it again: it comes from an input or a literal that Python's numbers take, or from how the program was compiled", text.c_str());
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

// A call of a jitted function is a boundary of the library: the frames of the error that is set are filtered here.
void filter_frames_of_call() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  static PyObject* filter = nb::object(nb::module_::import_("capibara._tracebacks").attr("filter_frames_of_call")).release().ptr();
  const nb::object done = nb::steal(PyObject_CallOneArg(filter, value));
  if (!done.is_valid()) PyErr_Clear();  // the user's error is the one to show
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, PyException_GetTraceback(value));
}

PyObject* call_jit_slot(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  const JitFunction& jit = *nb::inst_ptr<JitFunction>(self);
  if (has_key_hook() && evaluating()) return call_key_hook(self, args, kwargs);
  // Guards look at every argument that comes from the host: none may be known from an earlier call.
  if (transfer::is_guarded(transfer::Direction::host_to_device)) jit.recent->clear();
  PyObject* result = guarded([&] { return call_jit(jit, args, kwargs).release().ptr(); });
  if (!result) {
    find_bad_value_without_jit(jit, args, kwargs);
    filter_frames_of_call();
  }
  return result;
}

// The stages after tracing; one class serves Traced, Lowered and Compiled.
struct Stage {
  std::shared_ptr<const detail::JitEntry> entry;
  std::vector<bool> donated;
  std::string name;
  nb::object function;
  std::shared_ptr<detail::JitCache> cache;
  detail::LeafPlacements placements;  // how the arguments lie that it was made for
};
struct Traced : Stage {};
struct Lowered : Stage {};
struct Compiled : Stage {};

PyTree out_tree(const Stage& stage) {
  nb::object tree = static_object(detail::jit_entry_structure(*stage.entry));
  return nb::cast<const PyTree&>(tree);
}
PyTree in_tree(const Stage& stage) {
  nb::object key = static_object(detail::jit_entry_input_structure(*stage.entry));
  return nb::cast<PyTree>(nb::object(key[2]));
}

// The types of the arguments, without those of captured values, which come first.
Types argument_types(const Stage& stage) {
  Types types = detail::jit_entry_program(*stage.entry).input_types();
  types.erase(types.begin(), types.end() - static_cast<std::ptrdiff_t>(in_tree(stage).num_leaves()));
  return types;
}

// The arguments' types, and whether they are donated.
nb::object argument_info(const Stage& stage) {
  nb::object make = nb::module_::import_("capibara._types").attr("ArgInfo");
  const Types types = argument_types(stage);
  PyTree tree = in_tree(stage);
  std::vector<nb::object> leaves;
  for (std::size_t i = 0; i < tree.num_leaves(); ++i) {
    const ArrayType& type = types[i];
    leaves.push_back(make(int_tuple(type.shape), numpy_dtype(type.dtype), nb::bool_(stage.donated[i])));
  }
  return tree.unflatten(leaves);
}

// Arguments of other types than those compiled for are named.
void check_types(const Compiled& self, const JitCall& call) {
  const Types types = argument_types(self);
  std::string text;
  nb::object name = nb::module_::import_("capibara._origins").attr("argument_name");
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ArrayType& got = call.leaves[i].type();
    if (got.shape == types[i].shape && got.dtype == types[i].dtype) continue;
    text += concat("\nArgument '", nb::cast<std::string>(name(self.function, numbered_arguments(call), i)), "' compiled with ",
                   capibara::to_string(types[i]), " and called with ", capibara::to_string(got));
  }
  if (!text.empty()) {
    throw TypeError(concat("Argument types differ from the types for which this computation was compiled. The mismatches are:", text));
  }
}

nb::object call_compiled(const Compiled& self, nb::args args, nb::kwargs kwargs) {
  // Static arguments were compiled in: a compiled function takes the others only.
  JitFunction jit{{self.cache}, self.function, {}, self.name};
  JitCall call = take_apart(jit, args, kwargs);
  PyTree expected = in_tree(self);
  if (!(call.in == expected)) {
    throw TypeError(
        concat("Function compiled with input pytree does not match the input pytree it was called with: compiled for ",
               expected.to_string(), ", called with ", call.in.to_string()));
  }
  for (const Array& leaf : call.leaves) {
    if (!leaf.is_tracer()) continue;
    throw TypeError(concat("Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected "
                           "argument of Tracer type ", tracer_kind(leaf), ". Transform the function before it is compiled."));
  }
  check_types(self, call);
  detail::check_jit_entry(*self.entry, detail::jit_entry_input_structure(*self.entry), call.leaves);
  return rebuild(*self.entry, detail::call_jit_entry(*self.entry, call.leaves));
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

// Arguments that are given by their types alone may say how they will lie.
void add_described_placements(const JitFunction& jit, nb::handle args, nb::handle kwargs, detail::LeafPlacements& placements) {
  std::vector<nb::object> leaves;
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  for (std::size_t i = 0; i < count; ++i) {
    if (!at_position(jit.settings.static_positions, i, count)) flatten(nb::handle(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i))), leaves);
  }
  nb::dict named;
  for (auto [name, value] : nb::borrow<nb::dict>(kwargs)) {
    if (!listed(jit.settings.static_names, name)) named[name] = value;
  }
  flatten(named, leaves);
  if (leaves.size() != placements.size()) return;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (placements[i] || nb::isinstance<Array>(leaves[i]) || !nb::hasattr(leaves[i], "sharding")) continue;
    nb::object sharding = leaves[i].attr("sharding");
    if (nb::hasattr(sharding, "_placement")) {
      placements[i] = std::make_shared<const Placement>(nb::cast<const Placement&>(nb::object(sharding.attr("_placement"))));
    }
  }
}

// The devices of a topology that the program was lowered for; null: devices that are here.
std::shared_ptr<const Placement> described_devices(const Stage& stage) {
  detail::LeafPlacements all = stage.placements;
  all.push_back(stablehlo::find_borders(detail::jit_entry_program(*stage.entry)).first);
  for (const std::shared_ptr<const Placement>& one : all) {
    if (one && one->platform.starts_with("topology:")) return one;
  }
  return nullptr;
}

nb::object memory_analysis(const Compiled& self) {
  const ExecutableDetails details = detail::compile_jit_entry(*self.entry, self.placements);
  if (!details.memory) return nb::none();
  const MemoryUse& use = *details.memory;
  return nb::module_::import_("capibara._types").attr("CompiledMemoryStats")(
      use.generated_code, use.argument, use.output, use.alias, use.temp, use.host_generated_code, use.host_argument, use.host_output,
      use.host_alias, use.host_temp, use.peak);
}

nb::dict cost_analysis(const Stage& self) {
  const ProgramCost cost = detail::jit_entry_cost(*self.entry);
  nb::dict all;
  all["flops"] = cost.flops;
  if (cost.transcendentals > 0) all["transcendentals"] = cost.transcendentals;
  all["bytes accessed"] = cost.bytes_accessed;
  return all;
}

nb::list placement_list(const detail::LeafPlacements& placements) {
  nb::list list;
  for (const auto& one : placements) list.append(one ? nb::cast(*one) : nb::none());
  return list;
}

// Pairs of name and value.
CompilerOptions options_of(nb::handle pairs) {
  CompilerOptions options;
  for (nb::handle pair : pairs) {
    const std::string name = nb::cast<std::string>(nb::object(pair[0]));
    const nb::object value = pair[1];
    if (nb::isinstance<nb::bool_>(value)) options[name] = nb::cast<bool>(value);
    else if (nb::isinstance<nb::int_>(value)) options[name] = nb::cast<int64_t>(value);
    else if (nb::isinstance<nb::float_>(value)) options[name] = nb::cast<double>(value);
    else options[name] = nb::cast<std::string>(nb::str(value));
  }
  return options;
}

template <class Next>
Next next_stage(const Stage& stage) {
  Next next;
  static_cast<Stage&>(next) = stage;
  return next;
}

}  // namespace

void bind_jit(nb::module_& m) {
  auto stage_of = [](const JitFunction& jit, nb::handle args, nb::handle kwargs) {
    JitCall call;
    // Arguments may be given by their types alone.
    std::vector<nb::object> objects;
    nb::object both = nb::make_tuple(nb::borrow(args), nb::borrow(kwargs));
    Traced traced;
    std::optional<DefaultDeviceScope> scope;
    if (jit.settings.device) scope.emplace(jit.settings.device);
    nb::object abstract = nb::module_::import_("capibara._types").attr("as_abstract_arrays")(both);
    call = take_apart(jit, nb::object(abstract[0]), nb::object(abstract[1]));
    traced.entry = find_entry(jit, call);
    traced.donated = donated_leaves(jit.settings, call);
    traced.name = jit.name;
    traced.function = jit.function;
    traced.cache = jit.cache;
    traced.placements = detail::leaf_placements(call.leaves);
    add_described_placements(jit, args, kwargs, traced.placements);
    return traced;
  };
  nb::class_<SharedCalls>(m, "SharedCalls");
  nb::class_<JitFunction>(m, "JitFunction", nb::dynamic_attr(), nb::type_slots(jit_slots))
      .def("trace", [stage_of](const JitFunction& self, nb::args args,
                               nb::kwargs kwargs) { return stage_of(self, args, kwargs); })
      .def("lower", [stage_of](const JitFunction& self, nb::args args,
                               nb::kwargs kwargs) { return next_stage<Lowered>(stage_of(self, args, kwargs)); })
      .def("eval_shape",
           [stage_of](const JitFunction& self, nb::args args, nb::kwargs kwargs) {
             Traced traced = stage_of(self, args, kwargs);
             return shape_structs(out_tree(traced), detail::jit_entry_program(*traced.entry).output_types());
           })
      .def("clear_cache",
           [](const JitFunction& self) {
             self.recent->clear();
             detail::clear_jit_cache(*self.cache);
           })
      .def_prop_ro("_shared_calls", [](const JitFunction& self) { return SharedCalls{self.cache, self.recent}; })
      .def("_cache_size", [](const JitFunction& self) { return detail::jit_cache_size(*self.cache); })
      .def("__repr__", [](const JitFunction& self) {
        nb::object text = nb::steal(self.function.is_valid() ? PyObject_Repr(self.function.ptr()) : nullptr);
        if (text.is_valid()) return concat("<PjitFunction of ", nb::cast<std::string>(text), ">");
        PyErr_Clear();  // a function that cannot show itself
        return std::string("<PjitFunction>");
      });
  m.def("jit", [](nb::object function, std::vector<int> static_argnums, std::vector<std::string> static_argnames,
                  std::vector<int> donate_argnums, std::vector<std::string> donate_argnames, bool keep_unused,
                  bool inline_call, const std::optional<std::pair<std::string, int>>& device, nb::handle compiler_options, const SharedCalls* shared) {
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
    if (shared) static_cast<SharedCalls&>(jit) = *shared;
    else jit.cache = detail::make_jit_cache(options, options_of(compiler_options));
    return jit;
  }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none());
  m.def("set_default_compiler_options", [](nb::handle options) { set_default_compiler_options(options_of(options)); });
  m.def("warn_of_captured_constants_above", &detail::warn_of_captured_constants_above);
  m.def("set_miss_explainer", [](nb::object explainer) { miss_explainer() = explainer.is_none() ? nb::object() : explainer; }, nb::arg().none());
  m.def("clear_caches", [] { clear_caches(); });
  auto describe = [](auto& type) {
    type.def_prop_ro("out_tree", [](const Stage& self) { return out_tree(self); })
        .def_prop_ro("in_tree", [](const Stage& self) { return in_tree(self); })
        .def_prop_ro("fun_name", [](const Stage& self) { return self.name; })
        .def_prop_ro("out_info",
                     [](const Stage& self) {
                       return shape_structs(out_tree(self), detail::jit_entry_program(*self.entry).output_types());
                     })
        .def_prop_ro("args_info", [](const Stage& self) { return argument_info(self); })
        .def_prop_ro("in_avals", [](const Stage& self) {
          std::vector<nb::object> avals;
          for (const ArrayType& type : argument_types(self)) avals.push_back(type_object(type));
          return in_tree(self).unflatten(avals);
        })
        .def_prop_ro("donate_argnums", [](const Stage& self) {
          nb::list donated;
          for (std::size_t i = 0; i < self.donated.size(); ++i) {
            if (self.donated[i]) donated.append(i);
          }
          return nb::tuple(donated);
        });
  };
  nb::class_<Stage>(m, "Stage");
  nb::class_<Traced, Stage> traced(m, "Traced");
  traced.def_prop_ro("jaxpr", [](const Traced& self) { return detail::jit_entry_program(*self.entry); })
      .def(
          "lower",
          [](const Traced& self, nb::object lowering_platforms) {
            if (!lowering_platforms.is_none()) {
              const nb::tuple own = nb::make_tuple(lowering_platform());
              if (!nb::tuple(lowering_platforms).equal(own)) {
                throw NotImplementedError(concat("lower: programs are lowered for the platform that they were traced for, ",
                                                 nb::cast<std::string>(nb::repr(own)), ", got lowering_platforms=",
                                                 nb::cast<std::string>(nb::repr(lowering_platforms)), "; trace under jax.default_device of that platform"));
              }
            }
            return next_stage<Lowered>(self);
          },
          nb::kw_only(), nb::arg("lowering_platforms") = nb::none());
  nb::class_<Lowered, Stage> lowered(m, "Lowered");
  lowered
      .def(
          "as_text",
          [](const Lowered& self, nb::object dialect, bool debug_info) {
            if (!dialect.is_none() && nb::cast<std::string>(dialect) != "stablehlo") {
              throw ValueError(concat("as_text: the dialect must be None or 'stablehlo', got '",
                                      nb::cast<std::string>(dialect), "'"));
            }
            return detail::lowered_text(*self.entry, self.placements, debug_info);
          },
          nb::arg("dialect") = nb::none(), nb::kw_only(), nb::arg("debug_info") = false)
      .def(
          "compile",
          [](const Lowered& self, nb::handle options) -> nb::object {
            if (const std::shared_ptr<const Placement> described = described_devices(self)) {
              return compile_for_topology(described->platform, described->devices, detail::jit_entry_text(*self.entry, self.placements), self.name);
            }
            Compiled compiled = next_stage<Compiled>(self);
            if (!options.is_none() && nb::len(options) > 0) compiled.entry = detail::with_compiler_options(*self.entry, options_of(options.attr("items")()));
            detail::compile_jit_entry(*compiled.entry, self.placements);
            return nb::cast(compiled);
          },
          nb::arg("compiler_options") = nb::none())
      .def("cost_analysis", [](const Lowered& self) { return cost_analysis(self); });
  nb::class_<Compiled, Stage> compiled(m, "Compiled");
  compiled.def("__call__", &call_compiled)
      .def("as_text", [](const Compiled& self) { return detail::compiled_text(*self.entry); })
      .def("cost_analysis", [](const Compiled& self) { return cost_analysis(self); })
      .def("memory_analysis", &memory_analysis)
      .def_prop_ro("_input_placements", [](const Compiled& self) { return placement_list(self.placements); })
      .def_prop_ro("_output_placements", [](const Compiled& self) {
        return placement_list(detail::compile_jit_entry(*self.entry, self.placements).outputs);
      });
  describe(traced);
  describe(lowered);
  describe(compiled);
}

}  // namespace capibara::python
