// Codes that repeat earlier ones. Of equal codes the first is nearest: the others are left out, so that they are no
// candidates again and again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>

namespace capibara::cpu::vq {

// Calls visit(k) for each of `count` codes of `dim` elements that is equal, bit by bit, to one before it.
template <class T, class Visit>
void visit_repeated(const T* codes, int64_t count, int64_t dim, Visit&& visit) {
  const auto bytes = static_cast<std::size_t>(dim) * sizeof(T);
  std::unordered_multimap<std::uint64_t, int64_t> seen;
  seen.reserve(static_cast<std::size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    const T* code = codes + k * dim;
    std::uint64_t hash = 0;
    for (int64_t i = 0; i < dim; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, code + i, sizeof(T));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    }
    const auto [begin, end] = seen.equal_range(hash);
    const bool repeated = std::any_of(
        begin, end, [&](const auto& other) { return std::memcmp(codes + other.second * dim, code, bytes) == 0; });
    if (repeated)
      visit(k);
    else
      seen.emplace(hash, k);
  }
}

}  // namespace capibara::cpu::vq
