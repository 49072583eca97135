// Nearest codes of vectors: their meaning as a composition over blocks of vectors, the record, encoding and decoding.
#include <capibara/control.h>
#include <capibara/kernels/quantization.h>
#include <capibara/lax.h>

#include <algorithm>

#include "kernels/composed.h"
#include "lax/families.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr int64_t block_scores = int64_t{1} << 20;  // at most, per block of vectors

DType score_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// ---- the composition --------------------------------------------------------------------------------------------

// Finds the code [batch, codes, dim] of the largest score for each vector [batch, rows, dim].
class Scorer {
 public:
  Scorer(const Array& codes, const std::string& metric) : codes_(codes), dtype_(score_dtype(codes.dtype())) {
    if (metric == "dot_product") return;
    const Array wide = codes.astype(dtype_), squares = lax::reduce_sum(wide * wide, {.axes = {2}});
    if (metric == "euclidean") {
      offset_ = lax::expand_dims(squares * scalar_of(dtype_, -0.5), {1});
    } else {
      // 1 / length, and 0 for all-zero codes, whose scores are then 0.
      const Array zero = lax::zeros_like(squares), one = lax::full_like(squares, Array(1.0));
      const Array some = lax::ne(squares, zero);
      factor_ = lax::expand_dims(lax::select(some, lax::rsqrt(lax::select(some, squares, one)), zero), {1});
    }
  }

  Array nearest(const Array& vectors) const {
    Array scores = lax::dot_general(vectors, codes_, {{2}, {2}, {0}, {0}},
                                    {.precision = "highest", .preferred_element_type = dtype_});
    if (offset_.defined()) scores = scores + offset_;
    if (factor_.defined()) scores = scores * factor_;
    return lax::argmax(scores, 2, DType::int32);
  }

 private:
  Array codes_;
  DType dtype_;
  Array offset_, factor_;  // [batch, 1, codes]
};

// (vectors [batch..., rows, dim], codes [batch..., codes, dim]) -> indices [batch..., rows]
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  Shape result = in[0].shape();
  const int64_t dim = result.back(), rows = result[result.size() - 2], count = in[1].shape(-2);
  result.pop_back();
  int64_t batch = 1;
  for (std::size_t i = 0; i + 1 < result.size(); ++i) batch *= result[i];
  const Array vectors = lax::reshape(in[0], {batch, rows, dim});
  const Scorer scorer(lax::reshape(in[1], {batch, count, dim}), attrs.text("distance_metric"));
  const int64_t block = std::max<int64_t>(1, block_scores / std::max<int64_t>(1, batch * count));
  if (rows <= block) return {lax::reshape(scorer.nearest(vectors), result)};
  const int64_t blocks = rows / block, whole = blocks * block;
  const Array first = lax::reshape(lax::slice_in_dim(vectors, 0, whole, 1, 1), {batch, blocks, block, dim});
  const Array found = lax::map([&](const Array& one) { return scorer.nearest(one); },
                               lax::transpose(first, {1, 0, 2, 3}));  // [blocks, batch, block]
  Arrays parts = {lax::reshape(lax::transpose(found, {1, 0, 2}), {batch, whole})};
  if (whole < rows) parts.push_back(scorer.nearest(lax::slice_in_dim(vectors, whole, rows, 1, 1)));
  return {lax::reshape(parts.size() == 1 ? parts[0] : lax::concatenate(parts, 1), result)};
}

// ---- the record -------------------------------------------------------------------------------------------------

void require_metric(const std::string& metric) {
  for (const char* known : {"euclidean", "cosine", "dot_product"}) {
    if (metric == known) return;
  }
  throw ValueError(concat(
      "vq_encode: expected 'euclidean', 'cosine' or 'dot_product' (argument 'distance_metric'), got '", metric, "'"));
}

