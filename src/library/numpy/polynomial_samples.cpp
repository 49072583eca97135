// jax.numpy: convolution, interpolation, differences and integrals of sampled functions.
#include <capibara/numpy/polynomial.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include <algorithm>
#include <cmath>

#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

Array sliding_product(const char* name, const Array& a, const Array& v, const ConvolveOptions& options,
                      bool correlation) {
  if (a.ndim() != 1 || v.ndim() != 1) {
    throw ValueError(concat(name, ": only 1-dimensional inputs are supported, got ", to_string(a.type()), " and ",
                            to_string(v.type())));
  }
  const Arrays both = options.preferred_element_type ? promote_dtypes({a, v}) : promote_dtypes_inexact({a, v});
  Array x = both[0], y = both[1];
  if (x.size() == 0 || y.size() == 0) {
    throw ValueError(concat(name, ": inputs cannot be empty, got ", to_string(a.type()), " and ", to_string(v.type())));
  }
  if (correlation && is_complex(y.dtype())) y = lax::conj(y);
  const bool swapped = x.size() < y.size();
  if (swapped) std::swap(x, y);
  if (!correlation) y = flip(y);
  const int64_t width = y.size();
  std::pair<int64_t, int64_t> padding;
  if (options.mode == "valid")
    padding = {0, 0};
  else if (options.mode == "same")
    padding = {width / 2, width - width / 2 - 1};
  else if (options.mode == "full")
    padding = {width - 1, width - 1};
  else
    throw ValueError(concat(name, ": mode must be one of ['full', 'same', 'valid'], got '", options.mode, "'"));
  lax::ConvOptions convolution;
  convolution.window_strides = {1};
  convolution.padding = lax::Padding{padding};
  convolution.precision = options.precision;
  convolution.preferred_element_type = options.preferred_element_type;
  const Array expanded = lax::expand_dims(x, {0, 1});
  const Array result = lax::conv_general_dilated(expanded, lax::expand_dims(y, {0, 1}), convolution);
  const Array line = lax::squeeze(result, {0, 1});
  return correlation && swapped ? flip(line) : line;
}

ConcatenateOptions along(int64_t axis) { return {.axis = axis, .dtype = std::nullopt}; }

bool extrapolates(const char* side, const std::variant<std::monostate, Array, std::string>& value) {
  const std::string* text = std::get_if<std::string>(&value);
  if (text && *text != "extrapolate") {
    throw ValueError(
        concat("interp: the only valid string value of `", side, "` is 'extrapolate', but got: '", *text, "'"));
  }
  return text != nullptr;
}

}  // namespace

Array convolve(const Array& a, const Array& v, const ConvolveOptions& options) {
  return sliding_product("convolve", a, v, options, false);
}

Array correlate(const Array& a, const Array& v, const CorrelateOptions& options) {
  return sliding_product("correlate", a, v, {options.mode, options.precision, options.preferred_element_type}, true);
}

Array interp(const Array& x, const Array& xp, const Array& fp, const InterpOptions& options) {
  if (xp.shape() != fp.shape() || xp.ndim() != 1) {
    throw ValueError(concat("interp: xp and fp must be one-dimensional arrays of equal size, got ",
                            to_string(xp.type()), " and ", to_string(fp.type())));
  }
  const Arrays positions = promote_dtypes_inexact({x, xp});
  Array at = positions[0], points = positions[1], values = promote_inexact("interp", fp);
  const bool beyond_left = extrapolates("left", options.left), beyond_right = extrapolates("right", options.right);
  if (is_complex(at.dtype())) throw ValueError("jnp.interp: complex x values not supported.");
  if (options.period) {
    if (options.period->ndim() != 0) {
      throw ValueError(concat("interp: period must be a scalar; got ", to_string(options.period->type())));
    }
    const Array period = lax::abs(*options.period);
    at = at % period;
    points = points % period;
    std::tie(points, values) = lax::sort_key_val(points, values);
    points = concatenate({steps::cut(points, -1, std::nullopt) - period, points, steps::cut(points, 0, 1) + period});
    values = concatenate({steps::cut(values, -1, std::nullopt), values, steps::cut(values, 0, 1)});
  }
  const Array right =
      clip(searchsorted(points, at, {.side = "right"}), {.min = Array(1), .max = Array(points.size() - 1)});
  const Array left = right - 1;
  const Array values_right = values(right);
  const Array rise = values_right - values(left);
  const Array points_right = points(right);
  const Array run = points_right - points(left);
  const Array offset = at - points(left);
  const double eps = finfo(points.dtype()).eps;
  const Array no_run = lax::abs(run) <= steps::constant(run, eps * eps);
  Array values_left = values(left), values_value = values(left);
  Array result = numpy::where(no_run, values_left, values_value + offset / numpy::where(no_run, 1, run) * rise);
  if (options.period) return result;
  if (!beyond_left) {
    const Array* given = std::get_if<Array>(&options.left);
    Array is_less = at < points(0);
    result = numpy::where(is_less, given ? *given : values(0), result);
  }
  if (!beyond_right) {
    const Array* given = std::get_if<Array>(&options.right);
    Array is_greater = at > points(-1);
    result = numpy::where(is_greater, given ? *given : values(-1), result);
  }
  return result;
}

