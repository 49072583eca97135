// Looks the CPU backend's own kernels up by the name of the primitive.
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/small_families.h"

#include <unordered_map>

namespace capibara::cpu {

namespace {

using Table = std::unordered_map<std::string_view, KernelMaker>;

const Table& table() {
  static const Table makers = [] {
    Table all;
    for (const KernelMakers& list :
         {convolution_makers(), cumulative_makers(), dot_makers(), extreme_makers(), index_makers(), movement_makers(), order_makers(), random_makers(), reduction_makers(),
          scatter_makers(), top_k_makers(), transpose_makers(), window_makers()}) {
      for (const KernelMakerEntry& entry : list) all.emplace(entry.primitive, entry.make);
    }
    return all;
  }();
  return makers;
}

}  // namespace

KernelMaker find_kernel_maker(std::string_view primitive) {
  auto place = table().find(primitive);
  return place == table().end() ? nullptr : place->second;
}

}  // namespace capibara::cpu
