// eigh of as many matrices at once as a vector has lanes: tridiagonal form by reflectors, then the QL method.
#include "backends/cpu/kernels/linalg/small_matrices_ql.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::small_matrices {

namespace {

template <class R, int Bytes>
struct EighLanes : QlLanes<R, Bytes> {
  using Own = QlLanes<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::any;
  using Own::count;
  using Own::size_of;

  // columns -= v other' + other v'.
  template <int Columns>
  static CAPIBARA_FFT_INLINE void subtract_pair(const V* v, const V* other, int64_t size, int64_t column, V* a,
                                                int64_t stride) {
    V left[Columns], right[Columns];
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      left[j] = other[column + j];
      right[j] = v[column + j];
    }
    V* columns = a + column * stride;
    for (int64_t i = 0; i < size; ++i) {
      const V x = v[i], y = other[i];
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) columns[j * stride + i] -= x * left[j] + y * right[j];
    }
  }

  // Both triangles are kept, so that every step reads whole columns. Reflector k begins below the diagonal of column k.
  static CAPIBARA_FFT_INLINE void to_tridiagonal(V* a, int64_t n, int64_t stride, V* d, V* e, V* taus, V* other) {
    for (int64_t k = 0; k + 1 < n; ++k) {
      const int64_t size = n - k - 1;
      V* v = a + k * stride + k + 1;
      V* rest = v + stride;
      d[k] = v[-1];
      Own::make(v, size, taus[k], e[k]);
      if (size == 1) break;
      V inner{};
      int64_t j = 0;
      for (; j + 4 <= size; j += 4) {
        V sums[4];
        Own::template dot<4>(v, size, rest + j * stride, stride, sums);
#pragma GCC unroll 4
        for (int l = 0; l < 4; ++l) {
          other[j + l] = sums[l] * taus[k];
          inner += other[j + l] * v[j + l];
        }
      }
      for (; j < size; ++j) {
        V sums[1];
        Own::template dot<1>(v, size, rest + j * stride, stride, sums);
        other[j] = sums[0] * taus[k];
        inner += other[j] * v[j];
      }
      const V factor = R(-0.5) * taus[k] * inner;
      for (j = 0; j < size; ++j) other[j] += factor * v[j];
      for (j = 0; j + 4 <= size; j += 4) subtract_pair<4>(v, other, size, j, rest, stride);
      for (; j < size; ++j) subtract_pair<1>(v, other, size, j, rest, stride);
    }
    d[n - 1] = a[(n - 1) * (stride + 1)];
    e[n - 1] = V{};
  }

  static CAPIBARA_FFT_INLINE void eigh(const EighGroup<R>& group) {
    const int64_t n = group.order, stride = column_stride(n), padded = padded_order(n);
    V* a = reinterpret_cast<V*>(group.work);
    V* q = a + n * stride;
    V* vectors = q + n * stride;
    V* d = vectors + padded * n;
    V *e = d + n, *taus = e + n, *cosines = taus + n, *sines = cosines + n;
    Own::load_run(group.in, n * n, group.used, n * n, vectors);
    V poison{}, largest{};
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const V x = vectors[i * n + j], size = size_of(x);
        poison += x * R(0);
        if (j <= i) largest = size > largest ? size : largest;
      }
    }
    const M bad = poison != V{};  // a number that is not finite
    const V scale = Own::scale_of(largest, 0);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = j; i < n; ++i) {
        const V x = vectors[i * n + j];
        a[j * stride + i] = a[i * stride + j] = bad ? V{} : x * scale;
      }
    }
    to_tridiagonal(a, n, stride, d, e, taus, cosines);
    // Q, of which the first row and column are those of the unit matrix.
    std::fill(q, q + n, V{});
    q[0] = V{} + R(1);
    for (int64_t j = 1; j < n; ++j) q[j * stride] = V{};
    if (n > 1) Own::multiply(a + 1, taus, std::max<int64_t>(n - 2, 0), n - 1, stride, q + stride + 1, n - 1, stride);
    const M flipped = size_of(d[n - 1]) < size_of(d[0]);
    reverse_lanes(d, n, flipped);
    reverse_lanes(e, n - 1, flipped);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const V forward = q[j * stride + i], backward = q[(n - 1 - j) * stride + i];
        vectors[i * n + j] = flipped ? backward : forward;
      }
    }
    std::fill(vectors + n * n, vectors + padded * n, V{});
    const M failed = Own::iterate({n, d, e, cosines, sines, vectors, flipped}) | bad;
    for (int64_t i = 0; i < n; ++i) d[i] /= scale;
    R* rows = reinterpret_cast<R*>(q);
    Own::store_run(vectors, group.used, n * n, rows, n * n);
    for (int64_t lane = 0; lane < group.used; ++lane) {
      R *to = group.vectors + lane * n * n, *values = group.values + lane * n;
      if (failed[lane]) {
        std::fill_n(to, n * n, std::numeric_limits<R>::quiet_NaN());
        std::fill_n(values, n, std::numeric_limits<R>::quiet_NaN());
        continue;
      }
      store_ascending(reinterpret_cast<const R*>(d) + lane, flipped[lane] != 0, n, rows + lane * n * n, to, values);
    }
  }

  static CAPIBARA_FFT_INLINE void reverse_lanes(V* values, int64_t size, const M& lanes) {
    for (int64_t i = 0; i < size / 2; ++i) {
      const V low = values[i], high = values[size - 1 - i];
      values[i] = lanes ? high : low;
      values[size - 1 - i] = lanes ? low : high;
    }
  }

  // Eigenvalues in ascending order, by exchanges as LAPACK makes them, and the vectors' columns in that order.
  static void store_ascending(const R* diagonal, bool flipped, int64_t n, const R* rows, R* vectors, R* values) {
    int order[max_spectrum_order];
    for (int64_t j = 0; j < n; ++j) {
      order[j] = static_cast<int>(flipped ? n - 1 - j : j);
      values[j] = diagonal[order[j] * count];
    }
    for (int64_t i = 0; i + 1 < n; ++i) {
      int64_t least = i;
      for (int64_t j = i + 1; j < n; ++j) least = values[j] < values[least] ? j : least;
      std::swap(values[i], values[least]);
      std::swap(order[i], order[least]);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) vectors[i * n + j] = rows[i * n + order[j]];
    }
  }
};

#define CAPIBARA_SMALL_EIGH(NAME, TARGET, BYTES)       \
  template <class R>                                   \
  TARGET void eigh_##NAME(const EighGroup<R>& group) { \
    EighLanes<R, BYTES>::eigh(group);                  \
  }
CAPIBARA_SMALL_EIGH(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_SMALL_EIGH(avx2, __attribute__((target("avx2,fma"))), 32)
CAPIBARA_SMALL_EIGH(avx512, __attribute__((target("avx512f,avx512dq"))), 64)
#endif
#undef CAPIBARA_SMALL_EIGH

template <class R>
EighCode<R> best_eigh() {
#if defined(__x86_64__)
  if (has_avx512()) return {64 / sizeof(R), eigh_avx512<R>};
  if (has_avx2()) return {32 / sizeof(R), eigh_avx2<R>};
#endif
  return {16 / sizeof(R), eigh_plain<R>};
}

}  // namespace

template <class R>
const EighCode<R>& eigh_code() {
  static const EighCode<R> found = best_eigh<R>();
  return found;
}
template const EighCode<float>& eigh_code();
template const EighCode<double>& eigh_code();

}  // namespace capibara::cpu::small_matrices
