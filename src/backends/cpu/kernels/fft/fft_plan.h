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

// One step of a mixed-radix transform: `radix` parts of `inner` elements each, in `outer` transforms of that length.
struct Stage {
  int64_t radix, inner, outer;
  // Index of its roots: (radix - 1) for each of the inner elements, then `radix` of its own order.
  std::size_t roots;
};

// A forward transform of one length. Small factors are steps; a length with a larger prime factor is a convolution
// with a chirp (Bluestein), by transforms of a length without one.
template <class R>
struct Plan {
  explicit Plan(int64_t length);

  int64_t length;
  std::vector<Stage> stages;
  std::vector<R> roots;        // pairs
  std::vector<int32_t> bases;  // for each block of the last step: index of its first result
  std::vector<R> half_roots;   // exp(-2 pi i k / 2 length), k up to length: for real transforms of twice the length
  std::shared_ptr<const Plan> inner;  // of the convolution
  std::vector<R> chirp, kernel;       // pairs: of `length`, and of the inner length

  bool is_convolution() const { return inner != nullptr; }
  int64_t work_length() const { return inner ? inner->length : length; }
};

// Two passes for one long line: length = rows * columns. First transforms along the columns, then multiplies each
// element by its root, then transforms along the rows.
template <class R>
struct LongPlan {
  LongPlan(int64_t length, int64_t rows, int64_t lanes);

  int64_t length, rows, columns;
  int64_t padded_rows, padded_columns;  // rounded up to multiples of the lanes
  std::shared_ptr<const Plan<R>> along_columns, along_rows;
  std::vector<R> real, imag;  // roots: [rows, padded_columns]
};

// A cache line of numbers: aligns vectors of these to their loads.
template <class R>
struct alignas(64) AlignedNumbers {
  R numbers[64 / sizeof(R)];
};

// One step: `radix` parts of `blocks` vectors each, in `outer` transforms of that length.
struct WithinStage {
  int64_t radix, blocks, outer;
  std::size_t roots;  // index of its roots: for each block radix - 1 pairs of vectors
};

// The last step transforms the elements of each vector, with as many vectors at once as it has elements: for lengths
// that are multiples of the square of the lanes, or for several lines at once whose total length is that square.
template <class R>
struct WithinPlan {
  WithinPlan(int64_t length, int64_t lanes);

  const R* roots_at(std::size_t index) const { return roots.front().numbers + index; }
  const R* lane_roots() const { return roots_at(lane_roots_begin); }
  const R* half_roots() const { return roots_at(half_roots_begin); }
  // Vectors of elements between the steps, and the spectrum of real lines in two planes.
  int64_t work_size() const { return 4 * together * length + 4 * lanes; }

  int64_t length, lanes;
  int64_t together;  // lines transformed at once, contiguous in memory
  std::vector<WithinStage> stages;
  std::vector<int32_t> order;  // index of the vector with the elements of the next results
  std::vector<AlignedNumbers<R>> roots;
  // For the last step: for each q from 1 to the number of 16-byte parts of a vector, the q-th powers of the roots of
  // order `lanes` of each lane within its part.
  std::size_t lane_roots_begin = 0;
  // exp(-2 pi i k / 2 length) / 2 for k below length / 2, real parts then imaginary parts.
  std::size_t half_roots_begin = 0;
};

// From a cache of recently used plans.
template <class R>
std::shared_ptr<const Plan<R>> plan_for(int64_t length);
// Null if two passes do not pay for this length.
template <class R>
std::shared_ptr<const LongPlan<R>> long_plan_for(int64_t length, int64_t lanes);

// Null if other algorithms are faster for this length; only plans for one line at a time unless several are
// allowed.
template <class R>
std::shared_ptr<const WithinPlan<R>> within_plan_for(int64_t length, int64_t lanes, bool may_be_several);

}  // namespace capibara::cpu::fft
