// Matmuls with quantized matrices: the meaning of the codes, the record, and quantization to codes of 8 or 4
// bits and to vectors.
#include <capibara/kernels/quantized.h>
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>

#include "core/array/format.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "program/derive/derive.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr const char* matmul_name = "quantized_matmul";
constexpr int64_t nibble_block = 32, nibble_zero = 8;

constexpr int64_t max_summed = 133144;  // products of two bytes of magnitude 127 in 32 bits

enum class Format { int8, int4, vectors };

// The operands are x, codes, scale and a codebook for vectors or the scale of x, where x is rounded to bytes.
bool rounds_x(int64_t operands, int64_t rank_of_last) { return operands == 4 && rank_of_last == 1; }
bool rounds_x(std::span<const ArrayType> types) {
  return rounds_x(static_cast<int64_t>(types.size()), types.back().rank());
}
bool rounds_x(std::span<const Array> operands) {
  return rounds_x(static_cast<int64_t>(operands.size()), operands.back().ndim());
}

Format format_of(std::span<const ArrayType> types) {
  if (types.size() == 4 && !rounds_x(types)) return Format::vectors;
  return types[1].dtype == DType::int8 ? Format::int8 : Format::int4;
}

DType wide_of(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

int64_t blocks_of(int64_t inputs, int64_t block) { return (inputs + block - 1) / block; }

// ---- meaning ----------------------------------------------------------------------------------------------------

// Broadcasts each scale over its block of elements: [outputs, blocks] -> [outputs, blocks, block].
Array along_blocks(const Array& scale, int64_t block) {
  return lax::broadcast_in_dim(scale, {scale.shape(0), scale.shape(1), block}, {0, 1});
}

Array widen_bytes(const Array& codes, const Array& scale, DType dtype) {
  const int64_t outputs = codes.shape(0), inputs = codes.shape(1), blocks = scale.shape(1), block = inputs / blocks;
  const Array parts = lax::reshape(lax::convert_element_type(codes, dtype), {outputs, blocks, block});
  return lax::reshape(parts * along_blocks(lax::convert_element_type(scale, dtype), block), {outputs, inputs});
}

Array widen_nibbles(const Array& codes, const Array& scale, int64_t inputs, DType dtype) {
  const int64_t outputs = codes.shape(0), blocks = scale.shape(1), half = nibble_block / 2;
  const Array bytes = lax::reshape(codes, {outputs, blocks, half});
  const Array low = lax::bitwise_and(bytes, lax::full_like(bytes, 15.0));
  const Array high = lax::shift_right_logical(bytes, lax::full_like(bytes, 4.0));
  const Array all = lax::convert_element_type(lax::concatenate({low, high}, 2), dtype);
  const Array values = (all - scalar_of(dtype, static_cast<double>(nibble_zero))) *
                       along_blocks(lax::convert_element_type(scale, dtype), nibble_block);
  return lax::slice_in_dim(lax::reshape(values, {outputs, blocks * nibble_block}), 0, inputs, 1, 1);
}

Array widen_vectors(const Array& codes, const Array& scale, const Array& codebook, DType dtype) {
  const int64_t outputs = codes.shape(0), vectors = codes.shape(1), stages = codes.shape(2);
  const int64_t groups = codebook.shape(1), entries = codebook.shape(2), dim = codebook.shape(3);
  const Array table = lax::reshape(lax::convert_element_type(codebook, dtype), {stages * groups * entries, dim});
  // The first table entry for a vector and stage.
  const Array vector = lax::broadcasted_iota(DType::int32, {vectors, stages}, 0);
  const Array stage = lax::broadcasted_iota(DType::int32, {vectors, stages}, 1);
  const auto number = [](int64_t value) { return scalar_of(DType::int32, static_cast<double>(value)); };
  const Array group = lax::div(vector * number(groups), lax::full_like(vector, static_cast<double>(vectors)));
  const Array first = (stage * number(groups) + group) * number(entries);
  const Array named = lax::convert_element_type(codes, DType::int32);
  const Array code = lax::min(named, lax::full_like(named, static_cast<double>(entries - 1)));
  const Array index = code + lax::broadcast_in_dim(first, code.shape(), {1, 2});
  const Array found = lax::gather(
      table, lax::expand_dims(index, {3}), {.offset_dims = {3}, .collapsed_slice_dims = {0}, .start_index_map = {0}},
      {1, dim}, {.mode = lax::GatherScatterMode::promise_in_bounds});  // [outputs, vectors, stages, dim]
  const Array sum = lax::reshape(lax::reduce_sum(found, {.axes = {2}}), {outputs, vectors * dim});
  return sum *
         lax::broadcast_in_dim(lax::reshape(lax::convert_element_type(scale, dtype), {outputs}), sum.shape(), {0});
}

// [outputs, inputs]
Array widen(const Array& codes, const Array& scale, const Array* codebook, int64_t inputs, DType dtype) {
  if (codebook) return widen_vectors(codes, scale, *codebook, dtype);
  return codes.dtype() == DType::int8 ? widen_bytes(codes, scale, dtype) : widen_nibbles(codes, scale, inputs, dtype);
}

// The nearest integers, as floats.
Array clipped(const Array& values, double least, double greatest) {
  return lax::clamp(scalar_of(values.dtype(), least), lax::round(values, lax::RoundingMethod::to_nearest_even),
                    scalar_of(values.dtype(), greatest));
}

// The scale, with 1 for blocks of all zeros.
Array nonzero(const Array& scale) {
  return lax::select(lax::eq(scale, lax::zeros_like(scale)), lax::full_like(scale, 1.0), scale);
}

// The matmul of bytes by bytes. Integers have no NaN: the scale of a row that is not finite is NaN instead.
Array multiply_bytes(const Array& own, const Array& codes, const Array& scale, const Array& input_scale) {
  const DType dtype = wide_of(own.dtype());
  const Array x = lax::convert_element_type(own, dtype);
  const int64_t last = x.ndim() - 1;
  Ints rows(static_cast<std::size_t>(last));
  for (int64_t dim = 0; dim < last; ++dim) rows[static_cast<std::size_t>(dim)] = dim;
  const auto along_rows = [&](const Array& of_rows, const Shape& shape) {
    return lax::broadcast_in_dim(of_rows, shape, rows);
  };
  Array steps;  // of each row
  if (input_scale.size() == 0) {
    const Array largest = lax::reduce_max(lax::abs(x), {.axes = {last}});
    steps = lax::select(lax::is_finite(largest), nonzero(largest / scalar_of(dtype, 127)),
                        lax::full_like(largest, std::nan("")));
  } else {
    const Array finite = lax::reduce_and(lax::is_finite(x), {.axes = {last}});
    const Array one = lax::reshape(lax::convert_element_type(input_scale, dtype), {});
    const Array all = lax::broadcast_in_dim(one, finite.shape(), {});
    steps = lax::select(finite, all, lax::full_like(all, std::nan("")));
  }
  const Array near = clipped(x / along_rows(steps, x.shape()), -127, 127);
  const Array bytes = lax::convert_element_type(near, DType::int8);
  const Array sums = lax::dot_general(bytes, codes, {.lhs_contracting = {last}, .rhs_contracting = {1}},
                                      {.preferred_element_type = DType::int32});
  const Array columns = lax::convert_element_type(lax::reshape(scale, {codes.shape(0)}), dtype);
  const Array scaled = lax::convert_element_type(sums, dtype) * along_rows(steps, sums.shape());
  return lax::convert_element_type(scaled * lax::broadcast_in_dim(columns, sums.shape(), {last}), own.dtype());
}

Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  if (rounds_x(in)) return {multiply_bytes(in[0], in[1], in[2], in[3])};
  const DType dtype = wide_of(in[0].dtype());
  const Array matrix = widen(in[1], in[2], in.size() == 4 ? &in[3] : nullptr, attrs.integer("inputs"), dtype);
  const int64_t contracted = attrs.boolean("transposed") ? 0 : 1;
  const Array x = lax::convert_element_type(in[0], dtype);
  const Array result = lax::dot_general(x, matrix, {.lhs_contracting = {x.ndim() - 1}, .rhs_contracting = {contracted}},
                                        {.precision = "highest", .preferred_element_type = dtype});
  return {lax::convert_element_type(result, in[0].dtype())};
}

