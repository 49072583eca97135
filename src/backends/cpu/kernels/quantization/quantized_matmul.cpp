// Matmuls with quantized weights: for few rows at the speed of reading the codes, for more by tiles on panels that are
// widened one at a time.
//
// With few rows each code is read once and widened in registers. Four-bit integers are looked up in a register that
// holds the 16 numbers they encode, if the processor can (AVX-512): this replaces masks, conversion and subtraction. A
// single row by four-bit integers would still take longer than reading them: with AVX-512 VNNI it becomes integers of
// 24 bits, whose three bytes are multiplied by the codes as they are stored. Sums depend on the shape alone: the number
// of threads changes nothing.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // spurious: g++ 12 warns about its own intrinsics
#endif
#include <immintrin.h>
#endif

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/product.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/targets.h"
#include "backends/cpu/kernels/vector_lanes.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace quantized {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

constexpr int64_t nibble_block = 32;
enum class Format { int8, int4, vectors };

// The arrays of a matrix in memory.
struct Codes {
  Format format = Format::int8;
  int64_t inputs = 0, outputs = 0;
  int64_t blocks = 1, block = 0;  // scales per output, and elements per scale
  int64_t row_bytes = 0;
  int64_t vectors = 0, stages = 0, groups = 0, entries = 0, dim = 0;
  bool wide = false;  // codes of vectors are two bytes
  const std::uint8_t* codes = nullptr;
  const void* scale = nullptr;
  const float* codebook = nullptr;

  const std::uint8_t* row(int64_t output) const { return codes + output * row_bytes; }
  // S: the stored type of scales, Bfloat16Bits for four-bit codes, else float.
  template <class S>
  float scale_of(int64_t output, int64_t b) const {
    return packed_element<float>(static_cast<const S*>(scale)[output * blocks + b]);
  }
  bool are_pairs() const { return !wide && dim == 4 && stages == 2 && groups == 1 && entries == 256; }
  int64_t group_of(int64_t vector) const { return groups == 1 ? 0 : vector * groups / vectors; }
  const float* entry(const std::uint8_t* row, int64_t vector, int64_t stage, int64_t group) const {
    const int64_t at = vector * stages + stage;
    const int64_t named = wide ? reinterpret_cast<const std::uint16_t*>(row)[at] : row[at];
    const int64_t code = std::min(named, entries - 1);
    return codebook + ((stage * groups + group) * entries + code) * dim;
  }
};

// ---- vectors ----------------------------------------------------------------------------------------------------

using vector_loop::Vector;
using vector_loop::widen_bytes;

// Converts the low four bits of each word to numbers from -8 to 7.
template <int Lanes>
CAPIBARA_INLINE void nibbles(const Vector<std::int32_t, Lanes>& words, Vector<float, Lanes>& to) {
#if !defined(__clang__)
  if constexpr (Lanes == 16) {
    const Vector<float, 16> numbers = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    to = __builtin_shuffle(numbers, words);  // ignores all other bits
    return;
  }
#endif
  to = __builtin_convertvector((words & 15) - 8, Vector<float, Lanes>);
}

template <int Lanes>
CAPIBARA_INLINE void load(const float* from, Vector<float, Lanes>& to) {
  __builtin_memcpy(&to, from, sizeof(to));
}

