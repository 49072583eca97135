// The tiles of each architecture, and the choice of one at run time.
#include "backends/cpu/kernels/gemm_tile.h"

namespace capibara::cpu {

namespace {

template <class R, int Rows, int Vectors>
void plain(int64_t k, const R* a, const R* b, R* c, int64_t stride, bool accumulate) {
  real_tile<R, 16, Rows, Vectors>(k, a, b, c, stride, accumulate);
}
template <class R, int Rows, int Vectors>
void plain_complex(int64_t k, const R* a, const R* b, std::complex<R>* c, int64_t stride, bool accumulate) {
  complex_tile<R, 16, Rows, Vectors>(k, a, b, c, stride, accumulate);
}

#if defined(__x86_64__)
template <class R>
__attribute__((target("avx2,fma"))) void avx2(int64_t k, const R* a, const R* b, R* c, int64_t stride, bool accumulate) {
  real_tile<R, 32, 6, 2>(k, a, b, c, stride, accumulate);
}
template <class R>
__attribute__((target("avx2,fma"))) void avx2_complex(int64_t k, const R* a, const R* b, std::complex<R>* c, int64_t stride,
                                                      bool accumulate) {
  complex_tile<R, 32, 3, 1>(k, a, b, c, stride, accumulate);
}
template <class R>
__attribute__((target("avx512f,avx512dq"))) void avx512(int64_t k, const R* a, const R* b, R* c, int64_t stride, bool accumulate) {
  real_tile<R, 64, 14, 2>(k, a, b, c, stride, accumulate);
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"); }
#endif

#if defined(__aarch64__)
constexpr int plain_rows = 8, plain_vectors = 3, complex_rows = 4, complex_vectors = 2;  // 32 registers
#else
constexpr int plain_rows = 4, plain_vectors = 2, complex_rows = 2, complex_vectors = 1;  // 16 registers
#endif

template <class R>
Tile<R> choose() {
  constexpr int lanes = 16 / static_cast<int>(sizeof(R));
#if defined(__x86_64__)
  if (has_avx512()) return {14, 4 * lanes * 2, avx512<R>};
  if (has_avx2()) return {6, 2 * lanes * 2, avx2<R>};
#endif
  return {plain_rows, plain_vectors * lanes, plain<R, plain_rows, plain_vectors>};
}

template <class R>
Tile<std::complex<R>> choose_complex() {
  constexpr int lanes = 16 / static_cast<int>(sizeof(R));
#if defined(__x86_64__)
  if (has_avx2()) return {3, 2 * lanes, avx2_complex<R>};
#endif
  return {complex_rows, complex_vectors * lanes, plain_complex<R, complex_rows, complex_vectors>};
}

}  // namespace

template <>
Tile<float> best_tile() {
  static const Tile<float> tile = choose<float>();
  return tile;
}
template <>
Tile<double> best_tile() {
  static const Tile<double> tile = choose<double>();
  return tile;
}
template <>
Tile<std::uint32_t> best_tile() {
  static const Tile<std::uint32_t> tile = choose<std::uint32_t>();
  return tile;
}
template <>
Tile<std::uint64_t> best_tile() {
  static const Tile<std::uint64_t> tile = choose<std::uint64_t>();
  return tile;
}
template <>
Tile<std::complex<float>> best_tile() {
  static const Tile<std::complex<float>> tile = choose_complex<float>();
  return tile;
}
template <>
Tile<std::complex<double>> best_tile() {
  static const Tile<std::complex<double>> tile = choose_complex<double>();
  return tile;
}

}  // namespace capibara::cpu
