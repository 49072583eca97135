// The linear algebra family, and the matrix expressions that its rules use.
#include "lax/linalg/linalg.h"
#include "lax/sharding/splits.h"

#include <capibara/config.h>
#include <capibara/indexing.h>

#include "lax/reduce/monoid.h"
#include "lax/sharding/factors.h"
#include "program/derive/derive.h"

#include <algorithm>

namespace capibara {

namespace lax = jax::lax;

Family linalg_family() {
  Family family;
  for (auto part : {factor_records, orthogonal_records, spectral_records, solver_records}) {
    for (PrimitiveRecord& record : part()) family.push_back(std::move(record));
  }
  linalg::add_lapack_lowering(family);
  return family;
}

namespace linalg {

// ---- operands ---------------------------------------------------------------------------------------------------

ArrayType Operands::type(DType dtype, std::initializer_list<int64_t> core_shape) const {
  ArrayType result;
  result.dtype = dtype;
  result.shape = batch;
  result.shape.insert(result.shape.end(), core_shape.begin(), core_shape.end());
  result.weak_type = weak;
  return result;
}

Operands split_operands(const std::string& op, std::span<const ArrayType> types, const OperandRules& rules) {
  require_count(op, types, rules.ranks.size());
  Operands operands;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ArrayType& type = types[i];
    int64_t rank = rules.ranks[i];
    bool accepted = rules.real_only ? is_floating(type.dtype) : is_inexact(type.dtype);
    if (!accepted && (rules.same_dtypes || i == 0)) {
      throw TypeError(concat(op, " does not accept dtype ", to_string(type.dtype), " at position ", i,
                             ". Accepted dtypes are subtypes of floating",
                             rules.real_only ? "." : ", complexfloating."));
    }
    if (type.rank() < rank) {
      throw TypeError(
          concat("Input ", i, " to ", op, " must have rank at least ", rank, ", but got ", to_string(type)));
    }
    if (!rules.batched && type.rank() != rank) {
      throw TypeError(
          concat("Input ", i, " to ", op, " must have a rank of exactly ", rank, ", but got ", to_string(type)));
    }
    Shape batch(type.shape.begin(), type.shape.end() - rank);
    if (i == 0) operands.batch = batch;
    if (batch != operands.batch) {
      throw TypeError(concat("All inputs to ", op, " must have the same batch dimensions, got ", to_string(types[0]),
                             " and ", to_string(type)));
    }
    operands.core.emplace_back(type.shape.end() - rank, type.shape.end());
    operands.weak = operands.weak && type.weak_type;
  }
  if (rules.same_dtypes) require_same_dtypes(op, types);
  return operands;
}

void require_square(const std::string& op, const Shape& core) {
  if (core[0] != core[1]) {
    throw ValueError(
        concat("The input to ", op, " must be a square matrix. Got shape (", core[0], ", ", core[1], ")."));
  }
}

Sample sample(DType dtype, const std::vector<Shape>& shapes, Attrs attrs) {
  Sample result;
  for (const Shape& shape : shapes) result.inputs.push_back(scalar_type(dtype).with_shape(shape));
  result.attrs = std::move(attrs);
  return result;
}

PrimitiveRecord decomposition(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.factors = leading_factors(2);
  record.splits = linalg_splits({2});
  record.doc = std::move(doc);
  record.dtypes = lapack_dtypes;
  record.batch = batch_leading;
  return record;
}

std::vector<Sample> matrix_samples(DType dtype, const std::vector<Shape>& shapes, const Attrs& attrs) {
  std::vector<Sample> samples;
  for (const Shape& shape : shapes) samples.push_back(sample(dtype, {shape}, attrs));
  return samples;
}

void require_matrices(const char* op, const Array& x) {
  if (x.ndim() < 2) throw TypeError(concat(op, ": the input must have rank at least 2, got ", to_string(x.type())));
}

// ---- matrices ---------------------------------------------------------------------------------------------------

namespace {

Ints leading(int64_t count) {
  Ints dims;
  for (int64_t i = 0; i < count; ++i) dims.push_back(i);
  return dims;
}

// row + k >= column.
Array triangle_mask(int64_t rows, int64_t cols, int64_t k) {
  DType index = config().enable_x64 ? DType::int64 : DType::int32;
  Array row = lax::add(lax::broadcasted_iota(index, {rows, cols}, 0), exact_scalar(index, k));
  return lax::ge(row, lax::broadcasted_iota(index, {rows, cols}, 1));
}

Array batched_mask(const Array& x, int64_t k) {
  Array mask = triangle_mask(x.shape(-2), x.shape(-1), k);
  if (x.ndim() == 2) return mask;
  return lax::broadcast(mask, Shape(x.shape().begin(), x.shape().end() - 2));
}

}  // namespace

Array transposed(const Array& x) {
  Ints order = leading(x.ndim());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return lax::transpose(x, order);
}

Array adjoint(const Array& x) {
  Array t = transposed(x);
  return is_complex(x.dtype()) ? lax::conj(t) : t;
}

Array symmetrized(const Array& x) { return lax::div(lax::add(x, adjoint(x)), scalar_of(x.dtype(), 2)); }

Array tril(const Array& x, int64_t k) {
  Array mask = batched_mask(x, k);
  return lax::select(mask, x, lax::zeros(x.type()));
}

Array triu(const Array& x, int64_t k) {
  Array mask = batched_mask(x, k - 1);
  return lax::select(mask, lax::zeros(x.type()), x);
}

Array eye(DType dtype, int64_t rows, int64_t cols) {
  Array row = lax::add(lax::broadcasted_iota(DType::int32, {rows, cols}, 0), exact_scalar(DType::int32, 0));
  return lax::convert_element_type(lax::eq(row, lax::broadcasted_iota(DType::int32, {rows, cols}, 1)), dtype, false);
}

Array with_rank(const Array& x, int64_t rank) {
  return x.ndim() >= rank ? x : lax::expand_dims(x, leading(rank - x.ndim()));
}

Array diagonal(const Array& x) {
  Array i = lax::iota(DType::int32, std::min(x.shape(-2), x.shape(-1)));
  return x(ellipsis, i, i);
}

Array diagonal_matrix(const Array& x) {
  Array i = lax::iota(DType::int32, x.shape(-1));
  ArrayType type = x.type().strong();
  type.shape.push_back(type.shape.back());
  return lax::zeros(type).at(ellipsis, i, i).set(x);
}

namespace {

Array part_of_axis(const Array& x, int64_t begin, int64_t end, int64_t from_last) {
  std::size_t axis = x.shape().size() - static_cast<std::size_t>(from_last);
  Ints starts(x.shape().size(), 0), limits = x.shape();
  if (begin == 0 && end == limits[axis]) return x;
  starts[axis] = begin;
  limits[axis] = end;
  return lax::slice(x, starts, limits);
}

}  // namespace

Array rows(const Array& x, int64_t begin, int64_t end) { return part_of_axis(x, begin, end, 2); }
Array cols(const Array& x, int64_t begin, int64_t end) { return part_of_axis(x, begin, end, 1); }

Array matmul(const Array& x, const Array& y, const std::string& precision) {
  return lax::batch_matmul(x, y, {.precision = precision, .preferred_element_type = x.dtype()});
}

Array product(const Array& x, const Array& y) { return lax::batch_matmul(x, y, {.precision = "highest"}); }

Array real_part(const Array& x) { return is_complex(x.dtype()) ? lax::real(x) : x; }

Array as_dtype(const Array& x, DType dtype) {
  return x.dtype() == dtype ? x : lax::convert_element_type(x, dtype, false);
}

Array triangular_solve(const Array& a, const Array& b, const TriangularForm& form) {
  static const Primitive p = primitive("triangular_solve");
  return bind1(p, {a, b},
               {{"left_side", form.left_side},
                {"lower", form.lower},
                {"transpose_a", form.transpose_a},
                {"conjugate_a", form.conjugate_a && is_complex(a.dtype())},
                {"unit_diagonal", form.unit_diagonal}});
}

Array map_batch(const MatrixFunction& function, std::span<const Array> inputs, int64_t batch_dims) {
  if (batch_dims == 0) return function(inputs);
  FlatFunction inner = [&](std::span<const Array> in) { return Arrays{map_batch(function, in, batch_dims - 1)}; };
  std::vector<int64_t> dims(inputs.size(), 0);
  return vmap_flat(inner, inputs, dims, {0}, {"", inputs[0].shape(0)})[0];
}

}  // namespace linalg

}  // namespace capibara
