// What the samplers of jax.random share: checked arguments, subkeys, named calls and loops.
#pragma once

#include <capibara/lax.h>
#include <capibara/random.h>

#include <limits>

#include "lax/rules.h"
#include "program/build.h"

namespace capibara::jax::random {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- keys ---------------------------------------------------------------------------------------------------------

// A single typed key; a raw uint32 array is taken as a key of the default generator. ValueError for a batch of keys.
Array checked_key(const char* function, const Array& key);
Arrays split_keys(const Array& key, int64_t count);
Array random_bits(const Array& key, int64_t bit_width, const Shape& shape);

// ---- arguments ----------------------------------------------------------------------------------------------------

DType default_float();
DType default_int();
DType default_uint();
// The dtype argument, canonical; ValueError where it is not floating.
DType float_dtype(const char* function, const std::optional<DType>& dtype);
Shape checked_shape(const char* function, const Shape& shape);
// The shape argument, or that of the broadcast parameters; ValueError where these do not fit it.
Shape parameter_shape(const char* function, const OptionalShape& shape, const std::vector<Shape>& parameters);
// TypePromotionError where a parameter would lose precision.
void require_safe_cast(const char* function, DType dtype, std::initializer_list<Array> parameters);

// ---- operations ---------------------------------------------------------------------------------------------------

// jnp.broadcast_to.
Array broadcast_to(const Array& x, const Shape& shape);
// A constant of the dtype of x.
inline Array constant(const Array& x, double value) { return scalar_of(x.dtype(), value); }
Array filled(const Shape& shape, DType dtype, double value);
// x * y + z rounded once, as jax's compiler fuses it: where a draw depends on the last bit, so do we.
Array multiply_add(const Array& x, const Array& y, const Array& z);
Array clip(const Array& x, const Array& low, const Array& high);
// jnp.where with plain numbers among the values.
Array where(const Array& condition, const Array& yes, const Array& no);
Array any(const Array& x);
Array to_inexact(const Array& x);
// jnp.take along one axis; every index is in bounds.
Array take(const Array& x, const Array& indices, int64_t axis);
Array sum_last(const Array& x);

// One jit equation of this name while tracing, as in jax; the operations themselves when evaluating.
Array call(const std::string& name, const Arrays& inputs, const std::function<Array(std::span<const Array>)>& function);
Arrays while_loop(const std::function<Array(std::span<const Array>)>& goes_on, const FlatFunction& body,
                  const Arrays& carry);

// The samplers below take checked keys and canonical dtypes.
Array draw_uniform(const Array& key, const Shape& shape, DType dtype, const Array& minval = Array(0.0),
                   const Array& maxval = Array(1.0), bool maxval_first = false);
// At least the least normal number. maxval_first: the order of operands in the program, which jax varies.
Array draw_positive_uniform(const Array& key, const Shape& shape, DType dtype, bool maxval_first = false);
Array draw_normal(const Array& key, const Shape& shape, DType dtype);
Array draw_exponential(const Array& key, const Shape& shape, DType dtype);
Array draw_log_gamma(const Array& key, const Array& a, const Shape& shape, DType dtype, bool log_space);

}  // namespace capibara::jax::random
