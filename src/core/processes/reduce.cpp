// Tree sums over tiles that stay in the first cache.
#include "core/processes/reduce.h"

#include <algorithm>
#include <bit>

#include <capibara/error.h>

#include "core/array/element.h"

namespace capibara::processes {

namespace {

constexpr int64_t tile = 512;  // elements

template <class C>
bool is_nan(const C& value) {
  return value != value;
}

template <class C>
bool less(const C& a, const C& b) {
  if constexpr (is_complex_number<C>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}

template <class C>
C add(const C& a, const C& b) {
  if constexpr (std::is_same_v<C, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<std::make_unsigned_t<C>>(a) + static_cast<std::make_unsigned_t<C>>(b));
  else
    return a + b;
}

template <class C>
void combine(Reduction kind, C* into, const C* other, int64_t count) {
  switch (kind) {
    case Reduction::sum:
      for (int64_t i = 0; i < count; ++i) into[i] = add(into[i], other[i]);
      return;
    case Reduction::min:
      for (int64_t i = 0; i < count; ++i) into[i] = is_nan(into[i]) || less(into[i], other[i]) ? into[i] : other[i];
      return;
    case Reduction::max:
      for (int64_t i = 0; i < count; ++i) into[i] = is_nan(into[i]) || less(other[i], into[i]) ? into[i] : other[i];
      return;
  }
}

template <class C>
struct Tree {
  Reduction kind;
  DType from;
  int64_t first, count;  // the tile

  const void* at(const std::byte* block) const { return element_address(from, block, first); }

  void reduce(std::span<const std::byte* const> blocks, C* out) const {
    if (blocks.size() == 1) return load_range<C>(from, at(blocks[0]), count, out);
    const std::size_t half = std::bit_floor(blocks.size() - 1);
    reduce(blocks.first(half), out);
    const auto rest = blocks.subspan(half);
    if (rest.size() == 1 && stored_as<C>(from)) return combine(kind, out, static_cast<const C*>(at(rest[0])), count);
    C other[tile];
    reduce(rest, other);
    combine(kind, out, other, count);
  }
};

}  // namespace

DType partial_dtype(DType dtype) { return is_floating(dtype) && bits(dtype) < 32 ? DType::float32 : dtype; }

void combine_blocks(Reduction kind, DType from, std::span<const std::byte* const> blocks, int64_t count, DType to,
                    std::byte* out) {
  if (is_key(from)) throw TypeError(concat("reduce: keys have no sum, got ", to_string(from)));
  visit_compute(from, [&]<class C>(Type<C>) {
    C values[tile];
    for (int64_t first = 0; first < count; first += tile) {
      const int64_t size = std::min(tile, count - first);
      Tree<C>{kind, from, first, size}.reduce(blocks, values);
      store_range<C>(to, element_address(to, out, first), size, values);
    }
  });
}

}  // namespace capibara::processes
