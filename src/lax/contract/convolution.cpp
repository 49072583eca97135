// The general convolution: strides, padding, dilations of both operands, feature and batch groups, any dimension order.
#include "lax/contract/contract.h"
#include "lax/contract/convolution_dimensions.h"
#include "lax/contract/precision.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "program/ir/window_shape.h"

#include <algorithm>

namespace capibara {

namespace lax = jax::lax;

namespace {

constexpr const char* op = "conv_general_dilated";

// The attributes by name.
struct Convolution {
  ConvDimensionNumbers numbers;
  Ints strides, lhs_dilation, rhs_dilation;
  lax::Padding padding;
  int64_t feature_groups, batch_groups;
  Sharding out_sharding = {};

  static Convolution of(const Attrs& attrs) {
    return {attrs.get<ConvDimensionNumbers>("dimension_numbers"),
            attrs.ints("window_strides"),
            attrs.ints("lhs_dilation"),
            attrs.ints("rhs_dilation"),
            padding_of(attrs["padding"]),
            attrs.integer("feature_group_count"),
            attrs.integer("batch_group_count")};
  }
  // `like` gives precision and preferred_element_type.
  Attrs attrs(const Attrs& like) const {
    return {{"window_strides", strides},
            {"padding", padding_attr(padding)},
            {"lhs_dilation", lhs_dilation},
            {"rhs_dilation", rhs_dilation},
            {"dimension_numbers", numbers},
            {"feature_group_count", feature_groups},
            {"batch_group_count", batch_groups},
            {"precision", like["precision"]},
            {"preferred_element_type", like["preferred_element_type"]},
            {"out_sharding", sharding_attr(out_sharding)}};
  }
};

Array convolve(const Array& lhs, const Array& rhs, const Convolution& convolution, const Attrs& like) {
  static const Primitive p = primitive(op);
  return capibara::bind(p, Arrays{lhs, rhs}, convolution.attrs(like))[0];
}

Ints space_of(const Ints& spec) { return Ints(spec.begin() + 2, spec.end()); }

Ints swapped_spec(Ints spec) {
  std::swap(spec[0], spec[1]);
  return spec;
}

void check_spec(const char* name, const Ints& spec, int64_t rank) {
  Ints sorted = spec;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != counting(0, static_cast<std::size_t>(rank))) {
    throw TypeError(
        concat(op, ": ", name, " must name each of the ", rank, " dimensions once (argument 'dimension_numbers')"));
  }
}

void check_lengths(const Ints& values, std::size_t space, const char* name) {
  if (values.size() != space) {
    throw ValueError(
        concat(op, ": ", name, " must have one entry per space dimension: expected ", space, ", got ", values.size()));
  }
  for (int64_t value : values) {
    if (value < 1) throw TypeError(concat(op, ": ", name, " must be positive, got ", value));
  }
}

Shape convolution_shape(const ArrayType& lhs, const ArrayType& rhs, const Convolution& c) {
  if (lhs.rank() != rhs.rank() || lhs.rank() < 2) {
    throw ValueError(concat(op, ": lhs and rhs must have the same number of dimensions, at least 2, but got ",
                            to_string(lhs), " and ", to_string(rhs), "."));
  }
  check_spec("lhs_spec", c.numbers.lhs_spec, lhs.rank());
  check_spec("rhs_spec", c.numbers.rhs_spec, rhs.rank());
  check_spec("out_spec", c.numbers.out_spec, rhs.rank());
  if (c.feature_groups < 1)
    throw ValueError(concat(op, ": feature_group_count must be a positive integer, got ", c.feature_groups, "."));
  if (c.batch_groups < 1)
    throw ValueError(concat(op, ": batch_group_count must be a positive integer, got ", c.batch_groups, "."));
  int64_t features = at(lhs.shape, c.numbers.lhs_spec[1]), batch = at(lhs.shape, c.numbers.lhs_spec[0]);
  int64_t out_features = at(rhs.shape, c.numbers.rhs_spec[0]), in_features = at(rhs.shape, c.numbers.rhs_spec[1]);
  if (features % c.feature_groups != 0) {
    throw ValueError(concat(op, ": feature_group_count must divide lhs feature dimension size, but ", c.feature_groups,
                            " does not divide ", features, "."));
  }
  if (features / c.feature_groups != in_features) {
    throw ValueError(
        concat(op,
               ": lhs feature dimension size divided by feature_group_count must equal the rhs input feature "
               "dimension size, but ",
               features, " // ", c.feature_groups, " != ", in_features, "."));
  }
  if (out_features % c.feature_groups != 0 || out_features % c.batch_groups != 0) {
    throw ValueError(concat(op,
                            ": rhs output feature dimension size must be a multiple of feature_group_count and "
                            "batch_group_count, but ",
                            out_features, " is not a multiple of ", c.feature_groups, " and ", c.batch_groups, "."));
  }
  if (batch % c.batch_groups != 0) {
    throw ValueError(concat(op, ": batch_group_count must divide lhs batch dimension size, but ", c.batch_groups,
                            " does not divide ", batch, "."));
  }
  if (c.batch_groups > 1 && c.feature_groups > 1) {
    throw ValueError(concat(op, ": at most one of batch_group_count and feature_group_count may be > 1, got ",
                            c.batch_groups, " and ", c.feature_groups));
  }
  auto space = static_cast<std::size_t>(lhs.rank() - 2);
  check_lengths(c.strides, space, "window_strides");
  check_lengths(c.lhs_dilation, space, "lhs_dilation");
  check_lengths(c.rhs_dilation, space, "rhs_dilation");
  if (c.padding.size() != space) {
    throw TypeError(concat(op, ": wrong number of explicit pads for convolution: expected ", space, ", got ",
                           c.padding.size(), "."));
  }
  Shape out(static_cast<std::size_t>(lhs.rank()));
  out[static_cast<std::size_t>(c.numbers.out_spec[0])] = batch / c.batch_groups;
  out[static_cast<std::size_t>(c.numbers.out_spec[1])] = out_features;
  for (std::size_t d = 0; d < space; ++d) {
    int64_t size =
        dilated(at(lhs.shape, c.numbers.lhs_spec[d + 2]), c.lhs_dilation[d]) + c.padding[d].first + c.padding[d].second;
    if (size < 0) {
      throw ValueError(concat(op, ": negative padding is larger than the size of the corresponding dimension: (",
                              c.padding[d].first, ", ", c.padding[d].second, ") for ", to_string(lhs)));
    }
    int64_t window = dilated(at(rhs.shape, c.numbers.rhs_spec[d + 2]), c.rhs_dilation[d]);
    out[static_cast<std::size_t>(c.numbers.out_spec[d + 2])] = window_count(size, window, c.strides[d]);
  }
  return out;
}

DType convolution_dtype(std::span<const ArrayType> types, const Attrs& attrs) {
  DType dtype = types[0].dtype;
  require_same_dtypes(op, types);
  if (!is_numeric(dtype) && !is_bool(dtype)) throw TypeError(concat(op, " does not accept dtype ", to_string(dtype)));
  const DType* preferred = attrs["preferred_element_type"].get_if<DType>();
  if (!preferred) return dtype;
  bool fits = (is_integer(dtype) && (is_floating(*preferred) || is_integer(*preferred))) ||
              (is_floating(dtype) && is_floating(*preferred)) || (is_complex(dtype) && is_complex(*preferred)) ||
              is_bool(dtype);
  if (!fits) {
    throw TypeError(concat(op, ": input type ", to_string(dtype), " is incompatible with `preferred_element_type` ",
                           to_string(*preferred),
                           ". The compatible combinations are (integral, integral), (integral, "
                           "floating), (floating, floating), (complex, complex)."));
  }
  if (is_signed(dtype) && is_unsigned(*preferred)) {
    throw TypeError(concat(op, ": `preferred_element_type` must have the same signedness as the original type."));
  }
  if (storage_size(*preferred) < storage_size(dtype)) {
    throw TypeError(concat(op, ": `preferred_element_type` must not be narrower than the original type."));
  }
  return *preferred;
}

// Dimension `src` joins `dst`, counted without `src`, as its slower part.
Array merge_axis(int64_t src, int64_t dst, const Array& x) {
  Ints permutation;
  Shape shape;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d == src) continue;
    permutation.push_back(d);
    shape.push_back(x.shape(d));
  }
  permutation.insert(permutation.begin() + dst, src);
  shape[static_cast<std::size_t>(dst)] *= x.shape(src);
  return lax::reshape(x, shape, permutation);
}

