// jax.numpy: reductions over axes, and averages computed from them.
#include <capibara/numpy/reductions.h>

#include <capibara/numpy/elementwise.h>

#include <algorithm>
#include <numeric>

#include "core/array/format.h"
#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"
#include "library/numpy/reductions.h"
#include "library/numpy/steps.h"

namespace capibara {

namespace reductions {

namespace lax = jax::lax;

DType computation_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

DType widened_integer(DType dtype) {
  if (is_bool(dtype)) return default_int();
  if (is_unsigned(dtype) && bits(dtype) < bits(default_uint())) return default_uint();
  if (is_signed(dtype) && bits(dtype) < bits(default_int())) return default_int();
  return dtype;
}

Array identity_like(const Array& a, double value) {
  const DType dtype = a.dtype();
  if (is_bool(dtype)) return Array(value > 0);
  if (value == steps::infinity || value == -steps::infinity) {
    if (is_integer(dtype)) {
      const IntInfo info = iinfo(dtype);
      if (bits(dtype) == 64)
        return lax::convert_element_type(value < 0 ? Array(info.min) : Array(info.max), dtype, false);
      value = value < 0 ? static_cast<double>(info.min)
                        : static_cast<double>(info.max);  // exact; uint32's maximum does not fit int32
    }
    if (is_floating(dtype) && !finfo(dtype).has_infinity) value = value < 0 ? finfo(dtype).min : finfo(dtype).max;
  }
  return steps::constant(a, value);
}

std::optional<Array> checked_where(const char* name, const std::optional<Array>& where) {
  if (where && !is_bool(where->dtype())) {
    throw ValueError(
        concat("jnp.", name, ": where must be None or a boolean array; got where.dtype=", to_string(where->dtype())));
  }
  return where;
}

}  // namespace reductions

namespace jax::numpy {

namespace {

using namespace reductions;

using Binary = Array (*)(const Array&, const Array&);

struct Monoid {
  const char* name;
  Array (*reduce)(const Array&, const lax::ReduceOptions&);
  Binary combine;
  double identity;
  bool has_identity;  // of an empty set of numbers
};

// The options of one reduction call, whose operand already has the type it is reduced in.
struct Reduction {
  Axis axis = {};
  std::optional<DType> dtype = {};
  bool keepdims = false;
  std::optional<Array> initial = {}, where = {};
  bool promote_integers = false;
  bool upcast = false;  // half precision is accumulated in single
};

Array reduce(const Monoid& monoid, const Monoid& of_bools, Array a, const Reduction& call) {
  const std::optional<Array> where = checked_where(monoid.name, call.where);
  if (!call.initial && !monoid.has_identity && where) {
    throw ValueError(concat("reduction operation ", monoid.name, " does not have an identity, so to use a where mask ",
                            "one has to specify 'initial'"));
  }
  const Ints axes = call.axis.resolve(monoid.name, a.ndim());
  if (!call.initial && !monoid.has_identity &&
      std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return a.shape(axis) == 0; })) {
    throw ValueError(concat("zero-size array to reduction operation ", monoid.name, " which has no identity"));
  }
  const DType result = call.dtype ? *call.dtype : call.promote_integers ? widened_integer(a.dtype()) : a.dtype();
  const DType computation = call.upcast ? computation_dtype(result) : result;
  a = lax::convert_element_type(a, computation);
  const Monoid& used = is_bool(computation) ? of_bools : monoid;
  if (where) a = numpy::where(*where, a, identity_like(a, monoid.identity));
  Array reduced = used.reduce(a, {.axes = axes});
  if (call.initial) {
    const Array initial = lax::convert_element_type(*call.initial, a.dtype());
    if (initial.ndim() != 0) {
      throw ValueError(
          concat(monoid.name, ": initial value must be a scalar. Got array of shape ", shape_tuple(initial.shape())));
    }
    reduced = used.combine(initial, reduced);
  }
  if (call.keepdims) {
    Ints sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    reduced = lax::expand_dims(reduced, sorted);
  }
  return lax::convert_element_type(reduced, result);
}

const Monoid addition = {"sum", lax::reduce_sum, lax::add, 0, true};
const Monoid multiplication = {"prod", lax::reduce_prod, lax::mul, 1, true};
const Monoid greatest = {"max", lax::reduce_max, lax::max, -steps::infinity, false};
const Monoid least = {"min", lax::reduce_min, lax::min, steps::infinity, false};
const Monoid disjunction = {"any", lax::reduce_or, lax::bitwise_or, 0, true};
const Monoid conjunction = {"all", lax::reduce_and, lax::bitwise_and, 1, true};

Array as_number(const Array& a) {
  return is_bool(a.dtype()) ? lax::convert_element_type(a, default_int(), a.weak_type()) : a;
}

Array as_truth(const Array& a) {
  return lax::convert_element_type(is_complex(a.dtype()) ? lax::real(a) : a, DType::bool_);
}

Reduction sum_call(const SumOptions& options) {
  return {options.axis,
          options.dtype,
          options.keepdims,
          options.initial,
          options.where,
          options.promote_integers,
          !options.dtype.has_value()};
}

Reduction max_call(const MaxOptions& options) {
  return {options.axis, {}, options.keepdims, options.initial, options.where, false, false};
}

}  // namespace

