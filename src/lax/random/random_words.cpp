// Seeding, splitting, folding and drawing bits as operations on the words of keys: what the random primitives lower to.
//
// There are two layouts of counters. Partitionable (the default): element n uses only the 64-bit counter n. Legacy: one
// run of 32-bit counters, whose first half is paired with its second half in the block function.
#include "lax/random/random.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include "lax/reduce/monoid.h"
#include "lax/rules.h"

namespace capibara::key_words_of {

namespace lax = jax::lax;

namespace {

using Pair = std::array<Array, 2>;

DType unsigned_dtype(int64_t bit_width) {
  return bit_width == 8    ? DType::uint8
         : bit_width == 16 ? DType::uint16
         : bit_width == 32 ? DType::uint32
                           : DType::uint64;
}

Pair block(const Pair& key, const Pair& counter) {
  static const Primitive p = primitive("threefry2x32");
  Arrays out = capibara::bind(p, Arrays{key[0], key[1], counter[0], counter[1]});
  return {out[0], out[1]};
}

Array word(const Array& words, int64_t i) { return lax::index_in_dim(words, i, words.ndim() - 1, false); }

// The two words of each key, with trailing dimensions of size 1 for the counters.
Pair key_pair(const Array& words, std::size_t counter_rank) {
  Pair pair{word(words, 0), word(words, 1)};
  if (pair[0].ndim() == 0 || counter_rank == 0) return pair;
  Shape shape = pair[0].shape();
  shape.resize(shape.size() + counter_rank, 1);
  return {lax::reshape(pair[0], shape), lax::reshape(pair[1], shape)};
}

// Leading dimensions of size 1 for the keys.
Array beside_keys(const Array& counter, int64_t key_rank) {
  if (key_rank == 0 || counter.ndim() == 0) return counter;
  Shape shape(static_cast<std::size_t>(key_rank), 1);
  shape.insert(shape.end(), counter.shape().begin(), counter.shape().end());
  return lax::reshape(counter, shape);
}

Pair partitionable_blocks(const Array& words, const Shape& shape) {
  static const Primitive iota = primitive("iota_2x32_shape");
  Arrays counts = shape.empty() ? Arrays{exact_scalar(DType::uint32, 0), exact_scalar(DType::uint32, 0)}
                                : capibara::bind(iota, Arrays{}, {{"shape", shape}});
  int64_t keys = words.ndim() - 1;
  auto key_pair_words = key_pair(words, shape.size());
  return block(key_pair_words, {beside_keys(counts[0], keys), beside_keys(counts[1], keys)});
}

Shape key_shape(const Array& words) { return Shape(words.shape().begin(), words.shape().end() - 1); }

Shape joined(Shape first, const Shape& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The legacy stream: `count` words per key, along a last dimension.
Array legacy_stream(const Array& words, int64_t count) {
  if (count >= int64_t{0xFFFFFFFF}) {
    throw NotImplementedError(concat("random_bits: ", count,
                                     " words are more than one legacy stream holds; set "
                                     "jax_threefry_partitionable"));
  }
  int64_t half = (count + 1) / 2, keys = words.ndim() - 1;
  Array first = lax::iota(DType::uint32, half);
  Array second = lax::add(first, exact_scalar(DType::uint32, half));
  if (count % 2 == 1) {
    // An odd stream is padded with a zero counter.
    Array last = lax::eq(first, exact_scalar(DType::uint32, half - 1));
    second = lax::select(last, lax::full_like(second, exact_scalar(DType::uint32, 0)), second);
  }
  auto key_pair_words = key_pair(words, 1);
  Pair out = block(key_pair_words, {beside_keys(first, keys), beside_keys(second, keys)});
  Array stream = lax::concatenate({out[0], out[1]}, keys);
  return count % 2 == 0 ? stream : lax::slice_in_dim(stream, 0, count, 1, keys);
}

Array threefry_split(const Array& words, const Shape& shape) {
  if (config().threefry_partitionable) {
    Pair out = partitionable_blocks(words, shape);
    return lax::stack({out[0], out[1]}, out[0].ndim());
  }
  Array stream = legacy_stream(words, 2 * element_count(shape));
  return lax::reshape(stream, joined(joined(key_shape(words), shape), {2}));
}

// The words of seeds in threefry's form: high and low half of 64 bits, stacked last.
Array threefry_seed(const Array& seeds) {
  Array low = lax::convert_element_type(seeds, DType::uint32, false);
  Array high;
  if (capibara::bits(seeds.dtype()) == 64) {
    Array places = lax::full_like(seeds, exact_scalar(seeds.dtype(), 32));
    high = lax::convert_element_type(lax::shift_right_logical(seeds, places), DType::uint32, false);
  } else {
    high = lax::full_like(low, exact_scalar(DType::uint32, 0));
  }
  return lax::stack({high, low}, low.ndim());
}

Array threefry_fold_in(const Array& words, const Array& data) {
  Array zero = lax::full_like(data, exact_scalar(DType::uint32, 0));
  Pair out = block({word(words, 0), word(words, 1)}, {zero, data});
  return lax::stack({out[0], out[1]}, out[0].ndim());
}

Array threefry_bits(const Array& words, int64_t bit_width, const Shape& shape) {
  DType dtype = unsigned_dtype(bit_width);
  auto join = [](const Array& high, const Array& low) {
    Array upper = lax::convert_element_type(high, DType::uint64, false);
    Array places = lax::full_like(upper, exact_scalar(DType::uint64, 32));
    Array shift_left_upper = lax::shift_left(upper, places);
    return lax::bitwise_or(shift_left_upper, lax::convert_element_type(low, DType::uint64, false));
  };
  if (config().threefry_partitionable) {
    Pair out = partitionable_blocks(words, shape);
    if (bit_width == 64) return join(out[0], out[1]);
    return lax::convert_element_type(lax::bitwise_xor(out[0], out[1]), dtype, false);
  }
  int64_t size = element_count(shape), last = words.ndim() - 1;
  Array stream = legacy_stream(words, (bit_width * size + 31) / 32);
  if (bit_width == 64) {
    Array slice_in_dim_stream = lax::slice_in_dim(stream, 0, size, 1, last);
    stream = join(slice_in_dim_stream, lax::slice_in_dim(stream, size, 2 * size, 1, last));
  } else if (bit_width < 32) {
    // Each word is split into parts, the lowest first.
    int64_t parts = 32 / bit_width, count = stream.shape(-1);
    Shape cut = joined(key_shape(words), {count, parts});
    Ints all;
    for (int64_t i = 0; i <= last; ++i) all.push_back(i);
    Array part = lax::broadcasted_iota(DType::uint32, cut, last + 1);
    Array places = lax::mul(part, lax::full_like(part, exact_scalar(DType::uint32, bit_width)));
    Array pieces = lax::shift_right_logical(lax::broadcast_in_dim(stream, cut, all), places);
    Array flat = lax::reshape(pieces, joined(key_shape(words), {count * parts}));
    stream = lax::convert_element_type(lax::slice_in_dim(flat, 0, size, 1, last), dtype, false);
  }
  return lax::reshape(stream, joined(key_shape(words), shape));
}

// The first of several keys, as its four words.
Array first_key(Array words) {
  while (words.ndim() > 1) words = lax::index_in_dim(words, 0, 0, false);
  return words;
}

Array generated(const Array& words, const Shape& shape, DType dtype) {
  if (words.size() == 0) return lax::zeros(scalar_type(dtype).with_shape(shape));
  static const Primitive p = primitive("rng_bit_generator");
  return capibara::bind(
      p, Arrays{first_key(words)},
      {{"algorithm", "RNG_DEFAULT"}, {"dtype", dtype}, {"out_sharding", Attr()}, {"shape", shape}})[1];
}

// Words of rbg as two threefry keys: [..., 4] -> [..., 2, 2].
Array halves(const Array& words) { return lax::reshape(words, joined(key_shape(words), {2, 2})); }

}  // namespace

Array seed(const KeyImplementation& implementation, const Array& seeds) {
  Array words = threefry_seed(seeds);
  return implementation.dtype == DType::key_fry ? words : lax::concatenate({words, words}, words.ndim() - 1);
}

Array split(const KeyImplementation& implementation, const Array& words, const Shape& shape) {
  if (implementation.dtype == DType::key_fry) return threefry_split(words, shape);
  Shape result = joined(joined(key_shape(words), shape), {4});
  if (implementation.dtype == DType::key_rbg) {
    // [keys..., half, shape..., 2]: the half moves next to the words.
    Array keys = threefry_split(halves(words), shape);
    return lax::reshape(move_axis(keys, words.ndim() - 1, keys.ndim() - 2), result);
  }
  int64_t count = element_count(shape), keys = words.ndim() - 1;
  Array stream = generated(words, joined(key_shape(words), {10 * count, 4}), DType::uint32);
  return lax::reshape(lax::slice_in_dim(stream, std::nullopt, std::nullopt, 10, keys), result);
}

Array fold_in(const KeyImplementation& implementation, const Array& key, const Array& data) {
  if (implementation.dtype == DType::key_fry) return threefry_fold_in(key, data);
  // A single key is used for every element of the data.
  Array words = key;
  if (key.ndim() == 1 && data.ndim() > 0) {
    words = lax::broadcast_in_dim(key, joined(data.shape(), {4}), {data.ndim()});
  }
  if (implementation.dtype == DType::key_rbg) {
    Array halves_words = halves(words);
    Array keys = threefry_fold_in(halves_words, data.ndim() == 0 ? data : lax::expand_dims(data, {data.ndim()}));
    Shape shape(keys.shape().begin(), keys.shape().end() - 2);
    return lax::reshape(keys, joined(shape, {4}));
  }
  Array stream = generated(seed(implementation, data), joined(data.shape(), {10, 4}), DType::uint32);
  Array last = lax::index_in_dim(stream, 9, data.ndim(), false);
  if (last.ndim() < words.ndim()) last = lax::broadcast_in_dim(last, words.shape(), {words.ndim() - 1});
  return lax::bitwise_xor(words, last);
}

Array bits(const KeyImplementation& implementation, const Array& words, int64_t bit_width, const Shape& shape) {
  if (implementation.dtype == DType::key_fry) return threefry_bits(words, bit_width, shape);
  DType dtype = unsigned_dtype(bit_width);
  return generated(words, joined(key_shape(words), shape), dtype);
}

}  // namespace capibara::key_words_of
