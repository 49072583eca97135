// jax.lax.linalg: checks arguments and binds the primitives of linear algebra.
#include <capibara/control.h>
#include <capibara/linalg.h>
#include <capibara/primitive.h>

#include "lax/linalg.h"

#include <cmath>

namespace capibara::jax::lax::linalg {

namespace matrix = capibara::linalg;

namespace {

Attr range_attr(const std::optional<IndexRange>& range) { return range ? Attr(Ints{range->first, range->second}) : Attr(); }

// As Python prints the members of the enumerations.
template <class Enum, std::size_t count>
Attr enum_attr(const std::optional<Enum>& value, const char* const (&names)[count]) {
  return value ? Attr(names[static_cast<std::size_t>(*value)]) : Attr();
}
const char* const eig_names[] = {"EigImplementation.CUSOLVER", "EigImplementation.MAGMA", "EigImplementation.LAPACK"};
const char* const eigh_names[] = {"EighImplementation.QR", "EighImplementation.JACOBI", "EighImplementation.QDWH"};
const char* const svd_names[] = {"SvdAlgorithm.DEFAULT", "SvdAlgorithm.QR", "SvdAlgorithm.JACOBI", "SvdAlgorithm.POLAR",
                                 "SvdAlgorithm.DIVIDE_AND_CONQUER"};

void require_matrices(const char* op, const Array& x) {
  if (x.ndim() < 2) throw TypeError(concat(op, ": the input must have rank at least 2, got ", to_string(x.type())));
}

Arrays bind_svd(const Array& x, const SvdOptions& options, bool compute_uv) {
  static const Primitive p = primitive("svd");
  return capibara::bind(p, Arrays{x},
                        {{"full_matrices", options.full_matrices},
                         {"compute_uv", compute_uv},
                         {"subset_by_index", range_attr(options.subset_by_index)},
                         {"algorithm", enum_attr(options.algorithm, svd_names)}});
}

Arrays bind_qr(const Array& x, bool pivoting, bool full_matrices) {
  static const Primitive p = primitive("qr");
  return capibara::bind(p, Arrays{x}, {{"pivoting", pivoting}, {"full_matrices", full_matrices}, {"use_magma", Attr()}});
}

}  // namespace

Array cholesky(const Array& x, bool symmetrize_input) {
  static const Primitive p = primitive("cholesky");
  require_matrices("cholesky", x);
  return matrix::tril(bind1(p, {symmetrize_input ? matrix::symmetrized(x) : x}));
}

Array cholesky_update(const Array& r_matrix, const Array& w_vector) {
  static const Primitive p = primitive("cholesky_update");
  return bind1(p, {r_matrix, w_vector});
}

Arrays eig(const Array& x, const EigOptions& options) {
  static const Primitive p = primitive("eig");
  return capibara::bind(p, Arrays{x},
                        {{"compute_left_eigenvectors", options.compute_left_eigenvectors},
                         {"compute_right_eigenvectors", options.compute_right_eigenvectors},
                         {"enable_eigvec_derivs", options.enable_eigvec_derivs},
                         {"implementation", enum_attr(options.implementation, eig_names)}});
}

std::pair<Array, Array> eigh(const Array& x, const EighOptions& options) {
  static const Primitive p = primitive("eigh");
  require_matrices("eigh", x);
  Arrays out = capibara::bind(p, Arrays{options.symmetrize_input ? matrix::symmetrized(x) : x},
                              {{"lower", options.lower},
                               {"sort_eigenvalues", options.sort_eigenvalues},
                               {"subset_by_index", range_attr(options.subset_by_index)},
                               {"algorithm", enum_attr(options.implementation, eigh_names)}});
  return {out[0], out[1]};
}

std::pair<Array, Array> hessenberg(const Array& a) {
  static const Primitive p = primitive("hessenberg");
  Arrays out = capibara::bind(p, Arrays{a});
  return {out[0], out[1]};
}

Array householder_product(const Array& a, const Array& taus) {
  static const Primitive p = primitive("householder_product");
  return bind1(p, {a, taus});
}

std::tuple<Array, Array, Array> lu(const Array& x) {
  static const Primitive p = primitive("lu");
  Arrays out = capibara::bind(p, Arrays{x});
  return {out[0], out[1], out[2]};
}

Array lu_pivots_to_permutation(const Array& pivots, int64_t permutation_size) {
  static const Primitive p = primitive("lu_pivots_to_permutation");
  return bind1(p, {pivots}, {{"permutation_size", permutation_size}});
}

Array ormqr(const Array& a, const Array& taus, const Array& c, const OrmqrOptions& options) {
  static const Primitive p = primitive("ormqr");
  return bind1(p, {a, taus, c}, {{"left", options.left}, {"transpose", options.transpose}});
}

std::pair<Array, Array> qr(const Array& x, bool full_matrices) {
  Arrays out = bind_qr(x, false, full_matrices);
  return {out[0], out[1]};
}

std::tuple<Array, Array, Array> qr_with_pivoting(const Array& x, bool full_matrices) {
  Arrays out = bind_qr(x, true, full_matrices);
  return {out[0], out[1], out[2]};
}

Arrays schur(const Array& x, const SchurOptions& options) {
  static const Primitive p = primitive("schur");
  return capibara::bind(p, Arrays{x},
                        {{"compute_schur_vectors", options.compute_schur_vectors},
                         {"sort_eig_vals", options.sort_eig_vals},
                         {"select_callable", Attr()}});
}

std::tuple<Array, Array, Array> svd(const Array& x, const SvdOptions& options) {
  Arrays out = bind_svd(x, options, true);
  return {out[1], out[0], out[2]};
}

Array singular_values(const Array& x, const SvdOptions& options) { return bind_svd(x, options, false)[0]; }

Array symmetric_product(const Array& a_matrix, const Array& c_matrix, const SymmetricProductOptions& options) {
  static const Primitive p = primitive("symmetric_product");
  Array result = bind1(p, {a_matrix, c_matrix}, {{"alpha", options.alpha}, {"beta", options.beta}});
  if (!options.symmetrize_output) return result;
  Array upper = matrix::transposed(matrix::tril(result, -1));
  return add(matrix::tril(result), upper);
}

Array triangular_solve(const Array& a, const Array& b, const TriangularSolveOptions& options) {
  matrix::TriangularForm form = {options.left_side, options.lower, options.transpose_a, options.conjugate_a, options.unit_diagonal};
  if (b.ndim() != a.ndim() - 1) return matrix::triangular_solve(a, b, form);
  // A vector: one column on the left side, one row on the right.
  int64_t axis = options.left_side ? b.ndim() : b.ndim() - 1;
  return squeeze(matrix::triangular_solve(a, expand_dims(b, {axis}), form), {axis});
}

std::tuple<Array, Array, Array, Array> tridiagonal(const Array& a, bool lower) {
  static const Primitive p = primitive("tridiagonal");
  Arrays out = capibara::bind(p, Arrays{a}, {{"lower", lower}});
  return {out[0], out[1], out[2], out[3]};
}

Array tridiagonal_solve(const Array& dl, const Array& d, const Array& du, const Array& b, bool perturb_singular) {
  static const Primitive p = primitive("tridiagonal_solve");
  return bind1(p, {dl, d, du, b}, {{"perturb_singular", perturb_singular}});
}

// ---- qdwh -------------------------------------------------------------------------------------------------------

namespace {

// One step u -> (b/c) u + (a - b/c) u (I + c adjoint(u) u)^-1, by QR where c is large and by Cholesky where it is not.
Array qdwh_step(const Array& u, const Array& a, const Array& b, const Array& c) {
  int64_t n = u.shape(-1), m = u.shape(-2);
  DType dtype = u.dtype(), real = real_dtype(dtype);
  auto wide = [dtype](const Array& x) { return matrix::as_dtype(x, dtype); };
  auto by_qr = [&](const Array& v, const Array& x, const Array& y, const Array& z) {
    Array root = lax::sqrt(z);
    auto [q, r] = qr(concatenate({mul(wide(root), v), matrix::eye(dtype, n, n)}, 0), false);
    Array top = matrix::rows(q, 0, m), bottom = matrix::rows(q, m, m + n);
    Array weight = div(sub(x, div(y, z)), root);
    Array product_y = mul(wide(div(y, z)), v);
    Array wide_weight = wide(weight);
    return add(product_y, mul(wide_weight, matrix::product(top, matrix::adjoint(bottom))));
  };
  auto by_cholesky = [&](const Array& v, const Array& x, const Array& y, const Array& z) {
    Array wide_z = wide(z), scaled = mul(wide_z, matrix::product(matrix::adjoint(v), v));
    Array gram = add(scaled, matrix::eye(dtype, n, n));
    Array factor = cholesky(gram);
    matrix::TriangularForm inner = {.left_side = false, .lower = true, .transpose_a = true, .conjugate_a = true};
    Array w = matrix::triangular_solve(factor, v, inner);
    w = matrix::triangular_solve(factor, w, {.left_side = false, .lower = true});
    Array first_product = mul(wide(div(y, z)), v);
    return add(first_product, mul(wide(sub(x, div(y, z))), w));
  };
  return cond(gt(c, scalar_of(real, 100)), by_qr, by_cholesky, u, a, b, c);
}

}  // namespace

std::tuple<Array, Array, Array, Array> qdwh(const Array& x, const QdwhOptions& options) {
  if (x.ndim() != 2 || x.shape(0) < x.shape(1)) {
    throw ValueError(concat("qdwh: the input must be one matrix with at least as many rows as columns, got ", to_string(x.type())));
  }
  if (!is_inexact(x.dtype())) throw TypeError(concat("qdwh: a floating or complex matrix is needed, got ", to_string(x.type())));
  DType real = real_dtype(x.dtype());
  double eps = options.eps ? *options.eps : real == DType::float64 ? 0x1p-52 : 0x1p-23;
  int64_t limit = options.max_iterations.value_or(10);
  auto constant = [real](double value) { return scalar_of(real, value); };
  // An upper bound of the largest singular value brings all of them into (0, 1].
  Array size = lax::abs(x);
  Array columns = reduce_max(reduce_sum(size, {.axes = {0}}), {.axes = {0}});
  Array row_sums = reduce_max(reduce_sum(size, {.axes = {1}}), {.axes = {0}});
  Array bound = lax::sqrt(mul(columns, row_sums));
  bound = select(gt(bound, constant(0)), bound, constant(1));
  using State = std::tuple<Array, Array, Array, Array>;  // u, the lower bound of its singular values, count, converged
  Array quotient = div(x, matrix::as_dtype(bound, x.dtype()));
  State start(quotient, constant(eps), scalar_of(DType::int32, 0), eq(constant(0), constant(1)));
  double tolerance = std::cbrt(5 * eps), bound_tolerance = 5 * eps;
  auto unfinished = [&](const State& s) {
    Array inverse = bitwise_not(std::get<3>(s));
    return bitwise_and(inverse, lt(std::get<2>(s), scalar_of(DType::int32, static_cast<double>(limit))));
  };
  auto step = [&](const State& s) {
    const auto& [u, l, count, done] = s;
    Array l2 = mul(l, l);
    Array dd = cbrt(div(mul(constant(4), sub(div(constant(1), l2), constant(1))), l2));
    Array root = lax::sqrt(add(constant(1), dd));
    Array difference = sub(constant(8), mul(constant(4), dd)), product_mul = mul(constant(8), sub(constant(2), l2));
    Array inner = add(difference, div(product_mul, mul(l2, root)));
    Array a = add(root, div(lax::sqrt(inner), constant(2)));
    Array b = div(integer_pow(sub(a, constant(1)), 2), constant(4));
    Array c = sub(add(a, b), constant(1));
    Array next = qdwh_step(u, a, b, c);
    Array product_l = mul(l, add(a, mul(b, l2)));
    Array raised = lax::min(div(product_l, add(constant(1), mul(c, l2))), constant(1));
    Array change = lax::sqrt(reduce_sum(square(lax::abs(sub(next, u))), {.axes = {0, 1}}));
    Array is_at_most = le(change, constant(tolerance));
    Array small = bitwise_and(is_at_most, le(lax::abs(sub(raised, constant(1))), constant(bound_tolerance)));
    return State(next, raised, add(count, scalar_of(DType::int32, 1)), small);
  };
  auto [u, l, count, converged] = while_loop(unfinished, step, start);
  // One Newton-Schulz step repairs the last rounding errors.
  Array gram = matrix::product(matrix::adjoint(u), u);
  Array product_x = mul(scalar_of(x.dtype(), 1.5), u);
  Array polished = sub(product_x, mul(scalar_of(x.dtype(), 0.5), matrix::product(u, gram)));
  Array h = matrix::symmetrized(matrix::product(matrix::adjoint(polished), x));
  return {polished, h, count, converged};
}

}  // namespace capibara::jax::lax::linalg