template <int Lanes>
CAPIBARA_INLINE float total(const Vector<float, Lanes>& sum) {
  float lanes[Lanes];
  __builtin_memcpy(lanes, &sum, sizeof(sum));
#pragma GCC unroll 4
  for (int half = Lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// ---- few rows of x ------------------------------------------------------------------------------------------------

// Operands of the loops over codes: x [M, step], zeros beyond `inputs`; out [M, out_step] from `first` on.
struct Part {
  const Codes& codes;
  const float* x;
  int64_t step;
  float* out;
  int64_t out_step;
};

// `Outputs` outputs from `output` on, with byte codes.
template <int Lanes, int M, int Outputs>
CAPIBARA_INLINE void multiply_bytes(const Part& part, int64_t output) {
  using V = Vector<float, Lanes>;
  const Codes& codes = part.codes;
  const auto* row = reinterpret_cast<const std::int8_t*>(codes.row(output));
  float sums[Outputs][M] = {};
  for (int64_t b = 0; b < codes.blocks; ++b) {
    V sum[Outputs][M] = {};
    const int64_t begin = b * codes.block, end = begin + codes.block;
    int64_t k = begin;
    for (; k + Lanes <= end; k += Lanes) {
      V weights[Outputs], own;
#pragma GCC unroll 4
      for (int r = 0; r < Outputs; ++r) {
        Vector<std::int32_t, Lanes> words;
        widen_bytes<Lanes>(row + r * codes.row_bytes + k, words);
        weights[r] = __builtin_convertvector(words, V);
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        load<Lanes>(part.x + m * part.step + k, own);
#pragma GCC unroll 4
        for (int r = 0; r < Outputs; ++r) sum[r][m] += own * weights[r];
      }
    }
    for (int r = 0; r < Outputs; ++r) {
      const float scale = codes.scale_of<float>(output + r, b);
      for (int m = 0; m < M; ++m) {
        float all = total<Lanes>(sum[r][m]);
        for (int64_t i = k; i < end; ++i)
          all += part.x[m * part.step + i] * static_cast<float>(row[r * codes.row_bytes + i]);
        sums[r][m] += scale * all;
      }
    }
  }
  for (int r = 0; r < Outputs; ++r) {
    for (int m = 0; m < M; ++m) part.out[m * part.out_step + output + r] = sums[r][m];
  }
}

// The same with four-bit codes: x is padded to whole blocks.
template <int Lanes, int M, int Outputs>
CAPIBARA_INLINE void multiply_nibbles(const Part& part, int64_t output) {
  using V = Vector<float, Lanes>;
  constexpr int half = nibble_block / 2, pieces = half / Lanes;
  const Codes& codes = part.codes;
  const std::uint8_t* row = codes.row(output);
  V sum[Outputs][M] = {};
  for (int64_t b = 0; b < codes.blocks; ++b) {
    const float* x = part.x + b * nibble_block;
#pragma GCC unroll 4
    for (int r = 0; r < Outputs; ++r) {
      const float scale = codes.scale_of<Bfloat16Bits>(output + r, b);
      V inner[M] = {};
#pragma GCC unroll 4
      for (int p = 0; p < pieces; ++p) {
        Vector<std::int32_t, Lanes> words;
        V low, high;
        widen_bytes<Lanes>(row + r * codes.row_bytes + b * half + p * Lanes, words);
        nibbles<Lanes>(words, low);
        nibbles<Lanes>(words >> 4, high);
        if constexpr (M > 2) {
          low *= scale;
          high *= scale;
        }
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          V first, second;
          load<Lanes>(x + m * part.step + p * Lanes, first);
          load<Lanes>(x + m * part.step + half + p * Lanes, second);
          if constexpr (M > 2) {
            sum[r][m] += first * low;
            sum[r][m] += second * high;
          } else {
            inner[m] += first * low;
            inner[m] += second * high;
          }
        }
      }
      if constexpr (M <= 2) {
        for (int m = 0; m < M; ++m) sum[r][m] += inner[m] * scale;
      }
    }
  }
  for (int r = 0; r < Outputs; ++r) {
    for (int m = 0; m < M; ++m) part.out[m * part.out_step + output + r] = total<Lanes>(sum[r][m]);
  }
}

// Outputs [output, output + Outputs) of vector codes.
template <int M, int Outputs>
CAPIBARA_INLINE void multiply_vectors(const Part& part, int64_t output) {
  using V = Vector<float, 4>;
  const Codes& codes = part.codes;
  const int64_t dim = codes.dim;
  V sum[Outputs][M] = {};
  float rest[Outputs][M] = {};
  for (int64_t v = 0; v < codes.vectors; ++v) {
    const float* x = part.x + v * dim;
    const int64_t group = codes.group_of(v);
    for (int64_t s = 0; s < codes.stages; ++s) {
      for (int r = 0; r < Outputs; ++r) {
        const float* entry = codes.entry(codes.row(output + r), v, s, group);
        int64_t i = 0;
        for (; i + 4 <= dim; i += 4) {
          V own, four;
          load<4>(entry + i, four);
#pragma GCC unroll 8
          for (int m = 0; m < M; ++m) {
            load<4>(x + m * part.step + i, own);
            sum[r][m] += own * four;
          }
        }
        for (; i < dim; ++i) {
          for (int m = 0; m < M; ++m) rest[r][m] += x[m * part.step + i] * entry[i];
        }
      }
    }
  }
  for (int r = 0; r < Outputs; ++r) {
    const float scale = codes.scale_of<float>(output + r, 0);
    for (int m = 0; m < M; ++m) part.out[m * part.out_step + output + r] = scale * (rest[r][m] + total<4>(sum[r][m]));
  }
}

// The same with the usual codes, vectors of four in two stages of 256 entries. Both entries are added before they are
// multiplied.
template <int M, int Outputs>
CAPIBARA_INLINE void multiply_pairs(const Part& part, int64_t output) {
  using V = Vector<float, 4>;
  const Codes& codes = part.codes;
  const float *first = codes.codebook, *second = first + 256 * 4;
  const std::uint8_t* rows[Outputs];
  V sum[Outputs][M] = {};
  for (int r = 0; r < Outputs; ++r) rows[r] = codes.row(output + r);
  for (int64_t v = 0; v < codes.vectors; ++v) {
    V own[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) load<4>(part.x + m * part.step + v * 4, own[m]);
#pragma GCC unroll 4
    for (int r = 0; r < Outputs; ++r) {
      V one, other;
      load<4>(first + rows[r][2 * v] * 4, one);
      load<4>(second + rows[r][2 * v + 1] * 4, other);
      one += other;
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) sum[r][m] += own[m] * one;
    }
  }
  for (int r = 0; r < Outputs; ++r) {
    const float scale = codes.scale_of<float>(output + r, 0);
    for (int m = 0; m < M; ++m) part.out[m * part.out_step + output + r] = scale * total<4>(sum[r][m]);
  }
}

