// Basic draws from which others are built. They take checked keys and canonical dtypes.
#pragma once

#include <capibara/primitive.h>

#include <functional>

#include "program/ir/build.h"

namespace capibara::jax::random {

Arrays split_keys(const Array& key, int64_t count);
Array random_bits(const Array& key, int64_t bit_width, const Shape& shape);
DType unsigned_of_width(int width);
// x * y + z rounded once, as jax's compiler fuses it: some draws depend on the last bit.
Array multiply_add(const Array& x, const Array& y, const Array& z);

// One jit equation of this name while tracing, as in jax; the operations themselves when evaluating.
Array call(const std::string& name, const Arrays& inputs, const std::function<Array(std::span<const Array>)>& function);
Arrays while_loop(const std::function<Array(std::span<const Array>)>& goes_on, const FlatFunction& body,
                  const Arrays& carry);

Array draw_uniform(const Array& key, const Shape& shape, DType dtype, const Array& minval = Array(0.0),
                   const Array& maxval = Array(1.0), bool maxval_first = false);
// At least the smallest normal number. maxval_first: the order of operands in the program, which varies in jax.
Array draw_positive_uniform(const Array& key, const Shape& shape, DType dtype, bool maxval_first = false);
Array draw_normal(const Array& key, const Shape& shape, DType dtype);
Array draw_exponential(const Array& key, const Shape& shape, DType dtype);

}  // namespace capibara::jax::random
