// custom_jvp, custom_vjp and custom_vmap for Python functions.
#include <capibara/lax.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "program/derive/custom.h"
#include "transforms/optimized_forward.h"

#include <algorithm>

namespace capibara::python {

namespace {

std::string text(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// A zero tangent or cotangent, as passed to rules with symbolic_zeros=True.
nb::object symbolic_zero(const ArrayType& primal) {
  ArrayType type = is_inexact(primal.dtype) ? primal.strong() : primal.with_dtype(DType::float0).strong();
  return nb::module_::import_("capibara._types").attr("SymbolicZero")(nb::cast(type));
}

nb::object with_symbolic_zeros(const PyTree& tree, std::span<const Array> arrays, const Types& primal_types) {
  std::vector<nb::object> leaves;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    leaves.push_back(arrays[i].defined() ? wrap(arrays[i]) : symbolic_zero(primal_types[i]));
  return tree.unflatten(leaves);
}

bool is_symbolic_zero(nb::handle object) {
  return nb::isinstance(object, nb::module_::import_("capibara._types").attr("SymbolicZero"));
}

// A tree of the leaves' types, as shown in errors: (float32[], float32[3]).
std::string tree_of_types(const PyTree& tree, const Types& types) {
  std::vector<nb::object> leaves;
  for (const ArrayType& type : types) leaves.push_back(nb::cast(to_string(type)));
  std::string shown = text(nb::str(tree.unflatten(leaves)));
  std::erase(shown, '\'');
  return shown;
}

Types types_of(const Arrays& arrays) {
  Types types;
  for (const Array& array : arrays) types.push_back(array.type());
  return types;
}

// Records the structure and types of the function's result when it is traced.
struct KnownResult {
  bool known = false;  // set by the function; a rule that runs without it sets the structure alone
  Types types;
};
FlatFunction noting_result(nb::handle function, const PyTree& in, const std::shared_ptr<CallStructure>& structure,
                           const std::shared_ptr<KnownResult>& result, const char* operation) {
  return [result, kept = kept_function(function, in, structure, operation)](std::span<const Array> inputs) {
    Arrays outputs = kept(inputs);
    result->known = true;
    result->types = types_of(outputs);
    return outputs;
  };
}

// True outside all transforms, where the function simply runs on its arguments.
bool runs_now(const Arrays& leaves) {
  return evaluating() && std::none_of(leaves.begin(), leaves.end(), [](const Array& leaf) { return leaf.is_tracer(); });
}

nb::object custom_jvp(nb::object function, nb::object rule, const std::string& name, nb::tuple args,
                      bool symbolic_zeros) {
  std::vector<nb::object> objects;
  PyTree in = flatten(args, objects);
  Arrays leaves = to_arrays(objects, "custom_jvp");
  if (runs_now(leaves)) return call_python(function, args);
  auto structure = std::make_shared<CallStructure>();
  auto known = std::make_shared<KnownResult>();
  auto kept_rule = std::make_shared<KeptObject>(rule);
  auto kept_in = std::make_shared<KeptObject>(nb::cast(in));
  std::string rule_name = function_name(rule);
  detail::FlatJvpRule flat_rule = [=](std::span<const Array> primals, std::span<const Array> tangents) {
    nb::gil_scoped_acquire lock;
    const PyTree& tree = nb::cast<const PyTree&>(kept_in->get());
    Types types;
    for (const Array& primal : primals) types.push_back(primal.type());
    nb::object given_tangents = symbolic_zeros ? with_symbolic_zeros(tree, tangents, types)
                                               : unflatten_arrays(tree, detail::filled_tangents(tangents, types));
    nb::object result = kept_rule->get()(unflatten_arrays(tree, primals), given_tangents);
    if ((!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) || nb::len(result) != 2) {
      throw TypeError(
          concat("Custom JVP rule ", rule_name, " for function ", name,
                 " must produce a pair (list or tuple of length two) representing primal and tangent outputs, but got ",
                 text(nb::repr(result)), "."));
    }
    std::vector<nb::object> primal_objects, tangent_objects;
    PyTree primal_tree = flatten(nb::object(result[0]), primal_objects);
    PyTree tangent_tree = flatten(nb::object(result[1]), tangent_objects);
    if (!(primal_tree == tangent_tree)) {
      throw TypeError(
          concat("Custom JVP rule ", rule_name, " for function ", name,
                 " must produce primal and tangent outputs with equal container (pytree) structures, but got ",
                 primal_tree.to_string(), " and ", tangent_tree.to_string(), " respectively."));
    }
    if (!known->known) {
      structure->out = primal_tree;
      known->known = true;
    }
    if (!(primal_tree == structure->out)) {
      throw TypeError(concat(
          "Custom JVP rule ", rule_name, " for function ", name,
          " must produce a pair (list or tuple of length two) where the first element represents the primal output "
          "(equal in value to the output of the custom_jvp-decorated function ",
          name,
          ", and in particular of the same container/pytree structure), but instead the JVP rule output's first "
          "element had container/pytree structure:\n    ",
          tree_of_types(primal_tree, types_of(to_arrays(primal_objects, "custom_jvp"))),
          "\nwhile the custom_jvp-decorated function ", name, " had output container/pytree structure:\n    ",
          tree_of_types(structure->out, known->types), "."));
    }
    JvpResult both{to_arrays(primal_objects, "custom_jvp"), {}};
    for (std::size_t i = 0; i < tangent_objects.size(); ++i) {
      if (symbolic_zeros && is_symbolic_zero(tangent_objects[i])) {
        both.tangents.emplace_back();
        continue;
      }
      both.tangents.push_back(is_symbolic_zero(tangent_objects[i])
                                  ? detail::filled_tangents(Arrays(1), {both.primals[i].type()})[0]
                                  : to_array(tangent_objects[i], "custom_jvp"));
      detail::check_jvp_types({both.primals[i]}, {both.tangents[i]});
    }
    return both;
  };
  FlatFunction flat = noting_result(function, in, structure, known, "custom_jvp");
  Arrays outputs = detail::call_custom(
      {flat, {name, rule_name, {}}, std::make_shared<CustomJvpRule>(rule_name, flat_rule), nullptr, symbolic_zeros},
      leaves);
  return unflatten_arrays(structure->out, outputs);
}

// The arguments of a custom_vjp call.
struct VjpArguments {
  PyTree tree;
  Types types;
};

// What one run of a forward rule saves for its backward rule. Python numbers among the residuals stay Python numbers:
// the backward rule may branch on them while it is traced.
struct ForwardRun {
  PyTree residuals;
  std::vector<nb::object> leaves;  // null: the next array
  Types out_types;

  Arrays take(nb::handle tree) {
    residuals = flatten(tree, leaves);
    Arrays arrays;
    for (nb::object& leaf : leaves) {
      if (is_number(leaf)) continue;
      arrays.push_back(to_array(leaf, "custom_vjp"));
      leaf = nb::object();
    }
    return arrays;
  }
  nb::object give(std::span<const Array> arrays) const {
    std::vector<nb::object> all = leaves;
    std::size_t next = 0;
    for (nb::object& leaf : all) {
      if (!leaf.is_valid()) leaf = wrap(arrays[next++]);
    }
    return residuals.unflatten(all);
  }
};

// A shared object that the core keeps and that holds Python objects: destroyed with the GIL held.
template <class T>
std::shared_ptr<T> kept() {
  return std::shared_ptr<T>(new T, [](T* old) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire lock;
    delete old;
  });
}

// True for a backward rule's spelling of zero: None, or a symbolic zero.
bool is_zero(nb::handle object) { return object.is_none() || is_symbolic_zero(object); }

// A symbolic zero carries a shape, which must be the argument's.
void check_symbolic_zero(nb::handle zero, const ArrayType& argument, const std::string& name, std::size_t position) {
  if (!is_symbolic_zero(zero)) return;
  const ArrayType type = nb::cast<ArrayType>(zero.attr("aval"));
  if (type.shape == argument.shape) return;
  throw ValueError(concat(
      "Custom VJP bwd rule for ", name,
      " must produce an output with the same type as the args tuple of the primal function, but at output[", position,
      "] the bwd rule produced a symbolic zero of type ", to_string(type), " corresponding to an input of type ",
      to_string(argument), ". Consider just returning a None here instead of a SymbolicZero."));
}

Arrays flatten_cotangents(const VjpArguments& given_arguments, nb::handle result, const std::string& name) {
  std::vector<PyTree> arguments = given_arguments.tree.children();
  nb::object sequence = nb::borrow(result);
  if (PyList_Check(result.ptr())) sequence = nb::steal(PyList_AsTuple(result.ptr()));
  if (!PyTuple_Check(sequence.ptr()) || static_cast<std::size_t>(nb::len(sequence)) != arguments.size()) {
    throw TypeError(
        concat("Custom VJP bwd rule for ", name,
               " must produce an output with the same container (pytree) structure as the args tuple of the primal "
               "function, and in particular must produce a tuple of length ",
               arguments.size(), " representing argument cotangents, but got ", text(nb::repr(result)), "."));
  }
  Arrays flat;
  std::size_t position = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    nb::object value = sequence[i];
    const std::size_t count = arguments[i].num_leaves();
    auto types = std::span<const ArrayType>(given_arguments.types).subspan(position, count);
    position += count;
    if (is_zero(value) || count == 0) {
      if (count == 1) check_symbolic_zero(value, types[0], name, i);
      flat.resize(flat.size() + count);
      continue;
    }
    // None inside the tree is the zero of a whole subtree.
    std::vector<nb::object> given;
    PyTree got = flatten(value, given, none_is_leaf());
    Arrays leaves;
    if (got == arguments[i]) {
      for (std::size_t k = 0; k < count; ++k) check_symbolic_zero(given[k], types[k], name, i);
      for (const nb::object& object : given)
        leaves.push_back(is_zero(object) ? Array() : to_array(object, "custom_vjp"));
    } else {
      std::vector<nb::object> numbers;
      for (std::size_t k = 0; k < count; ++k) numbers.push_back(nb::int_(k));
      nb::object shape_of_argument = arguments[i].unflatten(numbers);
      std::vector<nb::object> subtrees;
      try {
        subtrees = got.flatten_up_to(shape_of_argument);
      } catch (const ValueError&) {
        throw TypeError(
            concat("Custom VJP bwd rule for ", name,
                   " must produce an output with the same container (pytree) structure as the args tuple of "
                   "the primal function: argument ",
                   i, " has ", arguments[i].to_string(), ", but got ", got.to_string(), "."));
      }
      for (std::size_t k = 0; k < subtrees.size(); ++k) {
        std::vector<nb::object> below;
        flatten(subtrees[k], below);
        if (is_zero(given[k]))
          leaves.resize(leaves.size() + below.size());
        else
          leaves.push_back(to_array(given[k], "custom_vjp"));
      }
    }
    // Zeros written as None skip the type check.
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      if (!leaves[k].defined()) {
        flat.emplace_back();
        continue;
      }
      const TreeDef one = TreeDef::leaf();
      detail::append_cotangents(flat, {name, "fwd", "bwd"}, i, one, &one, {leaves[k]}, types.subspan(k, 1));
    }
  }
  return flat;
}