// ---- types ------------------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const char* argument, const std::string& expected, const ArrayType& got) {
  throw TypeError(concat(matmul_name, ": expected ", expected, " (argument '", argument, "'), got ", to_string(got)));
}

void require_type(const char* argument, const ArrayType& got, DType dtype, const Shape& shape) {
  if (got.dtype == dtype && got.shape == shape) return;
  ArrayType expected = got.with_dtype(dtype).strong();
  expected.shape = shape;
  refuse(argument, to_string(expected), got);
}

// Checks that the arrays of a matrix with this many inputs are consistent; `types` begins with x.
void require_matrix(std::span<const ArrayType> types, int64_t inputs) {
  const ArrayType &codes = types[1], &scale = types[2];
  const Format format = format_of(types);
  const bool vectors = format == Format::vectors, bytes = codes.dtype == DType::uint8;
  if (codes.rank() != (vectors ? 3 : 2) || !(bytes || codes.dtype == (vectors ? DType::uint16 : DType::int8))) {
    refuse("codes",
           vectors ? "uint8 or uint16[outputs,vectors,stages] with a codebook"
                   : "int8[outputs,inputs] or uint8[outputs,bytes]",
           codes);
  }
  const int64_t outputs = codes.shape[0];
  if (scale.rank() != 2 || scale.shape[0] != outputs || scale.shape[1] < 1)
    refuse("scale", concat("[", outputs, ",blocks] with a row for each output"), scale);
  switch (format) {
    case Format::int8:
      require_type("codes", codes, DType::int8, {outputs, inputs});
      require_type("scale", scale, DType::float32, scale.shape);
      if (inputs % scale.shape[1] != 0)
        refuse("scale", concat("a number of blocks that divides the ", inputs, " inputs"), scale);
      if (!rounds_x(types)) return;
      require_type("scale", scale, DType::float32, {outputs, 1});
      if (types[3].dtype != DType::float32 || types[3].shape[0] > 1)
        refuse("input_scale", "float32[1] for all of x or float32[0] for a scale of each row", types[3]);
      if (inputs > max_summed)
        refuse("x", concat("at most ", max_summed, " inputs, whose products 32 bits can hold"), types[0]);
      return;
    case Format::int4: {
      if (rounds_x(types)) refuse("codes", "int8 where x is int8 too", codes);
      const int64_t blocks = blocks_of(inputs, nibble_block);
      require_type("codes", codes, DType::uint8, {outputs, blocks * nibble_block / 2});
      require_type("scale", scale, DType::bfloat16, {outputs, blocks});
      return;
    }
    case Format::vectors: {
      const ArrayType& codebook = types[3];
      const int64_t count = codes.shape[1], stages = codes.shape[2], most = bytes ? 256 : 65536;
      require_type("scale", scale, DType::float32, {outputs, 1});
      if (codebook.rank() != 4 || codebook.dtype != DType::float32 || codebook.shape[0] != stages || stages < 1 ||
          codebook.shape[1] < 1 || codebook.shape[1] > std::max<int64_t>(1, count) || codebook.shape[2] < 1 ||
          codebook.shape[2] > most || codebook.shape[3] < 1) {
        refuse(
            "codebook",
            concat("float32[", stages, ",groups,entries,dim] with 1 to ", count, " groups and 1 to ", most, " entries"),
            codebook);
      }
      if (count * codebook.shape[3] != inputs)
        refuse("codes", concat("vectors of ", codebook.shape[3], " elements for ", inputs, " inputs"), codes);
      return;
    }
  }
}

