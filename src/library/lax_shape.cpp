// jax.lax: creating arrays and changing their shape.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "array/element.h"
#include "lax/shape.h"
#include "library/plain_number.h"

namespace capibara {

bool is_plain_number(const Array& x) { return x.defined() && !x.is_tracer() && x.ndim() == 0 && x.weak_type(); }

Array number_as(const Array& number, DType dtype, bool weak_type) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  convert_elements(number.dtype(), number.raw_data(), dtype, buffer.mutable_data(), 1);
  ArrayType type = sample_type(dtype, {});
  type.weak_type = weak_type;
  return Array::from_buffer(std::move(type), std::move(buffer));
}

Array array_as(const Array& x, DType dtype, bool weak_type) {
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  if (is_plain_number(x)) return number_as(x, dtype, weak_type);
  return jax::lax::convert_element_type(x, dtype, weak_type);
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

DType requested(DType dtype) { return canonicalize(dtype, capibara::config().enable_x64); }

// A scalar of any dtype with this value; keys and float0 know only zero, all of whose bits are zero.
Array scalar_of_type(const ArrayType& type, double value) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(type.dtype)));
  if (is_numeric(type.dtype) || is_bool(type.dtype)) {
    convert_elements(DType::float64, &value, type.dtype, buffer.mutable_data(), 1);
  } else {
    std::fill_n(buffer.mutable_data(), storage_size(type.dtype), std::byte{0});
  }
  return Array::from_buffer(type.with_shape({}), std::move(buffer));
}

}  // namespace

// ---- creation ----------------------------------------------------------------------------------------------------

Array full(const Shape& shape, const Array& value) {
  if (value.ndim() != 0) {
    throw TypeError(concat("full: the fill value must be a scalar, got shape ", shape_tuple(value.shape())));
  }
  return broadcast(value, shape);
}

Array full(const Shape& shape, const Array& value, DType dtype) {
  return full(shape, array_as(value, is_key(dtype) ? dtype : requested(dtype), false));
}

Array full_like(const Array& x, const Array& value) {
  return full(x.shape(), array_as(value, x.dtype(), x.weak_type()));
}

Array zeros(const ArrayType& type) { return broadcast(scalar_of_type(type, 0), type.shape); }
Array ones(const ArrayType& type) { return broadcast(scalar_of_type(type, 1), type.shape); }
Array zeros_like(const Array& x) { return zeros(x.type()); }

Array empty(const Shape& shape, DType dtype) {
  static const Primitive p = primitive("empty");
  return bind1(p, {}, {{"shape", shape}, {"dtype", requested(dtype)}, {"out_sharding", Attr()}});
}

Array iota(DType dtype, int64_t size) { return broadcasted_iota(dtype, {size}, 0); }

Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension) {
  static const Primitive p = primitive("iota");
  return bind1(p, {}, {{"dtype", requested(dtype)}, {"shape", shape}, {"dimension", dimension}, {"sharding", Attr()}});
}

// ---- shape -------------------------------------------------------------------------------------------------------

Array broadcast(const Array& x, const Shape& sizes) {
  if (sizes.empty()) return x;
  Shape shape = sizes;
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  auto added = static_cast<int64_t>(sizes.size());
  return broadcast_in_dim(x, shape, range(added + x.ndim(), added));
}

Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions) {
  static const Primitive p = primitive("broadcast_in_dim");
  if (x.shape() == shape && broadcast_dimensions == range(x.ndim())) return x;
  return bind1(p, {x}, {{"shape", shape}, {"broadcast_dimensions", broadcast_dimensions}, {"sharding", Attr()}});
}

Array broadcast_to_rank(const Array& x, int64_t rank) {
  if (x.ndim() > rank) {
    throw ValueError(concat("broadcast_to_rank: ", to_string(x.type()), " has more dimensions than ", rank));
  }
  return broadcast(x, Shape(static_cast<std::size_t>(rank - x.ndim()), 1));
}

Array broadcast_like(const Array& x, const Array& like) {
  const Shape& shape = like.shape();
  if (x.shape() == shape) return x;
  int64_t lead = like.ndim() - x.ndim();
  bool fits = lead >= 0;
  for (int64_t i = 0; fits && i < x.ndim(); ++i) fits = x.shape(i) == 1 || x.shape(i) == at(shape, lead + i);
  if (!fits) {
    throw ValueError(
        concat("broadcast_like: ", to_string(x.type()), " does not broadcast to shape ", shape_tuple(shape)));
  }
  return broadcast_in_dim(x, shape, range(like.ndim(), lead));
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape out(rank, 1);
  for (const Shape& shape : shapes) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = out[rank - shape.size() + i];
      if (size == 1) {
        size = shape[i];
      } else if (shape[i] != 1 && shape[i] != size) {
        std::string text;
        for (const Shape& s : shapes) text += (text.empty() ? "" : ", ") + shape_tuple(s);
        throw ValueError(concat("Incompatible shapes for broadcasting: shapes=[", text, "]"));
      }
    }
  }
  return out;
}

Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions) {
  static const Primitive p = primitive("reshape");
  bool same_order = dimensions.empty() || dimensions == range(x.ndim());
  if (x.ndim() > 0 && x.shape() == new_sizes && same_order) return x;
  return bind1(
      p, {x}, {{"new_sizes", new_sizes}, {"dimensions", same_order ? Attr() : Attr(dimensions)}, {"sharding", Attr()}});
}

