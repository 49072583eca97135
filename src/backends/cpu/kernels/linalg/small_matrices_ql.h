// Eigenvalues of symmetric tridiagonal matrices, one in each lane, by the implicit QL method.
//
// Each lane iterates as LAPACK's steqr does, so that eigenvectors have its signs: a sweep runs over the union of the
// lanes' blocks, with the unit rotation where a lane takes no part. A lane that steqr would iterate from the other end
// is given reversed (`flipped`).
#pragma once

#include "backends/cpu/kernels/linalg/small_matrices_rotations.h"

namespace capibara::cpu::small_matrices {

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

  // cosines[i] and sines[i] are those of the rotation of columns i and i + 1.
  struct Matrix {
    int64_t order;
    V *diagonal, *beside, *cosines, *sines;
    V* vectors;  // rows of `order` numbers, padded to a multiple of four rows
    M flipped;
  };

  // The vectors' columns from `low` to `high` by the rotations between them, the last first.
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

  // Blocks of two, by their formula.
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

  // The diagonal becomes the eigenvalues, in any order, and columns of the vectors turn with them. Returns the lanes
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

}  // namespace capibara::cpu::small_matrices
