// jax.numpy: creation of arrays from values, from one value, of matrices and grids; equality of whole arrays.
#include <capibara/numpy/creation.h>

#include <capibara/lax.h>
#include <capibara/placement.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "lax/collective/collective.h"
#include "lax/operators/explicit_x64.h"
#include "lax/sharding/out_sharding.h"
#include "library/numpy/elementwise_operands.h"
#include "library/numpy/placed_like.h"

namespace capibara::jax::numpy {

namespace {

// Key types whose words are a single number each.
Array keys_of_words(Shape shape, const Array& word, DType dtype) {
  shape.push_back(storage_size(dtype) / storage_size(DType::uint32));
  return random::wrap_key_data(lax::full(shape, lax::convert_element_type(word, DType::uint32, false)),
                               {.dtype = dtype});
}

Array full_of(const Shape& shape, double value, std::optional<DType> dtype) {
  const DType to = requested(dtype, DType::float64);
  if (is_key(to)) return keys_of_words(shape, strong_constant(DType::uint32, value), to);
  return lax::full(shape, strong_constant(to, value));
}

// A number broadcast to a shape. Explicit axes split the result like `a` if `a` has that shape.
Array full_as(const Array& a, const Shape& shape, const Array& value) {
  const Sharding& own = a.type().sharding;
  if (own.is_explicit() && shape == a.shape() && !out_sharding_in_scope().is_explicit())
    return lax::broadcast(value, shape, own);
  return lax::full(shape, value);
}

Array full_of_like(const Array& a, double value, const LikeOptions& options) {
  const Shape& shape = options.shape ? *options.shape : a.shape();
  const DType dtype = requested(options.dtype, a.dtype());
  if (is_key(dtype)) return keys_of_words(shape, strong_constant(DType::uint32, value), dtype);
  const Array made = full_as(a, shape, number_as(value, dtype, !options.dtype && a.weak_type()));
  return placed_like(a, lax::varied_as(a, made));
}

Array all(const Array& x) {
  Ints axes;
  for (int64_t axis = 0; axis < x.ndim(); ++axis) axes.push_back(axis);
  return lax::reduce_and(x, {.axes = axes});
}

}  // namespace

// ---- from values --------------------------------------------------------------------------------------------------

Array array(const Array& object, const ArrayOptions& options) {
  Array result = options.copy ? lax::copy(object) : object;
  if (options.dtype) result = lax::convert_element_type(result, requested(options.dtype, *options.dtype), false);
  if (options.ndmin <= result.ndim()) return result;
  Ints added;
  for (int64_t axis = 0; axis < options.ndmin - result.ndim(); ++axis) added.push_back(axis);
  return lax::expand_dims(result, added);
}

Array asarray(const Array& a, const AsarrayOptions& options) {
  return array(a, {.dtype = options.dtype, .copy = options.copy});
}

Array copy(const Array& a) { return array(a); }

Array astype(const Array& x, DType dtype, const AstypeOptions& options) {
  const DType to = requested(dtype, dtype);
  const bool truth_of_complex = is_complex(x.dtype()) && is_bool(to);
  const Array from = truth_of_complex ? lax::ne(x, constant_like(x, 0)) : x;
  const Array result = lax::convert_element_type(from, to, false);
  return options.copy ? lax::copy(result) : result;
}

Array fromstring(const std::string& string, const FromstringOptions& options) {
  std::string separator;
  for (char c : options.sep) {
    if (c != ' ') separator += c;
  }
  const DType dtype = requested(options.dtype, DType::float64);
  if (!is_numeric(dtype) || is_complex(dtype)) {
    throw ValueError(concat("fromstring: real numbers are read, got dtype ", to_string(dtype)));
  }
  std::vector<double> reals;
  std::vector<int64_t> integers;
  const char* at = string.c_str();
  const auto skip_spaces = [&] {
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) ++at;
  };
  const auto is_full = [&](std::size_t count) {
    return options.count >= 0 && static_cast<int64_t>(count) == options.count;
  };
  skip_spaces();
  while (*at != '\0' && !is_full(reals.size() + integers.size())) {
    char* end = nullptr;
    if (is_integer(dtype)) {
      integers.push_back(std::strtoll(at, &end, 10));
    } else {
      reals.push_back(std::strtod(at, &end));
    }
    if (end == at) throw ValueError(concat("fromstring: no number is written '", at, "'"));
    at = end;
    skip_spaces();
    if (*at == '\0' || separator.empty()) continue;
    if (std::string_view(at).substr(0, separator.size()) != separator) {
      throw ValueError(concat("fromstring: '", options.sep, "' is expected before '", at, "'"));
    }
    at += separator.size();
    skip_spaces();
  }
  const Array numbers = is_integer(dtype)
                            ? Array::from_host(DType::int64, {static_cast<int64_t>(integers.size())}, integers.data())
                            : Array::from_host(DType::float64, {static_cast<int64_t>(reals.size())}, reals.data());
  return lax::convert_element_type(numbers, dtype, false);
}

