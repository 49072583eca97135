// Random primitives: keys as values, the Threefry block function and bit generators.
//
// A key array lowers to its uint32 words: rules below unwrap their keys, compute on words (random_words.cpp) and wrap
// the result; random_wrap, random_unwrap and random_clone themselves vanish when a program is lowered.
#include "lax/random/random.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include "lax/elementwise/elementwise.h"
#include "lax/families.h"
#include "lax/math/threefry.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

template <>
struct math::BitOperations<Array> {
  static Array whole(const Array& scalar, const Array& like) {
    return like.ndim() == 0 ? scalar : lax::broadcast_in_dim(scalar, like.shape(), {});
  }
  static Array constant(std::uint32_t value, const Array& like) {
    return whole(exact_scalar(DType::uint32, static_cast<int64_t>(value)), like);
  }
  static Array rotate_left(const Array& x, int amount) {
    Array up = lax::shift_left(x, constant(static_cast<std::uint32_t>(amount), x));
    return lax::bitwise_or(up, lax::shift_right_logical(x, constant(static_cast<std::uint32_t>(32 - amount), x)));
  }
};

const KeyImplementation& key_implementation(DType dtype) {
  for (const KeyImplementation& row : key_implementations) {
    if (row.dtype == dtype) return row;
  }
  throw InternalError(concat("key_implementation: ", dtype_name(dtype), " is not a key dtype"));
}

const KeyImplementation& key_implementation(std::string_view tag) {
  for (const KeyImplementation& row : key_implementations) {
    if (row.tag == tag) return row;
  }
  throw ValueError(concat("random: there is no key implementation '", tag, "'; there are fry, rbg and urbg"));
}

void require_keys(const std::string& op, const ArrayType& type) {
  if (!is_key(type.dtype)) throw TypeError(concat(op, " takes a key array operand, got ", to_string(type)));
}

namespace {

Array unwrap(const Array& keys) {
  static const Primitive p = primitive("random_unwrap");
  return bind1(p, {keys});
}
Array wrap(const Array& words, const KeyImplementation& implementation) {
  static const Primitive p = primitive("random_wrap");
  return bind1(p, {words}, {{"impl", std::string(implementation.tag)}});
}

ArrayType plain_type(DType dtype, Shape shape) { return scalar_type(dtype).with_shape(std::move(shape)); }

Shape joined(Shape first, const Shape& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void require_draw_sizes(const std::string& op, const Ints& shape) {
  for (int64_t size : shape) {
    if (size < 0) throw ValueError(concat(op, ": every size must be nonnegative, got ", size, " (argument 'shape')"));
  }
}

// A record whose outputs have no tangent.
PrimitiveRecord discrete(const char* name, const char* doc, FactorRule factors = elementwise_factors,
                         SplitRule splits = random_splits) {
  PrimitiveRecord r{.name = name, .factors = std::move(factors), .splits = std::move(splits)};
  r.doc = doc;
  r.jvp = zero_jvp();
  r.batch = batch_elementwise;
  r.differentiable = false;
  return r;
}

SampleMaker samples_of(std::vector<Attrs> variants) {
  return [variants = std::move(variants)](DType dtype) {
    std::vector<Sample> samples;
    for (const Attrs& attrs : variants) {
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{0}, Shape{2, 3}}) {
        Sample sample;
        sample.inputs = {plain_type(dtype, shape)};
        sample.attrs = attrs;
        samples.push_back(std::move(sample));
      }
    }
    return samples;
  };
}

PrimitiveRecord threefry_record() {
  PrimitiveRecord r = elementwise::record("threefry2x32",
                                          "The Threefry-2x32 block function: two key words and two "
                                          "counter words to two random words.",
                                          4, elementwise::unsigned_integers, "");
  r.traits = {.cost = Cost::series, .multiple_results = true, .element_nanoseconds = 3};
  r.dtypes = {DType::uint32};
  r.differentiable = false;
  r.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("threefry2x32", types, 4);
    for (const ArrayType& type : types) {
      if (type.dtype != DType::uint32) {
        throw TypeError(concat("Arguments to threefry2x32 must have uint32 type, got ", to_string(type)));
      }
    }
    ArrayType out = plain_type(DType::uint32, broadcast_operand_shapes("threefry2x32", types));
    return TypeResult(Types{out, out});
  };
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    Arrays x = elementwise::broadcast_operands("threefry2x32", in);
    auto out = math::threefry2x32<Array>({x[0], x[1]}, {x[2], x[3]});
    return {out[0], out[1]};
  };
  r.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 110.0 * static_cast<double>(element_count(broadcast_operand_shapes("threefry2x32", types)));
  };
  return r;
}

