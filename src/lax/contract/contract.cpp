// The general dot product: contraction over paired dimensions of two arrays.
#include "lax/contract/contract.h"
#include "core/array/format.h"
#include "lax/contract/precision.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/out_sharding.h"
#include "lax/sharding/splits.h"
#include "program/ir/explicit_types.h"

#include <capibara/config.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace capibara {

namespace lax = jax::lax;

Family ragged_dot_family();
Family convolution_family();

namespace {

std::string list_text(const Ints& values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) text += concat(i ? ", " : "", values[i]);
  return text + ")";
}

void check_dims(const std::string& op, const char* side, const ArrayType& type, const Ints& contracting,
                const Ints& batch) {
  Ints all = contracting;
  all.insert(all.end(), batch.begin(), batch.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0 || all[i] >= type.rank()) {
      throw TypeError(concat(op, " requires ", side,
                             " dimension numbers to be nonnegative and less than the number of axes of the ", side,
                             " value, got batch ", list_text(batch), " and contracting ", list_text(contracting),
                             " for ", to_string(type)));
    }
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) !=
        all.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw TypeError(concat(op, " requires ", side, " batch and contracting dimensions to be distinct, got batch ",
                             list_text(batch), " and contracting ", list_text(contracting)));
    }
  }
}

// The order in which two dtypes are ranked, most significant first: complex, exponent range, mantissa, width, sign.
auto dtype_rank(DType dtype) {
  DType real = real_dtype(dtype);
  int exponent = -1, mantissa = -1;
  if (is_floating(real)) {
    FloatInfo info = finfo(real);
    exponent = std::ilogb(info.max) + 1;
    mantissa = info.mantissa_bits;
  }
  return std::tuple(is_complex(dtype), exponent, mantissa, is_bool(real) ? 1 : bits(real), !is_unsigned(real));
}

bool is_float8(DType dtype) { return is_floating(dtype) && bits(dtype) == 8; }

Array dot_general(const Array& lhs, const Array& rhs, const DotDimensionNumbers& numbers, const Attrs& attrs) {
  static const Primitive p = primitive("dot_general");
  return capibara::bind(p, Arrays{lhs, rhs}, attrs.with("dimension_numbers", numbers))[0];
}

Array converted(const Array& x, const ArrayType& like) {
  return x.dtype() == like.dtype ? x : lax::convert_element_type(x, like.dtype, like.weak_type);
}

// The sharding of an array with its dimensions in this order.
Sharding permuted(const Sharding& sharding, const Ints& order) {
  if (!sharding.is_explicit()) return {};
  PartitionSpec spec = sharding.spec();
  for (std::size_t i = 0; i < order.size(); ++i)
    spec.dims[i] = sharding.spec().dims[static_cast<std::size_t>(order[i])];
  return Sharding::explicit_over(sharding.mesh(), std::move(spec), sharding.varying());
}

// The cotangent of x in x . y; `swapped` if x is the right-hand operand.
Array transpose_dot(const Array& cotangent, const ArrayType& x, const Array& y, const DotDimensionNumbers& numbers,
                    const Attrs& attrs, bool swapped) {
  const Ints &x_contract = numbers.lhs_contracting, &y_contract = numbers.rhs_contracting;
  const Ints &x_batch = numbers.lhs_batch, &y_batch = numbers.rhs_batch;
  Ints x_kept = remaining_dims(x.rank(), x_contract, x_batch), y_kept = remaining_dims(y.ndim(), y_contract, y_batch);
  auto batch_count = static_cast<int64_t>(x_batch.size());
  Ints out_batch = counting(0, x_batch.size());
  Ints out_y = counting(batch_count + (swapped ? 0 : static_cast<int64_t>(x_kept.size())), y_kept.size());
  DotDimensionNumbers back{out_y, y_kept, out_batch, y_batch};
  Ints axes = x_batch;
  axes.insert(axes.end(), x_kept.begin(), x_kept.end());
  Ints by_y = taken(x_contract, argsort(y_contract));
  axes.insert(axes.end(), by_y.begin(), by_y.end());
  const Attr wanted = sharding_attr(permuted(operand_cotangent_sharding(x, y.type(), cotangent.type()), axes));
  Array product = dot_general(cotangent, y, back, attrs.with("out_sharding", wanted));
  return converted(lax::transpose(product, argsort(axes)), x);
}

