// Measures this machine's limits: multiply-adds per element type, copying and reading memory, on 1 and 2 threads.
//
// Prints lines `kind threads figure`: operations a second for f32, f64, bf16 and int8 (where the processor has the
// instruction; tiles of AMX before vectors), bytes a second for copy (read + written) and read.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

struct Unit {
  const char* name;
  double operations;  // of one call with count 1
  void (*run)(long count);
};

#if defined(__aarch64__)

// Sixteen independent accumulators: four pipes of four cycles each.
#define CAPIBARA_SIXTEEN(form, kind)                                                                              \
  form(0, kind) form(1, kind) form(2, kind) form(3, kind) form(4, kind) form(5, kind) form(6, kind) form(7, kind) \
      form(8, kind) form(9, kind) form(10, kind) form(11, kind) form(12, kind) form(13, kind) form(14, kind)      \
          form(15, kind)
#define CAPIBARA_FMLA(n, kind) "fmla v" #n "." kind ", v30." kind ", v31." kind "\n"
// By opcode, since not every assembler has these instructions: v_n += v30 * v31.
#define CAPIBARA_BFMMLA(n, kind) ".inst 0x6e5fefc0 + " #n "\n"
#define CAPIBARA_SMMLA(n, kind) ".inst 0x4e9fa7c0 + " #n "\n"
#define CAPIBARA_LOOP(function, form, kind)                                                                            \
  void function(long count) {                                                                                          \
    asm volatile("movi v30.16b, #0\nmovi v31.16b, #0\n1:\n" CAPIBARA_SIXTEEN(form, kind)                               \
                     CAPIBARA_SIXTEEN(form, kind) "subs %0, %0, #1\nb.ne 1b\n"                                         \
                 : "+r"(count)::"cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", \
                   "v13", "v14", "v15", "v30", "v31");                                                                 \
  }
CAPIBARA_LOOP(multiply_f32, CAPIBARA_FMLA, "4s")
CAPIBARA_LOOP(multiply_f64, CAPIBARA_FMLA, "2d")
CAPIBARA_LOOP(multiply_bf16, CAPIBARA_BFMMLA, "")
CAPIBARA_LOOP(multiply_int8, CAPIBARA_SMMLA, "")

std::vector<Unit> units() {
  std::vector<Unit> found = {{"f32", 32 * 8, multiply_f32}, {"f64", 32 * 4, multiply_f64}};
  const unsigned long features = getauxval(AT_HWCAP2);
  constexpr unsigned long has_i8mm = 1 << 13, has_bf16 = 1 << 14;
  if (features & has_bf16) found.push_back({"bf16", 32 * 32, multiply_bf16});
  if (features & has_i8mm) found.push_back({"int8", 32 * 64, multiply_int8});
  return found;
}

#elif defined(__x86_64__)

// Twelve independent accumulators; the empty asm prevents constant folding.
#define CAPIBARA_LOOP(function, features, vector, zero, step)               \
  __attribute__((target(features))) void function(long count) {             \
    vector sums[12], a = zero(), b = zero();                                \
    for (vector & sum : sums) sum = zero();                                 \
    for (; count > 0; --count) {                                            \
      asm volatile("" : "+v"(a), "+v"(b));                                  \
      _Pragma("GCC unroll 12") for (int i = 0; i < 12; ++i) sums[i] = step; \
    }                                                                       \
    for (vector & sum : sums) asm volatile("" : "+v"(sum));                 \
  }
CAPIBARA_LOOP(multiply_f32_256, "avx2,fma", __m256, _mm256_setzero_ps, _mm256_fmadd_ps(a, b, sums[i]))
CAPIBARA_LOOP(multiply_f64_256, "avx2,fma", __m256d, _mm256_setzero_pd, _mm256_fmadd_pd(a, b, sums[i]))
CAPIBARA_LOOP(multiply_f32_512, "avx512f", __m512, _mm512_setzero_ps, _mm512_fmadd_ps(a, b, sums[i]))
CAPIBARA_LOOP(multiply_f64_512, "avx512f", __m512d, _mm512_setzero_pd, _mm512_fmadd_pd(a, b, sums[i]))
CAPIBARA_LOOP(multiply_int8_512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512,
              _mm512_dpbusd_epi32(sums[i], a, b))
CAPIBARA_LOOP(multiply_bf16_512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps,
              _mm512_dpbf16_ps(sums[i], reinterpret_cast<__m512bh&>(a), reinterpret_cast<__m512bh&>(b)))

