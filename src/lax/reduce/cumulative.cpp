// Cumulative operations along an axis: running sums, products, extremes and logarithms of sums of exponentials.
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "program/ir/window_shape.h"

#include <capibara/custom_derivatives.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "program/derive/derive.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Array is_nan(const Array& x) { return lax::ne(x, x); }

// The imaginary part wrapped into [-pi, pi].
Array wrap_angle(const Array& x) {
  constexpr double pi = std::numbers::pi;
  Array turn = scalar_like(x, 2 * pi), half_turn = scalar_like(x, pi), zero = scalar_like(x, 0);
  Array rest = lax::rem(lax::add(x, half_turn), turn);
  Array is_less = lax::lt(rest, zero);
  rest = lax::select(is_less, lax::add(rest, turn), rest);
  return lax::sub(rest, half_turn);
}

// log(exp(x) + exp(y)) without overflow.
Array log_add_exp(const Array& x, const Array& y) {
  Array greatest = lax::max(x, y);
  if (is_complex(x.dtype())) {
    Array sum = lax::add(x, y), delta = lax::sub(sum, lax::mul(greatest, scalar_like(greatest, 2)));
    Array out = lax::add(greatest, lax::log1p(lax::exp(delta)));
    Array real_part = lax::real(out);
    return lax::complex(real_part, wrap_angle(lax::imag(out)));
  }
  Array delta = lax::sub(x, y);
  Array is_nan_delta = is_nan(delta), sum_x = lax::add(x, y);
  return lax::select(is_nan_delta, sum_x, lax::add(greatest, lax::log1p(lax::exp(lax::neg(lax::abs(delta))))));
}

Array without_infinity(const Array& x) {
  Array real = is_complex(x.dtype()) ? lax::real(x) : x;
  Array infinite = lax::eq(real, scalar_like(real, std::numeric_limits<double>::infinity()));
  return lax::select(infinite, lax::zeros_like(x), x);
}

// Values with their tangents, which the scan below moves together.
struct Dual {
  Array value, tangent;
};

template <class F>
Dual on_both(F&& f, const Dual& x) {
  Array value = f(x.value);
  return {value, f(x.tangent)};
}

using DualCombine = std::function<Dual(const Dual&, const Dual&)>;

DualCombine derivative_of(Array (*function)(const Array&, const Array&)) {
  return [function](const Dual& x, const Dual& y) -> Dual {
    FlatFunction flat = [function](std::span<const Array> xs) { return Arrays{function(xs[0], xs[1])}; };
    JvpResult result = jvp_flat(flat, Arrays{x.value, y.value}, Arrays{x.tangent, y.tangent});
    return {result.primals[0], result.tangents[0]};
  };
}

// The function as in jax: with a derivative of its own, which is finite at the infinities.
Array differentiable_log_add_exp(const Array& x, const Array& y);

Dual log_add_exp_derivative(const Dual& x, const Dual& y) {
  Array out = differentiable_log_add_exp(x.value, y.value);
  Array without_infinity_x = without_infinity(x.value);
  Array from_x = lax::mul(x.tangent, lax::exp(lax::sub(without_infinity_x, without_infinity(out))));
  Array without_infinity_y = without_infinity(y.value);
  Array from_y = lax::mul(y.tangent, lax::exp(lax::sub(without_infinity_y, without_infinity(out))));
  return {out, lax::add(from_x, from_y)};
}

Array differentiable_log_add_exp(const Array& x, const Array& y) {
  static const auto function = [] {
    auto wrapped = jax::custom_jvp([](Array a, Array b) { return log_add_exp(a, b); }, "logaddexp");
    wrapped.defjvp(
        [](const std::tuple<Array, Array>& values, const std::tuple<Array, Array>& tangents) {
          Dual out = log_add_exp_derivative({std::get<0>(values), std::get<0>(tangents)},
                                            {std::get<1>(values), std::get<1>(tangents)});
          return std::tuple(out.value, out.tangent);
        },
        "_logaddexp_jvp");
    return wrapped;
  }();
  return function(x, y);
}

Dual slice_along(const Dual& x, int64_t axis, std::optional<int64_t> start, std::optional<int64_t> stop,
                 int64_t stride) {
  return on_both([&](const Array& a) { return lax::slice_in_dim(a, start, stop, stride, axis); }, x);
}

