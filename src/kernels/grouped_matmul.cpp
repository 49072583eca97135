// Matmuls of ragged groups of rows, and the sums over each group that their derivatives need: each is linear in both of
// its arrays, and the derivatives of each use the other.
//
// grouped_matmul: (x [*batch, rows, inner], weights [groups, inner, columns], sizes [*batch, groups]); the weights may
// be [*batch, ...] too. grouped_outer: (x [*batch, rows, inner], y [*batch, rows, columns], sizes) -> [*batch, groups,
// inner, columns].
#include <capibara/kernels/experts.h>
#include <capibara/lax.h>

#include "lax/contract/ragged_blocks.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "program/derive/derive.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

Array matmul(const Array& x, const Array& weights, const Array& sizes, bool transposed) {
  static const Primitive& handle = *new Primitive(primitive("grouped_matmul"));
  return capibara::bind(handle, Arrays{x, weights, sizes}, {{"transpose_weights", transposed}})[0];
}

Array outer(const Array& x, const Array& y, const Array& sizes) {
  static const Primitive& handle = *new Primitive(primitive("grouped_outer"));
  return capibara::bind(handle, Arrays{x, y, sizes})[0];
}

// ---- meaning ----------------------------------------------------------------------------------------------------

bool have_batch(const Array& x, const Array& weights) { return weights.ndim() == x.ndim() + 1; }

Arrays compose_matmul(std::span<const Array> in, const Attrs& attrs) {
  const Array &x = in[0], &weights = in[1], &sizes = in[2];
  if (x.ndim() == 2) {
    return {multiply_ragged_rows(x, weights, sizes, attrs.boolean("transpose_weights"), {Attr(), x.dtype()})};
  }
  const std::vector<int64_t> dims = {0, have_batch(x, weights) ? 0 : not_mapped, 0};
  return vmap_flat([&](std::span<const Array> one) { return compose_matmul(one, attrs); }, in, dims, {},
                   {"", x.shape(0)});
}

Arrays compose_outer(std::span<const Array> in, const Attrs& attrs) {
  const Array& x = in[0];
  if (x.ndim() == 2) return {multiply_ragged_inner(x, in[1], in[2], {Attr(), x.dtype()})};
  const std::vector<int64_t> dims = {0, 0, 0};
  return vmap_flat([&](std::span<const Array> one) { return compose_outer(one, attrs); }, in, dims, {},
                   {"", x.shape(0)});
}

// ---- types ------------------------------------------------------------------------------------------------------

void refuse(const char* op, const char* argument, const std::string& expected, const ArrayType& got) {
  throw TypeError(concat(op, ": expected ", expected, " (argument '", argument, "'), got ", to_string(got)));
}

Shape batch_of(const ArrayType& x) { return Shape(x.shape.begin(), x.shape.end() - 2); }

Shape joined(Shape batch, std::initializer_list<int64_t> own) {
  batch.insert(batch.end(), own);
  return batch;
}

void require_rows(const char* op, const ArrayType& x, const ArrayType& sizes) {
  if (x.rank() < 2 || !is_floating(x.dtype)) refuse(op, "x", "a floating array [..., rows, inner]", x);
  if (!is_integer(sizes.dtype) || sizes.rank() != x.rank() - 1 ||
      !std::equal(sizes.shape.begin(), sizes.shape.end() - 1, x.shape.begin())) {
    refuse(op, "group_sizes", concat("integers [..., groups] with the leading dimensions of ", to_string(x)), sizes);
  }
}

