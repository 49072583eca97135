// Calls from running programs back into Python, and refs.
#include <capibara/callback.h>
#include <capibara/ref.h>

#include <nanobind/stl/string.h>

#include "array_index.h"
#include "calls.h"

namespace capibara::python {

namespace {

// The results of a host function in the dtypes promised; the core checks their shapes, which vmap may extend.
Arrays check_results(const std::vector<nb::object>& objects, const Types& types) {
  Arrays arrays = to_arrays(objects, "callback");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].weak_type() || arrays[i].dtype() != types[i].dtype) arrays[i] = arrays[i].astype(types[i].dtype);
  }
  return arrays;
}

// ref[...] and ref[:] mean the whole array.
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
  auto trees = std::make_shared<KeptObject>(nb::make_tuple(nb::cast(in), nb::cast(call.out)));
  Types types = call.types;
  call.function = [kept, trees, types](const Arrays& values) {
    nb::gil_scoped_acquire lock;
    nb::object in_tree = trees->get()[0], out_tree = trees->get()[1];
    nb::object pair = unflatten_arrays(nb::cast<const PyTree&>(in_tree), values);
    nb::object result = call_python(kept->get(), nb::object(pair[0]), nb::object(pair[1]));
    std::vector<nb::object> outputs;
    PyTree got = flatten(result, outputs);
    const PyTree& expected = nb::cast<const PyTree&>(out_tree);
    if (!(got == expected)) {
      throw RuntimeError(
          concat("callback: the function must return ", expected.to_string(), ", got ", got.to_string()));
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
        jax::PureCallbackOptions options;
        if (!vmap_method.is_none()) options.vmap_method = nb::cast<std::string>(vmap_method);
        return unflatten_arrays(call.out, jax::pure_callback(call.function, call.types, call.leaves, options));
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg().none());
  m.def(
      "io_callback",
      [](nb::object f, nb::object types, nb::tuple args, nb::dict kwargs, bool ordered) {
        Prepared call = prepare(f, types, args, kwargs);
        return unflatten_arrays(call.out,
                                jax::io_callback(call.function, call.types, call.leaves, {.ordered = ordered}));
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  m.def("debug_callback", [](nb::object f, nb::tuple args, nb::dict kwargs, bool ordered) {
    std::vector<nb::object> objects;
    nb::object both = nb::make_tuple(args, kwargs);
    auto in = std::make_shared<KeptObject>(nb::cast(flatten(both, objects)));
    auto kept = std::make_shared<KeptObject>(f);
    jax::debug::callback(
        [kept, in](const Arrays& values) {
          nb::gil_scoped_acquire lock;
          nb::object pair = unflatten_arrays(nb::cast<const PyTree&>(in->get()), values);
          call_python(kept->get(), nb::object(pair[0]), nb::object(pair[1]));
        },
        to_arrays(objects, "debug.callback"), {.ordered = ordered});
  });
  m.def("effects_barrier", &jax::effects_barrier);

  nb::class_<jax::Ref>(m, "Ref")
      .def_prop_ro("shape", [](const jax::Ref& self) { return nb::object(wrap(self.handle()).attr("shape")); })
      .def_prop_ro("dtype", [](const jax::Ref& self) { return numpy_dtype(self.handle().dtype()); })
      .def_prop_ro("ndim", [](const jax::Ref& self) { return self.handle().ndim(); })
      .def("__getitem__",
           [](const jax::Ref& self, nb::handle key) {
             Array whole = self.get();
             if (names_everything(key)) return wrap(whole);
             return wrap(capibara::index(whole, index_entries(key, whole)));
           })
      .def("__setitem__", [](const jax::Ref& self, nb::handle key, nb::handle value) {
        if (names_everything(key)) return self.set(to_array(value, "ref"));
        Array whole = self.get();
        self.set(IndexUpdate(whole, index_entries(key, whole)).set(to_array(value, "ref")));
      });
  m.def("new_ref", [](nb::handle initial) { return jax::new_ref(to_array(initial, "new_ref")); });
  m.def("freeze_ref", [](const jax::Ref& ref) { return wrap(jax::freeze(ref)); });
}

}  // namespace capibara::python