// The work-efficient prefix scan: pairs are combined, the half-sized result is scanned, and the elements between filled
Dual scan(const DualCombine& combine, const Dual& x, int64_t axis) {
  int64_t n = x.value.shape(axis);
  if (n < 2) return x;
  Dual pairs_left = slice_along(x, axis, 0, -1, 2);
  Dual pairs_right = slice_along(x, axis, 1, std::nullopt, 2);
  Dual odd = scan(combine, combine(pairs_left, pairs_right), axis);
  Dual before = n % 2 == 0 ? slice_along(odd, axis, 0, -1, 1) : odd;
  Dual even = combine(before, slice_along(x, axis, 2, std::nullopt, 2));
  Dual first = slice_along(x, axis, 0, 1, 1);
  even = {lax::concatenate({first.value, even.value}, axis), lax::concatenate({first.tangent, even.tangent}, axis)};

  bool equal = even.value.shape(axis) == odd.value.shape(axis);
  std::vector<lax::PadDim> even_pad(x.value.shape().size()), odd_pad(x.value.shape().size());
  even_pad[static_cast<std::size_t>(axis)] = {0, equal ? 1 : 0, 1};
  odd_pad[static_cast<std::size_t>(axis)] = {1, equal ? 0 : 1, 1};
  Dual spread_even = on_both([&](const Array& a) { return lax::pad(a, scalar_like(a, 0), even_pad); }, even);
  Dual spread_odd = on_both([&](const Array& a) { return lax::pad(a, scalar_like(a, 0), odd_pad); }, odd);
  Array value = lax::add(spread_even.value, spread_odd.value);
  return {value, lax::add(spread_even.tangent, spread_odd.tangent)};
}

JvpRule scan_jvp(DualCombine combine) {
  return [combine](const JvpArgs& args) -> JvpResult {
    int64_t axis = args.attrs.integer("axis");
    Dual x{args.primals[0], args.tangents[0]};
    auto reversed = [&](const Array& a) { return lax::rev(a, {axis}); };
    bool reverse = args.attrs.boolean("reverse");
    if (reverse) x = on_both(reversed, x);
    x = scan(combine, x, axis);
    if (reverse) x = on_both(reversed, x);
    return {{x.value}, {x.tangent}};
  };
}

// A window over the whole axis, padded on one side, is the cumulative operation.
Window running_window(const Array& x, const Attrs& attrs) {
  auto rank = static_cast<std::size_t>(x.ndim());
  auto axis = static_cast<std::size_t>(attrs.integer("axis"));
  int64_t n = x.shape()[axis];
  Window window{Ints(rank, 1), Ints(rank, 1), lax::Padding(rank, {0, 0}), Ints(rank, 1), Ints(rank, 1)};
  window.dimensions[axis] = n;
  window.padding[axis] = attrs.boolean("reverse") ? std::pair{int64_t{0}, n - 1} : std::pair{n - 1, int64_t{0}};
  return window;
}

LowerRule lower_by(std::function<Program(DType)> region, std::function<Array(DType)> init) {
  return [region, init](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive reduce_window = primitive("reduce_window");
    const Array& x = inputs[0];
    if (x.shape(attrs.integer("axis")) == 0) return {x};
    Attrs general = running_window(x, attrs).attrs().with("jaxpr", region(x.dtype())).with("consts", Ints{});
    return capibara::bind(reduce_window, Arrays{x, init(x.dtype())}, general);
  };
}

