// jax.lax: slices, gather and scatter.
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "lax/monoid.h"
#include "lax/shape.h"
#include "library/plain_number.h"
#include "transforms/flat.h"

namespace capibara::jax::lax {

namespace {

int64_t position_of(const Array& number) { return number.item<int64_t>(); }

// Start indices with negative ones taken from the end. A plain number is adjusted here, anything else by operations.
Arrays normalized_starts(const char* op, const Array& x, const Arrays& starts,
                         const std::vector<bool>& allow_negative) {
  if (static_cast<int64_t>(starts.size()) != x.ndim()) {
    throw ValueError(concat(op, ": start_indices must have one entry per operand dimension, got ", starts.size(),
                            " for ", to_string(x.type())));
  }
  // Plain numbers take the dtype of the computed indices beside them.
  DType dtype = DType::int32;
  for (const Array& start : starts) {
    if (is_plain_number(start) && is_integer(start.dtype())) dtype = start.dtype();
  }
  for (const Array& start : starts) {
    if (!is_plain_number(start) && is_integer(start.dtype())) dtype = start.dtype();
  }
  Arrays out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Array& start = starts[i];
    int64_t size = x.shape()[i];
    if (is_plain_number(start) && is_integer(start.dtype())) {
      int64_t position = position_of(start);
      if (position < 0 && !allow_negative[i]) {
        throw ValueError(concat(op, ": index ", position, " is out of bounds for dimension ", i, " of size ", size,
                                " if allow_negative_indices=False"));
      }
      out.push_back(exact_scalar(dtype, position < 0 ? position + size : position));
    } else if (allow_negative[i] && !start.is_tracer() && is_integer(start.dtype())) {
      int64_t position = position_of(start);
      out.push_back(exact_scalar(start.dtype(), position < 0 ? position + size : position));
    } else if (!allow_negative[i] || is_unsigned(start.dtype()) || !is_integer(start.dtype())) {
      out.push_back(start);
    } else {
      Array is_negative = lt(start, exact_scalar(start.dtype(), 0));
      Array from_end = add(start, exact_scalar(start.dtype(), size));
      out.push_back(select(is_negative, from_end, start));
    }
  }
  return out;
}

std::vector<bool> for_all(const Array& x, bool value) {
  return std::vector<bool>(static_cast<std::size_t>(x.ndim()), value);
}

Array bind_dynamic_slice(const Array& x, const Arrays& starts, const Ints& sizes) {
  static const Primitive p = primitive("dynamic_slice");
  Arrays inputs{x};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  return capibara::bind(p, inputs, {{"slice_sizes", sizes}})[0];
}

Array bind_dynamic_update_slice(const Array& x, const Array& update, const Arrays& starts) {
  static const Primitive p = primitive("dynamic_update_slice");
  Array value = is_plain_number(update) ? array_as(update, x.dtype(), x.weak_type()) : update;
  Arrays inputs{x, value};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  return capibara::bind(p, inputs)[0];
}

// Zeros everywhere but at `axis`, of the dtype of the one computed index.
Arrays starts_at(const Array& x, const Array& start, int64_t axis) {
  Array zero = is_plain_number(start) ? Array(0) : exact_scalar(start.dtype(), 0);
  Arrays starts(static_cast<std::size_t>(x.ndim()), zero);
  starts[static_cast<std::size_t>(axis)] = start;
  return starts;
}

std::vector<bool> only_axis(const Array& x, int64_t axis, bool allow) {
  std::vector<bool> allowed = for_all(x, false);
  allowed[static_cast<std::size_t>(axis)] = allow;
  return allowed;
}

// The call of a nested program, as where JAX's own function is jitted.
Array call_nested(const char* name, const FlatFunction& function, const Arrays& inputs) {
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  Staged staged = stage(function, types, name);
  Arrays arguments = staged.captured;
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  return call_program(staged.program, arguments, name)[0];
}

}  // namespace

// ---- slices ------------------------------------------------------------------------------------------------------

Array slice(const Array& x, const Ints& start_indices, const Ints& limit_indices, const Ints& strides) {
  static const Primitive p = primitive("slice");
  return bind1(p, {x},
               {{"start_indices", start_indices},
                {"limit_indices", limit_indices},
                {"strides", strides.empty() ? Attr() : Attr(strides)}});
}

Array slice_in_dim(const Array& x, std::optional<int64_t> start, std::optional<int64_t> limit, int64_t stride,
                   int64_t axis) {
  auto d = static_cast<std::size_t>(checked_axis("slice_in_dim", axis, x.type()));
  Ints starts(x.shape().size(), 0), limits = x.shape(), strides(x.shape().size(), 1);
  int64_t size = limits[d];
  auto from_end = [&](int64_t i) { return i < 0 ? i + size : i; };
  starts[d] = from_end(start.value_or(0));
  limits[d] = from_end(limit.value_or(size));
  strides[d] = stride;
  return slice(x, starts, limits, strides);
}

