// Looks up the CPU backend's own kernels by primitive.
#include "backends/cpu/kernels/exchange.h"
#include "backends/cpu/kernels/families.h"

#include <unordered_map>

namespace capibara::cpu {

namespace {

using Table = std::unordered_map<const PrimitiveRecord*, KernelMakerEntry>;

const Table& table() {
  static const Table makers = [] {
    Table all;
    for (const KernelFamily family : kernel_families()) {
      for (const KernelMakerEntry& entry : family()) all.emplace(&primitive(entry.primitive).record(), entry);
    }
    all.emplace(&exchange_start().record(), KernelMakerEntry{"exchange_start", make_exchange_start});
    all.emplace(&exchange_wait().record(), KernelMakerEntry{"exchange_wait", make_exchange_wait});
    return all;
  }();
  return makers;
}

}  // namespace

KernelMaker find_kernel_maker(const Primitive& primitive) {
  const auto found = table().find(&primitive.record());
  return found == table().end() ? nullptr : found->second.make;
}

bool has_own_kernel(const Program& program, const Equation& equation) {
  const auto found = table().find(&equation.primitive.record());
  if (found == table().end() || !found->second.in_programs) return false;
  Types inputs;
  for (Atom input : equation.inputs) inputs.push_back(program.type(input));
  const Types outputs = equation.primitive->type(inputs, equation.attrs).types;
  return static_cast<bool>(found->second.make({inputs, outputs, equation.attrs, {}}));
}

bool skips_unread(const Program& program, const Equation& equation) {
  const auto found = table().find(&equation.primitive.record());
  return found != table().end() && found->second.skips_unread && has_own_kernel(program, equation);
}

}  // namespace capibara::cpu