// Two by two tiles of accumulators, as in matmuls; tiles belong to the thread and are released at the end.
#define CAPIBARA_TILES(function, features, name)                                          \
  __attribute__((target(features))) void function(long count) {                           \
    alignas(64) const struct {                                                            \
      std::uint8_t palette = 1, start = 0, reserved[14] = {};                             \
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};                     \
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};                           \
    } configuration;                                                                      \
    asm volatile("ldtilecfg %0" ::"m"(configuration)); /* all tiles are zero then */      \
    for (; count > 0; --count) {                                                          \
      asm volatile(name " %%tmm6, %%tmm4, %%tmm0\n" name " %%tmm7, %%tmm4, %%tmm1\n" name \
                        " %%tmm6, %%tmm5, %%tmm2\n" name " %%tmm7, %%tmm5, %%tmm3\n" ::); \
    }                                                                                     \
    asm volatile("tilerelease");                                                          \
  }
CAPIBARA_TILES(multiply_bf16_tiles, "amx-tile,amx-bf16", "tdpbf16ps")
CAPIBARA_TILES(multiply_int8_tiles, "amx-tile,amx-int8", "tdpbssd")

// True with AMX-BF16, AMX-TILE and AMX-INT8, an OS that saves tiles, and its permission, which this requests.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tiles = 1u << 22 | 1u << 24 | 1u << 25, saved = 1u << 17 | 1u << 18;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tiles) != tiles) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & saved) == saved && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

std::vector<Unit> units() {
  std::vector<Unit> found;
  static const bool tiles = has_tiles();
  if (__builtin_cpu_supports("avx512f")) {
    found = {{"f32", 12 * 32, multiply_f32_512}, {"f64", 12 * 16, multiply_f64_512}};
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found = {{"f32", 12 * 16, multiply_f32_256}, {"f64", 12 * 8, multiply_f64_256}};
  }
  if (tiles) {
    found.push_back({"bf16", 4 * 2 * 16 * 16 * 32, multiply_bf16_tiles});
    found.push_back({"int8", 4 * 2 * 16 * 16 * 64, multiply_int8_tiles});
    return found;
  }
  if (__builtin_cpu_supports("avx512bf16")) found.push_back({"bf16", 12 * 64, multiply_bf16_512});
  if (__builtin_cpu_supports("avx512vnni")) found.push_back({"int8", 12 * 128, multiply_int8_512});
  return found;
}

#else
std::vector<Unit> units() { return {}; }
#endif

// The best of many short repeats: even on a busy machine some are undisturbed.
double seconds_of(int threads, int repeats, const std::function<void(int)>& work) {
  double best = 1e30;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

using Words = std::uint64_t __attribute__((vector_size(16)));

struct Free {
  void operator()(Words* words) const { std::free(words); }
};
using Block = std::unique_ptr<Words[], Free>;

// Memory in huge pages, like our arrays: with small pages TLB misses would be the limit.
Block make_block(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  Block block(static_cast<Words*>(std::aligned_alloc(huge, bytes)));
  if (!block) std::abort();
  madvise(block.get(), bytes, MADV_HUGEPAGE);
  std::memset(static_cast<void*>(block.get()), 1, bytes);
  return block;
}

// Eight accumulators in registers, unrolled by hand: as an array they would be kept in memory.
std::uint64_t add_up(const Words* words, std::size_t count) {
  Words s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    const Words* w = words + i;
    s0 += w[0], s1 += w[1], s2 += w[2], s3 += w[3], s4 += w[4], s5 += w[5], s6 += w[6], s7 += w[7];
  }
  const Words sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
  return sum[0] + sum[1];
}

}  // namespace

int main() {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr long count = 400'000;
  const Block from_block = make_block(bytes), to_block = make_block(bytes);
  const Words* from = from_block.get();
  Words* to = to_block.get();
  for (const int threads : {1, 2}) {
    for (const Unit& unit : units()) {
      const double seconds = seconds_of(threads, 150, [&](int) { unit.run(count); });
      std::printf("%s %d %.6g\n", unit.name, threads, unit.operations * count * threads / seconds);
    }
    const std::size_t part = bytes / sizeof(Words) / threads;
    const double copied = seconds_of(threads, 40, [&](int thread) {
      std::memcpy(static_cast<void*>(to + thread * part), from + thread * part, part * sizeof(Words));
    });
    std::printf("copy %d %.6g\n", threads, 2.0 * bytes / copied);
    volatile std::uint64_t kept = 0;
    const double read = seconds_of(threads, 40, [&](int thread) { kept = add_up(from + thread * part, part); });
    std::printf("read %d %.6g\n", threads, 1.0 * bytes / read);
  }
  return 0;
}