PrimitiveRecord cumulative_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = factors_but("axis");
  record.splits = cumulative_splits;
  record.traits.combines = Combines::prefixes;
  record.traits.nan_checked = true;
  record.traits.element_nanoseconds = 3;
  record.doc = std::move(doc);
  record.dtypes = {DType::int8,    DType::int16,   DType::int32,     DType::int64,     DType::uint8,
                   DType::uint16,  DType::uint32,  DType::uint64,    DType::bfloat16,  DType::float16,
                   DType::float32, DType::float64, DType::complex64, DType::complex128};
  record.type = [name](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(name, types, 1);
    if (!is_numeric(types[0].dtype)) {
      throw TypeError(concat(name, " does not accept dtype ", to_string(types[0].dtype),
                             ". Accepted dtypes are subtypes of number."));
    }
    int64_t axis = attrs.integer("axis");
    if (axis < 0 || axis >= types[0].rank()) {
      throw ValueError(concat(name, ": axis ", axis, " is out of range for ", to_string(types[0]), " (argument 'axis')",
                              axis < 0 ? "; negative axes are not allowed here" : ""));
    }
    return Types{types[0]};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t axis = shifted(args.attrs.integer("axis"), args.dims[0]);
    return {capibara::bind(args.primitive, args.inputs, args.attrs.with("axis", axis)), {args.dims[0]}};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool reverse : {false, true}) {
      auto add = [&](Shape shape, int64_t axis) {
        Sample s;
        s.inputs = {scalar_type(dtype).with_shape(std::move(shape))};
        s.attrs = {{"axis", axis}, {"reverse", reverse}};
        samples.push_back(std::move(s));
      };
      add({5}, 0);
      add({2, 3}, 1);
      add({4, 1, 3}, 0);
      add({1}, 0);
      add({0, 2}, 0);
      add({0, 2}, 1);
    }
    return samples;
  };
  return record;
}

PrimitiveRecord monoid_record(std::string name, std::string doc, Monoid monoid) {
  PrimitiveRecord record = cumulative_record(std::move(name), std::move(doc));
  record.traits.monoid = monoid;
  record.lower = lower_by([monoid](DType dtype) { return monoid_region(monoid, dtype); },
                          [monoid](DType dtype) { return identity_element(monoid, dtype); });
  return record;
}

}  // namespace

Family cumulative_records() {
  PrimitiveRecord cumsum = monoid_record("cumsum", "Running sums along an axis.", Monoid::add);
  cumsum.jvp = linear_jvp();
  cumsum.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::cumsum(args.cotangents[0],
                        {.axis = args.attrs.integer("axis"), .reverse = !args.attrs.boolean("reverse")})};
  };

  PrimitiveRecord cumprod = monoid_record("cumprod", "Running products along an axis.", Monoid::mul);
  cumprod.jvp = scan_jvp(derivative_of(lax::mul));
  PrimitiveRecord cummax = monoid_record("cummax", "Running maxima along an axis; NaN wins.", Monoid::max);
  cummax.jvp = scan_jvp(derivative_of(lax::max));
  PrimitiveRecord cummin = monoid_record("cummin", "Running minima along an axis; NaN wins.", Monoid::min);
  cummin.jvp = scan_jvp(derivative_of(lax::min));

  PrimitiveRecord cumlogsumexp =
      cumulative_record("cumlogsumexp", "Running logarithms of sums of exponentials along an axis.");
  cumlogsumexp.dtypes = {DType::bfloat16, DType::float16,   DType::float32,
                         DType::float64,  DType::complex64, DType::complex128};
  cumlogsumexp.type = [base = cumlogsumexp.type](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    TypeResult result = base(types, attrs);
    if (!is_inexact(types[0].dtype)) {
      throw TypeError(concat("cumlogsumexp does not accept dtype ", to_string(types[0].dtype),
                             ". Accepted dtypes are subtypes of inexact; convert the operand to a float first."));
    }
    return result;
  };
  cumlogsumexp.jvp = scan_jvp(log_add_exp_derivative);
  cumlogsumexp.lower = lower_by(
      [](DType dtype) {
        auto region = [](std::span<const Array> xs) { return Arrays{log_add_exp(xs[0], xs[1])}; };
        return stage_region("logaddexp", region, {scalar_type(dtype), scalar_type(dtype)});
      },
      [](DType dtype) { return identity_element(Monoid::max, dtype); });
  return {cumsum, cumlogsumexp, cumprod, cummax, cummin};
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

Attrs cumulative_attrs(const CumulativeOptions& options) {
  return {{"axis", options.axis}, {"reverse", options.reverse}};
}

}  // namespace

Array cumsum(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumsum");
  return bind1(p, {x}, cumulative_attrs(options));
}
Array cumprod(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumprod");
  return bind1(p, {x}, cumulative_attrs(options));
}
Array cummax(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cummax");
  return bind1(p, {x}, cumulative_attrs(options));
}
Array cummin(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cummin");
  return bind1(p, {x}, cumulative_attrs(options));
}
Array cumlogsumexp(const Array& x, const CumulativeOptions& options) {
  static const Primitive p = primitive("cumlogsumexp");
  return bind1(p, {x}, cumulative_attrs(options));
}

}  // namespace capibara::jax::lax