TypeResult matmul_type(std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.size() != 4) require_count(matmul_name, types, 3);
  const ArrayType& x = types[0];
  const int64_t inputs = attrs.integer("inputs");
  require_matrix(types, inputs);
  const bool transposed = attrs.boolean("transposed");
  if (transposed && rounds_x(types))
    refuse("input_scale", "none with transposed=True, whose sums are over outputs of different scales", types[3]);
  const int64_t outputs = types[1].shape[0], contracted = transposed ? outputs : inputs;
  if (x.rank() < 1 || !is_floating(x.dtype) || x.shape.back() != contracted)
    refuse("x", concat("a floating array [...,", contracted, "]"), x);
  Shape shape = x.shape;
  shape.back() = transposed ? inputs : outputs;
  return Types{x.with_shape(std::move(shape)).strong()};
}

// ---- derivatives and batches --------------------------------------------------------------------------------------

Array multiply(const Primitive& handle, const Array& x, std::span<const Array> matrix, const Attrs& attrs) {
  Arrays operands = {x};
  operands.insert(operands.end(), matrix.begin(), matrix.end());
  return capibara::bind(handle, operands, attrs)[0];
}

// Linear in x; scales and codebooks have the derivatives of the definition. Those of x as bytes are the same: the
// rounding is passed straight through.
JvpResult matmul_jvp(const JvpArgs& args) {
  const bool rounded = rounds_x(args.primals);
  auto matrix = args.primals.subspan(1);
  JvpResult result;
  result.primals = {multiply(args.primitive, args.primals[0], matrix, args.attrs)};
  if (rounded) matrix = matrix.first(2);
  Array tangent;
  if (args.tangents[0].defined()) tangent = multiply(args.primitive, args.tangents[0], matrix, args.attrs);
  Arrays others(args.tangents.begin(), args.tangents.begin() + static_cast<std::ptrdiff_t>(1 + matrix.size()));
  others[0] = Array();
  others[1] = Array();  // integers
  if (std::any_of(others.begin(), others.end(), [](const Array& one) { return one.defined(); })) {
    const JvpResult defined = jvp_flat([&](std::span<const Array> in) { return compose(in, args.attrs); },
                                       args.primals.first(others.size()), others);
    tangent = add_tangents(tangent, defined.tangents[0]);
  }
  result.tangents = {tangent};
  return result;
}

