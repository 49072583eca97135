// svd of as many matrices at once as a vector has lanes: rotations that make columns orthogonal (one-sided Jacobi).
#include "backends/cpu/kernels/linalg/small_matrices_columns.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::small_matrices {

namespace {

template <class R, int Bytes>
struct SvdLanes : Columns<R, Bytes> {
  using Own = Columns<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::any;
  using Own::root;
  using Own::signed_as;
  using Own::size_of;
  static constexpr int max_sweeps = 40;  // ten are usual

  static CAPIBARA_FFT_INLINE V dot(const V* x, const V* y, int64_t size) {
    V sums[4] = {};
    int64_t i = 0;
    for (; i + 4 <= size; i += 4) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sums[k] += x[i + k] * y[i + k];
    }
    for (; i < size; ++i) sums[0] += x[i] * y[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  static CAPIBARA_FFT_INLINE void rotate(V* x, V* y, int64_t size, const V& cosine, const V& sine) {
    for (int64_t i = 0; i < size; ++i) {
      const V a = x[i], b = y[i];
      x[i] = cosine * a - sine * b;
      y[i] = sine * a + cosine * b;
    }
  }

  // One rotation for every pair of columns; the longer column becomes the first. Returns the lanes that rotated any.
  static CAPIBARA_FFT_INLINE M sweep(const SvdGroup<R>& group, V* columns, V* turned, V* squares) {
    const int64_t size = group.size, count = group.count;
    const V one = V{} + R(1);
    const R tolerance = std::numeric_limits<R>::epsilon() * std::sqrt(static_cast<R>(size)) / 2;
    for (int64_t j = 0; j < count; ++j) squares[j] = dot(columns + j * size, columns + j * size, size);
    M rotated = V{} != V{};
    for (int64_t p = 0; p + 1 < count; ++p) {
      for (int64_t q = p + 1; q < count; ++q) {
        const V inner = dot(columns + p * size, columns + q * size, size);
        const V first = squares[p], second = squares[q];
        const M apart = inner * inner > (tolerance * first) * (tolerance * second);
        if (!any(apart)) continue;
        rotated = rotated | apart;
        const V ratio = (second - first) / (R(2) * inner);
        const V tangent = signed_as(one / (size_of(ratio) + root(one + ratio * ratio)), ratio);
        const V c = one / root(one + tangent * tangent), s = c * tangent;
        const M exchanged = first < second;
        const V cosine = apart ? (exchanged ? s : c) : one, sine = apart ? (exchanged ? -c : s) : V{};
        const V less = first - tangent * inner, more = second + tangent * inner;
        squares[p] = apart ? (exchanged ? more : less) : first;
        squares[q] = apart ? (exchanged ? less : more) : second;
        rotate(columns + p * size, columns + q * size, size, cosine, sine);
        if (group.vectors) rotate(turned + p * count, turned + q * count, count, cosine, sine);
      }
    }
    return rotated;
  }

  static CAPIBARA_FFT_INLINE void svd(const SvdGroup<R>& group) {
    const int64_t size = group.size, count = group.count;
    V* flat = reinterpret_cast<V*>(group.work);
    V* columns = flat + size * count;
    V* turned = columns + size * count;
    V* squares = turned + count * count;
    Own::load_run(group.in, size * count, group.used, size * count, flat);
    V largest{}, poison{};
    for (int64_t i = 0; i < size * count; ++i) {
      const V here = size_of(flat[i]);
      poison += flat[i] * R(0);
      largest = here > largest ? here : largest;
    }
    // Left to LAPACK: non-finite matrices, and rank-deficient ones, whose vectors are not determined by their columns.
    M left_out = (poison != V{}) | (largest == V{});
    const V scale = Own::scale_of(largest, 20);
    for (int64_t i = 0; i < size * count; ++i) flat[i] = left_out ? V{} : flat[i] * scale;
    if (group.tall) {
      Own::to_columns(flat, size, count, columns, size);
    } else {
      std::copy(flat, flat + size * count, columns);
    }
    if (group.vectors) {
      std::fill(turned, turned + count * count, V{});
      for (int64_t i = 0; i < count; ++i) turned[i * (count + 1)] = V{} + R(1);
    }
    M rotated = V{} == V{};
    for (int sweeps = 0; sweeps < max_sweeps && any(rotated); ++sweeps) {
      rotated = sweep(group, columns, turned, squares);
    }
    left_out = left_out | rotated;
    for (int64_t j = 0; j < count; ++j) {
      V* column = columns + j * size;
      const V length = root(dot(column, column, size));
      squares[j] = length / scale;
      left_out = left_out | ~(squares[j] > largest * (std::numeric_limits<R>::epsilon() * R(0x1p-20)));
      const V inverse = R(1) / length;
      for (int64_t i = 0; i < size; ++i) column[i] *= inverse;
    }
    R* long_vectors = reinterpret_cast<R*>(flat);
    if (group.vectors) Own::store_run(columns, group.used, size * count, long_vectors, size * count);
    R* short_vectors = reinterpret_cast<R*>(columns);
    if (group.vectors) Own::store_run(turned, group.used, count * count, short_vectors, count * count);
    for (int64_t lane = 0; lane < group.used; ++lane) {
      group.left_out[lane] = left_out[lane] != 0;
      if (group.left_out[lane]) continue;
      store_descending(group, lane, reinterpret_cast<const R*>(squares) + lane, long_vectors + lane * size * count,
                       short_vectors + lane * count * count);
    }
  }

  // The vectors are stored contiguously, one after another.
  static void store_descending(const SvdGroup<R>& group, int64_t lane, const R* values, const R* long_vectors,
                               const R* short_vectors) {
    const int64_t size = group.size, count = group.count;
    int order[max_spectrum_order];
    for (int j = 0; j < count; ++j) order[j] = j;
    auto value = [&](int j) { return values[j * Own::count]; };
    std::stable_sort(order, order + count, [&](int a, int b) { return value(a) > value(b); });
    for (int64_t j = 0; j < count; ++j) group.values[lane * count + j] = value(order[j]);
    if (!group.vectors) return;
    const int64_t u_size = group.tall ? size : count, vt_size = group.tall ? count : size;
    const R *u_from = group.tall ? long_vectors : short_vectors, *vt_from = group.tall ? short_vectors : long_vectors;
    R *u = group.u + lane * u_size * count, *vt = group.vt + lane * count * vt_size;
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i < u_size; ++i) u[i * count + j] = u_from[order[j] * u_size + i];
      std::copy_n(vt_from + order[j] * vt_size, vt_size, vt + j * vt_size);
    }
  }
};

#define CAPIBARA_SMALL_SVD(NAME, TARGET, BYTES)      \
  template <class R>                                 \
  TARGET void svd_##NAME(const SvdGroup<R>& group) { \
    SvdLanes<R, BYTES>::svd(group);                  \
  }
CAPIBARA_SMALL_SVD(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_SMALL_SVD(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_SMALL_SVD(avx512, CAPIBARA_AVX512, 64)
#endif
#undef CAPIBARA_SMALL_SVD

template <class R>
SvdCode<R> best_svd() {
#if defined(__x86_64__)
  if (has_avx512()) return {64 / sizeof(R), svd_avx512<R>};
  if (has_avx2()) return {32 / sizeof(R), svd_avx2<R>};
#endif
  return {16 / sizeof(R), svd_plain<R>};
}

}  // namespace

template <class R>
const SvdCode<R>& svd_code() {
  static const SvdCode<R> found = best_svd<R>();
  return found;
}
template const SvdCode<float>& svd_code();
template const SvdCode<double>& svd_code();

}  // namespace capibara::cpu::small_matrices