// Outputs [begin, end) of M rows.
template <int Lanes, int M>
CAPIBARA_INLINE void multiply_rows(const Part& part, int64_t begin, int64_t end) {
  constexpr int outputs = M == 8 ? 1 : M == 4 ? 2 : 4;
  int64_t n = begin;
  switch (part.codes.format) {
    case Format::int8:
      for (; n + outputs <= end; n += outputs) multiply_bytes<Lanes, M, outputs>(part, n);
      for (; n < end; ++n) multiply_bytes<Lanes, M, 1>(part, n);
      return;
    case Format::int4:
      for (; n + outputs <= end; n += outputs) multiply_nibbles<Lanes, M, outputs>(part, n);
      for (; n < end; ++n) multiply_nibbles<Lanes, M, 1>(part, n);
      return;
    case Format::vectors:
      if (part.codes.are_pairs()) {
        for (; n + outputs <= end; n += outputs) multiply_pairs<M, outputs>(part, n);
      } else {
        for (; n + outputs <= end; n += outputs) multiply_vectors<M, outputs>(part, n);
      }
      for (; n < end; ++n) multiply_vectors<M, 1>(part, n);
      return;
  }
}

// Widens elements [first, first + count) of an output; whole blocks of four-bit codes.
CAPIBARA_INLINE void widen_part(const Codes& codes, int64_t output, int64_t first, int64_t count, float* to) {
  const std::uint8_t* row = codes.row(output);
  switch (codes.format) {
    case Format::int8: {
      const auto* bytes = reinterpret_cast<const std::int8_t*>(row);
      for (int64_t i = first; i < first + count;) {
        const int64_t b = i / codes.block, end = std::min(first + count, (b + 1) * codes.block);
        const float scale = codes.scale_of<float>(output, b);
        for (; i < end; ++i) to[i - first] = scale * static_cast<float>(bytes[i]);
      }
      return;
    }
    case Format::int4:
      for (int64_t b = first / nibble_block; b < (first + count) / nibble_block; ++b, to += nibble_block) {
        const std::uint8_t* bytes = row + b * nibble_block / 2;
        const float scale = codes.scale_of<Bfloat16Bits>(output, b);
        for (int i = 0; i < nibble_block / 2; ++i) {
          to[i] = scale * static_cast<float>((bytes[i] & 15) - 8);
          to[i + nibble_block / 2] = scale * static_cast<float>((bytes[i] >> 4) - 8);
        }
      }
      return;
    case Format::vectors: {
      const float scale = codes.scale_of<float>(output, 0);
      for (int64_t v = first / codes.dim; v < (first + count) / codes.dim; ++v, to += codes.dim) {
        std::fill_n(to, codes.dim, 0.0F);
        for (int64_t s = 0; s < codes.stages; ++s) {
          const float* entry = codes.entry(row, v, s, codes.group_of(v));
          for (int64_t i = 0; i < codes.dim; ++i) to[i] += scale * entry[i];
        }
      }
      return;
    }
  }
}

