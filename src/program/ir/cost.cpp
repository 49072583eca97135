// Counting the operations of a program.
#include <capibara/analysis.h>
#include <capibara/primitive.h>

#include <algorithm>

#include "program/ir/cost.h"
#include "program/ir/nested.h"

namespace capibara {

namespace {

bool is_transcendental(const Traits& traits) {
  return traits.elementwise != Elementwise::no && (traits.cost == Cost::root || traits.cost == Cost::function);
}

double bytes_of(const ArrayType& type) {
  return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype));
}

void add(ProgramCost& to, const ProgramCost& more, double times) {
  to.flops += times * more.flops;
  to.transcendentals += times * more.transcendentals;
  to.bytes_accessed += times * more.bytes_accessed;
  for (std::size_t type = 0; type < rate_type_count; ++type) to.flops_by_type[type] += times * more.flops_by_type[type];
}

// Adds the costliest of several branches, or the sum of the programs called.
bool add_nested(const Primitive& primitive, const Attrs& attrs, ProgramCost& cost) {
  bool found = false;
  const double times = primitive->traits.control == Control::scan ? static_cast<double>(attrs.integer("length")) : 1;
  for (const auto& [name, attr] : attrs.entries()) {
    if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) {
      add(cost, count_cost(**program), times);
      found = true;
    }
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    if (!list) continue;
    ProgramCost most;
    for (const Attr& one : **list) {
      const auto* program = one.get_if<std::shared_ptr<const Program>>();
      if (!program) continue;
      const ProgramCost own = count_cost(**program);
      if (own.flops + own.transcendentals >= most.flops + most.transcendentals) most = own;
      found = true;
    }
    add(cost, most, times);
  }
  return found;
}

void add_flops(ProgramCost& cost, double flops, DType type) {
  cost.flops += flops;
  cost.flops_by_type[static_cast<std::size_t>(rate_type(type))] += flops;
}

std::array<uint64_t, rate_type_count> whole_numbers(const std::array<double, rate_type_count>& flops) {
  constexpr double limit = 1e18;  // more than any call takes
  std::array<uint64_t, rate_type_count> counted{};
  for (std::size_t type = 0; type < rate_type_count; ++type)
    counted[type] = static_cast<uint64_t>(std::clamp(flops[type], 0.0, limit));
  return counted;
}

}  // namespace

RateType rate_type(DType type) {
  switch (type) {
    case DType::float64:
    case DType::complex128:
      return RateType::float64;
    case DType::bfloat16:
      return RateType::bfloat16;
    case DType::float16:
      return RateType::float16;
    case DType::float8_e3m4:
    case DType::float8_e4m3:
    case DType::float8_e4m3b11fnuz:
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
      return RateType::float8;
    case DType::int8:
    case DType::uint8:
      return RateType::int8;
    default:
      return RateType::float32;
  }
}

DType element_type(RateType type) {
  static constexpr DType types[] = {DType::float32, DType::float64,       DType::bfloat16,
                                    DType::float16, DType::float8_e4m3fn, DType::int8};
  return types[static_cast<std::size_t>(type)];
}

ProgramCost equation_cost(const Program& program, const Equation& equation) {
  ProgramCost cost;
  if (!equation.primitive->traits.region && add_nested(equation.primitive, equation.attrs, cost)) return cost;
  Types inputs;
  for (Atom input : equation.inputs) {
    inputs.push_back(program.type(input));
    cost.bytes_accessed += bytes_of(inputs.back());
  }
  for (Var output : equation.outputs) {
    if (!output.dropped()) cost.bytes_accessed += bytes_of(program.type(output));
  }
  if (is_transcendental(equation.primitive->traits))
    cost.transcendentals += static_cast<double>(inputs[0].size());
  else if (equation.primitive->flops)
    add_flops(cost, equation.primitive->flops(inputs, equation.attrs),
              inputs.empty() ? DType::float32 : inputs[0].dtype);
  return cost;
}

ProgramCost count_cost(const Program& program) {
  ProgramCost cost;
  for (const Equation& equation : program.equations()) add(cost, equation_cost(program, equation), 1);
  return cost;
}

std::array<uint64_t, rate_type_count> program_flops(const Program& program) {
  return whole_numbers(count_cost(program).flops_by_type);
}

std::array<uint64_t, rate_type_count> operation_flops(const Primitive& primitive, std::span<const Array> inputs,
                                                      const Attrs& attrs) {
  const Traits& traits = primitive->traits;
  if (traits.moves != Moves::no || is_transcendental(traits)) return {};
  // The most common calls are small: nothing is allocated for them.
  if (traits.elementwise != Elementwise::no && primitive->flops && !inputs.empty()) {
    int64_t size = 0;
    for (const Array& input : inputs) size = std::max(size, input.size());
    std::array<uint64_t, rate_type_count> counted{};
    counted[static_cast<std::size_t>(rate_type(inputs[0].dtype()))] = static_cast<uint64_t>(size);
    return counted;
  }
  ProgramCost cost;
  if (primitive->flops && !inputs.empty()) {
    thread_local Types types;  // its memory is reused by the next call
    types.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      types[i].shape = inputs[i].shape();
      types[i].dtype = inputs[i].dtype();
    }
    add_flops(cost, primitive->flops(types, attrs), types[0].dtype);
  } else if (!traits.region && holds_programs(attrs)) {
    add_nested(primitive, attrs, cost);
  }
  return whole_numbers(cost.flops_by_type);
}

}  // namespace capibara