Array index_in_dim(const Array& x, int64_t index, int64_t axis, bool keepdims) {
  axis = checked_axis("index_in_dim", axis, x.type());
  int64_t size = x.shape(axis);
  int64_t position = index < 0 ? index + size : index;
  if (position < 0 || position >= size) {
    throw IndexError(concat("index_in_dim: index ", index, " is out of bounds for axis ", axis, " with size ", size));
  }
  Array window = slice_in_dim(x, position, position + 1, 1, axis);
  return keepdims ? window : squeeze(window, {axis});
}

Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes, bool allow_negative_indices) {
  return dynamic_slice(x, start_indices, slice_sizes, for_all(x, allow_negative_indices));
}

Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    const std::vector<bool>& allow_negative_indices) {
  return bind_dynamic_slice(x, normalized_starts("dynamic_slice", x, start_indices, allow_negative_indices),
                            slice_sizes);
}

Array dynamic_slice_in_dim(const Array& x, const Array& start, int64_t slice_size, int64_t axis,
                           bool allow_negative_indices) {
  if (start.ndim() != 0) {
    throw TypeError(concat("dynamic_slice_in_dim: start_index must be a scalar, got ", to_string(start.type())));
  }
  axis = checked_axis("dynamic_slice_in_dim", axis, x.type());
  Ints sizes = x.shape();
  sizes[static_cast<std::size_t>(axis)] = slice_size;
  Arrays starts = normalized_starts("dynamic_slice_in_dim", x, starts_at(x, start, axis),
                                    only_axis(x, axis, allow_negative_indices));
  return bind_dynamic_slice(x, starts, sizes);
}

Array dynamic_index_in_dim(const Array& x, const Array& index, int64_t axis, bool keepdims,
                           bool allow_negative_indices) {
  axis = checked_axis("dynamic_index_in_dim", axis, x.type());
  return call_nested("dynamic_index_in_dim",
                     [&](std::span<const Array> in) -> Arrays {
                       Array window = dynamic_slice_in_dim(in[0], in[1], 1, axis, allow_negative_indices);
                       return {keepdims ? window : squeeze(window, {axis})};
                     },
                     {x, index});
}

Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           bool allow_negative_indices) {
  return dynamic_update_slice(x, update, start_indices, for_all(x, allow_negative_indices));
}

Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           const std::vector<bool>& allow_negative_indices) {
  return bind_dynamic_update_slice(
      x, update, normalized_starts("dynamic_update_slice", x, start_indices, allow_negative_indices));
}

Array dynamic_update_slice_in_dim(const Array& x, const Array& update, const Array& start, int64_t axis,
                                  bool allow_negative_indices) {
  axis = checked_axis("dynamic_update_slice_in_dim", axis, x.type());
  return bind_dynamic_update_slice(x, update,
                                   normalized_starts("dynamic_update_slice_in_dim", x, starts_at(x, start, axis),
                                                     only_axis(x, axis, allow_negative_indices)));
}

Array dynamic_update_index_in_dim(const Array& x, const Array& update, const Array& index, int64_t axis,
                                  bool allow_negative_indices) {
  axis = checked_axis("dynamic_update_index_in_dim", axis, x.type());
  if (update.ndim() != x.ndim() && update.ndim() + 1 != x.ndim()) {
    throw TypeError(concat("dynamic_update_index_in_dim: update must have the operand's rank or one less, got ",
                           to_string(update.type()), " for ", to_string(x.type())));
  }
  return call_nested("dynamic_update_index_in_dim",
                     [&](std::span<const Array> in) -> Arrays {
                       Array window = in[1].ndim() == in[0].ndim() ? in[1] : expand_dims(in[1], {axis});
                       return {dynamic_update_slice_in_dim(in[0], window, in[2], axis, allow_negative_indices)};
                     },
                     {x, update, index});
}

Array index_take(const Array& x, const Arrays& indices, const Ints& axes) {
  Arrays columns;
  for (const Array& index : indices) columns.push_back(expand_dims(index, {1}));
  Array vectors = concatenate(columns, 1);
  std::vector<int32_t> sizes;
  Ints slice_sizes = x.shape();
  for (int64_t axis : axes) {
    sizes.push_back(static_cast<int32_t>(x.shape(axis)));
    slice_sizes[static_cast<std::size_t>(axis)] = 1;
  }
  vectors = vectors % convert_element_type(expand_dims(array<int32_t>(sizes), range(vectors.ndim() - 1)), vectors.dtype());
  Ints offset_dims = range(x.ndim() - vectors.shape(1) + 1, 1);
  return gather(x, vectors, {offset_dims, axes, axes, {}, {}}, slice_sizes);
}

