// qr of as many matrices at once as a vector has lanes, by Householder reflectors, and the code for this processor.
#include "backends/cpu/kernels/linalg/small_matrices_reflectors.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::small_matrices {

namespace {

template <class R, int Bytes>
struct QrLanes : Reflectors<R, Bytes> {
  using Own = Reflectors<R, Bytes>;
  using V = typename Own::V;

  // Four columns at a time, applying the reflectors of earlier columns: they stay in the nearest cache.
  static CAPIBARA_FFT_INLINE void factor(V* a, int64_t rows, int64_t cols, int64_t stride, V* taus, V* diagonal) {
    const int64_t steps = std::min(rows, cols);
    for (int64_t j0 = 0; j0 < cols; j0 += 4) {
      const int64_t end = std::min(j0 + 4, cols);
      for (int64_t k = 0; k < std::min(j0, steps); ++k) {
        Own::reflect_all(a + k * (stride + 1), taus[k], rows - k, a + j0 * stride + k, stride, end - j0);
      }
      for (int64_t k = j0; k < std::min(end, steps); ++k) {
        V* v = a + k * (stride + 1);
        Own::make(v, rows - k, taus[k], diagonal[k]);
        Own::reflect_all(v, taus[k], rows - k, v + stride, stride, end - k - 1);
      }
    }
  }

  static CAPIBARA_FFT_INLINE void qr(const QrGroup<R>& group) {
    const int64_t rows = group.rows, cols = group.cols, stride = column_stride(rows), steps = std::min(rows, cols);
    V* flat = reinterpret_cast<V*>(group.work);
    V* a = flat + rows * std::max(cols, group.q_cols);
    V* q = a + stride * cols;
    V* taus = q + stride * group.q_cols;
    V* diagonal = taus + cols;
    Own::load_run(group.in, rows * cols, group.used, rows * cols, flat);
    Own::to_columns(flat, rows, cols, a, stride);
    factor(a, rows, cols, stride, taus, diagonal);
    if (group.q) {
      Own::multiply(a, taus, steps, rows, stride, q, group.q_cols, stride);
      Own::to_rows(q, stride, rows, group.q_cols, flat);
      Own::store_run(flat, group.used, rows * group.q_cols, group.q, rows * group.q_cols);
    }
    for (int64_t k = 0; k < steps; ++k) a[k * (stride + 1)] = diagonal[k];
    if (group.packed) {
      Own::to_rows(a, stride, rows, cols, flat);
      Own::store_run(flat, group.used, rows * cols, group.packed, rows * cols);
      Own::store_run(taus, group.used, steps, group.taus, steps);
    }
    if (group.r) {
      for (int64_t j = 0; j < cols; ++j) {
        for (int64_t i = j + 1; i < group.r_rows; ++i) a[j * stride + i] = V{};
      }
      Own::to_rows(a, stride, group.r_rows, cols, flat);
      Own::store_run(flat, group.used, group.r_rows * cols, group.r, group.r_rows * cols);
    }
  }

  static CAPIBARA_FFT_INLINE void multiply(const ReflectorGroup<R>& group) {
    const int64_t rows = group.rows, cols = group.cols, stride = column_stride(rows), count = group.reflectors;
    V* flat = reinterpret_cast<V*>(group.work);
    V* a = flat + rows * cols;
    V* q = a + stride * cols;
    V* taus = q + stride * cols;
    Own::load_run(group.packed, rows * cols, group.used, rows * cols, flat);
    Own::to_columns(flat, rows, cols, a, stride);
    if (count > 0) Own::load_run(group.taus, count, group.used, count, taus);
    for (int64_t k = 0; k < count; ++k) a[k * (stride + 1)] = V{} + R(1);
    Own::multiply(a, taus, count, rows, stride, q, cols, stride);
    Own::to_rows(q, stride, rows, cols, flat);
    Own::store_run(flat, group.used, rows * cols, group.q, rows * cols);
  }
};

#define CAPIBARA_SMALL_QR(NAME, TARGET, BYTES)                  \
  template <class R>                                            \
  TARGET void qr_##NAME(const QrGroup<R>& group) {              \
    QrLanes<R, BYTES>::qr(group);                               \
  }                                                             \
  template <class R>                                            \
  TARGET void multiply_##NAME(const ReflectorGroup<R>& group) { \
    QrLanes<R, BYTES>::multiply(group);                         \
  }
CAPIBARA_SMALL_QR(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_SMALL_QR(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_SMALL_QR(avx512, CAPIBARA_AVX512, 64)
#endif
#undef CAPIBARA_SMALL_QR

template <class R>
QrCode<R> best_qr() {
#if defined(__x86_64__)
  if (has_avx512()) return {64 / sizeof(R), qr_avx512<R>, multiply_avx512<R>};
  if (has_avx2()) return {32 / sizeof(R), qr_avx2<R>, multiply_avx2<R>};
#endif
  return {16 / sizeof(R), qr_plain<R>, multiply_plain<R>};
}

}  // namespace

template <class R>
const QrCode<R>& qr_code() {
  static const QrCode<R> found = best_qr<R>();
  return found;
}
template const QrCode<float>& qr_code();
template const QrCode<double>& qr_code();

}  // namespace capibara::cpu::small_matrices
