// tanh GELU with dropout, and its gradient: bits, activation and mask of an element stay in registers.
//
// A vector of threefry blocks decides four vectors of elements: 6 ns per element on one core of Neoverse N1.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/rows/row_lanes.h"
#include "backends/cpu/kernels/targets.h"
#include "backends/cpu/kernels/vector_exp.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

template <class T>
struct DropoutCall {
  const T *dy, *x;  // dy is null in the forward pass
  T* out;
  int64_t size;
  uint32_t key[2];
  uint32_t kept;  // of 65536
  float factor;   // of kept elements
};

// The element types are parameters because in templates g++ 12 takes vectors of other types for scalars.
template <int Bytes, class Real = float, class Word = uint32_t>
struct Singles {
  typedef Real V __attribute__((vector_size(Bytes)));
  typedef Word U __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / 4, chains = 4;

  // The factor of each of 4 * chains * count elements, from the blocks that start at number `block`. A block is a
  // chain of dependent operations: several run side by side.
  template <class T>
  static CAPIBARA_INLINE void factors(const DropoutCall<T>& call, int64_t block, float* to) {
    constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {call.key[0], call.key[1], call.key[0] ^ call.key[1] ^ 0x1BD11BDAu};
    U a[chains], b[chains], numbers = {};
    for (int i = 0; i < count; ++i) numbers[i] = static_cast<uint32_t>(i);
#pragma GCC unroll 4
    for (int k = 0; k < chains; ++k) {
      a[k] = U{} + static_cast<uint32_t>(block >> 32) + keys[0];
      b[k] = numbers + static_cast<uint32_t>(block + k * count) + keys[1];
    }
#pragma GCC unroll 5
    for (int group = 0; group < 5; ++group) {
#pragma GCC unroll 4
      for (int amount : rotations[group % 2]) {
#pragma GCC unroll 4
        for (int k = 0; k < chains; ++k) {
          a[k] += b[k];
          b[k] = ((b[k] << amount) | (b[k] >> (32 - amount))) ^ a[k];
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < chains; ++k) {
        a[k] += keys[(group + 1) % 3];
        b[k] += keys[(group + 2) % 3] + static_cast<uint32_t>(group) + 1;
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < chains; ++k) store_factors(call, a[k], b[k], to + 4 * k * count);
  }

  template <class T>
  static CAPIBARA_INLINE void store_factors(const DropoutCall<T>& call, U a, U b, float* to) {
    const U quarters[4] = {a & 0xffff, a >> 16, b & 0xffff, b >> 16};
    V chosen[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) chosen[q] = quarters[q] < call.kept ? V{} + call.factor : V{};
#if defined(__aarch64__)
    float32x4x4_t together;
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) together.val[q] = reinterpret_cast<float32x4_t>(chosen[q]);
    vst4q_f32(to, together);
#else
    for (int i = 0; i < count; ++i) {
      for (int q = 0; q < 4; ++q) to[4 * i + q] = chosen[q][i];
    }
#endif
  }
};

template <class T, int Bytes, bool Backward>
CAPIBARA_INLINE void dropout_vector(const T* dy, const T* x, T* out, const float* factors) {
  using L = Lanes<T, Bytes>;
  using V = typename L::V;
  constexpr float scale = 1.5957691216f, cube = 0.044715f;  // 2 sqrt(2 / pi)
  const V value = L::load(x), square = value * value;
  const V share = 1.0f / (1.0f + VectorExp<Bytes>::of(-scale * value * (1.0f + cube * square)));
  V factor;
  std::memcpy(&factor, factors, sizeof factor);
  V result;
  if constexpr (Backward) {
    const V rise = scale * (1.0f + 3 * cube * square);
    result = L::load(dy) * (share + value * share * (1.0f - share) * rise) * factor;
  } else {
    result = value * share * factor;
  }
  // Dropped elements become 0, even NaN.
  L::store(out, factor == 0.0f ? V{} : result);
}

// Elements of blocks; `begin` is a multiple of the blocks computed at once.
template <class T, int Bytes, bool Backward>
CAPIBARA_INLINE void dropout_blocks(const DropoutCall<T>& call, int64_t begin, int64_t end) {
  constexpr int lanes = Bytes / 4, blocks = Singles<Bytes>::chains * lanes, step = 4 * blocks;
  float factors[step];
  for (int64_t block = begin; block < end; block += blocks) {
    const int64_t first = 4 * block, count = std::min<int64_t>(step, call.size - first);
    if (count <= 0) return;
    Singles<Bytes>::factors(call, block, factors);
    if (count == step) {
#pragma GCC unroll 4
      for (int i = 0; i < step; i += lanes) {
        dropout_vector<T, Bytes, Backward>(Backward ? call.dy + first + i : nullptr, call.x + first + i,
                                           call.out + first + i, factors + i);
      }
      continue;
    }
    T dy[step] = {}, x[step] = {}, out[step];
    std::copy_n(call.x + first, count, x);
    if (Backward) std::copy_n(call.dy + first, count, dy);
    for (int i = 0; i < step; i += lanes) dropout_vector<T, Bytes, Backward>(dy + i, x + i, out + i, factors + i);
    std::copy_n(out, count, call.out + first);
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

template <class T>
using BlockFunction = void (*)(const DropoutCall<T>&, int64_t begin, int64_t end);

#define CAPIBARA_DROPOUT(NAME, TARGET, BYTES)                                          \
  template <class T, bool Backward>                                                    \
  TARGET void dropout_##NAME(const DropoutCall<T>& call, int64_t begin, int64_t end) { \
    dropout_blocks<T, BYTES, Backward>(call, begin, end);                              \
  }
CAPIBARA_DROPOUT(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_DROPOUT(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_DROPOUT(avx512, CAPIBARA_AVX512, 64)
#endif

template <class T, bool Backward>
BlockFunction<T> block_function() {
#if defined(__x86_64__)
  if (has_avx512()) return dropout_avx512<T, Backward>;
  if (has_avx2()) return dropout_avx2<T, Backward>;
#endif
  return dropout_plain<T, Backward>;
}

// ---- kernels -----------------------------------------------------------------------------------------------------

template <class T, bool Backward>
HostKernel dropout_kernel(int64_t size, double rate) {
  const auto kept = static_cast<uint32_t>(std::llround((1 - rate) * 65536));
  const float factor = kept == 0 ? 0.0f : static_cast<float>(65536.0 / kept);
  return [=, function = block_function<T, Backward>()](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    constexpr int first = Backward ? 1 : 0;  // index of x
    DropoutCall<T> call{Backward ? reinterpret_cast<const T*>(buffers[0]) : nullptr,
                        reinterpret_cast<const T*>(buffers[first]),
                        reinterpret_cast<T*>(buffers[first + 2]),
                        size,
                        {},
                        kept,
                        factor};
    std::memcpy(call.key, buffers[first + 1], sizeof call.key);
    constexpr int64_t share = 256;  // blocks: a multiple of those computed at once
    const int64_t blocks = (size + 3) / 4, shares = (blocks + share - 1) / share;
    parallel_for_cost(shares, 1500, [&](int64_t begin, int64_t end) {
      function(call, begin * share, std::min(blocks, end * share));
      return 0;
    });
  };
}

template <bool Backward>
HostKernel make_dropout(const KernelRequest& request) {
  const ArrayType& x = request.inputs[Backward ? 1 : 0];
  if (x.size() == 0 || !request.attrs.boolean("approximate")) return {};
  const double rate = request.attrs.real("rate");
  switch (x.dtype) {
    case DType::float32:
      return dropout_kernel<float, Backward>(x.size(), rate);
    case DType::bfloat16:
      return dropout_kernel<BFloat16, Backward>(x.size(), rate);
#if defined(__aarch64__)  // which has instructions for vectors of halves
    case DType::float16:
      return dropout_kernel<Half, Backward>(x.size(), rate);
#endif
    default:
      return {};
  }
}

}  // namespace

KernelMakers gelu_dropout_makers() {
  return {{"gelu_dropout", make_dropout<false>}, {"gelu_dropout_grad", make_dropout<true>}};
}

}  // namespace capibara::cpu
