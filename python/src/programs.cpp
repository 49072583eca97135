// Jaxprs in Python: programs, equations, variables, literals, abstract values and parameters.
#include "programs.h"

#include <capibara/lax.h>
#include <capibara/placement.h>
#include <capibara/primitive.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/sharding/mesh_attr.h"
#include "program/ir/dce.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"

#include <algorithm>
#include <map>

namespace capibara::python {

namespace {

// A variable is one Python object for as long as Python holds it.
nb::object atom_view(const Program& program, Atom atom) {
  if (atom.is_literal()) return nb::cast(LiteralView{program.literal(atom)}, nb::rv_policy::move);
  static nb::object& known = *new nb::object(nb::module_::import_("weakref").attr("WeakValueDictionary")());
  const nb::tuple key = nb::make_tuple(reinterpret_cast<std::uintptr_t>(program.identity()), atom.var().id);
  nb::object view = known.attr("get")(key);
  if (!view.is_none()) return view;
  view = nb::cast(VarView{program, atom.var()}, nb::rv_policy::move);
  known[key] = view;
  return view;
}

nb::object drop_var(const ArrayType& type) {
  return nb::module_::import_("capibara._types").attr("DropVar")(nb::cast(type));
}

nb::list var_views(const Program& program, const std::vector<Var>& vars) {
  nb::list list;
  for (Var var : vars) list.append(atom_view(program, var));
  return list;
}

nb::list equation_views(const Program& program) {
  nb::list list;
  for (std::size_t i = 0; i < program.equations().size(); ++i) {
    list.append(nb::cast(EquationView{program, i}, nb::rv_policy::move));
  }
  return list;
}

nb::list type_list(const Types& types) {
  nb::list list;
  for (const ArrayType& type : types) list.append(type_object(type));
  return list;
}

nb::object effect_set(const Effects& effects) {
  nb::object module = nb::module_::import_("capibara._effects");
  nb::object kinds = module.attr("KINDS");
  nb::object set = nb::steal(PySet_New(nullptr));
  static const std::pair<Effects::Flag, const char*> names[] = {
      {Effects::ordered_io, "OrderedIO"}, {Effects::io, "IO"},           {Effects::debug, "Debug"},
      {Effects::ref_read, "Read"},        {Effects::ref_write, "Write"}, {Effects::ordered_debug, "OrderedDebug"}};
  for (const auto& [flag, name] : names) {
    if (effects.has(flag)) set.attr("add")(kinds[name]);
  }
  for (const std::string& axis : effects.axes) set.attr("add")(module.attr("NamedAxisEffect")(axis));
  return set;
}

nb::list outputs_of(const Program& program) {
  nb::list list;
  for (Atom atom : program.outputs()) list.append(atom_view(program, atom));
  return list;
}

template <class Class, class Get>
void def_program(Class& type, Get program_of) {
  type.def_prop_ro("eqns", [=](const typename Class::Type& self) { return equation_views(program_of(self)); })
      .def_prop_ro("effects", [=](const typename Class::Type& self) { return effect_set(program_of(self).effects()); })
      .def_prop_ro("in_avals",
                   [=](const typename Class::Type& self) { return type_list(program_of(self).input_types()); })
      .def_prop_ro("out_avals",
                   [=](const typename Class::Type& self) { return type_list(program_of(self).output_types()); })
      .def("__str__", [=](const typename Class::Type& self) { return program_of(self).to_string(); })
      .def("__repr__", [=](const typename Class::Type& self) { return program_of(self).to_string(); })
      .def("pretty_print", [=](const typename Class::Type& self, nb::kwargs) { return program_of(self).to_string(); })
      .def("__hash__", [=](const typename Class::Type& self) { return program_of(self).hash(); })
      .def(
          "__eq__",
          [=](const typename Class::Type& self, nb::handle other) {
            return nb::isinstance<typename Class::Type>(other) &&
                   program_of(self) == program_of(nb::cast<const typename Class::Type&>(other));
          },
          nb::arg().none());
}

// A number converted to a literal's type.
Array literal_value(nb::handle value, const ArrayType& type) {
  Array array = to_array(value, "Literal");
  if (array.ndim() != 0) throw TypeError("Literal: the value must be a scalar");
  return array.type() == type ? array : jax::lax::convert_element_type(array, type.dtype, type.weak_type);
}

// The sharding of a type as a jax NamedSharding on a mesh without devices.
nb::object sharding_object(const ArrayType& type) {
  nb::object make = nb::module_::import_("capibara.jax._abstract_mesh").attr("type_sharding");
  if (!type.sharding.is_explicit()) return make(type.rank());
  const Mesh& mesh = type.sharding.mesh();
  const PartitionSpec& spec = type.sharding.spec();
  nb::list kinds;
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) kinds.append(static_cast<int>(mesh.axis_type(i)));
  return make(type.rank(), nb::tuple(nb::cast(mesh.axis_names)), nb::tuple(nb::cast(mesh.axis_sizes)), nb::tuple(kinds),
              nb::cast(spec.dims), nb::cast(spec.unreduced), nb::cast(spec.reduced));
}

// Sets a type's Explicit axes from a sharding, and its manual axes; None leaves the type unchanged.
void set_sharding(ArrayType& type, nb::handle sharding, nb::handle manual_axis_type) {
  if (sharding.is_none()) return;
  nb::object placed = nb::module_::import_("capibara.jax._explicit").attr("placement_of")(sharding);
  const auto& given = nb::cast<const NamedSharding&>(placed[0]);
  const Mesh& mesh = given.mesh;
  const auto is_explicit = [&](const std::string& axis) {
    const auto it = std::find(mesh.axis_names.begin(), mesh.axis_names.end(), axis);
    return it != mesh.axis_names.end() &&
           mesh.axis_type(static_cast<std::size_t>(it - mesh.axis_names.begin())) == AxisType::Explicit;
  };
  const auto kept = [&](AxisList axes) {
    std::erase_if(axes, [&](const std::string& axis) { return !is_explicit(axis); });
    return axes;
  };
  AxisList varying;
  if (!manual_axis_type.is_none()) {
    for (nb::handle axis : manual_axis_type.attr("varying")) varying.push_back(nb::cast<std::string>(axis));
  }
  if (!mesh.any_is(AxisType::Explicit)) {
    if (!varying.empty()) type.sharding = Sharding::varying_over(mesh, std::move(varying));
    return;
  }
  PartitionSpec spec{{}, kept(given.spec.unreduced), kept(given.spec.reduced)};
  for (const AxisList& axes : given.spec.dims) spec.dims.push_back(kept(axes));
  spec.dims.resize(type.shape.size());
  type.sharding = Sharding::explicit_over(mesh, std::move(spec), std::move(varying));
  check_divides(type);
}

}  // namespace