// The normal form: operands of one dtype, the result's dtype explicit, default precision None.
Arrays lower_dot(std::span<const Array> inputs, const Attrs& attrs) {
  Array lhs = inputs[0], rhs = inputs[1];
  DType out = dot_dtype("dot_general", lhs.dtype(), rhs.dtype(), attrs);
  DType accumulator = out;
  Attr precision = attrs["precision"];
  auto convert = [](Array& x, DType dtype) {
    if (x.dtype() != dtype) x = lax::convert_element_type(x, dtype);
  };
  if (const std::string* name = precision.get_if<std::string>()) {
    const DotAlgorithm* algorithm = find_algorithm(*name);
    if (algorithm && algorithm->operand) {
      convert(lhs, *algorithm->operand);
      convert(rhs, *algorithm->operand);
      accumulator = algorithm->accumulator;
    }
    precision = Attr();
  } else if (lhs.dtype() != rhs.dtype() && !(is_float8(lhs.dtype()) && is_float8(rhs.dtype()))) {
    convert(lhs, out);
    convert(rhs, out);
  }
  if (precision == Attr(Attr::List{"default", "default"})) precision = Attr();
  Attrs plain = attrs.with("precision", precision).with("preferred_element_type", accumulator);
  if (plain == attrs && lhs.same_as(inputs[0]) && rhs.same_as(inputs[1])) return {};
  Array product = dot_general(lhs, rhs, attrs.get<DotDimensionNumbers>("dimension_numbers"), plain);
  convert(product, out);
  return {product};
}

std::vector<Sample> dot_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](Shape lhs, Shape rhs, DotDimensionNumbers numbers, Attr precision = {}, Attr preferred = {}) {
    Sample s;
    s.inputs = {scalar_type(dtype).with_shape(std::move(lhs)), scalar_type(dtype).with_shape(std::move(rhs))};
    s.attrs = {{"dimension_numbers", std::move(numbers)},
               {"precision", std::move(precision)},
               {"preferred_element_type", std::move(preferred)},
               {"out_sharding", Attr()}};
    samples.push_back(std::move(s));
  };
  add({3}, {3}, {{0}, {0}, {}, {}});
  add({2, 3}, {3, 4}, {{1}, {0}, {}, {}});
  add({2, 3}, {4, 3}, {{1}, {1}, {}, {}}, Attr(Attr::List{"highest", "highest"}));
  add({2, 3, 4}, {2, 4, 5}, {{2}, {1}, {0}, {0}});
  add({3, 2, 5, 4}, {4, 3, 5}, {{3, 2}, {0, 2}, {0}, {1}});
  add({2, 3}, {4}, {{}, {}, {}, {}});
  add({}, {}, {{}, {}, {}, {}});
  add({2, 0}, {0, 3}, {{1}, {0}, {}, {}});
  add({0, 3}, {3, 2}, {{1}, {0}, {}, {}});
  if (dtype == DType::bfloat16 || dtype == DType::float16) add({2, 3}, {3, 4}, {{1}, {0}, {}, {}}, {}, DType::float32);
  if (dtype == DType::int8) add({2, 3}, {3, 4}, {{1}, {0}, {}, {}}, {}, DType::int32);
  return samples;
}

