// Creation of arrays: iota and empty; numbers broadcast to a shape.
#include <capibara/config.h>

#include "core/array/element.h"
#include "lax/collective/collective.h"
#include "lax/operators/plain_number.h"
#include "lax/shape/shape.h"
#include "lax/sharding/out_sharding.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

ArrayType created_type(const Attrs& attrs) { return sample_type(attrs.dtype("dtype"), attrs.ints("shape")); }

PrimitiveRecord iota_record() {
  PrimitiveRecord r;
  r.name = "iota";
  r.factors = iota_factors;
  r.splits = requested_splits;
  r.localise = result_shape_as("shape");
  r.traits.free_to_recompute = true;
  r.traits.expands = true;
  r.doc = "Counts 0, 1, 2... along one dimension and repeats along the others.";
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("iota", types, 0);
    const Ints& shape = attrs.ints("shape");
    int64_t dimension = attrs.integer("dimension");
    require_sizes("iota", "shape", shape);
    if (!is_numeric(attrs.dtype("dtype"))) {
      throw TypeError(concat("iota: dtype must be a number type, got ", to_string(attrs.dtype("dtype"))));
    }
    if (dimension < 0 || dimension >= static_cast<int64_t>(shape.size())) {
      throw ValueError(
          concat("iota: dimension must be in [0, ", shape.size(), "), got ", dimension, " for shape ", tuple(shape)));
    }
    return Types{created_type(attrs)};
  };
  r.jvp = zero_jvp();
  r.batch = [](const BatchArgs& args) -> BatchResult {
    return {{bind1(args.primitive, {}, args.attrs)}, {not_mapped}};
  };
  r.stablehlo = "stablehlo.iota";
  r.differentiable = false;
  r.samples = [](DType d) {
    auto attrs = [d](Ints shape, int64_t dimension) {
      return Attrs{{"dtype", d}, {"shape", shape}, {"dimension", dimension}, {"sharding", Attr()}};
    };
    if (!is_numeric(d)) return std::vector<Sample>{};
    return std::vector<Sample>{
        {{}, attrs({3}, 0)}, {{}, attrs({2, 3}, 1)}, {{}, attrs({2, 3, 2}, 0)}, {{}, attrs({0}, 0)}};
  };
  return r;
}

PrimitiveRecord empty_record() {
  PrimitiveRecord r;
  r.name = "empty";
  r.factors = empty_factors;
  r.splits = requested_splits;
  r.localise = result_shape_as("shape");
  r.traits.free_to_recompute = true;
  r.traits.expands = true;
  r.doc = "An array of unspecified values (zeros here, so that runs repeat).";
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("empty", types, 0);
    require_sizes("empty", "shape", attrs.ints("shape"));
    return Types{created_type(attrs)};
  };
  r.jvp = zero_jvp();
  r.batch = [](const BatchArgs& args) -> BatchResult {
    return {{bind1(args.primitive, {}, args.attrs.with("shape", prepended(args.axis.size, args.attrs.ints("shape"))))},
            {0}};
  };
  r.lower = [](std::span<const Array>, const Attrs& attrs) -> Arrays { return {lax::zeros(created_type(attrs))}; };
  r.differentiable = false;
  r.samples = [](DType d) {
    auto attrs = [d](Ints shape) { return Attrs{{"dtype", d}, {"shape", shape}, {"out_sharding", Attr()}}; };
    return std::vector<Sample>{{{}, attrs({})}, {{}, attrs({2, 3})}, {{}, attrs({0})}};
  };
  return r;
}

}  // namespace

Family creation_records() {
  Family family;
  family.push_back(iota_record());
  family.push_back(empty_record());
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

DType requested(DType dtype) { return canonicalize(dtype, capibara::config().enable_x64); }

// A scalar of any dtype with this value; keys and float0 allow only zero, all of whose bits are zero.
Array scalar_of_type(const ArrayType& type, double value) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(type.dtype)));
  if (is_numeric(type.dtype) || is_bool(type.dtype)) {
    convert_elements(DType::float64, &value, type.dtype, buffer.mutable_data(), 1);
  } else {
    std::fill_n(buffer.mutable_data(), storage_size(type.dtype), std::byte{0});
  }
  ArrayType scalar{{}, type.dtype, type.weak_type, type.ref, {}};
  if (!type.sharding.is_explicit()) scalar.sharding = type.sharding;
  return Array::from_buffer(std::move(scalar), std::move(buffer));
}

// The part of an array's sharding on Explicit axes; varying axes are added by pvary.
Sharding explicit_part(const Array& x) {
  const Sharding& own = x.type().sharding;
  return own.is_explicit() ? Sharding::explicit_over(own.mesh(), own.spec()) : Sharding();
}

}  // namespace

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
  const Array scalar = array_as(value, x.dtype(), x.weak_type());
  return varied_as(x, scalar.ndim() == 0 ? broadcast(scalar, x.shape(), explicit_part(x)) : full(x.shape(), scalar));
}

Array zeros(const ArrayType& type) { return broadcast(scalar_of_type(type, 0), type.shape, type.sharding); }
Array ones(const ArrayType& type) { return broadcast(scalar_of_type(type, 1), type.shape, type.sharding); }
Array zeros_like(const Array& x) {
  return varied_as(x, zeros({x.shape(), x.dtype(), x.weak_type(), false, explicit_part(x)}));
}

Array empty(const Shape& shape, DType dtype) {
  static const Primitive p = primitive("empty");
  return bind1(p, {}, {{"shape", shape}, {"dtype", requested(dtype)}, {"out_sharding", Attr()}});
}

Array iota(DType dtype, int64_t size) { return broadcasted_iota(dtype, {size}, 0); }

Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension) {
  return broadcasted_iota(dtype, shape, dimension, taken_out_sharding(shape.size()));
}

Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension, const Sharding& out_sharding) {
  static const Primitive p = primitive("iota");
  return bind1(p, {},
               {{"dtype", requested(dtype)},
                {"shape", shape},
                {"dimension", dimension},
                {"sharding", sharding_attr(out_sharding)}});
}

}  // namespace capibara::jax::lax
