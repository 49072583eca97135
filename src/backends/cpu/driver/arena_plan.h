// Plans the one arena of a program: offsets of values that live at different times may be the same.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace capibara::cpu {

class ArenaPlan {
 public:
  // The lowest place that fits, in multiples of a cache line.
  int64_t allocate(int64_t bytes) {
    const int64_t size = rounded(bytes);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      const int64_t offset = it->first, left = it->second - size;
      free_.erase(it);
      if (left > 0) free_.emplace(offset + size, left);
      return offset;
    }
    int64_t offset = end_;
    if (!free_.empty()) {  // the last hole reaches the end: it grows
      auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        free_.erase(last);
      }
    }
    end_ = offset + size;
    return offset;
  }

  void release(int64_t offset, int64_t bytes) {
    auto [it, inserted] = free_.emplace(offset, rounded(bytes));
    auto next = std::next(it);
    if (next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        free_.erase(it);
      }
    }
  }

  int64_t size() const { return end_; }

 private:
  static constexpr int64_t line = 64;
  static int64_t rounded(int64_t bytes) { return bytes <= 0 ? line : (bytes + line - 1) / line * line; }

  std::map<int64_t, int64_t> free_;  // offset -> size
  int64_t end_ = 0;
};

}  // namespace capibara::cpu