Array sum(const Array& a, const SumOptions& options) {
  return reduce(addition, disjunction, as_number(a), sum_call(options));
}
Array prod(const Array& a, const SumOptions& options) {
  return reduce(multiplication, conjunction, as_number(a), sum_call(options));
}
Array max(const Array& a, const MaxOptions& options) { return reduce(greatest, greatest, a, max_call(options)); }
Array min(const Array& a, const MaxOptions& options) { return reduce(least, least, a, max_call(options)); }
Array amax(const Array& a, const MaxOptions& options) { return max(a, options); }
Array amin(const Array& a, const MaxOptions& options) { return min(a, options); }
Array any(const Array& a, const AnyOptions& options) {
  return reduce(disjunction, disjunction, as_truth(a), {options.axis, {}, options.keepdims, {}, options.where});
}
Array all(const Array& a, const AnyOptions& options) {
  return reduce(conjunction, conjunction, as_truth(a), {options.axis, {}, options.keepdims, {}, options.where});
}

Array ptp(const Array& a, const PtpOptions& options) {
  const MaxOptions extremum{.axis = options.axis, .keepdims = options.keepdims};
  Array larger = max(a, extremum);
  return lax::sub(larger, min(a, extremum));
}

Array count_nonzero(const Array& a, const PtpOptions& options) {
  return sum(lax::ne(a, steps::constant(a, 0)),
             {.axis = options.axis, .dtype = default_int(), .keepdims = options.keepdims});
}

}  // namespace jax::numpy

namespace reductions {

Array element_count_along(const Array& a, const jax::numpy::Axis& axis, bool keepdims,
                          const std::optional<Array>& where, DType dtype) {
  if (where) {
    return jax::numpy::sum(broadcast_to("mean", *where, a.shape()),
                           {.axis = axis, .dtype = dtype, .keepdims = keepdims});
  }
  int64_t count = a.size();
  if (!axis.all()) {
    count = 1;
    for (int64_t one : axis.list()) count *= a.shape(one);
  }
  return lax::convert_element_type(Array(static_cast<double>(count)), dtype, false);  // works for counts beyond int32
}

std::pair<DType, DType> variance_dtypes(const char* name, DType dtype, const std::optional<DType>& requested) {
  if (!requested) {
    const DType inexact = inexact_dtype(dtype);
    return {computation_dtype(inexact), real_dtype(inexact)};
  }
  if (is_complex(dtype) && !is_complex(*requested)) {
    throw ValueError(concat(name, ": a real dtype is not supported for the variance of complex values, got dtype=",
                            to_string(*requested), " for ", to_string(dtype), " values"));
  }
  return {computation_dtype(*requested), *requested};
}

Array squared_magnitude(const Array& x) {
  return is_complex(x.dtype()) ? lax::real(lax::mul(x, lax::conj(x))) : lax::square(x);
}

}  // namespace reductions