PrimitiveRecord counter_record() {
  PrimitiveRecord r = discrete("iota_2x32_shape", "The row-major positions of an array as high and low 32 bits.",
                               elementwise_factors, requested_splits);
  r.traits.multiple_results = true;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("iota_2x32_shape", types, 0);
    require_draw_sizes("iota_2x32_shape", attrs.ints("shape"));
    ArrayType out = plain_type(DType::uint32, attrs.ints("shape"));
    return TypeResult(Types{out, out});
  };
  r.batch = nullptr;  // it has no operands
  r.jvp = nullptr;
  r.lower = [](std::span<const Array>, const Attrs& attrs) -> Arrays {
    static const Primitive iota = primitive("iota");
    const Shape& shape = attrs.ints("shape");
    Array count = lax::zeros(plain_type(DType::uint64, shape));
    auto filled = [&](int64_t value) { return lax::full_like(count, exact_scalar(DType::uint64, value)); };
    int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      Array step = bind1(
          iota, {},
          {{"dimension", static_cast<int64_t>(i)}, {"dtype", DType::uint64}, {"shape", shape}, {"sharding", Attr()}});
      count = lax::add(count, lax::mul(filled(stride), step));
      stride *= shape[i];
    }
    return {lax::convert_element_type(lax::shift_right_logical(count, filled(32)), DType::uint32, false),
            lax::convert_element_type(count, DType::uint32, false)};
  };
  r.samples = [](DType) {
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{3}, Shape{2, 3}, Shape{0, 2}, Shape{2, 1, 3}}) {
      samples.push_back({{}, {{"shape", shape}}, 0, 1, false});
    }
    return samples;
  };
  return r;
}

PrimitiveRecord seed_record() {
  PrimitiveRecord r = discrete("random_seed", "Keys from integer seeds.");
  r.dtypes = elementwise::accepted_dtypes(elementwise::integers);
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("random_seed", types, 1);
    if (!is_integer(types[0].dtype)) {
      throw TypeError(concat("PRNG key seed must be an integer; got ", to_string(types[0])));
    }
    return TypeResult(Types{plain_type(key_implementation(attrs.text("impl")).dtype, types[0].shape)});
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const KeyImplementation& implementation = key_implementation(attrs.text("impl"));
    return {wrap(key_words_of::seed(implementation, in[0]), implementation)};
  };
  r.samples = samples_of({{{"impl", "fry"}}, {{"impl", "rbg"}}, {{"impl", "urbg"}}});
  return r;
}

PrimitiveRecord split_keys_record() {
  PrimitiveRecord r = discrete("random_split", "New keys from each key, in trailing dimensions.", key_factors);
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("random_split", types, 1);
    require_keys("random_split", types[0]);
    require_draw_sizes("random_split", attrs.ints("shape"));
    return TypeResult(Types{plain_type(types[0].dtype, joined(types[0].shape, attrs.ints("shape")))});
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const KeyImplementation& implementation = key_implementation(in[0].dtype());
    return {wrap(key_words_of::split(implementation, unwrap(in[0]), attrs.ints("shape")), implementation)};
  };
  r.samples = samples_of({{{"shape", Ints{2}}}, {{"shape", Ints{3, 2}}}, {{"shape", Ints{}}}});
  return r;
}

