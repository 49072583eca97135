// jax.scipy.linalg: structured matrices.
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/scipy/linalg.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"
#include "library/numpy/linalg/linalg_vectorize.h"

namespace capibara::jax::scipy::linalg {

namespace matrix = capibara::linalg;

namespace {

Array row(const Array& x) { return lax::expand_dims(x, {0}); }
Array column(const Array& x) { return lax::expand_dims(x, {1}); }
Array numbers_to(int64_t n) { return lax::iota(DType::int32, n); }
Array reversed(const Array& x) { return lax::rev(x, {x.ndim() - 1}); }

Array batched(const char* name, const FlatFunction& function, const Arrays& vectors) {
  return vectorize(name, function, vectors, Ints(vectors.size(), 1))[0];
}

// Windows of `values` that start one position later, or earlier, in each row: m rows of n.
Array sliding(const Array& values, int64_t m, int64_t n, bool backwards) {
  const Array start = column(backwards ? reversed(numbers_to(m)) : numbers_to(m));
  return values(start + row(numbers_to(n)));
}

Array binomials(const Array& n, const Array& k) {
  const Arrays x = broadcast_arrays("pascal", {n, k});
  Array log_gamma = lax::lgamma(x[0] + 1.0), difference = log_gamma - lax::lgamma(x[0] - x[1] + 1.0);
  return lax::exp(difference - lax::lgamma(x[1] + 1.0));
}

// Binomial coefficients; zero outside of 0 <= k <= n.
Array safe_binomials(const Array& n, const Array& k) {
  const Arrays x = broadcast_arrays("invhilbert", {n, k});
  const Array is_at_most = x[1] <= x[0], both = is_at_most & (x[0] >= 0);
  const Array inside = both & (x[1] >= 0);
  const Array a = numpy::where(inside, x[0], 0.0), b = numpy::where(inside, x[1], 0.0);
  const Array log_gamma = lax::lgamma(a + 1.0), difference = log_gamma - lax::lgamma(b + 1.0);
  const Array value = lax::exp(difference - lax::lgamma(a + 1.0 - b));
  return numpy::where(inside, value, 0.0);
}

// (-1)^k for integers.
Array alternating(const Array& k) { return numpy::power(Array(-1.0), k); }

void check_kind(const char* name, const std::string& kind) {
  if (kind == "symmetric" || kind == "lower" || kind == "upper") return;
  throw ValueError(concat(name, ": Expected kind to be one of symmetric, lower or upper; got ", kind));
}

void require_vector(const char* name, const char* argument, const Array& x) {
  if (x.ndim() > 0) return;
  throw ValueError(concat(name, ": ", argument, " must be at least 1-dimensional, got a scalar."));
}

}  // namespace

Array block_diag(const std::vector<Array>& arrs) {
  if (arrs.empty()) return lax::full({1, 0}, Array(0), default_float());
  const Arrays same = promote_dtypes(arrs);
  Arrays blocks;
  int64_t columns = 0, before = 0;
  for (std::size_t i = 0; i < same.size(); ++i) {
    if (same[i].ndim() > 2) {
      throw ValueError(concat("block_diag: arguments must have at most 2 dimensions, got ", to_string(same[i].type()),
                              " at argument ", i));
    }
    blocks.push_back(numpy::atleast_2d(same[i]));
    columns += blocks.back().shape(1);
  }
  for (Array& block : blocks) {
    const int64_t own = block.shape(1);
    block = lax::pad(block, lax::convert_element_type(Array(0), block.dtype(), false),
                     {{}, {before, columns - own - before, 0}});
    before += own;
  }
  const Array joined = lax::concatenate(blocks, 0);
  return lax::convert_element_type(joined, joined.dtype(), false);
}

Array toeplitz(const Array& c, const std::optional<Array>& r) {
  const auto one = [](std::span<const Array> in) -> Arrays {
    const Arrays both = promote_dtypes({in[0], in[1]});
    const int64_t m = in[0].shape(0), n = in[1].shape(0);
    if (m == 0 || n == 0) return {lax::empty({m, n}, both[0].dtype())};
    const Array values = lax::concatenate({reversed(both[0]), lax::slice_in_dim(both[1], 1, n)}, 0);
    return {sliding(values, m, n, true)};
  };
  const Array first_row = r ? *r : numpy::conj(c);
  const Array result = batched("toeplitz", one, {numpy::atleast_1d(c), numpy::atleast_1d(first_row)});
  return lax::convert_element_type(result, result.dtype(), false);
}

Array hankel(const Array& c, const std::optional<Array>& r) {
  const Array last_row = r ? *r : lax::zeros(c.type());
  require_vector("hankel", "c", c);
  require_vector("hankel", "r", last_row);
  const auto one = [](std::span<const Array> in) -> Arrays {
    const Arrays both = promote_dtypes({in[0], in[1]});
    const int64_t m = in[0].shape(0), n = in[1].shape(0);
    if (m == 0 || n == 0) return {lax::empty({m, n}, both[0].dtype())};
    return {sliding(lax::concatenate({both[0], lax::slice_in_dim(both[1], 1, n)}, 0), m, n, false)};
  };
  return batched("hankel", one, {c, last_row});
}

Array circulant(const Array& c) {
  const auto one = [](std::span<const Array> in) -> Arrays {
    const int64_t n = in[0].shape(0);
    if (n == 0) return {lax::empty({0, 0}, in[0].dtype())};
    Array column_n = column(numbers_to(n));
    return {in[0]((column_n - row(numbers_to(n))) % Array(n))};
  };
  return batched("circulant", one, {numpy::atleast_1d(c)});
}

Array leslie(const Array& fecundity, const Array& survival) {
  const Array f = numpy::atleast_1d(fecundity), s = numpy::atleast_1d(survival);
  if (f.shape(-1) < 2 || s.shape(-1) != f.shape(-1) - 1) {
    throw ValueError(concat(f.shape(-1) < 2
                                ? "leslie: the length of f along the last axis must be at least 2"
                                : "leslie: Incorrect lengths for f and s: s must have one entry less than f",
                            ", got ", to_string(f.type()), " and ", to_string(s.type())));
  }
  const auto one = [](std::span<const Array> in) -> Arrays {
    const Arrays both = promote_dtypes({in[0], in[1]});
    return {numpy::diag(both[1], {.k = -1}).at(0).set(both[0])};
  };
  return batched("leslie", one, {f, s});
}

Array companion(const Array& coefficients) {
  const Array a = numpy::atleast_1d(promote_inexact("companion", coefficients));
  if (a.shape(-1) < 2)
    throw ValueError(
        concat("companion: the length of `a` along the last axis must be at least 2, got ", to_string(a.type())));
  const auto one = [](std::span<const Array> in) -> Arrays {
    const Array& x = in[0];
    const Array negated = -lax::slice_in_dim(x, 1, std::nullopt);
    const Array first = negated / x(0);
    const int64_t m = x.shape(0) - 1;
    const Array difference = lax::broadcasted_iota(DType::int32, {m, m}, 0) - 1;
    const Array below = lax::eq(difference, lax::broadcasted_iota(DType::int32, {m, m}, 1));
    return {lax::convert_element_type(below, first.dtype(), false).at(0).set(first)};
  };
  return batched("companion", one, {a});
}

Array fiedler(const Array& a) {
  const Array x = numpy::atleast_1d(a);
  Array expanded = lax::expand_dims(x, {x.ndim()});
  return numpy::abs(expanded - lax::expand_dims(x, {x.ndim() - 1}));
}

Array fiedler_companion(const Array& coefficients) {
  const Array a = numpy::atleast_1d(promote_inexact("fiedler_companion", coefficients));
  if (a.shape(-1) == 0)
    throw ValueError(
        concat("fiedler_companion: the length of `a` along the last axis must be nonzero, got ", to_string(a.type())));
  const auto one = [](std::span<const Array> in) -> Arrays {
    const int64_t n = in[0].shape(0) - 1;
    if (n == 0) return {lax::empty({0, 0}, in[0].dtype())};
    const Array x = in[0] / in[0](0);
    if (n == 1) return {(-lax::slice_in_dim(x, 1, std::nullopt)).reshape({1, 1})};
    const Array i = column(numbers_to(n)), j = row(numbers_to(n));
    const Array even = (i % 2) == 0, odd = ~even;
    const auto entry = [&](int64_t ahead) { return -x(numpy::minimum(i + Array(ahead), Array(n))); };
    const Array one = lax::convert_element_type(Array(1), x.dtype(), false);
    Array result = lax::full({n, n}, Array(0), x.dtype());
    const auto put = [&](const Array& where, const Array& value) { result = numpy::where(where, value, result); };
    Array both = (j == i - 2) & odd;
    put(both & (i >= 3), one);
    Array first_both = (j == i - 1) & even, second_both = first_both & (i >= 2);
    put(second_both, entry(1));
    put((j == i + 2) & even, one);
    Array third_both = (j == i + 1) & even;
    put(third_both, entry(2));
    Array is_equal = i == 1;
    put(is_equal & (j == 0), one);
    Array is_equal_i = i == 0, fourth_both = is_equal_i & (j == 0);
    put(fourth_both, -x(1));
    return {result};
  };
  return batched("fiedler_companion", one, {a});
}

Array convolution_matrix(const Array& a, int64_t n, const std::string& mode) {
  if (n <= 0) throw ValueError(concat("convolution_matrix: n must be a positive integer; got ", n));
  require_vector("convolution_matrix", "a", a);
  const int64_t m = a.shape(-1), length = m + n - 1;
  if (m < 1) throw ValueError(concat("convolution_matrix: len(a) must be at least 1, got ", to_string(a.type())));
  if (mode != "full" && mode != "valid" && mode != "same") {
    throw ValueError(concat("convolution_matrix: mode must be one of 'full', 'valid', 'same'; got ", mode));
  }
  numpy::PadWidths widths(a.shape().size());
  widths.back() = {0, n - 1};
  const int64_t trim = mode == "full" ? 0 : std::min(n, m) - 1;
  const int64_t before = mode == "same" ? trim / 2 : trim, after = mode == "same" ? trim - trim / 2 : trim;
  const int64_t axis = a.ndim() - 1;
  const Array first_column = lax::slice_in_dim(numpy::pad(a, widths), before, length - after, 1, axis);
  const Array first_row =
      lax::slice_in_dim(numpy::pad(reversed(a), widths), length - n - before, length - before, 1, axis);
  return toeplitz(first_column, first_row);
}

Array hilbert(int64_t n) {
  const Array i = lax::iota(default_float(), n);
  Array column_i = column(i);
  return 1 / (column_i + row(i) + 1);
}

Array invhilbert(int64_t n) {
  const Array a = lax::iota(default_float(), n), i = column(a), j = row(a), sum = i + j;
  const double size = static_cast<double>(n);
  Array alternating_sum = alternating(sum), product = alternating_sum * (sum + 1.0), sum_size = size + i;
  Array product_sum = product * safe_binomials(sum_size, size - j - 1), first_sum = size + j;
  Array first_product = product_sum * safe_binomials(first_sum, size - i - 1);
  return first_product * lax::square(safe_binomials(sum, i));
}

Array pascal(int64_t n, const std::string& kind) {
  check_kind("pascal", kind);
  const Array i = lax::iota(DType::float32, n);
  const Array column_i = column(i);
  const Array lower = binomials(column_i, row(i));
  if (kind == "lower") return lower;
  if (kind == "upper") return matrix::transposed(lower);
  return numpy::dot(lower, matrix::transposed(lower));
}

Array invpascal(int64_t n, const std::string& kind) {
  check_kind("invpascal", kind);
  const Array a = lax::iota(default_float(), n), i = column(a), j = row(a);
  const Array alternating_value = alternating(i - j);
  const Array lower = alternating_value * binomials(i, j);
  if (kind == "lower") return lower;
  if (kind == "upper") return matrix::transposed(lower);
  return numpy::dot(matrix::transposed(lower), lower);
}

Array helmert(int64_t n, bool full) {
  if (n < 1) throw ValueError(concat("helmert: n must be a positive integer; got ", n));
  const Array i = column(numbers_to(n - 1)), j = row(numbers_to(n)), k = i + 1;
  const Array size = lax::convert_element_type(k, default_float(), false), length = lax::sqrt(size * (size + 1));
  const Array is_at_most = j <= i, quotient = 1.0 / length, is_equal = j == k, first_quotient = -size / length;
  const Array rest =
      numpy::where(is_at_most, quotient, numpy::where(is_equal, first_quotient, lax::zeros(length.type())));
  if (!full) return rest;
  const Array first =
      lax::full({1, n}, 1.0 / lax::sqrt(lax::convert_element_type(Array(n), default_float(), false)), rest.dtype());
  return lax::concatenate({first, rest}, 0);
}

Array hadamard(int64_t n, std::optional<DType> dtype) {
  if (n < 1 || (n & (n - 1)) != 0) throw ValueError(concat("hadamard: n must be a positive power of 2; got ", n));
  Array h = lax::full({1, 1}, Array(1), dtype.value_or(default_int()));
  while (h.shape(0) < n) {
    h = lax::concatenate({lax::concatenate({h, h}, 1), lax::concatenate({h, lax::neg(h)}, 1)}, 0);
  }
  return h;
}

Array dft(int64_t n, const DftOptions& options) {
  if (!options.scale.empty() && options.scale != "sqrtn" && options.scale != "n") {
    throw ValueError(concat("dft: scale must be None, 'sqrtn', or 'n'; got ", options.scale));
  }
  const DType dtype = options.dtype.value_or(default_complex());
  if (!is_complex(dtype)) throw ValueError(concat("dft: dtype must be complex; got ", to_string(dtype)));
  const Array a = lax::iota(dtype, n);
  const std::complex<double> turn(0, -2 * std::numbers::pi);
  const Array product = turn * column(a);
  const Array omegas = lax::exp(product * row(a) / Array(n));
  if (options.scale == "sqrtn") return omegas / lax::sqrt(lax::convert_element_type(Array(n), default_float(), false));
  return options.scale == "n" ? omegas / Array(n) : omegas;
}

}  // namespace capibara::jax::scipy::linalg
