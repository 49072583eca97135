// Small matmuls straight from memory by NEON.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/gemm/gemm_unpacked.h"

// Keeps each line of assembly on one line.
// clang-format off
namespace capibara::cpu {

#if defined(__aarch64__)

namespace {

// Eight rows of a by one or two vectors of b. v0 to v7: some contiguous k of each row of a, used lane by lane; v8 to
// v23: the tile, [row][vector]; v24 to v27: vectors of b, for this k and the next. As in gemm_tile_neon.cpp every
// register is loaded right after its last use.
#define EACH_ROW(F, ...) F(0, 8, 9, __VA_ARGS__) F(1, 10, 11, __VA_ARGS__) F(2, 12, 13, __VA_ARGS__) F(3, 14, 15, __VA_ARGS__) \
  F(4, 16, 17, __VA_ARGS__) F(5, 18, 19, __VA_ARGS__) F(6, 20, 21, __VA_ARGS__) F(7, 22, 23, __VA_ARGS__)
#define BY_2(R, X, Y, T, L, LANE, B0, B1)                                                                               \
  "fmla v" #X "." T ", v" #B0 "." T ", v" #R "." L "[" #LANE "]\n fmla v" #Y "." T ", v" #B1 "." T ", v" #R "." L "[" #LANE "]\n"
#define BY_1(R, X, Y, T, L, LANE, B0, B1) "fmla v" #X "." T ", v" #B0 "." T ", v" #R "." L "[" #LANE "]\n"
#define KEEP(R)
#define NEXT_OF_ROW(R) "ldr q" #R ", [%[row" #R "], %[at]]\n"
#define LOAD_ROW(R, X, Y, SIZE) "ldr " SIZE #R ", [%[row" #R "], %[at]]\n"
#define CLEAR_ROW(R, X, Y, ...) "movi v" #X ".2d, #0\n movi v" #Y ".2d, #0\n"
#define NEXT_B "add %[b], %[b], %[b_step]\n"
#define FIRST_OF_B_2(N) "ldr q" #N ", [%[b]]\n"
#define SECOND_OF_B_2(N) "ldr q" #N ", [%[b], #16]\n"
#define FIRST_OF_B_1(N) "ldr q" #N ", [%[b]]\n"
#define SECOND_OF_B_1(N)

// One k of all rows. NONE: b is not loaded. MORE: loads b of the next k. LAST: also the next k of every row.
#define ONE_K(BY, AFTER, FIRST, SECOND, NEXT, T, L, LANE, B0, B1)                                                       \
  BY(0, 8, 9, T, L, LANE, B0, B1) AFTER(0) BY(1, 10, 11, T, L, LANE, B0, B1) FIRST AFTER(1)                             \
  BY(2, 12, 13, T, L, LANE, B0, B1) AFTER(2) BY(3, 14, 15, T, L, LANE, B0, B1) SECOND AFTER(3)                          \
  BY(4, 16, 17, T, L, LANE, B0, B1) AFTER(4) BY(5, 18, 19, T, L, LANE, B0, B1) NEXT AFTER(5)                            \
  BY(6, 20, 21, T, L, LANE, B0, B1) AFTER(6) BY(7, 22, 23, T, L, LANE, B0, B1) AFTER(7)
#define NONE(V, T, L, LANE, B0, B1, N0, N1) ONE_K(BY_##V, KEEP, "", "", "", T, L, LANE, B0, B1)
#define MORE(V, T, L, LANE, B0, B1, N0, N1) ONE_K(BY_##V, KEEP, FIRST_OF_B_##V(N0), SECOND_OF_B_##V(N1), NEXT_B, T, L, LANE, B0, B1)
#define LAST(V, T, L, LANE, B0, B1, N0, N1) ONE_K(BY_##V, NEXT_OF_ROW, FIRST_OF_B_##V(N0), SECOND_OF_B_##V(N1), NEXT_B, T, L, LANE, B0, B1)
#define LOAD_B_2 "ldp q24, q25, [%[b]]\n" NEXT_B
#define LOAD_B_1 "ldr q24, [%[b]]\n" NEXT_B
#define GROUP_4S(V, LAST)                                                                                            \
  MORE(V, "4s", "s", 0, 24, 25, 26, 27) MORE(V, "4s", "s", 1, 26, 27, 24, 25) MORE(V, "4s", "s", 2, 24, 25, 26, 27) LAST(V, "4s", "s", 3, 26, 27, 24, 25)
#define GROUP_2D(V, LAST) MORE(V, "2d", "d", 0, 24, 25, 26, 27) LAST(V, "2d", "d", 1, 26, 27, 24, 25)
#define STORE_ROW_2(R, X, Y, ...) "stp q" #X ", q" #Y ", [%[c]]\n add %[c], %[c], %[c_step]\n"
#define STORE_ROW_1(R, X, Y, ...) "str q" #X ", [%[c]]\n add %[c], %[c], %[c_step]\n"

// `groups` of 16 bytes of k, then `rest` single ones.
#define UNPACKED(NAME, T, V, GROUP, ARRANGEMENT, LANE, SIZE, BYTES)                                                     \
  void NAME(int64_t groups, int64_t rest, const T* const* rows, const T* b, int64_t b_step, T* c, int64_t c_step) {     \
    int64_t at = 0;                                                                                                     \
    asm volatile(                                                                                                       \
        EACH_ROW(CLEAR_ROW, )                                                                                           \
        "cbz %[groups], 3f\n" EACH_ROW(LOAD_ROW, "q") "add %[at], %[at], #16\n" LOAD_B_##V                              \
        "subs %[groups], %[groups], #1\n"                                                                               \
        "b.eq 2f\n"                                                                                                     \
        ".p2align 5\n"                                                                                                  \
        "1:\n" GROUP(V, LAST) "add %[at], %[at], #16\n"                                                                 \
        "subs %[groups], %[groups], #1\n"                                                                               \
        "b.ne 1b\n"                                                                                                     \
        "2:\n" GROUP(V, NONE)                                                                                           \
        "3:\n"                                                                                                          \
        "cbz %[rest], 5f\n"                                                                                             \
        "4:\n" EACH_ROW(LOAD_ROW, SIZE) "add %[at], %[at], #" BYTES "\n" LOAD_B_##V NONE(V, ARRANGEMENT, LANE, 0, 24, 25, 26, 27) \
        "subs %[rest], %[rest], #1\n"                                                                                   \
        "b.ne 4b\n"                                                                                                     \
        "5:\n" EACH_ROW(STORE_ROW_##V, )                                                                                \
        : [groups] "+r"(groups), [rest] "+r"(rest), [at] "+r"(at), [b] "+r"(b), [c] "+r"(c)                             \
        : [row0] "r"(rows[0]), [row1] "r"(rows[1]), [row2] "r"(rows[2]), [row3] "r"(rows[3]), [row4] "r"(rows[4]),      \
          [row5] "r"(rows[5]), [row6] "r"(rows[6]), [row7] "r"(rows[7]), [b_step] "r"(b_step), [c_step] "r"(c_step)     \
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",       \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27");            \
  }
UNPACKED(unpacked_single_2, float, 2, GROUP_4S, "4s", "s", "s", "4")
UNPACKED(unpacked_single_1, float, 1, GROUP_4S, "4s", "s", "s", "4")
UNPACKED(unpacked_double_2, double, 2, GROUP_2D, "2d", "d", "d", "8")
UNPACKED(unpacked_double_1, double, 1, GROUP_2D, "2d", "d", "d", "8")

void run_unpacked(int vectors, int64_t groups, int64_t rest, const float* const* rows, const float* b, int64_t b_step, float* c, int64_t c_step) {
  (vectors == 2 ? unpacked_single_2 : unpacked_single_1)(groups, rest, rows, b, b_step, c, c_step);
}
void run_unpacked(int vectors, int64_t groups, int64_t rest, const double* const* rows, const double* b, int64_t b_step, double* c, int64_t c_step) {
  (vectors == 2 ? unpacked_double_2 : unpacked_double_1)(groups, rest, rows, b, b_step, c, c_step);
}

}  // namespace

template <class T>
bool multiply_unpacked(const SmallProduct<T>& p) {
  constexpr int64_t lanes = 16 / static_cast<int64_t>(sizeof(T)), size = sizeof(T);
  if (p.n % lanes != 0) return false;
  alignas(64) T edge[8 * 2 * lanes];
  const Coming<T> coming(p, (p.n + 2 * lanes - 1) / (2 * lanes) * ((p.m + 7) / 8));
  int64_t tile = 0;
  for (int64_t j = 0; j < p.n; j += 2 * lanes) {
    const int vectors = p.n - j >= 2 * lanes ? 2 : 1;
    for (int64_t i = 0; i < p.m; i += 8, ++tile) {
      coming.prefetch(tile);
      const int64_t height = std::min<int64_t>(8, p.m - i);
      const T* rows[8];
      for (int64_t r = 0; r < 8; ++r) rows[r] = p.left + (i + std::min(r, height - 1)) * p.left_step;
      T* target = p.out + i * p.n + j;
      const bool whole = height == 8;
      run_unpacked(vectors, p.inner / lanes, p.inner % lanes, rows, p.right + j, p.right_step * size, whole ? target : edge, whole ? p.n * size : vectors * 16);
      for (int64_t r = 0; !whole && r < height; ++r) std::memcpy(target + r * p.n, edge + r * vectors * lanes, static_cast<std::size_t>(vectors) * 16);
    }
  }
  return true;
}

template <class T>
bool multiply_narrow(const SmallProduct<T>&, const Finish*) {
  return false;
}

template bool multiply_unpacked<float>(const SmallProduct<float>&);
template bool multiply_unpacked<double>(const SmallProduct<double>&);
template bool multiply_narrow<float>(const SmallProduct<float>&, const Finish*);
template bool multiply_narrow<double>(const SmallProduct<double>&, const Finish*);

#endif

}  // namespace capibara::cpu
