// Placement from Python: moving arrays, their shards, and sharding constraints inside programs.
#include <capibara/placement.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "core/array/body.h"
#include "core/runtime/transfer_guard.h"
#include "core/sharding/explicit.h"
#include "core/sharding/placed_memory.h"
#include "program/ir/handles.h"

namespace capibara::python {

void bind_shard_maps(nb::module_& m);  // part of bind_placements
void bind_user_partitions(nb::module_& m);

namespace {

nb::object spec_of(const NamedSharding& placement) {
  nb::list dims;
  for (const std::vector<std::string>& axes : placement.spec.dims) dims.append(nb::tuple(nb::cast(axes)));
  return nb::tuple(dims);
}

nb::object axis_types_of(const NamedSharding& placement) {
  nb::list types;
  for (std::size_t i = 0; i < placement.mesh.axis_names.size(); ++i)
    types.append(static_cast<int>(placement.mesh.axis_type(i)));
  return nb::tuple(types);
}

nb::object axes_of(const NamedSharding& placement) {
  return nb::make_tuple(nb::tuple(nb::cast(placement.mesh.axis_names)), nb::tuple(nb::cast(placement.mesh.axis_sizes)));
}

nb::object shard_of(const NamedSharding& placement, const Shape& shape, std::size_t position) {
  const Shape offset = placement.shard_offset(shape, position);
  return int_tuple(offset);
}

}  // namespace

void bind_placements(nb::module_& m) {
  nb::class_<NamedSharding>(m, "NamedSharding")
      .def(
          "__init__",
          [](NamedSharding* self, std::string platform, std::vector<int> devices, std::vector<std::string> axis_names,
             std::vector<int64_t> axis_sizes, std::vector<std::vector<std::string>> spec, std::string memory_kind,
             const std::vector<int>& axis_types, std::vector<std::string> unreduced, std::vector<std::string> reduced) {
            std::vector<AxisType> types;
            for (int type : axis_types) types.push_back(static_cast<AxisType>(type));
            new (self) NamedSharding{std::move(platform), std::move(devices),
                                     Mesh{std::move(axis_names), std::move(axis_sizes), std::move(types)},
                                     PartitionSpec{std::move(spec), std::move(unreduced), std::move(reduced)},
                                     std::move(memory_kind)};
          },
          nb::arg("platform"), nb::arg("devices"), nb::arg("axis_names"), nb::arg("axis_sizes"), nb::arg("spec"),
          nb::arg("memory_kind"), nb::arg("axis_types") = std::vector<int>(),
          nb::arg("unreduced") = std::vector<std::string>(), nb::arg("reduced") = std::vector<std::string>())
      .def_prop_ro("platform", [](const NamedSharding& self) { return self.platform; })
      .def_prop_ro("devices", [](const NamedSharding& self) { return nb::tuple(nb::cast(self.devices)); })
      .def_prop_ro("axes", &axes_of)
      .def_prop_ro("spec", &spec_of)
      .def_prop_ro("axis_types", &axis_types_of)
      .def_prop_ro("unreduced", [](const NamedSharding& self) { return nb::tuple(nb::cast(self.spec.unreduced)); })
      .def_prop_ro("reduced", [](const NamedSharding& self) { return nb::tuple(nb::cast(self.spec.reduced)); })
      .def_prop_ro("memory_kind", [](const NamedSharding& self) { return self.memory_kind; })
      .def_prop_ro("replicated", &NamedSharding::replicated)
      .def("shard_shape",
           [](const NamedSharding& self, const Shape& shape) { return int_tuple(self.shard_shape(shape)); })
      .def("shard_offset", &shard_of)
      .def("parts", [](const NamedSharding& self, std::size_t dim) { return self.parts(dim); })
      .def("__eq__", [](const NamedSharding& self, nb::handle other) {
        return nb::isinstance<NamedSharding>(other) && self == nb::cast<const NamedSharding&>(other);
      });
  m.def("device_put", [](const Array& array, const NamedSharding& placement) {
    Array placed;
    {
      nb::gil_scoped_release other_threads_run;
      placed = jax::device_put(array, placement);
    }
    return wrap(placed);
  });
  // The value with another sharding in its type. `known`: true if the placement's devices are those of the mesh.
  m.def("reshard", [](const Array& array, const NamedSharding& placement, bool known) {
    const std::shared_ptr<const Opaque> wanted =
        std::make_shared<const ShardingAttr>(type_sharding(placement, static_cast<std::size_t>(array.ndim())),
                                             known ? std::make_shared<const NamedSharding>(placement) : nullptr);
    return wrap(bind1(prim::reshard(), {array}, {{"dst_sharding", wanted}}));
  });
  // Replaces the context mesh of this thread; returns the previous one.
  m.def(
      "swap_context_mesh",
      [](std::optional<NamedSharding> mesh) -> nb::object {
        const std::shared_ptr<const NamedSharding> before = context_mesh();
        set_context_mesh(mesh ? std::make_shared<const NamedSharding>(std::move(*mesh)) : nullptr);
        return before ? nb::cast(*before) : nb::none();
      },
      nb::arg("mesh").none());
  m.def("array_placement", [](const Array& array) -> nb::object {
    const std::optional<NamedSharding> placement = jax::placement(array);
    return placement ? nb::cast(*placement) : nb::none();
  });
  // The same values as an array of this process alone.
  m.def("array_of_this_process", [](const Array& array) { return wrap(placed_on_host(array, nullptr)); });
  m.def("array_shards", [](const Array& array) {
    nb::list shards;
    for (const Array& shard : jax::addressable_shards(array)) shards.append(wrap(shard));
    return shards;
  });
  // border: 0 inside a program, 1 its argument, 2 its result.
  m.def("sharding_constraint", [](const Array& array, const NamedSharding& placement,
                                  std::vector<int64_t> unconstrained, int border) {
    static const Primitive constraint = primitive("sharding_constraint");
    const std::shared_ptr<const Opaque> sharding =
        std::make_shared<PlacementAttr>(placement, static_cast<PlacementAttr::Border>(border));
    Array constrained = bind1(constraint, {array},
                              {{"sharding", sharding},
                               {"unconstrained_dims", Ints(unconstrained)},
                               {"context_mesh", Attr()},
                               {"layout", Attr()}});
    const bool evaluated = !constrained.is_tracer() && placement.devices.size() > 1 && constrained.device() == Device{};
    return wrap(evaluated ? jax::device_put(constrained, placement) : constrained);
  });
  // One array from shards that are already on their devices.
  m.def("join_shards",
        [](const std::vector<int64_t>& shape, const NamedSharding& placement, const std::vector<nb::object>& shards) {
          std::vector<Array> parts;
          for (const nb::object& shard : shards) parts.push_back(nb::cast<const Array&>(shard));
          return wrap(jax::join_shards(Shape(shape), placement, parts));
        });
  bind_shard_maps(m);
  bind_user_partitions(m);
  m.def("fetch", [](const Array& array) {  // an explicit transfer to the host
    nb::gil_scoped_release other_threads_run;
    const transfer::Explicit wanted;
    if (!array.is_tracer() && !array.type().ref) array.raw_data();
  });
}

}  // namespace capibara::python
