// Primitives from Python: those of the catalog, and user-defined ones with rules written in Python.
#include <capibara/primitive.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "calls.h"
#include "function_calls.h"
#include "primitive_lowering.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"
#include "programs.h"

namespace capibara::python {

namespace {

// The rules of a user's primitive, added after it is created.
struct UserRules {
  bool multiple_results = false;
  bool effectful = false;  // the abstract evaluation returns (types, effects)
  std::shared_ptr<KeptObject> impl, abstract_eval, jvp, transpose, batch, lowering;
  std::shared_ptr<KeptObject> axis_batch;  // instead of batch: also takes the size and name of the mapped axis
  std::atomic<bool> warned = false;        // that compiled programs call back its implementation
};

nb::object positional(std::span<const Array> arrays) {
  nb::list list;
  for (const Array& array : arrays) list.append(wrap(array));
  return nb::tuple(list);
}

// One array or, for primitives with several results, a sequence of them.
Arrays results(nb::handle object, bool multiple, const char* what) {
  if (!multiple) return {to_array(object, what)};
  Arrays all;
  for (nb::handle item : object) all.push_back(to_array(item, what));
  return all;
}

Array tangent_of(nb::handle object, const char* what) {
  static PyObject* zero = nb::object(nb::module_::import_("capibara._types").attr("Zero")).release().ptr();
  if (object.is_none() || PyObject_IsInstance(object.ptr(), zero) == 1) return {};
  return to_array(object, what);
}

nb::object zero_or_wrapped(const Array& array, const ArrayType& type) {
  if (array.defined()) return wrap(array);
  ArrayType tangent = is_inexact(type.dtype) ? type : type.with_dtype(DType::float0).strong();
  return nb::module_::import_("capibara._types").attr("Zero")(nb::cast(tangent));
}

// Zero cotangents become Zero objects of the output's type, as in jax.
nb::list given_cotangents(const TransposeArgs& args) {
  nb::list cotangents;
  Types types;  // of the outputs; computed only if one has no cotangent
  for (std::size_t i = 0; i < args.cotangents.size(); ++i) {
    const Array& cotangent = args.cotangents[i];
    if (!cotangent.defined() && types.empty()) types = args.primitive->type(args.types, args.attrs).types;
    cotangents.append(cotangent.defined() ? wrap(cotangent) : zero_or_wrapped(cotangent, types[i]));
  }
  return cotangents;
}

PrimitiveRecord record_of(const std::string& name, std::shared_ptr<UserRules> rules) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = "A primitive defined in Python.";
  record.type = [rules, name](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    nb::gil_scoped_acquire lock;
    if (!rules->abstract_eval)
      throw NotImplementedError(
          concat("Abstract evaluation for '", name, "' not implemented: give it one by def_abstract_eval"));
    nb::list avals;
    for (const ArrayType& type : types) avals.append(nb::cast(type));
    nb::object result = call_python(rules->abstract_eval->get(), nb::tuple(avals), params_of(attrs));
    Effects effects;
    if (rules->effectful) {
      nb::object named = result[1];
      if (PyObject_IsTrue(named.ptr()) == 1) effects = Effects::debug;
      result = nb::object(result[0]);
    }
    Types out;
    if (rules->multiple_results) {
      for (nb::handle item : result) out.push_back(leaf_type(item, "abstract_eval"));
    } else {
      out.push_back(leaf_type(result, "abstract_eval"));
    }
    return TypeResult(out, effects);
  };
  record.evaluate = [rules, name](std::span<const Array> inputs, const Attrs& attrs) {
    nb::gil_scoped_acquire lock;
    const auto& rule =
        rules->impl ? rules->impl : rules->lowering;  // compiled programs may hold one that has only a lowering
    if (!rule)
      throw NotImplementedError(concat("Evaluation rule for '", name,
                                       "' not implemented: an implementation or lowering rule for primitive '", name,
                                       "' not found; give it one by def_impl or mlir.register_lowering"));
    nb::object result = call_python(rule->get(), positional(inputs), params_of(attrs));
    return results(result, rules->multiple_results, "impl");
  };
  return record;
}

// Fills the record with the rules registered so far, which are read on each use; the core reports missing ones.
void fill_rules(PrimitiveRecord& record, std::shared_ptr<UserRules> rules) {
  std::string name = record.name;
  if (rules->jvp) {
    record.jvp = [rules](const JvpArgs& args) {
      nb::gil_scoped_acquire lock;
      nb::list tangents;
      for (std::size_t i = 0; i < args.tangents.size(); ++i)
        tangents.append(zero_or_wrapped(args.tangents[i], args.primals[i].type()));
      nb::object both = call_python(rules->jvp->get(), nb::make_tuple(positional(args.primals), nb::tuple(tangents)),
                                    params_of(args.attrs));
      JvpResult result;
      nb::object primal = both[0], tangent = both[1];
      result.primals = results(primal, rules->multiple_results, "jvp");
      if (rules->multiple_results) {
        for (nb::handle item : tangent) result.tangents.push_back(tangent_of(item, "jvp"));
      } else {
        result.tangents.push_back(tangent_of(tangent, "jvp"));
      }
      return result;
    };
  }
  if (rules->transpose) {
    record.transpose = [rules](const TransposeArgs& args) {
      nb::gil_scoped_acquire lock;
      nb::object undefined = nb::module_::import_("capibara._types").attr("UndefinedPrimal");
      nb::list arguments;
      nb::list given = given_cotangents(args);
      arguments.append(rules->multiple_results ? nb::object(given) : nb::object(given[0]));
      for (std::size_t i = 0; i < args.inputs.size(); ++i) {
        arguments.append(args.linear(i) ? nb::object(undefined(nb::cast(args.types[i]))) : wrap(args.inputs[i]));
      }
      nb::object result = call_python(rules->transpose->get(), nb::tuple(arguments), params_of(args.attrs));
      Arrays cotangents;
      for (nb::handle item : result) cotangents.push_back(tangent_of(item, "transpose"));
      if (cotangents.size() != args.inputs.size()) {
        throw TypeError(concat("transpose rule of ", args.primitive.name(), " must return ", args.inputs.size(),
                               " cotangents, got ", cotangents.size()));
      }
      return cotangents;
    };
  }
  if (rules->batch || rules->axis_batch) {
    record.batch = [rules](const BatchArgs& args) {
      nb::gil_scoped_acquire lock;
      nb::list dims;
      for (std::size_t i = 0; i < args.inputs.size(); ++i)
        dims.append(args.mapped(i) ? nb::object(nb::int_(args.dims[i])) : nb::none());
      nb::object inputs = positional(args.inputs), both;
      if (rules->axis_batch) {
        nb::object name = args.axis.name.empty() ? nb::none() : nb::object(nb::str(args.axis.name.c_str()));
        both = call_python(rules->axis_batch->get(),
                           nb::make_tuple(args.axis.size, name, nb::none(), inputs, nb::tuple(dims)),
                           params_of(args.attrs));
      } else {
        both = call_python(rules->batch->get(), nb::make_tuple(inputs, nb::tuple(dims)), params_of(args.attrs));
      }
      BatchResult result;
      nb::object out = both[0], out_dims = both[1];
      auto dim = [](nb::handle object) { return object.is_none() ? not_mapped : nb::cast<int64_t>(object); };
      result.outputs = results(out, rules->multiple_results, "batch");
      if (rules->multiple_results) {
        for (nb::handle item : out_dims) result.dims.push_back(dim(item));
      } else {
        result.dims.push_back(dim(out_dims));
      }
      return result;
    };
  }
  if (rules->lowering) {
    record.lower = [rules, name, type = record.type](std::span<const Array> inputs, const Attrs& attrs) {
      nb::gil_scoped_acquire lock;
      const nb::object result = call_python(rules->lowering->get(), positional(inputs), params_of(attrs));
      const bool several = PyTuple_Check(result.ptr()) || PyList_Check(result.ptr());
      Arrays outputs = results(result, several, "lowering");
      check_lowered(name, outputs, type(types_of(inputs), attrs).types);
      return outputs;
    };
  } else if (rules->impl) {
    record.lower = [rules, name, type = record.type, evaluate = record.evaluate](std::span<const Array> inputs,
                                                                                 const Attrs& attrs) {
      return call_from_program({name, rules->warned, "it has no lowering"}, type(types_of(inputs), attrs), evaluate,
                               inputs, attrs);
    };
  }
}

// Libraries may replace a rule of a primitive that they did not define, as in jax's tables. Programs share the record.
void replace_rule(const Primitive& primitive, std::shared_ptr<KeptObject> UserRules::*slot, nb::handle rule) {
  auto rules = std::make_shared<UserRules>();
  rules->multiple_results = primitive->traits.multiple_results;
  (*rules).*slot = std::make_shared<KeptObject>(rule);
  fill_rules(const_cast<PrimitiveRecord&>(primitive.record()), rules);
}

// Python's handle of a user's primitive: the record is filled again whenever a rule is added.
struct UserPrimitive {
  std::shared_ptr<UserRules> rules = std::make_shared<UserRules>();
  std::shared_ptr<PrimitiveRecord> record;
  Primitive primitive;
};

void set_rule(UserPrimitive& self, std::shared_ptr<KeptObject> UserRules::*slot, nb::handle rule) {
  if (slot == &UserRules::batch || slot == &UserRules::axis_batch) self.rules->batch = self.rules->axis_batch = nullptr;
  (*self.rules).*slot = std::make_shared<KeptObject>(rule);
  // Programs share the record, so rules added later apply to programs traced earlier.
  fill_rules(*self.record, self.rules);
}

nb::object bind_python(const Primitive& primitive, bool multiple, nb::args args, nb::kwargs kwargs) {
  Arrays inputs;
  for (nb::handle argument : args) inputs.push_back(to_operand(argument, primitive.name().c_str()));
  Arrays outputs = capibara::bind(primitive, inputs, attrs_of(kwargs));
  if (!multiple) return wrap(outputs.at(0));
  nb::list list;
  for (const Array& output : outputs) list.append(wrap(output));
  return list;
}

nb::object one_or_list(nb::list items, bool multiple) { return multiple ? nb::object(items) : nb::object(items[0]); }

// The rules of the catalog's primitives as Python functions, with the signatures of jax's tables.
nb::object call_jvp(const Primitive& self, nb::sequence primals, nb::sequence tangents, nb::kwargs params) {
  const char* name = self.name().c_str();
  Arrays inputs, directions;
  for (nb::handle item : primals) inputs.push_back(to_operand(item, name));
  for (nb::handle item : tangents) directions.push_back(tangent_of(item, name));
  const Attrs attrs = attrs_of(params);
  const JvpResult result = self->jvp({self, inputs, directions, attrs});
  nb::list out, out_tangents;
  for (const Array& array : result.primals) out.append(wrap(array));
  for (std::size_t i = 0; i < result.tangents.size(); ++i)
    out_tangents.append(zero_or_wrapped(result.tangents[i], result.primals[i].type()));
  const bool multiple = self->traits.multiple_results;
  return nb::make_tuple(one_or_list(out, multiple), one_or_list(out_tangents, multiple));
}

nb::object call_transpose(const Primitive& self, nb::handle cotangents, nb::args args, nb::kwargs params) {
  const char* name = self.name().c_str();
  nb::object undefined = nb::module_::import_("capibara._types").attr("UndefinedPrimal");
  Arrays given, inputs;
  if (self->traits.multiple_results) {
    for (nb::handle item : cotangents) given.push_back(tangent_of(item, name));
  } else {
    given.push_back(tangent_of(cotangents, name));
  }
  Types types;
  for (nb::handle item : args) {
    const bool linear = PyObject_IsInstance(item.ptr(), undefined.ptr()) == 1;
    inputs.push_back(linear ? Array() : to_operand(item, name));
    types.push_back(linear ? leaf_type(item.attr("aval"), name) : inputs.back().type());
  }
  const Attrs attrs = attrs_of(params);
  nb::list out;
  const Arrays results = self->transpose({self, given, inputs, types, attrs});
  for (const Array& array : results) out.append(array.defined() ? wrap(array) : nb::none());
  return out;
}

nb::object call_batch(const Primitive& self, nb::sequence args, nb::sequence dims, nb::kwargs params) {
  Arrays inputs;
  std::vector<int64_t> positions;
  MappedAxis axis;
  for (nb::handle item : args) inputs.push_back(to_operand(item, self.name().c_str()));
  for (nb::handle item : dims) {
    positions.push_back(item.is_none() ? not_mapped : nb::cast<int64_t>(item));
    if (!item.is_none()) axis.size = inputs.at(positions.size() - 1).shape(positions.back());
  }
  const Attrs attrs = attrs_of(params);
  const BatchResult result = self->batch({self, axis, inputs, positions, attrs});
  nb::list out, places;
  for (const Array& array : result.outputs) out.append(wrap(array));
  for (int64_t dim : result.dims) places.append(dim == not_mapped ? nb::none() : nb::object(nb::int_(dim)));
  const bool multiple = self->traits.multiple_results;
  return nb::make_tuple(one_or_list(out, multiple), one_or_list(places, multiple));
}

}  // namespace

