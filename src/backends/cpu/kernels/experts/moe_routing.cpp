// Routing of tokens to experts: blocks of tokens choose and count, then each copy is written to its expert's rows.
//
// Blocks of tokens, whose size is fixed, count the copies per choice and expert; prefix sums of these counts give each
// block its destinations, so that the order is that of a stable sort and the number of threads changes nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/sort/order_keys.h"
#include "backends/cpu/kernels/targets.h"
#include "core/array/element.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

// Exponentials in straight-line code, which compilers vectorise, and sums of rows in lanes.

namespace capibara::cpu {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// exp(x) for x <= 0 in straight-line code, which compilers vectorise; 2 ulp.
CAPIBARA_INLINE float power(float x) {
  constexpr float least = -87.0f, shift = 12582912.0f;  // 1.5 * 2^23: the low bits of a sum are an integer
  // With bit operations, since compilers compile conditions to branches.
  const std::uint32_t below = 0u - static_cast<std::uint32_t>(x < least);
  const auto bits = std::bit_cast<std::uint32_t>(x), bound = std::bit_cast<std::uint32_t>(least);
  const float bounded = std::bit_cast<float>((bits & ~below) | (bound & below));
  const float shifted = bounded * 1.44269504f + shift, steps = shifted - shift;
  const float rest = (bounded - steps * 0.693359375f) + steps * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * (rest * rest) + rest + 1.0f;
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum * scale) & ~below);
}
CAPIBARA_INLINE double power(double x) { return std::exp(x); }

// Sums in a fixed order that is the same for vectors.
template <class C>
CAPIBARA_INLINE C sum_of(const C* values, int64_t count) {
  C a = 0, b = 0, c = 0, d = 0;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a += values[i];
    b += values[i + 1];
    c += values[i + 2];
    d += values[i + 3];
  }
  for (; i < count; ++i) a += values[i];
  return (a + b) + (c + d);
}

namespace {

constexpr int64_t block_tokens = 256;
constexpr int64_t few_choices = 8;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

struct Extents {
  int64_t tokens, experts, choices;
  bool renormalize, load_balancing;
};

// Scratch memory of one thread: a row each of logits, exponentials and keys.
template <class C>
struct RowMemory {
  explicit RowMemory(int64_t experts)
      : row(experts, "logits"), powers(experts, "powers"), keys(experts, "keys"), order(experts, "order") {}
  Scratch<C> row, powers;
  Scratch<KeyOf<C>> keys;
  Scratch<int32_t> order;
};

template <class T>
CAPIBARA_INLINE void load_row(const T* from, int64_t count, Wide<T>* to) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, BFloat16>)
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i].bits) << 16);
    else
      to[i] = static_cast<Wide<T>>(from[i]);
  }
}