Arrays matmul_transpose(const TransposeArgs& args) {
  Arrays result(args.inputs.size());
  if (!args.cotangents[0].defined()) return result;
  const Attrs attrs = args.attrs.with("transposed", !args.attrs.boolean("transposed"));
  result[0] = multiply(args.primitive, args.cotangents[0], args.inputs.subspan(1), attrs);
  return result;
}

// A batch of x is more rows of one matmul; a batch of matrices is dequantized, as in the definition.
BatchResult matmul_batch(const BatchArgs& args) {
  for (std::size_t i = 1; i < args.inputs.size(); ++i) {
    if (!args.mapped(i)) continue;
    const auto definition = [&](std::span<const Array> inputs) { return compose(inputs, args.attrs); };
    return {vmap_flat(definition, args.inputs, args.dims, {}, args.axis), {0}};
  }
  const Array x = batch_at(args.inputs[0], args.dims[0], args.axis);
  return {{multiply(args.primitive, x, args.inputs.subspan(1), args.attrs)}, {0}};
}

PrimitiveRecord matmul_record() {
  PrimitiveRecord record;
  record.name = matmul_name;
  record.doc = "Multiplies by a matrix of codes: integers of 8 or 4 bits with scales, or indices of vectors.";
  record.dtypes = float_dtypes;
  record.type = matmul_type;
  record.lower = compose;
  record.jvp = matmul_jvp;
  record.transpose = matmul_transpose;
  record.batch = matmul_batch;
  record.traits.nan_checked = true;
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    const ArrayType& x = types[0];
    const int64_t other = attrs.boolean("transposed") ? attrs.integer("inputs") : types[1].shape[0];
    return 2.0 * static_cast<double>(x.size()) * static_cast<double>(other);
  };
  record.samples = [](DType dtype) {
    const auto type = [](DType of, Shape shape) { return scalar_of(of, 0).type().with_shape(std::move(shape)); };
    const auto attrs = [](int64_t inputs, bool transposed) {
      return Attrs{{"inputs", inputs}, {"transposed", transposed}};
    };
    std::vector<Sample> samples = {
        {{type(dtype, {3, 6}), type(DType::int8, {4, 6}), type(DType::float32, {4, 1})}, attrs(6, false)},
        {{type(dtype, {2, 2, 4}), type(DType::int8, {4, 6}), type(DType::float32, {4, 2})}, attrs(6, true)},
        {{type(dtype, {2, 34}), type(DType::uint8, {3, 32}), type(DType::bfloat16, {3, 2})}, attrs(34, false)},
        {{type(dtype, {2, 6}), type(DType::uint8, {5, 3, 2}), type(DType::float32, {5, 1}),
          type(DType::float32, {2, 3, 4, 2})},
         attrs(6, false)}};
    for (Sample& sample : samples) sample.low = 0;
    return samples;
  };
  return record;
}