nb::object custom_vjp(nb::object function, nb::object forward, nb::object backward, const std::string& name,
                      nb::tuple args, bool symbolic_zeros, bool optimize_remat) {
  std::vector<nb::object> objects;
  auto in = kept<VjpArguments>();
  in->tree = flatten(args, objects);
  Arrays leaves = to_arrays(objects, "custom_vjp");
  if (runs_now(leaves)) return call_python(function, args);
  in->types = types_of(leaves);
  auto structure = std::make_shared<CallStructure>();
  auto known = std::make_shared<KnownResult>();
  auto kept_forward = std::make_shared<KeptObject>(forward), kept_backward = std::make_shared<KeptObject>(backward);
  CustomVjpRule::Forward flat_forward = [=](std::span<const Array> arguments, const std::vector<bool>& perturbed) {
    nb::gil_scoped_acquire lock;
    nb::object given;
    if (symbolic_zeros) {
      nb::object primal = nb::module_::import_("capibara._types").attr("CustomVJPPrimal");
      std::vector<nb::object> leaves;
      for (std::size_t i = 0; i < arguments.size(); ++i)
        leaves.push_back(primal(wrap(arguments[i]), nb::bool_(perturbed[i])));
      given = in->tree.unflatten(leaves);
    } else {
      given = unflatten_arrays(in->tree, arguments);
    }
    nb::object result = call_python(kept_forward->get(), given);
    if ((!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) || nb::len(result) != 2) {
      throw TypeError(
          concat("Custom VJP fwd rule ", function_name(kept_forward->get()), " for function ", name,
                 " must produce a pair (list or tuple of length two) where the first element represents the "
                 "primal output and the second element represents residuals, but got ",
                 text(nb::repr(result)), "."));
    }
    std::vector<nb::object> outputs;
    PyTree out = flatten(nb::object(result[0]), outputs);
    if (!known->known) {
      structure->out = out;
      known->known = true;
    }
    if (!(out == structure->out)) {
      throw TypeError(concat("Custom VJP fwd rule ", function_name(kept_forward->get()), " for function ", name,
                             " must produce a pair whose first element has the same container (pytree) structure as "
                             "the primal function's output: expected ",
                             structure->out.to_string(), ", but got ", out.to_string(), "."));
    }
    auto run = kept<ForwardRun>();
    CustomVjpRule::Forwarded forwarded{to_arrays(outputs, "custom_vjp"), run->take(nb::object(result[1])), {}};
    run->out_types = types_of(forwarded.outputs);
    for (std::size_t i = 0; i < known->types.size(); ++i) {
      const ArrayType &expected = known->types[i], &got = run->out_types[i];
      if (got.shape == expected.shape && got.dtype == expected.dtype) continue;
      throw TypeError(concat(
          "Custom VJP fwd rule ", function_name(kept_forward->get()), " for function ", name,
          " must produce a pair (list or tuple of length two) where the first element represents the primal output "
          "(equal to the output of the custom_vjp-decorated function ",
          name,
          ") and the second element represents residuals (i.e. values stored from the forward pass for use on the "
          "backward pass), but instead the fwd rule output's first element had shapes/dtypes of:\n    ",
          tree_of_types(out, run->out_types), "\nwhile the custom_vjp-decorated function ", name,
          " had output shapes/dtypes of:\n    ", tree_of_types(structure->out, known->types)));
    }
    forwarded.backward = [=](std::span<const Array> residuals, std::span<const Array> cotangents) {
      nb::gil_scoped_acquire inner_lock;
      nb::object of_result =
          symbolic_zeros ? with_symbolic_zeros(structure->out, cotangents, run->out_types)
                         : unflatten_arrays(structure->out, detail::filled_tangents(cotangents, run->out_types));
      nb::object gradients = kept_backward->get()(run->give(residuals), of_result);
      return flatten_cotangents(*in, gradients, name);
    };
    return forwarded;
  };
  const detail::RuleNames names{name, function_name(forward), function_name(backward)};
  FlatFunction flat = noting_result(function, in->tree, structure, known, "custom_vjp");
  if (optimize_remat) flat_forward = detail::optimized_forward(flat, flat_forward, names);
  Arrays outputs = detail::call_custom(
      {flat, names, nullptr, std::make_shared<CustomVjpRule>(names.first, names.second, flat_forward), symbolic_zeros},
      leaves);
  return unflatten_arrays(structure->out, outputs);
}

