// Structured control flow on Python's pytrees: scan, while_loop, fori_loop, cond, switch, map, associative_scan,
// solvers.
#include <capibara/control.h>
#include <capibara/jit.h>
#include <capibara/solve.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "body_programs.h"
#include "calls.h"
#include "ref_checks.h"

namespace capibara::python {

namespace {

namespace flat = jax::lax::detail;

std::string describe(const PyTree& tree) { return tree.to_string(); }

// The arguments of a function with these trees, each leaf replaced by its index, and no keyword arguments.
std::function<nb::object()> numbered(const PyTree& arguments) {
  return [&arguments] { return nb::make_tuple(arguments.unflatten(numbers(arguments.num_leaves())), nb::dict()); };
}

nb::object scan(nb::object function, nb::object init, nb::object xs, nb::object length, bool reverse, int64_t unroll) {
  std::vector<nb::object> carry_objects, xs_objects;
  PyTree carry_tree = flatten(init, carry_objects), xs_tree = flatten(xs, xs_objects), ys_tree;
  Arrays carry = to_arrays(carry_objects, "scan"), slices = to_arrays(xs_objects, "scan");
  std::optional<int64_t> steps;
  if (!length.is_none()) {
    nb::object index = nb::steal(PyNumber_Index(length.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    steps = nb::cast<int64_t>(index);
  }
  const std::size_t carries = carry.size();
  const PyTree arguments = PyTree::tuple({carry_tree, xs_tree});
  Arrays leaves = carry;
  leaves.insert(leaves.end(), slices.begin(), slices.end());
  refuse_shared_refs(function, "scan", leaves, {}, numbered(arguments));
  FlatFunction body = [&](std::span<const Array> in) {
    TracedCall traced(function, "scan", arguments);
    nb::object result =
        function(unflatten_arrays(carry_tree, in.first(carries)), unflatten_arrays(xs_tree, in.subspan(carries)));
    refuse_returned_refs(function, "scan", result, in);
    if ((!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) || nb::len(result) != 2) {
      throw TypeError(concat("scan body output must be a pair, got ", nb::cast<std::string>(nb::repr(result)), "."));
    }
    std::vector<nb::object> out_carry, ys;
    PyTree got = flatten(nb::object(result[0]), out_carry);
    if (!(got == carry_tree)) {
      throw TypeError(
          concat("scan body function carry input and carry output must have the same pytree structure, but they "
                 "differ: the input carry has "
                 "structure ",
                 describe(carry_tree), " and the output carry has structure ", describe(got), "."));
    }
    ys_tree = flatten(nb::object(result[1]), ys);
    Arrays all = to_arrays(out_carry, "scan");
    for (Array& y : to_arrays(ys, "scan")) all.push_back(std::move(y));
    return all;
  };
  Arrays outputs = flat::scan_flat(remembered_body(function, "scan", arguments, body, &ys_tree), carry, slices, steps,
                                   reverse, unroll);
  std::span<const Array> all(outputs);
  return nb::make_tuple(unflatten_arrays(carry_tree, all.first(carries)),
                        unflatten_arrays(ys_tree, all.subspan(carries)));
}

nb::object while_loop(nb::object condition, nb::object body, nb::object init) {
  std::vector<nb::object> objects;
  PyTree tree = flatten(init, objects);
  Arrays state = to_arrays(objects, "while_loop");
  const PyTree arguments = PyTree::tuple({tree});
  const FlatFunction test = [&](std::span<const Array> in) {
    TracedCall traced(condition, "while_cond", arguments);
    nb::object result = condition(unflatten_arrays(tree, in));
    std::optional<Array> predicate = array_if(result);
    if (!predicate)
      throw TypeError(concat("cond_fun must return a boolean scalar, but got pytree ",
                             nb::cast<std::string>(nb::repr(result)), "."));
    return Arrays{*predicate};
  };
  const FlatFunction step = [&](std::span<const Array> in) {
    TracedCall traced(body, "while_body", arguments);
    nb::object result = body(unflatten_arrays(tree, in));
    refuse_returned_refs(body, "while_body", result, in);
    std::vector<nb::object> outputs;
    PyTree got = flatten(result, outputs);
    if (!(got == tree)) {
      throw TypeError(
          concat("while_loop body function carry input and carry output must have the same pytree structure, but they "
                 "differ: the input carry has "
                 "structure ",
                 describe(tree), " and the output carry has structure ", describe(got), "."));
    }
    return to_arrays(outputs, "while_loop");
  };
  return unflatten_arrays(tree, flat::while_flat(remembered_body(condition, "while_cond", arguments, test),
                                                 remembered_body(body, "while_body", arguments, step), state));
}

nb::object run_branches(const Array& index, const std::vector<nb::object>& branches, nb::tuple operands,
                        const char* name) {
  std::vector<nb::object> objects;
  PyTree in = flatten(operands, objects);
  Arrays leaves = to_arrays(objects, name);
  if (!branches.empty()) {  // the branch of a true predicate comes last, and is the first one that users write
    const nb::object& first = std::string_view(name) == "cond" ? branches.back() : branches.front();
    refuse_shared_refs(first, name, leaves, {}, numbered(in));
  }
  std::vector<PyTree> outs(branches.size());
  std::vector<FlatFunction> functions;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    functions.push_back([&, i](std::span<const Array> values) {
      TracedCall traced(branches[i], name, in);
      nb::object result = call_python(branches[i], unflatten_arrays(in, values));
      refuse_returned_refs(branches[i], name, result, values);
      std::vector<nb::object> outputs;
      outs[i] = flatten(result, outputs);
      return to_arrays(outputs, name);
    });
  }
  auto checked = [&](std::size_t i, const FlatFunction& branch) -> FlatFunction {
    return [&, i, branch](std::span<const Array> values) {
      Arrays results = branch(values);
      if (i > 0 && !(outs[i] == outs[0])) {
        const bool two = std::string_view(name) == "cond";
        throw TypeError(concat(name, ": branch outputs must have the same pytree structure, but they differ: ",
                               two ? "false_fun" : "branch 0", " gives ", describe(outs[0]), ", ",
                               two ? std::string("true_fun") : concat("branch ", i), " gives ", describe(outs[i]),
                               "."));
      }
      return results;
    };
  };
  std::vector<FlatFunction> remembered;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    remembered.push_back(checked(i, remembered_body(branches[i], name, in, functions[i], &outs[i])));
  }
  Arrays outputs = flat::cond_flat(index, remembered, leaves);
  return unflatten_arrays(outs[0], outputs);
}

bool runs_eagerly(const Array& value) { return detail::jit_disabled() && !value.is_tracer(); }

nb::object cond(nb::object predicate, nb::object on_true, nb::object on_false, nb::tuple operands) {
  if (!PyCallable_Check(on_true.ptr()) || !PyCallable_Check(on_false.ptr())) {
    throw TypeError("lax.cond: true_fun and false_fun arguments should be callable.");
  }
  std::optional<Array> truth = array_if(predicate);
  if (!truth) {
    throw TypeError(concat("Pred must be a scalar, got ", nb::cast<std::string>(nb::repr(predicate)), " of type ",
                           nb::cast<std::string>(nb::str(predicate.type())), "."));
  }
  if (runs_eagerly(*truth)) return call_python(static_cast<bool>(*truth) ? on_true : on_false, operands);
  return run_branches(flat::predicate_index(*truth), {on_false, on_true}, operands, "cond");
}

nb::object switch_case(nb::object index, nb::object branches, nb::tuple operands) {
  std::vector<nb::object> functions;
  for (nb::handle branch : branches) {
    if (!PyCallable_Check(branch.ptr()))
      throw TypeError("lax.switch: branches argument should be a sequence of callables.");
    functions.push_back(nb::borrow(branch));
  }
  if (functions.empty()) throw ValueError("Empty branch sequence");
  Array position = to_array(index, "switch");
  Array clamped = flat::branch_index(position, functions.size());
  if (functions.size() == 1) return call_python(functions[0], operands);
  if (runs_eagerly(position))
    return call_python(functions[static_cast<std::size_t>(clamped.item<int64_t>())], operands);
  return run_branches(clamped, functions, operands, "switch");
}

nb::object associative_scan(nb::object function, nb::object elements, bool reverse, int64_t axis, bool tpu_optimized) {
  std::vector<nb::object> objects;
  PyTree tree = flatten(elements, objects);
  auto combine = [&](const Arrays& a, const Arrays& b) {
    nb::object result = function(unflatten_arrays(tree, a), unflatten_arrays(tree, b));
    std::vector<nb::object> outputs;
    PyTree got = flatten(result, outputs);
    if (!(got == tree)) {
      throw TypeError(concat("associative_scan: fn must return the structure of its arguments, ", describe(tree),
                             ", got ", describe(got)));
    }
    return to_arrays(outputs, "associative_scan");
  };
  return unflatten_arrays(
      tree, flat::associative_scan_flat(combine, to_arrays(objects, "associative_scan"), axis, reverse, tpu_optimized));
}

nb::object map_batched(nb::object function, nb::object xs, int64_t batch_size) {
  std::vector<nb::object> objects;
  PyTree tree = flatten(xs, objects), out;
  FlatFunction one = [&](std::span<const Array> in) {
    nb::object result = function(unflatten_arrays(tree, in));
    std::vector<nb::object> outputs;
    out = flatten(result, outputs);
    return to_arrays(outputs, "map");
  };
  auto [blocks, rest] = flat::split_in_blocks(to_arrays(objects, "map"), batch_size);
  Arrays done, rest_done;
  if (blocks.empty() || blocks[0].shape(0) > 0) {
    done = flat::scan_flat(
        [&](std::span<const Array> in) { return flat::vmap_over_front(one, Arrays(in.begin(), in.end())); }, {}, blocks,
        std::nullopt, false, 1);
  }
  if (!rest.empty()) rest_done = flat::vmap_over_front(one, rest);
  return unflatten_arrays(out, flat::join_blocks(done, rest_done));
}

// ---- implicit solves ---------------------------------------------------------------------------------------------

// A Python function from a tree to a tree of the same structure; kept by the core.
FlatFunction tree_map_function(nb::handle function, const PyTree& tree, const char* what) {
  auto kept = std::make_shared<KeptObject>(function);
  auto kept_tree = std::make_shared<KeptObject>(nb::cast(tree));
  return [kept, kept_tree, what](std::span<const Array> in) {
    nb::gil_scoped_acquire lock;
    const PyTree& structure = nb::cast<const PyTree&>(kept_tree->get());
    nb::object result = kept->get()(unflatten_arrays(structure, in));
    std::vector<nb::object> outputs;
    PyTree got = flatten(result, outputs);
    if (!(got == structure))
      throw TypeError(
          concat(what, " output pytree structure must match ", structure.to_string(), ", got ", got.to_string()));
    return to_arrays(outputs, what);
  };
}

struct AuxStructure {
  PyTree tree;
};

flat::FlatSolver solver_function(nb::handle solver, const PyTree& tree, bool has_aux, std::shared_ptr<AuxStructure> aux,
                                 const char* what) {
  auto kept = std::make_shared<KeptObject>(solver);
  auto kept_tree = std::make_shared<KeptObject>(nb::cast(tree));
  return [=](const FlatFunction& function, std::span<const Array> b) {
    nb::gil_scoped_acquire lock;
    PyTree structure = nb::cast<PyTree>(kept_tree->get());
    nb::object matvec = nb::cpp_function(
        [function, structure](nb::handle x) {
          std::vector<nb::object> objects;
          flatten(x, objects);
          return unflatten_arrays(structure, function(to_arrays(objects, "solve")));
        },
        nb::arg().none());
    nb::object result = kept->get()(matvec, unflatten_arrays(structure, b));
    nb::object value = result, rest = nb::none();
    if (has_aux) std::tie(value, rest) = split_auxiliary(result, what);
    std::vector<nb::object> outputs, aux_objects;
    PyTree got = flatten(value, outputs);
    if (!(got == structure))
      throw TypeError(
          concat(what, " output pytree structure must match ", structure.to_string(), ", got ", got.to_string()));
    Arrays all = to_arrays(outputs, what);
    if (has_aux) {
      aux->tree = flatten(rest, aux_objects);
      for (Array& a : to_arrays(aux_objects, what)) all.push_back(std::move(a));
    }
    return all;
  };
}

nb::object solved(const PyTree& tree, const Arrays& outputs, bool has_aux, const AuxStructure& aux) {
  std::span<const Array> all(outputs);
  nb::object x = unflatten_arrays(tree, all.first(tree.num_leaves()));
  if (!has_aux) return x;
  return nb::make_tuple(x, unflatten_arrays(aux.tree, all.subspan(tree.num_leaves())));
}

nb::object custom_root(nb::object f, nb::object guess, nb::object solve, nb::object tangent_solve, bool has_aux) {
  std::vector<nb::object> objects;
  PyTree tree = flatten(guess, objects);
  auto aux = std::make_shared<AuxStructure>();
  Arrays outputs = flat::custom_root_flat(tree_map_function(f, tree, "f"), to_arrays(objects, "custom_root"),
                                          solver_function(solve, tree, has_aux, aux, "solve"),
                                          solver_function(tangent_solve, tree, false, aux, "tangent_solve"), has_aux);
  return solved(tree, outputs, has_aux, *aux);
}

nb::object custom_linear_solve(nb::object matvec, nb::object b, nb::object solve, nb::object transpose_solve,
                               bool symmetric, bool has_aux) {
  std::vector<nb::object> objects;
  PyTree tree = flatten(b, objects);
  auto aux = std::make_shared<AuxStructure>();
  std::optional<flat::FlatSolver> transposed;
  if (!transpose_solve.is_none()) transposed = solver_function(transpose_solve, tree, has_aux, aux, "transpose_solve");
  flat::LinearSolveFlags flags;
  flags.symmetric = symmetric;
  flags.has_aux = has_aux;
  Arrays outputs =
      flat::linear_solve_flat(tree_map_function(matvec, tree, "matvec"), to_arrays(objects, "custom_linear_solve"),
                              solver_function(solve, tree, has_aux, aux, "solve"), transposed, flags);
  return solved(tree, outputs, has_aux, *aux);
}

}  // namespace

void bind_control(nb::module_& m) {
  m.def("scan", &scan, nb::arg("f"), nb::arg("init").none(), nb::arg("xs").none(), nb::arg("length").none(),
        nb::arg("reverse"), nb::arg("unroll"));
  m.def("while_loop", &while_loop, nb::arg("cond_fun"), nb::arg("body_fun"), nb::arg("init_val").none());
  m.def("cond", &cond, nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  m.def("switch", &switch_case);
  m.def("associative_scan", &associative_scan);
  m.def("map_batched", &map_batched);
  m.def("custom_root", &custom_root);
  m.def("custom_linear_solve", &custom_linear_solve, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
        nb::arg());
}

}  // namespace capibara::python
