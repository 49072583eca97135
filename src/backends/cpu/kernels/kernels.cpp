// Looks the CPU backend's own kernels up by primitive.
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/small_families.h"

#include <unordered_map>

namespace capibara::cpu {

namespace {

using Table = std::unordered_map<const PrimitiveRecord*, KernelMaker>;

const Table& table() {
  static const Table makers = [] {
    Table all;
    for (const KernelMakers& list :
         {convolution_makers(), cumulative_makers(), dot_makers(), extreme_makers(), index_makers(), movement_makers(),
          order_makers(), random_makers(), reduction_makers(), scatter_makers(), select_and_scatter_makers(),
          top_k_makers(), transpose_makers(), window_makers()}) {
      for (const KernelMakerEntry& entry : list) all.emplace(&primitive(entry.primitive).record(), entry.make);
    }
    return all;
  }();
  return makers;
}

}  // namespace

KernelMaker find_kernel_maker(const Primitive& primitive) {
  const auto found = table().find(&primitive.record());
  return found == table().end() ? nullptr : found->second;
}

}  // namespace capibara::cpu