// The loops for the current processor.
struct Loops {
  void (*rows)(const Part& part, int count, int64_t begin, int64_t end);  // 1, 2, 4 or 8 rows
  void (*widen)(const Codes& codes, int64_t output, int64_t first, int64_t count, float* to);
};

#define CAPIBARA_LOOPS(NAME, TARGET, LANES)                                                               \
  TARGET void rows_##NAME(const Part& part, int count, int64_t begin, int64_t end) {                      \
    if (count == 1) return multiply_rows<LANES, 1>(part, begin, end);                                     \
    if (count == 2) return multiply_rows<LANES, 2>(part, begin, end);                                     \
    if (count == 4) return multiply_rows<LANES, 4>(part, begin, end);                                     \
    multiply_rows<LANES, 8>(part, begin, end);                                                            \
  }                                                                                                       \
  TARGET void widen_##NAME(const Codes& codes, int64_t output, int64_t first, int64_t count, float* to) { \
    widen_part(codes, output, first, count, to);                                                          \
  }
CAPIBARA_LOOPS(plain, , 4)
#if defined(__x86_64__)
CAPIBARA_LOOPS(avx2, CAPIBARA_AVX2, 8)
CAPIBARA_LOOPS(avx512, CAPIBARA_AVX512, 16)
#endif
#undef CAPIBARA_LOOPS

#if defined(__x86_64__)

// ---- a row of x as integers -----------------------------------------------------------------------------------------

constexpr int64_t chunk_blocks = 4;      // of 32 codes: a vector of 64 bytes
constexpr int64_t chunk_parts = 6 * 64;  // bytes of x: three parts for low and for high codes
constexpr int max_whole = 127 << 16;     // of three signed bytes; eight times 15 of it fit into 32 bits

// A row of x in chunks of four blocks: x = step * (high * 2^16 + middle * 2^8 + low).
struct WholeRow {
  Scratch<std::int8_t> parts;  // [chunks, part, low or high codes, 64]
  Scratch<std::int32_t> bias;  // [chunks, 16]: -8 times the sum of the integers that a lane multiplies
  Scratch<float> step;         // [chunks, 16]: of each lane's block
};

// q = high * 256 + low, low from -128 to 127.
CAPIBARA_VNNI CAPIBARA_INLINE __m512i lowest_byte(__m512i q) {
  const __m512i half = _mm512_set1_epi32(128);
  return _mm512_sub_epi32(_mm512_and_si512(_mm512_add_epi32(q, half), _mm512_set1_epi32(255)), half);
}