// Splits dimension `src` into `size` parts.
Array split_axis(int64_t src, int64_t size, const Array& x) {
  Shape shape = x.shape();
  auto it = shape.begin() + src;
  int64_t rest = size == 0 ? 0 : *it / size;
  *it = rest;
  shape.insert(shape.begin() + src, size);
  return lax::reshape(x, shape);
}

Array transpose_lhs(const Array& cotangent, const ArrayType& lhs, Array rhs, const Attrs& attrs) {
  Convolution c = Convolution::of(attrs);
  const Ints &lhs_spec = c.numbers.lhs_spec, &rhs_spec = c.numbers.rhs_spec, &out_spec = c.numbers.out_spec;
  const Shape rhs_space = taken(rhs.shape(), space_of(rhs_spec));
  Convolution back = c;
  int64_t groups = std::max(c.feature_groups, c.batch_groups);
  if (groups > 1) rhs = merge_axis(rhs_spec[0], rhs_spec[1], split_axis(rhs_spec[0], groups, rhs));
  back.feature_groups = groups;
  back.batch_groups = 1;
  back.numbers = {out_spec, swapped_spec(rhs_spec), lhs_spec};
  back.padding =
      transposed_padding(taken(lhs.shape, space_of(lhs_spec)), rhs_space, c.strides,
                         taken(cotangent.shape(), space_of(out_spec)), c.padding, c.lhs_dilation, c.rhs_dilation);
  back.strides = c.lhs_dilation;
  back.lhs_dilation = c.strides;
  Array kernel = lax::rev(rhs, space_of(rhs_spec));
  if (cotangent.dtype() != kernel.dtype()) kernel = lax::convert_element_type(kernel, cotangent.dtype());
  if (c.batch_groups == 1) back.out_sharding = operand_cotangent_sharding(lhs, rhs.type(), cotangent.type());
  Array out = convolve(cotangent, kernel, back, attrs);
  if (out.dtype() != lhs.dtype) out = lax::convert_element_type(out, lhs.dtype);
  if (c.batch_groups > 1) out = merge_axis(lhs_spec[1], lhs_spec[0], split_axis(lhs_spec[1], c.batch_groups, out));
  return out;
}

