// custom_partitioning: the equation holds the function as a program, and the user's rule for partitioning it.
#include "lax/sharding/user_partition.h"

#include <algorithm>
#include <atomic>

#include "lax/rules.h"
#include "program/ir/nested.h"
#include "program/trace/stage.h"

namespace capibara {

namespace {

std::atomic<bool>& any_custom_partition() {
  static std::atomic<bool> any = false;
  return any;
}

// Values that the function closes over are whole on every device.
Factors with_whole_operands(Factors factors, std::span<const Array> captured) {
  std::vector<ValueFactors> front;
  for (const Array& array : captured) {
    front.emplace_back();
    for (const int64_t size : array.shape()) front.back().push_back({factors.add(size, FactorUse::whole)});
  }
  factors.operands.insert(factors.operands.begin(), front.begin(), front.end());
  return factors;
}

DivideRule behind_captured(DivideRule divide, std::size_t count) {
  if (count == 0) return divide;
  return [divide = std::move(divide), count](const NamedSharding& devices, const std::vector<PartitionSpec>& operands,
                                             const std::vector<PartitionSpec>& results) {
    const auto first = operands.begin() + static_cast<std::ptrdiff_t>(count);
    CustomDivision own = divide(devices, {first, operands.end()}, results);
    own.operands.insert(own.operands.begin(), count, PartitionSpec{});
    own.local = [local = std::move(own.local), count](std::span<const Array> parts) {
      return local(parts.subspan(count));
    };
    return own;
  };
}

}  // namespace

const Primitive& custom_partition_primitive() {
  static const Primitive own = primitive("custom_partitioning");
  return own;
}

bool custom_partitions_exist() { return any_custom_partition().load(std::memory_order_relaxed); }

bool has_custom_partition(const Program& program) {
  return std::any_of(program.equations().begin(), program.equations().end(), [](const Equation& equation) {
    return equation.primitive == custom_partition_primitive() || any_program(equation.attrs, has_custom_partition);
  });
}

PrimitiveRecord custom_partition_record() {
  PrimitiveRecord record;
  record.name = "custom_partitioning";
  record.doc = "Runs a program that its author divides among devices.";
  record.traits.multiple_results = true;
  record.traits.own_partition = true;
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    const Program& program = attrs.program("call");
    return TypeResult(program.output_types(), program.effects());
  };
  record.factors = [](const EquationTypes& equation) {
    return equation.attrs.opaque<CustomPartitionAttr>("partition")->factors;
  };
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) {
    return evaluate_program(attrs.program("call"), inputs);
  };
  return record;
}

Arrays custom_partition(const FlatFunction& function, std::span<const Array> inputs, const std::string& name,
                        Factors factors, DivideRule divide) {
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  const Staged staged = stage_open(function, types, name);
  Arrays operands = staged.captured;
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  const std::shared_ptr<const Opaque> rule =
      std::make_shared<const CustomPartitionAttr>(name, with_whole_operands(std::move(factors), staged.captured),
                                                  behind_captured(std::move(divide), staged.captured.size()));
  any_custom_partition().store(true, std::memory_order_relaxed);
  return bind(custom_partition_primitive(), operands, {{"call", staged.program}, {"partition", rule}});
}

}  // namespace capibara
