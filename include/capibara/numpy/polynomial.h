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
Array poly(const Array& seq_of_zeros);  // the polynomial with these roots, or a square matrix's characteristic one
Array polyadd(const Array& a1, const Array& a2);
Array polysub(const Array& a1, const Array& a2);
Array polyder(const Array& p, int64_t m = 1);
struct PolyintOptions {
  int64_t m = 1;
  Array k = 0;  // constants of integration: one, or m of them
};
Array polyint(const Array& p, const PolyintOptions& options = {});
struct PolymulOptions {
  bool trim_leading_zeros = false;  // needs concrete values
};
Array polymul(const Array& a1, const Array& a2, const PolymulOptions& options = {});
// Quotient and remainder.
std::pair<Array, Array> polydiv(const Array& u, const Array& v, const PolymulOptions& options = {});
struct PolyvalOptions {
  int64_t unroll = 16;
};
Array polyval(const Array& p, const Array& x, const PolyvalOptions& options = {});
struct RootsOptions {
  bool strip_zeros = true;  // needs concrete values; otherwise leading zeros give roots that are NaN
};
Array roots(const Array& p, const RootsOptions& options = {});
struct VanderOptions {
  std::optional<int64_t> N = {};
  bool increasing = false;
};
Array vander(const Array& x, const VanderOptions& options = {});

struct PolyfitOptions {
  std::optional<double> rcond = {};
  std::optional<Array> w = {};
};
Array polyfit(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options = {});
struct PolyfitResult {
  Array coefficients, residuals, rank, singular_values, rcond;
};
PolyfitResult polyfit_full(const Array& x, const Array& y, int64_t deg, const PolyfitOptions& options = {});
// The coefficients and their covariance, scaled by the residuals or not.
std::pair<Array, Array> polyfit_with_covariance(const Array& x, const Array& y, int64_t deg, bool unscaled,
                                                const PolyfitOptions& options = {});

// ---- sequences of samples ------------------------------------------------------------------------------------------
struct ConvolveOptions {
  std::string mode = "full";  // or "same", "valid"
  std::string precision = {};
  std::optional<DType> preferred_element_type = {};
};
Array convolve(const Array& a, const Array& v, const ConvolveOptions& options = {});
struct CorrelateOptions {
  std::string mode = "valid";
  std::string precision = {};
  std::optional<DType> preferred_element_type = {};
};
Array correlate(const Array& a, const Array& v, const CorrelateOptions& options = {});

struct InterpOptions {
  // The value outside of xp, or "extrapolate"; by default fp at that end.
  std::variant<std::monostate, Array, std::string> left = {}, right = {};
  std::optional<Array> period = {};
};
// The piecewise linear function through (xp, fp), xp ascending.
Array interp(const Array& x, const Array& xp, const Array& fp, const InterpOptions& options = {});

struct TrapezoidOptions {
  std::optional<Array> x = {};
  Array dx = 1.0;
  int64_t axis = -1;
};
Array trapezoid(const Array& y, const TrapezoidOptions& options = {});

struct DiffOptions {
  int64_t n = 1;
  int64_t axis = -1;
  std::optional<Array> prepend = {}, append = {};
};
Array diff(const Array& a, const DiffOptions& options = {});
struct Ediff1dOptions {
  std::optional<Array> to_end = {}, to_begin = {};
};
Array ediff1d(const Array& ary, const Ediff1dOptions& options = {});

struct GradientOptions {
  std::vector<Array> spacing = {};  // none: 1; one for all axes, or one for each: a number or positions
  Axis axis = {};
};
// One array for each axis: central differences inside, one-sided ones at the ends.
std::vector<Array> gradient(const Array& f, const GradientOptions& options = {});

struct UnwrapOptions {
  std::optional<Array> discont = {};  // by default half the period
  int64_t axis = -1;
  Array period = 6.283185307179586;
};
// Jumps greater than discont become their complement to the period.
Array unwrap(const Array& p, const UnwrapOptions& options = {});

}  // namespace capibara::jax::numpy
