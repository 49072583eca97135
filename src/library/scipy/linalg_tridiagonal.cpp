// jax.scipy.linalg: eigenvalues of symmetric tridiagonal matrices by bisection, eigenvectors by inverse iteration.
#include <capibara/control.h>
#include <capibara/linalg.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>
#include <capibara/random.h>
#include <capibara/scipy/linalg.h>

#include <algorithm>
#include <cmath>

#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"

namespace capibara::jax::scipy::linalg {

namespace matrix = capibara::linalg;

namespace {

// The matrix: its real diagonal, and the quantities of the off-diagonal that bisection needs.
struct Tridiagonal {
  Array alpha, beta_size, beta_squared;
};

Array all_of(const Array& scalar, int64_t count) { return broadcast_to("eigh_tridiagonal", scalar, {count}); }

// The number of eigenvalues below each x: the negative terms of its Sturm sequence.
Array counts_below(const Tridiagonal& t, const Array& pivot_least, const Array& perturbation, const Array& x) {
  const Array first = t.alpha(0), q0 = first - x;
  const Array count0 = lax::convert_element_type(q0 < 0, DType::int32, false);
  const Array start = numpy::where(first == x, perturbation, q0);
  using State = std::pair<Array, Array>;
  const auto step = [&](const State& state, const State& row) {
    const auto& [q, count] = state;
    const Array next = row.first - row.second / q - x;
    const Array negative = next <= pivot_least;
    Array chosen = numpy::where(negative, lax::min(next, lax::neg(pivot_least)), next);
    return std::pair(State(chosen, count + lax::convert_element_type(negative, DType::int32, false)), std::monostate{});
  };
  const State rows(lax::slice_in_dim(t.alpha, 1, std::nullopt), t.beta_squared);
  return lax::scan(step, State(start, count0), rows).first.second;
}

Array bisection(const Tridiagonal& t, const Array& targets, const std::optional<Array>& tol) {
  const DType dtype = t.alpha.dtype();
  const FloatInfo info = finfo(dtype);
  const int64_t n = t.alpha.shape(0), count = targets.shape(0);
  // Gershgorin's discs contain all eigenvalues.
  const Array& beta = t.beta_size;
  const Array slice_in_dim_beta = lax::slice_in_dim(beta, 0, 1), slice_in_dim_value = lax::slice_in_dim(beta, 0, n - 2);
  const Array radius = lax::concatenate({slice_in_dim_beta, slice_in_dim_value + lax::slice_in_dim(beta, 1, n - 1),
                                         lax::slice_in_dim(beta, n - 2, n - 1)},
                                        0);
  const Array greatest = numpy::max(t.alpha + radius), least = numpy::min(t.alpha - radius);
  const Array magnitude = lax::abs(least);
  const Array norm = lax::max(magnitude, lax::abs(greatest));
  const double safe = std::max(1.0 / info.max, (1.0 + info.eps) * info.tiny);
  const Array pivot = safe * numpy::maximum(1, numpy::max(t.beta_squared));
  const Array perturbation = lax::square(info.eps * beta(0));
  Array tolerance = info.eps * norm;
  if (tol) tolerance = numpy::maximum(*tol, tolerance);
  const double fudge = 2.1;
  const Array slack = static_cast<double>(n) * fudge * info.eps * norm;
  Array difference = least - slack;
  const Array lower = all_of(difference - 2 * fudge * pivot, count), sum = greatest + slack,
              upper = all_of(sum + fudge * pivot, count);
  const Array pivots = all_of(pivot, count), perturbations = all_of(perturbation, count);
  using State = std::tuple<Array, Array, Array, Array>;  // steps, lower, middle, upper
  const auto unfinished = [&](const State& s) {
    const Array width = numpy::max(std::get<3>(s) - std::get<1>(s));
    Array is_less = std::get<0>(s) < Array(info.mantissa_bits + 1);
    return is_less & (tolerance < width);
  };
  const auto halve = [&](const State& s) {
    const auto& [steps, low, middle, high] = s;
    const Array below = counts_below(t, pivots, perturbations, middle);
    const Array next_low = numpy::where(below <= targets, middle, low),
                next_high = numpy::where(below > targets, middle, high);
    Array sum_steps = steps + 1;
    return State(sum_steps, next_low, 0.5 * (next_low + next_high), next_high);
  };
  Array filled = lax::full({}, Array(0), DType::int32);
  const State start(filled, lower, 0.5 * (upper + lower), upper);
  return std::get<2>(lax::while_loop(unfinished, halve, start));
}

// Orthogonalizes the rows of v within each run of close eigenvalues; `run` numbers the runs.
Array orthogonal_in_runs(const Array& v, const Array& run) {
  const int64_t k = v.shape(0);
  // Gram-Schmidt, row by row, each against the previous rows of its run.
  const auto step = [&](const Array& i, const Array& rows) {
    const Array own = rows(i), place = lax::iota(DType::int32, k);
    const Array is_equal = run == run(i);
    const Array earlier = is_equal & (place < lax::convert_element_type(i, DType::int32, false));
    const Array shares = numpy::where(earlier, numpy::matmul(lax::conj(rows), own, {.precision = "highest"}), 0);
    const Array rest = own - numpy::matmul(shares, rows, {.precision = "highest"});
    const Array length = numpy::linalg::norm(rest);
    return rows.at(i).set(rest / lax::convert_element_type(length, rest.dtype()));
  };
  return lax::fori_loop(0, k, step, v);
}

Array inverse_iteration(const Array& alpha, const Array& beta, const Array& values, const Array& key) {
  const int64_t n = alpha.shape(0), k = values.shape(0);
  const DType dtype = beta.dtype(), real = real_dtype(dtype);
  const Array zero = lax::convert_element_type(Array(0), dtype, false);
  const Array upper = lax::pad(beta, zero, {{0, 1, 0}});
  const Array lower = lax::pad(is_complex(dtype) ? lax::conj(beta) : beta, zero, {{1, 0, 0}});
  const Array magnitude = lax::abs(values(0));
  const Array norm = lax::max(magnitude, lax::abs(values(-1)));
  const Array slice_in_dim_values = lax::slice_in_dim(values, 1, k);
  const Array gaps = slice_in_dim_values - lax::slice_in_dim(values, 0, k - 1);
  const Array apart = lax::convert_element_type(gaps >= std::sqrt(finfo(real).eps) * norm, DType::int32, false);
  const Array run = lax::cumsum(lax::pad(apart, lax::full({}, Array(0), DType::int32), {{1, 0, 0}}));
  const Array expanded = lax::expand_dims(alpha, {0});
  const Array shifted = lax::convert_element_type(expanded - lax::expand_dims(values, {1}), dtype, false);
  const Array lowers = lax::broadcast(lower, {k}), uppers = lax::broadcast(upper, {k});
  const auto unit = [&](const Array& v) {
    const Array lengths = numpy::linalg::norm(v, {.axis = -1, .keepdims = true});
    Array quotient = v / lax::convert_element_type(lengths, dtype);
    return std::pair(quotient, lax::squeeze(lengths, {1}));
  };
  using State = std::tuple<Array, Array, Array, Array>;  // steps, vectors, their growth, the previous growth
  const auto growing = [](const State& s) {
    Array is_less = std::get<0>(s) < 5;
    return is_less & numpy::any(std::get<2>(s) >= 1.1 * std::get<3>(s));
  };
  const auto step = [&](const State& s) {
    const auto& [steps, v, growth, before] = s;
    const Array solved = lax::linalg::tridiagonal_solve(lowers, shifted, uppers, lax::expand_dims(v, {2}), true);
    const auto [next, lengths] = unit(lax::squeeze(solved, {2}));
    Array sum = steps + 1;
    return State(sum, orthogonal_in_runs(next, run), lengths, growth);
  };
  const Array random =
      lax::convert_element_type(jax::random::normal(key, {.shape = {k, n}, .dtype = real}), dtype, false);
  Array filled = lax::full({}, Array(0), DType::int32);
  auto unit_random = unit(random);
  Array filled_lax = lax::full({k}, Array(1), real);
  const State start(filled, unit_random.first, filled_lax, lax::full({k}, Array(0), real));
  return std::get<1>(lax::while_loop(growing, step, start));
}

void check(const Array& d, const Array& e) {
  if (d.dtype() != e.dtype()) {
    throw TypeError(concat("eigh_tridiagonal: diagonal and off-diagonal values must have same dtype, got ",
                           to_string(d.type()), " and ", to_string(e.type())));
  }
  const DType real = real_dtype(d.dtype());
  if (real != DType::float32 && real != DType::float64) {
    throw TypeError(concat("eigh_tridiagonal: 32 or 64 bit inputs are needed, got ", to_string(d.type())));
  }
}

Array selected(int64_t n, const EighTridiagonalOptions& options) {
  if (options.select == "a") return lax::iota(DType::int32, n);
  if (options.select == "v") throw NotImplementedError("eigh_tridiagonal: select='v' is not implemented");
  if (options.select != "i")
    throw ValueError(concat("eigh_tridiagonal: select must be 'a', 'i' or 'v', got ", options.select));
  if (!options.select_range) throw ValueError("eigh_tridiagonal: for select='i', select_range must be specified");
  const auto [first, last] = *options.select_range;
  if (first > last)
    throw ValueError(concat("eigh_tridiagonal: empty index range in select_range: ", first, ", ", last));
  Array positions = lax::iota(DType::int32, last - first + 1);
  return positions + lax::full({}, Array(first), DType::int32);
}

}  // namespace

Array eigvalsh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options) {
  check(d, e);
  const int64_t n = d.shape(0);
  const Array alpha = is_complex(d.dtype()) ? lax::real(d) : d;
  if (n <= 1) return alpha;
  const Array size = lax::abs(e);
  Array squared = lax::square(size);
  return bisection({alpha, size, squared}, selected(n, options), options.tol);
}

std::pair<Array, Array> eigh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options) {
  const Array values = eigvalsh_tridiagonal(d, e, options);
  const int64_t n = d.shape(0);
  if (n <= 1) return {values, matrix::eye(d.dtype(), n, n)};
  const Array alpha = is_complex(d.dtype()) ? lax::real(d) : d;
  const Array key = options.key ? *options.key : jax::random::key(42);
  return {values, matrix::transposed(inverse_iteration(alpha, e, values, key))};
}

}  // namespace capibara::jax::scipy::linalg