// ---- gather ------------------------------------------------------------------------------------------------------

namespace {

const char* mode_name(GatherScatterMode mode) {
  switch (mode) {
    case GatherScatterMode::clip:
      return "clip";
    case GatherScatterMode::fill_or_drop:
      return "fill_or_drop";
    case GatherScatterMode::promise_in_bounds:
      return "promise_in_bounds";
    case GatherScatterMode::one_hot:
      break;
  }
  throw ValueError("gather/scatter: mode one_hot is a mode of take_along_axis only");
}

// What stands for "out of bounds" where the caller did not say.
Attr default_fill(DType dtype) {
  if (is_inexact(dtype)) return std::numeric_limits<double>::quiet_NaN();
  if (is_signed(dtype)) return iinfo(dtype).min;
  if (is_key(dtype)) return int64_t{UINT32_MAX};
  if (is_bool(dtype)) return true;
  uint64_t greatest = iinfo(dtype).max;
  if (greatest <= INT64_MAX) return static_cast<int64_t>(greatest);
  // The greatest uint64 has no int64: keep it as an array.
  Buffer buffer = Buffer::allocate(sizeof greatest);
  std::copy_n(reinterpret_cast<const std::byte*>(&greatest), sizeof greatest, buffer.mutable_data());
  return Array::from_buffer(sample_type(DType::uint64, {}), std::move(buffer));
}

Attr fill_attribute(const Array& value) {
  if (value.is_tracer()) {
    throw ConcretizationTypeError("gather: fill_value must be a concrete number, got a traced array");
  }
  if (value.ndim() != 0) throw ValueError("gather: fill_value must be a scalar");
  if (is_bool(value.dtype())) return value.item<bool>();
  if (is_floating(value.dtype())) return value.item<double>();
  if (is_integer(value.dtype()) && value.dtype() != DType::uint64) return value.item<int64_t>();
  return value;
}

}  // namespace

Array gather(const Array& x, const Array& start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options) {
  static const Primitive p = primitive("gather");
  GatherScatterMode mode = options.mode.value_or(GatherScatterMode::promise_in_bounds);
  Attr fill;
  if (mode == GatherScatterMode::fill_or_drop) {
    fill = options.fill_value ? fill_attribute(*options.fill_value) : default_fill(x.dtype());
  }
  return bind1(p, {x, start_indices},
               {{"dimension_numbers", dimension_numbers},
                {"slice_sizes", slice_sizes},
                {"unique_indices", options.unique_indices},
                {"indices_are_sorted", options.indices_are_sorted},
                {"mode", mode_name(mode)},
                {"fill_value", fill}});
}

// ---- scatter -----------------------------------------------------------------------------------------------------

namespace {

Array bind_scatter(const Primitive& p, Attr region, const Array& x, const Array& indices, const Array& updates,
                   const ScatterDimensionNumbers& dims, const ScatterOptions& options) {
  return bind1(p, {x, indices, updates},
               {{"dimension_numbers", dims},
                {"indices_are_sorted", options.indices_are_sorted},
                {"unique_indices", options.unique_indices},
                {"mode", mode_name(options.mode.value_or(GatherScatterMode::fill_or_drop))},
                {"update_jaxpr", std::move(region)},
                {"update_consts", Attr::List{}}});
}

}  // namespace

Array scatter(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
              const ScatterOptions& options) {
  static const Primitive p = primitive("scatter");
  return bind_scatter(p, Attr(), x, indices, updates, dims, options);
}
Array scatter_add(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-add");
  return bind_scatter(p, update_region("add", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_sub(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-sub");
  return bind_scatter(p, update_region("sub", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_mul(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-mul");
  return bind_scatter(p, update_region("mul", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_min(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-min");
  return bind_scatter(p, update_region("min", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_max(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-max");
  return bind_scatter(p, update_region("max", x.dtype()), x, indices, updates, dims, options);
}

Array scatter_apply(const Array& x, const Array& indices, const std::function<Array(const Array&)>& function,
                    const ScatterDimensionNumbers& dims, const Shape& update_shape, const ScatterOptions& options) {
  static const Primitive p = primitive("scatter");
  Array unused = full(update_shape, Array(0), x.dtype());
  ArrayType scalar = sample_type(x.dtype(), {});
  ArrayType types[] = {scalar, scalar};
  Staged staged = stage([&](std::span<const Array> in) -> Arrays { return {function(in[0])}; }, types, "scatter_apply");
  if (!staged.captured.empty()) {
    throw NotImplementedError("scatter_apply: the function must not use traced arrays from outside");
  }
  return bind_scatter(p, staged.program, x, indices, unused, dims, options);
}

}  // namespace capibara::jax::lax
