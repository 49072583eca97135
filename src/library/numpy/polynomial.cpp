// jax.numpy: polynomials as vectors of coefficients.
#include <capibara/numpy/polynomial.h>

#include <capibara/control.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include <cmath>

#include "lax/collective/collective.h"
#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

void require_rank_one(const char* name, const char* argument, const Array& x) {
  if (x.ndim() == 0)
    throw TypeError(concat(name, ": argument '", argument, "' must be a vector, got ", to_string(x.type())));
}

Array no_roots(DType dtype) { return lax::full({0}, 0, complex_dtype(dtype)); }

// From the eigenvalues of the companion matrix.
Array roots_of(const Array& p) {
  const int64_t degree = p.size() - 1;
  if (degree < 1) return no_roots(p.dtype());
  const Array negated = -steps::cut(p, 1, std::nullopt);
  const Array row = negated / p(0);
  const Array positions = lax::broadcasted_iota(DType::int32, {degree, degree}, 0);
  const Array below = lax::eq(positions, lax::broadcasted_iota(DType::int32, {degree, degree}, 1) + 1);
  return linalg::eigvals(below.astype(p.dtype()).at(0).set(row));
}

// The index of the first element at which a condition fails; 0 if it holds everywhere.
int64_t first_false(const Array& condition) { return argmin(condition).item<int64_t>(); }

}  // namespace

Array roots(const Array& p, const RootsOptions& options) {
  const Array x = atleast_1d(promote_inexact("roots", p));
  if (x.ndim() != 1) throw ValueError(concat("roots: Input must be a rank-1 array, got ", to_string(p.type())));
  if (x.size() < 2) return no_roots(x.dtype());
  const Array zero = lax::eq(x, steps::constant(x, 0));
  const Array all_zero = all(zero);
  const Array leading = numpy::where(all_zero, Array(x.size()), argmin(zero));
  if (options.strip_zeros) {
    steps::require_values("roots", "p", leading);
    return roots_of(steps::cut(x, leading.item<int64_t>(), std::nullopt));
  }
  const Array some = numpy::where(leading == Array(x.size()), 1.0, x);
  const Array rotated = some((steps::arange(x.size()) + leading) % Array(x.size()));
  Array found = roots_of(rotated);
  found = lax::sort_key_val(lax::eq(found, steps::constant(found, 0)), found, {.dimension = 0}).second;
  const std::complex<double> none(steps::nan, steps::nan);
  Array arange_found = steps::arange(found.size());
  return numpy::where(arange_found < Array(found.size()) - leading, found, Array(none));
}

Array poly(const Array& seq_of_zeros) {
  Array zeros = atleast_1d(promote_inexact("poly", seq_of_zeros));
  if (zeros.ndim() == 2 && zeros.shape(0) == zeros.shape(1) && zeros.shape(0) != 0) zeros = linalg::eigvals(zeros);
  if (zeros.ndim() != 1) {
    throw ValueError(
        concat("poly: input must be 1d or non-empty square 2d array, got ", to_string(seq_of_zeros.type())));
  }
  if (zeros.size() == 0) return lax::full({}, 1, zeros.dtype());
  Array result = lax::full({1}, 1, zeros.dtype());
  for (int64_t i = 0; i < zeros.size(); ++i) {
    const Array factor = lax::concatenate({lax::full({1}, 1, zeros.dtype()), -lax::slice_in_dim(zeros, i, i + 1)}, 0);
    result = convolve(result, factor.astype(zeros.dtype()));
  }
  return result;
}

Array polyval(const Array& p, const Array& x, const PolyvalOptions& options) {
  const Arrays both = promote_dtypes({p, x});
  const Array &coefficients = both[0], &at = both[1];
  if (coefficients.ndim() == 0) {
    throw ValueError(concat("polyval: argument 'p' must have at least one dimension, got ", to_string(p.type())));
  }
  const Shape& own = coefficients.shape();
  const Shape shape = lax::broadcast_shapes({Shape(own.begin() + 1, own.end()), at.shape()});
  auto step = [&](const Array& y, const Array& coefficient) {
    return std::pair(y * at + coefficient, std::monostate{});
  };
  // Inside shard_map the sum varies along the axes of both operands.
  const Array zeros = lax::varied_as(at, lax::varied_as(coefficients, lax::full(shape, 0, at.dtype())));
  return lax::scan(step, zeros, coefficients, {.length = std::nullopt, .unroll = options.unroll}).first;
}

