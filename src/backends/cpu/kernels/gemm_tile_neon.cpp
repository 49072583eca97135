// The tiles of aarch64, in assembly: 8 (or 4) rows by up to 3 vectors, 24 accumulators, everything in registers.
//
// Assembly, since g++ 12 spills the accumulators of intrinsics and of unrolled loops (half the speed), and not every machine
// that builds this has a newer clang. Neoverse-V1 starts four of these instructions in a cycle; out-of-order execution
// hides the loads, so nothing is pipelined by hand. Measured alone: f32 99 %, BFMMLA 98 %, SMMLA 98 % of the peak.
#include "backends/cpu/kernels/gemm_tile.h"

#if defined(__aarch64__)

namespace capibara::cpu {

namespace {

// ---- registers: v8 to v31 are the tile, [row][vector] in threes; v0, v1, v5, v6 a column of a; v2 to v4 a row of b ----

#define CLEAR                                                                                                     \
  "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n movi v12.2d, #0\n movi v13.2d, #0\n"     \
  "movi v14.2d, #0\n movi v15.2d, #0\n movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n"   \
  "movi v20.2d, #0\n movi v21.2d, #0\n movi v22.2d, #0\n movi v23.2d, #0\n movi v24.2d, #0\n movi v25.2d, #0\n"   \
  "movi v26.2d, #0\n movi v27.2d, #0\n movi v28.2d, #0\n movi v29.2d, #0\n movi v30.2d, #0\n movi v31.2d, #0\n"

// Column by column: a vector of b by all elements of a, whose loads stand between them.
#define BY_4S_4(OP, B, W, X, Y, Z)                                                                                \
  OP " v" #W ".4s, v" #B ".4s, v0.s[0]\n" OP " v" #X ".4s, v" #B ".4s, v0.s[1]\n"                                 \
  OP " v" #Y ".4s, v" #B ".4s, v0.s[2]\n" OP " v" #Z ".4s, v" #B ".4s, v0.s[3]\n"
#define BY_4S_8(OP, B, W, X, Y, Z)                                                                                \
  OP " v" #W ".4s, v" #B ".4s, v1.s[0]\n" OP " v" #X ".4s, v" #B ".4s, v1.s[1]\n"                                 \
  OP " v" #Y ".4s, v" #B ".4s, v1.s[2]\n" OP " v" #Z ".4s, v" #B ".4s, v1.s[3]\n"
#define BY_2D_4(OP, B, W, X, Y, Z)                                                                                \
  OP " v" #W ".2d, v" #B ".2d, v0.d[0]\n" OP " v" #X ".2d, v" #B ".2d, v0.d[1]\n"                                 \
  OP " v" #Y ".2d, v" #B ".2d, v1.d[0]\n" OP " v" #Z ".2d, v" #B ".2d, v1.d[1]\n"
#define BY_2D_8(OP, B, W, X, Y, Z)                                                                                \
  OP " v" #W ".2d, v" #B ".2d, v5.d[0]\n" OP " v" #X ".2d, v" #B ".2d, v5.d[1]\n"                                 \
  OP " v" #Y ".2d, v" #B ".2d, v6.d[0]\n" OP " v" #Z ".2d, v" #B ".2d, v6.d[1]\n"
#define NEXT_B "add %[b], %[b], %[b_step]\n"
#define UPPER_1(BY, OP) BY(OP, 2, 8, 11, 14, 17)
#define UPPER_2(BY, OP) UPPER_1(BY, OP) BY(OP, 3, 9, 12, 15, 18)
#define UPPER_3(BY, OP) UPPER_2(BY, OP) BY(OP, 4, 10, 13, 16, 19)
#define LOWER_1(BY, OP) BY(OP, 2, 20, 23, 26, 29)
#define LOWER_2(BY, OP) LOWER_1(BY, OP) BY(OP, 3, 21, 24, 27, 30)
#define LOWER_3(BY, OP) LOWER_2(BY, OP) BY(OP, 4, 22, 25, 28, 31)
#define LOAD_B_1 "ldr q2, [%[b]]\n" NEXT_B
#define LOAD_B_2 "ldp q2, q3, [%[b]]\n" NEXT_B
#define LOAD_B_3 "ldp q2, q3, [%[b]]\n ldr q4, [%[b], #32]\n" NEXT_B

// One k of 4-byte and of 8-byte elements.
#define STEP_8_4S(V, OP) "prfm pldl1keep, [%[a], #1024]\n ldr q0, [%[a]]\n" LOAD_B_##V "ldr q1, [%[a], #16]\n add %[a], %[a], #32\n" UPPER_##V(BY_4S_4, OP) LOWER_##V(BY_4S_8, OP)
#define STEP_4_4S(V, OP) "ldr q0, [%[a]], #16\n" LOAD_B_##V UPPER_##V(BY_4S_4, OP)
#define STEP_8_2D(V, OP) \
  "prfm pldl1keep, [%[a], #1024]\n ldp q0, q1, [%[a]]\n" LOAD_B_##V "ldp q5, q6, [%[a], #32]\n add %[a], %[a], #64\n" UPPER_##V(BY_2D_4, OP) LOWER_##V(BY_2D_8, OP)
#define STEP_4_2D(V, OP) "ldp q0, q1, [%[a]], #32\n" LOAD_B_##V UPPER_##V(BY_2D_4, OP)

// Rows of c.
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

// c is needed at the end: it is asked for at the start.
#define ASK "prfm pstl1keep, [%[ahead]]\n prfm pstl1keep, [%[ahead], #40]\n add %[ahead], %[ahead], %[c_step]\n"
#define ASK_4 ASK ASK ASK ASK
#define ASK_8 ASK_4 ASK_4

#define TILE(NAME, P, S, ASK_ROWS, STEP, BEFORE_STORE, STORE_ROWS, SUM_ROWS)                                      \
  void NAME(int64_t steps, const P* a, const P* b, int64_t b_step, S* c, int64_t c_step, int64_t accumulate) {    \
    S* ahead = c;                                                                                                 \
    asm volatile(                                                                                                 \
        ASK_ROWS CLEAR                                                                                            \
        "subs %[steps], %[steps], #4\n"                                                                           \
        "b.lt 2f\n"                                                                                               \
        ".p2align 5\n"                                                                                            \
        "1:\n" STEP STEP STEP STEP                                                                                \
        "subs %[steps], %[steps], #4\n"                                                                           \
        "b.ge 1b\n"                                                                                               \
        "2:\n"                                                                                                    \
        "adds %[steps], %[steps], #4\n"                                                                           \
        "b.eq 4f\n"                                                                                               \
        "3:\n" STEP                                                                                               \
        "subs %[steps], %[steps], #1\n"                                                                           \
        "b.gt 3b\n"                                                                                               \
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

#define TILES(NAME, P, T, SHAPE, MULTIPLY, ADD)                                                                                      \
  TILE(NAME##_8_3, P, P, ASK_8, STEP_8_##SHAPE(3, MULTIPLY), "", ROWS_8_STORE(STORE_3), ROWS_8_SUM(SUM_3, STORE_3, ADD, T)) \
  TILE(NAME##_8_2, P, P, ASK_8, STEP_8_##SHAPE(2, MULTIPLY), "", ROWS_8_STORE(STORE_2), ROWS_8_SUM(SUM_2, STORE_2, ADD, T)) \
  TILE(NAME##_8_1, P, P, ASK_8, STEP_8_##SHAPE(1, MULTIPLY), "", ROWS_8_STORE(STORE_1), ROWS_8_SUM(SUM_1, STORE_1, ADD, T)) \
  TILE(NAME##_4_3, P, P, ASK_4, STEP_4_##SHAPE(3, MULTIPLY), "", ROWS_4_STORE(STORE_3), ROWS_4_SUM(SUM_3, STORE_3, ADD, T)) \
  TILE(NAME##_4_2, P, P, ASK_4, STEP_4_##SHAPE(2, MULTIPLY), "", ROWS_4_STORE(STORE_2), ROWS_4_SUM(SUM_2, STORE_2, ADD, T)) \
  TILE(NAME##_4_1, P, P, ASK_4, STEP_4_##SHAPE(1, MULTIPLY), "", ROWS_4_STORE(STORE_1), ROWS_4_SUM(SUM_1, STORE_1, ADD, T))

TILES(single, float, "4s", 4S, "fmla", "fadd")
TILES(real, double, "2d", 2D, "fmla", "fadd")
TILES(word, std::uint32_t, "4s", 4S, "mla", "add")

// ---- products of 2 x n by n x 2 blocks: v8 + 6 * pair of rows + pair of columns; a in v0 to v3, b in v4 to v7 ----

#define PAIR(OP, T, B, W, X, Y, Z)                                                                                       \
  OP " v" #W ".4s, v0." T ", v" #B "." T "\n" OP " v" #X ".4s, v1." T ", v" #B "." T "\n"                                \
  OP " v" #Y ".4s, v2." T ", v" #B "." T "\n" OP " v" #Z ".4s, v3." T ", v" #B "." T "\n"
#define HALF_PAIR(OP, T, B, W, X, Y, Z) OP " v" #W ".4s, v0." T ", v" #B "." T "\n" OP " v" #X ".4s, v1." T ", v" #B "." T "\n"
#define COLUMNS_1(P, OP, T) "ldp q4, q5, [%[b]]\n" P(OP, T, 4, 8, 14, 20, 26) P(OP, T, 5, 9, 15, 21, 27)
#define COLUMNS_2(P, OP, T) COLUMNS_1(P, OP, T) "ldp q6, q7, [%[b], #32]\n" P(OP, T, 6, 10, 16, 22, 28) P(OP, T, 7, 11, 17, 23, 29)
#define COLUMNS_3(P, OP, T) COLUMNS_2(P, OP, T) "ldp q4, q5, [%[b], #64]\n" P(OP, T, 4, 12, 18, 24, 30) P(OP, T, 5, 13, 19, 25, 31)
#define BLOCKS_8(COLUMNS, OP, T)                                                                                         \
  "ldp q0, q1, [%[a]], #32\n ldp q2, q3, [%[a]], #32\n" COLUMNS(PAIR, OP, T) "add %[b], %[b], %[b_step]\n"
#define BLOCKS_4(COLUMNS, OP, T) "ldp q0, q1, [%[a]], #32\n" COLUMNS(HALF_PAIR, OP, T) "add %[b], %[b], %[b_step]\n"
// Two blocks side by side become two rows of four.
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

#define BLOCK_TILES(TARGET, NAME, P, S, T, MULTIPLY, ADD)                                                                                    \
  TARGET TILE(NAME##_8_3, P, S, ASK_8, BLOCKS_8(COLUMNS_3, MULTIPLY, T), ALL_ROWS_8, BLOCKS_8_STORE(STORE_3), BLOCKS_8_SUM(SUM_3, STORE_3, ADD)) \
  TARGET TILE(NAME##_8_2, P, S, ASK_8, BLOCKS_8(COLUMNS_2, MULTIPLY, T), ALL_ROWS_8, BLOCKS_8_STORE(STORE_2), BLOCKS_8_SUM(SUM_2, STORE_2, ADD)) \
  TARGET TILE(NAME##_8_1, P, S, ASK_8, BLOCKS_8(COLUMNS_1, MULTIPLY, T), ALL_ROWS_8, BLOCKS_8_STORE(STORE_1), BLOCKS_8_SUM(SUM_1, STORE_1, ADD)) \
  TARGET TILE(NAME##_4_3, P, S, ASK_4, BLOCKS_4(COLUMNS_3, MULTIPLY, T), ALL_ROWS_4, BLOCKS_4_STORE(STORE_3), BLOCKS_4_SUM(SUM_3, STORE_3, ADD)) \
  TARGET TILE(NAME##_4_2, P, S, ASK_4, BLOCKS_4(COLUMNS_2, MULTIPLY, T), ALL_ROWS_4, BLOCKS_4_STORE(STORE_2), BLOCKS_4_SUM(SUM_2, STORE_2, ADD)) \
  TARGET TILE(NAME##_4_1, P, S, ASK_4, BLOCKS_4(COLUMNS_1, MULTIPLY, T), ALL_ROWS_4, BLOCKS_4_STORE(STORE_1), BLOCKS_4_SUM(SUM_1, STORE_1, ADD))

#if defined(__clang__)
#define WITH_BF16 __attribute__((target("bf16")))
#define WITH_I8MM __attribute__((target("i8mm")))
#else
#define WITH_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#define WITH_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#endif

BLOCK_TILES(WITH_BF16, brain, BrainBits, float, "8h", "bfmmla", "fadd")
BLOCK_TILES(WITH_I8MM, signed_byte, std::int8_t, std::uint32_t, "16b", "smmla", "add")
BLOCK_TILES(WITH_I8MM, unsigned_byte, std::uint8_t, std::uint32_t, "16b", "ummla", "add")

}  // namespace

#define TABLE(NAME) {{NAME##_8_1, NAME##_8_2, NAME##_8_3}, {NAME##_4_1, NAME##_4_2, NAME##_4_3}}
const Tile<Singles> neon_singles{8, 4, 4, 2, TABLE(single)};
const Tile<Doubles> neon_doubles{8, 4, 2, 3, TABLE(real)};
const Tile<Words> neon_words{8, 4, 4, 3, TABLE(word)};
const Tile<Brains> neon_brains{8, 4, 4, 3, TABLE(brain)};
const Tile<SignedBytes> neon_signed_bytes{8, 4, 4, 3, TABLE(signed_byte)};
const Tile<UnsignedBytes> neon_unsigned_bytes{8, 4, 4, 3, TABLE(unsigned_byte)};

}  // namespace capibara::cpu

#endif
