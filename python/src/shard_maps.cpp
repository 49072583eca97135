// shard_map from Python: the function on leaves, and the specs of its results.
#include <capibara/shard_map.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "backends/result_placement.h"
#include "bindings.h"
#include "calls.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"

namespace capibara::python {

namespace {

// (axes of each dimension, unreduced axes, reduced axes) of a spec.
using Axes = std::tuple<std::vector<AxisList>, AxisList, AxisList>;

std::vector<PartitionSpec> specs_of(const std::vector<Axes>& all) {
  std::vector<PartitionSpec> specs;
  for (const auto& [dims, unreduced, reduced] : all) specs.push_back({dims, unreduced, reduced});
  return specs;
}

// (shape, text, varying axes, unreduced and reduced axes) of each result.
nb::list described(const std::vector<ArrayType>& types) {
  nb::list rows;
  for (const ArrayType& type : types) {
    ManualAxes own = manual_axes_of(type);
    AxisList sums = std::move(own.unreduced);
    sums.insert(sums.end(), own.reduced.begin(), own.reduced.end());
    rows.append(nb::make_tuple(int_tuple(type.shape), to_string(type), nb::tuple(nb::cast(own.varying)),
                               nb::tuple(nb::cast(sums))));
  }
  return rows;
}

Arrays arrays_of(nb::handle objects) {
  Arrays arrays;
  for (nb::handle object : objects) arrays.push_back(to_array(object, "shard_map"));
  return arrays;
}

// `run` takes and returns lists of arrays; `user` is the function named in errors.
nb::list shard_map(nb::object run, nb::object user, nb::list inputs, const NamedSharding& devices, bool abstract,
                   const std::vector<Axes>& in_specs, std::vector<std::string> manual, bool check_vma,
                   nb::object out_specs) {
  const detail::ShardMapCall call{devices,           abstract,  specs_of(in_specs),
                                  std::move(manual), check_vma, function_name(user)};
  const Arrays operands = arrays_of(inputs);
  const FlatFunction function = [&](std::span<const Array> parts) {
    TracedCall traced(user, "shard_map");
    nb::list leaves;
    for (const Array& part : parts) leaves.append(wrap(part));
    return arrays_of(run(leaves));
  };
  nb::list results;
  for (const Array& result : detail::shard_map_flat(function, operands, call, [&](const std::vector<ArrayType>& types) {
         return specs_of(nb::cast<std::vector<Axes>>(out_specs(described(types))));
       })) {
    results.append(wrap(result));
  }
  return results;
}

// (varying, unreduced, reduced) manual axes of a type.
nb::tuple manual_axes(const ArrayType& type) {
  const ManualAxes own = manual_axes_of(type);
  return nb::make_tuple(nb::tuple(nb::cast(own.varying)), nb::tuple(nb::cast(own.unreduced)),
                        nb::tuple(nb::cast(own.reduced)));
}

}  // namespace

void bind_shard_maps(nb::module_& m) {
  m.def("manual_axes", &manual_axes);
  m.def("shard_map", &shard_map);
  m.def("varying_axes", [](const Array& array) { return nb::tuple(nb::cast(array.type().sharding.varying())); });
}

}  // namespace capibara::python
