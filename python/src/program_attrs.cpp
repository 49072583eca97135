// Conversions between equation attributes and Python parameters.
#include "core/sharding/mesh_attr.h"
#include "core/sharding/placed_memory.h"
#include "program/trace/trace.h"
#include "programs.h"

namespace capibara::python {

namespace {

nb::object lax_type(const char* name) { return nb::module_::import_("capibara._types").attr(name); }

bool all_integers(nb::handle sequence) {
  for (nb::handle item : sequence) {
    if (PyBool_Check(item.ptr()) || !PyLong_Check(item.ptr())) return false;
  }
  return true;
}

// True for a nonempty tuple of programs: the branches of a cond.
bool all_programs(nb::handle tuple) {
  for (nb::handle item : tuple) {
    if (!nb::isinstance<Program>(item)) return false;
  }
  return nb::len(tuple) > 0;
}

}  // namespace

Ints to_ints(nb::handle sequence) {
  Ints ints;
  for (nb::handle item : sequence) {
    nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    ints.push_back(nb::cast<int64_t>(index));
  }
  return ints;
}

bool PythonOpaque::equals(const Opaque& other) const {
  const auto* same = dynamic_cast<const PythonOpaque*>(&other);
  if (!same) return false;
  if (object_.get().is(same->object_.get())) return true;
  nb::gil_scoped_acquire lock;
  int equal = PyObject_RichCompareBool(object_.get().ptr(), same->object_.get().ptr(), Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}
std::size_t PythonOpaque::hash() const {
  nb::gil_scoped_acquire lock;
  Py_hash_t hash = PyObject_Hash(object_.get().ptr());
  if (hash != -1) return static_cast<std::size_t>(hash);
  PyErr_Clear();
  return 0;
}
std::string PythonOpaque::print() const {
  nb::gil_scoped_acquire lock;
  return nb::cast<std::string>(nb::repr(object_.get()));
}

namespace {

// Meshes, specifications and placements as jax objects; each keeps the view, which to_attr converts back.
nb::object shown(const std::shared_ptr<const Opaque>& opaque, nb::object view) {
  if (const auto* mesh = dynamic_cast<const MeshAttr*>(opaque.get())) {
    if (mesh->abstract) return view;
    return nb::module_::import_("capibara.jax._sharding").attr("mesh_parameter")(mesh->devices, view);
  }
  if (const auto* placed = dynamic_cast<const PlacementAttr*>(opaque.get())) {
    return nb::module_::import_("capibara.jax._sharding").attr("placement_parameter")(*placed->placement, view);
  }
  const auto* specs = dynamic_cast<const SpecsAttr*>(opaque.get());
  if (!specs) return view;
  nb::list rows;
  for (const PartitionSpec& spec : specs->specs)
    rows.append(nb::make_tuple(nb::cast(spec.dims), nb::cast(spec.unreduced), nb::cast(spec.reduced)));
  return nb::module_::import_("capibara.jax._sharding").attr("specs_parameter")(rows, view);
}

}  // namespace

nb::object from_attr(const Attr& attr) {
  struct Converter {
    nb::object operator()(Attr::None) const { return nb::none(); }
    nb::object operator()(bool v) const { return nb::bool_(v); }
    nb::object operator()(int64_t v) const { return nb::int_(v); }
    nb::object operator()(double v) const { return nb::float_(v); }
    nb::object operator()(const std::string& v) const { return nb::str(v.c_str(), v.size()); }
    nb::object operator()(DType v) const { return numpy_dtype(v); }
    nb::object operator()(const Ints& v) const { return int_tuple(v); }
    nb::object operator()(const DotDimensionNumbers& v) const {
      return nb::make_tuple(nb::make_tuple(int_tuple(v.lhs_contracting), int_tuple(v.rhs_contracting)),
                            nb::make_tuple(int_tuple(v.lhs_batch), int_tuple(v.rhs_batch)));
    }
    nb::object operator()(const ConvDimensionNumbers& v) const {
      return lax_type("ConvDimensionNumbers")(int_tuple(v.lhs_spec), int_tuple(v.rhs_spec), int_tuple(v.out_spec));
    }
    nb::object operator()(const GatherDimensionNumbers& v) const {
      return lax_type("GatherDimensionNumbers")(int_tuple(v.offset_dims), int_tuple(v.collapsed_slice_dims),
                                                int_tuple(v.start_index_map), int_tuple(v.operand_batching_dims),
                                                int_tuple(v.start_indices_batching_dims));
    }
    nb::object operator()(const ScatterDimensionNumbers& v) const {
      return lax_type("ScatterDimensionNumbers")(
          int_tuple(v.update_window_dims), int_tuple(v.inserted_window_dims), int_tuple(v.scatter_dims_to_operand_dims),
          int_tuple(v.operand_batching_dims), int_tuple(v.scatter_indices_batching_dims));
    }
    nb::object operator()(const ArrayType& v) const { return nb::cast(v); }
    nb::object operator()(const Array& v) const { return wrap(v); }
    nb::object operator()(const std::shared_ptr<const Program>& v) const { return nb::cast(*v); }
    nb::object operator()(const std::shared_ptr<const Opaque>& v) const {
      if (const auto* python = dynamic_cast<const PythonOpaque*>(v.get())) return nb::borrow(python->get());
      return shown(v, nb::cast(OpaqueView{v}, nb::rv_policy::move));
    }
    nb::object operator()(const std::shared_ptr<const Attr::List>& v) const {
      nb::list list;
      bool programs = !v->empty();
      for (const Attr& item : *v) {
        list.append(from_attr(item));
        programs &= item.get_if<std::shared_ptr<const Program>>() != nullptr;
      }
      return programs ? nb::object(nb::tuple(list)) : lax_type("AttributeTuple")(list);
    }
  };
  return std::visit(Converter(), attr.value());
}

Attr to_attr(nb::handle object) {
  PyObject* o = object.ptr();
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_CheckExact(o)) return nb::cast<int64_t>(object);
  if (PyFloat_CheckExact(o)) return nb::cast<double>(object);
  if (PyUnicode_CheckExact(o)) return nb::cast<std::string>(object);
  if (nb::isinstance<Program>(object)) return nb::cast<const Program&>(object);
  if (nb::isinstance<OpenProgram>(object)) return nb::cast<const OpenProgram&>(object).program;
  if (nb::isinstance<OpaqueView>(object)) return nb::cast<const OpaqueView&>(object).opaque;
  if (nb::isinstance<ArrayType>(object)) return nb::cast<ArrayType>(object);
  if (nb::isinstance<Array>(object)) {
    if (!nb::cast<const Array&>(object).is_tracer()) return nb::cast<Array>(object);
  }
  if (nb::hasattr(object, "_opaque_view")) return to_attr(object.attr("_opaque_view"));
  if (PyTuple_Check(o) && nb::hasattr(object, "_fields")) {
    std::string type = nb::cast<std::string>(object.type().attr("__name__"));
    auto field = [&](std::size_t i) { return to_ints(nb::object(object[i])); };
    if (type == "ConvDimensionNumbers") return ConvDimensionNumbers{field(0), field(1), field(2)};
    if (type == "GatherDimensionNumbers")
      return GatherDimensionNumbers{field(0), field(1), field(2), field(3), field(4)};
    if (type == "ScatterDimensionNumbers")
      return ScatterDimensionNumbers{field(0), field(1), field(2), field(3), field(4)};
  }
  if (PyTuple_CheckExact(o) && all_integers(object)) return to_ints(object);
  if (PyTuple_Check(o) && (std::string(Py_TYPE(o)->tp_name) == "AttributeTuple" || all_programs(object))) {
    Attr::List list;
    for (nb::handle item : object) list.push_back(to_attr(item));
    return list;
  }
  if (std::optional<DType> dtype = dtype_if(object)) return *dtype;
  return std::shared_ptr<const Opaque>(std::make_shared<PythonOpaque>(object));
}

nb::dict params_of(const Attrs& attrs) {
  nb::dict params;
  for (const auto& [name, value] : attrs.entries()) params[name.c_str()] = from_attr(value);
  return params;
}

Attrs attrs_of(nb::handle params) {
  std::vector<Attrs::Entry> entries;
  for (auto [name, value] : nb::borrow<nb::dict>(params)) {
    std::string key = nb::cast<std::string>(name);
    if (key == "dimension_numbers" && PyTuple_CheckExact(value.ptr()) && nb::len(value) == 2) {
      nb::object contracting = value[0], batch = value[1];
      if (PyTuple_Check(contracting.ptr()) && nb::len(contracting) == 2 && PyTuple_Check(batch.ptr()) &&
          nb::len(batch) == 2) {
        entries.emplace_back(
            key, DotDimensionNumbers{to_ints(nb::object(contracting[0])), to_ints(nb::object(contracting[1])),
                                     to_ints(nb::object(batch[0])), to_ints(nb::object(batch[1]))});
        continue;
      }
    }
    entries.emplace_back(key, to_attr(value));
  }
  return Attrs(std::move(entries));
}

}  // namespace capibara::python