nb::object custom_vmap(nb::object function, nb::object rule, const std::string& name, nb::tuple args) {
  std::vector<nb::object> objects;
  PyTree in = flatten(args, objects);
  Arrays leaves = to_arrays(objects, "custom_vmap");
  auto structure = std::make_shared<CallStructure>();
  auto kept_rule = std::make_shared<KeptObject>(rule);
  auto kept_in = std::make_shared<KeptObject>(nb::cast(in));
  detail::FlatVmapRule flat_rule = [=](int64_t axis_size, const std::vector<bool>& batched,
                                       std::span<const Array> arguments) {
    nb::gil_scoped_acquire lock;
    const PyTree& tree = nb::cast<const PyTree&>(kept_in->get());
    std::vector<nb::object> flags;
    for (bool flag : batched) flags.push_back(nb::bool_(flag));
    nb::object in_batched = tree.unflatten(flags);
    nb::list in_list;
    for (nb::handle flag : in_batched) in_list.append(flag);
    nb::object values = unflatten_arrays(tree, arguments);
    nb::list all;
    all.append(axis_size);
    all.append(in_list);
    for (nb::handle value : values) all.append(value);
    nb::object result = call_python(kept_rule->get(), nb::tuple(all));
    if (!PyTuple_Check(result.ptr()) || nb::len(result) != 2) {
      throw TypeError(concat("custom_vmap: the rule of ", name,
                             " must return a pair (output, which of its leaves are batched), got ",
                             text(nb::repr(result))));
    }
    std::vector<nb::object> outputs, out_flags;
    PyTree out = flatten(nb::object(result[0]), outputs);
    PyTree flag_tree = flatten(nb::object(result[1]), out_flags);
    if (!(out == flag_tree)) {
      throw ValueError(
          concat("structure of output value and output batching specification returned by custom vmap rule (",
                 function_name(kept_rule->get()), ") do not match: ", out.to_string(), " and ", flag_tree.to_string()));
    }
    if (!(out == structure->out)) {
      throw ValueError(concat("structure of output returned by custom vmap rule (", function_name(kept_rule->get()),
                              ") does not match that of original custom-vmapped function: ", out.to_string(), " and ",
                              structure->out.to_string()));
    }
    std::vector<bool> which;
    for (const nb::object& flag : out_flags) which.push_back(nb::cast<bool>(flag));
    return std::pair(to_arrays(outputs, "custom_vmap"), which);
  };
  Arrays outputs =
      detail::custom_vmap_leaves(kept_function(function, in, structure, "custom_vmap"), plain_leaves(leaves.size()),
                                 leaves, {name, function_name(rule), {}}, flat_rule);
  return unflatten_arrays(structure->out, outputs);
}

}  // namespace

void bind_custom(nb::module_& m) {
  m.def("check_backward_rules", [](bool on) { detail::checks_backward_rules() = on; });
  m.def("custom_jvp", &custom_jvp);
  m.def("custom_vjp", &custom_vjp);
  m.def("custom_vmap", &custom_vmap);
}

}  // namespace capibara::python