PrimitiveRecord dot_general_record() {
  PrimitiveRecord record;
  record.name = "dot_general";
  record.factors = dot_general_factors;
  record.splits = dot_general_splits;
  record.traits.nan_checked = true;
  record.doc =
      "Sums products over contracted dimensions of two arrays, for each index of their paired batch dimensions.";
  record.stablehlo = "stablehlo.dot_general";
  record.dtypes = {DType::bool_,         DType::int4,        DType::int8,      DType::int16,   DType::int32,
                   DType::int64,         DType::uint8,       DType::uint16,    DType::uint32,  DType::uint64,
                   DType::float8_e4m3fn, DType::float8_e5m2, DType::bfloat16,  DType::float16, DType::float32,
                   DType::float64,       DType::complex64,   DType::complex128};
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("dot_general", types, 2);
    ArrayType out;
    out.shape = dot_shape("dot_general", types[0], types[1], attrs.get<DotDimensionNumbers>("dimension_numbers"));
    out.dtype = dot_dtype("dot_general", types[0].dtype, types[1].dtype, attrs);
    out.weak_type = types[0].weak_type && types[1].weak_type;
    return Types{out};
  };
  record.jvp = bilinear_jvp;
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    const Array& cotangent = args.cotangents[0];
    if (!cotangent.defined()) return {Array(), Array()};
    const auto& numbers = args.attrs.get<DotDimensionNumbers>("dimension_numbers");
    if (args.linear(0))
      return {transpose_dot(cotangent, args.types[0], args.inputs[1], numbers, args.attrs, false), Array()};
    DotDimensionNumbers swapped{numbers.rhs_contracting, numbers.lhs_contracting, numbers.rhs_batch, numbers.lhs_batch};
    return {Array(), transpose_dot(cotangent, args.types[1], args.inputs[0], swapped, args.attrs, true)};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    auto [numbers, dim] = batched_dot_numbers(args.inputs[0].ndim(), args.inputs[1].ndim(), args.dims[0], args.dims[1],
                                              args.attrs.get<DotDimensionNumbers>("dimension_numbers"));
    const std::size_t mapped = args.mapped(0) ? 0 : 1;
    const Attr wanted = sharding_attr(batched_sharding(args, args.inputs[mapped], args.dims[mapped], dim));
    return {{dot_general(args.inputs[0], args.inputs[1], numbers, args.attrs.with("out_sharding", wanted))}, {dim}};
  };
  record.lower = lower_dot;
  record.samples = dot_samples;
  record.print_attr = print_precision;
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    // Each lhs element is multiplied with each free rhs dimension. Eager calls are counted, so nothing is allocated.
    const auto& numbers = attrs.get<DotDimensionNumbers>("dimension_numbers");
    double work = 2 * static_cast<double>(types[0].size());
    for (int64_t dim = 0; dim < types[1].rank(); ++dim) {
      if (std::ranges::find(numbers.rhs_batch, dim) == numbers.rhs_batch.end() &&
          std::ranges::find(numbers.rhs_contracting, dim) == numbers.rhs_contracting.end())
        work *= static_cast<double>(types[1].shape[static_cast<std::size_t>(dim)]);
    }
    return work;
  };
  return record;
}

}  // namespace

Ints remaining_dims(int64_t rank, const Ints& a, const Ints& b, const Ints& c) {
  Ints rest;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(a, d) && !contains(b, d) && !contains(c, d)) rest.push_back(d);
  }
  return rest;
}

Ints counting(int64_t start, std::size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), start);
  return values;
}

Ints argsort(const Ints& values) {
  Ints order = counting(0, values.size());
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
  });
  return order;
}

Ints taken(const Ints& values, const Ints& order) {
  Ints result;
  for (int64_t i : order) result.push_back(values[static_cast<std::size_t>(i)]);
  return result;
}

