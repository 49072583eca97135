// grad, jvp, Jacobians, vmap, checkpoint and shape evaluation for Python functions.
#include <capibara/transforms.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "program/trace/stage.h"
#include "vmap_operands.h"

namespace capibara::python {

namespace {

// The arguments of a call, some of which are differentiated.
struct Selected {
  nb::tuple arguments;
  nb::dict keywords;
  std::vector<std::size_t> positions;
  bool single = true;  // argnums was one number
  std::vector<PyTree> trees;
  Arrays leaves;

  Selected(nb::handle argnums, nb::tuple args, nb::dict kwargs, const char* operation)
      : arguments(args), keywords(kwargs) {
    const auto count = static_cast<int64_t>(args.size());
    auto add = [&](nb::handle number) {
      nb::object index = nb::steal(PyNumber_Index(number.ptr()));
      if (!index.is_valid()) throw nb::python_error();
      int64_t position = nb::cast<int64_t>(index);
      if (position >= count || position < -count) {
        throw TypeError(concat("differentiating with respect to argnums=", nb::cast<std::string>(nb::repr(argnums)),
                               " requires at least ", position < 0 ? -position : position + 1,
                               " positional arguments to be passed by the caller, but got only ", count,
                               " positional arguments."));
      }
      positions.push_back(static_cast<std::size_t>(position < 0 ? position + count : position));
    };
    if (PyLong_Check(argnums.ptr())) {
      add(argnums);
    } else {
      single = false;
      for (nb::handle number : argnums) add(number);
    }
    for (std::size_t position : positions) {
      std::vector<nb::object> objects;
      trees.push_back(flatten(arguments[position], objects));
      for (Array& leaf : to_arrays(objects, operation)) leaves.push_back(std::move(leaf));
    }
  }

  nb::object call(nb::handle function, std::span<const Array> values) const {
    nb::list all(arguments);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      all[positions[i]] = unflatten_arrays(trees[i], values.subspan(begin, trees[i].num_leaves()));
      begin += trees[i].num_leaves();
    }
    return call_python(function, nb::tuple(all), keywords);
  }

