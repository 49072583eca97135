// Parses index expressions, and implements the helper behind x.at.
#include "array_index.h"

#include <capibara/lax.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "lax/index/index_expression.h"
#include "lax/operators/promote.h"
#include "library/table/function.h"

namespace capibara::python {

namespace {

std::optional<int64_t> slice_bound(nb::handle bound) {
  if (bound.is_none()) return std::nullopt;
  if (nb::isinstance<Array>(bound) && nb::cast<const Array&>(bound).is_tracer()) {
    throw IndexError(
        "Array slice indices must have static start/stop/step to be used with NumPy indexing syntax. "
        "To index a statically sized array at a dynamic position, try lax.dynamic_slice/"
        "dynamic_update_slice (JAX does not support dynamically sized arrays within JIT compiled "
        "functions).");
  }
  nb::object index = nb::steal(PyNumber_Index(bound.ptr()));
  if (!index) throw nb::python_error();
  return nb::cast<int64_t>(index);
}

// How a list was probably meant: as an array of positions, or as a tuple of entries for several axes.
const char* meant_as(nb::handle sequence) {
  for (nb::handle item : sequence) {
    const bool is_number = PyLong_Check(item.ptr()) || PyFloat_Check(item.ptr());
    if (is_number || (nb::isinstance<Array>(item) && nb::cast<const Array&>(item).ndim() == 0)) continue;
    return "tuple";
  }
  return "array";
}

Index entry(nb::handle key) {
  PyObject* o = key.ptr();
  if (o == Py_None) return newaxis;
  if (o == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(o)) {
    return Slice{slice_bound(key.attr("start")), slice_bound(key.attr("stop")), slice_bound(key.attr("step"))};
  }
  if (PyBool_Check(o)) return Array(o == Py_True);
  if (PyLong_Check(o)) return nb::cast<int64_t>(key);
  if (PyList_Check(o) || PyTuple_Check(o)) {
    throw TypeError(
        concat("Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[", meant_as(key),
               "(seq)]` instead of `arr[seq]`. See https://github.com/jax-ml/jax/issues/4564 for more information."));
  }
  if (PyUnicode_Check(o)) {
    throw TypeError(concat("JAX does not support string indexing; got idx=", nb::cast<std::string>(nb::repr(key))));
  }
  std::optional<Array> array = array_if(key);
  if (!array) {
    throw IndexError(
        concat("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays "
               "are valid indices. Got ",
               nb::cast<std::string>(nb::repr(key))));
  }
  if (!is_integer(array->dtype()) && !is_bool(array->dtype())) {
    throw TypeError(
        concat("Indexer must have integer or boolean type, got indexer with type ", to_string(array->dtype())));
  }
  // NumPy's integers are as static as Python's.
  if (array->ndim() == 0 && is_integer(array->dtype()) && !nb::isinstance<Array>(key)) return array->item<int64_t>();
  return *array;
}

// x.at, then x.at[index].
struct AtHelper {
  Array array;
};
struct AtIndex {
  IndexUpdate update;
  IndexedPart part;
  Array array;
  nb::object key;