Shape dot_shape(const std::string& op, const ArrayType& lhs, const ArrayType& rhs, const DotDimensionNumbers& numbers,
                const Ints& rhs_ignored) {
  check_dims(op, "lhs", lhs, numbers.lhs_contracting, numbers.lhs_batch);
  check_dims(op, "rhs", rhs, numbers.rhs_contracting, numbers.rhs_batch);
  if (numbers.lhs_batch.size() != numbers.rhs_batch.size()) {
    throw TypeError(concat(op, " requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch ",
                           list_text(numbers.lhs_batch), " and rhs_batch ", list_text(numbers.rhs_batch), "."));
  }
  Shape lhs_batch = taken(lhs.shape, numbers.lhs_batch), rhs_batch = taken(rhs.shape, numbers.rhs_batch);
  if (lhs_batch != rhs_batch) {
    throw TypeError(concat(op, " requires lhs batch dimensions and rhs batch dimensions to have the same shape, got ",
                           list_text(lhs_batch), " and ", list_text(rhs_batch), " for ", to_string(lhs), " and ",
                           to_string(rhs)));
  }
  Shape lhs_contracted = taken(lhs.shape, numbers.lhs_contracting),
        rhs_contracted = taken(rhs.shape, numbers.rhs_contracting);
  if (lhs_contracted != rhs_contracted) {
    throw TypeError(concat(op, " requires contracting dimensions to have the same shape, got ",
                           shape_tuple(lhs_contracted), " and ", shape_tuple(rhs_contracted), " for ", to_string(lhs),
                           " and ", to_string(rhs)));
  }
  Shape out = lhs_batch;
  for (int64_t d : remaining_dims(lhs.rank(), numbers.lhs_contracting, numbers.lhs_batch))
    out.push_back(lhs.shape[static_cast<std::size_t>(d)]);
  for (int64_t d : remaining_dims(rhs.rank(), numbers.rhs_contracting, numbers.rhs_batch, rhs_ignored)) {
    out.push_back(rhs.shape[static_cast<std::size_t>(d)]);
  }
  return out;
}

DType dot_dtype(const std::string& op, DType lhs, DType rhs, const Attrs& attrs) {
  for (DType dtype : {lhs, rhs}) {
    if (!is_numeric(dtype) && !is_bool(dtype)) {
      throw TypeError(concat(op, " does not accept dtype ", to_string(dtype), "; it multiplies numbers"));
    }
  }
  auto left = dtype_rank(lhs), right = dtype_rank(rhs);
  if (left == right && lhs != rhs) {
    throw TypeError(concat("lax.", op, " argument type error: ", to_string(lhs), ", ", to_string(rhs)));
  }
  DType result = left < right ? rhs : lhs;
  const Attr* preferred_attr = attrs.find("preferred_element_type");
  const DType* preferred = preferred_attr ? preferred_attr->get_if<DType>() : nullptr;
  if (!preferred || *preferred == result) return result;
  const Attr* precision = attrs.find("precision");
  bool algorithm = precision && precision->get_if<std::string>();
  auto width = [](DType dtype) { return is_bool(dtype) ? 1 : is_complex(dtype) ? bits(dtype) / 2 : bits(dtype); };
  if (!algorithm && !is_floating(result) && width(*preferred) < width(result)) {
    throw TypeError(concat(op,
                           ": `preferred_element_type` must not be narrower than the original type, got "
                           "preferred_element_type of ",
                           to_string(*preferred), " for result type of ", to_string(result), "."));
  }
  return *preferred;
}

std::pair<DotDimensionNumbers, int64_t> batched_dot_numbers(int64_t lhs_rank, int64_t rhs_rank, int64_t lhs_dim,
                                                            int64_t rhs_dim, const DotDimensionNumbers& numbers,
                                                            const Ints& rhs_ignored) {
  DotDimensionNumbers out = numbers;
  auto count_below = [](const Ints& dims, int64_t limit) {
    return static_cast<int64_t>(std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < limit; }));
  };
  int64_t result = 0;
  if (lhs_dim != not_mapped) {
    out.lhs_batch = shifted(numbers.lhs_batch, lhs_dim);
    out.lhs_contracting = shifted(numbers.lhs_contracting, lhs_dim);
  }
  if (rhs_dim != not_mapped) {
    out.rhs_batch = shifted(numbers.rhs_batch, rhs_dim);
    out.rhs_contracting = shifted(numbers.rhs_contracting, rhs_dim);
  }
  if (lhs_dim != not_mapped && rhs_dim != not_mapped) {
    out.lhs_batch.insert(out.lhs_batch.begin(), lhs_dim);
    out.rhs_batch.insert(out.rhs_batch.begin(), rhs_dim);
  } else if (lhs_dim != not_mapped) {
    // The mapped axis is one more free dimension of the lhs.
    Ints free = remaining_dims(lhs_rank, out.lhs_batch, out.lhs_contracting);
    result = static_cast<int64_t>(numbers.lhs_batch.size()) + count_below(free, lhs_dim);
  } else {
    Ints free = remaining_dims(rhs_rank, out.rhs_batch, out.rhs_contracting, shifted(rhs_ignored, rhs_dim));
    result = lhs_rank - static_cast<int64_t>(numbers.lhs_contracting.size()) + count_below(free, rhs_dim);
  }
  return {out, result};
}