// The positions of the greatest keys in descending order, the first among equal ones; may overwrite keys. A few are
// found one after another in straight-line passes, without unpredictable branches.
template <class Key>
CAPIBARA_INLINE void choose(Key* keys, int64_t count, int64_t choices, int32_t* order, int32_t* chosen) {
  if (choices > few_choices) {
    std::iota(order, order + count, 0);
    std::partial_sort(order, order + choices, order + count,
                      [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
    std::copy_n(order, choices, chosen);
    return;
  }
  // Zero marks chosen keys: the least key of all, a NaN with all bits set, is changed to the next one.
  for (int64_t e = 0; e < count; ++e) keys[e] += keys[e] == 0;
  for (int64_t j = 0; j < choices; ++j) {
    Key greatest = 0;
    for (int64_t e = 0; e < count; ++e) greatest = std::max(greatest, keys[e]);
    Key first = static_cast<Key>(count);
    for (int64_t e = 0; e < count; ++e)
      first = std::min(first, keys[e] == greatest ? static_cast<Key>(e) : static_cast<Key>(count));
    chosen[j] = static_cast<int32_t>(first);
    keys[first] = 0;
  }
}

// Exponentials of the logits minus their maximum, and their sum.
template <class C>
CAPIBARA_INLINE C sum_powers(const C* row, C greatest, int64_t count, C* powers) {
  for (int64_t e = 0; e < count; ++e) powers[e] = power(row[e] - greatest);
  return sum_of(powers, count);
}

template <class T>
CAPIBARA_INLINE void choose_tokens(const Extents& shape, const T* logits, int64_t begin, int64_t end, Wide<T>* weights,
                                   int32_t* experts, int32_t* counts, Wide<T>* shares, RowMemory<Wide<T>>& memory) {
  using C = Wide<T>;
  const int64_t n = shape.experts, choices = shape.choices;
  C *row = memory.row.data(), *powers = memory.powers.data();
  KeyOf<C>* keys = memory.keys.data();
  for (int64_t t = begin; t < end; ++t) {
    load_row(logits + t * n, n, row);
    for (int64_t e = 0; e < n; ++e) keys[e] = key_of<Zeros::distinct>(row[e]);
    int32_t* chosen = experts + t * choices;
    choose(keys, n, choices, memory.order.data(), chosen);
    C* weight = weights + t * choices;
    const C greatest = row[chosen[0]];
    C sum = 0;
    for (int64_t j = 0; j < choices; ++j) {
      weight[j] = power(row[chosen[j]] - greatest);
      sum += weight[j];
      ++counts[j * n + chosen[j]];
    }
    if (shape.load_balancing || !shape.renormalize) {
      const C all = sum_powers(row, greatest, n, powers);
      if (!shape.renormalize) sum = all;
      const C share = C(1) / all;
      if (shape.load_balancing) {
        for (int64_t e = 0; e < n; ++e) shares[e] += powers[e] * share;
      }
    }
    for (int64_t j = 0; j < choices; ++j) weight[j] /= sum;
  }
}

template <class T>
struct Gradients {
  const Wide<T>* dweights;
  const T* logits;
  const int32_t* experts;
  const Wide<T>* weights;
  const Wide<T>* loss;  // by expert: gradient of the probabilities; null: no loss
  T* dlogits;
};

template <class T>
CAPIBARA_INLINE void pull_tokens(const Extents& shape, const Gradients<T>& call, int64_t begin, int64_t end,
                                 RowMemory<Wide<T>>& memory, Wide<T>* gradients, Wide<T>* of_choices) {
  using C = Wide<T>;
  const int64_t n = shape.experts, choices = shape.choices;
  C *row = memory.row.data(), *powers = memory.powers.data();
  for (int64_t t = begin; t < end; ++t) {
    load_row(call.logits + t * n, n, row);
    const int32_t* chosen = call.experts + t * choices;
    const auto in_range = [&](int64_t j) { return chosen[j] >= 0 && chosen[j] < n; };
    const auto gradient_of = [&](int64_t j) {
      return call.weights[t * choices + j] != 0 ? call.dweights[t * choices + j] : C(0);
    };
    if (call.loss)
      std::copy_n(call.loss, n, gradients);
    else
      std::fill_n(gradients, n, C(0));
    if (call.loss || !shape.renormalize) {
      if (!shape.renormalize) {
        for (int64_t j = 0; j < choices; ++j) {
          if (in_range(j)) gradients[chosen[j]] += gradient_of(j);
        }
      }
      C greatest = row[0];
      for (int64_t e = 1; e < n; ++e) greatest = row[e] > greatest ? row[e] : greatest;
      const C share = C(1) / sum_powers(row, greatest, n, powers);
      C mean = 0;
      for (int64_t e = 0; e < n; ++e) {
        powers[e] *= share;
        mean += powers[e] * gradients[e];
      }
      for (int64_t e = 0; e < n; ++e) gradients[e] = powers[e] * (gradients[e] - mean);
    }
    if (shape.renormalize) {
      C greatest = 0, sum = 0, mean = 0;
      for (int64_t j = 0; j < choices; ++j) {
        of_choices[j] = in_range(j) ? row[chosen[j]] : C(0);
        greatest = j == 0 || of_choices[j] > greatest ? of_choices[j] : greatest;
      }
      for (int64_t j = 0; j < choices; ++j) sum += of_choices[j] = power(of_choices[j] - greatest);
      for (int64_t j = 0; j < choices; ++j) {
        of_choices[j] /= sum;
        mean += of_choices[j] * gradient_of(j);
      }
      for (int64_t j = 0; j < choices; ++j) {
        if (in_range(j)) gradients[chosen[j]] += of_choices[j] * (gradient_of(j) - mean);
      }
    }
    for (int64_t e = 0; e < n; ++e) call.dlogits[t * n + e] = static_cast<T>(gradients[e]);
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

template <class T>
struct TokenFunctions {
  void (*choose)(const Extents&, const T*, int64_t, int64_t, Wide<T>*, int32_t*, int32_t*, Wide<T>*,
                 RowMemory<Wide<T>>&);
  void (*pull)(const Extents&, const Gradients<T>&, int64_t, int64_t, RowMemory<Wide<T>>&, Wide<T>*, Wide<T>*);
};

#define CAPIBARA_TOKENS(NAME, TARGET)                                                                            \
  template <class T>                                                                                             \
  TARGET void choose_##NAME(const Extents& shape, const T* logits, int64_t begin, int64_t end, Wide<T>* weights, \
                            int32_t* experts, int32_t* counts, Wide<T>* shares, RowMemory<Wide<T>>& memory) {    \
    choose_tokens<T>(shape, logits, begin, end, weights, experts, counts, shares, memory);                       \
  }                                                                                                              \
  template <class T>                                                                                             \
  TARGET void pull_##NAME(const Extents& shape, const Gradients<T>& call, int64_t begin, int64_t end,            \
                          RowMemory<Wide<T>>& memory, Wide<T>* gradients, Wide<T>* of_choices) {                 \
    pull_tokens<T>(shape, call, begin, end, memory, gradients, of_choices);                                      \
  }
CAPIBARA_TOKENS(plain, )
#if defined(__x86_64__)
CAPIBARA_TOKENS(avx2, CAPIBARA_AVX2)
CAPIBARA_TOKENS(avx512, CAPIBARA_AVX512)
#endif

template <class T>
TokenFunctions<T> token_functions() {
#if defined(__x86_64__)
  if (has_avx512()) return {choose_avx512<T>, pull_avx512<T>};
  if (has_avx2()) return {choose_avx2<T>, pull_avx2<T>};
#endif
  return {choose_plain<T>, pull_plain<T>};
}

// ---- kernels -----------------------------------------------------------------------------------------------------

// Buffers of one batch's results.
template <class C>
struct Results {
  C* weights;
  int32_t *experts, *permutation, *inverse, *sizes, *load;
  C* loss;
};

// Nanoseconds per token.
double token_cost(const Extents& shape) { return 30 + 3.0 * static_cast<double>(shape.experts + shape.choices); }

template <class T>
void route(const Extents& shape, int64_t capacity, const TokenFunctions<T>& functions, const T* logits,
           const Results<Wide<T>>& out) {
  using C = Wide<T>;
  const int64_t n = shape.experts, choices = shape.choices, blocks = (shape.tokens + block_tokens - 1) / block_tokens;
  Scratch<int32_t> before(blocks * choices * n, "counts of copies");  // [block][choice][expert]: earlier copies
  Scratch<int32_t> first(n, "rows of experts"), first_without(n, "copies without room");
  Scratch<C> shares(blocks * n, "probabilities of experts");
  const double cost = token_cost(shape) * static_cast<double>(block_tokens);
  parallel_for_cost(blocks, cost, [&](int64_t begin, int64_t end) {
    RowMemory<C> memory(n);
    for (int64_t b = begin; b < end; ++b) {
      int32_t* counts = before.data() + b * choices * n;
      std::fill_n(counts, choices * n, 0);
      std::fill_n(shares.data() + b * n, n, C(0));
      functions.choose(shape, logits, b * block_tokens, std::min(shape.tokens, (b + 1) * block_tokens), out.weights,
                       out.experts, counts, shares.data() + b * n, memory);
    }
    return 0;
  });
  const int64_t limit = capacity < 0 ? shape.tokens * choices : capacity;
  int32_t with = 0, without = 0;
  C loss = 0;
  for (int64_t e = 0; e < n; ++e) {
    int32_t load = 0;
    for (int64_t j = 0; j < choices; ++j) {
      for (int64_t b = 0; b < blocks; ++b) {
        load += std::exchange(before[(b * choices + j) * n + e], load);
      }
    }
    out.load[e] = load;
    out.sizes[e] = static_cast<int32_t>(std::min<int64_t>(load, limit));
    first[e] = std::exchange(with, with + out.sizes[e]);
    first_without[e] = std::exchange(without, without + load - out.sizes[e]);
    if (shape.load_balancing && shape.tokens > 0) {
      C share = 0;
      for (int64_t b = 0; b < blocks; ++b) share += shares[b * n + e];
      const auto copies = static_cast<C>(shape.tokens) * static_cast<C>(choices);
      loss += share / static_cast<C>(shape.tokens) * (static_cast<C>(load) * (static_cast<C>(n) / copies));
    }
  }
  *out.loss = loss;
  parallel_for_cost(blocks, 3.0 * static_cast<double>(block_tokens * choices), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t last = std::min(shape.tokens, (b + 1) * block_tokens);
      int32_t* earlier = before.data() + b * choices * n;
      for (int64_t t = b * block_tokens; t < last; ++t) {
        for (int64_t j = 0; j < choices; ++j) {
          const int64_t copy = t * choices + j;
          const int32_t e = out.experts[copy], rank = earlier[j * n + e]++;
          const bool has_room = rank < out.sizes[e];
          const int32_t at = has_room ? first[e] + rank : with + first_without[e] + rank - out.sizes[e];
          out.permutation[at] = static_cast<int32_t>(copy);
          out.inverse[copy] = at;
          if (!has_room) out.weights[copy] = 0;
        }
      }
    }
    return 0;
  });
}