PrimitiveRecord fold_in_record() {
  PrimitiveRecord r =
      discrete("random_fold_in", "A new key from each key and each 32-bit number.", key_factors, nary_splits);
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("random_fold_in", types, 2);
    require_keys("random_fold_in", types[0]);
    if (types[1].dtype != DType::uint32) {
      throw TypeError(concat("random_fold_in: the data must be uint32, got ", to_string(types[1])));
    }
    return TypeResult(Types{plain_type(types[0].dtype, broadcast_operand_shapes("random_fold_in", types))});
  };
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    const KeyImplementation& implementation = key_implementation(in[0].dtype());
    return {wrap(key_words_of::fold_in(implementation, unwrap(in[0]), in[1]), implementation)};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (auto [keys, data] : {std::pair<Shape, Shape>{{}, {}}, {{3}, {}}, {{}, {3}}, {{2, 3}, {2, 3}}, {{0}, {0}}}) {
      Sample sample;
      sample.inputs = {plain_type(dtype, keys), plain_type(DType::uint32, data)};
      sample.low = 0;
      sample.high = 100;
      samples.push_back(std::move(sample));
    }
    return samples;
  };
  return r;
}

PrimitiveRecord bits_record() {
  PrimitiveRecord r =
      discrete("random_bits", "Random unsigned integers from each key, in new dimensions.", key_factors);
  r.traits.cost = Cost::series;
  r.traits.element_nanoseconds = 3;
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("random_bits", types, 1);
    require_keys("random_bits", types[0]);
    require_draw_sizes("random_bits", attrs.ints("shape"));
    int64_t width = attrs.integer("bit_width");
    if (width != 8 && width != 16 && width != 32 && width != 64) {
      throw TypeError(concat("random_bits: requires 8-, 16-, 32- or 64-bit field width, got ", width));
    }
    DType dtype = *dtype_from_name(concat("uint", width));
    return TypeResult(Types{plain_type(dtype, joined(types[0].shape, attrs.ints("shape")))});
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    return {key_words_of::bits(key_implementation(in[0].dtype()), unwrap(in[0]), attrs.integer("bit_width"),
                               attrs.ints("shape"))};
  };
  std::vector<Attrs> variants;
  for (int64_t width : {8, 16, 32, 64}) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}})
      variants.push_back({{"bit_width", width}, {"shape", shape}});
  }
  r.samples = samples_of(std::move(variants));
  return r;
}

PrimitiveRecord wrap_record() {
  PrimitiveRecord r =
      discrete("random_wrap", "Keys from their words, given in the last dimension.", elementwise_factors, same_splits);
  r.dtypes = {DType::uint32};
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("random_wrap", types, 1);
    const KeyImplementation& implementation = key_implementation(attrs.text("impl"));
    const char* prefix = "JAX encountered invalid PRNG key data: expected ";
    if (types[0].shape.empty()) {
      throw TypeError(concat(prefix, "key_data.ndim >= 1; got ndim=0",
                             ".\nHint: make a key of a number by jax.random.key(number)."));
    }
    if (types[0].shape.back() != key_words(implementation.dtype)) {
      throw TypeError(concat(prefix, "key_data.shape to end with (", key_words(implementation.dtype), ",); got ",
                             to_string(types[0]), " for impl=", implementation.tag));
    }
    if (types[0].dtype != DType::uint32) {
      throw TypeError(concat(prefix, "key_data.dtype = uint32; got dtype=", to_string(types[0].dtype)));
    }
    return TypeResult(Types{plain_type(implementation.dtype, Shape(types[0].shape.begin(), types[0].shape.end() - 1))});
  };
  r.batch = batch_leading;
  r.samples = [](DType) {
    std::vector<Sample> samples;
    for (const char* impl : {"fry", "rbg", "urbg"}) {
      int64_t words = key_words(key_implementation(impl).dtype);
      for (const Shape& shape : {Shape{words}, Shape{3, words}, Shape{0, 2, words}}) {
        samples.push_back({{plain_type(DType::uint32, shape)}, {{"impl", impl}}, 0, 100, false});
      }
    }
    return samples;
  };
  return r;
}

