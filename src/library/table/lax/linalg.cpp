// Table rows for jax.lax.linalg.
#include <capibara/linalg.h>

#include <algorithm>
#include <cctype>

#include "lax/operators/promote.h"
#include "library/table/families.h"

namespace capibara::library {

namespace linalg = jax::lax::linalg;

namespace {

// A member of an enumeration by name or value, case-insensitive: QR, qr, SvdAlgorithm.QR.
template <class Enum, std::size_t count>
std::optional<Enum> member(const Arguments& a, std::string_view parameter, const char* const (&names)[count]) {
  if (!a.given(parameter)) return std::nullopt;
  std::string name = a.text(parameter);
  if (std::size_t dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (std::size_t i = 0; i < count; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw ValueError(concat(a.function(), ": argument '", parameter, "' is unknown: '", a.text(parameter), "'"));
}
constexpr const char* eig_names[] = {"cusolver", "magma", "lapack"};
constexpr const char* eigh_names[] = {"qr", "jacobi", "qdwh"};
constexpr const char* svd_names[] = {"default", "qr", "jacobi", "polar", "divide_and_conquer"};

std::optional<linalg::IndexRange> subset(const Arguments& a) {
  if (!a.given("subset_by_index")) return std::nullopt;
  const Ints range = a.ints("subset_by_index");
  if (range.size() != 2) {
    throw ValueError(concat(a.function(), ": subset_by_index must hold two numbers, got ", range.size()));
  }
  return linalg::IndexRange(range[0], range[1]);
}

// Symmetrizing divides by two, which converts integers to floats.
Array symmetrizable(const Arguments& a) {
  const Array x = a.array("x");
  return a.flag("symmetrize_input") ? promote_inexact("symmetrize", x) : x;
}

template <class Tuple>
Value as_list(const Tuple& results) {
  return std::apply([](const auto&... result) { return Value::list_of(Arrays{result...}); }, results);
}

const Function lax_linalg_functions[] = {
    {"cholesky", "x, *, symmetrize_input=True",
     [](const Arguments& a) -> Value { return linalg::cholesky(symmetrizable(a), a.flag("symmetrize_input")); },
     "The lower Cholesky factor of positive definite matrices; NaN where a matrix is not."},
    {"cholesky_update", "r_matrix, w_vector",
     [](const Arguments& a) -> Value { return linalg::cholesky_update(a.array("r_matrix"), a.array("w_vector")); },
     "The upper Cholesky factor after a rank-one update."},
    {"eig",
     "x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True, enable_eigvec_derivs=False, "
     "implementation: EigImplementation = None, use_magma=None -> list[Array]",
     [](const Arguments& a) -> Value {
       std::optional<linalg::EigImplementation> implementation =
           member<linalg::EigImplementation>(a, "implementation", eig_names);
       if (a.given("use_magma")) {
         implementation = a.flag("use_magma") ? linalg::EigImplementation::magma : linalg::EigImplementation::lapack;
       }
       return Value::list_of(
           linalg::eig(a.array("x"), {.compute_left_eigenvectors = a.flag("compute_left_eigenvectors"),
                                      .compute_right_eigenvectors = a.flag("compute_right_eigenvectors"),
                                      .enable_eigvec_derivs = a.flag("enable_eigvec_derivs"),
                                      .implementation = implementation}));
     },
     "Eigenvalues of general matrices, and their left and right eigenvectors as requested."},
    {"eigh",
     "x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, subset_by_index=None, implementation: "
     "EighImplementation = None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return linalg::eigh(symmetrizable(a),
                           {.lower = a.flag("lower"),
                            .symmetrize_input = a.flag("symmetrize_input"),
                            .sort_eigenvalues = a.flag("sort_eigenvalues"),
                            .subset_by_index = subset(a),
                            .implementation = member<linalg::EighImplementation>(a, "implementation", eigh_names)});
     },
     "Eigenvectors and ascending eigenvalues of symmetric or Hermitian matrices."},
    {"hessenberg", "a -> list[Array]",
     [](const Arguments& a) -> Value { return as_list(linalg::hessenberg(a.array("a"))); },
     "The Hessenberg form with Householder reflectors below it, and their factors."},
    {"householder_product", "a, taus",
     [](const Arguments& a) -> Value { return linalg::householder_product(a.array("a"), a.array("taus")); },
     "The product of elementary Householder reflectors."},
    {"lu", "x -> list[Array]", [](const Arguments& a) -> Value { return as_list(linalg::lu(a.array("x"))); },
     "The LU factors in one matrix, the pivots, and the permutation of the rows."},
    {"lu_pivots_to_permutation", "pivots, permutation_size",
     [](const Arguments& a) -> Value {
       return linalg::lu_pivots_to_permutation(a.array("pivots"), a.integer("permutation_size"));
     },
     "The permutation that a sequence of row exchanges amounts to."},
    {"ormqr", "a, taus, c, *, left=True, transpose=False",
     [](const Arguments& a) -> Value {
       return linalg::ormqr(a.array("a"), a.array("taus"), a.array("c"),
                            {.left = a.flag("left"), .transpose = a.flag("transpose")});
     },
     "The product of the Q of a QR decomposition, given by reflectors, with a matrix."},
    {"qdwh",
     "x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None -> tuple[Array, Array, Array, Array]",
     [](const Arguments& a) -> Value {
       a.require_absent("dynamic_shape");
       return linalg::qdwh(a.array("x"), {.is_hermitian = a.flag("is_hermitian"),
                                          .max_iterations = a.optional_integer("max_iterations"),
                                          .eps = a.optional_real("eps")});
     },
     "The polar decomposition by Halley iterations, their number, and whether they converged."},
    {"qr",
     "x, *, pivoting=False, full_matrices=True, use_magma=None -> tuple[Array, Array, Array] if pivoting else "
     "tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const bool full = a.flag("full_matrices");
       if (a.flag("pivoting")) return linalg::qr_with_pivoting(a.array("x"), full);
       return linalg::qr(a.array("x"), full);
     },
     "The QR decomposition; with pivoting also the permutation of the columns."},
    {"schur", "x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None -> list[Array]",
     [](const Arguments& a) -> Value {
       a.require_absent("select_callable");
       return Value::list_of(linalg::schur(a.array("x"), {.compute_schur_vectors = a.flag("compute_schur_vectors"),
                                                          .sort_eig_vals = a.flag("sort_eig_vals")}));
     },
     "The Schur form, and the Schur vectors as requested."},
    {"svd",
     "x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm: SvdAlgorithm = None -> tuple[Array, "
     "Array, Array] "
     "if compute_uv else Array",
     [](const Arguments& a) -> Value {
       const linalg::SvdOptions options = {.full_matrices = a.flag("full_matrices"),
                                           .subset_by_index = subset(a),
                                           .algorithm = member<linalg::SvdAlgorithm>(a, "algorithm", svd_names)};
       if (a.flag("compute_uv")) return linalg::svd(a.array("x"), options);
       return linalg::singular_values(a.array("x"), options);
     },
     "The singular value decomposition u, s, vh."},
    {"symmetric_product", "a_matrix, c_matrix, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output=False",
     [](const Arguments& a) -> Value {
       return linalg::symmetric_product(
           a.array("a_matrix"), a.array("c_matrix"),
           {.alpha = a.real("alpha"), .beta = a.real("beta"), .symmetrize_output = a.flag("symmetrize_output")});
     },
     "alpha a transpose(a) + beta c."},
    {"triangular_solve",
     "a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False",
     [](const Arguments& a) -> Value {
       return linalg::triangular_solve(a.array("a"), a.array("b"),
                                       {.left_side = a.flag("left_side"),
                                        .lower = a.flag("lower"),
                                        .transpose_a = a.flag("transpose_a"),
                                        .conjugate_a = a.flag("conjugate_a"),
                                        .unit_diagonal = a.flag("unit_diagonal")});
     },
     "The solution x of op(a) x = b or x op(a) = b for triangular a."},
    {"tridiagonal", "a, *, lower=True -> list[Array]",
     [](const Arguments& a) -> Value { return as_list(linalg::tridiagonal(a.array("a"), a.flag("lower"))); },
     "A symmetric or Hermitian matrix reduced to tridiagonal form."},
    {"tridiagonal_solve", "dl, d, du, b, *, perturb_singular=False",
     [](const Arguments& a) -> Value {
       return linalg::tridiagonal_solve(a.array("dl"), a.array("d"), a.array("du"), a.array("b"),
                                        a.flag("perturb_singular"));
     },
     "The solution x of a x = b for a tridiagonal matrix a, given by its three diagonals."},
};

}  // namespace

Family lax_linalg() { return lax_linalg_functions; }

}  // namespace capibara::library