Array trapezoid(const Array& y, const TrapezoidOptions& options) {
  Array samples, width;
  if (options.x) {
    const Arrays both = promote_dtypes_inexact({y, *options.x});
    samples = both[0];
    width = both[1].ndim() == 1 ? diff(both[1]) : moveaxis(diff(both[1], {.axis = options.axis}), options.axis, -1);
  } else {
    samples = promote_inexact("trapezoid", y);
    width = options.dx;
    if (width.ndim() > 0) {
      width = lax::broadcast_to_rank(width, std::max(width.ndim(), samples.ndim()));
      width = moveaxis(width, options.axis, -1);
    }
  }
  samples = moveaxis(samples, options.axis, -1);
  if (width.ndim() == 0 || width.shape(-1) == 1) {
    const Array one = width.ndim() == 0 ? width : width(ellipsis, 0);
    Array total = sum(samples, {.axis = -1}), samples_ellipsis = samples(ellipsis, 0);
    return one * (total - 0.5 * (samples_ellipsis + samples(ellipsis, -1)));
  }
  const Array cut_samples = steps::cut(samples, 1, std::nullopt, -1);
  const Array heights = cut_samples + steps::cut(samples, 0, -1, -1);
  return 0.5 * sum(width * heights, {.axis = -1});
}

Array diff(const Array& a, const DiffOptions& options) {
  if (options.n == 0) return a;
  if (options.n < 0) throw ValueError(concat("diff: order must be non-negative but got ", options.n));
  if (a.ndim() == 0)
    throw ValueError(concat("diff: requires input that is at least one dimensional; got ", to_string(a.type())));
  const int64_t axis = canonical_axis("diff", options.axis, a.ndim());
  Shape edge = a.shape();
  edge[static_cast<std::size_t>(axis)] = 1;
  auto as_edge = [&](const Array& x) { return x.ndim() == 0 ? broadcast_to("diff", x, edge) : x; };
  Arrays parts;
  if (options.prepend) parts.push_back(as_edge(*options.prepend));
  parts.push_back(a);
  if (options.append) parts.push_back(as_edge(*options.append));
  Array result = concatenate(parts, along(axis));
  for (int64_t i = 0; i < options.n; ++i) {
    const Array later = steps::cut(result, 1, std::nullopt, axis), earlier = steps::cut(result, 0, -1, axis);
    result = is_bool(result.dtype()) ? later != earlier : later - earlier;
  }
  return result;
}

Array ediff1d(const Array& ary, const Ediff1dOptions& options) {
  const Array x = ravel(ary);
  Array cut_x = steps::cut(x, 1, std::nullopt), result = lax::sub(cut_x, steps::cut(x, 0, -1));
  if (options.to_begin) result = concatenate({ravel(options.to_begin->astype(x.dtype())), result});
  if (options.to_end) result = concatenate({result, ravel(options.to_end->astype(x.dtype()))});
  return result;
}

