// Reductions over sliding windows, and their general form with a region.
#include "lax/reduce/window.h"
#include "lax/sharding/splits.h"

#include <algorithm>

#include "lax/reduce/reduction_calls.h"
#include "lax/sharding/factors.h"
#include "program/derive/derive.h"

namespace capibara {

namespace lax = jax::lax;

Array bind_window(const char* name, Arrays inputs, const Attrs& attrs) {
  return capibara::bind(primitive(name), inputs, attrs)[0];
}

std::vector<Sample> window_samples(DType dtype, bool dilation) {
  std::vector<Sample> samples;
  auto add = [&](Shape shape, Window window) {
    Sample s;
    s.inputs = {scalar_type(dtype).with_shape(std::move(shape))};
    s.attrs = window.attrs();
    samples.push_back(std::move(s));
  };
  add({6}, {{2}, {1}, {{0, 0}}, {1}, {1}});
  add({3, 5}, {{2, 3}, {1, 2}, {{0, 1}, {1, 1}}, {1, 1}, {1, 1}});
  add({2, 4, 3}, {{1, 2, 2}, {1, 2, 1}, {{0, 0}, {1, 0}, {0, 0}}, {1, 1, 1}, {1, 1, 1}});
  add({0, 3}, {{1, 2}, {1, 1}, {{0, 0}, {0, 0}}, {1, 1}, {1, 1}});
  add({}, {{}, {}, {}, {}, {}});
  if (dilation) add({4, 5}, {{2, 2}, {1, 1}, {{0, 0}, {1, 0}}, {2, 1}, {1, 2}});
  return samples;
}

namespace {

const std::vector<DType> window_dtypes = {DType::int8,      DType::int16,     DType::int32,   DType::int64,
                                          DType::uint8,     DType::uint16,    DType::uint32,  DType::uint64,
                                          DType::bfloat16,  DType::float16,   DType::float32, DType::float64,
                                          DType::complex64, DType::complex128};

// reduce_window over one operand with the region of a monoid.
LowerRule lower_window(Monoid monoid) {
  return [monoid](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive reduce_window = primitive("reduce_window");
    DType dtype = inputs[0].dtype();
    Attrs with_region = attrs.with("jaxpr", monoid_region(monoid, dtype)).with("consts", Ints{});
    return capibara::bind(reduce_window, Arrays{inputs[0], identity_element(monoid, dtype)}, with_region);
  };
}

PrimitiveRecord window_reduction(std::string name, std::string doc, Monoid monoid) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = window_factors;
  record.splits = resized_splits("reduce_window");
  record.doc = std::move(doc);
  record.traits.combines = Combines::windows;
  record.traits.monoid = monoid;
  record.traits.element_nanoseconds = 10;
  record.traits.nan_checked = monoid == Monoid::add;
  record.dtypes = window_dtypes;
  record.type = [name, monoid](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(name, types, 1);
    DType dtype = types[0].dtype;
    if ((monoid == Monoid::add && !is_numeric(dtype)) || is_key(dtype) || dtype == DType::float0) {
      throw TypeError(concat(name, ": the operand must have a number dtype, got ", to_string(types[0])));
    }
    return Types{types[0].with_shape(window_output_shape(name, types[0], Window::of(attrs)))};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    Attrs attrs = Window::of(args.attrs).with_batch(args.dims[0]).attrs();
    return {capibara::bind(args.primitive, args.inputs, attrs), {args.dims[0]}};
  };
  record.lower = lower_window(monoid);
  record.samples = [](DType dtype) { return window_samples(dtype, true); };
  return record;
}

PrimitiveRecord window_sum_record() {
  PrimitiveRecord record =
      window_reduction("reduce_window_sum", "The sum over each place of a sliding window.", Monoid::add);
  record.jvp = linear_jvp();
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    const Array& cotangent = args.cotangents[0];
    if (!cotangent.defined()) return {Array()};
    const Shape& in = args.types[0].shape;
    Window window = Window::of(args.attrs);
    lax::Padding pads = transposed_padding(in, window.dimensions, window.strides, cotangent.shape(), window.padding,
                                           window.base_dilation, window.window_dilation);
    std::vector<lax::PadDim> config;
    for (std::size_t d = 0; d < in.size(); ++d) {
      config.push_back({pads[d].first, pads[d].second, window.strides[d] - 1});
    }
    Array padded = lax::pad(cotangent, scalar_like(cotangent, 0), config);
    Window back = window;
    back.strides = window.base_dilation;
    back.padding.assign(in.size(), {0, 0});
    back.base_dilation.assign(in.size(), 1);
    return {bind_window("reduce_window_sum", {padded}, back.attrs())};
  };
  return record;
}

PrimitiveRecord window_extreme_record(std::string name, std::string doc, Monoid monoid) {
  PrimitiveRecord record = window_reduction(name, std::move(doc), monoid);
  record.dtypes.insert(record.dtypes.begin(), DType::bool_);
  record.jvp = [monoid](const JvpArgs& args) -> JvpResult {
    Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
    Attrs attrs = args.attrs.with("select_prim", monoid == Monoid::max ? "ge" : "le");
    return {{out}, {bind_window("select_and_gather_add", {args.tangents[0], args.primals[0]}, attrs)}};
  };
  return record;
}

