// The linear algebra module: calls LAPACK's Fortran routines with the workspace they require.
#include "backends/lapack/routines.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <type_traits>
#include <vector>

// LAPACK's Fortran symbols for the four element types, and one class per type that gives them uniform names.

namespace capibara::lapack {

using Length = std::size_t;  // of a character argument, passed after all others
using c64 = std::complex<float>;
using c128 = std::complex<double>;

extern "C" {

// Routines common to real and complex types. O: or/un, S: sy/he.
#define CAPIBARA_LAPACK_SHARED(x, T, R, O, S)                                                                       \
  void x##potrf_(const char*, const int*, T*, const int*, int*, Length);                                            \
  void x##getrf_(const int*, const int*, T*, const int*, int*, int*);                                               \
  void x##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,     \
                const int*, T*, const int*, Length, Length, Length, Length);                                        \
  void x##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                 \
  void x##O##gqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);              \
  void x##O##mqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*, \
                  const int*, T*, const int*, int*, Length, Length);                                                \
  void x##gehrd_(const int*, const int*, const int*, T*, const int*, T*, T*, const int*, int*);                     \
  void x##S##trd_(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*, int*, Length);

CAPIBARA_LAPACK_SHARED(s, float, float, or, sy)
CAPIBARA_LAPACK_SHARED(d, double, double, or, sy)
CAPIBARA_LAPACK_SHARED(c, c64, float, un, he)
CAPIBARA_LAPACK_SHARED(z, c128, double, un, he)
#undef CAPIBARA_LAPACK_SHARED

#define CAPIBARA_LAPACK_REAL(x, T)                                                                                     \
  void x##geqp3_(const int*, const int*, T*, const int*, int*, T*, T*, const int*, int*);                              \
  void x##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*,     \
                 Length, Length);                                                                                      \
  void x##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                 const int*, int*, int*, Length);                                                                      \
  void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, \
                 T*, const int*, int*, Length, Length);                                                                \
  void x##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*,      \
                const int*, int*, Length, Length);                                                                     \
  void x##gees_(const char*, const char*, int (*)(const T*, const T*), const int*, T*, const int*, int*, T*, T*, T*,   \
                const int*, T*, const int*, int*, int*, Length, Length);

CAPIBARA_LAPACK_REAL(s, float)
CAPIBARA_LAPACK_REAL(d, double)
#undef CAPIBARA_LAPACK_REAL

#define CAPIBARA_LAPACK_COMPLEX(x, T, R)                                                                               \
  void x##geqp3_(const int*, const int*, T*, const int*, int*, T*, T*, const int*, R*, int*);                          \
  void x##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,       \
                 const int*, int*, Length, Length);                                                                    \
  void x##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,          \
                 const int*, R*, int*, int*, Length);                                                                  \
  void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, \
                 T*, const int*, R*, int*, Length, Length);                                                            \
  void x##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                const int*, R*, int*, Length, Length);                                                                 \
  void x##gees_(const char*, const char*, int (*)(const T*), const int*, T*, const int*, int*, T*, T*, const int*, T*, \
                const int*, R*, int*, int*, Length, Length);

CAPIBARA_LAPACK_COMPLEX(c, c64, float)
CAPIBARA_LAPACK_COMPLEX(z, c128, double)
#undef CAPIBARA_LAPACK_COMPLEX

}  // extern "C"

template <class T>
struct Fortran;

#define CAPIBARA_LAPACK_CALLS(x, T, O, S)      \
  template <>                                  \
  struct Fortran<T> {                          \
    static constexpr auto potrf = &x##potrf_;  \
    static constexpr auto getrf = &x##getrf_;  \
    static constexpr auto trsm = &x##trsm_;    \
    static constexpr auto geqrf = &x##geqrf_;  \
    static constexpr auto geqp3 = &x##geqp3_;  \
    static constexpr auto orgqr = &x##O##gqr_; \
    static constexpr auto ormqr = &x##O##mqr_; \
    static constexpr auto syevd = &x##S##evd_; \
    static constexpr auto gesdd = &x##gesdd_;  \
    static constexpr auto gesvd = &x##gesvd_;  \
    static constexpr auto geev = &x##geev_;    \
    static constexpr auto gees = &x##gees_;    \
    static constexpr auto gehrd = &x##gehrd_;  \
    static constexpr auto sytrd = &x##S##trd_; \
  };

CAPIBARA_LAPACK_CALLS(s, float, or, sy)
CAPIBARA_LAPACK_CALLS(d, double, or, sy)
CAPIBARA_LAPACK_CALLS(c, c64, un, he)
CAPIBARA_LAPACK_CALLS(z, c128, un, he)
#undef CAPIBARA_LAPACK_CALLS