  PyTree structure() const { return single ? trees[0] : PyTree::tuple(trees); }
  nb::object rebuild(std::span<const Array> values) const { return unflatten_arrays(structure(), values); }
};

nb::object value_and_grad(nb::object function, nb::object argnums, bool has_aux, bool holomorphic, bool allow_int,
                          nb::tuple args, nb::dict kwargs) {
  Selected selected(argnums, args, kwargs, "grad");
  Auxiliary auxiliary;
  FlatFunction flat = [&](std::span<const Array> leaves) {
    TracedCall traced(function, "grad");
    nb::object result = selected.call(function, leaves);
    Arrays outputs;
    nb::object value = result;
    if (has_aux) {
      auto [main, rest] = split_auxiliary(result, "grad");
      value = main;
      outputs.resize(1);
      auxiliary.take(rest, outputs);
    } else {
      outputs.resize(1);
    }
    std::optional<Array> scalar = array_if(value);
    if (!scalar) {
      throw TypeError(concat("Gradient only defined for scalar-output functions. Output was ",
                             nb::cast<std::string>(nb::repr(value)), "."));
    }
    outputs[0] = *scalar;
    return outputs;
  };
  jax::GradOptions options;
  options.holomorphic = holomorphic;
  options.allow_int = allow_int;
  detail::GradCall call =
      detail::grad_leaves(flat, selected.leaves, std::vector<bool>(selected.leaves.size(), true), options);
  nb::object value = wrap(call.outputs[0]);
  if (has_aux) value = nb::make_tuple(value, auxiliary.rebuild(std::span<const Array>(call.outputs).subspan(1)));
  return nb::make_tuple(value, selected.rebuild(call.gradients));
}

nb::object jvp(nb::object function, nb::object primals, nb::object tangents, bool has_aux) {
  auto is_sequence = [](const nb::object& o) { return PyTuple_Check(o.ptr()) || PyList_Check(o.ptr()); };
  if (!is_sequence(primals) || !is_sequence(tangents)) {
    throw TypeError(concat("primal and tangent arguments to jax.jvp must be tuples or lists; found ",
                           nb::cast<std::string>(nb::str(primals.type().attr("__name__"))), " and ",
                           nb::cast<std::string>(nb::str(tangents.type().attr("__name__"))), "."));
  }
  std::vector<nb::object> objects, tangent_objects;
  nb::object primal_tuple = nb::tuple(nb::steal<nb::list>(PySequence_List(primals.ptr())));
  nb::object tangent_tuple = nb::tuple(nb::steal<nb::list>(PySequence_List(tangents.ptr())));
  PyTree in = flatten(primal_tuple, objects), tangent_in = flatten(tangent_tuple, tangent_objects);
  if (!(in == tangent_in) || primals.type().ptr() != tangents.type().ptr()) {
    throw TypeError(
        concat("primal and tangent arguments to jax.jvp must have the same tree structure; primals have "
               "tree structure ",
               in.to_string(), " whereas tangents have tree structure ", tangent_in.to_string(), "."));
  }
  Arrays leaves = to_arrays(objects, "jvp");
  Arrays tangent_leaves = to_arrays(tangent_objects, "jvp");
  SplitResult result(has_aux);
  FlatFunction flat = [&](std::span<const Array> values) {
    TracedCall traced(function, "jvp");
    return result.take(call_python(function, unflatten_arrays(in, values)), "jvp");
  };
  TreeDef plain = plain_leaves(leaves.size());
  detail::JvpCall call = detail::jvp_leaves(flat, plain, plain, leaves, tangent_leaves, result.main);
  nb::object value = result.value(call.outputs), tangent = unflatten_arrays(result.tree, call.tangents);
  if (!has_aux) return nb::make_tuple(value, tangent);
  return nb::make_tuple(value, tangent, result.auxiliary(call.outputs));
}

nb::object jacobian(bool forward, nb::object function, nb::object argnums, bool has_aux, bool holomorphic,
                    bool allow_int, nb::tuple args, nb::dict kwargs) {
  const char* operation = forward ? "jacfwd" : "jacrev";
  Selected selected(argnums, args, kwargs, operation);
  SplitResult result(has_aux);
  FlatFunction flat = [&](std::span<const Array> leaves) {
    TracedCall traced(function, operation);
    return result.take(selected.call(function, leaves), operation);
  };
  jax::JacobianOptions options;
  options.holomorphic = holomorphic;
  options.allow_int = allow_int;
  std::vector<bool> all(selected.leaves.size(), true);
  detail::JacobianCall call = forward ? detail::jacfwd_leaves(flat, selected.leaves, all, options, result.main)
                                      : detail::jacrev_leaves(flat, selected.leaves, all, options, result.main);
  nb::object entries = unflatten_arrays(result.tree.compose(selected.structure()), call.entries);
  if (!has_aux) return entries;
  return nb::make_tuple(entries, result.auxiliary(call.outputs));
}

// ---- vmap --------------------------------------------------------------------------------------------------------

// Broadcasts a prefix of `full` (integers and None) to one axis per leaf.
void spread_axes(nb::handle prefix, nb::handle full, std::vector<std::optional<int64_t>>& axes, const char* what) {
  auto count_leaves = [](nb::handle tree) {
    std::vector<nb::object> leaves;
    flatten(tree, leaves);
    return leaves.size();
  };
  if (prefix.is_none()) {
    for (std::size_t i = count_leaves(full); i > 0; --i) axes.emplace_back(std::nullopt);
    return;
  }
  if (PyLong_Check(prefix.ptr()) && !PyBool_Check(prefix.ptr())) {
    int64_t axis = nb::cast<int64_t>(prefix);
    for (std::size_t i = count_leaves(full); i > 0; --i) axes.emplace_back(axis);
    return;
  }
  nb::object numpy_integer = nb::module_::import_("numbers").attr("Integral");
  if (nb::isinstance(prefix, numpy_integer)) return spread_axes(nb::int_(prefix), full, axes, what);
  std::vector<nb::object> entries;
  PyTree structure = flatten(prefix, entries, none_is_leaf());
  if (structure.num_nodes() == 1 && structure.num_leaves() == 1) {
    throw TypeError(concat("vmap ", what, " must be an int, None, or a pytree of these, got ",
                           nb::cast<std::string>(nb::repr(prefix))));
  }
  std::vector<nb::object> parts;
  try {
    parts = structure.flatten_up_to(full);
  } catch (const ValueError&) {
    std::string name = concat("vmap ", what);
    nb::object text =
        nb::module_::import_("capibara._origins").attr("not_a_prefix")(name, nb::borrow(prefix), nb::borrow(full));
    throw ValueError(nb::cast<std::string>(text));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) spread_axes(entries[i], parts[i], axes, what);
}

// Checks that all mapped leaves have the same size along their axes, which must equal axis_size if passed.
void check_mapped_sizes(nb::handle function, const PyTree& in, const Arrays& leaves, const std::vector<int64_t>& axes,
                        const std::vector<std::size_t>& positions, nb::handle axis_size) {
  std::optional<int64_t> size;
  if (!axis_size.is_none()) size = nb::cast<int64_t>(axis_size);
  nb::list found;
  bool consistent = true;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const int64_t rank = leaves[i].ndim(), axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return;  // the core reports it
    consistent &= !size || *size == leaves[i].shape(axis);
    if (!size) size = leaves[i].shape(axis);
    found.append(nb::make_tuple(positions[i], axes[i], leaves[i].shape(axis), capibara::to_string(leaves[i].type())));
  }
  if (consistent) return;
  nb::object text = nb::module_::import_("capibara._origins")
                        .attr("inconsistent_sizes")(nb::borrow(function), in.unflatten(numbers(in.num_leaves())), found,
                                                    nb::borrow(axis_size));
  throw ValueError(nb::cast<std::string>(text));
}

