// The text of a jitted function: its program as StableHLO.
#include "compiler/stablehlo/write.h"
#include "program/ir/plain_types.h"
#include "transforms/jit_entry.h"
#include "transforms/jit_stages.h"

namespace capibara::detail {

std::string jit_entry_text(const JitEntry& entry, const LeafShardings& leaves) {
  return lowered_text(entry, leaves, false);
}

std::string lowered_text(const JitEntry& entry, const LeafShardings& leaves, bool locations,
                         const std::function<Program(const Program&)>& rewrite) {
  const auto [pruned, inputs] = entry.pruned();
  const NamedSharding* devices = nullptr;
  for (const auto& leaf : leaves) {
    if (!devices && leaf && leaf->devices.size() > 1) devices = leaf.get();
  }
  const Program program =
      has_explicit_types(pruned) ? with_plain_types(with_type_constraints(pruned, devices)) : pruned;
  stablehlo::WriteOptions options;
  options.module_name = stablehlo::jit_module_name(entry.options.name);
  options.locations = locations;
  for (std::size_t input : inputs) {
    const bool known = input >= entry.captured.size() && !leaves.empty();
    options.argument_placements.push_back(known ? leaves[input - entry.captured.size()] : nullptr);
  }
  return stablehlo::write_program(rewrite ? rewrite(program) : program, options);
}

std::vector<std::size_t> kept_arguments(const JitEntry& entry) {
  std::vector<std::size_t> kept;
  for (std::size_t input : entry.pruned().second) {
    if (input >= entry.captured.size()) kept.push_back(input - entry.captured.size());
  }
  return kept;
}

}  // namespace capibara::detail