void bind_primitives(nb::module_& m) {
  nb::class_<Primitive>(m, "CatalogPrimitive")
      .def_prop_ro("name", [](const Primitive& self) { return self.name(); })
      .def_prop_ro("multiple_results", [](const Primitive& self) { return self->traits.multiple_results; })
      .def_prop_ro("called_program",
                   [](const Primitive& self) -> nb::object {
                     const char* attribute = self->traits.called_program;
                     return attribute ? nb::object(nb::str(attribute)) : nb::none();
                   })
      .def_prop_ro("nan_checked", [](const Primitive& self) { return self->traits.nan_checked; })
      .def_prop_ro("call_primitive", [](const Primitive& self) { return calls_function(self); })
      .def_prop_ro("map_primitive", [](const Primitive&) { return false; })
      .def_prop_ro("doc", [](const Primitive& self) { return self->doc; })
      .def_prop_ro("rules",
                   [](const Primitive& self) {
                     nb::dict rules;
                     rules["jvp"] = static_cast<bool>(self->jvp);
                     rules["transpose"] = static_cast<bool>(self->transpose);
                     rules["batch"] = static_cast<bool>(self->batch);
                     rules["lower"] = static_cast<bool>(self->lower);
                     return rules;
                   })
      .def("jvp", call_jvp)
      .def("transpose", call_transpose)
      .def("batch", call_batch)
      .def("def_jvp", [](const Primitive& self, nb::object rule) { replace_rule(self, &UserRules::jvp, rule); })
      .def("def_transpose",
           [](const Primitive& self, nb::object rule) { replace_rule(self, &UserRules::transpose, rule); })
      .def("def_batch", [](const Primitive& self, nb::object rule) { replace_rule(self, &UserRules::batch, rule); })
      .def("def_axis_batch",
           [](const Primitive& self, nb::object rule) { replace_rule(self, &UserRules::axis_batch, rule); })
      .def("bind",
           [](const Primitive& self, nb::args args, nb::kwargs kwargs) {
             if (calls_function(self) && kwargs.contains("subfuns")) {
               return bind_function(self, args, nb::object(kwargs["subfuns"]));
             }
             // A function with custom rules is bound by its program; the callables from get_bind_params are not used.
             if (kwargs.contains("subfuns") && kwargs.contains("call_jaxpr")) {
               PyDict_DelItemString(kwargs.ptr(), "subfuns");
             }
             Arrays inputs;
             for (nb::handle argument : args) inputs.push_back(to_operand(argument, self.name().c_str()));
             Arrays outputs = capibara::bind(self, inputs, attrs_of(kwargs));
             if (outputs.size() == 1 && !self->traits.multiple_results) return wrap(outputs[0]);
             nb::list list;
             for (const Array& output : outputs) list.append(wrap(output));
             return nb::object(list);
           })
      .def(
          "__eq__",
          [](const Primitive& self, nb::handle other) {
            return nb::isinstance<Primitive>(other) && self == nb::cast<const Primitive&>(other);
          },
          nb::arg().none())
      .def("__hash__", [](const Primitive& self) { return std::hash<const void*>()(&self.record()); })
      .def("__repr__", [](const Primitive& self) { return self.name(); })
      .def("__str__", [](const Primitive& self) { return self.name(); });
  nb::class_<UserPrimitive>(m, "UserPrimitive")
      .def("__init__",
           [](UserPrimitive* self, const std::string& name) {
             new (self) UserPrimitive;
             self->record = std::make_shared<PrimitiveRecord>(record_of(name, self->rules));
             self->primitive = Primitive(self->record);
           })
      .def_prop_ro("primitive", [](const UserPrimitive& self) { return self.primitive; })
      .def_prop_rw(
          "multiple_results", [](const UserPrimitive& self) { return self.rules->multiple_results; },
          [](UserPrimitive& self, bool value) { self.rules->multiple_results = value; })
      .def_prop_rw(
          "effectful", [](const UserPrimitive& self) { return self.rules->effectful; },
          [](UserPrimitive& self, bool value) { self.rules->effectful = value; })
      .def("set_impl", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::impl, rule); })
      .def("set_abstract_eval",
           [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::abstract_eval, rule); })
      .def("set_jvp", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::jvp, rule); })
      .def("set_transpose", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::transpose, rule); })
      .def("set_batch", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::batch, rule); })
      .def("set_axis_batch", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::axis_batch, rule); })
      .def("set_lowering", [](UserPrimitive& self, nb::object rule) { set_rule(self, &UserRules::lowering, rule); })
      .def("call_implementation",
           [](const UserPrimitive& self, const std::string& reason, nb::args args, nb::kwargs kwargs) {
             Arrays inputs;
             for (nb::handle argument : args) inputs.push_back(to_operand(argument, self.record->name.c_str()));
             const Attrs attrs = attrs_of(kwargs);
             const TypeResult promised = self.record->type(types_of(inputs), attrs);
             nb::list list;
             for (const Array& output : call_from_program({self.record->name, self.rules->warned, reason}, promised,
                                                          self.record->evaluate, inputs, attrs))
               list.append(wrap(output));
             return list;
           })
      .def("has",
           [](const UserPrimitive& self, const std::string& rule) {
             if (rule == "impl") return self.rules->impl != nullptr;
             if (rule == "jvp") return self.rules->jvp != nullptr;
             if (rule == "transpose") return self.rules->transpose != nullptr;
             if (rule == "batch") return self.rules->batch != nullptr;
             return self.rules->lowering != nullptr;
           })
      .def("bind", [](const UserPrimitive& self, nb::args args, nb::kwargs kwargs) {
        return bind_python(self.primitive, self.rules->multiple_results, args, kwargs);
      });
  m.def("catalog", [] {
    nb::list list;
    for (const Primitive& primitive : catalog()) list.append(nb::cast(primitive));
    return list;
  });
  m.def("to_attrs", [](const Primitive&, nb::dict params) { return attrs_of(params); });
  m.def("ask_policy", [](nb::object policy, const Primitive& primitive, nb::list avals, const Attrs& attrs) {
    nb::list arguments;
    arguments.append(nb::cast(primitive));
    for (nb::handle aval : avals) arguments.append(aval);
    return call_python(policy, nb::tuple(arguments), params_of(attrs));
  });
}

}  // namespace capibara::python
