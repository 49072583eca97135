// Reads calls, control flow, tuples and tokens.
#include <algorithm>
#include <unordered_map>

#include <capibara/error.h>

#include "compiler/stablehlo/read_body.h"

namespace capibara::stablehlo {

namespace {

Arrays read_call(BodyReader& body, const Operation& operation, const Arrays& operands) {
  return body.module().call(body.module().function_of(operation, operation.attributes.find("callee")), operands);
}

// A composite computes its decomposition.
Arrays read_composite(BodyReader& body, const Operation& operation, const Arrays& operands) {
  return body.module().call(body.module().function_of(operation, operation.attributes.find("decomposition")), operands);
}

// True for known operands that a loop passes through unchanged: shapes in its body may be computed from them.
std::vector<bool> fixed_operands(const Operation& operation, const Arrays& operands) {
  std::vector<bool> fixed(operands.size(), false);
  const Region& region = operation.regions[1];
  if (region.blocks.size() != 1 || operation.operands.size() != operands.size()) return fixed;
  const Block& block = region.blocks[0];
  if (block.operations.empty() || block.arguments.size() != operands.size()) return fixed;
  const std::vector<Value>& returned = block.operations.back().operands;
  for (std::size_t i = 0; i < operands.size() && returned.size() == operands.size(); ++i)
    fixed[i] = is_known(operands[i]) && returned[i].id == block.arguments[i].id;
  return fixed;
}

Arrays read_while(BodyReader& body, const Operation& operation, const Arrays& operands) {
  if (operation.regions.size() != 2) fail(operation, "expected two regions, the condition and the body");
  if (!body.module().has_open_sizes()) {
    const Staged condition = body.stage_region(operation, operation.regions[0]);
    const Staged step = body.stage_region(operation, operation.regions[1]);
    return bind_while(condition, step, operands);
  }
  const std::vector<bool> fixed = fixed_operands(operation, operands);
  const Staged condition = body.stage_region(operation, operation.regions[0], operands, fixed);
  const Staged step = body.stage_region(operation, operation.regions[1], operands, fixed);
  Arrays results = bind_while(condition, step, operands);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (fixed[i]) results[i] = operands[i];
  }
  return results;
}

// The branches capture different values: each gets all values that any of them captures.
Arrays bind_branches(BodyReader& body, const Operation& operation, const std::vector<const Region*>& regions,
                     const NdArray& index) {
  std::vector<Staged> branches;
  Arrays all;
  auto position = [&](const NdArray& array) {
    return std::find_if(all.begin(), all.end(), [&](const NdArray& other) { return other.same_as(array); });
  };
  for (const Region* region : regions) {
    branches.push_back(body.stage_region(operation, *region));
    for (const NdArray& array : branches.back().captured) {
      if (position(array) == all.end()) all.push_back(array);
    }
  }
  std::vector<Program> programs;
  for (const Staged& branch : branches) {
    Program::Body wide = branch.program.body();
    std::vector<Var> inputs;
    for (const NdArray& array : all) {
      const auto own = std::find_if(branch.captured.begin(), branch.captured.end(),
                                    [&](const NdArray& other) { return other.same_as(array); });
      if (own != branch.captured.end()) {
        inputs.push_back(branch.program.invars()[static_cast<std::size_t>(own - branch.captured.begin())]);
      } else {
        inputs.push_back(Var{static_cast<int32_t>(wide.var_types.size())});
        wide.var_types.push_back(array.type());
      }
    }
    wide.invars = std::move(inputs);
    programs.emplace_back(std::move(wide));
  }
  Arrays operands = {index};
  operands.insert(operands.end(), all.begin(), all.end());
  return bind_named("cond", operands, {{"branches", Attr::programs(programs)}});
}

Arrays convert(const NdArray& x, DType dtype) {
  return bind_named("convert_element_type", {x}, {{"new_dtype", dtype}, {"weak_type", false}});
}

// True if an index is known to be nonnegative: jax clamps it, or converts it from a boolean.
bool is_safe_index(const NdArray& index, const Block& block, ValueId id) {
  if (!index.is_tracer()) return index.item<int64_t>() >= 0;
  for (const Operation& operation : block.operations) {
    for (const Value& result : operation.results) {
      if (result.id != id) continue;
      if (operation.name == "stablehlo.clamp") return true;
      const bool converts = operation.name == "stablehlo.convert" && operation.operands.size() == 1;
      const std::optional<DType> from = converts ? operation.operands[0].type.dtype() : std::nullopt;
      return from && (is_bool(*from) || is_unsigned(*from));
    }
  }
  return false;
}

Arrays read_case(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  if (operation.regions.empty()) fail(operation, "expected at least one region");
  NdArray index = operands[0];
  std::vector<const Region*> regions;
  for (const Region& region : operation.regions) regions.push_back(&region);
  // StableHLO takes the last branch for an index out of bounds; ours is clamped, which differs only for negative ones.
  if (regions.size() > 1 && !is_safe_index(index, body.block(), operation.operands[0].id)) {
    const auto last = static_cast<uint32_t>(regions.size() - 1);
    const NdArray limit = NdArray::from_host(DType::uint32, {}, &last);
    const NdArray unsigned_index = bind_named("bitcast_convert_type", {index}, {{"new_dtype", DType::uint32}})[0];
    index = convert(bind_named("min", {unsigned_index, limit})[0], DType::int32)[0];
  }
  return bind_branches(body, operation, regions, index);
}

Arrays read_if(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  if (operation.regions.size() != 2) fail(operation, "expected two regions, for true and for false");
  return bind_branches(body, operation, {&operation.regions[1], &operation.regions[0]},
                       convert(operands[0], DType::int32)[0]);
}

Arrays read_tuple(BodyReader&, const Operation&, const Arrays& operands) { return operands; }

Arrays read_tuple_element(BodyReader&, const Operation& operation, const Arrays& operands) {
  const auto index = static_cast<std::size_t>(integer_attribute(operation, "index"));
  const Type& type = operation.operands.at(0).type;
  if (!type.is_tuple() || index >= type.elements().size()) fail(operation, "expected an index into a tuple");
  std::size_t begin = 0;
  for (std::size_t i = 0; i < index; ++i) begin += flat_types(operation, type.elements()[i]).size();
  const std::size_t count = flat_types(operation, type.elements()[index]).size();
  return Arrays(operands.begin() + static_cast<std::ptrdiff_t>(begin),
                operands.begin() + static_cast<std::ptrdiff_t>(begin + count));
}

Arrays read_token(BodyReader&, const Operation&, const Arrays&) { return {}; }

}  // namespace

OperationRule find_structure_rule(std::string_view operation) {
  static const std::unordered_map<std::string_view, OperationRule> rules = {
      {"func.call", read_call},
      {"stablehlo.composite", read_composite},
      {"stablehlo.while", read_while},
      {"stablehlo.case", read_case},
      {"stablehlo.if", read_if},
      {"stablehlo.tuple", read_tuple},
      {"stablehlo.get_tuple_element", read_tuple_element},
      {"stablehlo.after_all", read_token},
      {"stablehlo.create_token", read_token},
  };
  const auto it = rules.find(operation);
  return it == rules.end() ? nullptr : it->second;
}

}  // namespace capibara::stablehlo