Array transpose_rhs(const Array& cotangent, Array lhs, const ArrayType& rhs, const Attrs& attrs) {
  if (cotangent.size() == 0) return Array();  // avoids a kernel over zero elements
  Convolution c = Convolution::of(attrs);
  Convolution back = c;
  back.feature_groups = c.batch_groups;
  back.batch_groups = c.feature_groups;
  back.numbers = {swapped_spec(c.numbers.lhs_spec), swapped_spec(c.numbers.out_spec), swapped_spec(c.numbers.rhs_spec)};
  Shape in = taken(lhs.shape(), space_of(c.numbers.lhs_spec)), window = taken(rhs.shape, space_of(c.numbers.rhs_spec));
  Shape out = taken(cotangent.shape(), space_of(c.numbers.out_spec));
  for (std::size_t d = 0; d < in.size(); ++d) {
    int64_t low = c.padding[d].first;
    int64_t high = dilated(out[d], c.strides[d]) - dilated(in[d], c.lhs_dilation[d]) +
                   dilated(window[d], c.rhs_dilation[d]) - low - 1;
    back.padding[d] = {low, high};
  }
  back.strides = c.rhs_dilation;
  back.rhs_dilation = c.strides;
  if (cotangent.dtype() != lhs.dtype()) lhs = lax::convert_element_type(lhs, cotangent.dtype());
  back.out_sharding = operand_cotangent_sharding(rhs, lhs.type(), cotangent.type());
  Array result = convolve(lhs, cotangent, back, attrs);
  return result.dtype() == rhs.dtype ? result : lax::convert_element_type(result, rhs.dtype);
}