// ---- matrices as codes --------------------------------------------------------------------------------------------

[[noreturn]] void refuse_matrix(const std::string& expected, const std::string& got) {
  throw ValueError(concat("quantize: expected ", expected, " (argument 'matrix'), got ", got));
}

void require_finite(const Array& largest, const ArrayType& type) {
  if (largest.is_tracer()) return;
  const std::vector<float> sizes = largest.to_vector<float>();
  const int64_t blocks = largest.ndim() == 2 ? largest.shape(1) : 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (std::isfinite(sizes[i])) continue;
    refuse_matrix("finite values", concat(python_float(sizes[i]), " in output ", static_cast<int64_t>(i) / blocks,
                                          " of ", to_string(type), "; look for a step of training that diverged"));
  }
}

// Broadcasts [outputs, blocks, 1] along the elements of each block.
Array along(const Array& scale, const Array& like) {
  return lax::broadcast_in_dim(lax::reshape(scale, {scale.shape(0), scale.shape(1)}), like.shape(), {0, 1});
}

QuantizedMatrix to_bytes(const Array& parts, int64_t inputs) {  // [outputs, blocks, block]
  const Array largest = lax::reduce_max(lax::abs(parts), {.axes = {2}});
  const Array scale = nonzero(largest / scalar_of(DType::float32, 127));
  const Array codes = clipped(parts / along(scale, parts), -127, 127);
  return {lax::reshape(lax::convert_element_type(codes, DType::int8), {parts.shape(0), inputs}), scale, {}, inputs};
}

// Codes range from -8 to 7. The scale maps the element of largest magnitude to about -8 (-7 to -9.5): of six
// candidates the one with the least squared error is chosen.
QuantizedMatrix to_nibbles(const Array& parts, int64_t inputs) {
  const int64_t outputs = parts.shape(0), blocks = parts.shape(1), half = nibble_block / 2;
  const Array greatest = lax::reduce_max(parts, {.axes = {2}}), least = lax::reduce_min(parts, {.axes = {2}});
  const Array extreme = lax::select(lax::gt(greatest, -least), greatest, least);
  Array best_scale, best_codes, best_error;
  for (double levels : {8.0, 7.0, 7.5, 8.5, 9.0, 9.5}) {
    const Array scale = nonzero(lax::convert_element_type(
        lax::convert_element_type(extreme / scalar_of(DType::float32, -levels), DType::bfloat16), DType::float32));
    const Array wide = along(scale, parts), codes = clipped(parts / wide, -8, 7), lost = codes * wide - parts;
    const Array error = lax::reduce_sum(lost * lost, {.axes = {2}});
    if (!best_scale.defined()) {
      best_scale = scale, best_codes = codes, best_error = error;
      continue;
    }
    const Array better = lax::lt(error, best_error);
    best_codes = lax::select(lax::broadcast_in_dim(better, parts.shape(), {0, 1}), codes, best_codes);
    best_scale = lax::select(better, scale, best_scale);
    best_error = lax::select(better, error, best_error);
  }
  const Array shifted = best_codes + scalar_of(DType::float32, static_cast<double>(nibble_zero));
  const Array codes = lax::convert_element_type(shifted, DType::uint8);
  const Array low = lax::slice_in_dim(codes, 0, half, 1, 2), high = lax::slice_in_dim(codes, half, 2 * half, 1, 2);
  const Array bytes = lax::bitwise_or(low, lax::shift_left(high, lax::full_like(high, 4.0)));
  return {lax::reshape(bytes, {outputs, blocks * half}),
          lax::convert_element_type(best_scale, DType::bfloat16),
          {},
          inputs};
}