Extents shape_of(const ArrayType& logits, const Attrs& attrs) {
  return {logits.shape[logits.shape.size() - 2], logits.shape.back(), attrs.integer("top_k"),
          attrs.boolean("renormalize"), attrs.boolean("load_balancing")};
}

template <class T>
HostKernel forward_kernel(const Extents& shape, int64_t batches, int64_t capacity) {
  using C = Wide<T>;
  return [=, functions = token_functions<T>()](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const int64_t copies = shape.tokens * shape.choices;
    const auto words = [&](int index, int64_t step) { return reinterpret_cast<int32_t*>(buffers[index]) + step; };
    for (int64_t b = 0; b < batches; ++b) {
      route<T>(shape, capacity, functions, reinterpret_cast<const T*>(buffers[0]) + b * shape.tokens * shape.experts,
               {reinterpret_cast<C*>(buffers[1]) + b * copies, words(2, b * copies), words(3, b * copies),
                words(4, b * copies), words(5, b * shape.experts), words(6, b * shape.experts),
                reinterpret_cast<C*>(buffers[7]) + b});
    }
  };
}

template <class T>
HostKernel backward_kernel(const Extents& shape, int64_t batches) {
  using C = Wide<T>;
  return [=, functions = token_functions<T>()](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const int64_t n = shape.experts, copies = shape.tokens * shape.choices;
    Scratch<C> loss(n, "gradients of the loss");
    for (int64_t b = 0; b < batches; ++b) {
      const C gradient = reinterpret_cast<const C*>(buffers[1])[b];
      const auto* load = reinterpret_cast<const int32_t*>(buffers[5]) + b * n;
      for (int64_t e = 0; e < n; ++e) {
        const C factor = static_cast<C>(static_cast<double>(n) / static_cast<double>(copies));
        loss[e] = static_cast<C>(load[e]) * factor * gradient / static_cast<C>(shape.tokens);
      }
      const Gradients<T> call{reinterpret_cast<const C*>(buffers[0]) + b * copies,
                              reinterpret_cast<const T*>(buffers[2]) + b * shape.tokens * n,
                              reinterpret_cast<const int32_t*>(buffers[3]) + b * copies,
                              reinterpret_cast<const C*>(buffers[4]) + b * copies,
                              shape.load_balancing ? loss.data() : nullptr,
                              reinterpret_cast<T*>(buffers[6]) + b * shape.tokens * n};
      parallel_for_cost(shape.tokens, token_cost(shape), [&](int64_t begin, int64_t end) {
        RowMemory<C> memory(n);
        Scratch<C> gradients(n, "gradients of experts"), of_choices(shape.choices, "gradients of choices");
        functions.pull(shape, call, begin, end, memory, gradients.data(), of_choices.data());
        return 0;
      });
    }
  };
}

