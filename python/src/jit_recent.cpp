// Compares the arguments of a call with those of an earlier one and collects the leaves on the way.
#include "jit_recent.h"

#include "backends/backend.h"
#include "core/runtime/caches.h"
#include "core/sharding/explicit.h"
#include "tree_nodes.h"

#include <capibara/config.h>

#include <algorithm>
#include <unordered_map>

namespace capibara::python {

namespace {

// Walks a recorded structure and the arguments in parallel.
class Match {
 public:
  Match(const RecentCall& call, Arrays& leaves) : call_(call), leaves_(leaves) {}

  bool arguments(PyObject* args, PyObject* kwargs) {
    if (static_cast<std::size_t>(PyTuple_GET_SIZE(args)) != call_.positional) return false;
    const TreeNode& both = *call_.in.node();
    std::size_t next = 0, next_static = 0;
    for (std::size_t i = 0; i < call_.positional; ++i) {
      PyObject* value = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
      if (next_static < call_.statics.size() && call_.statics[next_static].first == i) {
        if (!same_static(call_.statics[next_static++].second.ptr(), value)) return false;
      } else if (!node(*both.children[0]->children[next++], value)) {
        return false;
      }
    }
    return keywords(*both.children[1], kwargs);
  }

 private:
  bool keywords(const TreeNode& named, PyObject* kwargs) {
    const std::size_t given = kwargs ? static_cast<std::size_t>(PyDict_GET_SIZE(kwargs)) : 0;
    if (given != named.children.size() + call_.named_statics.size()) return false;
    if (given == 0) return true;
    for (const auto& [name, value] : call_.named_statics) {
      PyObject* now = PyDict_GetItemWithError(kwargs, name.ptr());
      if (!now || !same_static(value.ptr(), now)) return false;
    }
    return entries(named, kwargs);
  }

  // Fast path for a large dict of leaves whose keys are identical objects in the same order as before: no key lookups.
  // On failure, leaves_ is unchanged.
  bool entries_in_order(const TreeNode& dict, PyObject* values) {
    constexpr std::size_t large = 8;
    const std::size_t count = dict.children.size(), first = leaves_.size();
    if (count < large || dict.leaves != count) return false;
    Py_ssize_t position = 0;
    PyObject *key = nullptr, *value = nullptr;
    if (dict.arrival.empty()) {
      std::vector<std::size_t> arrival;
      std::unordered_map<PyObject*, std::size_t> places;
      for (std::size_t i = 0; i < count; ++i)
        places.emplace(PyList_GET_ITEM(dict.data.ptr(), static_cast<Py_ssize_t>(i)), i);
      while (PyDict_Next(values, &position, &key, &value)) {
        const auto it = places.find(key);
        if (it == places.end()) return false;
        arrival.push_back(it->second);
      }
      if (arrival.size() != count) return false;
      dict.arrival = std::move(arrival);
      position = 0;
    }
    leaves_.resize(first + count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = dict.arrival[i];
      if (!PyDict_Next(values, &position, &key, &value) ||
          key != PyList_GET_ITEM(dict.data.ptr(), static_cast<Py_ssize_t>(place)) ||
          dict.children[place]->kind != NodeKind::leaf || !leaf(value, first + place)) {
        leaves_.resize(first);
        return false;
      }
    }
    return true;
  }

  bool entries(const TreeNode& dict, PyObject* values) {
    if (entries_in_order(dict, values)) return true;
    for (std::size_t i = 0; i < dict.children.size(); ++i) {
      PyObject* value = PyDict_GetItemWithError(values, PyList_GET_ITEM(dict.data.ptr(), static_cast<Py_ssize_t>(i)));
      if (!value || !node(*dict.children[i], value)) return false;
    }
    return true;
  }

  // True for the same object, or equal objects of a type whose equal values are interchangeable.
  static bool same_static(PyObject* a, PyObject* b) {
    if (a == b) return true;
    PyTypeObject* type = Py_TYPE(a);
    if (type != Py_TYPE(b)) return false;
    if (type != &PyLong_Type && type != &PyUnicode_Type && type != &PyFloat_Type && type != &PyBytes_Type) return false;
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  }

  bool node(const TreeNode& expected, PyObject* o) {
    switch (expected.kind) {
      case NodeKind::leaf:
        leaves_.emplace_back();
        return leaf(o, leaves_.size() - 1);
      case NodeKind::none:
        return o == Py_None;
      case NodeKind::tuple:
        return Py_TYPE(o) == &PyTuple_Type && items(expected, &PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o));
      case NodeKind::named_tuple:
        return reinterpret_cast<PyObject*>(Py_TYPE(o)) == expected.data.ptr() &&
               items(expected, &PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o));
      case NodeKind::list:
        return Py_TYPE(o) == &PyList_Type &&
               items(expected, reinterpret_cast<PyListObject*>(o)->ob_item, PyList_GET_SIZE(o));
      case NodeKind::dict:
        return Py_TYPE(o) == &PyDict_Type && static_cast<std::size_t>(PyDict_GET_SIZE(o)) == expected.children.size() &&
               entries(expected, o);
      default:
        return false;  // registered classes flatten themselves: their code runs once, on the slow path
    }
  }

  bool items(const TreeNode& expected, PyObject* const* values, Py_ssize_t count) {
    if (static_cast<std::size_t>(count) != expected.children.size()) return false;
    for (std::size_t i = 0; i < expected.children.size(); ++i) {
      if (!node(*expected.children[i], values[i])) return false;
    }
    return true;
  }

  bool leaf(PyObject* o, std::size_t i) {
    static PyTypeObject* const concrete = reinterpret_cast<PyTypeObject*>(nb::type<ConcreteArray>().ptr());
    if (Py_TYPE(o) == concrete) {
      leaves_[i] = *nb::inst_ptr<ConcreteArray>(o);
    } else if (PyFloat_CheckExact(o)) {
      leaves_[i] = Array(PyFloat_AS_DOUBLE(o));
    } else if (PyBool_Check(o)) {
      leaves_[i] = Array(o == Py_True);
    } else if (PyLong_CheckExact(o)) {
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow != 0) return false;
      leaves_[i] = Array(static_cast<int64_t>(value));
    } else {
      return false;
    }
    return leaves_[i].defined() && leaves_[i].type() == call_.types[i] && leaves_[i].committed() == call_.committed[i];
  }

  const RecentCall& call_;
  Arrays& leaves_;
};

}  // namespace

std::shared_ptr<const RecentCall> RecentCalls::find(PyObject* args, PyObject* kwargs, Arrays& leaves) {
  if (generation_ != cache_generation()) {
    generation_ = cache_generation();
    clear();
  }
  const std::size_t settings = config_key() ^ context_mesh_key();
  const std::shared_ptr<const Calls> calls = calls_;
  for (const std::shared_ptr<const RecentCall>& call : *calls) {
    if (call->settings != settings) continue;
    leaves.clear();
    leaves.reserve(call->types.size());
    if (Match(*call, leaves).arguments(args, kwargs)) return call->places && demanded_device(leaves) ? nullptr : call;
    PyErr_Clear();
  }
  return nullptr;
}

void RecentCalls::add(RecentCall call) {
  Calls next{std::make_shared<const RecentCall>(std::move(call))};
  const std::shared_ptr<const Calls> calls = calls_;
  next.insert(next.end(), calls->begin(),
              calls->begin() + static_cast<std::ptrdiff_t>(std::min(calls->size(), max_calls - 1)));
  replace(std::move(next));
}

}  // namespace capibara::python
