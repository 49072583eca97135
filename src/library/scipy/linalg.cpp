// jax.scipy.linalg: factorizations of matrices and solvers based on them.
#include <capibara/scipy/linalg.h>

#include <capibara/linalg.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/solve.h>

#include <algorithm>

#include "core/runtime/warning.h"
#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"
#include "library/numpy/linalg/linalg_vectorize.h"
#include "program/derive/derive.h"

namespace capibara::jax::scipy::linalg {

namespace matrix = capibara::linalg;
namespace factors = lax::linalg;

namespace {

// The number of last dimensions of b that belong to one system: a vector, or a matrix of right-hand sides.
int64_t right_side_rank(const char* name, const Array& a, const Array& b) {
  if (b.ndim() == 1) return 1;
  if (a.ndim() == b.ndim() + 1 && a.shape(-1) == b.shape(-1)) {
    warn(concat("jax.scipy.linalg.", name, ": batched 1D solves with b.ndim > 1 are deprecated; use ", name,
                "(..., b[..., None]).squeeze(-1)"));
    return 1;
  }
  return 2;
}

void check_system(const char* name, const Array& a, const Array& b, int64_t core) {
  if (a.ndim() >= 2 && b.ndim() >= core && a.shape(-1) == a.shape(-2) && b.shape(-core) == a.shape(-1)) return;
  throw ValueError(concat(name, ": the shapes must be [..., n, n] and [n] or [..., n, k], got ", to_string(a.type()),
                          " and ", to_string(b.type())));
}

Array solve_by_triangle(const char* name, const Array& a, const Array& b, int64_t core,
                        const factors::TriangularSolveOptions& options) {
  const auto one = [&](std::span<const Array> in) { return Arrays{factors::triangular_solve(in[0], in[1], options)}; };
  return vectorize(name, one, {a, b}, {2, core})[0];
}

// a x for a batch of vectors x.
Array matvec(const Array& a, const Array& x) {
  return lax::squeeze(numpy::matmul(a, lax::expand_dims(x, {x.ndim()}), {.precision = "highest"}), {x.ndim()});
}

Arrays geqrf(const Array& a) {
  static const Primitive p = primitive("geqrf");
  return capibara::bind(p, Arrays{a});
}

Arrays geqp3(const Array& a, const Array& pivots) {
  static const Primitive p = primitive("geqp3");
  return capibara::bind(p, Arrays{a, pivots}, {{"use_magma", Attr()}});
}

}  // namespace

Array cholesky(const Array& matrices, bool lower) {
  const Array a = promote_inexact("cholesky", matrices);
  if (lower) return factors::cholesky(a, false);
  if (a.ndim() < 2)
    throw ValueError(concat("cholesky: the input must have at least 2 dimensions, got ", to_string(a.type())));
  return matrix::adjoint(factors::cholesky(matrix::adjoint(a), false));
}

std::pair<Array, bool> cho_factor(const Array& a, bool lower) { return {cholesky(a, lower), lower}; }

Array cho_solve(const std::pair<Array, bool>& c_and_lower, const Array& right) {
  const Arrays both = promote_dtypes_inexact({c_and_lower.first, right});
  const Array &c = both[0], &b = both[1];
  const bool lower = c_and_lower.second;
  const int64_t core = right_side_rank("cho_solve", c, b);
  check_system("cho_solve", c, b, core);
  const auto step = [&](const Array& x, bool adjoint) {
    return solve_by_triangle("cho_solve", c, x, core,
                             {.left_side = true, .lower = lower, .transpose_a = adjoint, .conjugate_a = adjoint});
  };
  return step(step(b, !lower), lower);
}

std::pair<Array, Array> eigh(const Array& a, bool lower) {
  const auto [v, w] = factors::eigh(promote_inexact("eigh", a), {.lower = lower});
  return {w, v};
}

std::pair<Array, Array> lu_factor(const Array& a) {
  const auto [lu, pivots, permutation] = factors::lu(promote_inexact("lu_factor", a));
  return {lu, pivots};
}

Array lu_solve(const std::pair<Array, Array>& lu_and_piv, const Array& right, int64_t trans) {
  const Arrays both = promote_dtypes_inexact({lu_and_piv.first, right});
  const Array &lu = both[0], &b = both[1];
  if (lu.ndim() < 2)
    throw ValueError(concat("lu_solve: the factors must have at least 2 dimensions, got ", to_string(lu.type())));
  const Array permutation = factors::lu_pivots_to_permutation(lu_and_piv.second, lu.shape(-2));
  const int64_t core = right_side_rank("lu_solve", lu, b);
  check_system("lu_solve", lu, b, core);
  const auto one = [&](std::span<const Array> in) {
    return Arrays{matrix::lu_solve(in[0], in[1], in[2], static_cast<int>(trans))};
  };
  return vectorize("lu_solve", one, {lu, permutation, b}, {2, 1, core})[0];
}

std::tuple<Array, Array, Array> lu(const Array& input) {
  const Array a = promote_inexact("lu", input);
  if (a.ndim() != 2) throw ValueError(concat("lu: the input must be one matrix, got ", to_string(a.type())));
  const auto [both, pivots, permutation] = factors::lu(a);
  const int64_t m = a.shape(0), n = a.shape(1), k = std::min(m, n);
  const Array expanded = lax::expand_dims(permutation, {0});
  const Array places = expanded == lax::expand_dims(lax::iota(permutation.dtype(), m), {1});
  const Array p = lax::convert_element_type(places, real_dtype(a.dtype()), false);
  const Array below = lax::slice_in_dim(matrix::tril(both, -1), 0, k, 1, 1);
  const Array l = lax::add(below, matrix::eye(a.dtype(), m, k));
  return {p, l, matrix::rows(matrix::triu(both), 0, k)};
}

std::pair<Array, Array> lu_permuted(const Array& a) {
  const auto [p, l, u] = lu(a);
  return {numpy::matmul(p, l, {.precision = "highest"}), u};
}

Arrays qr(const Array& matrices, const QrOptions& options) {
  if (options.mode != "full" && options.mode != "r" && options.mode != "economic") {
    throw ValueError(concat("qr: unsupported QR decomposition mode '", options.mode, "'"));
  }
  const Array a = promote_inexact("qr", matrices);
  const bool full = options.mode != "economic";
  Arrays parts;
  if (options.pivoting) {
    const auto [q, r, p] = factors::qr_with_pivoting(a, full);
    parts = {q, r, p};
  } else {
    const auto [q, r] = factors::qr(a, full);
    parts = {q, r};
  }
  if (options.mode == "r") parts.erase(parts.begin());
  return parts;
}

Arrays qr_multiply(const Array& left, const Array& right, const QrMultiplyOptions& options) {
  const Arrays both = promote_dtypes_inexact({left, right});
  Array a = both[0], c = both[1];
  if (options.mode != "right" && options.mode != "left") {
    throw ValueError(concat("qr_multiply: mode must be 'right' or 'left', got ", options.mode));
  }
  const bool on_left = options.mode == "left", vector = c.ndim() == 1;
  if (vector) c = lax::expand_dims(c, {on_left ? 1 : 0});
  if (a.ndim() < 2 || c.ndim() < 2) {
    throw ValueError(concat("qr_multiply: matrices are needed, got ", to_string(both[0].type()), " and ",
                            to_string(both[1].type())));
  }
  const int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  if (on_left ? c.shape(-2) != k : c.shape(-1) != m) {
    throw ValueError(concat("qr_multiply: the shapes do not fit: Q of ", to_string(a.type()), " is ", m, " x ", k,
                            ", c is ", to_string(c.type())));
  }
  const Shape batch = lax::broadcast_shapes(
      {Shape(a.shape().begin(), a.shape().end() - 2), Shape(c.shape().begin(), c.shape().end() - 2)});
  const auto widened = [&](const Array& x) {
    Shape shape = batch;
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return broadcast_to("qr_multiply", x, shape);
  };
  a = widened(a);
  c = widened(c);
  Array reflectors, taus, permutation;
  if (options.pivoting) {
    Shape shape = batch;
    shape.push_back(n);
    const Arrays parts = geqp3(a, lax::full(shape, Array(0), DType::int32));
    reflectors = parts[0];
    permutation = parts[1] - 1;
    taus = parts[2];
  } else {
    const Arrays parts = geqrf(a);
    reflectors = parts[0];
    taus = parts[1];
  }
  if (m > n && on_left) {
    Shape shape = c.shape();
    shape[shape.size() - 2] = m - k;
    c = lax::concatenate({c, lax::full(shape, Array(0), c.dtype())}, c.ndim() - 2);
  }
  // conj(Q) c is transpose(transpose(c) adjoint(Q)): the matmul changes sides.
  if (options.conjugate) c = matrix::transposed(c);
  Array product =
      factors::ormqr(reflectors, taus, c, {.left = on_left != options.conjugate, .transpose = options.conjugate});
  if (options.conjugate) product = matrix::transposed(product);
  if (!on_left) product = matrix::cols(product, 0, k);
  if (vector) product = product.flatten();
  const Array r = matrix::triu(matrix::rows(reflectors, 0, k));
  return options.pivoting ? Arrays{product, r, permutation} : Arrays{product, r};
}

Arrays schur(const Array& a, const std::string& output) {
  if (output != "real" && output != "complex") {
    throw ValueError(concat("schur: expected 'output' to be either 'real' or 'complex', got ", output));
  }
  if (output == "real") return factors::schur(a);
  return factors::schur(lax::convert_element_type(a, complex_dtype(inexact_dtype(a.dtype())), false));
}

Array hessenberg(const Array& a) {
  if (a.shape(-1) == 0) return lax::zeros(a.type());
  return matrix::triu(factors::hessenberg(a).first, -1);
}

std::pair<Array, Array> hessenberg_with_q(const Array& a) {
  const int64_t n = a.shape(-1);
  if (n == 0) return {lax::zeros(a.type()), lax::zeros(a.type())};
  const auto [packed, taus] = factors::hessenberg(a);
  const Array inner = matrix::cols(matrix::rows(packed, 1, n), 0, n - 1);
  const Array q = factors::householder_product(inner, taus);
  // Extends the matrix by one row and column of the identity.
  std::vector<lax::PadDim> config(a.shape().size());
  config[config.size() - 1].low = config[config.size() - 2].low = 1;
  const Array padded = lax::pad(q, lax::convert_element_type(Array(0), q.dtype(), false), config);
  return {matrix::triu(packed, -1),
          padded.at(ellipsis, 0, 0).set(lax::convert_element_type(Array(1), q.dtype(), false))};
}

Array solve(const Array& left, const Array& right, const SolveOptions& options) {
  const std::string& kind = options.assume_a;
  if (kind != "gen" && kind != "sym" && kind != "her" && kind != "pos") {
    throw ValueError(concat("solve: expected assume_a to be one of gen, sym, her, pos; got ", kind));
  }
  if (kind != "pos") return numpy::linalg::solve(left, right);
  const Arrays both = promote_dtypes_inexact({left, right});
  const Array &a = both[0], &b = both[1];
  const bool vector = a.ndim() == b.ndim() + 1;
  if (a.ndim() < 2 || (!vector && a.ndim() != b.ndim()) || a.shape(-1) != a.shape(-2) ||
      b.shape(vector ? -1 : -2) != a.shape(-1)) {
    throw ValueError(
        concat("The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got a=",
               to_string(a.type()), " and b=", to_string(b.type())));
  }
  // One factorization is shared with the derivatives.
  const std::pair<Array, bool> factor = cho_factor(lax::stop_gradient(a), options.lower);
  const auto times_a = [a = a](const Array& x) { return matvec(a, x); };
  const auto by_factor = [factor](const std::function<Array(const Array&)>&, const Array& x) {
    return lax::squeeze(cho_solve(factor, lax::expand_dims(x, {x.ndim()})), {x.ndim()});
  };
  const auto one = [&](const Array& x) { return lax::custom_linear_solve(times_a, x, by_factor, true); };
  if (vector) return one(b);
  const FlatFunction column = [&](std::span<const Array> x) { return Arrays{one(x[0])}; };
  const int64_t last = b.ndim() - 1;
  return vmap_flat(column, Arrays{b}, Ints{last}, {last}, {"", b.shape(-1)})[0];
}

Array solve_triangular(const Array& left, const Array& right, const SolveTriangularOptions& options) {
  if (options.trans < 0 || options.trans > 2)
    throw ValueError(concat("solve_triangular: invalid 'trans' value ", options.trans));
  const Arrays both = promote_dtypes_inexact({left, right});
  const int64_t core = right_side_rank("solve_triangular", both[0], both[1]);
  check_system("solve_triangular", both[0], both[1], core);
  return solve_by_triangle("solve_triangular", both[0], both[1], core,
                           {.left_side = true,
                            .lower = options.lower,
                            .transpose_a = options.trans > 0,
                            .conjugate_a = options.trans == 2,
                            .unit_diagonal = options.unit_diagonal});
}

}  // namespace capibara::jax::scipy::linalg