nb::object vmap(nb::object function, nb::object in_axes, nb::object out_axes, nb::object axis_name,
                nb::object axis_size, const std::vector<std::string>& spmd_axis_name, nb::tuple args, nb::dict kwargs) {
  std::vector<nb::object> objects;
  nb::object both = nb::make_tuple(args, kwargs);
  PyTree in = flatten(both, objects), out;
  if (objects.empty() && axis_size.is_none()) {
    throw ValueError(
        concat("vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
               "specified, "
               "got empty *args=",
               nb::cast<std::string>(nb::repr(args)), " and **kwargs=", nb::cast<std::string>(nb::repr(kwargs))));
  }
  nb::object positional_axes = in_axes;
  if (PyList_Check(in_axes.ptr())) positional_axes = nb::steal(PyList_AsTuple(in_axes.ptr()));
  if (PyTuple_Check(positional_axes.ptr()) && static_cast<std::size_t>(nb::len(positional_axes)) != args.size()) {
    throw ValueError(
        concat("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
               "arguments passed to the function, but got len(in_axes)=",
               nb::len(positional_axes), ", len(args)=", args.size()));
  }
  std::vector<std::optional<int64_t>> axes;
  spread_axes(positional_axes, args, axes, "in_axes");
  spread_axes(nb::int_(0), kwargs, axes, "in_axes");
  VmapOperands operands(objects, axes);
  auto& [leaves, mapped_axes, positions, leaf_axes] = operands;
  if (leaves.empty() && axis_size.is_none()) {
    throw ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified");
  }
  check_mapped_sizes(function, in, leaves, mapped_axes, positions, axis_size);
  operands.add_typed(objects, axes);
  jax::VmapOptions options;
  options.in_axes = jax::Axes(leaf_axes);
  options.spmd_axis_name = spmd_axis_name;
  if (!axis_name.is_none()) options.axis_name = nb::cast<std::string>(nb::str(axis_name));
  if (!axis_size.is_none()) options.axis_size = nb::cast<int64_t>(axis_size);
  TreeDef out_structure;
  FlatFunction flat = [&](std::span<const Array> values) {
    TracedCall traced(function, "vmap");
    std::vector<nb::object> given = objects;
    for (std::size_t i = 0; i < values.size(); ++i) given[positions[i]] = wrap(values[i]);
    nb::object pair = in.unflatten(given);
    nb::object result = call_python(function, nb::object(pair[0]), nb::object(pair[1]));
    std::vector<nb::object> outputs;
    out = flatten(result, outputs);
    out_structure = plain_leaves(outputs.size());
    std::vector<std::optional<int64_t>> wanted;
    spread_axes(out_axes, result, wanted, "out_axes");
    std::vector<jax::Axes> each;
    for (const std::optional<int64_t>& axis : wanted) each.push_back(axis ? jax::Axes(*axis) : jax::Axes(std::nullopt));
    options.out_axes = jax::Axes(each);
    return to_arrays(outputs, "vmap");
  };
  return unflatten_arrays(out, detail::vmap_leaves(flat, plain_leaves(leaves.size()), leaves, options, out_structure));
}