PrimitiveRecord general_window_record() {
  PrimitiveRecord record;
  record.name = "reduce_window";
  record.factors = window_factors;
  record.splits = resized_splits("reduce_window");
  record.traits.combines = Combines::windows;
  record.traits.region = true;
  record.traits.multiple_results = true;
  record.traits.nan_checked = true;
  record.traits.element_nanoseconds = 10;
  record.doc = "Folds operands over each place of a sliding window with a region.";
  record.stablehlo = "stablehlo.reduce_window";
  record.dtypes = window_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    if (types.empty() || types.size() % 2 != 0) {
      throw TypeError(
          concat("reduce_window: needs one initial value per operand, got ", types.size(), " inputs in all"));
    }
    std::size_t n = types.size() / 2;
    for (std::size_t i = 0; i < n; ++i) {
      if (types[i].shape != types[0].shape) {
        throw TypeError(concat("reduce_window: operands must have equal shapes, got ", to_string(types[0]), " and ",
                               to_string(types[i])));
      }
      if (types[i].dtype != types[n + i].dtype) {
        throw TypeError(concat("reduce_window got inconsistent dtypes for operand and init_value ", i, ": ",
                               to_string(types[i]), " and ", to_string(types[n + i])));
      }
      if (types[n + i].rank() != 0) {
        throw TypeError(concat("reduce_window expected init_values to be scalars but init_values have shapes [",
                               shape_tuple(types[n + i].shape), "]."));
      }
    }
    check_region("reduce_window", attrs.program("jaxpr"), types.subspan(0, n));
    Shape shape = window_output_shape("reduce_window", types[0], Window::of(attrs));
    Types out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(types[i].with_shape(shape).strong());
    return out;
  };
  record.jvp = [](const JvpArgs& args) -> JvpResult {
    std::size_t n = args.primals.size() / 2;
    for (std::size_t i = n; i < 2 * n; ++i) {
      if (args.tangents[i].defined()) {
        throw TypeError(
            "reduce_window: the derivative with respect to init_values is not defined; they must be constants");
      }
    }
    const Program& region = args.attrs.program("jaxpr");
    Program derivative = jvp_program(region, std::vector<bool>(2 * n, true), std::vector<bool>(n, true)).program;
    // Pairs of value and tangent fold together: (values, tangents | values, tangents).
    Types types;
    for (int side = 0; side < 2; ++side) {
      for (int part = 0; part < 2; ++part) {
        for (std::size_t i = 0; i < n; ++i) types.push_back(scalar_type(args.primals[i].dtype()));
      }
    }
    auto pairs = [&](std::span<const Array> xs) -> Arrays {
      Arrays ordered(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(n));
      auto append = [&](std::size_t from) {
        ordered.insert(ordered.end(), xs.begin() + static_cast<std::ptrdiff_t>(from),
                       xs.begin() + static_cast<std::ptrdiff_t>(from + n));
      };
      append(2 * n);
      append(n);
      append(3 * n);
      return evaluate_program(derivative, ordered);
    };
    Arrays operands;
    for (std::size_t i = 0; i < n; ++i) operands.push_back(args.primals[i]);
    for (std::size_t i = 0; i < n; ++i) operands.push_back(instantiate(args.tangents[i], args.primals[i].type()));
    for (std::size_t i = n; i < 2 * n; ++i) operands.push_back(args.primals[i]);
    for (std::size_t i = n; i < 2 * n; ++i) operands.push_back(scalar_like(args.primals[i], 0));
    Arrays out =
        capibara::bind(args.primitive, operands, args.attrs.with("jaxpr", stage_region("reduce_window", pairs, types)));
    return {Arrays(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)),
            Arrays(out.begin() + static_cast<std::ptrdiff_t>(n), out.end())};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    std::size_t n = args.inputs.size() / 2;
    Arrays inputs;
    for (std::size_t i = 0; i < n; ++i) inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
    for (std::size_t i = n; i < 2 * n; ++i) {
      if (args.mapped(i)) throw NotImplementedError("reduce_window: batching over initial values is not defined");
      inputs.push_back(args.inputs[i]);
    }
    Attrs attrs =
        Window::of(args.attrs).with_batch(0).attrs().with("jaxpr", args.attrs["jaxpr"]).with("consts", Ints{});
    return {capibara::bind(args.primitive, inputs, attrs), std::vector<int64_t>(n, 0)};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples = window_samples(dtype, true);
    for (Sample& s : samples) {
      s.inputs.push_back(scalar_type(dtype));
      s.attrs = s.attrs.with("jaxpr", monoid_region(Monoid::mul, dtype)).with("consts", Ints{});
    }
    return samples;
  };
  return record;
}

}  // namespace

