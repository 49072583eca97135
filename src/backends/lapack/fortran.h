// LAPACK's Fortran symbols for the four element types, and a class per type that names them alike.
#pragma once

#include <complex>
#include <cstddef>

namespace capibara::lapack {

using Length = std::size_t;  // of a character argument, passed behind all others
using c64 = std::complex<float>;
using c128 = std::complex<double>;

extern "C" {

// What real and complex types share. O: or/un, S: sy/he.
#define CAPIBARA_LAPACK_SHARED(x, T, R, O, S)                                                                          \
  void x##potrf_(const char*, const int*, T*, const int*, int*, Length);                                             \
  void x##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                \
  void x##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,      \
                const int*, T*, const int*, Length, Length, Length, Length);                                         \
  void x##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                  \
  void x##O##gqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);               \
  void x##O##mqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*,  \
                  const int*, T*, const int*, int*, Length, Length);                                                 \
  void x##gehrd_(const int*, const int*, const int*, T*, const int*, T*, T*, const int*, int*);                      \
  void x##S##trd_(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*, int*, Length);

CAPIBARA_LAPACK_SHARED(s, float, float, or, sy)
CAPIBARA_LAPACK_SHARED(d, double, double, or, sy)
CAPIBARA_LAPACK_SHARED(c, c64, float, un, he)
CAPIBARA_LAPACK_SHARED(z, c128, double, un, he)
#undef CAPIBARA_LAPACK_SHARED

#define CAPIBARA_LAPACK_REAL(x, T)                                                                                     \
  void x##geqp3_(const int*, const int*, T*, const int*, int*, T*, T*, const int*, int*);                            \
  void x##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*,   \
                 Length, Length);                                                                                    \
  void x##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,        \
                 const int*, int*, int*, Length);                                                                    \
  void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,           \
                 const int*, T*, const int*, int*, Length, Length);                                                  \
  void x##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*,    \
                const int*, int*, Length, Length);                                                                   \
  void x##gees_(const char*, const char*, int (*)(const T*, const T*), const int*, T*, const int*, int*, T*, T*, T*, \
                const int*, T*, const int*, int*, int*, Length, Length);

CAPIBARA_LAPACK_REAL(s, float)
CAPIBARA_LAPACK_REAL(d, double)
#undef CAPIBARA_LAPACK_REAL

#define CAPIBARA_LAPACK_COMPLEX(x, T, R)                                                                               \
  void x##geqp3_(const int*, const int*, T*, const int*, int*, T*, T*, const int*, R*, int*);                        \
  void x##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,     \
                 const int*, int*, Length, Length);                                                                  \
  void x##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,        \
                 const int*, R*, int*, int*, Length);                                                                \
  void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,           \
                 const int*, T*, const int*, R*, int*, Length, Length);                                              \
  void x##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,        \
                const int*, R*, int*, Length, Length);                                                               \
  void x##gees_(const char*, const char*, int (*)(const T*), const int*, T*, const int*, int*, T*, T*, const int*,   \
                T*, const int*, R*, int*, int*, Length, Length);

CAPIBARA_LAPACK_COMPLEX(c, c64, float)
CAPIBARA_LAPACK_COMPLEX(z, c128, double)
#undef CAPIBARA_LAPACK_COMPLEX

}  // extern "C"

template <class T>
struct Fortran;

#define CAPIBARA_LAPACK_CALLS(x, T, O, S)                                                                              \
  template <>                                                                                                        \
  struct Fortran<T> {                                                                                                \
    static constexpr auto potrf = &x##potrf_;                                                                        \
    static constexpr auto getrf = &x##getrf_;                                                                        \
    static constexpr auto trsm = &x##trsm_;                                                                          \
    static constexpr auto geqrf = &x##geqrf_;                                                                        \
    static constexpr auto geqp3 = &x##geqp3_;                                                                        \
    static constexpr auto orgqr = &x##O##gqr_;                                                                       \
    static constexpr auto ormqr = &x##O##mqr_;                                                                       \
    static constexpr auto syevd = &x##S##evd_;                                                                       \
    static constexpr auto gesdd = &x##gesdd_;                                                                        \
    static constexpr auto gesvd = &x##gesvd_;                                                                        \
    static constexpr auto geev = &x##geev_;                                                                          \
    static constexpr auto gees = &x##gees_;                                                                          \
    static constexpr auto gehrd = &x##gehrd_;                                                                        \
    static constexpr auto sytrd = &x##S##trd_;                                                                       \
  };

CAPIBARA_LAPACK_CALLS(s, float, or, sy)
CAPIBARA_LAPACK_CALLS(d, double, or, sy)
CAPIBARA_LAPACK_CALLS(c, c64, un, he)
CAPIBARA_LAPACK_CALLS(z, c128, un, he)
#undef CAPIBARA_LAPACK_CALLS

}  // namespace capibara::lapack