Arrays operands_of(const QuantizedMatrix& matrix) {
  Arrays operands = {matrix.codes, matrix.scale};
  if (matrix.codebook) operands.push_back(*matrix.codebook);
  return operands;
}

// With the scale of x too.
Arrays all_operands_of(const QuantizedMatrix& matrix) {
  Arrays operands = operands_of(matrix);
  if (!matrix.input_scale) return operands;
  if (matrix.codebook || matrix.input_scale->ndim() != 1)
    refuse("input_scale", matrix.codebook ? "none beside a codebook" : "one dimension", matrix.input_scale->type());
  operands.push_back(*matrix.input_scale);
  return operands;
}

// ---- matrices as vectors ------------------------------------------------------------------------------------------

Array rows_at(const Array& table, const Array& indices) {
  return lax::gather(table, lax::expand_dims(indices, {1}), {{1}, {0}, {0}, {}, {}}, {1, table.shape(1)},
                     {.mode = lax::GatherScatterMode::promise_in_bounds});
}

// The entry nearest to each vector [count, dim], int32; in blocks, to limit the memory of the scores.
Array nearest(const Array& vectors, const Array& book) {
  constexpr int64_t max_scores = int64_t{1} << 23;
  const int64_t count = vectors.shape(0), block = std::max<int64_t>(1, max_scores / book.shape(0));
  const Array half = lax::reduce_sum(book * book, {.axes = {1}}) * scalar_of(DType::float32, 0.5);
  Arrays parts;
  for (int64_t first = 0; first < count; first += block) {
    const Array some = lax::slice_in_dim(vectors, first, std::min(count, first + block));
    const Array scores = lax::dot_general(some, book, {.lhs_contracting = {1}, .rhs_contracting = {1}});
    parts.push_back(lax::argmax(scores - lax::broadcast_in_dim(half, scores.shape(), {1}), 1, DType::int32));
  }
  return parts.size() == 1 ? parts[0] : lax::concatenate(parts, 0);
}

// Entries for vectors [count, dim] by Lloyd's algorithm on evenly spaced samples. An entry that loses all its vectors
// is left unchanged.
Array find_entries(const Array& vectors, const QuantizeVectorsOptions& options, uint64_t seed) {
  const int64_t count = vectors.shape(0), entries = options.entries, dim = options.dim;
  const int64_t sampled = std::min(count, std::max<int64_t>(32768, 64 * entries));
  const auto spaced = [&](int64_t some) {
    std::vector<int32_t> rows(static_cast<std::size_t>(some));
    const uint64_t first = seed * 0x9e3779b97f4a7c15u % static_cast<uint64_t>(count);
    for (int64_t i = 0; i < some; ++i) {
      const int64_t row =
          static_cast<int64_t>(static_cast<double>(i) / static_cast<double>(some) * static_cast<double>(count));
      rows[static_cast<std::size_t>(i)] = static_cast<int32_t>((row + static_cast<int64_t>(first)) % count);
    }
    return rows_at(vectors, array<int32_t>(rows));
  };
  const Array sample = sampled == count ? vectors : spaced(sampled);
  Array book = spaced(entries);
  for (int64_t i = 0; i < options.iterations; ++i) {
    const Array index = lax::expand_dims(nearest(sample, book), {1});
    const ScatterDimensionNumbers numbers = {
        .update_window_dims = {1}, .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}};
    const Array zeros = lax::full({entries, dim}, 0.0F);
    const Array sums = lax::scatter_add(zeros, index, sample, numbers);
    const Array counts = lax::scatter_add(zeros, index, lax::full_like(sample, 1.0), numbers);
    const Array none = lax::eq(counts, lax::zeros_like(counts));
    book = lax::select(none, book, sums / lax::select(none, lax::full_like(counts, 1.0), counts));
  }
  return book;
}