void bind_programs(nb::module_& m) {
  nb::class_<ArrayType>(m, "ShapedArray")
      .def(
          "__init__",
          [](ArrayType* self, nb::handle shape, nb::handle dtype, bool weak_type, nb::handle sharding,
             nb::handle manual_axis_type, nb::kwargs) {
            new (self) ArrayType;
            self->shape = to_ints(shape);
            self->dtype = to_dtype(dtype);
            self->weak_type = weak_type;
            set_sharding(*self, sharding, manual_axis_type);
          },
          nb::arg("shape"), nb::arg("dtype"), nb::arg("weak_type") = false, nb::kw_only(),
          nb::arg("sharding") = nb::none(), nb::arg("manual_axis_type") = nb::none(), nb::arg("kwargs"))
      .def_prop_ro("shape", [](const ArrayType& self) { return int_tuple(self.shape); })
      .def_prop_ro("dtype", [](const ArrayType& self) { return numpy_dtype(self.dtype); })
      .def_prop_ro("weak_type", [](const ArrayType& self) { return self.weak_type; })
      .def_prop_ro("ndim", [](const ArrayType& self) { return self.rank(); })
      .def_prop_ro("size", [](const ArrayType& self) { return self.size(); })
      .def_prop_ro("sharding", [](const ArrayType& self) { return sharding_object(self); })
      .def_prop_ro("named_shape", [](const ArrayType&) { return nb::dict(); })
      .def_prop_ro("_is_ref", [](const ArrayType& self) { return self.ref; })
      .def_prop_ro("inner_aval",
                   [](const ArrayType& self) {
                     if (!self.ref) throw nb::attribute_error("inner_aval: the type is none of a mutable array");
                     ArrayType inner = self;
                     inner.ref = false;
                     return inner;
                   })
      .def("__len__",
           [](const ArrayType& self) {
             if (self.shape.empty()) throw nb::type_error("len() of unsized object");
             return self.shape[0];
           })
      .def("strip_weak_type", [](const ArrayType& self) { return self.strong(); })
      .def("at_least_vspace",
           [](const ArrayType& self) {
             ArrayType tangent = self;
             if (!is_inexact(self.dtype)) tangent = tangent.with_dtype(DType::float0).strong();
             return tangent;
           })
      .def("to_tangent_aval",
           [](const ArrayType& self) {
             ArrayType tangent = self;
             if (!is_inexact(self.dtype)) tangent = tangent.with_dtype(DType::float0).strong();
             return tangent;
           })
      .def("update",
           [](const ArrayType& self, nb::kwargs changes) {
             ArrayType next = self;
             for (auto [name, value] : changes) {
               std::string key = nb::cast<std::string>(name);
               if (key == "shape")
                 next.shape = to_ints(value);
               else if (key == "dtype")
                 next.dtype = to_dtype(value);
               else if (key == "weak_type")
                 next.weak_type = nb::cast<bool>(value);
               else if (key == "sharding")
                 set_sharding(next, value, nb::none());
               else
                 throw TypeError(concat("ShapedArray.update: no field '", key, "'"));
             }
             return next;
           })
      .def(
          "str_short",
          [](const ArrayType& self, bool short_dtypes, bool) {
            return short_dtypes ? short_string(self) : to_string(self);
          },
          nb::arg("short_dtypes") = false, nb::arg("mesh_axis_types") = false)
      .def(
          "__eq__",
          [](const ArrayType& self, nb::handle other) {
            return nb::isinstance<ArrayType>(other) && self == nb::cast<const ArrayType&>(other);
          },
          nb::arg().none())
      .def("__hash__", [](const ArrayType& self) { return std::hash<std::string>()(to_string(self)) ^ self.weak_type; })
      .def("__str__", [](const ArrayType& self) { return concat(self.weak_type ? "~" : "", to_string(self)); })
      .def("__repr__", [](const ArrayType& self) {
        return concat("ShapedArray(", to_string(self), self.weak_type ? ", weak_type=True)" : ")");
      });
  nb::class_<Attrs>(m, "Attrs").def("params", [](const Attrs& self) { return params_of(self); });
  nb::class_<OpaqueView>(m, "OpaqueView").def("__repr__", [](const OpaqueView& self) { return self.opaque->print(); });
  m.def("mesh_view",
        [](const NamedSharding& devices) { return OpaqueView{std::make_shared<const MeshAttr>(devices)}; });
  nb::class_<VarView>(m, "Var", nb::is_weak_referenceable())
      .def("__init__", [](VarView* self, const ArrayType& type) { new (self) VarView(new_variable(type)); })
      .def_prop_ro("aval", [](const VarView& self) { return type_object(self.program.type(self.var)); })
      .def_prop_ro("count", [](const VarView& self) { return self.var.id; })
      .def("__hash__",
           [](const VarView& self) {
             return std::hash<const void*>()(self.program.identity()) * 31 + static_cast<std::size_t>(self.var.id);
           })
      .def(
          "__eq__",
          [](const VarView& self, nb::handle other) {
            if (!nb::isinstance<VarView>(other)) return false;
            const auto& o = nb::cast<const VarView&>(other);
            return o.var == self.var && o.program.identity() == self.program.identity();
          },
          nb::arg().none())
      .def("__repr__", [](const VarView& self) {
        return concat("Var(id=", self.var.id, "):", short_string(self.program.type(self.var)));
      });
  nb::class_<LiteralView>(m, "Literal")
      .def("__init__",
           [](LiteralView* self, nb::handle value, nb::handle type) {
             new (self) LiteralView{literal_value(value, nb::cast<const ArrayType&>(type))};
           })
      .def_prop_ro("val", [](const LiteralView& self) { return wrap(self.value); })
      .def_prop_ro("aval", [](const LiteralView& self) { return self.value.type(); })
      .def("__hash__",
           [](const LiteralView&) -> std::size_t { raise_python("LibraryTypeError", "unhashable type: 'Literal'"); })
      .def("__repr__", [](const LiteralView& self) {
        return concat(self.value.to_string(), ":", short_string(self.value.type()));
      });
  nb::class_<EquationView>(m, "JaxprEqn")
      .def_prop_ro("primitive", [](const EquationView& self) { return self.get().primitive; })
      .def_prop_ro("invars",
                   [](const EquationView& self) {
                     nb::list list;
                     for (Atom atom : self.get().inputs) list.append(atom_view(self.program, atom));
                     return list;
                   })
      .def_prop_ro("outvars",
                   [](const EquationView& self) {
                     nb::list list;
                     Types input_types;
                     bool dropped = false;
                     for (Var var : self.get().outputs) dropped = dropped || var.dropped();
                     Types types;
                     if (dropped) {
                       for (Atom atom : self.get().inputs) input_types.push_back(self.program.type(atom));
                       types = self.get().primitive->type(input_types, self.get().attrs).types;
                     }
                     for (std::size_t i = 0; i < self.get().outputs.size(); ++i) {
                       Var var = self.get().outputs[i];
                       list.append(var.dropped() ? drop_var(types[i]) : atom_view(self.program, var));
                     }
                     return list;
                   })
      .def_prop_ro("params",
                   [](const EquationView& self) {
                     nb::dict params = params_of(self.get().attrs);
                     // Constants of the callee of `call` are operands: jax shows an open jaxpr without constants.
                     if (self.get().primitive == prim::call())
                       params["call_jaxpr"] = OpenProgram{self.get().attrs.program("call_jaxpr")};
                     return params;
                   })
      .def_prop_ro("effects", [](const EquationView& self) { return effect_set(self.get().effects); })
      .def_prop_ro(
          "source_info",
          [](const EquationView& self) {
            const SourceInfo info = source_info(self.get().source);
            return nb::module_::import_("capibara._sources").attr("SourceInfo")(info.name_scope, info.file, info.line);
          })
      .def("__repr__", [](const EquationView& self) {
        return concat("<equation of ", self.get().primitive.name(), " with ", self.get().inputs.size(), " operands>");
      });
  nb::class_<Program> program(m, "ClosedJaxpr");
  def_program(program, [](const Program& self) -> const Program& { return self; });
  program
      .def("__init__",
           [](Program* self, const OpenProgram& open, nb::handle constants) {
             std::vector<Array> values;
             for (nb::handle constant : constants) values.push_back(to_array(constant, "ClosedJaxpr"));
             if (values.size() != open.program.constvars().size()) {
               throw ValueError(concat("ClosedJaxpr: ", open.program.constvars().size(), " constants are needed, got ",
                                       values.size()));
             }
             Program::Body body = open.program.body();
             body.constants = values;
             new (self) Program(std::move(body));
           })
      .def_prop_ro("jaxpr", [](const Program& self) { return OpenProgram{self}; })
      .def_prop_ro("consts",
                   [](const Program& self) {
                     nb::list list;
                     for (const Array& constant : self.constants()) list.append(wrap(constant));
                     return list;
                   })
      .def_prop_ro("literals",
                   [](const Program& self) {
                     nb::list list;
                     for (const Array& constant : self.constants()) list.append(wrap(constant));
                     return list;
                   })
      .def("stablehlo", [](const Program& self) { return to_stablehlo(self); });
  nb::class_<OpenProgram> open(m, "Jaxpr");
  def_program(open, [](const OpenProgram& self) -> const Program& { return self.program; });
  open.def(
          "__init__",
          [](OpenProgram* self, nb::object constvars, nb::object invars, nb::object outvars, nb::object eqns,
             nb::object, nb::object debug_info, bool) {
            std::string name = nb::hasattr(debug_info, "func_name")
                                   ? nb::cast<std::string>(nb::str(debug_info.attr("func_name")))
                                   : std::string();
            new (self) OpenProgram{build_program(constvars, invars, outvars, eqns, name)};
          },
          nb::arg("constvars"), nb::arg("invars"), nb::arg("outvars"), nb::arg("eqns"), nb::arg("effects") = nb::none(),
          nb::arg("debug_info") = nb::none(), nb::arg("is_high") = false)
      .def_prop_ro("name", [](const OpenProgram& self) { return self.program.name(); })
      .def_prop_ro("invars", [](const OpenProgram& self) { return var_views(self.program, self.program.invars()); })
      .def_prop_ro("constvars",
                   [](const OpenProgram& self) { return var_views(self.program, self.program.constvars()); })
      .def_prop_ro("outvars", [](const OpenProgram& self) { return outputs_of(self.program); })
      .def_prop_ro("is_high", [](const OpenProgram&) { return false; });
  // (program, which inputs it still reads) for the outputs marked in `used`; inputs marked in `kept` stay.
  m.def("dce_program", [](const OpenProgram& self, const std::vector<bool>& used, const std::vector<bool>& kept) {
    DceProgram pruned = dce_program(self.program, used, kept);
    nb::list inputs;
    for (bool input : pruned.used_inputs) inputs.append(nb::bool_(input));
    return nb::make_tuple(OpenProgram{pruned.program}, inputs);
  });
  m.def("ref_type", [](const ArrayType& inner) {
    ArrayType type = inner;
    type.ref = true;
    return type;
  });
  m.def("verify_program", [](const Program& self) { verify(self); });
}

}  // namespace capibara::python
