// linearize, vjp and linear_transpose for Python functions: linear programs as functions that are pytrees.
#include <capibara/transforms.h>

#include <nanobind/stl/string.h>

#include "calls.h"
#include "programs.h"
#include "transforms/linear_map.h"

namespace capibara::python {

namespace {

// A linearized function without its residuals, which are its first arguments: Python keeps both in a Partial, which can
// be returned from and passed to transformed functions.
struct LinearForm {
  std::shared_ptr<const detail::LinearMap> map;  // without residuals
  PyTree in, out;                                // of the positional arguments as a tuple, and of the result
  std::string name;
  std::size_t residuals = 0;

  Types types() const {
    Types all = map->in_types;
    all.insert(all.end(), map->out_types.begin(), map->out_types.end());
    return all;
  }
  friend bool operator==(const LinearForm& a, const LinearForm& b) {
    return a.map->linearized.linear == b.map->linearized.linear &&
           a.map->linearized.nonzero_outputs == b.map->linearized.nonzero_outputs &&
           a.map->differentiated == b.map->differentiated && a.types() == b.types() && a.in == b.in && a.out == b.out;
  }

  // The map with its residuals, and the remaining arguments.
  std::pair<detail::LinearMap, nb::tuple> apply(nb::args args, const char* operation) const {
    detail::LinearMap whole = *map;
    nb::list rest;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (i < residuals)
        whole.linearized.residuals.push_back(to_operand(args[i], operation));
      else
        rest.append(args[i]);
    }
    return {std::move(whole), nb::tuple(rest)};
  }

  nb::object push(nb::args args) const {
    auto [whole, tangents] = apply(args, "linearize");
    std::vector<nb::object> objects;
    PyTree got = flatten(tangents, objects);
    if (!(got == in)) {
      throw TypeError(
          concat("linearized function called on tangent values inconsistent with the original primal "
                 "values: got ",
                 got.to_string(), " for primal structure ", in.to_string()));
    }
    TreeDef plain = plain_leaves(in.num_leaves());
    return unflatten_arrays(out, detail::push_forward(whole, plain, plain, to_arrays(objects, "linearize")));
  }
  nb::object pull(nb::args args) const {
    auto [whole, cotangents] = apply(args, "vjp");
    if (cotangents.size() != 1) {
      throw TypeError(concat("The function returned by `jax.vjp` applied to ", name, " was called with ",
                             cotangents.size(),
                             " arguments, but it takes one: the cotangent of what the function returns, in one tuple "
                             "where that is a tuple."));
    }
    std::vector<nb::object> objects;
    PyTree got = flatten(nb::object(cotangents[0]), objects);
    if (!(got == out)) {
      throw ValueError(concat("unexpected tree structure of argument to vjp function: got ", got.to_string(),
                              ", but expected to match ", out.to_string()));
    }
    TreeDef plain = plain_leaves(out.num_leaves());
    return unflatten_arrays(in, detail::pull_back(whole, plain, plain, to_arrays(objects, "vjp")));
  }
};
struct PushForward : LinearForm {};
struct PullBack : LinearForm {};

nb::object partial_of(nb::object form, const Arrays& values) {
  nb::list arguments;
  arguments.append(form);
  for (const Array& value : values) arguments.append(wrap(value));
  return call_python(nb::module_::import_("capibara.jax.tree_util").attr("Partial"), nb::tuple(arguments));
}

template <class Function>
nb::object linearize(const char* operation, nb::object function, nb::tuple primals, bool has_aux) {
  std::vector<nb::object> objects;
  PyTree in = flatten(primals, objects);
  Arrays leaves = to_arrays(objects, operation);
  SplitResult result(has_aux);
  FlatFunction flat = [&](std::span<const Array> values) {
    TracedCall traced(function, operation);
    return result.take(call_python(function, unflatten_arrays(in, values)), operation);
  };
  detail::LinearizedCall call =
      detail::linearize_leaves(flat, leaves, std::vector<bool>(leaves.size(), true), result.main);
  auto map = std::make_shared<detail::LinearMap>(*call.map);
  const Arrays residuals = std::move(map->linearized.residuals);
  map->linearized.residuals.clear();
  Function linear;
  linear.map = map;
  linear.in = in;
  linear.out = result.tree;
  linear.name = function_name(function);
  linear.residuals = residuals.size();
  nb::object callable = partial_of(nb::cast(std::move(linear), nb::rv_policy::move), residuals);
  if (!has_aux) return nb::make_tuple(result.value(call.outputs), callable);
  return nb::make_tuple(result.value(call.outputs), callable, result.auxiliary(call.outputs));
}

// A transposed function without its captured values, which are its first arguments.
struct Transposed {
  std::shared_ptr<const detail::TransposedFunction> function;
  PyTree in, out;
  std::size_t captured = 0;

