// jax.numpy: polynomials, convolutions, and calculus on samples: differences, integrals and interpolation.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capibara::jax::numpy {

// ---- polynomials: vectors of coefficients, the highest power first -------------------------------------------------
// The coefficients of the polynomial with the given roots. A square matrix gives its characteristic polynomial.
Array poly(const Array& seq_of_zeros);
// The sum of two polynomials.
Array polyadd(const Array& a1, const Array& a2);
// The difference of two polynomials.
Array polysub(const Array& a1, const Array& a2);
// The mth derivative of a polynomial.
Array polyder(const Array& p, int64_t m = 1);
struct PolyintOptions {
  int64_t m = 1;
  Array k = 0;  // constants of integration: one, or m of them
};
// The mth integral of a polynomial.
Array polyint(const Array& p, const PolyintOptions& options = {});
struct PolymulOptions {
  bool trim_leading_zeros = false;  // requires concrete values
};
// The product of two polynomials.
Array polymul(const Array& a1, const Array& a2, const PolymulOptions& options = {});
// The quotient of two polynomials and the remainder.
std::pair<Array, Array> polydiv(const Array& u, const Array& v, const PolymulOptions& options = {});
struct PolyvalOptions {
  int64_t unroll = 16;
};
// The value of a polynomial at each x.
Array polyval(const Array& p, const Array& x, const PolyvalOptions& options = {});
struct RootsOptions {
  bool strip_zeros = true;  // requires concrete values; otherwise leading zeros give NaN roots
};
// The roots of a polynomial.
Array roots(const Array& p, const RootsOptions& options = {});
struct VanderOptions {
  std::optional<int64_t> N = {};
  bool increasing = false;
};
// The matrix whose columns are powers of x.
Array vander(const Array& x, const VanderOptions& options = {});

struct PolyfitOptions {
  std::optional<double> rcond = {};
  std::optional<Array> w = {};
};
// The coefficients of the polynomial that fits points best.
Array polyfit(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options = {});
struct PolyfitResult {
  Array coefficients, residuals, rank, singular_values, rcond;
};
// polyfit with residuals, rank, singular values and rcond: full=True.
PolyfitResult polyfit_full(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options = {});
// polyfit and the covariance of the coefficients, scaled by the residuals or not: cov=True.
std::pair<Array, Array> polyfit_with_covariance(const Array& x, const Array& y, int64_t deg, bool unscaled,
                                                const PolyfitOptions& options = {});

// ---- sequences of samples ------------------------------------------------------------------------------------------
struct ConvolveOptions {
  std::string mode = "full";  // or "same", "valid"
  std::string precision = {};
  std::optional<DType> preferred_element_type = {};
};
// The convolution of two vectors.
Array convolve(const Array& a, const Array& v, const ConvolveOptions& options = {});
struct CorrelateOptions {
  std::string mode = "valid";
  std::string precision = {};
  std::optional<DType> preferred_element_type = {};
};
// The correlation of two vectors.
Array correlate(const Array& a, const Array& v, const CorrelateOptions& options = {});

struct InterpOptions {
  // The value outside xp, or "extrapolate"; by default fp at that end.
  std::variant<std::monostate, Array, std::string> left = {}, right = {};
  std::optional<Array> period = {};
};
// The piecewise linear function through the given points. xp must be ascending.
Array interp(const Array& x, const Array& xp, const Array& fp, const InterpOptions& options = {});

struct TrapezoidOptions {
  std::optional<Array> x = {};
  Array dx = 1.0;
  int64_t axis = -1;
};
// The integral along an axis by the trapezoidal rule.
Array trapezoid(const Array& y, const TrapezoidOptions& options = {});

struct DiffOptions {
  int64_t n = 1;
  int64_t axis = -1;
  std::optional<Array> prepend = {}, append = {};
};
// The nth differences of adjacent elements along an axis.
Array diff(const Array& a, const DiffOptions& options = {});
struct Ediff1dOptions {
  std::optional<Array> to_end = {}, to_begin = {};
};
// The differences of adjacent elements of the flattened array.
Array ediff1d(const Array& ary, const Ediff1dOptions& options = {});

struct GradientOptions {
  std::vector<Array> spacing = {};  // none: 1; one for all axes, or one per axis: a number or positions
  Axis axis = {};
};
// Central differences along each axis. One array per axis; differences are one-sided at the ends.
std::vector<Array> gradient(const Array& f, const GradientOptions& options = {});

struct UnwrapOptions {
  std::optional<Array> discont = {};  // by default half the period
  int64_t axis = -1;
  Array period = 6.283185307179586;
};
// Phases without jumps of whole periods.
// Jumps greater than discont are replaced by their complement to the period.
Array unwrap(const Array& p, const UnwrapOptions& options = {});

}  // namespace capibara::jax::numpy
