// custom_partitioning from Python: the function on leaves, its factors, and the callback that partitions it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "calls.h"
#include "lax/sharding/user_partition.h"

namespace capibara::python {

namespace {

using SpecRows = std::vector<std::vector<std::vector<std::string>>>;  // axes of each dimension of each value

SpecRows rows_of(const std::vector<PartitionSpec>& specs) {
  SpecRows rows;
  for (const PartitionSpec& spec : specs) rows.push_back(spec.dims);
  return rows;
}

std::vector<PartitionSpec> specs_from(const SpecRows& rows) {
  std::vector<PartitionSpec> specs;
  for (const auto& dims : rows) specs.push_back({dims, {}, {}});
  return specs;
}

Arrays arrays_from(nb::handle objects) {
  Arrays arrays;
  for (nb::handle object : objects) arrays.push_back(to_array(object, "custom_partitioning"));
  return arrays;
}

FlatFunction on_lists(nb::handle function) {
  auto kept = std::make_shared<KeptObject>(function);
  return [kept](std::span<const Array> inputs) {
    nb::gil_scoped_acquire lock;
    nb::list leaves;
    for (const Array& input : inputs) leaves.append(wrap(input));
    return arrays_from(nb::object(nb::borrow(kept->get())(leaves)));
  };
}

// `divide` takes the devices and the axes of operands and results, and returns (function on lists of shards, axes of
// operands, axes of results).
DivideRule divide_rule(nb::handle divide) {
  auto kept = std::make_shared<KeptObject>(divide);
  return [kept](const NamedSharding& devices, const std::vector<PartitionSpec>& operands,
                const std::vector<PartitionSpec>& results) {
    nb::gil_scoped_acquire lock;
    nb::object answer = nb::borrow(kept->get())(devices, rows_of(operands), rows_of(results));
    CustomDivision division;
    division.local = on_lists(nb::object(answer[0]));
    division.operands = specs_from(nb::cast<SpecRows>(answer[1]));
    division.results = specs_from(nb::cast<SpecRows>(answer[2]));
    return division;
  };
}

// `sizes` and `uses` (0 free, 1 summed, 2 whole) of factors; `operands` and `results`: the factors of each dimension.
nb::list custom_partitioning(nb::object run, const std::string& name, nb::list inputs,
                             const std::vector<int64_t>& sizes, const std::vector<int>& uses,
                             const std::vector<ValueFactors>& operands, const std::vector<ValueFactors>& results,
                             nb::object divide) {
  Factors factors;
  for (std::size_t i = 0; i < sizes.size(); ++i) factors.add(sizes[i], static_cast<FactorUse>(uses[i]));
  factors.operands = operands;
  factors.results = results;
  const Arrays given = arrays_from(inputs);
  nb::list outputs;
  for (const Array& output : custom_partition(on_lists(run), given, name, std::move(factors), divide_rule(divide)))
    outputs.append(wrap(output));
  return outputs;
}

}  // namespace

void bind_user_partitions(nb::module_& m) { m.def("custom_partitioning", &custom_partitioning); }

}  // namespace capibara::python
