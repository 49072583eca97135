// eigh of as many matrices at once as a vector has lanes: tridiagonalisation by reflectors, then the QL method.
#include "backends/cpu/kernels/linalg/small_matrices_reflectors.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

// Rotations of pairs of numbers, and eigenpairs of symmetric 2 x 2 matrices, one in each lane.

namespace capibara::cpu::small_matrices {

template <class R, int Bytes>
struct Rotations : Reflectors<R, Bytes> {
  using Own = Reflectors<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::root;
  using Own::signed_as;
  using Own::size_of;

  // cosine * x + sine * y = length and cosine * y = sine * x.
  static CAPIBARA_FFT_INLINE void rotation(const V& x, const V& y, V& cosine, V& sine, V& length) {
    constexpr R small = sizeof(R) == 4 ? R(0x1p-50) : R(0x1p-400), large = sizeof(R) == 4 ? R(0x1p60) : R(0x1p500);
    const V size = size_of(x) > size_of(y) ? size_of(x) : size_of(y);
    const V scale = size < small ? V{} + large : V{} + R(1);
    const V a = x * scale, b = y * scale;
    const V norm = root(a * a + b * b);
    const M usable = norm > V{};
    const V inverse = R(1) / norm, directed = signed_as(inverse, x);
    cosine = usable ? size_of(a) * inverse : V{} + R(1);
    sine = usable ? b * directed : V{};
    length = usable ? signed_as(size < small ? norm * (R(1) / large) : norm, x) : V{};
  }

  // The eigenvalue of ((a, b), (b, c)) of greater magnitude, the other one, and the unit eigenvector of the first.
  static CAPIBARA_FFT_INLINE void pair(const V& a, const V& b, const V& c, V& first, V& second, V& cosine, V& sine) {
    const V one = V{} + R(1);
    const V sum = a + c, difference = a - c, twice = b + b, off = size_of(twice);
    const M is_first = size_of(a) > size_of(c);
    const V greater = is_first ? a : c, lesser = is_first ? c : a;
    const V distance = root(difference * difference + twice * twice);
    const M negative = sum < V{}, vanishes = sum == V{};
    first = R(0.5) * (negative ? sum - distance : sum + distance);
    const V quotient = one / first;
    second = vanishes ? R(-0.5) * distance : (greater * quotient) * lesser - (b * quotient) * b;
    const M ahead = difference >= V{};
    const V leg = ahead ? difference + distance : difference - distance;
    const M steep = size_of(leg) > off;
    const V tangent = steep ? -twice / leg : -leg / twice;
    const V part = one / root(one + tangent * tangent), rest = tangent * part;
    const M diagonal = off == V{};
    const V x = steep ? rest : (diagonal ? one : part), y = steep ? part : (diagonal ? V{} : rest);
    const M turned = negative ^ ahead;  // both signs as in LAPACK's laev2
    cosine = turned ? -y : x;
    sine = turned ? x : y;
  }
};

// Eigenvalues of symmetric tridiagonal matrices, one in each lane, by the implicit QL method.
//
// Each lane iterates as LAPACK's steqr does, so that eigenvectors have the same signs: a sweep runs over the union of
// the lanes' blocks, with the identity rotation for lanes that take no part. Lanes that steqr would iterate from the
// other end are passed reversed (`flipped`).

template <class R, int Bytes>
struct QlLanes : Rotations<R, Bytes> {
  using Own = Rotations<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::any;
  using Own::count;
  using Own::root;
  using Own::signed_as;
  using Own::size_of;
  static constexpr int max_sweeps = 60;  // for one eigenvalue; two or three are usual

  // cosines[i] and sines[i]: rotation of columns i and i + 1.
  struct Matrix {
    int64_t order;
    V *diagonal, *beside, *cosines, *sines;
    V* vectors;  // rows of `order` numbers, padded to a multiple of four rows
    M flipped;
  };

  // Applies the rotations to the vectors' columns from `low` to `high`, the last one first.
  static CAPIBARA_FFT_INLINE void rotate(const Matrix& matrix, int64_t low, int64_t high) {
    const int64_t n = matrix.order;
    for (int64_t row = 0; row < n; row += 4) {
      V* rows = matrix.vectors + row * n;
      V last[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) last[k] = rows[k * n + high];
      for (int64_t i = high - 1; i >= low; --i) {
        const V cosine = matrix.cosines[i], sine = matrix.sines[i];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const V here = rows[k * n + i];
          rows[k * n + i + 1] = cosine * last[k] + sine * here;
          last[k] = cosine * here - sine * last[k];
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) rows[k * n + low] = last[k];
    }
  }