// False if a value is not finite. `x` is padded with zeros to whole chunks.
CAPIBARA_VNNI bool split_row(const float* x, int64_t chunks, WholeRow& to) {
  constexpr int not_finite = 0x99;  // infinities and NaN
  constexpr float least = 1e-30F;   // the step of smaller values would not be a normal number
  for (int64_t b = 0; b < chunks * chunk_blocks; ++b) {
    const __m512 low = _mm512_loadu_ps(x + b * nibble_block), high = _mm512_loadu_ps(x + b * nibble_block + 16);
    if (_mm512_fpclass_ps_mask(low, not_finite) || _mm512_fpclass_ps_mask(high, not_finite)) return false;
    const float largest = std::max(least, _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high))));
    const float step = largest / static_cast<float>(max_whole);
    const __m512 inverse = _mm512_set1_ps(1 / step);
    const int64_t chunk = b / chunk_blocks, own = b % chunk_blocks;
    std::int8_t* parts = to.parts.data() + chunk * chunk_parts + own * 16;
    __m512i sum = _mm512_setzero_si512();
    for (int half = 0; half < 2; ++half) {
      const __m512i all = _mm512_cvtps_epi32(_mm512_mul_ps(half == 0 ? low : high, inverse));
      const __m512i first = lowest_byte(all), upper = _mm512_srai_epi32(_mm512_sub_epi32(all, first), 8);
      const __m512i second = lowest_byte(upper), third = _mm512_srai_epi32(_mm512_sub_epi32(upper, second), 8);
      const __m512i bytes[3] = {third, second, first};
      for (int part = 0; part < 3; ++part)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(parts + part * 128 + half * 64), _mm512_cvtepi32_epi8(bytes[part]));
      sum = _mm512_add_epi32(sum, all);
    }
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));  // of four neighbours
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    const __m512i bias = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 3));
    const int64_t lane = chunk * 16 + own * 4;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to.bias.data() + lane),
                     _mm512_castsi512_si128(_mm512_maskz_compress_epi32(0x1111, bias)));
    _mm_storeu_ps(to.step.data() + lane, _mm_set1_ps(step));
  }
  return true;
}

// Outputs [output, output + Outputs): sums of 32 bits for each chunk are exact.
template <int Outputs>
CAPIBARA_VNNI CAPIBARA_INLINE void multiply_whole(const Codes& codes, const WholeRow& x, int64_t output, float* out) {
  const __m512i low_bits = _mm512_set1_epi8(15);
  // Widens four bfloat16 in each group of 16 bytes: group g takes number g four times.
  const __m512i spread =
      _mm512_set_epi32(0x07068080, 0x07068080, 0x07068080, 0x07068080, 0x05048080, 0x05048080, 0x05048080, 0x05048080,
                       0x03028080, 0x03028080, 0x03028080, 0x03028080, 0x01008080, 0x01008080, 0x01008080, 0x01008080);
  __m512 sum[Outputs];
  for (__m512& one : sum) one = _mm512_setzero_ps();
  const auto* scales = static_cast<const std::uint16_t*>(codes.scale) + output * codes.blocks;
  const std::uint8_t* rows = codes.row(output);
  const int64_t chunks = (codes.blocks + chunk_blocks - 1) / chunk_blocks;
  for (int64_t c = 0; c < chunks; ++c) {
    __m512i part[6];
    for (int i = 0; i < 6; ++i) part[i] = _mm512_loadu_si512(x.parts.data() + c * chunk_parts + i * 64);
    const __m512i bias = _mm512_loadu_si512(x.bias.data() + c * 16);
    const __m512 step = _mm512_loadu_ps(x.step.data() + c * 16);
    const int64_t blocks = std::min(chunk_blocks, codes.blocks - c * chunk_blocks);
    const __mmask64 present = blocks == chunk_blocks ? ~__mmask64{0} : (__mmask64{1} << (16 * blocks)) - 1;
#pragma GCC unroll 4
    for (int r = 0; r < Outputs; ++r) {
      const __m512i bytes = _mm512_maskz_loadu_epi8(present, rows + r * codes.row_bytes + c * 64);
      const __m512i low = _mm512_and_si512(bytes, low_bits);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low_bits);
      __m512i all = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), low, part[0]), high, part[1]);
      all = _mm512_slli_epi32(all, 8);
      all = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(all, low, part[2]), high, part[3]);
      all = _mm512_slli_epi32(all, 8);
      all = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(all, low, part[4]), high, part[5]);
      long long four = 0;
      const std::uint16_t* own = scales + r * codes.blocks + c * chunk_blocks;
      if (blocks == chunk_blocks)
        std::memcpy(&four, own, sizeof(four));
      else
        std::memcpy(&four, own, static_cast<std::size_t>(blocks) * sizeof(*own));
      const __m512 scale = _mm512_castsi512_ps(_mm512_shuffle_epi8(_mm512_set1_epi64(four), spread));
      const __m512 whole = _mm512_cvtepi32_ps(_mm512_add_epi32(all, bias));
      sum[r] = _mm512_fmadd_ps(whole, _mm512_mul_ps(scale, step), sum[r]);
    }
  }
  for (int r = 0; r < Outputs; ++r) out[output + r] = _mm512_reduce_add_ps(sum[r]);
}