TypeResult matmul_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const char* op = "grouped_matmul";
  require_count(op, types, 3);
  const ArrayType &x = types[0], &weights = types[1], &sizes = types[2];
  require_rows(op, x, sizes);
  const bool transposed = attrs.boolean("transpose_weights"), is_batched = weights.rank() == x.rank() + 1;
  const int64_t inner = x.shape.back(), groups = sizes.shape.back();
  const auto size = [&](std::size_t from_end) { return weights.shape[weights.shape.size() - from_end]; };
  if (weights.dtype != x.dtype || (weights.rank() != 3 && !is_batched) || size(3) != groups ||
      size(transposed ? 1 : 2) != inner ||
      (is_batched && !std::equal(x.shape.begin(), x.shape.end() - 2, weights.shape.begin()))) {
    refuse(op, "weights",
           concat(dtype_name(x.dtype), "[", groups, transposed ? ",columns," : ",", inner,
                  transposed ? "]" : ",columns]", " for x of ", to_string(x), " and ", groups, " groups"),
           weights);
  }
  return Types{x.with_shape(joined(batch_of(x), {x.shape[x.shape.size() - 2], size(transposed ? 2 : 1)})).strong()};
}

TypeResult outer_type(std::span<const ArrayType> types, const Attrs&) {
  const char* op = "grouped_outer";
  require_count(op, types, 3);
  const ArrayType &x = types[0], &y = types[1], &sizes = types[2];
  require_rows(op, x, sizes);
  if (y.dtype != x.dtype || y.rank() != x.rank() || !std::equal(x.shape.begin(), x.shape.end() - 1, y.shape.begin())) {
    refuse(op, "y", concat(dtype_name(x.dtype), " with the rows of ", to_string(x)), y);
  }
  return Types{x.with_shape(joined(batch_of(x), {sizes.shape.back(), x.shape.back(), y.shape.back()})).strong()};
}

// ---- derivatives ------------------------------------------------------------------------------------------------

JvpResult product_jvp(const JvpArgs& args) {
  const Array &x = args.primals[0], &y = args.primals[1], &sizes = args.primals[2];
  const auto product = [&](const Array& a, const Array& b) {
    return capibara::bind(args.primitive, Arrays{a, b, sizes}, args.attrs)[0];
  };
  Array from_x, from_y;
  if (args.tangents[0].defined()) from_x = product(args.tangents[0], y);
  if (args.tangents[1].defined()) from_y = product(x, args.tangents[1]);
  return {{product(x, y)}, {add_tangents(from_x, from_y)}};
}

// Gradients of weights shared by batches are summed over the batches.
Array over_batches(const Array& gradient, std::size_t batch_dims) {
  if (batch_dims == 0) return gradient;
  Ints axes;
  for (std::size_t i = 0; i < batch_dims; ++i) axes.push_back(static_cast<int64_t>(i));
  const DType wide = bits(gradient.dtype()) < 32 ? DType::float32 : gradient.dtype();
  return lax::reduce_sum(gradient.astype(wide), {axes}).astype(gradient.dtype());
}

Arrays matmul_transpose(const TransposeArgs& args) {
  const Array &cotangent = args.cotangents[0], &sizes = args.inputs[2];
  if (!cotangent.defined()) return Arrays(3);
  const bool transposed = args.attrs.boolean("transpose_weights");
  if (args.linear(0)) return {matmul(cotangent, args.inputs[1], sizes, !transposed), Array(), Array()};
  const Array& x = args.inputs[0];
  const Array gradient = transposed ? outer(cotangent, x, sizes) : outer(x, cotangent, sizes);
  const auto batch_dims = static_cast<std::size_t>(gradient.ndim() - args.types[1].rank());
  return {Array(), over_batches(gradient, batch_dims), Array()};
}

Arrays outer_transpose(const TransposeArgs& args) {
  const Array &cotangent = args.cotangents[0], &sizes = args.inputs[2];
  if (!cotangent.defined()) return Arrays(3);
  if (args.linear(0)) return {matmul(args.inputs[1], cotangent, sizes, true), Array(), Array()};
  return {Array(), matmul(args.inputs[0], cotangent, sizes, false), Array()};
}

// ---- batches ----------------------------------------------------------------------------------------------------