Array polyadd(const Array& a1, const Array& a2) {
  const Arrays both = promote_dtypes({a1, a2});
  const bool first_longer = both[1].shape(0) <= both[0].shape(0);
  const Array &longer = both[first_longer ? 0 : 1], &shorter = both[first_longer ? 1 : 0];
  return longer.at(slice(-shorter.shape(0), std::nullopt)).add(shorter);
}

Array polysub(const Array& a1, const Array& a2) {
  const Arrays both = promote_dtypes({a1, a2});
  return polyadd(both[0], -both[1]);
}

Array polyint(const Array& p, const PolyintOptions& options) {
  const Arrays both = promote_dtypes_inexact({p, options.k});
  const Array& coefficients = both[0];
  const int64_t m = options.m;
  if (m < 0) throw ValueError(concat("polyint: Order of integral must be positive (see polyder), got ", m));
  Array constants = atleast_1d(both[1]);
  if (constants.shape(0) == 1) constants = lax::full({m}, constants(0));
  if (constants.shape() != Shape{m}) {
    throw ValueError(concat("polyint: k must be a scalar or a rank-1 array of length 1 or m, got ",
                            to_string(options.k.type()), " for m=", m));
  }
  if (m == 0) return coefficients;
  require_rank_one("polyint", "p", coefficients);
  const int64_t count = coefficients.shape(0) + m;
  const DType dtype = coefficients.dtype();
  const Array positions = lax::broadcasted_iota(dtype, {m, count}, 1);
  const Array powers = positions - lax::broadcasted_iota(dtype, {m, count}, 0);
  const Array divisors = flip(prod(lax::max(steps::constant(powers, 1), powers), {.axis = 0}));
  return concatenate({coefficients, constants}) / divisors;
}

Array polyder(const Array& p, int64_t m) {
  const Array coefficients = promote_inexact("polyder", p);
  if (m < 0) throw ValueError(concat("polyder: Order of derivative must be positive, got ", m));
  if (m == 0) return coefficients;
  require_rank_one("polyder", "p", coefficients);
  const int64_t count = std::max<int64_t>(coefficients.shape(0) - m, 0);
  const DType dtype = coefficients.dtype();
  const Array sum = lax::broadcasted_iota(dtype, {m, count}, 1) + Array(m);
  const Array powers = sum - lax::broadcasted_iota(dtype, {m, count}, 0);
  Array cut_coefficients = steps::cut(coefficients, std::nullopt, -m);
  return cut_coefficients * flip(prod(powers, {.axis = 0}));
}

Array polymul(const Array& a1, const Array& a2, const PolymulOptions& options) {
  const Arrays both = promote_dtypes_inexact({a1, a2});
  Array a = both[0], b = both[1];
  require_rank_one("polymul", "a1", a);
  require_rank_one("polymul", "a2", b);
  if (options.trim_leading_zeros && (a.shape(0) > 1 || b.shape(0) > 1)) {
    const TrimZerosOptions leading{.trim = "f", .axis = {}};
    a = trim_zeros(a, leading);
    b = trim_zeros(b, leading);
  }
  if (a.shape(0) == 0) a = lax::full({1}, 0, b.dtype());
  if (b.shape(0) == 0) b = lax::full({1}, 0, a.dtype());
  return convolve(a, b);
}

std::pair<Array, Array> polydiv(const Array& u, const Array& v, const PolymulOptions& options) {
  const Arrays both = promote_dtypes_inexact({u, v});
  Array rest = both[0];
  const Array& divisor = both[1];
  require_rank_one("polydiv", "u", rest);
  require_rank_one("polydiv", "v", divisor);
  const int64_t m = rest.shape(0) - 1, n = divisor.shape(0) - 1;
  const Array scale = 1.0 / divisor(0);
  Array quotient = lax::full({std::max<int64_t>(m - n + 1, 1)}, 0, rest.dtype());
  for (int64_t i = 0; i <= m - n; ++i) {
    const Array factor = scale * rest(i);
    quotient = quotient.at(i).set(factor);
    rest = rest.at(slice(i, i + n + 1)).add(-factor * divisor);
  }
  if (options.trim_leading_zeros) {
    const double tolerance = std::sqrt(finfo(rest.dtype()).eps);
    const Array small = lax::abs(rest) < Array(tolerance);
    steps::require_values("polydiv", "u", small);
    rest = static_cast<bool>(all(small)) ? lax::full({0}, 0, rest.dtype())
                                         : steps::cut(rest, first_false(small), std::nullopt);
  }
  return {quotient, rest};
}