void require_vectors(const QuantizeVectorsOptions& options, int64_t inputs) {
  const auto require = [](bool right, const char* argument, const std::string& expected, int64_t got) {
    if (right) return;
    throw ValueError(concat("quantize_vectors: expected ", expected, " (argument '", argument, "'), got ", got));
  };
  require(options.dim >= 1 && inputs % options.dim == 0, "dim", concat("a divisor of the ", inputs, " inputs"),
          options.dim);
  const int64_t vectors = inputs / options.dim;
  require(options.entries >= 1 && options.entries <= 65536, "entries", "1 to 65536", options.entries);
  require(options.stages >= 1, "stages", "1 or more", options.stages);
  require(options.groups >= 1 && vectors % options.groups == 0, "groups",
          concat("a divisor of the ", vectors, " vectors"), options.groups);
  require(options.iterations >= 0, "iterations", "0 or more", options.iterations);
}

// [outputs, inputs] as float32, checked.
Array rows_of(const Array& matrix, int64_t axis) {
  if (matrix.ndim() != 2 || !is_floating(matrix.dtype()) || matrix.size() == 0)
    refuse_matrix("a floating matrix with elements", to_string(matrix.type()));
  const bool first = checked_axis("quantize", axis, matrix.type()) == 0;
  const Array values = lax::convert_element_type(first ? lax::transpose(matrix, {1, 0}) : matrix, DType::float32);
  require_finite(lax::reduce_max(lax::abs(values), {.axes = {1}}), matrix.type());
  return values;
}

}  // namespace

Family quantized_matmul_records() { return {matmul_record()}; }

void require_fit(const QuantizedMatrix& matrix) {
  std::vector<ArrayType> types = {matrix.scale.type()};
  for (const Array& one : all_operands_of(matrix)) types.push_back(one.type());
  require_matrix(types, matrix.inputs);
}

int64_t QuantizedMatrix::bytes() const {
  int64_t sum = 0;
  for (const Array& one : operands_of(*this)) sum += one.size() * storage_size(one.dtype());
  return sum;
}

QuantizedMatrix quantize(const Array& matrix, const QuantizeOptions& options) {
  if (options.format != "int8" && options.format != "int4")
    throw ValueError(concat("quantize: expected 'int8' or 'int4' (argument 'format'), got '", options.format, "'"));
  Array values = rows_of(matrix, options.axis);
  const int64_t outputs = values.shape(0), inputs = values.shape(1);
  if (options.format == "int4") {
    if (options.block != 0 && options.block != nibble_block)
      throw ValueError(concat("quantize: int4 has blocks of 32 elements (argument 'block'), got ", options.block));
    const int64_t blocks = blocks_of(inputs, nibble_block), missing = blocks * nibble_block - inputs;
    if (missing > 0) values = lax::pad(values, scalar_of(DType::float32, 0), {{0, 0, 0}, {0, missing, 0}});
    return to_nibbles(lax::reshape(values, {outputs, blocks, nibble_block}), inputs);
  }
  const int64_t block = options.block == 0 ? inputs : options.block;
  if (block < 1 || inputs % block != 0) {
    throw ValueError(concat("quantize: expected a divisor of the ", inputs, " elements of each output (argument ",
                            "'block'), got ", options.block, "; 0 is one block for each output"));
  }
  return to_bytes(lax::reshape(values, {outputs, inputs / block, block}), inputs);
}

