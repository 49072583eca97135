// jax.numpy: reading and writing at indices, and indices of flattened arrays.
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/sorting.h>

#include <algorithm>

#include "lax/index/index_expression.h"
#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "library/numpy/indexing_steps.h"

namespace capibara::jax::numpy {

namespace {

using Mode = lax::GatherScatterMode;

Mode gather_mode(const char* name, const std::string& mode) {
  if (mode.empty() || mode == "fill" || mode == "drop" || mode == "fill_or_drop") return Mode::fill_or_drop;
  if (mode == "clip") return Mode::clip;
  if (mode == "promise_in_bounds") return Mode::promise_in_bounds;
  throw ValueError(concat(name, ": mode must be 'fill', 'clip', 'promise_in_bounds' or 'one_hot', got '", mode, "'"));
}

Array wrapped_once(const Array& index, int64_t size) {
  if (is_unsigned(index.dtype())) return index;
  Array is_less = index < 0;
  return where(is_less, index + size, index);
}

}  // namespace

Array take(const Array& a, const Array& indices, const TakeOptions& options) {
  Array x = options.axis ? a : ravel(a);
  const int64_t axis = canonical_axis("take", options.axis.value_or(0), x.ndim());
  const int64_t size = x.shape(axis);
  Array index = indices;
  Mode mode = Mode::fill_or_drop;
  if (options.mode.empty() || options.mode == "fill") {
    Array is_less = index < 0;
    index = where(is_less, index + size, index);
  } else if (options.mode == "raise") {
    throw NotImplementedError("take: mode='raise' is not supported: indices are not checked while running");
  } else if (options.mode == "wrap") {
    index = index % lax::convert_element_type(Array(size), index.dtype(), index.weak_type());
    mode = Mode::promise_in_bounds;
  } else if (options.mode == "clip") {
    mode = Mode::clip;
  } else {
    throw ValueError(concat("take: mode must be 'fill', 'wrap' or 'clip', got '", options.mode, "'"));
  }
  if (size == 0) {
    if (index.size() != 0) throw IndexError(concat("take: cannot do a non-empty jnp.take() from an empty axis ", axis));
    return x;
  }
  Shape window = x.shape();
  if (index.size() == 0) {
    Shape shape(window.begin(), window.begin() + axis);
    shape.insert(shape.end(), index.shape().begin(), index.shape().end());
    shape.insert(shape.end(), window.begin() + axis + 1, window.end());
    return lax::zeros(x.type().with_shape(shape));
  }
  window[static_cast<std::size_t>(axis)] = 1;
  Ints offsets = range(axis);
  for (int64_t i = axis + index.ndim(); i < x.ndim() + index.ndim() - 1; ++i) offsets.push_back(i);
  return lax::gather(x, lax::expand_dims(index, {index.ndim()}), {offsets, {axis}, {axis}, {}, {}}, window,
                     {.unique_indices = options.unique_indices,
                      .indices_are_sorted = options.indices_are_sorted,
                      .mode = mode,
                      .fill_value = options.fill_value});
}

// ---- along an axis -----------------------------------------------------------------------------------------------

namespace {

// The contraction with one-hot rows, which some machines execute faster than a gather.
Array take_one_hot(const Array& x, const Array& index, int64_t axis) {
  const int64_t size = x.shape(axis);
  Array columns = lax::iota(index.dtype(), size);
  Array expanded = lax::expand_dims(index, {index.ndim()});
  Array hot = expanded == lax::expand_dims(columns, range(index.ndim()));
  const EinsumOptions options{.precision = "highest", .preferred_element_type = x.dtype()};
  if (x.ndim() == 1) return einsum("...b,b->...", {hot, x}, {.preferred_element_type = x.dtype()});
  if (axis > 24) throw ValueError("take_along_axis: mode 'one_hot' allows up to 24 leading dimensions");
  std::string lead;
  for (int64_t i = 0; i < axis; ++i) lead += static_cast<char>('a' + i);
  return einsum(concat(lead, "y...z,", lead, "z...->", lead, "y..."), {hot, x}, options);
}

}  // namespace

Array take_along_axis(const Array& arr, const Array& indices, const TakeAlongAxisOptions& options) {
  if (!is_integer(indices.dtype())) {
    throw TypeError(concat("take_along_axis indices must be of integer type, got ", dtype_name(indices.dtype())));
  }
  if (!options.axis && indices.ndim() != 1) {
    throw ValueError(
        concat("take_along_axis: indices must be one-dimensional where axis is None, got ", to_string(indices.type())));
  }
  Array x = options.axis ? arr : ravel(arr);
  const int64_t rank = x.ndim();
  if (indices.ndim() != rank) {
    throw ValueError(concat("take_along_axis: arr and indices must have equally many dimensions, got ",
                            to_string(x.type()), " and ", to_string(indices.type())));
  }
  const int64_t axis = canonical_axis("take_along_axis", options.axis.value_or(0), rank);
  const int64_t size = x.shape(axis);
  Shape others = x.shape();
  others[static_cast<std::size_t>(axis)] = 1;
  const Shape shape = lax::broadcast_shapes({indices.shape(), others});
  if (size == 0) return lax::zeros(x.type().strong().with_shape(shape));

  Array index = indices;
  if (options.wrap_negative_indices.value_or(options.mode != "promise_in_bounds")) {
    index = wrapped_once(lax::convert_element_type(index, index_dtype_for({size}), false), size);
  }
  if (options.mode == "one_hot") return take_one_hot(x, index, axis);

  // Axes of size one in the indices are taken whole; the other axes are batched with those of the indices.
  Shape index_shape;
  Ints window, squeezed;
  GatherDimensionNumbers numbers;
  int64_t dim = 0, index_dim = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == axis) {
      window.push_back(1);
      numbers.start_index_map.push_back(dim);
      numbers.collapsed_slice_dims.push_back(dim++);
      ++index_dim;
      index_shape.push_back(at(shape, i));
    } else if (indices.shape(i) == 1) {
      numbers.offset_dims.push_back(i);
      window.push_back(at(others, i));
      ++dim;
    } else if (at(others, i) == 1) {
      squeezed.push_back(i);
      ++index_dim;
      index_shape.push_back(at(shape, i));
    } else {
      window.push_back(at(others, i) == 0 ? 0 : 1);
      numbers.operand_batching_dims.push_back(dim++);
      numbers.start_indices_batching_dims.push_back(index_dim++);
      index_shape.push_back(at(shape, i));
    }
  }
  index_shape.push_back(1);
  Array squeezed_x = lax::squeeze(x, squeezed);
  return lax::gather(squeezed_x, lax::reshape(index, index_shape), numbers, window,
                     {.mode = gather_mode("take_along_axis", options.mode), .fill_value = options.fill_value});
}