namespace {

template <class T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

// Runs a routine twice: first to query the size of its workspace.
template <class T, class Call>
int with_workspace(Call call) {
  T size{};
  int info = call(&size, -1);
  if (info != 0) return info;
  int length = std::max(1, static_cast<int>(std::real(size)));
  std::vector<T> work(static_cast<std::size_t>(length));
  return call(work.data(), length);
}

template <class T>
int potrf(char uplo, int n, T* a) {
  int info = 0;
  Fortran<T>::potrf(&uplo, &n, a, &n, &info, 1);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  int info = 0;
  Fortran<T>::getrf(&m, &n, a, &m, pivots, &info);
  return info;
}

template <class T>
int trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, T* b) {
  T one(1);
  int order = side == 'L' ? m : n;
  Fortran<T>::trsm(&side, &uplo, &trans, &diag, &m, &n, &one, a, &order, b, &m, 1, 1, 1, 1);
  return 0;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    Fortran<T>::geqrf(&m, &n, a, &m, tau, work, &length, &info);
    return info;
  });
}

template <class T>
int geqp3(int m, int n, T* a, int* pivots, T* tau) {
  std::vector<Real<T>> real_work(static_cast<std::size_t>(2 * n));
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    if constexpr (is_complex<T>)
      Fortran<T>::geqp3(&m, &n, a, &m, pivots, tau, work, &length, real_work.data(), &info);
    else
      Fortran<T>::geqp3(&m, &n, a, &m, pivots, tau, work, &length, &info);
    return info;
  });
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    Fortran<T>::orgqr(&m, &n, &k, a, &m, tau, work, &length, &info);
    return info;
  });
}

template <class T>
int ormqr(char side, char trans, int m, int n, int k, const T* a, const T* tau, T* c) {
  int order = side == 'L' ? m : n;
  char own = trans == 'N' ? 'N' : is_complex<T> ? 'C' : 'T';
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    Fortran<T>::ormqr(&side, &own, &m, &n, &k, a, &order, tau, c, &m, work, &length, &info, 1, 1);
    return info;
  });
}

template <class T>
int syevd(char uplo, int n, T* a, Real<T>* values) {
  char vectors = 'V';
  int info = 0, query = -1, integers = 0;
  T size{};
  if constexpr (is_complex<T>) {
    Real<T> real_size{};
    Fortran<T>::syevd(&vectors, &uplo, &n, a, &n, values, &size, &query, &real_size, &query, &integers, &query, &info,
                      1, 1);
    if (info != 0) return info;
    int length = static_cast<int>(std::real(size)), real_length = static_cast<int>(real_size);
    std::vector<T> work(static_cast<std::size_t>(length));
    std::vector<Real<T>> real_work(static_cast<std::size_t>(real_length));
    std::vector<int> integer_work(static_cast<std::size_t>(integers));
    Fortran<T>::syevd(&vectors, &uplo, &n, a, &n, values, work.data(), &length, real_work.data(), &real_length,
                      integer_work.data(), &integers, &info, 1, 1);
  } else {
    Fortran<T>::syevd(&vectors, &uplo, &n, a, &n, values, &size, &query, &integers, &query, &info, 1, 1);
    if (info != 0) return info;
    int length = static_cast<int>(size);
    std::vector<T> work(static_cast<std::size_t>(length));
    std::vector<int> integer_work(static_cast<std::size_t>(integers));
    Fortran<T>::syevd(&vectors, &uplo, &n, a, &n, values, work.data(), &length, integer_work.data(), &integers, &info,
                      1, 1);
  }
  return info;
}

template <class T>
int gesdd(char mode, int m, int n, T* a, Real<T>* values, T* u, T* vt) {
  int least = std::min(m, n), most = std::max(m, n);
  int vt_rows = mode == 'A' ? n : mode == 'S' ? least : 1, u_rows = mode == 'N' ? 1 : m;
  std::vector<int> integer_work(static_cast<std::size_t>(8 * least));
  std::size_t k = static_cast<std::size_t>(least), l = static_cast<std::size_t>(most);
  std::vector<Real<T>> real_work(is_complex<T> ? std::max(7 * k, std::max(5 * k * k + 5 * k, 2 * l * k + 2 * k * k + k))
                                               : 0);
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    if constexpr (is_complex<T>) {
      Fortran<T>::gesdd(&mode, &m, &n, a, &m, values, u, &u_rows, vt, &vt_rows, work, &length, real_work.data(),
                        integer_work.data(), &info, 1);
    } else {
      Fortran<T>::gesdd(&mode, &m, &n, a, &m, values, u, &u_rows, vt, &vt_rows, work, &length, integer_work.data(),
                        &info, 1);
    }
    return info;
  });
}