// ---- filled with one value ----------------------------------------------------------------------------------------

Array zeros(const Shape& shape, const FillOptions& options) { return full_of(shape, 0, options.dtype); }
Array ones(const Shape& shape, const FillOptions& options) { return full_of(shape, 1, options.dtype); }
Array empty(const Shape& shape, const FillOptions& options) { return full_of(shape, 0, options.dtype); }

Array full(const Shape& shape, const Array& fill_value, const FillOptions& options) {
  Array value = fill_value;
  if (options.dtype && is_key(*options.dtype) && !is_key(value.dtype()) && value.ndim() == 0)
    return keys_of_words(shape, value, *options.dtype);
  if (options.dtype) value = lax::convert_element_type(value, requested(options.dtype, *options.dtype), false);
  return value.ndim() == 0 ? lax::full(shape, value) : broadcast_to("full", value, shape);
}

Array zeros_like(const Array& a, const LikeOptions& options) { return full_of_like(a, 0, options); }
Array ones_like(const Array& a, const LikeOptions& options) { return full_of_like(a, 1, options); }
Array empty_like(const Array& prototype, const LikeOptions& options) { return full_of_like(prototype, 0, options); }

Array full_like(const Array& a, const Array& fill_value, const LikeOptions& options) {
  const Shape& shape = options.shape ? *options.shape : a.shape();
  const DType dtype = requested(options.dtype, a.dtype());
  if (is_key(dtype) && !is_key(fill_value.dtype()) && fill_value.ndim() == 0)
    return keys_of_words(shape, fill_value, dtype);
  const bool is_weak = !options.dtype && a.weak_type() && fill_value.ndim() == 0;
  const Array value = lax::convert_element_type(fill_value, dtype, is_weak);
  const Array made = value.ndim() == 0 ? full_as(a, shape, value) : broadcast_to("full_like", value, shape);
  return placed_like(a, lax::varied_as(a, made));
}

// ---- matrices and grids -------------------------------------------------------------------------------------------

Array eye(int64_t N, const EyeOptions& options) {
  const int64_t columns = options.M.value_or(N);
  const Array& offset = options.k;
  if (offset.ndim() != 0 || !is_integer(offset.dtype())) {
    throw ValueError(concat("eye: argument 'k' must be a scalar integer, got ", to_string(offset.type())));
  }
  if (N < 0 || columns < 0) {
    throw ValueError(concat("eye: negative dimensions are not allowed, got N=", N, " and M=", columns));
  }
  const Array row = lax::broadcasted_iota(offset.dtype(), {N, columns}, 0);
  const Array column = lax::broadcasted_iota(offset.dtype(), {N, columns}, 1);
  return lax::convert_element_type(row + offset == column, requested(options.dtype, DType::float64), false);
}

Array identity(int64_t n, const FillOptions& options) { return eye(n, {.dtype = options.dtype}); }

Array tri(int64_t N, const TriOptions& options) {
  const Shape shape = {N, options.M.value_or(N)};
  const int64_t limit = std::numeric_limits<int32_t>::max();
  const bool is_wide = std::max(shape[0], shape[1]) > limit || std::abs(options.k) > limit;
  const DType index = canonical(is_wide ? DType::int64 : DType::int32);
  const Array row = lax::add(lax::broadcasted_iota(index, shape, 0), strong_constant(index, options.k));
  const Array below = lax::ge(row, lax::broadcasted_iota(index, shape, 1));
  return lax::convert_element_type(below, requested(options.dtype, DType::float32), false);
}

