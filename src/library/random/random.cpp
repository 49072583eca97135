// jax.random: keys, and code shared by all samplers.
#include "library/random/random_sampler.h"

#include <capibara/config.h>

#include "core/array/format.h"
#include "core/array/promotion.h"
#include "core/runtime/warning.h"
#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"
#include "lax/random/random.h"
#include "lax/reduce/monoid.h"
#include "program/trace/trace.h"

namespace capibara::jax::random {

namespace {

Array wrap(const Array& words, DType dtype) {
  static const Primitive p = primitive("random_wrap");
  return bind1(p, {words}, {{"impl", std::string(key_implementation(dtype).tag)}});
}
Array unwrap(const Array& keys) {
  static const Primitive p = primitive("random_unwrap");
  return bind1(p, {keys});
}

DType resolve(const char* function, const KeyOptions& options) {
  if (!options.dtype) return key_dtype(options.impl);
  if (!options.impl.empty()) {
    throw ValueError(concat("Cannot specify both `impl` and `dtype` arguments to jax.random.", function));
  }
  if (!is_key(*options.dtype)) {
    throw TypeError(concat(function, ": dtype must be a key dtype, got ", dtype_name(*options.dtype)));
  }
  return *options.dtype;
}

Array seeded(const char* function, const Array& seed, const KeyOptions& options) {
  static const Primitive p = primitive("random_seed");
  DType dtype = resolve(function, options);
  if (is_key(seed.dtype())) {
    throw TypeError(concat(function, " accepts a scalar seed, but was given a PRNG key."));
  }
  if (seed.ndim() != 0) {
    throw TypeError(concat(function, " accepts a scalar seed, but was given an array of shape ",
                           shape_tuple(seed.shape()), " != (). Use jax.vmap for batching"));
  }
  return bind1(p, {seed}, {{"impl", std::string(key_implementation(dtype).tag)}});
}

// A key array, and whether it was given as raw words.
struct TypedKeys {
  Array keys;
  bool wrapped;
};
TypedKeys typed_keys(const Array& key) {
  if (!key.defined()) throw TypeError("jax.random: the key is an empty Array");
  if (is_key(key.dtype())) return {key, false};
  TypedKeys typed{wrap(key, key_dtype()), true};
  const Config& settings = capibara::config();
  if (settings.legacy_prng_key == "allow") {
    if (settings.enable_custom_prng) {
      warn(concat("Raw arrays as random keys to jax.random functions are deprecated: a valid ",
                  settings.default_prng_impl, " key is assumed; make keys by jax.random.key()."),
           WarningKind::future);
    }
    return typed;
  }
  const char* text =
      "Legacy uint32 key array passed as key to jax.random function. Please create keys using jax.random.key(). If use "
      "of a raw key array was intended, set jax_legacy_prng_key=\"allow\".";
  if (settings.legacy_prng_key == "error") throw ValueError(text);
  warn(text);
  return typed;
}

TypedKeys single_key(const char* function, const Array& key) {
  TypedKeys typed = typed_keys(key);
  if (typed.keys.ndim() != 0) {
    throw ValueError(concat(function, " accepts a single key, but was given a key array of shape ",
                            shape_tuple(key.shape()), " != (). Use jax.vmap for batching."));
  }
  return typed;
}

Array returned(const TypedKeys& like, const Array& keys) {
  return like.wrapped && !capibara::config().enable_custom_prng ? unwrap(keys) : keys;
}

}  // namespace

// ---- keys ---------------------------------------------------------------------------------------------------------

Array seed_array(int64_t seed) {
  return exact_scalar(capibara::config().enable_x64 ? DType::int64 : DType::int32, seed);
}

Array key(const Array& seed, const KeyOptions& options) { return seeded("key", seed, options); }
Array PRNGKey(const Array& seed, const KeyOptions& options) {
  return returned({{}, true}, seeded("PRNGKey", seed, options));
}

DType key_dtype(const std::string& impl) {
  const std::string& name = impl.empty() ? capibara::config().default_prng_impl : impl;
  std::string known;
  for (const KeyImplementation& row : key_implementations) {
    if (row.name == name) return row.dtype;
    known += concat(known.empty() ? "" : ", ", '"', row.name, '"');
  }
  throw ValueError(concat("unrecognized PRNG implementation \"", name, "\". Did you mean one of: ", known, "?"));
}

std::string key_impl(const Array& keys) { return std::string(key_implementation(typed_keys(keys).keys.dtype()).name); }
Array key_data(const Array& keys) { return unwrap(typed_keys(keys).keys); }

Array wrap_key_data(const Array& key_bits_array, const KeyOptions& options) {
  return wrap(key_bits_array, resolve("wrap_key_data", options));
}

Array clone(const Array& key) {
  static const Primitive p = primitive("random_clone");
  const bool raw = key.defined() && !is_key(key.dtype());
  const Array cloned = bind1(p, {raw ? wrap(key, key_dtype()) : typed_keys(key).keys});
  return raw ? unwrap(cloned) : cloned;
}

Array fold_in(const Array& key, const Array& data) {
  static const Primitive p = primitive("random_fold_in");
  TypedKeys typed = single_key("fold_in", key);
  if (data.ndim() != 0) {
    throw TypeError(concat("fold_in accepts a scalar, but was given an array of shape ", shape_tuple(data.shape()),
                           " != (). Use jax.vmap for batching."));
  }
  return returned(typed, bind1(p, {typed.keys, lax::convert_element_type(data, DType::uint32, false)}));
}

Array split(const Array& key, int64_t num) { return split(key, Shape{num}); }

Array split(const Array& key, const Shape& num) {
  static const Primitive p = primitive("random_split");
  TypedKeys typed = single_key("split", key);
  return returned(typed, bind1(p, {typed.keys}, {{"shape", checked_shape("split", num)}}));
}

// ---- shared by samplers -------------------------------------------------------------------------------------------

Array checked_key(const char* function, const Array& key) { return single_key(function, key).keys; }

DType default_float() { return capibara::config().enable_x64 ? DType::float64 : DType::float32; }
DType default_int() { return capibara::config().enable_x64 ? DType::int64 : DType::int32; }
DType default_uint() { return capibara::config().enable_x64 ? DType::uint64 : DType::uint32; }

DType float_dtype(const char* function, const std::optional<DType>& dtype) {
  DType wanted = dtype ? canonicalize(*dtype, capibara::config().enable_x64) : default_float();
  if (!is_floating(wanted)) {
    throw ValueError(concat("dtype argument to `", function, "` must be a float dtype, got ", dtype_name(wanted)));
  }
  return wanted;
}

Shape checked_shape(const char* function, const Shape& shape) {
  for (int64_t size : shape) {
    if (size < 0) {
      throw TypeError(
          concat(function, ": shapes must be 1D sequences of nonnegative integers, got ", shape_tuple(shape)));
    }
  }
  return shape;
}

Shape parameter_shape(const char* function, const OptionalShape& shape, const std::vector<Shape>& parameters) {
  if (!shape) return lax::broadcast_shapes(parameters);
  std::vector<Shape> all = {checked_shape(function, *shape)};
  all.insert(all.end(), parameters.begin(), parameters.end());
  Shape result = lax::broadcast_shapes(all);
  if (result != *shape) {
    throw ValueError(concat(function,
                            " parameter shapes must be broadcast-compatible with shape argument, and the "
                            "result of broadcasting the shapes must equal the shape argument, but got result ",
                            shape_tuple(result), " for shape argument ", shape_tuple(*shape), "."));
  }
  return result;
}

void require_safe_cast(const char* function, DType dtype, std::initializer_list<Array> parameters) {
  for (const Array& parameter : parameters) {
    if (parameter.dtype() == dtype) continue;
    ScalarType both =
        promote_types({parameter.dtype(), parameter.weak_type()}, {dtype, false}, capibara::config().enable_x64);
    if (both.dtype == dtype) continue;
    throw TypePromotionError(concat("In arguments to ", function, ", cannot safely cast argument of type ",
                                    dtype_name(parameter.dtype()), " to ", dtype_name(dtype)));
  }
}

Array broadcast_to(const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (lax::broadcast_shapes({x.shape(), shape}) != shape) {
    throw ValueError(concat("broadcast_to: incompatible shapes for broadcasting: ", shape_tuple(x.shape()),
                            " and requested shape ", shape_tuple(shape)));
  }
  int64_t missing = static_cast<int64_t>(shape.size()) - x.ndim();
  Ints kept_dims, squeezed_dims;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    bool stretched = x.shape(i) != shape[static_cast<std::size_t>(i + missing)];
    stretched ? squeezed_dims.push_back(i) : kept_dims.push_back(i + missing);
  }
  return lax::broadcast_in_dim(squeezed_dims.empty() ? x : lax::squeeze(x, squeezed_dims), shape, kept_dims);
}

