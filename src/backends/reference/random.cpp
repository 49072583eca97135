// Kernels of the random primitives: plain loops over the block functions in math/, key by key.
#include <capibara/config.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "backends/reference/elementwise.h"
#include "core/runtime/interrupt.h"
#include "lax/math/bit_generator.h"
#include "lax/math/error_function_inverse.h"
#include "lax/random/random.h"
#include "program/trace/trace.h"

namespace capibara::reference {

namespace {

using Key = std::array<std::uint32_t, 4>;  // threefry uses the first two words
using Block = std::array<std::uint32_t, 2>;

Key load_key(const Array& keys, std::int64_t index) {
  Key key{};
  std::size_t bytes = static_cast<std::size_t>(storage_size(keys.dtype()));
  std::memcpy(key.data(), keys.raw_data() + static_cast<std::size_t>(index) * bytes, bytes);
  return key;
}

Array reinterpreted(const Array& x, const ArrayType& type) {
  return Array::from_buffer(type, x.buffer(), x.committed());
}

// ---- threefry keys ----------------------------------------------------------------------------------------------

Block block(Block key, std::uint64_t counter) {
  return math::threefry2x32<std::uint32_t>(
      key, {static_cast<std::uint32_t>(counter >> 32), static_cast<std::uint32_t>(counter)});
}

// The legacy stream: counters 0..count-1, padded with a zero to even length; the first half is paired with the second.
std::vector<std::uint32_t> legacy_stream(Block key, std::size_t count) {
  if (count >= 0xFFFFFFFFu) {
    throw NotImplementedError(concat("random_bits: ", count,
                                     " words are more than one legacy stream holds; set "
                                     "jax_threefry_partitionable"));
  }
  std::size_t half = (count + 1) / 2;
  std::vector<std::uint32_t> stream(2 * half);
  for (std::size_t i = 0; i < half; ++i) {
    std::size_t partner = half + i < count ? half + i : 0;
    Block out =
        math::threefry2x32<std::uint32_t>(key, {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(partner)});
    stream[i] = out[0];
    stream[half + i] = out[1];
  }
  stream.resize(count);
  return stream;
}

std::vector<Block> threefry_split(Block key, std::size_t count) {
  std::vector<Block> keys(count);
  if (config().threefry_partitionable) {
    for (std::size_t i = 0; i < count; ++i) keys[i] = block(key, i);
  } else {
    std::vector<std::uint32_t> stream = legacy_stream(key, 2 * count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = {stream[2 * i], stream[2 * i + 1]};
  }
  return keys;
}

// Little-endian elements of `width` bits.
void threefry_bits(Block key, std::size_t count, int width, std::byte* out) {
  std::size_t bytes = static_cast<std::size_t>(width) / 8;
  auto store = [&](std::size_t i, std::uint64_t value) { std::memcpy(out + i * bytes, &value, bytes); };
  if (config().threefry_partitionable) {
    for (std::size_t i = 0; i < count; ++i) {
      Block pair = block(key, i);
      store(i, width == 64 ? std::uint64_t{pair[0]} << 32 | pair[1] : pair[0] ^ pair[1]);
    }
    return;
  }
  std::vector<std::uint32_t> stream = legacy_stream(key, (static_cast<std::size_t>(width) * count + 31) / 32);
  if (width == 64) {
    for (std::size_t i = 0; i < count; ++i) store(i, std::uint64_t{stream[i]} << 32 | stream[count + i]);
  } else {
    if (count > 0) std::memcpy(out, stream.data(), count * bytes);
  }
}

// ---- keys of every implementation -------------------------------------------------------------------------------

Block half(const Key& key, int i) {
  return {key[static_cast<std::size_t>(2 * i)], key[static_cast<std::size_t>(2 * i + 1)]};
}

std::vector<std::byte> generated(const Key& key, std::size_t count, int width) {
  std::array<std::uint64_t, 2> state = {std::uint64_t{key[1]} << 32 | key[0], std::uint64_t{key[3]} << 32 | key[2]};
  return math::philox_bits(state, count, width);
}

Key seeded(DType dtype, std::uint64_t seed) {
  std::uint32_t high = static_cast<std::uint32_t>(seed >> 32), low = static_cast<std::uint32_t>(seed);
  return dtype == DType::key_fry ? Key{high, low, 0, 0} : Key{high, low, high, low};
}

std::vector<Key> split_one(DType dtype, const Key& key, std::size_t count) {
  std::vector<Key> keys(count);
  if (dtype == DType::key_unsafe_rbg) {
    std::vector<std::byte> stream = generated(key, 40 * count, 32);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(keys[i].data(), stream.data() + 160 * i, 16);
    return keys;
  }
  std::vector<Block> first = threefry_split(half(key, 0), count), second;
  if (dtype == DType::key_rbg) second = threefry_split(half(key, 1), count);
  for (std::size_t i = 0; i < count; ++i) {
    keys[i] = {first[i][0], first[i][1], 0, 0};
    if (dtype == DType::key_rbg) keys[i] = {first[i][0], first[i][1], second[i][0], second[i][1]};
  }
  return keys;
}

std::uint64_t one_element(DType dtype, const Key& key, int width) {
  std::uint64_t value = 0;
  if (dtype == DType::key_fry) {
    threefry_bits(half(key, 0), 1, width, reinterpret_cast<std::byte*>(&value));
  } else {
    std::vector<std::byte> bytes = generated(key, 1, width);
    std::memcpy(&value, bytes.data(), bytes.size());
  }
  return value;
}

void store_keys(std::byte* data, DType dtype, std::size_t first, const std::vector<Key>& keys) {
  std::size_t bytes = static_cast<std::size_t>(storage_size(dtype));
  for (std::size_t i = 0; i < keys.size(); ++i) std::memcpy(data + (first + i) * bytes, keys[i].data(), bytes);
}

// ---- kernels ----------------------------------------------------------------------------------------------------

Arrays threefry(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  Output first = allocate(type), second = allocate(type);
  std::array<const std::uint32_t*, 4> data;
  std::array<std::int64_t, 4> step;
  std::vector<BroadcastOperand> operands;
  operands.reserve(4);
  for (std::size_t i = 0; i < 4; ++i) {
    operands.emplace_back(args.inputs[i], type.shape);
    data[i] = reinterpret_cast<const std::uint32_t*>(operands[i].data());
    step[i] = operands[i].step();
  }
  auto* a = reinterpret_cast<std::uint32_t*>(first.data);
  auto* b = reinterpret_cast<std::uint32_t*>(second.data);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    Block out = math::threefry2x32<std::uint32_t>({data[0][i * step[0]], data[1][i * step[1]]},
                                                  {data[2][i * step[2]], data[3][i * step[3]]});
    a[i] = out[0];
    b[i] = out[1];
  }
  return {first.array, second.array};
}

Arrays counters(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  Output high = allocate(type), low = allocate(type);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    reinterpret_cast<std::uint32_t*>(high.data)[i] = static_cast<std::uint32_t>(i >> 32);
    reinterpret_cast<std::uint32_t*>(low.data)[i] = static_cast<std::uint32_t>(i);
  }
  return {high.array, low.array};
}

Arrays seed(const KernelArgs& args) {
  const Array& seeds = args.inputs[0];
  DType dtype = args.output_types[0].dtype;
  Output out = allocate(args.output_types[0]);
  bool wide = bits(seeds.dtype()) == 64;
  for (std::int64_t i = 0; i < seeds.size(); ++i) {
    auto value = static_cast<std::uint64_t>(element_as_int64(seeds.dtype(), seeds.raw_data(), i));
    store_keys(out.data, dtype, static_cast<std::size_t>(i), {seeded(dtype, wide ? value : value & 0xFFFFFFFFu)});
  }
  return {out.array};
}

Arrays split_keys(const KernelArgs& args) {
  const Array& keys = args.inputs[0];
  Output out = allocate(args.output_types[0]);
  std::size_t count = static_cast<std::size_t>(element_count(args.attrs.ints("shape")));
  std::size_t total = static_cast<std::size_t>(keys.size());
  if (keys.dtype() == DType::key_unsafe_rbg && total > 0) {
    // All keys share the stream of the first.
    store_keys(out.data, keys.dtype(), 0, split_one(keys.dtype(), load_key(keys, 0), total * count));
    return {out.array};
  }
  for (std::size_t i = 0; i < total; ++i) {
    store_keys(out.data, keys.dtype(), i * count,
               split_one(keys.dtype(), load_key(keys, static_cast<std::int64_t>(i)), count));
  }
  return {out.array};
}

Arrays fold_in(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  Output out = allocate(type);
  BroadcastOperand data(args.inputs[1], type.shape);
  // Keys are not numbers: their positions are broadcast instead.
  ArrayType position_type = args.inputs[0].type().with_dtype(DType::int64);
  Output positions = allocate(position_type);
  for (std::int64_t i = 0; i < position_type.size(); ++i) reinterpret_cast<std::int64_t*>(positions.data)[i] = i;
  BroadcastOperand key_positions(positions.array, type.shape);

  std::vector<std::byte> stream;  // for unsafe_rbg: one for all data, from the first element
  Output data_index = allocate(args.inputs[1].type().with_dtype(DType::int64));
  for (std::int64_t i = 0; i < args.inputs[1].size(); ++i) reinterpret_cast<std::int64_t*>(data_index.data)[i] = i;
  BroadcastOperand data_positions(data_index.array, type.shape);
  if (type.dtype == DType::key_unsafe_rbg && args.inputs[1].size() > 0) {
    std::uint32_t first = reinterpret_cast<const std::uint32_t*>(args.inputs[1].raw_data())[0];
    stream = generated(seeded(type.dtype, first), static_cast<std::size_t>(args.inputs[1].size()) * 40, 32);
  }
  for (std::int64_t i = 0; i < type.size(); ++i) {
    Key key =
        load_key(args.inputs[0], reinterpret_cast<const std::int64_t*>(key_positions.data())[i * key_positions.step()]);
    std::uint32_t number = reinterpret_cast<const std::uint32_t*>(data.data())[i * data.step()];
    if (type.dtype == DType::key_unsafe_rbg) {
      std::int64_t at = reinterpret_cast<const std::int64_t*>(data_positions.data())[i * data_positions.step()];
      Key last;
      std::memcpy(last.data(), stream.data() + 160 * at + 144, 16);
      for (std::size_t w = 0; w < 4; ++w) key[w] ^= last[w];
    } else {
      Block first = block(half(key, 0), number), second = block(half(key, 1), number);
      key = {first[0], first[1], second[0], second[1]};
    }
    store_keys(out.data, type.dtype, static_cast<std::size_t>(i), {key});
  }
  return {out.array};
}

Arrays random_bits(const KernelArgs& args) {
  const Array& keys = args.inputs[0];
  Output out = allocate(args.output_types[0]);
  int width = static_cast<int>(args.attrs.integer("bit_width"));
  std::size_t count = static_cast<std::size_t>(element_count(args.attrs.ints("shape")));
  std::size_t total = static_cast<std::size_t>(keys.size());
  if (keys.dtype() != DType::key_fry) {
    if (total * count == 0) return {out.array};
    std::vector<std::byte> bytes = generated(load_key(keys, 0), total * count, width);
    if (!bytes.empty()) std::memcpy(out.data, bytes.data(), bytes.size());
    return {out.array};
  }
  for (std::size_t i = 0; i < total; ++i) {
    threefry_bits(half(load_key(keys, static_cast<std::int64_t>(i)), 0), count, width,
                  out.data + i * count * static_cast<std::size_t>(width) / 8);
  }
  return {out.array};
}

Arrays same_bytes(const KernelArgs& args) { return {reinterpreted(args.inputs[0], args.output_types[0])}; }

Arrays rng_bit_generator(const KernelArgs& args) {
  const ArrayType& type = args.output_types[1];
  Output state = allocate(args.output_types[0]), out = allocate(type);
  std::vector<std::uint64_t> words(
      static_cast<std::size_t>(args.inputs[0].size() * storage_size(args.inputs[0].dtype()) / 8));
  std::memcpy(words.data(), args.inputs[0].raw_data(), words.size() * 8);
  bool threefry = args.attrs.text("algorithm") == "RNG_THREE_FRY";
  std::vector<std::byte> bytes =
      threefry ? math::threefry_bits(words, type.shape, bits(type.dtype))
               : math::philox_bits(words, static_cast<std::size_t>(type.size()), bits(type.dtype));
  std::memcpy(state.data, words.data(), words.size() * 8);
  if (!bytes.empty()) std::memcpy(out.data, bytes.data(), bytes.size());
  return {state.array, out.array};
}

// The process's own stream: every call takes the next counters.
Arrays rng_uniform(const KernelArgs& args) {
  static std::atomic<std::uint64_t> used{0};
  const ArrayType& type = args.output_types[0];
  Output out = allocate(type);
  std::uint64_t first = used.fetch_add(static_cast<std::uint64_t>(type.size()));
  for (std::int64_t i = 0; i < type.size(); ++i) {
    std::uint64_t counter = first + static_cast<std::uint64_t>(i);
    auto words = math::philox4x32(
        {0, 0}, {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0});
    std::uint64_t word = std::uint64_t{words[0]} << 32 | words[1];
    if (is_floating(type.dtype)) {
      double low = load_as<double>(type.dtype, args.inputs[0].raw_data(), 0),
             high = load_as<double>(type.dtype, args.inputs[1].raw_data(), 0);
      int digits = dtype_row(type.dtype).mantissa_bits;
      double unit = std::ldexp(static_cast<double>(word >> (64 - digits)), -digits);
      store_as<double>(type.dtype, out.data, i, low + unit * (high - low));
    } else {
      std::int64_t low = element_as_int64(type.dtype, args.inputs[0].raw_data(), 0);
      std::uint64_t span = static_cast<std::uint64_t>(element_as_int64(type.dtype, args.inputs[1].raw_data(), 0)) -
                           static_cast<std::uint64_t>(low);
      store_as<std::int64_t>(
          type.dtype, out.data, i,
          static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + (span == 0 ? 0 : word % span)));
    }
  }
  return {out.array};
}