CAPIBARA_VNNI void whole_outputs(const Codes& codes, const WholeRow& x, int64_t begin, int64_t end, float* out) {
  int64_t n = begin;
  for (; n + 4 <= end; n += 4) multiply_whole<4>(codes, x, n, out);
  for (; n < end; ++n) multiply_whole<1>(codes, x, n, out);
}
#endif
#undef CAPIBARA_INLINE

const Loops& loops() {
  static const Loops chosen = [] {
#if defined(__x86_64__)
    if (has_avx512()) return Loops{rows_avx512, widen_avx512};
    if (has_avx2()) return Loops{rows_avx2, widen_avx2};
#endif
    return Loops{rows_plain, widen_plain};
  }();
  return chosen;
}

}  // namespace quantized

namespace {

using quantized::Codes;
using quantized::Format;

constexpr int64_t max_few_rows = 16;  // above, a panel that all rows share is cheaper than codes widened for eight

// Widening granularity: ranges are rounded to whole blocks or vectors.
int64_t unit_of(const Codes& codes) {
  return codes.format == Format::int4 ? quantized::nibble_block : codes.format == Format::vectors ? codes.dim : 1;
}

// Elements [first, first + count) of some outputs as floats, extended to whole units: `skipped` elements precede them.
class Widened {
 public:
  Widened(const Codes& codes, int64_t first, int64_t count) : codes_(codes) {
    const int64_t unit = unit_of(codes);
    begin_ = first / unit * unit;
    span_ = (first + count + unit - 1) / unit * unit - begin_;
    skipped_ = first - begin_;
  }
  int64_t span() const { return span_; }
  int64_t skipped() const { return skipped_; }
  void row(int64_t output, float* to) const { quantized::loops().widen(codes_, output, begin_, span_, to); }

 private:
  const Codes& codes_;
  int64_t begin_, span_, skipped_;
};

constexpr int64_t output_tile = 16;  // outputs, whose codes stay in the cache for all rows

// A row of finite floats by four-bit codes, where the processor has AVX-512 VNNI. `x` is padded to 128 elements.
bool whole_row(const Codes& codes, const float* x, float* out) {
#if defined(__x86_64__)
  if (codes.format != Format::int4 || !has_vnni()) return false;
  const int64_t chunks = (codes.blocks + quantized::chunk_blocks - 1) / quantized::chunk_blocks;
  quantized::WholeRow row{Scratch<std::int8_t>(chunks * quantized::chunk_parts, "parts of a row"),
                          Scratch<std::int32_t>(chunks * 16, "sums of a row"),
                          Scratch<float>(chunks * 16, "steps of a row")};
  if (!quantized::split_row(x, chunks, row)) return false;
  const double cost = static_cast<double>(output_tile) * static_cast<double>(codes.row_bytes) / 10;
  parallel_for_cost((codes.outputs + output_tile - 1) / output_tile, cost, [&](int64_t begin, int64_t end) {
    quantized::whole_outputs(codes, row, begin * output_tile, std::min(end * output_tile, codes.outputs), out);
    return 0;
  });
  return true;
#else
  static_cast<void>(codes), static_cast<void>(x), static_cast<void>(out);
  return false;
#endif
}

// Multiplies rows of x as floats, each padded with zeros to whole blocks, or to four of them.
template <class S>
void few_rows(const Codes& codes, const S* x, int64_t rows, float* out) {
  const int64_t step = (codes.inputs + 127) / 128 * 128, padded = rows <= 2 ? rows : rows <= 4 ? 4 : (rows + 7) / 8 * 8;
  Scratch<float> wide(padded * step, "rows of a product");
  std::fill_n(wide.data(), padded * step, 0.0F);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t i = 0; i < codes.inputs; ++i) wide[m * step + i] = packed_element<float>(x[m * codes.inputs + i]);
  }
  if (rows == 1 && whole_row(codes, wide.data(), out)) return;
  const bool whole = padded == rows;
  Scratch<float> hold;
  if (!whole) hold = Scratch<float>(padded * codes.outputs, "results of a product");
  float* results = whole ? out : hold.data();
  constexpr int64_t tile = output_tile;
  const double cost = static_cast<double>(tile) *
                      (static_cast<double>(codes.row_bytes) / 10 + static_cast<double>(padded * codes.inputs) * 0.02);
  parallel_for_cost((codes.outputs + tile - 1) / tile, cost, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * tile, last = std::min(first + tile, codes.outputs);
      for (int64_t m = 0; m < padded; m += 8) {
        const quantized::Part part{codes, wide.data() + m * step, step, results + m * codes.outputs, codes.outputs};
        quantized::loops().rows(part, static_cast<int>(std::min<int64_t>(8, padded - m)), first, last);
      }
    }
    return 0;
  });
  if (!whole) std::copy_n(hold.data(), rows * codes.outputs, out);
}

