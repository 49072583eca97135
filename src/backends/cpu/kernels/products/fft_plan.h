// Plans of Fourier transforms: factors and roots of unity of one length, made once and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace capibara::cpu::fft {

// exp(-2 pi i k / n), correct to the last place of a double.
struct Root {
  double real, imag;
};
Root root(int64_t k, int64_t n);

// One step of a transform by factors: `radix` parts of `inner` elements each, in `outer` transforms of that length.
struct Stage {
  int64_t radix, inner, outer;
  // Where its roots begin: (radix - 1) for each of the inner elements, then `radix` of its own order.
  std::size_t roots;
};

// A forward transform of one length. Small factors are steps; a length with a greater prime is a convolution with a
// chirp (Bluestein) by transforms of a length that has none.
template <class R>
struct Plan {
  explicit Plan(int64_t length);

  int64_t length;
  std::vector<Stage> stages;
  std::vector<R> roots;       // pairs
  std::vector<R> half_roots;  // exp(-2 pi i k / 2 length), k up to length: for real transforms of twice the length
  std::shared_ptr<const Plan> inner;  // of the convolution
  std::vector<R> chirp, kernel;       // pairs: of `length`, and of the inner length

  bool is_convolution() const { return inner != nullptr; }
  int64_t work_length() const { return inner ? inner->length : length; }
};

// Two passes for one long line: length = rows * columns. First transforms along the columns, each element then times
// its root, then along the rows.
template <class R>
struct LongPlan {
  LongPlan(int64_t length, int64_t rows, int64_t lanes);

  int64_t length, rows, columns;
  int64_t padded_rows, padded_columns;  // to multiples of the lanes
  std::shared_ptr<const Plan<R>> along_columns, along_rows;
  std::vector<R> real, imag;  // roots: [rows, padded_columns]
};

// From a cache of plans that were used lately.
template <class R>
std::shared_ptr<const Plan<R>> plan_for(int64_t length);
// Null where two passes do not pay for this length.
template <class R>
std::shared_ptr<const LongPlan<R>> long_plan_for(int64_t length, int64_t lanes);

}  // namespace capibara::cpu::fft