PrimitiveRecord unwrap_record() {
  PrimitiveRecord r = discrete("random_unwrap", "The words of keys, in a last dimension.");
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("random_unwrap", types, 1);
    require_keys("random_unwrap", types[0]);
    return TypeResult(Types{plain_type(DType::uint32, joined(types[0].shape, {key_words(types[0].dtype)}))});
  };
  r.samples = samples_of({Attrs()});
  return r;
}

PrimitiveRecord clone_record() {
  PrimitiveRecord r = discrete("random_clone", "The same keys, marked as fresh for key-reuse checks.");
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("random_clone", types, 1);
    require_keys("random_clone", types[0]);
    return TypeResult(Types{types[0]});
  };
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    return {wrap(unwrap(in[0]), key_implementation(in[0].dtype()))};
  };
  r.samples = samples_of({Attrs()});
  return r;
}

Array bitcast(const Array& x, DType dtype) {
  static const Primitive p = primitive("bitcast_convert_type");
  return bind1(p, {x}, {{"new_dtype", dtype}});
}

// vmap draws the bits of the whole batch from the first state and advances only that one, as in jax.
BatchResult batch_generator(const BatchArgs& args) {
  if (!args.mapped(0)) return {capibara::bind(args.primitive, args.inputs, args.attrs), {not_mapped, not_mapped}};
  Array states = move_axis(args.inputs[0], args.dims[0], 0);
  Shape shape = args.attrs.ints("shape");
  shape.insert(shape.begin(), states.shape(0));
  if (states.size() == 0) return {{states, lax::zeros(plain_type(args.attrs.dtype("dtype"), shape))}, {0, 0}};
  Array first = lax::index_in_dim(states, 0, 0, false);
  Arrays out = capibara::bind(args.primitive, Arrays{first}, args.attrs.with("shape", shape));
  Array moved = lax::dynamic_update_slice_in_dim(states, lax::expand_dims(out[0], {0}), Array(0), 0);
  return {{moved, out[1]}, {0, 0}};
}

PrimitiveRecord generator_record() {
  PrimitiveRecord r = discrete("rng_bit_generator", "Random bits from a state, and the state that follows.",
                               whole_factors, bit_generator_splits);
  r.traits.multiple_results = true;
  r.traits.element_nanoseconds = 3;
  r.dtypes = {DType::uint32, DType::uint64};
  r.jvp = nullptr;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("rng_bit_generator", types, 1);
    require_draw_sizes("rng_bit_generator", attrs.ints("shape"));
    const ArrayType& state = types[0];
    bool words = state.dtype == DType::uint32 && state.shape == Shape{4};
    bool wide = state.dtype == DType::uint64 && (state.shape == Shape{2} || state.shape == Shape{3});
    if (!words && !wide) {
      throw TypeError(concat("rng_bit_generator: the key must be uint32[4] or uint64[2], got ", to_string(state)));
    }
    DType dtype = attrs.dtype("dtype");
    if (!is_integer(dtype) || is_sub_byte(dtype)) {
      throw TypeError(concat("rng_bit_generator: unsupported dtype ", dtype_name(dtype)));
    }
    return TypeResult(Types{state, plain_type(dtype, attrs.ints("shape"))});
  };
  r.batch = batch_generator;
  r.stablehlo = "stablehlo.rng_bit_generator";
  // StableHLO accepts only a uint64 state.
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    if (in[0].dtype() == DType::uint64) return {};
    static const Primitive p = primitive("rng_bit_generator");
    Array state = bitcast(lax::reshape(in[0], {2, 2}), DType::uint64);
    Arrays out = capibara::bind(p, Arrays{state}, attrs);
    return {lax::reshape(bitcast(out[0], DType::uint32), {4}), out[1]};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    Shape state{dtype == DType::uint64 ? 2 : 4};
    for (const char* algorithm : {"RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"}) {
      for (DType out : {DType::uint8, DType::uint16, DType::uint32, DType::uint64}) {
        for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 2}}) {
          samples.push_back({{plain_type(dtype, state)},
                             {{"algorithm", algorithm}, {"dtype", out}, {"out_sharding", Attr()}, {"shape", shape}},
                             0,
                             100,
                             false});
        }
      }
    }
    return samples;
  };
  return r;
}