// Packs outputs as columns: widens a panel, then packs it.
void pack_outputs(const Codes& codes, int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, float* to) {
  const Widened widened(codes, k0, k);
  Scratch<float> wide(width * widened.span(), "a panel of widened codes");
  const Axis rows = Axis::regular(width, widened.span()), inner = Axis::regular(k, 1);
  for (int64_t n = 0; n < count; n += width, to += width * k) {
    const int64_t some = std::min(width, count - n);
    for (int64_t r = 0; r < some; ++r) widened.row(first + n + r, wide.data() + r * widened.span());
    pack_matrix<Singles, float>(wide.data() + widened.skipped(), rows, inner, 0, some, 0, k, width, to);
  }
}

// Packs inputs as columns, for the transpose: an output's elements go to all panels.
void pack_inputs(const Codes& codes, int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, float* to) {
  const Widened widened(codes, first, count);
  Scratch<float> wide(widened.span(), "an output of widened codes");
  for (int64_t row = 0; row < k; ++row) {
    widened.row(k0 + row, wide.data());
    const float* from = wide.data() + widened.skipped();
    for (int64_t n = 0; n < count; n += width) {
      float* panel = to + n * k + row * width;
      const int64_t some = std::min(width, count - n);
      std::copy_n(from + n, some, panel);
      std::fill_n(panel + some, width - some, 0.0F);
    }
  }
}

template <class S>
void by_panels(const Codes& codes, const S* x, int64_t rows, bool transposed, float* out) {
  const int64_t inner = transposed ? codes.outputs : codes.inputs, columns = transposed ? codes.inputs : codes.outputs;
  const Axis free = Axis::regular(rows, inner), along = Axis::regular(inner, 1);
  const auto left = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, float* to) {
    pack_matrix<Singles, S>(x, free, along, first, count, k0, k, width, to);
  };
  const auto right = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, float* to) {
    transposed ? pack_inputs(codes, first, count, k0, k, width, to)
               : pack_outputs(codes, first, count, k0, k, width, to);
  };
  const Axis out_rows = Axis::regular(rows, columns), out_columns = Axis::regular(columns, 1);
  Product<Singles>{inner, left, right, out, out_rows, out_columns}.run();
}

struct Plan {
  Codes codes;
  DType dtype;
  int64_t rows = 0;
  bool transposed = false;
  bool rounds = false;     // x to multiples of a step, at most 127 of them
  bool own_steps = false;  // each row by its own maximum magnitude
};

