// A codebook as bytes, for processors that multiply bytes four times faster than float32 but have no bfloat16.
//
// A vector is scale * bytes + a rounding error, and so is a code, with one scale for all: products of bytes are exact,
// and the lengths of the errors bound the error of a score.
#pragma once

#include "backends/cpu/kernels/quantization/vq_panels.h"

namespace capibara::cpu::vq {

inline constexpr int byte_rows = 8, byte_columns = 12,
                     byte_group = 4;  // of a tile; elements per multiply instruction

// True if this processor has the instruction.
bool has_byte_tile();

// c[row][column] = scales[row] * the product of bytes, for byte_rows x byte_columns of panels[group][row or column][4].
void run_byte_tile(int64_t groups, const int8_t* rows, const int8_t* columns, const float* scales, float* c,
                   int64_t c_step);

// Rounds `dim` numbers to scale * bytes; returns the scale.
float round_to_bytes(const float* from, int64_t dim, float largest, int8_t* to);
float largest_size(const float* from, int64_t count);
// The length of the rounding error, to a few digits.
double byte_rounding_length(const float* exact, const int8_t* rounded, float scale, int64_t dim);

// Like Panels, for bytes.
class BytePanels {
 public:
  using P = int8_t;
  using S = float;

  BytePanels(const int8_t* codes, float scale, const float* offsets, int64_t count, int64_t dim)
      : dim_(dim),
        groups_((dim + byte_group - 1) / byte_group),
        scale_(scale),
        count_(rounded_up(count, byte_columns)),
        padded_(rounded_up(count_, widest_vector / static_cast<int64_t>(sizeof(S)))),
        data_(count_ * groups_ * byte_group, "codes as bytes"),
        offsets_(padded_, "offsets of codes") {
    std::copy_n(offsets, count, offsets_.data());
    std::fill(offsets_.data() + count, offsets_.data() + padded_, -std::numeric_limits<S>::infinity());
    for (int64_t first = 0; first < count_; first += byte_columns)
      pack(codes, first, count, byte_columns, data_.data() + first * groups_ * byte_group);
  }

  static int rows() { return max_rows / byte_rows * byte_rows; }
  int64_t chunk() const { return 240; }  // whole tiles and whole vectors
  int64_t count() const { return padded_; }
  const S* offsets() const { return offsets_.data(); }
  int64_t left_size() const { return rows() * groups_ * byte_group; }

  void pack_vectors(const int8_t* vectors, int64_t count, int8_t* out) const {
    for (int64_t first = 0; first < count; first += byte_rows)
      pack(vectors, first, count, byte_rows, out + first * groups_ * byte_group);
  }

  // Scores of packed vectors, with these scales, against codes [begin, end): rows of chunk() numbers.
  void score(const int8_t* vectors, const float* scales, int64_t count, int64_t begin, int64_t end, S* out) const {
    float both[max_rows];
    for (int r = 0; r < max_rows; ++r) both[r] = r < count ? scales[r] * scale_ : 0;
    for (int64_t first = begin; first < std::min(end, count_); first += byte_columns) {
      for (int64_t row = 0; row < count; row += byte_rows) {
        run_byte_tile(groups_, vectors + row * groups_ * byte_group, data_.data() + first * groups_ * byte_group,
                      both + row, out + row * chunk() + (first - begin), chunk());
      }
    }
  }

 private:
  // Rows [first, first + width) of `count`, absent ones as zeros.
  void pack(const int8_t* from, int64_t first, int64_t count, int width, int8_t* to) const {
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t some = std::min<int64_t>(byte_group, dim_ - g * byte_group);
      for (int i = 0; i < width; ++i, to += byte_group) {
        std::fill_n(to, byte_group, int8_t{0});
        if (first + i < count) std::copy_n(from + (first + i) * dim_ + g * byte_group, some, to);
      }
    }
  }

  int64_t dim_, groups_;
  float scale_;
  int64_t count_, padded_;
  Scratch<int8_t> data_;
  Scratch<S> offsets_;
};

}  // namespace capibara::cpu::vq
