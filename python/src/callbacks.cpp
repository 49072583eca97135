// Calls from running programs back into Python.
#include <capibara/callback.h>

#include <nanobind/stl/string.h>

#include "calls.h"
#include "interpreter_lock.h"

namespace capibara::python {

namespace {

// Converts a host function's results to the declared dtypes; the core checks their shapes, which vmap may extend.
Arrays check_results(const std::vector<nb::object>& objects, const Types& types) {
  Arrays arrays = to_arrays(objects, "callback");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].weak_type() || arrays[i].dtype() != types[i].dtype) arrays[i] = arrays[i].astype(types[i].dtype);
  }
  return arrays;
}

struct Prepared {
  PyTree out;
  Types types;
  Arrays leaves;
  jax::HostFunction function;
};

Prepared prepare(nb::object function, nb::object result_types, nb::tuple args, nb::dict kwargs) {
  Prepared call;
  std::vector<nb::object> type_objects, objects;
  call.out = flatten(result_types, type_objects);
  for (const nb::object& type : type_objects) call.types.push_back(leaf_type(type, "callback"));
  nb::object both = nb::make_tuple(args, kwargs);
  PyTree in = flatten(both, objects);
  call.leaves = to_arrays(objects, "callback");
  auto kept = std::make_shared<KeptObject>(function);
  auto tree = std::make_shared<KeptObject>(nb::cast(in));
  Types types = call.types;
  call.function = [kept, tree, types](const Arrays& values) {
    const InterpreterLock lock;
    count_host_call();
    nb::object pair = unflatten_arrays(nb::cast<const PyTree&>(tree->get()), values);
    nb::object result = call_python(kept->get(), nb::object(pair[0]), nb::object(pair[1]));
    std::vector<nb::object> outputs;
    const PyTree got = flatten(result, outputs);
    // The declared structure is used: the result may be nested more deeply if it has the same number of leaves.
    if (outputs.size() != types.size()) {
      throw RuntimeError(concat("callback: the function must return ", types.size(), " array",
                                types.size() == 1 ? "" : "s", ", got ", outputs.size(), " in ", got.to_string()));
    }
    return check_results(outputs, types);
  };
  return call;
}

}  // namespace

void bind_callbacks(nb::module_& m) {
  m.def(
      "pure_callback",
      [](nb::object f, nb::object types, nb::tuple args, nb::dict kwargs, nb::object vmap_method) {
        Prepared call = prepare(f, types, args, kwargs);
        jax::PureCallbackOptions options{.name = function_name(f)};
        if (!vmap_method.is_none()) options.vmap_method = nb::cast<std::string>(vmap_method);
        return unflatten_arrays(call.out, jax::pure_callback(call.function, call.types, call.leaves, options));
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg().none());
  m.def(
      "io_callback",
      [](nb::object f, nb::object types, nb::tuple args, nb::dict kwargs, bool ordered) {
        Prepared call = prepare(f, types, args, kwargs);
        return unflatten_arrays(call.out, jax::io_callback(call.function, call.types, call.leaves,
                                                           {.ordered = ordered, .name = function_name(f)}));
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  m.def("debug_callback", [](nb::object f, nb::tuple args, nb::dict kwargs, bool ordered) {
    std::vector<nb::object> objects;
    const PyTree tree = flatten(nb::make_tuple(args, kwargs), objects);
    Arrays operands;
    nb::list others;  // (leaf,) if it is not an array, None for arrays
    for (const nb::object& object : objects) {
      std::optional<Array> array = array_if(object);
      others.append(array ? nb::none() : nb::object(nb::make_tuple(object)));
      if (array) operands.push_back(std::move(*array));
    }
    auto kept = std::make_shared<KeptObject>(nb::make_tuple(f, nb::cast(tree), others));
    jax::debug::callback(
        [kept](const Arrays& values) {
          const InterpreterLock lock;
          count_host_call();
          std::vector<nb::object> leaves;
          std::size_t next = 0;
          for (nb::handle other : nb::borrow<nb::list>(kept->get()[2]))
            leaves.push_back(other.is_none() ? wrap(values[next++]) : nb::object(other[0]));
          const nb::object pair = nb::cast<const PyTree&>(kept->get()[1]).unflatten(leaves);
          call_python(kept->get()[0], nb::object(pair[0]), nb::object(pair[1]));
        },
        operands, {.ordered = ordered, .name = function_name(f)});
  });
  m.def("host_calls", &host_calls, "How often programs of this process have called functions of Python.");
  m.def("effects_barrier", &jax::effects_barrier);
}

}  // namespace capibara::python