// ---- writing -----------------------------------------------------------------------------------------------------

namespace {

void require_copy(const char* name, bool inplace) {
  if (inplace) {
    throw ValueError(concat(name,
                            ": arrays are immutable and cannot be changed in place; pass inplace=False to get a "
                            "changed copy"));
  }
}

// One index array per dimension that together visit every position; `along` replaces the one of its axis.
std::vector<Index> open_mesh(const Shape& shape, int64_t axis, const Array& along) {
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<Index> mesh;
  for (int64_t i = 0; i < rank; ++i) {
    Shape line(shape.size(), 1);
    line[static_cast<std::size_t>(i)] = at(shape, i);
    mesh.emplace_back(i == axis ? along : lax::broadcast_in_dim(counting_array(at(shape, i)), line, {i}));
  }
  return mesh;
}

}  // namespace

Array put(const Array& a, const Array& ind, const Array& v, const PutOptions& options) {
  require_copy("put", options.inplace);
  Array index = ravel(ind), values = ravel(v);
  if (a.size() == 0 || index.size() == 0 || values.size() == 0) return a;
  values = tiled_to_size(values, index.size());
  std::string mode = "promise_in_bounds";
  if (options.mode.empty()) {
    mode = "drop";
  } else if (options.mode == "clip") {
    index = clip(index, {.min = 0, .max = a.size() - 1});
  } else if (options.mode == "wrap") {
    index = index % a.size();
  } else if (options.mode == "raise") {
    throw NotImplementedError("put: mode='raise' is not supported: indices are not checked while running");
  } else {
    throw ValueError(concat("put: mode must be 'wrap' or 'clip', got '", options.mode, "'"));
  }
  std::vector<Index> places;
  for (Array& place : unravel_index(index, a.shape())) places.emplace_back(std::move(place));
  return IndexUpdate(a, places).set(values, {.mode = mode});
}

Array put_along_axis(const Array& arr, const Array& indices, const Array& values, std::optional<int64_t> axis,
                     const PutOptions& options) {
  require_copy("put_along_axis", options.inplace);
  Array x = axis ? arr : ravel(arr);
  if (x.ndim() != indices.ndim()) {
    throw ValueError(concat("put_along_axis: arr and indices must have equally many dimensions, got ",
                            to_string(x.type()), " and ", to_string(indices.type())));
  }
  Array updates = capibara::broadcast_to("put_along_axis", values, indices.shape());
  const int64_t along = canonical_axis("put_along_axis", axis.value_or(0), x.ndim());
  Array result = IndexUpdate(x, open_mesh(x.shape(), along, indices)).set(updates, {.mode = options.mode});
  return axis ? result : reshape(result, arr.shape());
}