// Few rows rounded to whole steps. The matmul of these numbers is as fast as reading the codes, also in floats.
template <class S>
void rounded_rows(const Plan& plan, const Codes& codes, const S* x, const float* input_scale, float* out) {
  Scratch<float> whole(plan.rows * codes.inputs, "rounded rows of a product"), steps(plan.rows, "steps of rows");
  for (int64_t m = 0; m < plan.rows; ++m) {
    float* row = whole.data() + m * codes.inputs;
    float largest = 0;
    bool finite = true;
    for (int64_t i = 0; i < codes.inputs; ++i) {
      row[i] = packed_element<float>(x[m * codes.inputs + i]);
      finite = finite && std::isfinite(row[i]);
      largest = std::max(largest, std::fabs(row[i]));
    }
    float step = plan.own_steps ? (largest > 0 ? largest / 127 : 1) : *input_scale;
    if (!finite) step = NAN;
    for (int64_t i = 0; i < codes.inputs; ++i)
      row[i] = std::max(-127.0F, std::min(127.0F, std::nearbyint(row[i] / step)));
    steps[m] = step;
  }
  few_rows(codes, whole.data(), plan.rows, out);
  for (int64_t m = 0; m < plan.rows; ++m) {
    for (int64_t n = 0; n < codes.outputs; ++n) out[m * codes.outputs + n] *= steps[m];
  }
}

template <class S>
void run(const Plan& plan, std::byte* const* buffers) {
  Codes codes = plan.codes;
  codes.codes = reinterpret_cast<const std::uint8_t*>(buffers[1]);
  codes.scale = buffers[2];
  const bool vectors = codes.format == Format::vectors;
  if (vectors) codes.codebook = reinterpret_cast<const float*>(buffers[3]);
  const int64_t size = plan.rows * (plan.transposed ? codes.inputs : codes.outputs);
  if (size == 0) return;
  ProductResult<float> result(plan.dtype, buffers[vectors || plan.rounds ? 4 : 3], size);
  const auto* x = reinterpret_cast<const S*>(buffers[0]);
  if ((plan.transposed ? codes.outputs : codes.inputs) == 0) {
    std::fill_n(result.values(), size, 0.0F);
  } else if (plan.rounds) {
    rounded_rows(plan, codes, x, reinterpret_cast<const float*>(buffers[3]), result.values());
  } else if (!plan.transposed && plan.rows <= max_few_rows) {
    few_rows(codes, x, plan.rows, result.values());
  } else {
    by_panels(codes, x, plan.rows, plan.transposed, result.values());
  }
  result.convert_all();
}

HostKernel make_quantized_matmul(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &codes = request.inputs[1], &scale = request.inputs[2];
  if (x.dtype != DType::float32 && x.dtype != DType::bfloat16) return {};
  Plan plan;
  plan.dtype = x.dtype;
  plan.transposed = request.attrs.boolean("transposed");
  plan.rows = x.shape.back() == 0 ? 0 : x.size() / x.shape.back();
  if (x.shape.back() == 0) {
    plan.rows = 1;
    for (std::size_t i = 0; i + 1 < x.shape.size(); ++i) plan.rows *= x.shape[i];
  }
  plan.rounds = request.inputs.size() == 4 && request.inputs[3].rank() == 1;
  if (plan.rounds) {
    if (plan.rows > max_few_rows) return {};  // the composition, a matmul of bytes
    plan.own_steps = request.inputs[3].size() == 0;
  }
  Codes& own = plan.codes;
  own.inputs = request.attrs.integer("inputs");
  own.outputs = codes.shape[0];
  own.row_bytes = own.outputs == 0 ? 0 : codes.size() * storage_size(codes.dtype) / own.outputs;
  own.blocks = scale.shape[1];
  own.block = own.blocks == 0 ? 0 : own.inputs / own.blocks;
  if (request.inputs.size() == 4 && !plan.rounds) {
    const Shape& book = request.inputs[3].shape;
    own.format = Format::vectors;
    own.wide = codes.dtype == DType::uint16;
    own.vectors = codes.shape[1], own.stages = codes.shape[2];
    own.groups = book[1], own.entries = book[2], own.dim = book[3];
  } else if (codes.dtype == DType::uint8) {
    own.format = Format::int4;
    own.block = quantized::nibble_block;
  }
  const auto shared = std::make_shared<const Plan>(plan);
  if (x.dtype == DType::float32) return [shared](std::byte* const* buffers) { run<float>(*shared, buffers); };
  return [shared](std::byte* const* buffers) { run<Bfloat16Bits>(*shared, buffers); };
}

}  // namespace

KernelMakers quantized_matmul_makers() { return {{"quantized_matmul", make_quantized_matmul}}; }

}  // namespace capibara::cpu
