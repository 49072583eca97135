// Mutable arrays in Python: jax.new_ref, and reads and writes between brackets.
#include <capibara/lax.h>
#include <capibara/primitive.h>
#include <capibara/ref.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <mutex>
#include <vector>

#include "array_index.h"
#include "trees.h"

namespace capibara::python {

namespace {

// Mutable arrays of traced functions that were freed: a program must not use them afterwards.
class FreedRefs {
 public:
  void add(const jax::Ref& ref) {
    if (!ref.handle().is_tracer()) return;
    std::lock_guard lock(mutex_);
    std::erase_if(bodies_, [](const std::weak_ptr<const ArrayBody>& body) { return body.expired(); });
    bodies_.push_back(ref.handle().body());
  }
  void check(const jax::Ref& ref, const char* operation) {
    if (!ref.handle().is_tracer()) return;
    std::lock_guard lock(mutex_);
    for (const std::weak_ptr<const ArrayBody>& body : bodies_) {
      const std::shared_ptr<const ArrayBody>& own = ref.handle().body();
      if (body.owner_before(own) || own.owner_before(body)) continue;
      throw ValueError(concat("`", operation, "` must be called on `Ref` types, got a ", to_string(ref.handle().type()),
                              " that was freed before; use its value before jax.freeze or jax.free_ref"));
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const ArrayBody>> bodies_;
};

FreedRefs& freed_refs() {
  static auto* refs = new FreedRefs;  // never freed: the interpreter may be finalized by then
  return *refs;
}

// True for ref[...], ref[:] and ref[()], which select the whole array.
bool names_everything(nb::handle key) {
  if (key.ptr() == Py_Ellipsis) return true;
  if (PySlice_Check(key.ptr()))
    return key.attr("start").is_none() && key.attr("stop").is_none() && key.attr("step").is_none();
  if (!PyTuple_Check(key.ptr())) return false;
  for (nb::handle part : key) {
    if (!names_everything(part)) return false;
  }
  return true;
}

// Raises for keys that an array allows but a ref does not: too many entries, indices past the end, steps below 1.
void check_key(const jax::Ref& ref, nb::handle key) {
  const Shape& shape = ref.handle().shape();
  nb::object items = PyTuple_Check(key.ptr()) ? nb::borrow(key) : nb::object(nb::make_tuple(nb::borrow(key)));
  std::size_t axis = 0;
  bool counted = true;  // no ellipsis or newaxis so far
  for (nb::handle item : items) {
    if (item.ptr() == Py_Ellipsis || item.is_none()) counted = false;
    if (!counted) continue;
    if (axis >= shape.size()) {
      throw ValueError(concat("`indices` must not be longer than `shape`: got ", nb::len(items),
                              " indices for a ref of ", shape.size(), " dimensions"));
    }
    if (PyLong_Check(item.ptr()) && nb::cast<int64_t>(item) >= shape[axis]) {
      throw ValueError(concat("Out of bound indexer: idx=", nb::cast<int64_t>(item), ", dim=", shape[axis], "."));
    }
    if (PySlice_Check(item.ptr()) && !item.attr("step").is_none() && nb::cast<int64_t>(item.attr("step")) < 1) {
      throw ValueError(concat("slice must have a step >= 1 (found: ", nb::cast<int64_t>(item.attr("step")), ")"));
    }
    ++axis;
  }
}

std::string shape_text(const Shape& shape) { return nb::cast<std::string>(nb::repr(int_tuple(shape))); }

Array checked_value(const jax::Ref& ref, nb::handle object, const Shape& expected, const char* operation) {
  Array value = to_array(object, operation);
  if (value.dtype() != ref.handle().dtype()) {
    throw ValueError(concat("Invalid dtype for `", operation, "`. Ref dtype: ", to_string(ref.handle().dtype()),
                            ". Value dtype: ", to_string(value.dtype()), "."));
  }
  if (value.shape() != expected) {
    throw ValueError(concat("Invalid shape for `", operation, "`. Ref shape: ", shape_text(ref.handle().shape()),
                            ". Expected shape: ", shape_text(expected), ". Value shape: ", shape_text(value.shape()),
                            "."));
  }
  return value;
}

nb::object read(const jax::Ref& ref, nb::handle key) {
  freed_refs().check(ref, "get");
  check_key(ref, key);
  Array whole = ref.get();
  return wrap(names_everything(key) ? whole : read_index(whole, key));
}

enum class Write { set, add };

void write(const jax::Ref& ref, nb::handle key, nb::handle object, Write kind) {
  check_key(ref, key);
  const char* operation = kind == Write::set ? "swap" : "addupdate";
  freed_refs().check(ref, operation);
  if (names_everything(key)) {
    Array value = checked_value(ref, object, ref.handle().shape(), operation);
    return kind == Write::set ? ref.set(value) : ref.add(value);
  }
  Array whole = ref.get();
  IndexedPart part = indexed_part(whole, key);
  Array value = checked_value(ref, object, capibara::index(part.array, part.indices).shape(), operation);
  IndexUpdate update(part.array, part.indices);
  Array updated = kind == Write::set ? update.set(value) : update.add(value);
  ref.set(part.put_back ? part.put_back(updated) : updated);
}

std::string text_of(const jax::Ref& ref) {
  if (ref.handle().is_tracer()) return concat("Tracer(", to_string(ref.handle().type()), ")");
  // Array([...], dtype=...) under the name of a ref.
  return concat("Ref", nb::cast<std::string>(nb::repr(wrap(ref.get()))).substr(5));
}

}  // namespace

void bind_refs(nb::module_& m) {
  nb::class_<jax::Ref>(m, "Ref")
      .def_prop_ro("shape", [](const jax::Ref& self) { return int_tuple(self.handle().shape()); })
      .def_prop_ro("dtype", [](const jax::Ref& self) { return numpy_dtype(self.handle().dtype()); })
      .def_prop_ro("ndim", [](const jax::Ref& self) { return self.handle().ndim(); })
      .def_prop_ro("size", [](const jax::Ref& self) { return self.handle().size(); })
      .def("_check_use", [](const jax::Ref& self, const char* operation) { freed_refs().check(self, operation); })
      .def_prop_ro("aval", [](const jax::Ref& self) { return nb::cast(self.handle().type()); })
      .def("__len__",
           [](const jax::Ref& self) {
             if (self.handle().ndim() == 0) throw TypeError("len() of unsized object");
             return self.handle().shape()[0];
           })
      .def("__getitem__", &read, nb::arg().none())
      .def(
          "__setitem__",
          [](const jax::Ref& self, nb::handle key, nb::handle value) { write(self, key, value, Write::set); },
          nb::arg().none(), nb::arg())
      .def(
          "addupdate", [](const jax::Ref& self, nb::handle x, nb::handle idx) { write(self, idx, x, Write::add); },
          nb::arg("x"), nb::arg("idx") = nb::tuple())
      .def("__repr__", &text_of)
      .def("__str__", &text_of);
  m.def(
      "new_ref",
      [](nb::handle initial, const std::optional<std::string>& kind) {
        const Attr named = kind ? Attr(*kind) : Attr();
        return jax::Ref(
            bind1(primitive("new_ref"), {to_array(initial, "new_ref")}, {{"kind", named}, {"memory_space", Attr()}}));
      },
      nb::arg(), nb::arg() = nb::none());
  m.def("freeze_ref", [](const jax::Ref& ref) {
    freed_refs().check(ref, "freeze");
    Array value = jax::freeze(ref);
    freed_refs().add(ref);
    return wrap(value);
  });
}

}  // namespace capibara::python
