// custom_partitioning: a function whose author defines how it is partitioned among devices.
#pragma once

#include <capibara/factors.h>
#include <capibara/placement.h>

#include "program/ir/build.h"

namespace capibara {

// One partitioning of a function: how its operands and results are split, and what each device computes on its parts.
struct CustomDivision {
  std::vector<PartitionSpec> operands, results;
  FlatFunction local;
};
// The author's rule, from the shardings of operands and the preferred ones of results.
using DivideRule =
    std::function<CustomDivision(const NamedSharding& devices, const std::vector<PartitionSpec>& operands,
                                 const std::vector<PartitionSpec>& results)>;

class CustomPartitionAttr final : public Opaque {
 public:
  CustomPartitionAttr(std::string name, Factors factors, DivideRule divide)
      : name(std::move(name)), factors(std::move(factors)), divide(std::move(divide)) {}

  std::string print() const override { return name; }

  const std::string name;
  const Factors factors;
  const DivideRule divide;
};

PrimitiveRecord custom_partition_record();
// Calls a function that is partitioned by the author's rule in a partitioned program, and runs unchanged elsewhere.
// `factors` are those of the function's inputs and outputs.
Arrays custom_partition(const FlatFunction& function, std::span<const Array> inputs, const std::string& name,
                        Factors factors, DivideRule divide);

const Primitive& custom_partition_primitive();
bool custom_partitions_exist();  // in this process
bool has_custom_partition(const Program& program);

}  // namespace capibara
