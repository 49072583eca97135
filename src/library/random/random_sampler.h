// Shared by the samplers of jax.random: checked arguments, subkeys, named calls and loops.
#pragma once

#include <capibara/lax.h>
#include <capibara/random.h>

#include <limits>

#include "lax/random/random_draws.h"
#include "lax/rules.h"
#include "program/ir/build.h"

namespace capibara::jax::random {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- keys ---------------------------------------------------------------------------------------------------------

// A single typed key; a raw uint32 array is treated as a key of the default generator. ValueError for a batch of keys.
Array checked_key(const char* function, const Array& key);

// ---- arguments ----------------------------------------------------------------------------------------------------

DType default_float();
DType default_int();
DType default_uint();
// The dtype argument, canonical; ValueError unless it is floating.
DType float_dtype(const char* function, const std::optional<DType>& dtype);
Shape checked_shape(const char* function, const Shape& shape);
// The shape argument, or the broadcast shape of the parameters; ValueError if they do not fit it.
Shape parameter_shape(const char* function, const OptionalShape& shape, const std::vector<Shape>& parameters);
// TypePromotionError if a parameter would lose precision.
void require_safe_cast(const char* function, DType dtype, std::initializer_list<Array> parameters);

// ---- operations ---------------------------------------------------------------------------------------------------

// jnp.broadcast_to.
Array broadcast_to(const Array& x, const Shape& shape);
// A constant of the dtype of x.
inline Array constant(const Array& x, double value) { return scalar_of(x.dtype(), value); }
Array filled(const Shape& shape, DType dtype, double value);
Array clip(const Array& x, const Array& low, const Array& high);
// jnp.where with plain numbers as operands.
Array where(const Array& condition, const Array& yes, const Array& no);
Array any(const Array& x);
Array to_inexact(const Array& x);
// jnp.take along one axis with indices that are all in bounds.
Array take(const Array& x, const Array& indices, int64_t axis);
Array sum_last(const Array& x);

// Takes a checked key and a canonical dtype.
Array draw_log_gamma(const Array& key, const Array& a, const Shape& shape, DType dtype, bool log_space);

}  // namespace capibara::jax::random
