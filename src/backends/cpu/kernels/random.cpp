// random_bits of threefry keys: the block function on many counters at once, split among threads.
#include <capibara/config.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/families.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/threefry.h"

// Vectors without a register on the oldest machines are passed only within this file.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace capibara::cpu {
namespace {

constexpr int lanes = 8;
typedef std::uint32_t RandomWords __attribute__((vector_size(4 * lanes)));

}  // namespace
}  // namespace capibara::cpu

namespace capibara::math {

template <>
struct BitOperations<cpu::RandomWords> {
  static cpu::RandomWords constant(std::uint32_t value, const cpu::RandomWords&) { return cpu::RandomWords{} + value; }
  static cpu::RandomWords rotate_left(cpu::RandomWords x, int amount) { return (x << amount) | (x >> (32 - amount)); }
};

}  // namespace capibara::math

namespace capibara::cpu {

namespace {

// Elements [first, first + count) of one key's stream; each is computed from the block of its own counter.
template <class T>
void fill_bits(const std::uint32_t* key, std::uint64_t first, int64_t count, T* out) {
  const std::array<RandomWords, 2> keys = {RandomWords{} + key[0], RandomWords{} + key[1]};
  for (int64_t i = 0; i < count; i += lanes) {
    RandomWords high, low;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t counter = first + static_cast<std::uint64_t>(i + lane);
      high[lane] = static_cast<std::uint32_t>(counter >> 32);
      low[lane] = static_cast<std::uint32_t>(counter);
    }
    const std::array<RandomWords, 2> words = math::threefry2x32<RandomWords>(keys, {high, low});
    T values[lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      if constexpr (sizeof(T) == 8)
        values[lane] = std::uint64_t{words[0][lane]} << 32 | words[1][lane];
      else
        values[lane] = static_cast<T>(words[0][lane] ^ words[1][lane]);
    }
    std::memcpy(out + i, values, static_cast<std::size_t>(std::min<int64_t>(lanes, count - i)) * sizeof(T));
  }
}

HostKernel make_random_bits(const KernelRequest& request) {
  const ArrayType &keys = request.inputs[0], &out = request.outputs[0];
  // The legacy stream pairs counters of its two halves: left to the reference kernel.
  if (keys.dtype != DType::key_fry || !config().threefry_partitionable || keys.size() == 0) return {};
  const int64_t streams = keys.size(), each = out.size() / streams, size = storage_size(out.dtype);
  return [streams, each, size](std::byte* const* buffers) {
    constexpr int64_t chunk = 4096;
    const int64_t chunks = (each + chunk - 1) / chunk;
    const double cost = 3.0 * static_cast<double>(std::min(each, chunk));
    parallel_for_cost(streams * chunks, cost, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t stream = task / chunks, first = task % chunks * chunk, count = std::min(chunk, each - first);
        const auto* key = reinterpret_cast<const std::uint32_t*>(buffers[0]) + 2 * stream;
        std::byte* target = buffers[1] + (stream * each + first) * size;
        const auto counter = static_cast<std::uint64_t>(first);
        switch (size) {
          case 1:
            fill_bits(key, counter, count, reinterpret_cast<std::uint8_t*>(target));
            break;
          case 2:
            fill_bits(key, counter, count, reinterpret_cast<std::uint16_t*>(target));
            break;
          case 4:
            fill_bits(key, counter, count, reinterpret_cast<std::uint32_t*>(target));
            break;
          default:
            fill_bits(key, counter, count, reinterpret_cast<std::uint64_t*>(target));
            break;
        }
      }
      return 0;
    });
  };
}

}  // namespace

KernelMakers random_makers() { return {{"random_bits", make_random_bits}}; }

}  // namespace capibara::cpu
