// jax.numpy: dot, matmul and related functions, outer, Kronecker and cross products.
#include <capibara/lax.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/manipulation.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "lax/sharding/out_sharding.h"

namespace capibara::jax::numpy {

namespace {

// The accumulation type of a dot product, which is also the type of the result.
ScalarType product_type(const Array& a, const Array& b, const std::optional<DType>& preferred) {
  if (preferred) return {canonical(*preferred), false};
  if (a.dtype() == b.dtype() && !(a.weak_type() && b.weak_type())) return {a.dtype(), false};
  return result_type({a, b});
}

}  // namespace

Array dot(const Array& a, const Array& b, const ProductOptions& options) {
  const ScalarType type = product_type(a, b, options.preferred_element_type);
  DotDimensionNumbers numbers;
  if (a.ndim() != 0 && b.ndim() != 0) {
    numbers.lhs_contracting = {a.ndim() - 1};
    numbers.rhs_contracting = {std::max<int64_t>(0, b.ndim() - 2)};
  }
  Array product = lax::dot_general(a, b, numbers, {options.precision, type.dtype});
  return lax::convert_element_type(product, type.dtype, type.weak);
}

Array matmul(const Array& a, const Array& b, const ProductOptions& options) {
  for (const Array* x : {&a, &b}) {
    if (x->ndim() > 0) continue;
    throw ValueError(
        concat("matmul: operand ", x == &a ? 0 : 1, " must have at least one dimension, got ", to_string(x->type())));
  }
  const ScalarType type = product_type(a, b, options.preferred_element_type);
  const bool a_is_matrix = a.ndim() > 1, b_is_matrix = b.ndim() > 1;
  const int64_t a_batch = std::max<int64_t>(0, a.ndim() - 2), b_batch = std::max<int64_t>(0, b.ndim() - 2);
  const int64_t batch = std::max(a_batch, b_batch);
  if (batch == 0 && !out_sharding_in_scope().is_explicit()) {
    const Array product = lax::dot_general(a, b, {{a.ndim() - 1}, {0}, {}, {}}, {options.precision, type.dtype});
    return lax::convert_element_type(product, type.dtype, type.weak);
  }

  // Batch axes that are missing or of size one on one side are free axes of the other: nothing is broadcast.
  Ints a_squeeze, b_squeeze, both_squeeze, shared, a_free, b_free;
  DotDimensionNumbers numbers;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t a_axis = i - (batch - a_batch), b_axis = i - (batch - b_batch);
    const auto a_left = static_cast<int64_t>(shared.size() + a_free.size());
    const auto b_left = static_cast<int64_t>(shared.size() + b_free.size());
    if (a_axis < 0) {
      b_free.push_back(i);
    } else if (b_axis < 0) {
      a_free.push_back(i);
    } else if (a.shape(a_axis) == 1 || b.shape(b_axis) == 1) {
      const bool a_one = a.shape(a_axis) == 1, b_one = b.shape(b_axis) == 1;
      if (a_one) a_squeeze.push_back(a_axis);
      if (b_one) b_squeeze.push_back(b_axis);
      if (a_one && b_one)
        both_squeeze.push_back(i);
      else
        (a_one ? b_free : a_free).push_back(i);
    } else if (a.shape(a_axis) == b.shape(b_axis)) {
      numbers.lhs_batch.push_back(a_left);
      numbers.rhs_batch.push_back(b_left);
      shared.push_back(i);
    } else {
      throw ValueError(concat("matmul: batch dimensions must be equal or one, got ", to_string(a.type()), " and ",
                              to_string(b.type())));
    }
  }
  if (a_is_matrix) a_free.push_back(batch);
  if (b_is_matrix) b_free.push_back(batch + a_is_matrix);
  Ints order = shared;
  order.insert(order.end(), a_free.begin(), a_free.end());
  order.insert(order.end(), b_free.begin(), b_free.end());
  Ints permutation = range(static_cast<int64_t>(order.size()));
  std::sort(permutation.begin(), permutation.end(), [&](int64_t x, int64_t y) { return at(order, x) < at(order, y); });

  Array lhs = lax::squeeze(a, a_squeeze), rhs = lax::squeeze(b, b_squeeze);
  numbers.lhs_contracting = {lhs.ndim() - 1};
  numbers.rhs_contracting = {rhs.ndim() - 1 - b_is_matrix};
  Ints places(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    places[static_cast<std::size_t>(permutation[i])] = static_cast<int64_t>(i);
  const OutShardingScope scope(permuted_out_sharding(places));
  Array product = lax::dot_general(lhs, rhs, numbers, {options.precision, type.dtype});
  Array result = lax::transpose(product, permutation);
  if (!both_squeeze.empty()) result = lax::expand_dims(result, both_squeeze);
  return lax::convert_element_type(result, type.dtype, type.weak);
}

namespace {

Array conjugated(const Array& x) { return is_complex(x.dtype()) ? lax::conj(x) : x; }

void require_core(const char* name, const Array& x, int64_t rank) {
  if (x.ndim() >= rank) return;
  throw ValueError(concat(name, ": an operand of at least ", rank, " dimensions is needed, got ", to_string(x.type())));
}

void require_equal(const char* name, const Array& x1, int64_t axis1, const Array& x2, int64_t axis2) {
  if (x1.shape(axis1) == x2.shape(axis2)) return;
  throw ValueError(
      concat(name, ": the contracted sizes must be equal, got ", to_string(x1.type()), " and ", to_string(x2.type())));
}

}  // namespace

Array vdot(const Array& a, const Array& b, const ProductOptions& options) {
  Array flat = ravel(conjugated(a));
  return dot(flat, ravel(b), options);
}

Array inner(const Array& a, const Array& b, const ProductOptions& options) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    if (!options.preferred_element_type) return a * b;
    const DType dtype = canonical(*options.preferred_element_type);
    Array converted = a.astype(dtype);
    return converted * b.astype(dtype);
  }
  return tensordot(a, b,
                   {.axes = std::pair(Ints{-1}, Ints{-1}),
                    .precision = options.precision,
                    .preferred_element_type = options.preferred_element_type});
}