// The mapped axis joins the batch of the lhs, the output features of the rhs, or, if both carry it, the groups.
BatchResult batch_convolution(const BatchArgs& args) {
  const Array &lhs = args.inputs[0], &rhs = args.inputs[1];
  int64_t lhs_dim = args.dims[0], rhs_dim = args.dims[1], size = args.axis.size;
  Convolution c = Convolution::of(args.attrs);
  const Ints &lhs_spec = c.numbers.lhs_spec, &rhs_spec = c.numbers.rhs_spec, &out_spec = c.numbers.out_spec;
  if (size == 0) {
    auto unmapped = [](const Array& x, int64_t dim) {
      ArrayType type = x.type();
      if (dim != not_mapped) type.shape.erase(type.shape.begin() + dim);
      return type;
    };
    Types types = {unmapped(lhs, lhs_dim), unmapped(rhs, rhs_dim)};
    Shape shape = convolution_shape(types[0], types[1], c);
    shape.insert(shape.begin(), 0);
    return {{lax::full(shape, exact_scalar(convolution_dtype(types, args.attrs), 0))}, {0}};
  }
  auto run = [&](const Array& x, const Array& y, const Convolution& convolution, int64_t dim) -> BatchResult {
    return {{split_axis(dim, size, convolve(x, y, convolution, args.attrs))}, {dim}};
  };
  if (lhs_dim != not_mapped && rhs_dim != not_mapped) {
    Convolution grouped = c;
    bool batches = c.batch_groups > 1;
    Array x = merge_axis(lhs_dim, batches ? lhs_spec[0] : lhs_spec[1], lhs);
    (batches ? grouped.batch_groups : grouped.feature_groups) *= size;
    return run(x, merge_axis(rhs_dim, rhs_spec[0], rhs), grouped, out_spec[1]);
  }
  if (lhs_dim != not_mapped) {
    if (c.batch_groups == 1) return run(merge_axis(lhs_dim, lhs_spec[0], lhs), rhs, c, out_spec[0]);
    // Groups must stay the slowest part of the batch.
    Array x = split_axis(lhs_spec[0] + (lhs_dim <= lhs_spec[0] ? 1 : 0), c.batch_groups, lhs);
    x = merge_axis(lhs_dim + (lhs_spec[0] < lhs_dim ? 1 : 0), lhs_spec[0] + 1, x);
    return run(merge_axis(lhs_spec[0], lhs_spec[0], x), rhs, c, out_spec[0]);
  }
  int64_t groups = std::max(c.feature_groups, c.batch_groups);
  if (groups == 1) return run(lhs, merge_axis(rhs_dim, rhs_spec[0], rhs), c, out_spec[1]);
  Array y = split_axis(rhs_spec[0] + (rhs_dim <= rhs_spec[0] ? 1 : 0), groups, rhs);
  y = merge_axis(rhs_dim + (rhs_spec[0] < rhs_dim ? 1 : 0), rhs_spec[0] + 1, y);
  Array out = convolve(lhs, merge_axis(rhs_spec[0], rhs_spec[0], y), c, args.attrs);
  out = split_axis(out_spec[1] + 1, size, split_axis(out_spec[1], groups, out));
  return {{merge_axis(out_spec[1], out_spec[1] + 1, out)}, {out_spec[1]}};
}

std::vector<Sample> convolution_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](Shape lhs, Shape rhs, Convolution c) {
    Sample s;
    s.inputs = {scalar_type(dtype).with_shape(std::move(lhs)), scalar_type(dtype).with_shape(std::move(rhs))};
    s.attrs = c.attrs({{"precision", Attr()}, {"preferred_element_type", Attr()}});
    samples.push_back(std::move(s));
  };
  ConvDimensionNumbers plain1{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, plain2{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};
  ConvDimensionNumbers last{{0, 3, 1, 2}, {3, 2, 0, 1}, {0, 3, 1, 2}}, none{{0, 1}, {0, 1}, {0, 1}};
  add({1, 2, 5}, {3, 2, 2}, {plain1, {1}, {1}, {1}, {{0, 0}}, 1, 1});
  add({2, 2, 5, 4}, {3, 2, 3, 2}, {plain2, {2, 1}, {1, 1}, {1, 1}, {{1, 1}, {0, 1}}, 1, 1});
  add({2, 4, 5, 2}, {2, 2, 2, 3}, {last, {1, 2}, {2, 1}, {1, 2}, {{1, 0}, {1, 1}}, 1, 1});
  add({1, 4, 4}, {6, 2, 2}, {plain1, {1}, {1}, {1}, {{1, 0}}, 2, 1});
  add({4, 2, 4}, {6, 2, 2}, {plain1, {1}, {1}, {1}, {{0, 0}}, 1, 2});
  add({2, 3}, {4, 3}, {none, {}, {}, {}, {}, 1, 1});
  add({0, 2, 5}, {3, 2, 2}, {plain1, {1}, {1}, {1}, {{0, 0}}, 1, 1});
  return samples;
}

}  // namespace