// Calls make(Type<T>{}, batches) for the supported types of logits; returns no kernel for others, or without
// tokens.
template <class Make>
HostKernel make_for(const ArrayType& logits, Make&& make) {
  if (logits.size() == 0 || logits.size() > std::numeric_limits<int32_t>::max()) return {};
  const int64_t batches = logits.size() / (logits.shape.back() * logits.shape[logits.shape.size() - 2]);
  switch (logits.dtype) {
    case DType::float32:
      return make(Type<float>{}, batches);
    case DType::float64:
      return make(Type<double>{}, batches);
    case DType::bfloat16:
      return make(Type<BFloat16>{}, batches);
    case DType::float16:
      return make(Type<Half>{}, batches);
    default:
      return {};
  }
}

HostKernel make_forward(const KernelRequest& request) {
  const ArrayType& logits = request.inputs[0];
  const Extents shape = shape_of(logits, request.attrs);
  const int64_t capacity = request.attrs.integer("capacity");
  return make_for(logits,
                  [&]<class T>(Type<T>, int64_t batches) { return forward_kernel<T>(shape, batches, capacity); });
}

HostKernel make_backward(const KernelRequest& request) {
  const ArrayType& logits = request.inputs[2];
  const Extents shape = shape_of(logits, request.attrs);
  return make_for(logits, [&]<class T>(Type<T>, int64_t batches) { return backward_kernel<T>(shape, batches); });
}

}  // namespace

KernelMakers moe_routing_makers() { return {{"moe_routing", make_forward}, {"moe_routing_grad", make_backward}}; }

}  // namespace capibara::cpu