Arrays meshgrid(const Arrays& xi, const MeshgridOptions& options) {
  if (options.indexing != "xy" && options.indexing != "ij") {
    throw ValueError(concat("meshgrid: argument 'indexing' must be 'xy' or 'ij', got '", options.indexing, "'"));
  }
  Arrays axes = xi;
  for (const Array& x : axes) {
    if (x.ndim() != 1) throw ValueError(concat("meshgrid: 1D arrays are needed, got ", to_string(x.type())));
  }
  const bool swaps = options.indexing == "xy" && axes.size() >= 2;
  if (swaps) std::swap(axes[0], axes[1]);
  Shape whole;
  for (const Array& x : axes) whole.push_back(options.sparse ? 1 : x.shape(0));
  Arrays grid;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Shape shape = whole;
    shape[i] = axes[i].shape(0);
    grid.push_back(lax::broadcast_in_dim(axes[i], shape, {static_cast<int64_t>(i)}));
  }
  if (swaps) std::swap(grid[0], grid[1]);
  return grid;
}

Arrays sparse_indices(const Shape& dimensions, const FillOptions& options) {
  const DType dtype = requested(options.dtype, DType::int64);
  Arrays result;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    Shape shape(dimensions.size(), 1);
    shape[i] = dimensions[i];
    result.push_back(lax::broadcast_in_dim(lax::iota(dtype, dimensions[i]), shape, {static_cast<int64_t>(i)}));
  }
  return result;
}

Array indices(const Shape& dimensions, const FillOptions& options) {
  const DType dtype = requested(options.dtype, DType::int64);
  if (dimensions.empty()) return lax::empty({0}, dtype);
  Arrays result;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    result.push_back(lax::broadcast_in_dim(lax::iota(dtype, dimensions[i]), dimensions, {static_cast<int64_t>(i)}));
  }
  return lax::stack(result, 0);
}

Arrays fromfunction(const std::function<Arrays(const Arrays&)>& function, const Shape& shape,
                    const FillOptions& options) {
  const DType dtype = requested(options.dtype, DType::float64);
  Arrays sides;
  for (int64_t length : shape) sides.push_back(arange(length, std::nullopt, std::nullopt, {.dtype = dtype}));
  std::function<Arrays(const Arrays&)> mapped = function;
  // The innermost map runs over the last axis.
  for (std::size_t i = shape.size(); i-- > 0;) {
    std::vector<Axes> one(shape.size(), Axes(std::nullopt));
    one[i] = Axes(0);
    mapped = [inner = mapped, one](const Arrays& at) {
      return vmap([&inner](const Arrays& scalars) { return inner(scalars); }, {.in_axes = Axes({Axes(one)})})(at);
    };
  }
  return mapped(sides);
}

Array fromfunction(const std::function<Array(const Arrays&)>& function, const Shape& shape,
                   const FillOptions& options) {
  const std::function<Arrays(const Arrays&)> single = [&](const Arrays& at) { return Arrays{function(at)}; };
  return fromfunction(single, shape, options)[0];
}

// ---- queries ------------------------------------------------------------------------------------------------------

Array array_equal(const Array& a1, const Array& a2, const ArrayEqualOptions& options) {
  if (a1.shape() != a2.shape()) return Array(false);
  Array same = a1 == a2;
  if (options.equal_nan) {
    Array is_nan = isnan(a1);
    same = logical_or(same, logical_and(is_nan, isnan(a2)));
  }
  return all(same);
}

Array array_equiv(const Array& a1, const Array& a2) {
  try {
    return all(a1 == a2);
  } catch (const ValueError&) {
    return Array(false);  // shapes of unequal rank that do not broadcast
  }
}

Array allclose(const Array& a, const Array& b, const CloseOptions& options) {
  const auto close = [&](const Array& first, const Array& second, const Array& rtol, const Array& atol) {
    return all(isclose(first, second, {.rtol = rtol, .atol = atol, .equal_nan = options.equal_nan}));
  };
  return named("allclose", close, a, b, options.rtol, options.atol);
}

int64_t size(const Array& a, const Axis& axis) {
  int64_t count = 1;
  for (int64_t one : axis.resolve("size", a.ndim())) count *= a.shape()[static_cast<std::size_t>(one)];
  return count;
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  return shapes.empty() ? Shape{} : lax::broadcast_shapes(shapes);
}

}  // namespace capibara::jax::numpy