Family convolution_family() {
  PrimitiveRecord record;
  record.name = op;
  record.factors = convolution_factors;
  record.splits = convolution_splits;
  record.traits.nan_checked = true;
  record.traits.element_nanoseconds = 3;
  record.doc = "Slides a kernel over space and sums products over the kernel's window and input features.";
  record.stablehlo = "stablehlo.convolution";
  record.dtypes = {DType::bool_,   DType::int8,    DType::int32,   DType::uint8,     DType::bfloat16,
                   DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128};
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(op, types, 2);
    ArrayType out;
    out.shape = convolution_shape(types[0], types[1], Convolution::of(attrs));
    out.dtype = convolution_dtype(types, attrs);
    out.weak_type = types[0].weak_type && types[1].weak_type;
    return Types{out};
  };
  record.jvp = bilinear_jvp;
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    const Array& cotangent = args.cotangents[0];
    if (!cotangent.defined()) return {Array(), Array()};
    if (args.linear(0)) return {transpose_lhs(cotangent, args.types[0], args.inputs[1], args.attrs), Array()};
    return {Array(), transpose_rhs(cotangent, args.inputs[0], args.types[1], args.attrs)};
  };
  record.batch = batch_convolution;
  // The normal form: the result dtype is explicit, and default precision is None.
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive p = primitive(op);
    Types types = {inputs[0].type(), inputs[1].type()};
    Attr precision = attrs["precision"];
    if (precision.get_if<std::string>() || precision == Attr(Attr::List{"default", "default"})) precision = Attr();
    Attrs plain = attrs.with("preferred_element_type", convolution_dtype(types, attrs)).with("precision", precision);
    if (plain == attrs) return {};
    return capibara::bind(p, inputs, plain);
  };
  record.samples = convolution_samples;
  record.print_attr = print_precision;
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Convolution c = Convolution::of(attrs);
    double results = static_cast<double>(element_count(convolution_shape(types[0], types[1], c)));
    return 2 * results * static_cast<double>(types[1].size()) /
           std::max<double>(1, static_cast<double>(at(types[1].shape, c.numbers.rhs_spec[0])));
  };
  return {record};
}

}  // namespace capibara

namespace capibara::jax::lax {

Array conv_general_dilated(const Array& lhs, const Array& rhs, const ConvOptions& options) {
  static const Primitive p = primitive("conv_general_dilated");
  if (lhs.ndim() != rhs.ndim() && !options.dimension_numbers) {
    throw TypeError(concat("conv_general_dilated: convolution requires lhs and rhs ndim to be equal, got ", lhs.ndim(),
                           " and ", rhs.ndim(), "."));
  }
  if (lhs.ndim() != rhs.ndim() || lhs.ndim() < 2) {
    throw ValueError(
        concat("conv_general_dilated lhs and rhs must have the same number of dimensions, at least 2, got ",
               to_string(lhs.type()), " and ", to_string(rhs.type())));
  }
  auto space = static_cast<std::size_t>(lhs.ndim() - 2);
  if (!options.window_strides.empty() && options.window_strides.size() != space) {
    throw ValueError(
        concat("conv_general_dilated window and window_strides must have the same number of dimensions, got ", space,
               " and ", options.window_strides.size()));
  }
  auto or_ones = [&](const Ints& values) { return values.empty() ? Ints(space, 1) : values; };
  ConvDimensionNumbers numbers = numbers_or_default(options.dimension_numbers, lhs.ndim());
  Ints strides = or_ones(options.window_strides), rhs_dilation = or_ones(options.rhs_dilation),
       lhs_dilation = or_ones(options.lhs_dilation);
  Padding padding;
  if (options.padding) {
    padding = *options.padding;
  } else {
    if (std::any_of(lhs_dilation.begin(), lhs_dilation.end(), [](int64_t d) { return d != 1; })) {
      throw ValueError(
          "conv_general_dilated: string padding is not defined together with lhs_dilation; give the padding in "
          "numbers, or use conv_transpose");
    }
    Shape window = taken_sizes(rhs.shape(), numbers.rhs_spec, 2);
    for (std::size_t d = 0; d < std::min(window.size(), rhs_dilation.size()); ++d)
      window[d] = dilated(window[d], rhs_dilation[d]);
    padding = padtype_to_pads(taken_sizes(lhs.shape(), numbers.lhs_spec, 2), window, strides, options.padding_mode);
  }
  return capibara::bind(p, Arrays{lhs, rhs},
                        {{"window_strides", strides},
                         {"padding", padding_attr(padding)},
                         {"lhs_dilation", lhs_dilation},
                         {"rhs_dilation", rhs_dilation},
                         {"dimension_numbers", numbers},
                         {"feature_group_count", options.feature_group_count},
                         {"batch_group_count", options.batch_group_count},
                         {"precision", precision_attr("conv_general_dilated", options.precision)},
                         {"preferred_element_type", canonical_attr(options.preferred_element_type)},
                         {"out_sharding", Attr()}})[0];
}

}  // namespace capibara::jax::lax