  friend bool operator==(const Transposed& a, const Transposed& b) {
    return a.function->staged.program == b.function->staged.program && a.in == b.in && a.out == b.out;
  }
  nb::object operator()(nb::args args) const {
    if (args.size() != captured + 1) {
      throw TypeError(
          concat("linear_transpose: the transposed function takes one cotangent, got ", args.size() - captured));
    }
    detail::TransposedFunction whole = *function;
    for (std::size_t i = 0; i < captured; ++i) whole.staged.captured.push_back(to_operand(args[i], "linear_transpose"));
    std::vector<nb::object> objects;
    PyTree got = flatten(nb::object(args[captured]), objects);
    if (!(got == out)) {
      throw TypeError(concat("cotangent tree does not match function output, expected ", out.to_string(), " but got ",
                             got.to_string()));
    }
    TreeDef plain = plain_leaves(objects.size());
    return unflatten_arrays(in, detail::apply_transposed(whole, plain, plain, to_arrays(objects, "linear_transpose")));
  }
};

nb::object linear_transpose(nb::object function, nb::args primals) {
  std::vector<nb::object> objects;
  Transposed transposed;
  transposed.in = flatten(primals, objects);
  Types types;
  for (const nb::object& object : objects) types.push_back(leaf_type(object, "linear_transpose"));
  FlatFunction flat = [&](std::span<const Array> values) {
    TracedCall traced(function, "linear_transpose", transposed.in);
    nb::object result = call_python(function, unflatten_arrays(transposed.in, values));
    std::vector<nb::object> outputs;
    transposed.out = flatten(result, outputs);
    return to_arrays(outputs, "linear_transpose");
  };
  auto made = std::make_shared<detail::TransposedFunction>(*detail::transpose_leaves(flat, types));
  const Arrays captured = std::move(made->staged.captured);
  made->staged.captured.clear();
  transposed.function = made;
  transposed.captured = captured.size();
  return partial_of(nb::cast(std::move(transposed), nb::rv_policy::move), captured);
}

// Compared and hashed by program, as auxiliary data of a tree structure must be.
template <class Form>
void def_form(nb::class_<Form>& type, const Program& (*program_of)(const Form&)) {
  type.def(
          "__eq__",
          [](const Form& self, nb::handle other) {
            return nb::isinstance<Form>(other) && self == nb::cast<const Form&>(other);
          },
          nb::arg().none())
      .def("__hash__", [program_of](const Form& self) { return program_of(self).hash(); })
      .def("__repr__", [program_of](const Form& self) { return program_of(self).to_string(); })
      .def_prop_ro("args", [program_of](const Form& self) { return nb::make_tuple(OpenProgram{program_of(self)}); });
}

}  // namespace

void bind_linear_functions(nb::module_& m) {
  m.def("vjp",
        [](nb::object f, nb::tuple primals, bool has_aux) { return linearize<PullBack>("vjp", f, primals, has_aux); });
  m.def("linearize", [](nb::object f, nb::tuple primals, bool has_aux) {
    return linearize<PushForward>("linearize", f, primals, has_aux);
  });
  m.def("linear_transpose", &linear_transpose);
  nb::class_<PullBack> pull(m, "PullBack");
  pull.def("__call__", [](const PullBack& self, nb::args args) { return self.pull(args); });
  def_form<PullBack>(pull, [](const PullBack& self) -> const Program& { return self.map->linearized.linear; });
  nb::class_<PushForward> push(m, "PushForward");
  push.def("__call__", [](const PushForward& self, nb::args args) { return self.push(args); });
  def_form<PushForward>(push, [](const PushForward& self) -> const Program& { return self.map->linearized.linear; });
  nb::class_<Transposed> transposed(m, "Transposed");
  transposed.def("__call__", &Transposed::operator());
  def_form<Transposed>(transposed,
                       [](const Transposed& self) -> const Program& { return self.function->staged.program; });
}

}  // namespace capibara::python
