// The function table of the linear algebra module: LAPACK on column-major matrices, one row per element type.
#pragma once

#include <complex>

namespace capibara::lapack {

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealPart<T>::type;
template <class T>
using Complex = std::complex<Real<T>>;

// Dimensions are at least 1; a matrix has its number of rows as leading dimension. Each returns LAPACK's info: 0 is
// success, positive a failed factorization.
template <class T>
struct Routines {
  int (*potrf)(char uplo, int n, T* a);
  int (*getrf)(int m, int n, T* a, int* pivots);
  int (*trsm)(char side, char uplo, char trans, char diag, int m, int n, const T* a, T* b);
  int (*geqrf)(int m, int n, T* a, T* tau);
  int (*geqp3)(int m, int n, T* a, int* pivots, T* tau);
  int (*orgqr)(int m, int n, int k, T* a, const T* tau);
  // c is m x n; a holds k reflectors of length m (side L) or n (side R).
  int (*ormqr)(char side, char trans, int m, int n, int k, const T* a, const T* tau, T* c);
  int (*syevd)(char uplo, int n, T* a, Real<T>* values);
  // mode A: u is m x m, vt n x n; S: m x k, k x n; N: neither is written.
  int (*gesdd)(char mode, int m, int n, T* a, Real<T>* values, T* u, T* vt);
  int (*gesvd)(char mode, int m, int n, T* a, Real<T>* values, T* u, T* vt);
  int (*geev)(bool left, bool right, int n, T* a, Complex<T>* values, Complex<T>* vl, Complex<T>* vr);
  int (*gees)(bool vectors, int n, T* a, T* vs);
  int (*gehrd)(int n, T* a, T* tau);
  int (*sytrd)(char uplo, int n, T* a, Real<T>* d, Real<T>* e, T* tau);
};

struct Table {
  int version;
  Routines<float> s;
  Routines<double> d;
  Routines<std::complex<float>> c;
  Routines<std::complex<double>> z;
};

inline constexpr int table_version = 1;
// The module exports one function of this name and type.
inline constexpr const char* table_symbol = "capibara_lapack_table";
using TableFunction = const Table* (*)();

}  // namespace capibara::lapack