// ---- the others --------------------------------------------------------------------------------------------------

// Traces a function for the types of its arguments: (program, out tree). Closed-over values are the first inputs.
std::pair<Program, PyTree> stage_python(nb::handle function, nb::handle args, nb::handle kwargs,
                                        const char* operation) {
  std::vector<nb::object> objects;
  nb::object both = nb::make_tuple(args, kwargs);
  PyTree in = flatten(both, objects), out;
  Types types;
  for (const nb::object& object : objects) types.push_back(leaf_type(object, operation));
  Program program = detail::stage_program(flat_function(function, in, out, operation), types, function_name(function));
  return {program, out};
}

// The program with closed-over tracers and refs among its constants, in order of first use.
Program closed_over_captured(const Staged& staged) {
  if (staged.captured.empty()) return staged.program;
  Staged open = opened(staged);
  Program::Body body = open.program.body();
  const auto end = body.invars.begin() + static_cast<std::ptrdiff_t>(open.captured.size());
  body.constvars.assign(body.invars.begin(), end);
  body.invars.erase(body.invars.begin(), end);
  body.constants = open.captured;
  return Program(std::move(body));
}

nb::object checkpoint(nb::object function, nb::tuple args, nb::dict kwargs, nb::object policy, bool prevent_cse) {
  std::vector<nb::object> objects;
  nb::object both = nb::make_tuple(args, kwargs);
  PyTree in = flatten(both, objects), out;
  Arrays leaves = to_arrays(objects, "checkpoint");
  jax::CheckpointOptions options;
  options.prevent_cse = prevent_cse;
  options.name = function_name(function);
  if (nb::isinstance<jax::CheckpointPolicy>(policy)) {
    options.policy = nb::cast<jax::CheckpointPolicy>(policy);
  } else if (!policy.is_none()) {
    auto kept = std::make_shared<KeptObject>(policy);
    options.policy = jax::CheckpointPolicy::from(
        [kept](const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs) {
          nb::gil_scoped_acquire lock;
          nb::object ask = nb::module_::import_("capibara._core").attr("ask_policy");
          nb::list avals;
          for (const ArrayType& type : types) avals.append(nb::cast(type));
          return nb::cast<bool>(nb::bool_(ask(nb::borrow(kept->get()), nb::cast(primitive), avals, nb::cast(attrs))));
        },
        function_name(policy));
  }
  Arrays outputs = detail::checkpoint_leaves(flat_function(function, in, out, "checkpoint"),
                                             plain_leaves(leaves.size()), leaves, options);
  return unflatten_arrays(out, outputs);
}

}  // namespace

