// jax.lax: reductions over axes and windows, and cumulative operations.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <algorithm>

#include "lax/monoid.h"
#include "program/window_shape.h"

namespace capibara::jax::lax {

namespace {

Array bind_one(const Primitive& primitive, const Array& x, const Attrs& attrs) {
  return capibara::bind(primitive, Arrays{x}, attrs)[0];
}

using BinaryFunction = Array (*)(const Array&, const Array&);

// The monoid that a function of lax stands for; lambdas are opaque.
std::optional<Monoid> monoid_of(const std::function<Array(const Array&, const Array&)>& function) {
  const BinaryFunction* target = function.target<BinaryFunction>();
  if (!target) return std::nullopt;
  const std::pair<BinaryFunction, Monoid> known[] = {
      {add, Monoid::add},          {mul, Monoid::mul},        {max, Monoid::max},
      {min, Monoid::min},          {bitwise_and, Monoid::bit_and}, {bitwise_or, Monoid::bit_or},
      {bitwise_xor, Monoid::bit_xor}};
  for (const auto& [candidate, monoid] : known) {
    if (*target == candidate) return monoid;
  }
  return std::nullopt;
}

// Plain numbers take the dtype of the operand they start.
Arrays adopt_dtypes(const std::string& op, const Arrays& operands, const Arrays& init_values) {
  if (operands.empty()) throw ValueError(concat(op, ": at least one operand is needed (argument 'operands')"));
  if (operands.size() != init_values.size()) {
    throw ValueError(concat(op, ": must have as many init_values as operands, got ", operands.size(), " operands and ",
                            init_values.size(), " init_values"));
  }
  Arrays adopted;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    DType dtype = operands[i].dtype();
    bool convert = init_values[i].weak_type() && init_values[i].dtype() != dtype;
    adopted.push_back(convert ? convert_element_type(init_values[i], dtype) : init_values[i]);
  }
  return adopted;
}

Program variadic_region(const std::string& op, const Computation& computation, const Arrays& init_values) {
  Types types;
  for (int side = 0; side < 2; ++side) {
    for (const Array& value : init_values) types.push_back(scalar_type(value.dtype()));
  }
  auto n = static_cast<std::ptrdiff_t>(init_values.size());
  return stage_region(op, [&](std::span<const Array> xs) {
    return computation(Arrays(xs.begin(), xs.begin() + n), Arrays(xs.begin() + n, xs.end()));
  }, types);
}

Computation widen(const std::function<Array(const Array&, const Array&)>& computation) {
  return [&computation](const Arrays& x, const Arrays& y) { return Arrays{computation(x[0], y[0])}; };
}

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

Array reduce_sum(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_sum");
  return bind_one(p, x, {{"axes", options.axes}, {"out_sharding", Attr()}});
}
Array reduce_prod(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_prod");
  return bind_one(p, x, {{"axes", options.axes}});
}
Array reduce_max(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_max");
  return bind_one(p, x, {{"axes", options.axes}});
}
Array reduce_min(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_min");
  return bind_one(p, x, {{"axes", options.axes}});
}
Array reduce_and(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_and");
  return bind_one(p, x, {{"axes", options.axes}});
}
Array reduce_or(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_or");
  return bind_one(p, x, {{"axes", options.axes}});
}
Array reduce_xor(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_xor");
  return bind_one(p, x, {{"axes", options.axes}});
}

Array argmax(const Array& x, int64_t axis, DType index_dtype) {
  static const Primitive p = primitive("argmax");
  return bind_one(p, x, {{"axes", Ints{axis}}, {"index_dtype", canonicalize(index_dtype, capibara::config().enable_x64)}});
}
Array argmin(const Array& x, int64_t axis, DType index_dtype) {
  static const Primitive p = primitive("argmin");
  return bind_one(p, x, {{"axes", Ints{axis}}, {"index_dtype", canonicalize(index_dtype, capibara::config().enable_x64)}});
}

Arrays reduce(const Arrays& operands, const Arrays& init_values, const Computation& computation,
              const Ints& dimensions) {
  static const Primitive p = primitive("reduce");
  Arrays init = adopt_dtypes("reduce", operands, init_values);
  Arrays inputs = operands;
  inputs.insert(inputs.end(), init.begin(), init.end());
  return capibara::bind(p, inputs, {{"jaxpr", variadic_region("reduce", computation, init)}, {"dimensions", dimensions}});
}

Array reduce(const Array& operand, const Array& init_value,
             const std::function<Array(const Array&, const Array&)>& computation, const Ints& dimensions) {
  Array init = adopt_dtypes("reduce", {operand}, {init_value})[0];
  if (std::optional<Monoid> monoid = monoid_of(computation); monoid && is_identity_element(*monoid, init)) {
    ReduceOptions options{dimensions};
    bool numbers = is_numeric(operand.dtype());
    switch (*monoid) {
      case Monoid::add: if (numbers) return reduce_sum(operand, options); break;
      case Monoid::mul: if (numbers) return reduce_prod(operand, options); break;
      case Monoid::max: return reduce_max(operand, options);
      case Monoid::min: return reduce_min(operand, options);
      case Monoid::bit_and: return reduce_and(operand, options);
      case Monoid::bit_or: return reduce_or(operand, options);
      case Monoid::bit_xor: return reduce_xor(operand, options);
    }
  }
  return reduce(Arrays{operand}, Arrays{init}, widen(computation), dimensions)[0];
}

Padding padtype_to_pads(const Shape& in_shape, const Shape& window_shape, const Ints& strides,
                        const std::string& padding) {
  std::string mode = padding;
  std::transform(mode.begin(), mode.end(), mode.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  if (mode == "VALID") return Padding(in_shape.size(), {0, 0});
  if (mode != "SAME" && mode != "SAME_LOWER") {
    throw RuntimeError(concat("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got '", padding, "'."));
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
  WindowOptions options{.strides = strides, .padding = padding, .base_dilation = base_dilation, .window_dilation = window_dilation};
  ArrayType type;
  type.shape = operand_shape;
  return window_output_shape("reduce_window", type, make_window(operand_shape, window_dimensions, options));
}

Array reduce_window_sum(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_sum");
  return bind_one(p, x, make_window(x.shape(), window_dimensions, options).attrs());
}
Array reduce_window_max(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_max");
  return bind_one(p, x, make_window(x.shape(), window_dimensions, options).attrs());
}
Array reduce_window_min(const Array& x, const Ints& window_dimensions, const WindowOptions& options) {
  static const Primitive p = primitive("reduce_window_min");
  return bind_one(p, x, make_window(x.shape(), window_dimensions, options).attrs());
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

Array reduce_window(const Array& operand, const Array& init_value,
                    const std::function<Array(const Array&, const Array&)>& computation,
                    const Ints& window_dimensions, const WindowOptions& options) {
  Array init = adopt_dtypes("reduce_window", {operand}, {init_value})[0];
  if (std::optional<Monoid> monoid = monoid_of(computation); monoid && is_identity_element(*monoid, init)) {
    if (*monoid == Monoid::add && is_numeric(operand.dtype())) return reduce_window_sum(operand, window_dimensions, options);
    if (*monoid == Monoid::max) return reduce_window_max(operand, window_dimensions, options);
    if (*monoid == Monoid::min) return reduce_window_min(operand, window_dimensions, options);
  }
  return reduce_window(Arrays{operand}, Arrays{init}, widen(computation), window_dimensions, options)[0];
}

namespace {
Attrs cumulative_attrs(const CumulativeOptions& options) { return {{"axis", options.axis}, {"reverse", options.reverse}}; }
}  // namespace

Array cumsum(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumsum");
  return bind_one(p, x, cumulative_attrs(options));
}
Array cumprod(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumprod");
  return bind_one(p, x, cumulative_attrs(options));
}
Array cummax(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cummax");
  return bind_one(p, x, cumulative_attrs(options));
}
Array cummin(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cummin");
  return bind_one(p, x, cumulative_attrs(options));
}
Array cumlogsumexp(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumlogsumexp");
  return bind_one(p, x, cumulative_attrs(options));
}

}  // namespace capibara::jax::lax
