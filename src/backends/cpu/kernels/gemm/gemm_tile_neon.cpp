// The tiles of aarch64, in assembly: 8 (or 4) rows by up to 3 vectors, 24 accumulators, everything in registers.
//
// Assembly because g++ 12 spills the accumulators of intrinsics and of unrolled loops (half the speed), and not every
// machine that builds this has a newer clang. Neoverse-V1 issues four of these instructions per cycle, but only with
// loads between them: every step loads the operands of the next, each register right after its last use. Measured
// alone, with one operand in the L2 cache: f32 and f64 99 %, BFMMLA and SMMLA 95 % of the peak; with all loads
// before each step 90 %.
#include "backends/cpu/kernels/gemm/gemm_tile.h"

#if defined(__aarch64__)

// Keeps each line of assembly on one line.
// clang-format off
namespace capibara::cpu {

namespace {

// ---- registers: v8 to v31 are the tile, [row][vector] in threes; v0, v1, v5, v6 a column of a; v2 to v4 a row of b ----

#define CLEAR                                                                                                     \
  "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n movi v12.2d, #0\n movi v13.2d, #0\n"     \
  "movi v14.2d, #0\n movi v15.2d, #0\n movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n"   \
  "movi v20.2d, #0\n movi v21.2d, #0\n movi v22.2d, #0\n movi v23.2d, #0\n movi v24.2d, #0\n movi v25.2d, #0\n"   \
  "movi v26.2d, #0\n movi v27.2d, #0\n movi v28.2d, #0\n movi v29.2d, #0\n movi v30.2d, #0\n movi v31.2d, #0\n"

// A vector of b by the elements of a vector of a.
#define BY_4S(OP, B, A, W, X, Y, Z)                                                                               \
  OP " v" #W ".4s, v" #B ".4s, v" #A ".s[0]\n" OP " v" #X ".4s, v" #B ".4s, v" #A ".s[1]\n"                       \
  OP " v" #Y ".4s, v" #B ".4s, v" #A ".s[2]\n" OP " v" #Z ".4s, v" #B ".4s, v" #A ".s[3]\n"
#define BY_2D(OP, B, A, W, X) OP " v" #W ".2d, v" #B ".2d, v" #A ".d[0]\n" OP " v" #X ".2d, v" #B ".2d, v" #A ".d[1]\n"
#define LOAD_A(A, AT) "ldr q" #A ", [%[a], #" #AT "]\n"
#define LOAD_B(B, AT) "ldr q" #B ", [%[b], #" #AT "]\n"
#define NEXT_A(BYTES) "add %[a], %[a], #" #BYTES "\n"
#define NEXT_B "add %[b], %[b], %[b_step]\n"

// One column of vectors by all rows, in even and in odd steps. MORE: its vector of the next step is loaded. LAST: the last
// column, which loads the next a as well. END: nothing is loaded, the panels may end here.
#define END_EVEN_8_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_4S(OP, B, 0, W, X, Y, Z) BY_4S(OP, B, 1, P, Q, R, S)
#define END_ODD_8_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_4S(OP, B, 5, W, X, Y, Z) BY_4S(OP, B, 6, P, Q, R, S)
#define MORE_EVEN_8_4S(OP, B, AT, ...) END_EVEN_8_4S(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define MORE_ODD_8_4S(OP, B, AT, ...) END_ODD_8_4S(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define LAST_EVEN_8_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S)                                                         \
  BY_4S(OP, B, 0, W, X, Y, Z) LOAD_A(5, 0) BY_4S(OP, B, 1, P, Q, R, S) LOAD_A(6, 16) LOAD_B(B, AT)
#define LAST_ODD_8_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S)                                                          \
  BY_4S(OP, B, 5, W, X, Y, Z) LOAD_A(0, 32) BY_4S(OP, B, 6, P, Q, R, S) LOAD_A(1, 48) LOAD_B(B, AT) NEXT_A(64)
#define END_EVEN_4_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_4S(OP, B, 0, W, X, Y, Z)
#define END_ODD_4_4S(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_4S(OP, B, 5, W, X, Y, Z)
#define MORE_EVEN_4_4S(OP, B, AT, ...) END_EVEN_4_4S(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define MORE_ODD_4_4S(OP, B, AT, ...) END_ODD_4_4S(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define LAST_EVEN_4_4S(OP, B, AT, ...) END_EVEN_4_4S(OP, B, AT, __VA_ARGS__) LOAD_A(5, 0) LOAD_B(B, AT)
#define LAST_ODD_4_4S(OP, B, AT, ...) END_ODD_4_4S(OP, B, AT, __VA_ARGS__) LOAD_A(0, 16) LOAD_B(B, AT) NEXT_A(32)
#define END_EVEN_8_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_2D(OP, B, 0, W, X) BY_2D(OP, B, 1, Y, Z) BY_2D(OP, B, 5, P, Q) BY_2D(OP, B, 6, R, S)
#define END_ODD_8_2D END_EVEN_8_2D
#define MORE_EVEN_8_2D(OP, B, AT, ...) END_EVEN_8_2D(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define MORE_ODD_8_2D MORE_EVEN_8_2D
#define LAST_EVEN_8_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S)                                                         \
  BY_2D(OP, B, 0, W, X) LOAD_A(0, 0) BY_2D(OP, B, 1, Y, Z) LOAD_A(1, 16) BY_2D(OP, B, 5, P, Q) LOAD_A(5, 32)      \
  BY_2D(OP, B, 6, R, S) LOAD_A(6, 48) LOAD_B(B, AT)
#define LAST_ODD_8_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S)                                                          \
  BY_2D(OP, B, 0, W, X) LOAD_A(0, 64) BY_2D(OP, B, 1, Y, Z) LOAD_A(1, 80) BY_2D(OP, B, 5, P, Q) LOAD_A(5, 96)     \
  BY_2D(OP, B, 6, R, S) LOAD_A(6, 112) LOAD_B(B, AT) NEXT_A(128)
#define END_EVEN_4_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_2D(OP, B, 0, W, X) BY_2D(OP, B, 1, Y, Z)
#define END_ODD_4_2D END_EVEN_4_2D
#define MORE_EVEN_4_2D(OP, B, AT, ...) END_EVEN_4_2D(OP, B, AT, __VA_ARGS__) LOAD_B(B, AT)
#define MORE_ODD_4_2D MORE_EVEN_4_2D
#define LAST_EVEN_4_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S) BY_2D(OP, B, 0, W, X) LOAD_A(0, 0) BY_2D(OP, B, 1, Y, Z) LOAD_A(1, 16) LOAD_B(B, AT)
#define LAST_ODD_4_2D(OP, B, AT, W, X, Y, Z, P, Q, R, S)                                                          \
  BY_2D(OP, B, 0, W, X) LOAD_A(0, 32) BY_2D(OP, B, 1, Y, Z) LOAD_A(1, 48) LOAD_B(B, AT) NEXT_A(64)

#define COLUMNS_1(EACH, LAST, OP) LAST(OP, 2, 0, 8, 11, 14, 17, 20, 23, 26, 29)
#define COLUMNS_2(EACH, LAST, OP) EACH(OP, 2, 0, 8, 11, 14, 17, 20, 23, 26, 29) LAST(OP, 3, 16, 9, 12, 15, 18, 21, 24, 27, 30)
#define COLUMNS_3(EACH, LAST, OP)                                                                                 \
  EACH(OP, 2, 0, 8, 11, 14, 17, 20, 23, 26, 29) EACH(OP, 3, 16, 9, 12, 15, 18, 21, 24, 27, 30) LAST(OP, 4, 32, 10, 13, 16, 19, 22, 25, 28, 31)
#define FIRST_B_1 "ldr q2, [%[b]]\n" NEXT_B
#define FIRST_B_2 "ldp q2, q3, [%[b]]\n" NEXT_B
#define FIRST_B_3 "ldp q2, q3, [%[b]]\n ldr q4, [%[b], #32]\n" NEXT_B
#define FIRST_8_4S "ldp q0, q1, [%[a]], #32\n"
#define FIRST_4_4S "ldr q0, [%[a]], #16\n"
#define FIRST_8_2D "ldp q0, q1, [%[a]]\n ldp q5, q6, [%[a], #32]\n add %[a], %[a], #64\n"
#define FIRST_4_2D "ldp q0, q1, [%[a]], #32\n"
#define STEP(V, PARITY, SHAPE, OP) COLUMNS_##V(MORE_##PARITY##_##SHAPE, LAST_##PARITY##_##SHAPE, OP) NEXT_B
#define END(V, PARITY, SHAPE, OP) COLUMNS_##V(END_##PARITY##_##SHAPE, END_##PARITY##_##SHAPE, OP)

// Stores rows of c.
#define STORE_1(X, Y, Z) "str q" #X ", [%[c]]\n add %[c], %[c], %[c_step]\n"
#define STORE_2(X, Y, Z) "stp q" #X ", q" #Y ", [%[c]]\n add %[c], %[c], %[c_step]\n"
#define STORE_3(X, Y, Z) "stp q" #X ", q" #Y ", [%[c]]\n str q" #Z ", [%[c], #32]\n add %[c], %[c], %[c_step]\n"
#define SUM_1(ADD, T, X, Y, Z) "ldr q0, [%[c]]\n" ADD " v" #X "." T ", v" #X "." T ", v0." T "\n"
#define SUM_2(ADD, T, X, Y, Z)                                                                                    \
  "ldp q0, q1, [%[c]]\n" ADD " v" #X "." T ", v" #X "." T ", v0." T "\n" ADD " v" #Y "." T ", v" #Y "." T ", v1." T "\n"
#define SUM_3(ADD, T, X, Y, Z) SUM_2(ADD, T, X, Y, Z) "ldr q2, [%[c], #32]\n" ADD " v" #Z "." T ", v" #Z "." T ", v2." T "\n"
#define ROWS_4_STORE(STORE) STORE(8, 9, 10) STORE(11, 12, 13) STORE(14, 15, 16) STORE(17, 18, 19)
#define ROWS_8_STORE(STORE) ROWS_4_STORE(STORE) STORE(20, 21, 22) STORE(23, 24, 25) STORE(26, 27, 28) STORE(29, 30, 31)
#define BOTH(SUM, STORE, ADD, T, X, Y, Z) SUM(ADD, T, X, Y, Z) STORE(X, Y, Z)
#define ROWS_4_SUM(SUM, STORE, ADD, T)                                                                            \
  BOTH(SUM, STORE, ADD, T, 8, 9, 10) BOTH(SUM, STORE, ADD, T, 11, 12, 13) BOTH(SUM, STORE, ADD, T, 14, 15, 16)    \
  BOTH(SUM, STORE, ADD, T, 17, 18, 19)
#define ROWS_8_SUM(SUM, STORE, ADD, T)                                                                            \
  ROWS_4_SUM(SUM, STORE, ADD, T) BOTH(SUM, STORE, ADD, T, 20, 21, 22) BOTH(SUM, STORE, ADD, T, 23, 24, 25)        \
  BOTH(SUM, STORE, ADD, T, 26, 27, 28) BOTH(SUM, STORE, ADD, T, 29, 30, 31)

// c is needed at the end: prefetched at the start.
#define ASK "prfm pstl1keep, [%[ahead]]\n prfm pstl1keep, [%[ahead], #40]\n add %[ahead], %[ahead], %[c_step]\n"
#define ASK_4 ASK ASK ASK ASK
#define ASK_8 ASK_4 ASK_4

// Steps come in pairs, EVEN and ODD; the last one, which loads nothing, may be either.
#define TILE(NAME, P, S, ASK_ROWS, FIRST, EVEN, ODD, END_EVEN, END_ODD, BEFORE_STORE, STORE_ROWS, SUM_ROWS)       \
  void NAME(int64_t steps, const P* a, const P* b, int64_t b_step, S* c, int64_t c_step, int64_t accumulate) {    \
    S* ahead = c;                                                                                                 \
    asm volatile(                                                                                                 \
        FIRST ASK_ROWS CLEAR                                                                                      \
        "subs %[steps], %[steps], #3\n"                                                                           \
        "b.lt 2f\n"                                                                                               \
        ".p2align 5\n"                                                                                            \
        "1:\n" EVEN ODD                                                                                           \
        "subs %[steps], %[steps], #2\n"                                                                           \
        "b.ge 1b\n"                                                                                               \
        "2:\n"                                                                                                    \
        "adds %[steps], %[steps], #2\n"                                                                           \
        "b.eq 3f\n" EVEN END_ODD                                                                                  \
        "b 4f\n"                                                                                                  \
        "3:\n" END_EVEN                                                                                           \
        "4:\n" BEFORE_STORE                                                                                       \
        "cbnz %[accumulate], 5f\n" STORE_ROWS                                                                     \
        "b 6f\n"                                                                                                  \
        "5:\n" SUM_ROWS                                                                                           \
        "6:\n"                                                                                                    \
        : [steps] "+r"(steps), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [ahead] "+r"(ahead)                         \
        : [b_step] "r"(b_step), [c_step] "r"(c_step), [accumulate] "r"(accumulate)                                \
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",       \
          "v28", "v29", "v30", "v31");                                                                            \
  }

#define REAL_TILE(NAME, P, T, ROWS, V, SHAPE, MULTIPLY, ADD)                                                      \
  TILE(NAME##_##ROWS##_##V, P, P, ASK_##ROWS, FIRST_B_##V FIRST_##SHAPE, STEP(V, EVEN, SHAPE, MULTIPLY), STEP(V, ODD, SHAPE, MULTIPLY), \
       END(V, EVEN, SHAPE, MULTIPLY), END(V, ODD, SHAPE, MULTIPLY), "", ROWS_##ROWS##_STORE(STORE_##V), ROWS_##ROWS##_SUM(SUM_##V, STORE_##V, ADD, T))
#define TILES(NAME, P, T, SHAPE, MULTIPLY, ADD)                                                                   \
  REAL_TILE(NAME, P, T, 8, 3, 8_##SHAPE, MULTIPLY, ADD)                                                           \
  REAL_TILE(NAME, P, T, 8, 2, 8_##SHAPE, MULTIPLY, ADD)                                                           \
  REAL_TILE(NAME, P, T, 8, 1, 8_##SHAPE, MULTIPLY, ADD)                                                           \
  REAL_TILE(NAME, P, T, 4, 3, 4_##SHAPE, MULTIPLY, ADD)                                                           \
  REAL_TILE(NAME, P, T, 4, 2, 4_##SHAPE, MULTIPLY, ADD)                                                           \
  REAL_TILE(NAME, P, T, 4, 1, 4_##SHAPE, MULTIPLY, ADD)

TILES(single, float, "4s", 4S, "fmla", "fadd")
TILES(real, double, "2d", 2D, "fmla", "fadd")
TILES(word, std::uint32_t, "4s", 4S, "mla", "add")

// ---- products of 2 x n by n x 2 blocks: v8 + 6 * pair of rows + pair of columns; a in v0 to v3, two columns of b in v4, v5
// and the next two in v6, v7, or vice versa ----

#define BLOCK(OP, T, C, A, B) OP " v" #C ".4s, v" #A "." T ", v" #B "." T "\n"
#define PAIR_8(OP, T, B, W, X, Y, Z) BLOCK(OP, T, W, 0, B) BLOCK(OP, T, X, 1, B) BLOCK(OP, T, Y, 2, B) BLOCK(OP, T, Z, 3, B)
#define PAIR_4(OP, T, B, W, X, Y, Z) BLOCK(OP, T, W, 0, B) BLOCK(OP, T, X, 1, B)
#define PAIR_MORE_8(OP, T, B, W, X, Y, Z, A0, A1, A2, A3)                                                                 \
  BLOCK(OP, T, W, 0, B) LOAD_A(0, A0) BLOCK(OP, T, X, 1, B) LOAD_A(1, A1) BLOCK(OP, T, Y, 2, B) LOAD_A(2, A2) BLOCK(OP, T, Z, 3, B) LOAD_A(3, A3)
#define PAIR_MORE_4(OP, T, B, W, X, Y, Z, A0, A1, A2, A3) BLOCK(OP, T, W, 0, B) LOAD_A(0, A0) BLOCK(OP, T, X, 1, B) LOAD_A(1, A1)
#define GROUP_1(ROWS, OP, T, B0, B1) PAIR_##ROWS(OP, T, B0, 8, 14, 20, 26) PAIR_##ROWS(OP, T, B1, 9, 15, 21, 27)
#define GROUP_2(ROWS, OP, T, B0, B1) PAIR_##ROWS(OP, T, B0, 10, 16, 22, 28) PAIR_##ROWS(OP, T, B1, 11, 17, 23, 29)
#define GROUP_3(ROWS, OP, T, B0, B1) PAIR_##ROWS(OP, T, B0, 12, 18, 24, 30) PAIR_##ROWS(OP, T, B1, 13, 19, 25, 31)
#define MORE_1(ROWS, OP, T, B0, B1, ...) PAIR_##ROWS(OP, T, B0, 8, 14, 20, 26) PAIR_MORE_##ROWS(OP, T, B1, 9, 15, 21, 27, __VA_ARGS__)
#define MORE_2(ROWS, OP, T, B0, B1, ...) PAIR_##ROWS(OP, T, B0, 10, 16, 22, 28) PAIR_MORE_##ROWS(OP, T, B1, 11, 17, 23, 29, __VA_ARGS__)
#define MORE_3(ROWS, OP, T, B0, B1, ...) PAIR_##ROWS(OP, T, B0, 12, 18, 24, 30) PAIR_MORE_##ROWS(OP, T, B1, 13, 19, 25, 31, __VA_ARGS__)
#define LOAD_PAIR(B0, B1, AT) "ldp q" #B0 ", q" #B1 ", [%[b], #" #AT "]\n"
// X and Y hold the first two columns when a step begins; Z and W are the other registers of b; then come places of the next a.
#define BLOCK_STEP_3(ROWS, OP, T, X, Y, Z, W, ...)                                                                        \
  LOAD_PAIR(Z, W, 32) GROUP_1(ROWS, OP, T, X, Y) LOAD_PAIR(X, Y, 64) NEXT_B GROUP_2(ROWS, OP, T, Z, W) LOAD_PAIR(Z, W, 0) MORE_3(ROWS, OP, T, X, Y, __VA_ARGS__)
#define BLOCK_END_3(ROWS, OP, T, X, Y, Z, W, ...)                                                                         \
  LOAD_PAIR(Z, W, 32) GROUP_1(ROWS, OP, T, X, Y) LOAD_PAIR(X, Y, 64) GROUP_2(ROWS, OP, T, Z, W) GROUP_3(ROWS, OP, T, X, Y)
#define BLOCK_STEP_2(ROWS, OP, T, X, Y, Z, W, ...)                                                                        \
  LOAD_PAIR(Z, W, 32) NEXT_B GROUP_1(ROWS, OP, T, X, Y) LOAD_PAIR(X, Y, 0) MORE_2(ROWS, OP, T, Z, W, __VA_ARGS__)
#define BLOCK_END_2(ROWS, OP, T, X, Y, Z, W, ...) LOAD_PAIR(Z, W, 32) GROUP_1(ROWS, OP, T, X, Y) GROUP_2(ROWS, OP, T, Z, W)
#define BLOCK_STEP_1(ROWS, OP, T, X, Y, Z, W, ...) NEXT_B LOAD_PAIR(Z, W, 0) MORE_1(ROWS, OP, T, X, Y, __VA_ARGS__)
#define BLOCK_END_1(ROWS, OP, T, X, Y, Z, W, ...) GROUP_1(ROWS, OP, T, X, Y)
#define EVEN_A_8 0, 16, 32, 48
#define ODD_A_8 64, 80, 96, 112
#define EVEN_A_4 0, 16, 0, 0
#define ODD_A_4 32, 48, 0, 0
#define PAIR_BYTES_8 128
#define PAIR_BYTES_4 64
#define EVEN_B 4, 5, 6, 7
#define ODD_B_3 6, 7, 4, 5
#define ODD_B_2 4, 5, 6, 7
#define ODD_B_1 6, 7, 4, 5
#define WITH(STEP, ...) STEP(__VA_ARGS__)
#define ADVANCE(BYTES) NEXT_A(BYTES)
#define FIRST_BLOCKS_8 "ldp q4, q5, [%[b]]\n ldp q0, q1, [%[a]]\n ldp q2, q3, [%[a], #32]\n add %[a], %[a], #64\n"
#define FIRST_BLOCKS_4 "ldp q4, q5, [%[b]]\n ldp q0, q1, [%[a]], #32\n"
// Two adjacent blocks become two rows of four.
#define ROWS_OF(X, Y) "zip1 v0.2d, v" #X ".2d, v" #Y ".2d\n zip2 v" #Y ".2d, v" #X ".2d, v" #Y ".2d\n mov v" #X ".16b, v0.16b\n"
#define ALL_ROWS_4                                                                                                       \
  ROWS_OF(8, 9) ROWS_OF(10, 11) ROWS_OF(12, 13) ROWS_OF(14, 15) ROWS_OF(16, 17) ROWS_OF(18, 19)
#define ALL_ROWS_8                                                                                                       \
  ALL_ROWS_4 ROWS_OF(20, 21) ROWS_OF(22, 23) ROWS_OF(24, 25) ROWS_OF(26, 27) ROWS_OF(28, 29) ROWS_OF(30, 31)
#define BLOCKS_4_STORE(STORE) STORE(8, 10, 12) STORE(9, 11, 13) STORE(14, 16, 18) STORE(15, 17, 19)
#define BLOCKS_8_STORE(STORE) BLOCKS_4_STORE(STORE) STORE(20, 22, 24) STORE(21, 23, 25) STORE(26, 28, 30) STORE(27, 29, 31)
#define BLOCKS_4_SUM(SUM, STORE, ADD)                                                                                    \
  BOTH(SUM, STORE, ADD, "4s", 8, 10, 12) BOTH(SUM, STORE, ADD, "4s", 9, 11, 13) BOTH(SUM, STORE, ADD, "4s", 14, 16, 18)  \
  BOTH(SUM, STORE, ADD, "4s", 15, 17, 19)
#define BLOCKS_8_SUM(SUM, STORE, ADD)                                                                                    \
  BLOCKS_4_SUM(SUM, STORE, ADD) BOTH(SUM, STORE, ADD, "4s", 20, 22, 24) BOTH(SUM, STORE, ADD, "4s", 21, 23, 25)          \
  BOTH(SUM, STORE, ADD, "4s", 26, 28, 30) BOTH(SUM, STORE, ADD, "4s", 27, 29, 31)

#define BLOCK_TILE(TARGET, NAME, P, S, ROWS, V, T, MULTIPLY, ADD)                                                          \
  TARGET TILE(NAME##_##ROWS##_##V, P, S, ASK_##ROWS, FIRST_BLOCKS_##ROWS, WITH(BLOCK_STEP_##V, ROWS, MULTIPLY, T, EVEN_B, EVEN_A_##ROWS), \
              WITH(BLOCK_STEP_##V, ROWS, MULTIPLY, T, ODD_B_##V, ODD_A_##ROWS) ADVANCE(PAIR_BYTES_##ROWS),                         \
              WITH(BLOCK_END_##V, ROWS, MULTIPLY, T, EVEN_B, EVEN_A_##ROWS), WITH(BLOCK_END_##V, ROWS, MULTIPLY, T, ODD_B_##V, ODD_A_##ROWS), \
              ALL_ROWS_##ROWS, BLOCKS_##ROWS##_STORE(STORE_##V), BLOCKS_##ROWS##_SUM(SUM_##V, STORE_##V, ADD))
#define BLOCK_TILES(TARGET, NAME, P, S, T, MULTIPLY, ADD)                                                                 \
  BLOCK_TILE(TARGET, NAME, P, S, 8, 3, T, MULTIPLY, ADD)                                                                  \
  BLOCK_TILE(TARGET, NAME, P, S, 8, 2, T, MULTIPLY, ADD)                                                                  \
  BLOCK_TILE(TARGET, NAME, P, S, 8, 1, T, MULTIPLY, ADD)                                                                  \
  BLOCK_TILE(TARGET, NAME, P, S, 4, 3, T, MULTIPLY, ADD)                                                                  \
  BLOCK_TILE(TARGET, NAME, P, S, 4, 2, T, MULTIPLY, ADD)                                                                  \
  BLOCK_TILE(TARGET, NAME, P, S, 4, 1, T, MULTIPLY, ADD)

#if defined(__clang__)
#define WITH_BF16 __attribute__((target("bf16")))
#define WITH_I8MM __attribute__((target("i8mm")))
#else
#define WITH_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#define WITH_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#endif

BLOCK_TILES(WITH_BF16, bfloat16, Bfloat16Bits, float, "8h", "bfmmla", "fadd")
BLOCK_TILES(WITH_I8MM, signed_byte, std::int8_t, std::uint32_t, "16b", "smmla", "add")
BLOCK_TILES(WITH_I8MM, unsigned_byte, std::uint8_t, std::uint32_t, "16b", "ummla", "add")

}  // namespace

#define TABLE(NAME) {{NAME##_8_1, NAME##_8_2, NAME##_8_3}, {NAME##_4_1, NAME##_4_2, NAME##_4_3}}
const Tile<Singles> neon_singles{8, 4, 4, 3, TABLE(single)};
const Tile<Doubles> neon_doubles{8, 4, 2, 3, TABLE(real)};
const Tile<Words> neon_words{8, 4, 4, 3, TABLE(word)};
const Tile<Bfloat16> neon_bfloat16{8, 4, 4, 3, TABLE(bfloat16)};
const Tile<SignedBytes> neon_signed_bytes{8, 4, 4, 3, TABLE(signed_byte)};
const Tile<UnsignedBytes> neon_unsigned_bytes{8, 4, 4, 3, TABLE(unsigned_byte)};

}  // namespace capibara::cpu

#endif