Array vander(const Array& x, const VanderOptions& options) {
  if (x.ndim() != 1) throw ValueError(concat("vander: x must be a one-dimensional array, got ", to_string(x.type())));
  const int64_t columns = options.N.value_or(x.shape(0));
  if (columns < 0) throw ValueError(concat("vander: N must be nonnegative, got ", columns));
  Array powers = lax::iota(x.dtype(), columns);
  if (!options.increasing) powers = lax::sub(steps::constant(powers, static_cast<double>(columns - 1)), powers);
  Array expanded = lax::expand_dims(x, {1});
  return power(expanded, lax::expand_dims(powers, {0}));
}

namespace {

struct Fit {
  Array coefficients, residuals, rank, singular_values;
  Array scaled, scale;  // the matrix with columns scaled to norm one, and the scaling factors
  double rcond = 0;
};

Fit fit(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options) {
  if (deg < 0) throw ValueError(concat("polyfit: expected deg >= 0, got ", deg));
  if (x.ndim() != 1) throw TypeError(concat("polyfit: expected 1D vector for x, got ", to_string(x.type())));
  if (x.size() == 0) throw TypeError("polyfit: expected non-empty vector for x");
  if (y.ndim() < 1 || y.ndim() > 2)
    throw TypeError(concat("polyfit: expected 1D or 2D array for y, got ", to_string(y.type())));
  if (x.shape(0) != y.shape(0)) {
    throw TypeError(concat("polyfit: expected x and y to have same length, got ", x.shape(0), " and ", y.shape(0)));
  }
  Fit result;
  result.rcond = options.rcond ? *options.rcond : static_cast<double>(x.size()) * finfo(x.dtype()).eps;
  Array lhs = vander(x, {.N = deg + 1}), rhs = y;
  if (options.w) {
    const Array w = promote_inexact("polyfit", *options.w);
    if (w.ndim() != 1) throw TypeError(concat("polyfit: expected a 1-d array for weights, got ", to_string(w.type())));
    if (w.shape(0) != y.shape(0)) {
      throw TypeError(
          concat("polyfit: expected w and y to have the same length, got ", w.shape(0), " and ", y.shape(0)));
    }
    const Array column = lax::expand_dims(w, {1});
    lhs = lhs * column;
    rhs = rhs * (rhs.ndim() == 2 ? column : w);
  }
  const Array squares = sum(lhs * lhs, {.axis = 0});
  result.scale = lax::sqrt(promote_inexact("sqrt", squares));
  result.scaled = lhs / lax::expand_dims(result.scale, {0});
  const linalg::LstsqResult solved = linalg::lstsq(result.scaled, rhs, {.rcond = Array(result.rcond)});
  result.coefficients = solved.x.ndim() > 1 ? solved.x / lax::expand_dims(result.scale, {1}) : solved.x / result.scale;
  result.residuals = solved.residuals;
  result.rank = solved.rank;
  result.singular_values = solved.s;
  return result;
}

}  // namespace

Array polyfit(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options) {
  return fit(x, y, deg, options).coefficients;
}

PolyfitResult polyfit_full(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options) {
  const Fit result = fit(x, y, deg, options);
  return {result.coefficients, result.residuals, result.rank, result.singular_values, Array(result.rcond)};
}

std::pair<Array, Array> polyfit_with_covariance(const Array& x, const Array& y, int64_t deg, bool unscaled,
                                                const PolyfitOptions& options) {
  const Fit result = fit(x, y, deg, options);
  const Array gram = lax::dot(lax::transpose(result.scaled, {1, 0}), result.scaled);
  const Array expanded = lax::expand_dims(result.scale, {1});
  const Array scales = expanded * lax::expand_dims(result.scale, {0});
  const Array base = linalg::inv(gram) / scales;
  Array factor = 1.0;
  if (!unscaled) {
    if (x.size() <= deg + 1) {
      throw ValueError(
          concat("polyfit: the number of data points must exceed order to scale the covariance matrix, got ", x.size(),
                 " points for degree ", deg));
    }
    factor = result.residuals / Array(x.size() - (deg + 1));
  }
  factor = atleast_1d(factor);
  if (y.ndim() == 1) return {result.coefficients, base * lax::expand_dims(factor, {0})};
  Array expanded_base = lax::expand_dims(base, {2});
  return {result.coefficients, expanded_base * lax::expand_dims(factor, {0, 1})};
}

}  // namespace capibara::jax::numpy