Array place(const Array& arr, const Array& mask, const Array& vals, const PlaceOptions& options) {
  require_copy("place", options.inplace);
  if (arr.size() != mask.size()) {
    throw ValueError(concat("place: arr and mask must have equal sizes, got ", to_string(arr.type()), " and ",
                            to_string(mask.type())));
  }
  if (vals.size() == 0) throw ValueError("place: vals must not be empty");
  if (arr.size() == 0) return arr;
  Array holds = ravel(is_bool(mask.dtype()) ? mask : mask != 0);
  Array places = nonzero(holds, {.size = mask.size(), .fill_value = {Array(mask.size())}})[0];
  Array values = tiled_to_size(ravel(vals), mask.size());
  return reshape(ravel(arr).at(places).set(values, {.mode = "drop"}), arr.shape());
}

// ---- indices of flattened arrays ---------------------------------------------------------------------------------

Arrays ix_(const Arrays& args) {
  Arrays output;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Array& a = args[i];
    if (a.ndim() != 1) {
      throw ValueError(concat("ix_: arguments must be one-dimensional, got ", to_string(a.type()), " at position ", i));
    }
    if (is_bool(a.dtype())) throw NotImplementedError("ix_: boolean arguments are not implemented");
    Shape shape(args.size(), 1);
    shape[i] = a.size();
    output.push_back(a.size() == 0 ? lax::zeros(sample_type(default_int(), shape))
                                   : lax::broadcast_in_dim(a, shape, {static_cast<int64_t>(i)}));
  }
  return output;
}

Arrays unravel_index(const Array& indices, const Arrays& shape) {
  for (const Array& size : shape) {
    if (size.ndim() == 0) continue;
    throw ValueError(concat("unravel_index: shape must be numbers, got ", to_string(size.type())));
  }
  Arrays out(shape.size());
  Array rest = indices;
  for (std::size_t i = shape.size(); i-- > 0;) std::tie(rest, out[i]) = divmod(rest, shape[i]);
  Array above = rest > 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!is_unsigned(rest.dtype())) out[i] = where(rest < -1, 0, out[i]);
    out[i] = where(above, shape[i] - 1, out[i]);
  }
  return out;
}

Arrays unravel_index(const Array& indices, const Shape& shape) {
  return unravel_index(indices, Arrays(shape.begin(), shape.end()));
}

Array ravel_multi_index(const Arrays& multi_index, const Shape& dims, const RavelMultiIndexOptions& options) {
  if (multi_index.size() != dims.size()) {
    throw ValueError(concat("ravel_multi_index: multi_index and dims must have equal lengths, got ", multi_index.size(),
                            " and ", dims.size()));
  }
  Arrays with_int = multi_index;
  with_int.push_back(Array(0));
  const DType dtype = options.dtype ? canonical(*options.dtype) : result_type(with_int).dtype;
  if (!is_integer(dtype))
    throw ValueError(concat("ravel_multi_index: dtype must be an integer type, got ", dtype_name(dtype)));
  if (element_count(dims) - 1 > 0 && static_cast<uint64_t>(element_count(dims) - 1) > iinfo(dtype).max) {
    throw ValueError(concat("ravel_multi_index: dtype ", dtype_name(dtype),
                            " cannot hold the indices of an array of shape ", tuple(dims), "; pass a wider dtype"));
  }
  if (options.order != "C" && options.order != "F") {
    throw ValueError(concat("ravel_multi_index: order must be 'C' or 'F', got '", options.order, "'"));
  }
  Arrays indices = multi_index;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Array& index = indices[i];
    if (options.mode == "raise" && index.is_tracer()) {
      throw ConcretizationTypeError(
          "Abstract tracer value encountered where concrete value is expected. The error occurred because "
          "ravel_multi_index was "
          "jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' instead.");
    }
    if (!is_integer(index.dtype())) {
      throw TypeError(concat("ravel_multi_index: indices must be integers, got ", to_string(index.type())));
    }
    if (options.mode == "raise") {
      for (int64_t position : index.to_vector<int64_t>()) {
        if (position >= 0 && position < dims[i]) continue;
        throw ValueError(concat("invalid entry in coordinates array: ravel_multi_index got ", position,
                                " for dimension ", i, " of size ", dims[i]));
      }
    } else if (options.mode == "clip") {
      index = clip(index, {.min = 0, .max = dims[i] - 1});
    } else if (options.mode == "wrap") {
      index = index % dims[i];
    } else if (options.mode != "ignore") {
      throw ValueError(
          concat("ravel_multi_index: mode must be 'raise', 'wrap', 'clip' or 'ignore', got '", options.mode, "'"));
    }
  }
  Ints strides(dims.size(), 1);
  const std::size_t count = dims.size();
  for (std::size_t i = 1; i < count; ++i) {
    if (options.order == "F")
      strides[i] = strides[i - 1] * dims[i - 1];
    else
      strides[count - 1 - i] = strides[count - i] * dims[count - i];
  }
  Array result = lax::zeros(sample_type(dtype, {}));
  for (std::size_t i = 0; i < count; ++i) {
    result = result + lax::convert_element_type(indices[i], dtype, false) * strides[i];
  }
  return result;
}

}  // namespace capibara::jax::numpy
