// jax.scipy.linalg: functions of matrices by Schur forms, Padé approximants and polar factors, and Sylvester's
// equation.
#include <capibara/control.h>
#include <capibara/linalg.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/reductions.h>
#include <capibara/scipy/linalg.h>

#include <limits>

#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"
#include "library/numpy/linalg/linalg_vectorize.h"
#include "program/derive/derive.h"

namespace capibara::jax::scipy::linalg {

namespace matrix = capibara::linalg;

namespace {

using Pair = std::pair<Array, Array>;

Array mul(const Array& x, const Array& y) { return numpy::matmul(x, y, {.precision = "highest"}); }

void require_square(const char* name, const Array& a, int64_t least_rank = 2) {
  if (a.ndim() >= least_rank && a.shape(-1) == a.shape(-2)) return;
  throw ValueError(concat(name, ": expected square matrices, got ", to_string(a.type())));
}

// ---- exponential -------------------------------------------------------------------------------------------------

// Numerator coefficients of the diagonal Padé approximants of exp, lowest power first.
const std::vector<std::vector<double>> pade_coefficients = {
    {120, 60, 12, 1},
    {30240, 15120, 3360, 420, 30, 1},
    {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1},
    {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1},
    {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
     670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}};

// The odd and the even part of the numerator at a.
Pair pade(const Array& a, const std::vector<double>& b) {
  const Array identity = matrix::eye(a.dtype(), a.shape(0), a.shape(1));
  const Array a2 = mul(a, a);
  const std::size_t order = b.size() - 1;
  if (order == 13) {
    const Array a4 = mul(a2, a2), a6 = mul(a4, a2);
    const Array product = b[13] * a6, sum = product + b[11] * a4, product_a6 = mul(a6, sum + b[9] * a2);
    const Array sum_a6 = product_a6 + b[7] * a6, first_sum = sum_a6 + b[5] * a4, second_sum = first_sum + b[3] * a2;
    const Array odd = second_sum + b[1] * identity;
    const Array product_b = b[12] * a6, sum_b = product_b + b[10] * a4, first_product = mul(a6, sum_b + b[8] * a2);
    const Array third_sum = first_product + b[6] * a6, fourth_sum = third_sum + b[4] * a4;
    const Array fifth_sum = fourth_sum + b[2] * a2;
    const Array even = fifth_sum + b[0] * identity;
    return {mul(a, odd), even};
  }
  Arrays powers = {identity, a2};  // of a squared
  while (2 * (powers.size() - 1) + 1 < order)
    powers.push_back(powers.size() == 2 ? mul(a2, a2) : mul(powers.back(), a2));
  Array odd, even;
  for (std::size_t i = powers.size(); i-- > 0;) {
    const Array odd_term = b[2 * i + 1] * powers[i], even_term = b[2 * i] * powers[i];
    odd = odd.defined() ? odd + odd_term : odd_term;
    even = even.defined() ? even + even_term : even_term;
  }
  return {mul(a, odd), even};
}

// The norms up to which each approximant is accurate to rounding, and the largest norm that is not scaled down.
struct ExpmTable {
  std::vector<double> norms;
  double largest;
};
const ExpmTable single_table = {{4.258730016922831e-001, 1.880152677804762e+000}, 3.925724783138660};
const ExpmTable double_table = {
    {1.495585217958292e-002, 2.539398330063230e-001, 9.504178996162932e-001, 2.097847961257068e+000},
    5.371920351148152};

Array expm_of_one(const Array& input, const ExpmOptions& options) {
  const DType real = real_dtype(input.dtype());
  if (real != DType::float32 && real != DType::float64) {
    throw TypeError(concat("expm: 32 or 64 bit numbers are needed, got ", to_string(input.type())));
  }
  const ExpmTable& table = real == DType::float64 ? double_table : single_table;
  const Array size = numpy::linalg::norm(input, {.ord = 1});
  const Array squarings = numpy::maximum(0, lax::floor(numpy::log2(size / table.largest)));
  const Array a = input / numpy::power(Array(2), lax::convert_element_type(squarings, input.dtype()));
  Array which = lax::full({}, Array(0), DType::int32);
  for (double norm : table.norms) which = which + lax::convert_element_type(size >= norm, DType::int32, false);
  std::vector<std::function<Pair(const Array&)>> branches;
  for (std::size_t i = 0; i <= table.norms.size(); ++i) {
    branches.push_back([i](const Array& x) { return pade(x, pade_coefficients[i]); });
  }
  const auto [odd, even] = lax::switch_<Pair, Array>(which, branches, a);
  const auto squared = [&](const Array& p, const Array& q) {
    const Array start = options.upper_triangular ? solve_triangular(q, p) : numpy::linalg::solve(q, p);
    const auto step = [&](const Array& x, const Array& i) {
      const Array next = lax::cond(
          i < squarings, [](const Array& y) { return mul(y, y); }, [](const Array& y) { return y; }, x);
      return std::pair(next, std::monostate{});
    };
    return lax::scan(step, start, lax::iota(squarings.dtype(), options.max_squarings)).first;
  };
  const auto unknown = [](const Array& p, const Array&) {
    return lax::full_like(p, Array(std::numeric_limits<double>::quiet_NaN()));
  };
  Array is_greater = squarings > Array(options.max_squarings), sum = odd + even;
  return lax::cond(is_greater, unknown, squared, sum, even - odd);
}

// ---- Schur forms -------------------------------------------------------------------------------------------------

// Iterates over the superdiagonals of an upper triangular matrix: f(result, rows, columns) computes the entries of the
// next one; columns out of range are ignored.
template <class State, class Step>
State over_superdiagonals(int64_t n, const State& init, Step step) {
  return lax::fori_loop(
      1, n,
      [&](const Array& distance, const State& state) {
        const Array rows = lax::iota(DType::int32, n);
        return step(state, rows, rows + lax::convert_element_type(distance, DType::int32, false));
      },
      init);
}

Array at_columns(const Array& x, const Array& rows, const Array& columns) {
  return x(rows, numpy::minimum(columns, Array(x.shape(1) - 1)));
}

// The square root of an upper triangular matrix.
Array triangular_root(const Array& t) {
  const Array diagonal = lax::sqrt(matrix::diagonal(t));
  const auto step = [&](const Array& u, const Array& rows, const Array& columns) {
    const Array known = at_columns(mul(u, u), rows, columns), wanted = at_columns(t, rows, columns);
    const Array sums = diagonal + diagonal(numpy::minimum(columns, Array(t.shape(0) - 1)));
    const Array is_equal = wanted == known;
    const Array value = numpy::where(is_equal, 0.0, (wanted - known) / sums);
    return u.at(rows, columns).set(value);
  };
  return over_superdiagonals(t.shape(0), numpy::diag(diagonal), step);
}

// Parlett's recurrence: f commutes with the triangular matrix t. Also returns the smallest eigenvalue distance seen.
Pair commuting(const Array& f, const Array& t) {
  const Array diagonal = matrix::diagonal(t);
  const int64_t n = t.shape(0);
  const auto step = [&](const Pair& state, const Array& rows, const Array& columns) {
    const auto& [values, least] = state;
    const Array product = mul(t, values);
    const Array sums = at_columns(product - mul(values, t), rows, columns);
    const Array distance = diagonal(numpy::minimum(columns, Array(n - 1))) - diagonal;
    const Array is_different = distance != 0;
    const Array next = numpy::where(is_different, sums / numpy::where(distance != 0, distance, 1), sums);
    const Array is_less = columns < Array(n);
    const Array met = numpy::where(is_less, lax::abs(distance), std::numeric_limits<double>::infinity());
    Array set_rows = values.at(rows, columns).set(next);
    return Pair(set_rows, lax::min(least, numpy::min(met)));
  };
  return over_superdiagonals(n, Pair(f, lax::abs(diagonal(0))), step);
}

// Makes the real Schur form upper triangular by one rotation per diagonal block.
Pair complex_form(const Array& real_t, const Array& real_z) {
  const DType dtype = complex_dtype(inexact_dtype(result_type({real_t, real_z}).dtype));
  const Array start_t = lax::convert_element_type(real_t, dtype, false),
              start_z = lax::convert_element_type(real_z, dtype, false);
  const int64_t n = start_t.shape(0);
  if (n <= 1) return {start_t, start_z};
  const double eps = finfo(dtype).eps;
  const Array places = lax::iota(DType::int32, n);
  const auto rotate = [&](const Array& m, const Array& t, const Array& z) {
    const Array before = m - 1;
    const Array block = lax::dynamic_slice(t, {before, before}, {2, 2});
    Array eigvals_block = numpy::linalg::eigvals(block)(0);
    const Array mu = eigvals_block - t(m, m), below = t(m, before);
    const Array squared = lax::square(lax::abs(mu));
    const Array length = lax::convert_element_type(lax::sqrt(squared + lax::square(lax::abs(below))), dtype);
    const Array c = mu / length, s = below / length;
    const Array turn = lax::stack({lax::stack({lax::conj(c), s}), lax::stack({-s, c})}), back = matrix::adjoint(turn);
    const Array rows = lax::dynamic_slice_in_dim(t, before, 2, 0);
    const Array right = places >= before;
    Array next = lax::dynamic_update_slice_in_dim(t, numpy::where(right, mul(turn, numpy::where(right, rows, 0)), rows),
                                                  before, 0);
    const Array columns = lax::dynamic_slice_in_dim(next, before, 2, 1);
    const Array above = lax::expand_dims(places < m + 1, {1});
    next = lax::dynamic_update_slice_in_dim(
        next, numpy::where(above, mul(numpy::where(above, columns, 0), back), columns), before, 1);
    const Array vectors = lax::dynamic_slice_in_dim(z, before, 2, 1);
    return Pair(next, lax::dynamic_update_slice_in_dim(z, mul(vectors, back), before, 1));
  };
  const auto step = [&](const Array& i, const Pair& state) {
    const Array m = Array(n) - lax::convert_element_type(i, DType::int32, false), before = m - 1;
    const Array& t = state.first;
    const Array magnitude = lax::abs(t(m, before)), magnitude_before = lax::abs(t(before, before));
    const Array large = magnitude > eps * (magnitude_before + lax::abs(t(m, m)));
    const auto keep = [](const Array&, const Array& a, const Array& b) { return Pair(a, b); };
    const Pair next = lax::cond(large, rotate, keep, m, t, state.second);
    return Pair(next.first.at(m, before).set(lax::convert_element_type(Array(0), dtype, false)), next.second);
  };
  return lax::fori_loop(1, n, step, Pair(start_t, start_z));
}

// ---- Sylvester ---------------------------------------------------------------------------------------------------

// y of r y + y s = f for upper triangular r and lower triangular s, from the last entry to the first.
Array triangular_sylvester(const Array& r, const Array& s, const Array& f) {
  const int64_t m = f.shape(0), n = f.shape(1);
  const Array rows = lax::iota(DType::int32, m), columns = lax::iota(DType::int32, n);
  const auto step = [&](const Array& y, const Array& place) {
    const Array i = lax::div(place, lax::full({}, Array(n), DType::int32)),
                j = lax::rem(place, lax::full({}, Array(n), DType::int32));
    const Array is_greater = rows > i, r_i = r(i);
    const Array from_r = numpy::sum(numpy::where(is_greater, r_i * y(slice(), j), 0.0));
    const Array is_greater_columns = columns > j, y_i = y(i);
    const Array from_s = numpy::sum(numpy::where(is_greater_columns, y_i * s(slice(), j), 0.0));
    const Array f_i = f(i, j), difference = f_i - (from_r + from_s), r_value = r(i, i);
    const Array value = difference / (r_value + s(j, j));
    return std::pair(y.at(i, j).set(value), std::monostate{});
  };
  const Array order = lax::rev(lax::iota(DType::int32, m * n), {0});
  return lax::scan(step, lax::full({m, n}, Array(0), f.dtype()), order).first;
}

Array sylvester(const Array& a, const Array& b, const Array& c, const SolveSylvesterOptions& options) {
  Array x;
  if (options.method == "schur") {
    const Arrays left = schur(a, "complex"), right = schur(matrix::adjoint(b), "complex");
    const Array &r = left[0], &u = left[1], &v = right[1];
    const Array adjoint_u = matrix::adjoint(u), f = mul(mul(adjoint_u, lax::convert_element_type(c, r.dtype())), v);
    const Array solved = mul(u, triangular_sylvester(r, matrix::adjoint(right[0]), f));
    x = mul(solved, matrix::adjoint(v));
  } else {
    const auto [ra, ua] = numpy::linalg::eig(a);
    const auto [rb, ub] = numpy::linalg::eig(b);
    const Array f = solve(ua, mul(lax::convert_element_type(c, ra.dtype()), ub));
    Array expanded = lax::expand_dims(ra, {1}), product = mul(ua, f / (expanded + lax::expand_dims(rb, {0})));
    x = mul(product, numpy::linalg::inv(ub));
  }
  if (!is_complex(c.dtype())) x = lax::real(x);
  const Array expanded_a = lax::expand_dims(numpy::linalg::eigvals(a), {1});
  const Array sums = expanded_a + lax::expand_dims(numpy::linalg::eigvals(b), {0});
  const Array singular = numpy::any(lax::abs(sums) < options.tol);
  Array broadcasted = broadcast_to("solve_sylvester", singular, x.shape());
  return lax::select(broadcasted, lax::full_like(x, Array(std::numeric_limits<double>::quiet_NaN())), x);
}

// ---- polar -------------------------------------------------------------------------------------------------------

Pair polar_of_one(const Array& a, const PolarOptions& options) {
  const int64_t m = a.shape(0), n = a.shape(1);
  const bool right = options.side == "right";
  if (options.method == "svd") {
    const auto [u, s, vh] = lax::linalg::svd(a, {.full_matrices = false});
    const Array values = lax::expand_dims(lax::convert_element_type(s, u.dtype()), {0});
    const Array scaled = (right ? matrix::adjoint(vh) : u) * values;
    const Array positive = mul(scaled, right ? vh : matrix::adjoint(u));
    return {mul(u, vh), positive};
  }
  if (options.method != "qdwh") throw ValueError(concat("polar: unknown polar decomposition method ", options.method));
  if ((m >= n) != right) {
    throw NotImplementedError(
        concat("polar: method='qdwh' needs at least as many rows as columns for side='right' and fewer for "
               "side='left', got ",
               to_string(a.type()), " with side='", options.side, "'"));
  }
  const auto [u, h, count, converged] = lax::linalg::qdwh(right ? a : matrix::adjoint(a), {.eps = options.eps});
  if (right) return {u, h};
  return {matrix::adjoint(u), matrix::adjoint(h)};
}

}  // namespace

Array expm(const Array& input, const ExpmOptions& options) {
  const Array a = promote_inexact("expm", input);
  require_square("expm", a);
  return vectorize("expm", [&](std::span<const Array> in) { return Arrays{expm_of_one(in[0], options)}; }, {a}, {2})[0];
}

Pair expm_frechet(const Array& A, const Array& E) {
  require_square("expm_frechet", A);
  require_square("expm_frechet", E);
  if (A.shape() != E.shape()) {
    throw ValueError(concat("expm_frechet: expected A and E to be the same shape, got ", to_string(A.type()), " and ",
                            to_string(E.type())));
  }
  const JvpResult result =
      jvp_flat([](std::span<const Array> in) { return Arrays{expm(in[0])}; }, Arrays{A}, Arrays{E});
  return {result.primals[0], result.tangents[0]};
}

Array sqrtm(const Array& A) {
  const Arrays parts = schur(A, "complex");
  const Array product = mul(parts[1], triangular_root(parts[0]));
  return mul(product, matrix::adjoint(parts[1]));
}

Pair funm(const Array& A, const DiagonalFunction& func) {
  if (A.ndim() != 2) throw ValueError(concat("funm: expected a square matrix, got ", to_string(A.type())));
  require_square("funm", A);
  const Arrays parts = schur(A);
  const auto [t, z] = complex_form(parts[0], parts[1]);
  const Array start = lax::convert_element_type(numpy::diag(func(matrix::diagonal(t))), t.dtype(), false);
  const auto [f, least] = commuting(start, t);
  const Array product = numpy::matmul(z, f);
  const Array value = numpy::matmul(product, matrix::adjoint(z));
  const double eps = finfo(value.dtype()).eps;
  const Array distance = numpy::where(least == 0, eps, least);
  const Array above = numpy::linalg::norm(matrix::triu(t, 1), {.ord = 1});
  const Array estimate = numpy::minimum(1, numpy::maximum(eps, eps / distance * above));
  const Array error = numpy::where(numpy::any(numpy::isinf(value)), std::numeric_limits<double>::infinity(), estimate);
  return {value, error};
}

Pair rsf2csf(const Array& T, const Array& Z) {
  require_square("rsf2csf", T);
  require_square("rsf2csf", Z);
  if (T.shape(-1) != Z.shape(-1)) {
    throw ValueError(
        concat("rsf2csf: input array shapes must match, got ", to_string(Z.type()), " and ", to_string(T.type())));
  }
  const auto one = [](std::span<const Array> in) {
    const auto [t, z] = complex_form(in[0], in[1]);
    return Arrays{t, z};
  };
  const Arrays parts = vectorize("rsf2csf", one, {T, Z}, {2, 2});
  return {parts[0], parts[1]};
}

Array solve_sylvester(const Array& A, const Array& B, const Array& C, const SolveSylvesterOptions& options) {
  const Arrays all = promote_dtypes_inexact({A, B, C});
  if (options.method != "schur" && options.method != "eigen") {
    throw ValueError(concat("solve_sylvester: unrecognized method ", options.method,
                            "; the two valid methods are 'schur' and 'eigen'"));
  }
  if (C.ndim() < 2 || A.ndim() < 2 || B.ndim() < 2 || A.shape(-1) != C.shape(-2) || A.shape(-2) != C.shape(-2) ||
      B.shape(-1) != C.shape(-1) || B.shape(-2) != C.shape(-1)) {
    throw ValueError(concat("solve_sylvester: incompatible shapes A: ", to_string(A.type()),
                            " B: ", to_string(B.type()), " C: ", to_string(C.type())));
  }
  return vectorize("solve_sylvester",
                   [&](std::span<const Array> in) { return Arrays{sylvester(in[0], in[1], in[2], options)}; }, all,
                   {2, 2, 2})[0];
}

Pair polar(const Array& a, const PolarOptions& options) {
  if (a.ndim() < 2)
    throw ValueError(concat("polar: the input must be at least a 2-D array, got ", to_string(a.type())));
  if (options.side != "right" && options.side != "left") {
    throw ValueError(concat("polar: side must be either 'right' or 'left', got ", options.side));
  }
  if (!is_inexact(a.dtype()))
    throw ValueError(concat("polar: a floating or complex matrix is needed, got ", to_string(a.type())));
  const auto one = [&](std::span<const Array> in) {
    const auto [u, p] = polar_of_one(in[0], options);
    return Arrays{u, p};
  };
  const Arrays parts = vectorize("polar", one, {a}, {2});
  return {parts[0], parts[1]};
}

}  // namespace capibara::jax::scipy::linalg