namespace jax::numpy {

Array mean(const Array& a, const MeanOptions& options) {
  const std::optional<Array> where = checked_where("mean", options.where);
  const DType result = options.dtype ? *options.dtype : inexact_dtype(a.dtype());
  const DType computation = options.dtype ? result : computation_dtype(result);
  const Array count = element_count_along(a, options.axis, options.keepdims, where, computation);
  const Array total =
      sum(a, {.axis = options.axis, .dtype = computation, .keepdims = options.keepdims, .where = where});
  return lax::div(total, count).astype(result);
}

std::pair<Array, Array> average_and_weights(const Array& a, const AverageOptions& options) {
  Ints axes;
  for (int64_t axis : options.axis.all() ? Ints() : options.axis.list()) {
    axes.push_back(canonical_axis("average", axis, a.ndim()));
  }
  if (options.axis.all()) axes = options.axis.resolve("average", a.ndim());
  Array average, weights_sum;
  if (!options.weights) {
    average = mean(promote_inexact("average", a), {.axis = options.axis, .keepdims = options.keepdims});
    int64_t count = 1;
    for (int64_t axis : axes) count *= a.shape(axis);
    weights_sum = lax::full({}, Array(static_cast<double>(count)), average.dtype());
  } else {
    const Arrays both = promote_dtypes_inexact({a, *options.weights});
    Array weights = both[1];
    if (weights.shape() != a.shape()) {
      if (options.axis.all()) throw ValueError("average: Axis must be specified when shapes of a and weights differ.");
      Shape expected, shape(a.shape().size(), 1);
      for (int64_t axis : axes) {
        expected.push_back(a.shape(axis));
        shape[static_cast<std::size_t>(axis)] = a.shape(axis);
      }
      if (weights.shape() != expected) {
        throw ValueError(
            concat("average: Shape of weights must be consistent with shape of a along specified axis; got ",
                   "weights of type ", to_string(weights.type()), " for ", to_string(a.type())));
      }
      Ints order(axes.size());
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
        return axes[static_cast<std::size_t>(x)] < axes[static_cast<std::size_t>(y)];
      });
      weights = lax::reshape(weights, shape, order);
    }
    weights_sum = sum(weights, {.axis = options.axis, .keepdims = options.keepdims});
    average = sum(both[0] * weights, {.axis = options.axis, .keepdims = options.keepdims}) / weights_sum;
  }
  return {average, broadcast_to("average", weights_sum, average.shape())};
}

Array average(const Array& a, const AverageOptions& options) { return average_and_weights(a, options).first; }

namespace {

Array correction_of(const char* name, const VarOptions& options) {
  if (!options.correction) return options.ddof;
  if (options.ddof.is_tracer() || !is_integer(options.ddof.dtype()) || options.ddof.item<int64_t>() != 0) {
    throw ValueError(concat(name, ": ddof and correction can't be provided simultaneously."));
  }
  return *options.correction;
}

}  // namespace

Array var(const Array& a, const VarOptions& options) {
  const Array correction = correction_of("var", options);
  const std::optional<Array> where = checked_where("var", options.where);
  const auto [computation, result] = variance_dtypes("var", a.dtype(), options.dtype);
  const Array x = a.astype(computation);
  const Array center = options.mean
                           ? options.mean->astype(computation)
                           : mean(x, {.axis = options.axis, .dtype = computation, .keepdims = true, .where = where});
  const Array squares = squared_magnitude(lax::sub(x, center));
  Array count = element_count_along(x, options.axis, options.keepdims, where, squares.dtype());
  count = lax::sub(count, lax::convert_element_type(correction, squares.dtype()));
  const Array total =
      sum(squares, {.axis = options.axis, .dtype = squares.dtype(), .keepdims = options.keepdims, .where = where});
  Array is_greater = count > 0;
  return numpy::where(is_greater, lax::div(total, count).astype(result), steps::nan);
}

Array std(const Array& a, const VarOptions& options) {
  VarOptions own = options;
  own.correction = correction_of("std", options);
  own.ddof = 0;
  checked_where("std", options.where);
  if (options.dtype && !is_inexact(*options.dtype)) {
    throw ValueError(concat("dtype argument to jnp.std must be inexact; got ", to_string(*options.dtype)));
  }
  return lax::sqrt(var(a, own));
}

}  // namespace jax::numpy

}  // namespace capibara