  nb::object updated(const Array& result) const { return wrap(part.put_back ? part.put_back(result) : result); }
};

UpdateOptions update_options(bool sorted, bool unique, nb::handle mode, bool wrap_negative) {
  UpdateOptions options;
  if (!mode.is_none()) options.mode = *to_value(mode).get_if<std::string>();
  options.indices_are_sorted = sorted;
  options.unique_indices = unique;
  options.wrap_negative_indices = wrap_negative;
  return options;
}

// The values to assign. An integer beyond int32 that fits the array's unsigned dtype ignores the default width.
Array update_values(const Array& array, nb::handle values) {
  if (PyLong_CheckExact(values.ptr()) && is_unsigned(array.dtype()) && bits(array.dtype()) >= 32) {
    const uint64_t number = PyLong_AsUnsignedLongLong(values.ptr());
    const bool fits =
        !PyErr_Occurred() && number > std::numeric_limits<int32_t>::max() && number <= iinfo(array.dtype()).max;
    PyErr_Clear();
    if (fits) return Array::from_host(DType::uint64, {}, &number, false);
  }
  // Converted as by jax.numpy.asarray: a sequence has the type of its elements and is not weakly typed.
  if (PyList_Check(values.ptr()) || PyTuple_Check(values.ptr())) return library::array_of(to_value(values), "at");
  return to_array(values, "at");
}

// The update with `out_sharding`: the compiler places the mesh axes, and the result gets the requested type.
nb::object updated_asking(const AtIndex& self, const char* method, nb::handle values, nb::handle out_sharding,
                          bool sorted, bool unique, nb::handle mode, bool wrap_negative) {
  nb::dict options;
  options["indices_are_sorted"] = sorted;
  options["unique_indices"] = unique;
  options["mode"] = mode;
  options["wrap_negative_indices"] = wrap_negative;
  return nb::module_::import_("capibara.jax._explicit")
      .attr("at_asking")(wrap(self.array), self.key, method, values, out_sharding, options);
}

using Update = Array (IndexUpdate::*)(const Array&, const UpdateOptions&) const;

template <class Class>
void def_update(Class& at, const char* name, Update update) {
  at.def(
      name,
      [update, name](const AtIndex& self, nb::handle values, bool sorted, bool unique, nb::handle mode,
                     bool wrap_negative, nb::handle out_sharding) -> nb::object {
        if (!out_sharding.is_none())
          return updated_asking(self, name, values, out_sharding, sorted, unique, mode, wrap_negative);
        return self.updated((self.update.*update)(update_values(self.part.array, values),
                                                  update_options(sorted, unique, mode, wrap_negative)));
      },
      nb::arg("values"), nb::kw_only(), nb::arg("indices_are_sorted") = false, nb::arg("unique_indices") = false,
      nb::arg("mode") = nb::none(), nb::arg("wrap_negative_indices") = true, nb::arg("out_sharding") = nb::none());
}

}  // namespace

std::vector<Index> index_entries(nb::handle key, const Array&) {
  std::vector<Index> entries;
  if (PyTuple_Check(key.ptr())) {
    for (nb::handle item : nb::borrow<nb::tuple>(key)) {
      if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr())) {
        const Array positions = library::array_of(to_value(item), "index");
        const bool is_empty = positions.size() == 0;  // an empty list has no dtype
        entries.push_back(entry(wrap(is_empty ? jax::lax::convert_element_type(positions, DType::int32) : positions)));
      } else {
        entries.push_back(entry(item));
      }
    }
  } else {
    entries.push_back(entry(key));
  }
  return entries;
}

void bind_array_indexing(nb::module_& m, nb::class_<Array>& array) {
  m.def("check_static_indices", [](bool on) { checks_static_indices() = on; });
  nb::class_<AtIndex> at(m, "AtIndex");
  at.def(
      "get",
      [](const AtIndex& self, bool sorted, bool unique, nb::handle mode, nb::handle fill_value, bool wrap_negative,
         nb::handle out_sharding) -> nb::object {
        if (!out_sharding.is_none())
          return updated_asking(self, "get", fill_value, out_sharding, sorted, unique, mode, wrap_negative);
        GetOptions options;
        if (!mode.is_none()) options.mode = *to_value(mode).get_if<std::string>();
        if (!fill_value.is_none()) options.fill_value = to_array(fill_value, "at[].get");
        options.indices_are_sorted = sorted;
        options.unique_indices = unique;
        options.wrap_negative_indices = wrap_negative;
        return wrap(self.update.get(options));
      },
      nb::kw_only(), nb::arg("indices_are_sorted") = false, nb::arg("unique_indices") = false,
      nb::arg("mode") = nb::none(), nb::arg("fill_value") = nb::none(), nb::arg("wrap_negative_indices") = true,
      nb::arg("out_sharding") = nb::none());
  def_update(at, "set", &IndexUpdate::set);
  def_update(at, "add", &IndexUpdate::add);
  def_update(at, "subtract", &IndexUpdate::subtract);
  def_update(at, "sub", &IndexUpdate::subtract);
  def_update(at, "multiply", &IndexUpdate::multiply);
  def_update(at, "mul", &IndexUpdate::multiply);
  def_update(at, "divide", &IndexUpdate::divide);
  def_update(at, "power", &IndexUpdate::power);
  def_update(at, "min", &IndexUpdate::min);
  def_update(at, "max", &IndexUpdate::max);
  at.def(
      "apply",
      [](const AtIndex& self, nb::object function, bool sorted, bool unique, nb::handle mode, bool wrap_negative) {
        auto each = [&](const Array& element) { return to_array(function(wrap(element)), "at[].apply"); };
        return self.updated(
            apply_at(self.part.array, self.part.indices, each, update_options(sorted, unique, mode, wrap_negative)));
      },
      nb::arg("func"), nb::kw_only(), nb::arg("indices_are_sorted") = false, nb::arg("unique_indices") = false,
      nb::arg("mode") = nb::none(), nb::arg("wrap_negative_indices") = true);
  nb::class_<AtHelper>(m, "AtHelper")
      .def(
          "__getitem__",
          [](const AtHelper& self, nb::handle key) {
            IndexedPart part = indexed_part(self.array, key);
            return AtIndex{IndexUpdate(part.array, part.indices), part, self.array, nb::borrow(key)};
          },
          nb::arg().none());
  array.def_prop_ro("at", [](const Array& self) { return AtHelper{self}; });
}

}  // namespace capibara::python