TypeResult encode_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("vq_encode", types, 2);
  require_metric(attrs.text("distance_metric"));
  const ArrayType &vectors = types[0], &codes = types[1];
  if (vectors.rank() < 2 || !is_floating(vectors.dtype))
    throw TypeError(
        concat("vq_encode: expected a floating array [..., dim] (argument 'inputs'), got ", to_string(vectors)));
  Shape expected = vectors.shape;
  const std::size_t last = expected.size() - 2;
  if (codes.rank() == vectors.rank()) expected[last] = codes.shape[last];
  if (codes.shape != expected || codes.dtype != vectors.dtype || codes.shape[last] < 1)
    throw TypeError(concat("vq_encode: expected ", to_string(vectors.dtype), " codes of ", vectors.shape.back(),
                           " elements, one at least (argument 'codebook'), got ", to_string(codes), " for inputs ",
                           to_string(vectors)));
  ArrayType result = vectors.with_dtype(DType::int32).strong();
  result.shape.pop_back();
  return Types{result};
}

// A batch is more vectors if they share one codebook, else one more batch of codebooks.
BatchResult batch_vectors(const BatchArgs& args) {
  if (args.mapped(1)) return batch_leading(args);
  const int64_t size = args.axis.size;
  const Array vectors = args.inputs[0];
  const int64_t rank = vectors.ndim();
  const Array moved = move_axis(vectors, args.dims[0], rank - 3);
  Shape merged = moved.shape(), split;
  merged.erase(merged.begin() + (rank - 3));
  merged[static_cast<std::size_t>(rank - 3)] *= size;
  split.assign(moved.shape().begin(), moved.shape().end() - 1);
  const Array found =
      capibara::bind(args.primitive, Arrays{lax::reshape(moved, merged), args.inputs[1]}, args.attrs)[0];
  return {{lax::reshape(found, split)}, {rank - 3}};
}

PrimitiveRecord encode_record() {
  PrimitiveRecord record;
  record.name = "vq_encode";
  record.doc = "The index of the code nearest to each vector.";
  record.dtypes = float_dtypes;
  record.type = encode_type;
  record.lower = compose;
  record.batch = batch_vectors;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 2.0 * static_cast<double>(types[0].size()) * static_cast<double>(types[1].shape[types[1].shape.size() - 2]);
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    const ArrayType type = scalar_of(dtype, 0).type();
    auto add = [&](Shape vectors, Shape codes, const char* metric) {
      samples.push_back(
          {{type.with_shape(std::move(vectors)), type.with_shape(std::move(codes))}, {{"distance_metric", metric}}});
    };
    add({9, 5}, {7, 5}, "euclidean");
    add({2, 3, 4}, {2, 6, 4}, "cosine");
    add({4, 1}, {1, 1}, "dot_product");
    return samples;
  };
  record = composed(std::move(record));
  record.differentiable = false;
  record.jvp = zero_jvp();
  record.transpose = {};
  return record;
}

// ---- products and residuals -------------------------------------------------------------------------------------

// [rows, dim] by [codes, dim], as one call of the operation.
Array encode(const Array& vectors, const Array& codebook, const std::string& metric) {
  static const Primitive& handle = *new Primitive(primitive("vq_encode"));
  return capibara::bind(handle, Arrays{vectors, codebook}, {{"distance_metric", metric}})[0];
}

void require_codebook(const char* op, const Array& codebook, bool residual) {
  if (!is_floating(codebook.dtype()) || codebook.ndim() < 2 || codebook.ndim() > 3 || codebook.shape(-2) < 1)
    throw TypeError(concat(op,
                           ": expected a floating array [codes, dim], [groups, codes, dim / groups] or [stages, codes, "
                           "dim] with one code at least (argument 'codebook'), got ",
                           to_string(codebook.type())));
  if (residual && codebook.ndim() != 3)
    throw TypeError(concat(op, ": expected [stages, codes, dim] with residual=True (argument 'codebook'), got ",
                           to_string(codebook.type())));
}

Array stage_of(const Array& codebook, int64_t stage) { return lax::index_in_dim(codebook, stage, 0, false); }

// The rows of a table at indices [count], which are in range.
Array take_rows(const Array& table, const Array& indices) {
  const int64_t dim = table.shape(1);
  return lax::gather(table, lax::expand_dims(indices, {1}), {{1}, {0}, {0}, {}, {}}, {1, dim},
                     {.mode = lax::GatherScatterMode::promise_in_bounds});
}

// As int32, clamped to [0, count).
Array clamped(const Array& codes, int64_t count) {
  const Array wide = bits(codes.dtype()) < 32 ? codes.astype(DType::int32) : codes;
  const DType dtype = wide.dtype();
  return lax::clamp(scalar_of(dtype, 0), wide, scalar_of(dtype, static_cast<double>(count - 1))).astype(DType::int32);
}