struct MultiplyAdd {
  template <std::floating_point T>
  T operator()(T x, T y, T z) const {
    return std::fma(x, y, z);
  }
};

Arrays multiply_add(const KernelArgs& args) { return apply_ternary(args, MultiplyAdd{}); }

// ---- gamma ------------------------------------------------------------------------------------------------------

template <class T>
T unit_uniform(DType key_dtype, const Key& key) {
  constexpr int width = sizeof(T) * 8, digits = std::numeric_limits<T>::digits - 1;
  using Bits = std::conditional_t<width == 32, std::uint32_t, std::uint64_t>;
  auto word = static_cast<Bits>(one_element(key_dtype, key, width));
  return std::bit_cast<T>(static_cast<Bits>((word >> (width - digits)) | std::bit_cast<Bits>(T(1)))) - T(1);
}

template <class T>
T standard_normal(DType key_dtype, const Key& key) {
  const T low = std::nextafter(T(-1), T(0));
  T u = unit_uniform<T>(key_dtype, key) * (T(1) - low) + low;
  return static_cast<T>(std::sqrt(2.0)) * math::erf_inv(u < low ? low : u);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; the same draws as jax, key by key.
template <class T>
T gamma_one(DType dtype, Key key, T alpha, bool log_space) {
  bool direct = alpha >= T(1);
  T boosted = direct ? alpha : alpha + T(1);
  T d = boosted - T(1.0 / 3.0), c = T(1.0 / 3.0) / std::sqrt(d);
  std::vector<Key> keys = split_one(dtype, key, 2);
  Key boost_key = keys[1];
  key = keys[0];
  T square = 0, cube = 1, u = 2;
  while (u >= T(1) - T(0.0331) * (square * square) &&
         math::log(u) >= square * T(0.5) + d * ((T(1) - cube) + math::log(cube))) {
    keys = split_one(dtype, key, 3);
    key = keys[0];
    Key normal_key = keys[1], uniform_key = keys[2];
    T x = 0, v = -1;
    while (v <= 0) {
      std::vector<Key> next = split_one(dtype, normal_key, 2);
      normal_key = next[0];
      x = standard_normal<T>(dtype, next[1]);
      v = T(1) + x * c;
    }
    square = x * x;
    cube = v * v * v;
    u = unit_uniform<T>(dtype, uniform_key);
  }
  T draw = unit_uniform<T>(dtype, boost_key);
  if (log_space) {
    T log_draw = math::log1p(-draw);
    T boost = direct || log_draw == 0 ? T(0) : log_draw * (T(1) / alpha);
    return math::log(d) + math::log(cube) + boost;
  }
  T boost = direct ? T(1) : math::pow(T(1) - draw, T(1) / alpha);
  return d * cube * boost;
}

template <class T>
Arrays gamma_of(const KernelArgs& args) {
  const Array &keys = args.inputs[0], &a = args.inputs[1];
  bool log_space = args.attrs.boolean("log_space");
  Output out = allocate(args.output_types[0]);
  if (a.size() == 0) return {out.array};
  DenormalScope scope(Denormals::flush);
  std::size_t per_key = static_cast<std::size_t>(a.size() / keys.size());
  std::vector<Key> draws;  // unsafe_rbg: all keys share the stream of the first
  if (keys.dtype() == DType::key_unsafe_rbg) {
    draws = split_one(keys.dtype(), load_key(keys, 0), static_cast<std::size_t>(a.size()));
  } else {
    for (std::int64_t i = 0; i < keys.size(); ++i) {
      std::vector<Key> each = split_one(keys.dtype(), load_key(keys, i), per_key);
      draws.insert(draws.end(), each.begin(), each.end());
    }
  }
  const T* alpha = reinterpret_cast<const T*>(a.raw_data());
  T* values = reinterpret_cast<T*>(out.data);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    poll_stop();
    values[i] = gamma_one<T>(keys.dtype(), draws[i], alpha[i], log_space);
  }
  return {out.array};
}

Arrays random_gamma(const KernelArgs& args) {
  DType dtype = args.inputs[1].dtype();
  if (dtype == DType::float32) return gamma_of<float>(args);
  if (dtype == DType::float64) return gamma_of<double>(args);
  // Narrow types round after every operation, as the composition does.
  TraceScope scope(evaluation_trace());
  return {draw_gamma(args.inputs[0], args.inputs[1], args.attrs.boolean("log_space"))};
}

}  // namespace

KernelList random_kernels() {
  return {{"threefry2x32", threefry},    {"iota_2x32_shape", counters},
          {"random_seed", seed},         {"random_split", split_keys},
          {"random_fold_in", fold_in},   {"random_bits", random_bits},
          {"random_wrap", same_bytes},   {"random_unwrap", same_bytes},
          {"random_clone", same_bytes},  {"rng_bit_generator", rng_bit_generator},
          {"rng_uniform", rng_uniform},  {"random_gamma", random_gamma},
          {"multiply_add", multiply_add}};
}

}  // namespace capibara::reference