Family contract_family() {
  Family family = {dot_general_record()};
  for (PrimitiveRecord& record : ragged_dot_family()) family.push_back(std::move(record));
  for (PrimitiveRecord& record : convolution_family()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array dot_general(const Array& lhs, const Array& rhs, const DotDimensionNumbers& dimension_numbers,
                  const DotOptions& options) {
  static const Primitive p = primitive("dot_general");
  const std::size_t result_rank = lhs.shape().size() + rhs.shape().size() - dimension_numbers.lhs_batch.size() -
                                  2 * dimension_numbers.lhs_contracting.size();
  const Sharding out_sharding = taken_out_sharding(result_rank);
  Attr preferred = canonical_attr(options.preferred_element_type);
  const auto attrs = [&](Attr precision) {
    return Attrs{{"dimension_numbers", dimension_numbers},
                 {"precision", std::move(precision)},
                 {"preferred_element_type", std::move(preferred)},
                 {"out_sharding", sharding_attr(out_sharding)}};
  };
  const bool plain =
      options.precision.empty() && capibara::config().default_matmul_precision.empty() && !out_sharding.is_explicit();
  if (!plain) return bind1(p, {lhs, rhs}, attrs(precision_attr("dot_general", options.precision)));
  // Successive eager matmuls mostly have equal attributes: those of the last one are kept.
  thread_local Attrs last;
  if (last.empty() || !(last["preferred_element_type"] == preferred) ||
      !(last.get<DotDimensionNumbers>("dimension_numbers") == dimension_numbers)) {
    last = attrs(Attr());
  }
  const Attrs own = last;  // binding may run other matmuls
  return bind1(p, {lhs, rhs}, own);
}

Array dot(const Array& lhs, const Array& rhs, const DotOptions& options) {
  bool simple =
      lhs.ndim() >= 1 && lhs.ndim() <= 2 && rhs.ndim() >= 1 && rhs.ndim() <= 2 && lhs.shape(-1) == rhs.shape(0);
  if (!simple) {
    throw ValueError(concat("dot: expected vectors or matrices with lhs.shape[-1] == rhs.shape[0], got ",
                            to_string(lhs.type()), " and ", to_string(rhs.type()),
                            "; use dot_general for other products"));
  }
  return dot_general(lhs, rhs, {{lhs.ndim() - 1}, {0}, {}, {}}, options);
}

Array batch_matmul(const Array& lhs, const Array& rhs, const DotOptions& options) {
  if (lhs.ndim() < 2 || rhs.ndim() < 2) {
    throw ValueError(concat("batch_matmul: arguments must be at least 2D, got ", to_string(lhs.type()), " and ",
                            to_string(rhs.type())));
  }
  if (lhs.ndim() != rhs.ndim()) {
    throw ValueError(concat("batch_matmul: arguments must have the same ndim, got ", to_string(lhs.type()), " and ",
                            to_string(rhs.type())));
  }
  Ints batch = counting(0, static_cast<std::size_t>(lhs.ndim() - 2));
  return dot_general(lhs, rhs, {{lhs.ndim() - 1}, {rhs.ndim() - 2}, batch, batch}, options);
}

}  // namespace capibara::jax::lax
