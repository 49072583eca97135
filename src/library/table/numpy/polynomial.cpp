// Table rows for jax.numpy: polynomials, convolutions, differences and interpolation.
#include <capibara/numpy/polynomial.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

std::variant<std::monostate, Array, std::string> outside(const Arguments& a, const char* side) {
  if (!a.given(side)) return std::monostate{};
  if (const std::string* text = a[side].get_if<std::string>()) return *text;
  return a.array(side);
}

Value fit_polynomial(const Arguments& a) {
  const Array x = a.array("x"), y = a.array("y");
  const int64_t deg = a.integer("deg");
  const numpy::PolyfitOptions options{.rcond = a.optional_real("rcond"), .w = a.optional_array("w")};
  if (a.flag("full")) {
    const numpy::PolyfitResult r = numpy::polyfit_full(x, y, deg, options);
    return Value::tuple_of(Arrays{r.coefficients, r.residuals, r.rank, r.singular_values, r.rcond});
  }
  const std::string* scaling = a["cov"].get_if<std::string>();
  if (scaling || a.flag("cov")) {
    return numpy::polyfit_with_covariance(x, y, deg, scaling && *scaling == "unscaled", options);
  }
  return numpy::polyfit(x, y, deg, options);
}

const Function numpy_polynomial_functions[] = {
    {"poly", "seq_of_zeros", [](const Arguments& a) -> Value { return numpy::poly(a.array("seq_of_zeros")); },
     "The coefficients of the polynomial with the given roots."},
    {"polyadd", "a1, a2", [](const Arguments& a) -> Value { return numpy::polyadd(a.array("a1"), a.array("a2")); },
     "The sum of two polynomials."},
    {"polysub", "a1, a2", [](const Arguments& a) -> Value { return numpy::polysub(a.array("a1"), a.array("a2")); },
     "The difference of two polynomials."},
    {"polyder", "p, m: int = 1",
     [](const Arguments& a) -> Value { return numpy::polyder(a.array("p"), a.integer("m")); },
     "The mth derivative of a polynomial."},
    {"polyint", "p, m: int = 1, k: ArrayLike = None",
     [](const Arguments& a) -> Value {
       return numpy::polyint(a.array("p"), {.m = a.integer("m"), .k = a.given("k") ? a.array("k") : Array(0)});
     },
     "The mth integral of a polynomial."},
    {"polymul", "a1, a2, *, trim_leading_zeros=False",
     [](const Arguments& a) -> Value {
       return numpy::polymul(a.array("a1"), a.array("a2"), {.trim_leading_zeros = a.flag("trim_leading_zeros")});
     },
     "The product of two polynomials."},
    {"polydiv", "u, v, *, trim_leading_zeros=False -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return numpy::polydiv(a.array("u"), a.array("v"), {.trim_leading_zeros = a.flag("trim_leading_zeros")});
     },
     "The quotient of two polynomials and the remainder."},
    {"polyval", "p, x, *, unroll=16",
     [](const Arguments& a) -> Value {
       return numpy::polyval(a.array("p"), a.array("x"), {.unroll = a.integer("unroll")});
     },
     "The value of a polynomial at each x."},
    {"polyfit",
     "x, y, deg: int, rcond=None, full=False, w=None, cov: bool | str = False -> tuple[Array, ...] if full or cov else "
     "Array",
     fit_polynomial, "The coefficients of the polynomial that fits points best."},
    {"roots", "p, *, strip_zeros=True",
     [](const Arguments& a) -> Value { return numpy::roots(a.array("p"), {.strip_zeros = a.flag("strip_zeros")}); },
     "The roots of a polynomial."},
    {"vander", "x, N=None, increasing=False",
     [](const Arguments& a) -> Value {
       return numpy::vander(a.array("x"), {.N = a.optional_integer("N"), .increasing = a.flag("increasing")});
     },
     "The matrix whose columns are powers of x."},
    {"convolve", "a, v, mode='full', *, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value {
       return numpy::convolve(a.array("a"), a.array("v"),
                              {.mode = a.text("mode"),
                               .precision = a.text("precision"),
                               .preferred_element_type = a.optional_dtype("preferred_element_type")});
     },
     "The convolution of two vectors."},
    {"correlate", "a, v, mode='valid', *, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value {
       return numpy::correlate(a.array("a"), a.array("v"),
                               {.mode = a.text("mode"),
                                .precision = a.text("precision"),
                                .preferred_element_type = a.optional_dtype("preferred_element_type")});
     },
     "The correlation of two vectors."},
    {"interp", "x, xp, fp, left: ArrayLike | str = None, right: ArrayLike | str = None, period=None",
     [](const Arguments& a) -> Value {
       return numpy::interp(
           a.array("x"), a.array("xp"), a.array("fp"),
           {.left = outside(a, "left"), .right = outside(a, "right"), .period = a.optional_array("period")});
     },
     "The piecewise linear function through the given points."},
    {"trapezoid", "y, x=None, dx=1.0, axis=-1",
     [](const Arguments& a) -> Value {
       return numpy::trapezoid(a.array("y"),
                               {.x = a.optional_array("x"), .dx = a.array("dx"), .axis = a.integer("axis")});
     },
     "The integral along an axis by the trapezoidal rule."},
    {"diff", "a, n=1, axis=-1, prepend=None, append=None",
     [](const Arguments& a) -> Value {
       return numpy::diff(a.array("a"), {.n = a.integer("n"),
                                         .axis = a.integer("axis"),
                                         .prepend = a.optional_array("prepend"),
                                         .append = a.optional_array("append")});
     },
     "The nth differences of adjacent elements along an axis."},
    {"ediff1d", "ary, to_end=None, to_begin=None",
     [](const Arguments& a) -> Value {
       return numpy::ediff1d(a.array("ary"),
                             {.to_end = a.optional_array("to_end"), .to_begin = a.optional_array("to_begin")});
     },
     "The differences of adjacent elements of the flattened array."},
    {"gradient", "f, *varargs, axis=None, edge_order=None -> Array | list[Array]",
     [](const Arguments& a) -> Value {
       a.require_absent("edge_order");
       const numpy::GradientOptions options{.spacing = a.arrays("varargs"), .axis = a.axis("axis")};
       const Array f = a.array("f");
       const Arrays result = numpy::gradient(f, options);
       return result.size() == 1 ? Value(result[0]) : Value::list_of(result);
     },
     "Central differences along each axis."},
    {"unwrap", "p, discont=None, axis=-1, period=6.283185307179586",
     [](const Arguments& a) -> Value {
       return numpy::unwrap(
           a.array("p"),
           {.discont = a.optional_array("discont"), .axis = a.integer("axis"), .period = a.array("period")});
     },
     "Phases without jumps of whole periods."},
};

}  // namespace

Family numpy_polynomial() { return numpy_polynomial_functions; }

}  // namespace capibara::library