void bind_transforms(nb::module_& m) {
  bind_linear_functions(m);
  m.def("value_and_grad", &value_and_grad);
  m.def("jvp", &jvp);
  m.def("jacobian", &jacobian);
  m.def("vmap", &vmap, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(),
        nb::arg(), nb::arg());
  m.def("checkpoint", &checkpoint, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("make_program", [](nb::object f, nb::tuple args, nb::dict kwargs) {
    std::vector<nb::object> objects;
    PyTree in = flatten(nb::make_tuple(args, kwargs), objects), out;
    Types types;
    for (const nb::object& object : objects) types.push_back(leaf_type(object, "make_jaxpr"));
    require_tracing_allowed(function_name(f));
    const Program program =
        closed_over_captured(stage(flat_function(f, in, out, "make_jaxpr"), types, function_name(f)));
    return nb::make_tuple(nb::cast(program), nb::cast(out), shape_structs(out, program.output_types()));
  });
  // (program, out tree, closed-over tracers, which are the program's first inputs).
  m.def("make_open_program", [](nb::object f, nb::tuple args) {
    std::vector<nb::object> objects;
    nb::object both = nb::make_tuple(args, nb::dict());
    PyTree in = flatten(both, objects), out;
    Types types;
    for (const nb::object& object : objects) types.push_back(leaf_type(object, "make_jaxpr"));
    require_tracing_allowed(function_name(f));
    Staged staged = stage(flat_function(f, in, out, "make_jaxpr"), types, function_name(f));
    nb::list captured;
    for (const Array& array : staged.captured) captured.append(wrap(array));
    return nb::make_tuple(nb::cast(staged.program), nb::cast(out), captured);
  });
  m.def("eval_shape", [](nb::object f, nb::tuple args, nb::dict kwargs) {
    auto [program, out] = stage_python(f, args, kwargs, "eval_shape");
    return shape_structs(out, program.output_types());
  });
  m.def("saved_residuals", [](nb::object f, nb::tuple args, nb::dict kwargs) {
    std::vector<nb::object> objects;
    nb::object both = nb::make_tuple(args, kwargs);
    PyTree in = flatten(both, objects), out;
    Types types;
    for (const nb::object& object : objects) types.push_back(leaf_type(object, "saved_residuals"));
    detail::Residuals residuals = detail::saved_residuals(flat_function(f, in, out, "saved_residuals"), types);
    nb::list list;
    for (std::size_t i = 0; i < residuals.types.size(); ++i) {
      list.append(nb::make_tuple(nb::cast(residuals.types[i]), residuals.origins[i]));
    }
    return list;
  });
  m.def("checkpoint_name", [](nb::handle x, const std::string& name) {
    return wrap(detail::name_leaf(to_array(x, "checkpoint_name"), name));
  });

  namespace policies = jax::checkpoint_policies;
  nb::class_<jax::CheckpointPolicy>(m, "CheckpointPolicy")
      .def("__repr__", [](const jax::CheckpointPolicy& self) { return concat("<checkpoint policy ", self.name, ">"); })
      .def("__call__",
           [](const jax::CheckpointPolicy& self, const Primitive& primitive, nb::args avals, nb::kwargs params) {
             Types types;
             for (nb::handle aval : avals) types.push_back(leaf_type(aval, "checkpoint policy"));
             nb::object attrs = nb::module_::import_("capibara._core").attr("to_attrs")(nb::cast(primitive), params);
             return self.save(primitive, types, nb::cast<const Attrs&>(attrs));
           });
  m.attr("everything_saveable") = nb::cast(policies::everything_saveable);
  m.attr("nothing_saveable") = nb::cast(policies::nothing_saveable);
  m.attr("dots_saveable") = nb::cast(policies::dots_saveable);
  m.attr("dots_with_no_batch_dims_saveable") = nb::cast(policies::dots_with_no_batch_dims_saveable);
  m.def("offload_dot_with_no_batch_dims", &policies::offload_dot_with_no_batch_dims);
  m.def("save_anything_except_these_names", &policies::save_anything_except_these_names);
  m.def("save_any_names_but_these", &policies::save_any_names_but_these);
  m.def("save_only_these_names", &policies::save_only_these_names);
  m.def("save_from_both_policies", &policies::save_from_both_policies);
  m.def("save_and_offload_only_these_names",
        [](std::vector<std::string> saved, std::vector<std::string> offloaded, std::string source, std::string target) {
          policies::OffloadOptions options;
          options.names_which_can_be_saved = std::move(saved);
          options.names_which_can_be_offloaded = std::move(offloaded);
          options.offload_src = std::move(source);
          options.offload_dst = std::move(target);
          return policies::save_and_offload_only_these_names(options);
        });
}

}  // namespace capibara::python