PrimitiveRecord uniform_record() {
  PrimitiveRecord r = discrete("rng_uniform", "Uniform numbers in [a, b) from the backend's own stateful generator.");
  r.traits.repeatable = false;
  r.traits.nan_checked = true;
  r.traits.element_nanoseconds = 3;
  r.dtypes = elementwise::accepted_dtypes(elementwise::integers | elementwise::floats);
  r.jvp = nullptr;
  r.batch = nullptr;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("rng_uniform", types, 2);
    if (types[0].dtype != types[1].dtype) {
      throw ValueError(concat("Arguments to rng_uniform must have identical dtypes, got ", to_string(types[0].dtype),
                              " and ", to_string(types[1].dtype), "."));
    }
    if (types[0].rank() != 0 || types[1].rank() != 0) {
      throw ValueError(concat("Arguments to rng_uniform must be scalars; got ", to_string(types[0]), " and ",
                              to_string(types[1]), "."));
    }
    if (!is_integer(types[0].dtype) && !is_floating(types[0].dtype)) {
      throw TypeError(concat("rng_uniform: the bounds must be integers or floats, got ", to_string(types[0])));
    }
    require_draw_sizes("rng_uniform", attrs.ints("shape"));
    ArrayType out = plain_type(types[0].dtype, attrs.ints("shape"));
    out.weak_type = types[0].weak_type && types[1].weak_type;
    return TypeResult(Types{out});
  };
  r.stablehlo = "stablehlo.rng";
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{0, 2}}) {
      samples.push_back({{plain_type(dtype, {}), plain_type(dtype, {})}, {{"shape", shape}}, 0, 4, false});
    }
    return samples;
  };
  return r;
}

// jax writes a product and a sum, which its compiler fuses; random.uniform matches it bit for bit only with one
// rounding.
PrimitiveRecord multiply_add_record() {
  PrimitiveRecord r = elementwise::record("multiply_add", "x * y + z, rounded once.", 3, elementwise::floats, "");
  r.jvp = elementwise_jvp({
      [](const Array& g, const Array& out, std::span<const Array> in, const Attrs&) {
        return elementwise::broadcast_to(out.shape(), lax::mul(g, in[1]));
      },
      [](const Array& g, const Array& out, std::span<const Array> in, const Attrs&) {
        return elementwise::broadcast_to(out.shape(), lax::mul(in[0], g));
      },
      [](const Array& g, const Array& out, std::span<const Array>, const Attrs&) {
        return elementwise::broadcast_to(out.shape(), g);
      },
  });
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    Arrays x = elementwise::broadcast_operands("multiply_add", in);
    return {lax::add(lax::mul(x[0], x[1]), x[2])};
  };
  return r;
}

}  // namespace

Family random_family() {
  return {threefry_record(), counter_record(), seed_record(),        split_keys_record(), fold_in_record(),
          bits_record(),     wrap_record(),    unwrap_record(),      clone_record(),      generator_record(),
          uniform_record(),  gamma_record(),   multiply_add_record()};
}

}  // namespace capibara

namespace capibara::jax::lax {

std::pair<Array, Array> rng_bit_generator(const Array& key, const Shape& shape, DType dtype,
                                          RandomAlgorithm algorithm) {
  static const Primitive p = primitive("rng_bit_generator");
  static constexpr const char* names[] = {"RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"};
  dtype = canonicalize(dtype, capibara::config().enable_x64);
  if (!is_unsigned(dtype) || is_sub_byte(dtype)) {
    throw TypeError(concat("rng_bit_generator: unsupported dtype ", dtype_name(dtype)));
  }
  Arrays out = capibara::bind(p, Arrays{key},
                              {{"algorithm", names[static_cast<int>(algorithm)]},
                               {"dtype", dtype},
                               {"out_sharding", Attr()},
                               {"shape", shape}});
  return {out[0], out[1]};
}

Array rng_uniform(const Array& low, const Array& high, const Shape& shape) {
  static const Primitive p = primitive("rng_uniform");
  return bind1(p, {low, high}, {{"shape", shape}});
}

}  // namespace capibara::jax::lax
