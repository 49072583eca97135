// custom_partitioning functions in a partitioned program.
#include <capibara/error.h>

#include "compiler/partition/partitioner.h"
#include "lax/sharding/user_partition.h"

namespace capibara::sharding {

// The author of the function defines how it is split, and what each device runs.
Arrays Partitioner::custom(const Step& step) {
  std::vector<PartitionSpec> given, wanted;
  for (const Local& operand : step.operands) given.push_back(spec_of(mesh_, operand.layout));
  for (const Layout& layout : step.wanted) wanted.push_back(spec_of(mesh_, layout));
  const auto rule = step.equation.attrs.opaque<CustomPartitionAttr>("partition");
  const CustomDivision division = rule->divide(devices_, given, wanted);
  auto layout_for = [&](const std::vector<PartitionSpec>& specs, const Types& types, std::size_t i) {
    std::optional<Layout> layout;
    if (i < specs.size()) layout = layout_of(mesh_, specs[i], types[i].shape.size());
    if (layout && divides(mesh_, types[i].shape, *layout)) return *layout;
    throw ValueError(concat("custom_partitioning: the partition of ", rule->name, " must return a sharding over the ",
                            "mesh of the program for each value, whose axes divide it; it does not for ",
                            to_string(types[i])));
  };
  Arrays operands;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Layout to = layout_for(division.operands, step.operand_types, i);
    operands.push_back(resharded(step.operand_types[i], step.operands[i], to, needed_as(step, i, to)));
  }
  Arrays results = division.local(operands);
  std::string own, expected;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < step.result_types.size(); ++i) {
    layouts.push_back(layout_for(division.results, step.result_types, i));
    expected += concat(i ? ", " : "", to_string(part_type(mesh_, step.result_types[i], layouts[i]).strong()));
  }
  for (const Array& result : results) own += concat(own.empty() ? "" : ", ", to_string(result.type().strong()));
  if (own != expected) throw ValueError(concat("Mismatch in result shapes. [", own, "] vs [", expected, "]"));
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = resharded(step.result_types[i], {results[i], layouts[i]}, step.wanted[i],
                           concat("result ", i, " of ", rule->name));
  return results;
}

}  // namespace capibara::sharding