  // One sweep of each lane whose block ends at `ends`, more than one beyond `low`.
  static CAPIBARA_FFT_INLINE void sweep(const Matrix& matrix, int64_t low, int64_t high, const V& ends) {
    V *d = matrix.diagonal, *e = matrix.beside;
    const V one = V{} + R(1), start = d[low];
    const M sweeps = ends > V{} + static_cast<R>(low + 1);
    const V ratio = (d[low + 1] - start) / (R(2) * e[low]);
    const V shift = e[low] / (ratio + signed_as(root(ratio * ratio + R(1)), ratio));
    V s = one, c = one, p{}, g{};
    for (int64_t i = high - 1; i >= low; --i) {
      const M active = sweeps & (ends > V{} + static_cast<R>(i)), begins = ends == V{} + static_cast<R>(i + 1);
      g = begins ? d[i + 1] - start + shift : g;
      s = begins ? one : s;
      c = begins ? one : c;
      p = begins ? V{} : p;
      const V f = s * e[i], b = c * e[i];
      V r;
      Own::rotation(g, f, c, s, r);
      e[i + 1] = active & ~begins ? r : e[i + 1];
      g = d[i + 1] - p;
      r = (d[i] - g) * s + R(2) * (c * b);
      p = s * r;
      d[i + 1] = active ? g + p : d[i + 1];
      g = c * r - b;
      matrix.cosines[i] = active ? c : one;
      matrix.sines[i] = active ? s : V{};
    }
    d[low] = sweeps ? d[low] - p : d[low];
    e[low] = sweeps ? g : e[low];
  }

  // Solves blocks of two directly.
  static CAPIBARA_FFT_INLINE void finish_pairs(const Matrix& matrix, int64_t low, const M& pairs) {
    V *d = matrix.diagonal, *e = matrix.beside;
    const M flipped = matrix.flipped;
    V first, second, cosine, sine;
    Own::pair(flipped ? d[low + 1] : d[low], e[low], flipped ? d[low] : d[low + 1], first, second, cosine, sine);
    d[low] = pairs ? (flipped ? second : first) : d[low];
    d[low + 1] = pairs ? (flipped ? first : second) : d[low + 1];
    e[low] = pairs ? V{} : e[low];
    matrix.cosines[low] = pairs ? cosine : matrix.cosines[low];
    matrix.sines[low] = pairs ? (flipped ? sine : -sine) : matrix.sines[low];
  }

  // The diagonal becomes the eigenvalues, in any order; columns of the vectors are rotated along. Returns the lanes
  // that did not converge.
  static CAPIBARA_FFT_INLINE M iterate(const Matrix& matrix) {
    constexpr R half_epsilon = std::numeric_limits<R>::epsilon() / 2;
    const int64_t n = matrix.order;
    V *d = matrix.diagonal, *e = matrix.beside;
    M failed = V{} != V{};
    for (int64_t low = 0; low + 1 < n; ++low) {
      for (int round = 0;; ++round) {
        V ends = V{} + static_cast<R>(n - 1);
        for (int64_t i = n - 2; i >= low; --i) {
          const V bound = (half_epsilon * size_of(d[i])) * (half_epsilon * size_of(d[i + 1]));
          const M small = e[i] * e[i] <= bound + std::numeric_limits<R>::min();
          ends = small ? V{} + static_cast<R>(i) : ends;
          e[i] = small ? V{} : e[i];
        }
        const M active = ends > V{} + static_cast<R>(low);
        if (!any(active)) break;
        if (round == max_sweeps) {
          failed = failed | active;
          for (int64_t i = low; i < n; ++i) e[i] = active ? V{} : e[i];
          break;
        }
        int64_t high = low + 1;
        for (int lane = 0; lane < count; ++lane) high = std::max(high, static_cast<int64_t>(ends[lane]));
        sweep(matrix, low, high, ends);
        const M pairs = ends == V{} + static_cast<R>(low + 1);
        if (any(pairs)) finish_pairs(matrix, low, pairs);
        rotate(matrix, low, high);
      }
    }
    return failed;
  }
};

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

  // Keeps both triangles, so that every step reads whole columns. Reflector k begins below the diagonal of column k.
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
    // Q, whose first row and column are those of the identity.
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

  // Stores eigenvalues in ascending order, swapped in LAPACK's order, and the vectors' columns accordingly.
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
CAPIBARA_SMALL_EIGH(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_SMALL_EIGH(avx512, CAPIBARA_AVX512, 64)
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
