// The position of the largest or smallest element along an axis.
#include <capibara/config.h>

#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

std::vector<DType> ordered_dtypes() {
  std::vector<DType> dtypes = {DType::bool_};
  for (DType d : sum_dtypes) {
    if (!is_complex(d)) dtypes.push_back(d);
  }
  return dtypes;
}

// (value, index) pairs fold to the extreme value, NaN before numbers, and the least index among equals.
PrimitiveRecord arg_reduction_record(std::string name, std::string doc, bool highest) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = kept_factors;
  record.splits = reduction_splits;
  record.doc = std::move(doc);
  record.dtypes = ordered_dtypes();
  record.differentiable = false;
  record.type = [name](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(name, types, 1);
    const Ints& axes = attrs.ints("axes");
    if (axes.size() != 1) throw TypeError(concat(name, ": exactly one axis is expected, got ", axes.size()));
    if (axes[0] < 0 || axes[0] >= types[0].rank()) {
      throw ValueError(concat(name, ": Invalid axis ", axes[0], " for operand ", to_string(types[0])));
    }
    if (is_complex(types[0].dtype) || is_key(types[0].dtype)) {
      throw TypeError(concat(name, " does not accept dtype ", to_string(types[0].dtype),
                             ". Accepted dtypes are subtypes of bool, floating, integer."));
    }
    if (types[0].shape[static_cast<std::size_t>(axes[0])] < 1) {
      throw ValueError(
          concat(name, " require non-empty reduced dimension, got ", to_string(types[0]), " with axis ", axes[0]));
    }
    DType index_dtype = attrs.dtype("index_dtype");
    if (!is_integer(index_dtype)) {
      throw TypeError(concat(name, ": index_dtype must be an integer type, but got ", to_string(index_dtype)));
    }
    return Types{scalar_type(index_dtype).with_shape(without_axes(types[0].shape, axes))};
  };
  record.jvp = zero_jvp();
  record.batch = batch_reduction;
  record.lower = [name, highest](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive reduce = primitive("reduce");
    const Array& operand = inputs[0];
    const Ints& axes = attrs.ints("axes");
    DType index_dtype = attrs.dtype("index_dtype");
    Array indices = lax::broadcasted_iota(index_dtype, operand.shape(), axes[0]);
    ArrayType value_type = scalar_type(operand.dtype()), index_type = scalar_type(index_dtype);
    auto choose = [highest](std::span<const Array> args) -> Arrays {
      const Array &value = args[0], &index = args[1], &other = args[2], &other_index = args[3];
      Array better = highest ? lax::gt(value, other) : lax::lt(value, other);
      Array take_value = lax::bitwise_or(better, lax::ne(value, value));
      Array is_equal = lax::eq(value, other), earlier = lax::bitwise_and(is_equal, lax::lt(index, other_index));
      Array take_index = lax::bitwise_or(take_value, earlier);
      return {lax::select(take_value, value, other), lax::select(take_index, index, other_index)};
    };
    Program region = stage_region(name, choose, {value_type, index_type, value_type, index_type});
    Array init = identity_element(highest ? Monoid::max : Monoid::min, operand.dtype());
    Arrays both = capibara::bind(reduce, Arrays{operand, indices, init, exact_scalar(index_dtype, 0)},
                                 {{"jaxpr", region}, {"dimensions", axes}});
    return {both[1]};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (DType index_dtype : {DType::int32, DType::uint8}) {
      auto sample = [&](Shape shape, int64_t axis) {
        Sample s;
        s.inputs = {scalar_type(dtype).with_shape(std::move(shape))};
        s.attrs = {{"axes", Ints{axis}}, {"index_dtype", index_dtype}};
        samples.push_back(std::move(s));
      };
      sample({5}, 0);
      sample({2, 3}, 1);
      sample({3, 2, 4}, 0);
      sample({0, 3}, 1);
    }
    return samples;
  };
  return record;
}

}  // namespace

PrimitiveRecord argmax_record() {
  return arg_reduction_record("argmax", "The first position of the largest element along an axis; NaN wins.", true);
}
PrimitiveRecord argmin_record() {
  return arg_reduction_record("argmin", "The first position of the least element along an axis; NaN wins.", false);
}

}  // namespace capibara

namespace capibara::jax::lax {

Array argmax(const Array& x, int64_t axis, DType index_dtype) {
  static const Primitive p = primitive("argmax");
  return bind1(p, {x},
               {{"axes", Ints{axis}}, {"index_dtype", canonicalize(index_dtype, capibara::config().enable_x64)}});
}
Array argmin(const Array& x, int64_t axis, DType index_dtype) {
  static const Primitive p = primitive("argmin");
  return bind1(p, {x},
               {{"axes", Ints{axis}}, {"index_dtype", canonicalize(index_dtype, capibara::config().enable_x64)}});
}

}  // namespace capibara::jax::lax
