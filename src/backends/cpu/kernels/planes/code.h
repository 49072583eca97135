// The loops over planes, compiled once for each kind of processor; plain types alone pass between files.
//
// A plane is one feature of one image, padded and split by the strides of a window into phases: in a phase the elements
// that neighbouring places of the window meet are neighbours, whatever the stride is. layout.h says where they are.
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

// Some places of a window as a panel of a matmul: panel[p][lane] = from[lane + offsets[p]], zeros from `used` on.
template <class T>
struct PlaneRun {
  const T* from;  // of the first of `count` neighbours, which begin at `lane`
  std::int64_t lane, count;
};
template <class T>
struct PlanePanel {
  const PlaneRun<T>* runs;
  std::int64_t run_count;
  const std::int64_t* offsets;
  std::int64_t inner, width, used;
};

// A part of an image and of a plane that the window's elements are multiplied with.
template <class T>
struct PlaneDots {
  const T* const* taps;  // one for each place of the window: rows of the plane
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

// Some features of some places: out[row][i] = or += sum over k of weights[k][row] * x[i + offsets[k]], where the lanes
// of a vector are in two rows of places at most: those from `edge` on count from `second`.
template <class T>
struct PlaneTile {
  const T* weights;
  const T *first[2], *second[2];
  std::int64_t edge[2];
  const std::int32_t* offsets;
  std::int64_t inner, width;  // of how many places results are wanted
  T* out;
  std::int64_t out_step;
  bool accumulate;
};

// Features by features for one element of a window: sums[l][r] = or += sum over places of left[l] * right[r].
template <class T>
struct PlaneOuter {
  const T *left, *right;  // panels: all features of one place are neighbours
  std::int64_t left_step, left_pitch, right_pitch, rows, columns;
  T* sums;
  bool accumulate;
};

// Functions by height, the greatest first, and by vectors of columns less one; without any the heights are 0.
template <class T>
struct PlaneTileTable {
  int heights[3] = {};
  void (*tile[3][2])(const PlaneTile<T>&) = {};
  void (*outer[3][2])(const PlaneOuter<T>&) = {};
};

template <class T>
struct PlaneCode {
  std::int64_t lanes = 0;  // vectors of so many elements are read and written beyond the last element of a plane
  void (*lay)(const PlaneRow<T>& row) = nullptr;
  // to[i * step] = from[i].
  void (*put)(const T* from, T* to, std::int64_t step, std::int64_t count) = nullptr;
  // to[2 * i] = even[i], to[2 * i + 1] = odd[i], for `count` elements of `to`.
  void (*join)(const T* even, const T* odd, T* to, std::int64_t count) = nullptr;
  // The same in whole vectors that bypass the caches: `to` is aligned to them, and `count` is a multiple of their
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
  // The number of the greatest (else least) of taps[t][i]: the first one that no later one exceeds.
  void (*choose)(bool greatest, const T* const* taps, std::int64_t tap_count, PlaneInt<T>* which,
                 std::int64_t count) = nullptr;
  // totals[i] = sum over t of updates[i - shifts[t]] where which[i - shifts[t]] == numbers[t], in the order of t.
  void (*collect)(const PlaneTotals<T>& windows, T* totals, std::int64_t count) = nullptr;
  PlaneTileTable<T> tiles = {};
};

// Of this processor, or of the lesser one that CAPIBARA_CPU_LEVEL names.
template <class T>
const PlaneCode<T>& plane_code();

template <class T>
PlaneCode<T> planes_avx2();
template <class T>
PlaneCode<T> planes_avx512();

}  // namespace capibara::cpu