Family window_family() {
  Family family = {
      general_window_record(),
      window_sum_record(),
      window_extreme_record("reduce_window_max", "The largest element in each position of a sliding window.",
                            Monoid::max),
      window_extreme_record("reduce_window_min", "The least element at each place of a sliding window.", Monoid::min),
  };
  for (Family (*part)() : {selection_records, cumulative_records}) {
    for (PrimitiveRecord& record : part()) family.push_back(std::move(record));
  }
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

Window make_window(const Shape& operand_shape, const Ints& window_dimensions, const WindowOptions& options) {
  std::size_t rank = window_dimensions.size();
  auto or_ones = [&](const Ints& values) { return values.empty() ? Ints(rank, 1) : values; };
  Window window;
  window.dimensions = window_dimensions;
  window.strides = or_ones(options.strides);
  window.base_dilation = or_ones(options.base_dilation);
  window.window_dilation = or_ones(options.window_dilation);
  if (options.padding) {
    window.padding = *options.padding;
  } else {
    Shape extent = window_dimensions;
    for (std::size_t d = 0; d < std::min(rank, window.window_dilation.size()); ++d) {
      extent[d] = dilated(extent[d], window.window_dilation[d]);
    }
    window.padding = padtype_to_pads(operand_shape, extent, window.strides,
                                     options.padding_mode.empty() ? "VALID" : options.padding_mode);
  }
  return window;
}

}  // namespace

Padding padtype_to_pads(const Shape& in_shape, const Shape& window_shape, const Ints& strides,
                        const std::string& padding) {
  std::string mode = padding;
  std::transform(mode.begin(), mode.end(), mode.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  if (mode == "VALID") return Padding(in_shape.size(), {0, 0});
  if (mode != "SAME" && mode != "SAME_LOWER") {
    throw RuntimeError(
        concat("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got '", padding, "'."));
  }
  if (window_shape.size() != in_shape.size() || strides.size() != in_shape.size()) {
    throw TypeError(concat("padtype_to_pads: window and strides need one entry per dimension: expected ",
                           in_shape.size(), ", got ", window_shape.size(), " and ", strides.size()));
  }
  Padding pads;
  for (std::size_t d = 0; d < in_shape.size(); ++d) {
    if (strides[d] < 1) throw ValueError(concat("padtype_to_pads: strides must be positive, got ", strides[d]));
    int64_t out = (in_shape[d] + strides[d] - 1) / strides[d];
    int64_t total = std::max<int64_t>((out - 1) * strides[d] + window_shape[d] - in_shape[d], 0);
    int64_t less = total / 2;
    pads.push_back(mode == "SAME" ? std::pair{less, total - less} : std::pair{total - less, less});
  }
  return pads;
}

Shape reduce_window_shape_tuple(const Shape& operand_shape, const Ints& window_dimensions, const Ints& strides,
                                const Padding& padding, const Ints& base_dilation, const Ints& window_dilation) {
  WindowOptions options{
      .strides = strides, .padding = padding, .base_dilation = base_dilation, .window_dilation = window_dilation};
  ArrayType type;
  type.shape = operand_shape;
  return window_output_shape("reduce_window", type, make_window(operand_shape, window_dimensions, options));
}

Array reduce_window_sum(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_sum");
  return bind1(p, {x}, make_window(x.shape(), window_dimensions, options).attrs());
}
Array reduce_window_max(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_max");
  return bind1(p, {x}, make_window(x.shape(), window_dimensions, options).attrs());
}
Array reduce_window_min(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_min");
  return bind1(p, {x}, make_window(x.shape(), window_dimensions, options).attrs());
}

Arrays reduce_window(const Arrays& operands, const Arrays& init_values, const Computation& computation,
                     const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window");
  Arrays init = adopt_dtypes("reduce_window", operands, init_values);
  Attrs attrs = make_window(operands[0].shape(), window_dimensions, options).attrs();
  Arrays inputs = operands;
  inputs.insert(inputs.end(), init.begin(), init.end());
  Program region = variadic_region("reduce_window", computation, init);
  return capibara::bind(p, inputs, attrs.with("jaxpr", region).with("consts", Ints{}));
}

Array reduce_window(const Array& operand, const Array& init_value, const BinaryFunction& computation,
                    const Ints& window_dimensions, const WindowOptions& options) {
  Array init = adopt_dtypes("reduce_window", {operand}, {init_value})[0];
  if (std::optional<Monoid> monoid = monoid_of(computation); monoid && is_identity_element(*monoid, init)) {
    if (*monoid == Monoid::add && is_numeric(operand.dtype()))
      return reduce_window_sum(operand, window_dimensions, options);
    if (*monoid == Monoid::max) return reduce_window_max(operand, window_dimensions, options);
    if (*monoid == Monoid::min) return reduce_window_min(operand, window_dimensions, options);
  }
  return reduce_window(Arrays{operand}, Arrays{init}, widen(computation), window_dimensions, options)[0];
}

}  // namespace capibara::jax::lax