QuantizedMatrix quantize_vectors(const Array& matrix, const QuantizeVectorsOptions& options) {
  const Array values = rows_of(matrix, options.axis);
  const int64_t outputs = values.shape(0), inputs = values.shape(1);
  require_vectors(options, inputs);
  const int64_t groups = options.groups, own = inputs / options.dim / groups;  // vectors per group
  const Array squares =
      lax::reduce_sum(values * values, {.axes = {1}}) / scalar_of(DType::float32, static_cast<double>(inputs));
  const Array scale = nonzero(lax::reshape(lax::sqrt(squares), {outputs, 1}));
  const Array even = values / lax::broadcast_in_dim(scale, values.shape(), {0, 1});
  const DType dtype = options.entries <= 256 ? DType::uint8 : DType::uint16;
  std::vector<Arrays> books(static_cast<std::size_t>(options.stages)), codes = books;  // by stage, for each group
  for (int64_t g = 0; g < groups; ++g) {
    Array left = lax::slice_in_dim(even, g * own * options.dim, (g + 1) * own * options.dim, 1, 1);
    left = lax::reshape(left, {outputs * own, options.dim});
    for (std::size_t s = 0; s < books.size(); ++s) {
      const Array book = find_entries(left, options, options.seed + s);
      const Array index = nearest(left, book);
      left = left - rows_at(book, index);
      books[s].push_back(book);
      codes[s].push_back(lax::reshape(lax::convert_element_type(index, dtype), {outputs, own}));
    }
  }
  Arrays all_books, all_codes;
  for (std::size_t s = 0; s < books.size(); ++s) {
    all_books.push_back(lax::stack(books[s], 0));
    all_codes.push_back(lax::concatenate(codes[s], 1));
  }
  return {lax::stack(all_codes, 2), scale, lax::stack(all_books, 0), inputs};
}

Array dequantize(const QuantizedMatrix& matrix, DType dtype) {
  require_fit(matrix);
  const Array rows =
      widen(matrix.codes, matrix.scale, matrix.codebook ? &*matrix.codebook : nullptr, matrix.inputs, wide_of(dtype));
  return lax::convert_element_type(lax::transpose(rows, {1, 0}), dtype);
}

Array quantized_matmul(const Array& x, const QuantizedMatrix& matrix, const QuantizedMatmulOptions& options) {
  static const Primitive& handle = *new Primitive(primitive(matmul_name));
  const Arrays operands = options.transposed ? operands_of(matrix) : all_operands_of(matrix);
  return multiply(handle, x, operands, {{"inputs", matrix.inputs}, {"transposed", options.transposed}});
}

Array quantized_rows(const QuantizedMatrix& matrix, const Array& outputs, DType dtype) {
  require_fit(matrix);
  if (!is_integer(outputs.dtype()))
    throw TypeError(concat("quantized_rows: expected integers (argument 'outputs'), got ", to_string(outputs.type())));
  const Array indices = lax::reshape(outputs, {outputs.size(), 1});
  const auto rows = [&](const Array& table) {
    Ints offsets;
    Shape sizes = table.shape();
    sizes[0] = 1;
    for (int64_t dim = 1; dim < table.ndim(); ++dim) offsets.push_back(dim);
    return lax::gather(table, indices, {.offset_dims = offsets, .collapsed_slice_dims = {0}, .start_index_map = {0}},
                       sizes, {.mode = lax::GatherScatterMode::clip});
  };
  const Array found = widen(rows(matrix.codes), rows(matrix.scale), matrix.codebook ? &*matrix.codebook : nullptr,
                            matrix.inputs, wide_of(dtype));
  Shape shape = outputs.shape();
  shape.push_back(matrix.inputs);
  return lax::reshape(lax::convert_element_type(found, dtype), shape);
}

}  // namespace capibara::kernels
