// What a part of an array takes from one of its chunks, and how it comes to its place.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "io/checkpoint/zarr.h"

namespace capibara {

// What a part of an array takes from a chunk.
struct ZarrBox {
  Shape origin, size;  // in the array
  uint64_t elements = 1;

  ZarrBox(const ZarrPart& part, const Shape& chunk, const Shape& first) : origin(first), size(chunk) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      origin[i] = std::max(first[i], part.start[i]);
      size[i] = std::max<int64_t>(0, std::min(first[i] + chunk[i], part.start[i] + part.size[i]) - origin[i]);
      elements *= static_cast<uint64_t>(size[i]);
    }
  }
  // Whether the box is the first bytes of the chunk, and has its neighbours in the part as well.
  bool is_run(const ZarrPart& part, const Shape& chunk, const Shape& first) const {
    std::size_t i = 0;
    while (i < chunk.size() && chunk[i] == 1) ++i;
    if (i < chunk.size() && origin[i] != first[i]) return false;
    for (++i; i < chunk.size(); ++i) {
      if (size[i] != chunk[i] || part.size[i] != chunk[i]) return false;
    }
    return true;
  }
};

inline uint64_t element_offset(const Shape& shape, const Shape& at) {
  int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + at[i];
  return static_cast<uint64_t>(offset);
}

inline Shape difference(Shape a, const Shape& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Takes the bytes of a chunk in their order, in pieces of any size, and copies those of a box to the part: a chunk that
// is larger than its array takes no memory.
class ZarrBoxFiller {
 public:
  ZarrBoxFiller(const ZarrPart& part, const Shape& chunk, const Shape& first, const ZarrBox& box, uint64_t width,
                std::byte* to)
      : part_(part), chunk_(chunk), first_(first), box_(box), width_(width), to_(to), row_(chunk.size(), 0) {
    if (chunk.empty()) {
      row_bytes_ = end_ = width;
    } else {
      const std::size_t last = chunk.size() - 1;
      row_bytes_ = static_cast<uint64_t>(chunk[last]) * width;
      begin_ = static_cast<uint64_t>(box.origin[last] - first[last]) * width;
      end_ = begin_ + static_cast<uint64_t>(box.size[last]) * width;
    }
    enter_row();
  }

  void take(std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::span<const std::byte> here = piece.first(std::min<uint64_t>(piece.size(), row_bytes_ - at_));
      if (target_) {
        const uint64_t from = std::max(at_, begin_), to = std::min(at_ + here.size(), end_);
        if (from < to) std::memcpy(target_ + (from - begin_), here.data() + (from - at_), to - from);
      }
      at_ += here.size();
      piece = piece.subspan(here.size());
      if (at_ == row_bytes_) next_row();
    }
  }

 private:
  void next_row() {
    at_ = 0;
    for (std::size_t axis = row_.size(); axis-- > 1;) {
      if (++row_[axis - 1] < chunk_[axis - 1]) break;
      row_[axis - 1] = 0;
    }
    enter_row();
  }
  // Where the row's share of the box goes; nowhere where it has none.
  void enter_row() {
    target_ = nullptr;
    Shape in_part = difference(box_.origin, part_.start);
    for (std::size_t i = 0; i + 1 < row_.size(); ++i) {
      const int64_t in_box = first_[i] + row_[i] - box_.origin[i];
      if (in_box < 0 || in_box >= box_.size[i]) return;
      in_part[i] += in_box;
    }
    target_ = to_ + element_offset(part_.size, in_part) * width_;
  }

  const ZarrPart& part_;
  const Shape &chunk_, &first_;
  const ZarrBox& box_;
  const uint64_t width_;
  std::byte* const to_;
  Shape row_;                                     // in the chunk; its last entry stays 0
  uint64_t row_bytes_ = 0, begin_ = 0, end_ = 0;  // of a row: all, and the box's share
  uint64_t at_ = 0;                               // in the row
  std::byte* target_ = nullptr;
};

}  // namespace capibara