Array squeeze(const Array& x, const Ints& dimensions) {
  static const Primitive p = primitive("squeeze");
  if (dimensions.empty()) return x;
  Ints dims;
  for (int64_t dim : dimensions) dims.push_back(checked_axis("squeeze", dim, x.type(), "dimensions"));
  std::sort(dims.begin(), dims.end());
  return bind1(p, {x}, {{"dimensions", dims}});
}

Array expand_dims(const Array& x, const Ints& dimensions) {
  int64_t rank = x.ndim() + static_cast<int64_t>(dimensions.size());
  Ints dims;
  for (int64_t dim : dimensions) {
    if (dim < -rank || dim >= rank) {
      throw ValueError(concat("expand_dims: axis ", dim, " is out of range for an array of rank ", rank,
                              " (argument 'dimensions')"));
    }
    dims.push_back(dim < 0 ? dim + rank : dim);
  }
  if (has_duplicates(dims))
    throw ValueError(concat("expand_dims: repeated axis in dimensions, got ", tuple(dimensions)));
  std::sort(dims.begin(), dims.end());
  Shape shape = x.shape();
  for (int64_t dim : dims) shape.insert(shape.begin() + dim, 1);
  return broadcast_in_dim(x, shape, other_dims(rank, dims));
}

Array collapse(const Array& x, int64_t start_dimension, int64_t stop_dimension) {
  auto normalised = [&](int64_t dim) { return std::clamp<int64_t>(dim < 0 ? dim + x.ndim() : dim, 0, x.ndim()); };
  int64_t low = normalised(start_dimension), high = normalised(stop_dimension);
  if (high < low) {
    throw ValueError(concat("collapse: invalid dimension range ", start_dimension, ":", stop_dimension, " for shape ",
                            shape_tuple(x.shape())));
  }
  const Shape& from = x.shape();
  Shape shape(from.begin(), from.begin() + low);
  shape.push_back(
      element_count(std::span(from).subspan(static_cast<std::size_t>(low), static_cast<std::size_t>(high - low))));
  shape.insert(shape.end(), from.begin() + high, from.end());
  return reshape(x, shape);
}

Array transpose(const Array& x, const Ints& permutation) {
  static const Primitive p = primitive("transpose");
  if (permutation == range(x.ndim())) return x;
  return bind1(p, {x}, {{"permutation", permutation}});
}

Array rev(const Array& x, const Ints& dimensions) {
  static const Primitive p = primitive("rev");
  return bind1(p, {x}, {{"dimensions", dimensions}});
}

Array pad(const Array& x, const Array& padding_value, const std::vector<PadDim>& config) {
  static const Primitive p = primitive("pad");
  Attr::List list;
  for (const PadDim& dim : config) list.push_back(Ints{dim.low, dim.high, dim.interior});
  Array value = padding_value;
  if (is_plain_number(value) && value.dtype() != x.dtype()) value = number_as(value, x.dtype(), false);
  return bind1(p, {x, value}, {{"padding_config", std::move(list)}});
}

Array concatenate(const Arrays& operands, int64_t dimension) {
  static const Primitive p = primitive("concatenate");
  if (operands.empty()) throw ValueError("concatenate: a non-empty list of arrays is needed");
  if (operands.size() == 1) return operands[0];
  return capibara::bind(p, operands, {{"dimension", dimension}})[0];
}

Arrays split(const Array& x, const Ints& sizes, int64_t axis) {
  static const Primitive p = primitive("split");
  return capibara::bind(p, std::span(&x, 1), {{"sizes", sizes}, {"axis", checked_axis("split", axis, x.type())}});
}

Array tile(const Array& x, const Ints& reps) {
  static const Primitive p = primitive("tile");
  return bind1(p, {x}, {{"reps", reps}});
}

Array stack(const Arrays& operands, int64_t axis) {
  static const Primitive p = primitive("stack");
  if (operands.empty()) throw ValueError("stack: a non-empty list of arrays is needed");
  ArrayType stacked = operands[0].type().with_shape(prepended(1, operands[0].shape()));
  return capibara::bind(p, operands, {{"axis", checked_axis("stack", axis, stacked)}})[0];
}

Arrays unstack(const Array& x, int64_t axis) {
  static const Primitive p = primitive("unstack");
  if (x.ndim() == 0) throw ValueError("unstack: an array with rank > 0 is needed, got a scalar");
  return capibara::bind(p, std::span(&x, 1), {{"axis", checked_axis("unstack", axis, x.type())}});
}

Array optimization_barrier(const Array& x) { return optimization_barrier(Arrays{x})[0]; }

Arrays optimization_barrier(const Arrays& operands) {
  static const Primitive p = primitive("optimization_barrier");
  return capibara::bind(p, operands);
}

}  // namespace capibara::jax::lax