Array decode(const Array& codes, const Array& codebook) {
  return take_rows(codebook, clamped(codes, codebook.shape(-2)));
}

Array encode_residual(const Array& vectors, const Array& codebook, const std::string& metric) {
  Array rest = vectors;
  Arrays stages;
  for (int64_t s = 0; s < codebook.shape(0); ++s) {
    stages.push_back(encode(rest, stage_of(codebook, s), metric));
    if (s + 1 < codebook.shape(0)) rest = rest - decode(stages.back(), stage_of(codebook, s));
  }
  return lax::stack(stages, 1);
}

Array encode_product(const Array& vectors, const Array& codebook, const std::string& metric) {
  const int64_t groups = codebook.shape(0), part = codebook.shape(2);
  const Array parts = lax::transpose(lax::reshape(vectors, {vectors.shape(0), groups, part}), {1, 0, 2});
  return lax::transpose(encode(parts, codebook, metric), {1, 0});
}

}  // namespace

Family vq_encode_records() { return {encode_record()}; }

Array vq_encode(const Array& inputs, const Array& codebook, const VqOptions& options) {
  require_metric(options.distance_metric);
  require_codebook("vq_encode", codebook, options.residual);
  const bool product = codebook.ndim() == 3 && !options.residual;
  const int64_t dim = codebook.shape(-1) * (product ? codebook.shape(0) : 1);
  if (inputs.ndim() < 1 || inputs.shape(-1) != dim || inputs.dtype() != codebook.dtype())
    throw TypeError(concat("vq_encode: expected ", to_string(codebook.dtype()), " vectors of ", dim,
                           " elements (argument 'inputs'), got ", to_string(inputs.type()), " for the ",
                           product ? "product " : "", "codebook ", to_string(codebook.type())));
  if (codebook.ndim() == 3 && codebook.shape(0) < 1)
    throw TypeError(
        concat("vq_encode: expected one codebook at least (argument 'codebook'), got ", to_string(codebook.type())));
  Shape shape(inputs.shape().begin(), inputs.shape().end() - 1);
  const Array vectors = lax::reshape(inputs, {element_count(shape), dim});
  if (codebook.ndim() == 2) return lax::reshape(encode(vectors, codebook, options.distance_metric), shape);
  shape.push_back(codebook.shape(0));
  return lax::reshape(product ? encode_product(vectors, codebook, options.distance_metric)
                              : encode_residual(vectors, codebook, options.distance_metric),
                      shape);
}

Array vq_decode(const Array& codes, const Array& codebook, const VqDecodeOptions& options) {
  require_codebook("vq_decode", codebook, options.residual);
  if (!is_integer(codes.dtype()))
    throw TypeError(concat("vq_decode: expected integers (argument 'codes'), got ", to_string(codes.type())));
  const int64_t dim = codebook.shape(-1);
  Shape shape = codes.shape();
  if (codebook.ndim() == 2) {
    shape.push_back(dim);
    return lax::reshape(decode(lax::reshape(codes, {codes.size()}), codebook), shape);
  }
  const int64_t books = codebook.shape(0), count = codebook.shape(1);
  if (codes.ndim() < 1 || codes.shape(-1) != books || books < 1)
    throw TypeError(concat("vq_decode: expected codes [..., ", books, "] (argument 'codes'), got ",
                           to_string(codes.type()), " for the codebook ", to_string(codebook.type())));
  shape.pop_back();
  const Array rows = lax::reshape(codes, {element_count(shape), books});
  if (options.residual) {
    Array sum;
    for (int64_t s = 0; s < books; ++s) {
      const Array part = decode(lax::index_in_dim(rows, s, 1, false), stage_of(codebook, s));
      sum = sum.defined() ? sum + part : part;
    }
    shape.push_back(dim);
    return lax::reshape(sum, shape);
  }
  // One table with the codes of all groups, each group at its own offset.
  const Array offsets = lax::iota(DType::int32, books) * scalar_of(DType::int32, static_cast<double>(count));
  const Array places = lax::reshape(clamped(rows, count) + offsets, {rows.size()});
  shape.push_back(books * dim);
  return lax::reshape(take_rows(lax::reshape(codebook, {books * count, dim}), places), shape);
}

}  // namespace capibara::kernels