Array filled(const Shape& shape, DType dtype, double value) { return lax::full(shape, scalar_of(dtype, value)); }

Array clip(const Array& x, const Array& low, const Array& high) {
  return call("clip", {x, low, high},
              [](std::span<const Array> in) { return lax::min(in[2], lax::max(in[1], in[0])); });
}

Array where(const Array& condition, const Array& yes, const Array& no) {
  return call("_where", {condition, yes, no}, [](std::span<const Array> in) {
    ScalarType to = promote_types({in[1].dtype(), in[1].weak_type()}, {in[2].dtype(), in[2].weak_type()},
                                  capibara::config().enable_x64);
    Shape shape = lax::broadcast_shapes({in[0].shape(), in[1].shape(), in[2].shape()});
    Array first = broadcast_to(array_as(in[1], to.dtype, to.weak), shape);
    Array broadcasted = broadcast_to(in[0], shape);
    return lax::select(broadcasted, first, broadcast_to(array_as(in[2], to.dtype, to.weak), shape));
  });
}

Array any(const Array& x) {
  Ints axes;
  for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return lax::reduce_or(x, {.axes = axes});
}

Array to_inexact(const Array& x) {
  return is_inexact(x.dtype()) ? x : array_as(x, inexact_dtype(x.dtype()), x.weak_type());
}

Array take(const Array& x, const Array& indices, int64_t axis) {
  int64_t rank = indices.ndim();
  GatherDimensionNumbers numbers;
  Shape sizes = x.shape();
  sizes[static_cast<std::size_t>(axis)] = 1;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != axis) numbers.offset_dims.push_back(i < axis ? i : i + rank - 1);
  }
  numbers.collapsed_slice_dims = {axis};
  numbers.start_index_map = {axis};
  return lax::gather(x, lax::expand_dims(indices, {rank}), numbers, sizes);
}

Array sum_last(const Array& x) { return lax::reduce_sum(x, {.axes = {x.ndim() - 1}}); }

}  // namespace capibara::jax::random
