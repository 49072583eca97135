// Small matmuls straight from memory: where operands are read only a few times, packing costs as much as computing.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// A matmul of many rows by few columns: each element of the left operand is read once, and packing it would cost as
// much. False: not supported (another processor, or more columns than four vectors).
template <class T>
bool multiply_narrow(const SmallProduct<T>& product, const Finish* finish);

// Prefetches the operands of the next matmul in equal parts, one with each tile.
template <class T>
class Coming {
 public:
  Coming(const SmallProduct<T>& p, int64_t tiles)
      : left_(reinterpret_cast<const char*>(p.next_left)),
        right_(reinterpret_cast<const char*>(p.next_right)),
        left_bytes_(p.m * p.left_step * static_cast<int64_t>(sizeof(T))),
        right_bytes_(p.inner * p.right_step * static_cast<int64_t>(sizeof(T))),
        tiles_(tiles),
        known_(p.next_left && p.next_right && p.left_step == p.inner && p.right_step == p.n) {}

  void prefetch(int64_t tile) const {
    if (!known_) return;
    prefetch(left_, left_bytes_, tile);
    prefetch(right_, right_bytes_, tile);
  }

 private:
  void prefetch(const char* start, int64_t bytes, int64_t tile) const {
    const int64_t last = bytes * (tile + 1) / tiles_;
    for (int64_t byte = bytes * tile / tiles_ / 64 * 64; byte < last; byte += 64) __builtin_prefetch(start + byte);
  }

  const char *left_, *right_;
  int64_t left_bytes_, right_bytes_, tiles_;
  bool known_;
};

}  // namespace capibara::cpu
