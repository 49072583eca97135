// jax.ffi: handlers by their addresses, and calls of them.
#include <capibara/ffi.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "calls.h"

namespace capibara::python {

namespace {

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

void bind_foreign(nb::module_& m) {
  m.def("register_ffi_target", [](const std::string& name, const std::vector<std::uintptr_t>& stages) {
    jax::ffi::register_ffi_target(
        name, {pointer(stages.at(0)), pointer(stages.at(1)), pointer(stages.at(2)), pointer(stages.at(3))});
  });
  m.def("register_ffi_type", [](const std::string& name, int64_t id, std::uintptr_t deleter) {
    return jax::ffi::register_ffi_type(name, id, reinterpret_cast<void (*)(void*)>(pointer(deleter)));
  });
  m.def("ffi_call",
        [](const std::string& name, const nb::list& types, const nb::list& operands, const std::string& attributes,
           bool has_side_effect, const std::string& vmap_method, const std::vector<Ints>& input_layouts,
           const std::vector<Ints>& output_layouts, const std::map<int64_t, int64_t>& aliases) {
          Types results;
          for (nb::handle type : types) results.push_back(leaf_type(type, "ffi_call"));
          std::vector<nb::object> objects;
          for (nb::handle operand : operands) objects.push_back(nb::borrow(operand));
          const Arrays values =
              jax::ffi::ffi_call(name, results, to_arrays(objects, "ffi_call"),
                                 {attributes, has_side_effect, vmap_method, input_layouts, output_layouts, aliases});
          nb::list out;
          for (const Array& value : values) out.append(wrap(value));
          return out;
        });
}

}  // namespace capibara::python
