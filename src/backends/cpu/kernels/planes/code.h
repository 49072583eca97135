// The loops over planes, compiled once for each kind of processor; only plain types cross between files.
//
// A plane is one feature of one image, padded and split by the strides of a window into phases: in a phase, elements
// that neighbouring places (output positions) meet are contiguous for any stride. layout.h has the offsets.
#pragma once

#include <cstdint>
#include <type_traits>

namespace capibara::cpu {

template <class T>
using PlaneInt = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// One row of an image for one phase of columns: `from[i * step]` for i in [low, high), `blank` elsewhere in [0, pitch).
template <class T>
struct PlaneRow {
  const T* from;
  std::int64_t step, low, high, pitch;
  T blank;
  T* to;
};

// Some output positions as a panel of a matmul: panel[p][lane] = from[lane + offsets[p]], zeros from `used` on.
template <class T>
struct PlaneRun {
  const T* from;  // the first of `count` contiguous elements, for lanes from `lane` on
  std::int64_t lane, count;
};
template <class T>
struct PlanePanel {
  const PlaneRun<T>* runs;
  std::int64_t run_count;
  const std::int64_t* offsets;
  std::int64_t inner, width, used;
};

// Part of an image, and of a plane with which it is multiplied at each window offset.
template <class T>
struct PlaneDots {
  const T* const* taps;  // one for each output position of the window: rows of the plane
  std::int64_t tap_count, pitch;
  const T* image;
  std::int64_t image_pitch, rows, columns;
  T* sums;  // of each tap
};

// Windows that select one of their elements.
template <class T>
struct PlaneTotals {
  const PlaneInt<T>* which;  // the tap that each window selects
  const T* updates;          // one value for each window
  const std::int64_t* shifts;
  const PlaneInt<T>* numbers;
  std::int64_t tap_count;
};

// Some features at some output positions: out[row][i] = or += sum over k of weights[k][row] * x[i + offsets[k]]. The
// lanes of a vector are in at most two rows of positions: those from `edge` on are read from `second`.
template <class T>
struct PlaneTile {
  const T* weights;
  const T *first[2], *second[2];
  std::int64_t edge[2];
  const std::int32_t* offsets;
  std::int64_t inner, width;  // number of positions computed
  T* out;
  std::int64_t out_step;
  bool accumulate;
};

// Features by features for one window element: sums[l][r] = or += sum over output positions of left[l] * right[r].
template <class T>
struct PlaneOuter {
  const T *left, *right;  // panels: all features of one position are contiguous
  std::int64_t left_step, left_pitch, right_pitch, rows, columns;
  T* sums;
  bool accumulate;
};

// Functions by height, in decreasing order, and by vectors of columns minus one; heights are 0 if there are none.
template <class T>
struct PlaneTileTable {
  int heights[3] = {};
  void (*tile[3][2])(const PlaneTile<T>&) = {};
  void (*outer[3][2])(const PlaneOuter<T>&) = {};
};

template <class T>
struct PlaneCode {
  std::int64_t lanes = 0;  // vectors of this many elements are read and written past the last element of a plane
  void (*lay)(const PlaneRow<T>& row) = nullptr;
  // to[i * step] = from[i].
  void (*put)(const T* from, T* to, std::int64_t step, std::int64_t count) = nullptr;
  // to[2 * i] = even[i], to[2 * i + 1] = odd[i], for `count` elements of `to`.
  void (*join)(const T* even, const T* odd, T* to, std::int64_t count) = nullptr;
  // The same in whole vectors that bypass the caches: `to` is aligned to vectors, and `count` is a multiple of their
  // lanes.
  void (*stream_join)(const T* even, const T* odd, T* to, std::int64_t count) = nullptr;
  void (*panel)(const PlanePanel<T>& panel, T* out) = nullptr;
  // out[i] = sum over t of weights[t] * taps[t][i].
  void (*sum)(const T* const* taps, const T* weights, std::int64_t tap_count, T* out, std::int64_t count) = nullptr;
  // The same with a weight for each element.
  void (*sum_each)(const T* const* taps, const T* const* weights, std::int64_t tap_count, T* out,
                   std::int64_t count) = nullptr;
  // sums[t] += sum over the image of image[y][x] * taps[t][y][x].
  void (*dots)(const PlaneDots<T>& dots) = nullptr;
  // Index of the greatest (else least) of taps[t][i]: the first one that no later one exceeds.
  void (*choose)(bool greatest, const T* const* taps, std::int64_t tap_count, PlaneInt<T>* which,
                 std::int64_t count) = nullptr;
  // totals[i] = sum over t of updates[i - shifts[t]] where which[i - shifts[t]] == numbers[t], in the order of t.
  void (*collect)(const PlaneTotals<T>& windows, T* totals, std::int64_t count) = nullptr;
  PlaneTileTable<T> tiles = {};
};

// For this processor, or for the lower level set by CAPIBARA_CPU_LEVEL.
template <class T>
const PlaneCode<T>& plane_code();

template <class T>
PlaneCode<T> planes_avx2();
template <class T>
PlaneCode<T> planes_avx512();

}  // namespace capibara::cpu