namespace {

// Central differences in the interior, one-sided ones at both ends; h is the step or the positions.
Array gradient_along(const Array& f, const Array& h, int64_t axis) {
  auto part = [&](std::optional<int64_t> start, std::optional<int64_t> stop) {
    return steps::cut(f, start, stop, axis);
  };
  Array part_value = part(1, 2);
  const Array first = part_value - part(0, 1), first_part = part(-1, std::nullopt), last = first_part - part(-2, -1);
  if (h.ndim() == 0) {
    const Array second_part = part(2, std::nullopt);
    const Array inner = (second_part - part(std::nullopt, -2)) * 0.5 / h;
    return concatenate({first / h, inner, last / h}, along(axis));
  }
  if (h.ndim() != 1)
    throw ValueError(concat("gradient: Spacing arrays must be 1D arrays or scalars, got ", to_string(h.type())));
  if (h.shape(0) != f.shape(axis)) {
    throw ValueError(
        concat("gradient: spacing arrays must have the length of the dimension along which the gradient is ",
               "calculated, got ", h.shape(0), " for ", f.shape(axis)));
  }
  Shape shape(f.shape().size(), 1);
  shape[static_cast<std::size_t>(axis)] = h.shape(0);
  const Array positions = lax::reshape(h, shape);
  const Array cut_positions = steps::cut(positions, 1, std::nullopt, axis);
  const Array step = cut_positions - steps::cut(positions, 0, -1, axis);
  const Array before = steps::cut(step, 0, -1, axis), after = steps::cut(step, 1, std::nullopt, axis);
  const Array negated = -after;
  const Array a = negated / (before * (before + after));
  const Array difference = after - before;
  const Array b = difference / (before * after);
  const Array c = before / (after * (before + after));
  const Array product = a * part(0, -2), sum = product + b * part(1, -1);
  const Array inner = sum + c * part(2, std::nullopt);
  return concatenate({first / steps::cut(step, 0, 1, axis), inner, last / steps::cut(step, -1, std::nullopt, axis)},
                     along(axis));
}

}  // namespace

std::vector<Array> gradient(const Array& f, const GradientOptions& options) {
  Arrays operands = {f};
  operands.insert(operands.end(), options.spacing.begin(), options.spacing.end());
  operands = promote_dtypes_inexact(operands);
  const Array x = operands[0];
  Ints axes;
  if (options.axis.all())
    axes = options.axis.resolve("gradient", x.ndim());
  else
    for (int64_t axis : options.axis.list()) axes.push_back(canonical_axis("gradient", axis, x.ndim()));
  if (axes.empty()) return {};
  for (int64_t axis : axes) {
    if (x.shape(axis) >= 2) continue;
    throw ValueError(
        concat("gradient: Shape of array too small to calculate a numerical gradient, at least 2 elements ",
               "are required; got ", to_string(x.type())));
  }
  Arrays spacing(operands.begin() + 1, operands.end());
  if (spacing.empty()) spacing = {Array(1.0)};
  if (spacing.size() == 1) spacing = Arrays(axes.size(), spacing[0]);
  if (spacing.size() != axes.size()) {
    throw TypeError(
        concat("gradient: Invalid number of spacing arguments ", spacing.size(), " for ", axes.size(), " axes"));
  }
  Arrays result;
  for (std::size_t i = 0; i < axes.size(); ++i) result.push_back(gradient_along(x, spacing[i], axes[i]));
  return result;
}

Array unwrap(const Array& p, const UnwrapOptions& options) {
  const Arrays both = promote_dtypes({p, options.period});
  const Array &x = both[0], &period = both[1];
  if (is_complex(x.dtype()))
    throw ValueError(concat("jnp.unwrap does not support complex inputs, got ", to_string(x.type())));
  if (x.shape(options.axis) == 0) return x;
  const Array discont = options.discont ? *options.discont : period / 2;
  const Array half = is_integer(x.dtype()) ? lax::div(period - period % 2, steps::constant(period, 2)) : period / 2;
  const Array jump = diff(x, {.axis = options.axis});
  Array wrapped = (jump + half) % period - half;
  Array is_equal = wrapped == -half;
  wrapped = numpy::where(is_equal & (jump > 0), half, wrapped);
  const Array is_less = lax::abs(jump) < discont;
  const Array correction = numpy::where(is_less, 0, wrapped - jump);
  Array cut_x = steps::cut(x, 0, 1, options.axis), cut_value = steps::cut(x, 1, std::nullopt, options.axis);
  return concatenate({cut_x, cut_value + cumsum(correction, {.axis = options.axis})}, along(options.axis));
}

}  // namespace capibara::jax::numpy
