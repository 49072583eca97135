// Splits the arguments of a jitted Python function into static values and arrays, and joins them again.
#include "jit_arguments.h"

#include "program/trace/trace.h"

#include <algorithm>

namespace capibara::python {

namespace {

bool at_position(const std::set<int>& positions, std::size_t i, std::size_t count) {
  const int place = static_cast<int>(i);
  return positions.count(place) || positions.count(place - static_cast<int>(count));
}

bool listed(const std::vector<std::string>& names, nb::handle name) {
  std::string text = nb::cast<std::string>(name);
  return std::find(names.begin(), names.end(), text) != names.end();
}

[[noreturn]] void refuse_unhashable(nb::handle function, nb::handle value) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();  // its __hash__ raised a different error
  PyErr_Clear();
  throw ValueError(concat("Non-hashable static arguments are used in a jit function: static arguments of ",
                          function_name(function), " must be hashable, got ", nb::cast<std::string>(nb::repr(value)),
                          " of type ", nb::cast<std::string>(nb::str(value.type())),
                          ", which is non-hashable. Non-hashable static arguments are not supported.\nHint: ",
                          nb::isinstance<Array>(value)
                              ? "pass arrays as ordinary arguments, without static_argnums."
                              : "pass a tuple in place of a list, or an object that has __hash__."));
}

// Converts the leaves of a call to arrays; the error for any other leaf names it.
Arrays argument_arrays(nb::handle function, const JitCall& call, const std::vector<nb::object>& objects) {
  Arrays arrays;
  arrays.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const nb::object& object = objects[i];
    if (!nb::isinstance<Array>(object) && !is_number(object) && nb::hasattr(object, "__jax_array__")) {
      throw ValueError(
          "Triggering __jax_array__() during abstractification is no longer supported: register the type as a "
          "pytree, or call jnp.asarray on the argument.");
    }
    if (!evaluating() && nb::hasattr(object, "_as_zeros")) {  // while tracing, a type is enough
      arrays.push_back(nb::cast<Array>(object.attr("_as_zeros")()));
      continue;
    }
    try {
      arrays.push_back(to_operand(object, "jit"));
    } catch (const TypeError&) {
      nb::object find_name = nb::module_::import_("capibara._origins").attr("argument_name");
      const std::string name = nb::cast<std::string>(find_name(function, numbered_arguments(call), i));
      const char* hint = name == "self"
                             ? "a method's `self` is an argument too: use "
                               "functools.partial(jax.jit, static_argnums=0), or register the class as a pytree."
                             : "an argument that is not an array must be named in static_argnums or "
                               "static_argnames.";
      throw TypeError(concat("Error interpreting argument to ", nb::cast<std::string>(nb::repr(function)),
                             " as an abstract array. The problematic value is of type ",
                             nb::cast<std::string>(nb::str(object.type())), " and was passed to the function at path ",
                             name, ".\nHint: ", hint));
    }
  }
  return arrays;
}

}  // namespace

JitCall take_apart(const JitSettings& settings, nb::handle function, nb::handle args, nb::handle kwargs) {
  JitCall call;
  call.positional = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  nb::list dynamic, statics, named_statics;
  for (std::size_t i = 0; i < call.positional; ++i) {
    nb::handle value(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)));
    if (at_position(settings.static_positions, i, call.positional)) {
      if (PyObject_Hash(value.ptr()) == -1) refuse_unhashable(function, value);
      statics.append(nb::make_tuple(i, nb::borrow(value.type()), nb::borrow(value)));
      call.statics.emplace_back(i, nb::borrow(value));
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
        if (PyObject_Hash(value.ptr()) == -1) refuse_unhashable(function, value);
        named_statics.append(nb::make_tuple(nb::borrow(key), nb::borrow(value.type()), nb::borrow(value)));
      } else {
        named[key] = value;
      }
    }
  }
  call.named_statics = named_statics;
  std::vector<PyTree> trees;
  std::vector<nb::object> objects;
  for (nb::handle value : dynamic) trees.push_back(flatten(value, objects));
  PyTree names_tree = flatten(named, objects);
  call.in = PyTree::tuple({PyTree::tuple(trees), names_tree});
  call.leaves = argument_arrays(function, call, objects);
  call.key = nb::make_tuple(nb::tuple(statics), nb::tuple(named_statics), nb::cast(call.in), call.positional);
  call.structure = TreeDef::tuple({static_part(call.key), plain_leaves(call.leaves.size())});
  return call;
}

std::vector<nb::object> dynamic_leaves(const JitSettings& settings, nb::handle args, nb::handle kwargs) {
  std::vector<nb::object> leaves;
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  for (std::size_t i = 0; i < count; ++i) {
    if (!at_position(settings.static_positions, i, count))
      flatten(nb::handle(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i))), leaves);
  }
  nb::dict named;
  for (auto [name, value] : nb::borrow<nb::dict>(kwargs)) {
    if (!listed(settings.static_names, name)) named[name] = value;
  }
  flatten(named, leaves);
  return leaves;
}

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

nb::object with_static(const JitCall& call, const nb::object& dynamic, bool hide_static) {
  nb::object arguments = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(call.positional)));
  std::size_t next_static = 0, next = 0;
  for (std::size_t i = 0; i < call.positional; ++i) {
    nb::object value;
    if (next_static < call.statics.size() && call.statics[next_static].first == i) {
      const nb::object& own = call.statics[next_static++].second;
      value = hide_static ? nb::none() : own;
    } else {
      value = dynamic[next++];
    }
    PyTuple_SET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i), value.release().ptr());
  }
  return arguments;
}

nb::object numbered_arguments(const JitCall& call) {
  nb::object both = call.in.unflatten(numbers(call.in.num_leaves()));
  return nb::make_tuple(with_static(call, both[0], true), nb::object(both[1]));
}

}  // namespace capibara::python