template <class T>
int gesvd(char mode, int m, int n, T* a, Real<T>* values, T* u, T* vt) {
  int least = std::min(m, n);
  int vt_rows = mode == 'A' ? n : mode == 'S' ? least : 1, u_rows = mode == 'N' ? 1 : m;
  std::vector<Real<T>> real_work(static_cast<std::size_t>(5 * least));
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    if constexpr (is_complex<T>) {
      Fortran<T>::gesvd(&mode, &mode, &m, &n, a, &m, values, u, &u_rows, vt, &vt_rows, work, &length, real_work.data(),
                        &info, 1, 1);
    } else {
      Fortran<T>::gesvd(&mode, &mode, &m, &n, a, &m, values, u, &u_rows, vt, &vt_rows, work, &length, &info, 1, 1);
    }
    return info;
  });
}

// A real matrix has complex eigenvectors in conjugate pairs: one column holds the real parts, the next the imaginary.
template <class R>
void unpack_pairs(int n, const R* imaginary, const std::vector<R>& packed, std::complex<R>* vectors) {
  auto at = [n](int row, int column) {
    return static_cast<std::size_t>(column) * static_cast<std::size_t>(n) + static_cast<std::size_t>(row);
  };
  for (int j = 0; j < n; ++j) {
    bool pair = imaginary[j] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      vectors[at(i, j)] = {packed[at(i, j)], pair ? packed[at(i, j + 1)] : R(0)};
      if (pair) vectors[at(i, j + 1)] = std::conj(vectors[at(i, j)]);
    }
    if (pair) ++j;
  }
}

template <class T>
int geev(bool left, bool right, int n, T* a, Complex<T>* values, Complex<T>* vl, Complex<T>* vr) {
  char left_job = left ? 'V' : 'N', right_job = right ? 'V' : 'N';
  if constexpr (is_complex<T>) {
    std::vector<Real<T>> real_work(static_cast<std::size_t>(2 * n));
    return with_workspace<T>([&](T* work, int length) {
      int info = 0;
      Fortran<T>::geev(&left_job, &right_job, &n, a, &n, values, vl, &n, vr, &n, work, &length, real_work.data(), &info,
                       1, 1);
      return info;
    });
  } else {
    std::size_t size = static_cast<std::size_t>(n);
    std::vector<T> re(size), im(size), packed_left(left ? size * size : 1), packed_right(right ? size * size : 1);
    int info = with_workspace<T>([&](T* work, int length) {
      int status = 0;
      Fortran<T>::geev(&left_job, &right_job, &n, a, &n, re.data(), im.data(), packed_left.data(), &n,
                       packed_right.data(), &n, work, &length, &status, 1, 1);
      return status;
    });
    for (std::size_t i = 0; i < size; ++i) values[i] = {re[i], im[i]};
    if (left) unpack_pairs(n, im.data(), packed_left, vl);
    if (right) unpack_pairs(n, im.data(), packed_right, vr);
    return info;
  }
}

template <class T>
int gees(bool vectors, int n, T* a, T* vs) {
  char job = vectors ? 'V' : 'N', sort = 'N';
  int chosen = 0;
  std::size_t size = static_cast<std::size_t>(n);
  std::vector<int> logical(size);
  std::vector<T> values(size);
  std::vector<Real<T>> extra(size);
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    if constexpr (is_complex<T>) {
      Fortran<T>::gees(&job, &sort, nullptr, &n, a, &n, &chosen, values.data(), vs, &n, work, &length, extra.data(),
                       logical.data(), &info, 1, 1);
    } else {
      Fortran<T>::gees(&job, &sort, nullptr, &n, a, &n, &chosen, values.data(), extra.data(), vs, &n, work, &length,
                       logical.data(), &info, 1, 1);
    }
    return info;
  });
}

template <class T>
int gehrd(int n, T* a, T* tau) {
  int first = 1;
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    Fortran<T>::gehrd(&n, &first, &n, a, &n, tau, work, &length, &info);
    return info;
  });
}

template <class T>
int sytrd(char uplo, int n, T* a, Real<T>* d, Real<T>* e, T* tau) {
  return with_workspace<T>([&](T* work, int length) {
    int info = 0;
    Fortran<T>::sytrd(&uplo, &n, a, &n, d, e, tau, work, &length, &info, 1);
    return info;
  });
}

template <class T>
constexpr Routines<T> routines() {
  return {potrf<T>, getrf<T>, trsm<T>,  geqrf<T>, geqp3<T>, orgqr<T>, ormqr<T>,
          syevd<T>, gesdd<T>, gesvd<T>, geev<T>,  gees<T>,  gehrd<T>, sytrd<T>};
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Table* capibara_lapack_table() {
  static const Table table = {table_version, routines<float>(), routines<double>(), routines<c64>(), routines<c128>()};
  return &table;
}

}  // namespace capibara::lapack