Array outer(const Array& a, const Array& b) {
  Arrays both = promote_dtypes({a, b});
  Array expanded = lax::expand_dims(ravel(both[0]), {1});
  return expanded * lax::expand_dims(ravel(both[1]), {0});
}

Array matvec(const Array& x1, const Array& x2) {
  require_core("matvec", x1, 2);
  require_core("matvec", x2, 1);
  require_equal("matvec", x1, -1, x2, -1);
  return lax::squeeze(matmul(x1, lax::expand_dims(x2, {-1})), {-1});
}

Array vecmat(const Array& x1, const Array& x2) {
  require_core("vecmat", x1, 1);
  require_core("vecmat", x2, 2);
  require_equal("vecmat", x1, -1, x2, -2);
  return lax::squeeze(matmul(lax::expand_dims(conjugated(x1), {-2}), x2), {-2});
}

Array vecdot(const Array& x1, const Array& x2, const VecdotOptions& options) {
  for (const Array* x : {&x1, &x2}) {
    if (options.axis >= -x->ndim() && options.axis < x->ndim()) continue;
    throw IndexError(concat("vecdot: axis ", options.axis, " is out of bounds for ", to_string(x->type())));
  }
  require_equal("vecdot", x1, options.axis, x2, options.axis);
  Array row = lax::expand_dims(conjugated(moveaxis(x1, options.axis, -1)), {-2});
  Array column = lax::expand_dims(moveaxis(x2, options.axis, -1), {-1});
  return lax::squeeze(matmul(row, column, {options.precision, options.preferred_element_type}), {-2, -1});
}

Array tensordot(const Array& a, const Array& b, const TensordotOptions& options) {
  const ScalarType type = product_type(a, b, options.preferred_element_type);
  DotDimensionNumbers numbers;
  if (!options.axes) {
    if (options.count > std::min(a.ndim(), b.ndim())) {
      throw TypeError(concat("Number of tensordot axes (axes ", options.count, ") exceeds input ranks (", a.ndim(),
                             " and ", b.ndim(), ") of ", to_string(a.type()), " and ", to_string(b.type())));
    }
    numbers.lhs_contracting = range(a.ndim(), a.ndim() - options.count);
    numbers.rhs_contracting = range(options.count);
  } else {
    const auto& [a_axes, b_axes] = *options.axes;
    if (a_axes.size() != b_axes.size()) {
      throw TypeError(
          concat("tensordot requires axes lists to have equal length, got ", tuple(a_axes), " and ", tuple(b_axes)));
    }
    for (int64_t axis : a_axes) numbers.lhs_contracting.push_back(canonical_axis("tensordot", axis, a.ndim()));
    for (int64_t axis : b_axes) numbers.rhs_contracting.push_back(canonical_axis("tensordot", axis, b.ndim()));
  }
  Array product = lax::dot_general(a, b, numbers, {options.precision, type.dtype});
  return lax::convert_element_type(product, type.dtype, type.weak);
}

Array kron(const Array& a, const Array& b) {
  Arrays both = promote_dtypes({a, b});
  const int64_t rank = std::max(a.ndim(), b.ndim());
  Array x = lax::broadcast_to_rank(both[0], rank), y = lax::broadcast_to_rank(both[1], rank);
  Ints even, odd;
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
    shape.push_back(x.shape(i) * y.shape(i));
  }
  Array expanded = lax::expand_dims(x, odd);
  return lax::reshape(expanded * lax::expand_dims(y, even), shape);
}

Array cross(const Array& a, const Array& b, const CrossOptions& options) {
  Array x = moveaxis(a, options.axis.value_or(options.axisa), -1);
  Array y = moveaxis(b, options.axis.value_or(options.axisb), -1);
  for (const Array* operand : {&x, &y}) {
    if (operand->shape(-1) == 2 || operand->shape(-1) == 3) continue;
    throw ValueError(concat("cross: vectors must have 2 or 3 components, got ", to_string(operand->type())));
  }
  auto component = [](const Array& v, int64_t i) {
    return i < v.shape(-1) ? lax::index_in_dim(v, i, -1, false) : lax::zeros_like(lax::index_in_dim(v, 0, -1, false));
  };
  auto determinant = [&](int64_t i, int64_t j) {
    Array component_x = component(x, i), product = component_x * component(y, j), component_value = component(x, j);
    return product - component_value * component(y, i);
  };
  if (x.shape(-1) == 2 && y.shape(-1) == 2) return determinant(0, 1);
  Array c = stack({determinant(1, 2), determinant(2, 0), determinant(0, 1)});
  c = lax::convert_element_type(c, c.dtype(), false);
  return moveaxis(c, 0, options.axis.value_or(options.axisc));
}

}  // namespace capibara::jax::numpy
