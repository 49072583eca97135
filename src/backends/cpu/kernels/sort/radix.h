// Sorting by the digits of unsigned keys, least significant first: stable, and parallel without changing the result.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

// The digits of keys that differ only in bits [low, high).
struct Digits {
  int low = 0, width = 0, passes = 0;
  static constexpr int widest = 11;

  template <class Key>
  Digits(Key differing, int64_t count) {
    if (differing == 0) return;
    low = std::countr_zero(differing);
    const int bits = static_cast<int>(std::bit_width(differing)) - low, max_bits = count < (1 << 12) ? 8 : widest;
    passes = (bits + max_bits - 1) / max_bits;
    width = (bits + passes - 1) / passes;
  }
  int shift(int pass) const { return low + pass * width; }
};

// One digit: load(i) returns element i, digit(element) its digit, store(index, element) writes it to its new position.
class RadixPasses {
 public:
  explicit RadixPasses(int64_t count)
      : count_(count),
        parts_(count >= (1 << 15) && !in_parallel_region() ? thread_count() : 1),
        counts_(parts_ * counters, "digits of keys") {}

  template <class Digit, class Load, class Store>
  void run(int width, Digit digit_of, Load load_from, Store store_to) const {
    const int64_t buckets = int64_t{1} << width;
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      const Digit digit = digit_of;  // local copies: writes to the counters cannot alias them
      const Load load = load_from;
      // Two counters for each digit: equal neighbours do not wait for each other.
      uint32_t *even = counts_.data() + part * counters, *odd = even + buckets;
      std::fill_n(even, 2 * buckets, 0u);
      int64_t i = begin;
      for (; i + 2 <= end; i += 2) {
        ++even[digit(load(i))];
        ++odd[digit(load(i + 1))];
      }
      if (i < end) ++even[digit(load(i))];
    });
    uint32_t before = 0;
    for (int64_t b = 0; b < buckets; ++b) {
      for (int part = 0; part < parts_; ++part) {
        uint32_t* own = counts_.data() + part * counters;
        const uint32_t many = own[b] + own[buckets + b];
        own[b] = before;
        before += many;
      }
    }
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      uint32_t* places = counts_.data() + part * counters;
      const Digit digit = digit_of;
      const Load load = load_from;
      const Store store = store_to;
      for (int64_t i = begin; i < end; ++i) {
        const auto element = load(i);
        store(places[digit(element)]++, element);
      }
    });
  }

  // Calls body(part, begin, end) for all parts of the elements.
  template <class Body>
  void each_part(Body&& body) const {
    auto one = [&](int64_t part) { body(part, count_ * part / parts_, count_ * (part + 1) / parts_); };
    if (parts_ == 1) return one(0);
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) one(part);
      return 0;
    });
  }
  int parts() const { return parts_; }

 private:
  static constexpr int64_t counters = int64_t{2} << Digits::widest;
  int64_t count_;
  int parts_;
  Scratch<uint32_t> counts_;
};

template <class Key>
struct Entry {
  Key key;
  uint32_t position;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : position < other.position; }
};

// Sorts entries by key; equal keys keep their order. `other` has the same length, positions increase. Returns the array
// that holds the result.
template <class Key>
Entry<Key>* sort_entries(Entry<Key>* entries, Entry<Key>* other, int64_t count) {
  if (count <= 96) {
    std::sort(entries, entries + count);
    return entries;
  }
  Key differing = 0;
  for (int64_t i = 0; i < count; ++i) differing |= entries[i].key ^ entries[0].key;
  const Digits digits(differing, count);
  if (digits.passes == 0) return entries;
  const RadixPasses passes(count);
  const Key mask = (Key{1} << digits.width) - 1;
  for (int pass = 0; pass < digits.passes; ++pass) {
    const int shift = digits.shift(pass);
    passes.run(
        digits.width, [=](const Entry<Key>& entry) { return (entry.key >> shift) & mask; },
        [=](int64_t i) { return entries[i]; }, [=](uint32_t place, const Entry<Key>& entry) { other[place] = entry; });
    std::swap(entries, other);
  }
  return entries;
}

}  // namespace capibara::cpu