BatchResult matmul_batch(const BatchArgs& args) {
  const Array x = batch_at(args.inputs[0], args.dims[0], args.axis);
  const Array sizes = batch_at(args.inputs[2], args.dims[2], args.axis);
  Array weights = args.inputs[1];
  if (args.mapped(1)) weights = move_axis(weights, args.dims[1], 0);
  if (!args.mapped(1) && weights.ndim() == x.ndim() && weights.ndim() > 3)  // of the existing batches
    weights = batch_at(weights, not_mapped, args.axis);
  if (args.mapped(1) && weights.ndim() == 4 && x.ndim() > 3) {
    Shape shape(x.shape().begin(), x.shape().end() - 2);
    const auto own = static_cast<int64_t>(shape.size());
    shape.insert(shape.end(), weights.shape().begin() + 1, weights.shape().end());
    weights = lax::broadcast_in_dim(weights, shape, {0, own, own + 1, own + 2});
  }
  return {{matmul(x, weights, sizes, args.attrs.boolean("transpose_weights"))}, {0}};
}

BatchResult outer_batch(const BatchArgs& args) {
  Arrays inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  return {{outer(inputs[0], inputs[1], inputs[2])}, {0}};
}

// ---- records ----------------------------------------------------------------------------------------------------

Sample sample_of(DType dtype, Shape x, Shape y, Shape sizes, Attrs attrs) {
  auto type = [](DType of, Shape shape) { return scalar_of(of, 0).type().with_shape(std::move(shape)); };
  return {.inputs = {type(dtype, std::move(x)), type(dtype, std::move(y)), type(DType::int32, std::move(sizes))},
          .attrs = std::move(attrs),
          .low = 0,
          .integers_are_indices = true};
}

PrimitiveRecord matmul_record() {
  PrimitiveRecord record;
  record.name = "grouped_matmul";
  record.doc = "Multiplies each group of rows by a matrix of its own; rows in no group are zero.";
  record.dtypes = float_dtypes;
  record.type = matmul_type;
  record.lower = compose_matmul;
  record.jvp = product_jvp;
  record.transpose = matmul_transpose;
  record.batch = matmul_batch;
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    const int64_t columns = *(types[1].shape.end() - (attrs.boolean("transpose_weights") ? 2 : 1));
    return 2.0 * static_cast<double>(types[0].size()) * static_cast<double>(columns);
  };
  record.samples = [](DType dtype) -> std::vector<Sample> {
    return {sample_of(dtype, {7, 3}, {3, 3, 4}, {3}, {{"transpose_weights", false}}),
            sample_of(dtype, {2, 5, 3}, {2, 4, 3}, {2, 2}, {{"transpose_weights", true}})};
  };
  return record;
}

PrimitiveRecord outer_record() {
  PrimitiveRecord record;
  record.name = "grouped_outer";
  record.doc = "The sum of x^T y over each group of rows: the gradient of the matrices of grouped_matmul.";
  record.dtypes = float_dtypes;
  record.type = outer_type;
  record.lower = compose_outer;
  record.jvp = product_jvp;
  record.transpose = outer_transpose;
  record.batch = outer_batch;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 2.0 * static_cast<double>(types[0].size()) * static_cast<double>(types[1].shape.back());
  };
  record.samples = [](DType dtype) -> std::vector<Sample> {
    return {sample_of(dtype, {7, 3}, {7, 4}, {3}, {}), sample_of(dtype, {2, 5, 3}, {2, 5, 2}, {2, 2}, {})};
  };
  return record;
}

}  // namespace

Family grouped_matmul_records() { return {matmul_record(), outer_record()}; }

Array grouped_matmul(const Array& x, const Array& weights, const Array& group_sizes,
                     const GroupedMatmulOptions& options) {
  Array sizes = group_sizes;
  if (sizes.ndim() == 1 && x.ndim() > 2) sizes = lax::broadcast(sizes, batch_of(x.type()));
  return matmul(x, weights, sizes, options.transpose_weights);
}

}  // namespace capibara::kernels
