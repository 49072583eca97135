// Table rows for jax.scipy.linalg.
#include <capibara/linalg.h>
#include <capibara/scipy/linalg.h>

#include "lax/operators/promote.h"
#include "library/table/families.h"

namespace capibara::library {

namespace linalg = jax::scipy::linalg;

namespace {

// The two entries of an argument that is a pair.
std::pair<Value, Value> both(const Arguments& a, std::string_view name) {
  const Sequence* sequence = a[name].sequence();
  if (!sequence || sequence->items.size() != 2) {
    throw ValueError(concat(a.function(), ": argument '", name, "' must be a pair, got ", a[name].type_name()));
  }
  return {sequence->items[0], sequence->items[1]};
}

std::pair<Array, bool> factor_and_lower(const Arguments& a) {
  const auto [factor, lower] = both(a, "c_and_lower");
  if (const bool* truth = lower.get_if<bool>()) return {array_of(factor, "cho_solve"), *truth};
  return {array_of(factor, "cho_solve"), static_cast<bool>(array_of(lower, "cho_solve"))};
}

int64_t transposition(const Arguments& a) {
  const std::string* text = a["trans"].get_if<std::string>();
  if (!text) return a.integer("trans");
  if (*text == "N") return 0;
  if (*text == "T") return 1;
  if (*text == "C") return 2;
  throw ValueError(concat(a.function(), ": invalid 'trans' value ", *text));
}

linalg::EighTridiagonalOptions tridiagonal(const Arguments& a) {
  linalg::EighTridiagonalOptions options = {
      .select = a.text("select"), .tol = a.optional_array("tol"), .key = a.optional_array("key")};
  if (a.given("select_range")) {
    const auto [first, last] = both(a, "select_range");
    const int64_t *from = first.get_if<int64_t>(), *to = last.get_if<int64_t>();
    if (options.select == "i" && (!from || !to)) throw TypeError("eigh_tridiagonal: select_range must hold integers");
    if (from && to) options.select_range = std::pair(*from, *to);
  }
  return options;
}

std::string kind_of(const Arguments& a) { return a.given("kind") ? a.text("kind") : "symmetric"; }

void require_supported(const Arguments& a) {
  if (a.given("b") || a.given("eigvals") || a.integer("type") != 1) {
    throw NotImplementedError("eigh: only b=None, eigvals=None and type=1 are implemented");
  }
}

const Function scipy_linalg_functions[] = {
    {"block_diag", "*arrs", [](const Arguments& a) -> Value { return linalg::block_diag(a.arrays("arrs")); },
     "A block diagonal matrix."},
    {"cho_factor", "a, lower=False, overwrite_a=False, check_finite=True -> tuple[Array, bool]",
     [](const Arguments& a) -> Value {
       const auto [factor, lower] = linalg::cho_factor(a.array_like("a"), a.flag("lower"));
       return Value::tuple_of({Value(factor), Value(lower)});
     },
     "A Cholesky factor and whether it is the lower one, for cho_solve."},
    {"cho_solve", "c_and_lower, b, overwrite_b=False, check_finite=True",
     [](const Arguments& a) -> Value {
       const auto factor = factor_and_lower(a);
       return linalg::cho_solve(factor, a.array_like("b"));
     },
     "The solution x of a x = b, from the Cholesky factor of a."},
    {"cholesky", "a, lower=False, overwrite_a=False, check_finite=True",
     [](const Arguments& a) -> Value { return linalg::cholesky(a.array_like("a"), a.flag("lower")); },
     "The Cholesky factor of positive definite matrices; only one triangle is read."},
    {"circulant", "c", [](const Arguments& a) -> Value { return linalg::circulant(a.array("c")); },
     "The matrix whose columns are the rotations of the first."},
    {"companion", "a", [](const Arguments& a) -> Value { return linalg::companion(a.array("a")); },
     "The companion matrix of a polynomial: its eigenvalues are the roots."},
    {"convolution_matrix", "a, n, mode='full'",
     [](const Arguments& a) -> Value {
       return linalg::convolution_matrix(a.array("a"), a.integer("n"), a.text("mode"));
     },
     "The matrix whose product with a vector of length n is the convolution with a."},
    {"det", "a, overwrite_a=False, check_finite=True",
     [](const Arguments& a) -> Value { return linalg::det(a.array("a")); }, "The determinant."},
    {"dft", "n, scale: str = None, *, dtype=None",
     [](const Arguments& a) -> Value {
       return linalg::dft(a.integer("n"), {.scale = a.text("scale"), .dtype = a.optional_dtype("dtype")});
     },
     "The matrix of the discrete Fourier transform."},
    {"eigh",
     "a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, eigvals=None, "
     "type=1, check_finite=True -> Array if eigvals_only else tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       require_supported(a);
       const auto [w, v] = linalg::eigh(a.array_like("a"), a.flag("lower"));
       if (a.flag("eigvals_only")) return w;
       return std::pair(w, v);
     },
     "Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."},
    {"eigh_tridiagonal",
     "d, e, *, eigvals_only=False, select='a', select_range=None, tol=None, key: ArrayLike = None -> Array if "
     "eigvals_only else tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Array d = a.array_like("d"), e = a.array_like("e");
       if (a.flag("eigvals_only")) return linalg::eigvalsh_tridiagonal(d, e, tridiagonal(a));
       return linalg::eigh_tridiagonal(d, e, tridiagonal(a));
     },
     "Eigenvalues and eigenvectors of a symmetric tridiagonal matrix."},
    {"expm", "A, *, upper_triangular=False, max_squarings=16",
     [](const Arguments& a) -> Value {
       return linalg::expm(
           a.array("A"), {.upper_triangular = a.flag("upper_triangular"), .max_squarings = a.integer("max_squarings")});
     },
     "The exponential of matrices."},
    {"expm_frechet", "A, E, *, method=None, compute_expm=True -> tuple[Array, Array] if compute_expm else Array",
     [](const Arguments& a) -> Value {
       const Array at = a.array_like("A"), direction = a.array_like("E");
       const auto [value, derivative] = linalg::expm_frechet(at, direction);
       if (!a.flag("compute_expm")) return derivative;
       return std::pair(value, derivative);
     },
     "The exponential of a matrix and its derivative in the direction E."},
    {"fiedler", "a", [](const Arguments& a) -> Value { return linalg::fiedler(a.array("a")); },
     "The absolute differences of all pairs of entries."},
    {"fiedler_companion", "a", [](const Arguments& a) -> Value { return linalg::fiedler_companion(a.array("a")); },
     "The pentadiagonal companion matrix of a polynomial."},
    {"funm", "A, func, disp=True -> Array if disp else tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Callable function = a.callable("func");
       const auto [value, error] =
           linalg::funm(a.array_like("A"), [&](const Array& x) { return array_of(function({x}), "funm"); });
       if (a.flag("disp")) return value;
       return std::pair(value, error);
     },
     "A function of a matrix, given as a function of its eigenvalues."},
    {"hadamard", "n, dtype='int'",
     [](const Arguments& a) -> Value { return linalg::hadamard(a.integer("n"), a.optional_dtype("dtype")); },
     "The Hadamard matrix of a power of two."},
    {"hankel", "c, r=None",
     [](const Arguments& a) -> Value { return linalg::hankel(a.array("c"), a.optional_array("r")); },
     "The matrix with constant antidiagonals, by its first column and last row."},
    {"helmert", "n, full=False",
     [](const Arguments& a) -> Value { return linalg::helmert(a.integer("n"), a.flag("full")); },
     "The Helmert matrix."},
    {"hessenberg",
     "a, *, calc_q=False, overwrite_a=False, check_finite=True -> tuple[Array, Array] if calc_q else Array",
     [](const Arguments& a) -> Value {
       if (a.flag("calc_q")) return linalg::hessenberg_with_q(a.array("a"));
       return linalg::hessenberg(a.array("a"));
     },
     "The Hessenberg form, and the unitary matrix that makes it."},
    {"hilbert", "n", [](const Arguments& a) -> Value { return linalg::hilbert(a.integer("n")); },
     "The Hilbert matrix."},
    {"inv", "a, overwrite_a=False, check_finite=True",
     [](const Arguments& a) -> Value { return linalg::inv(a.array("a")); }, "The inverse matrices."},
    {"invhilbert", "n", [](const Arguments& a) -> Value { return linalg::invhilbert(a.integer("n")); },
     "The inverse of the Hilbert matrix."},
    {"invpascal", "n, kind: str = None",
     [](const Arguments& a) -> Value { return linalg::invpascal(a.integer("n"), kind_of(a)); },
     "The inverse of the Pascal matrix."},
    {"leslie", "f, s: ArrayLike",
     [](const Arguments& a) -> Value { return linalg::leslie(a.array("f"), a.array("s")); },
     "The Leslie matrix of a population: fecundities in the first row, survival below the diagonal."},
    {"lu",
     "a, permute_l=False, overwrite_a=False, check_finite=True -> tuple[Array, Array] if permute_l else tuple[Array, "
     "Array, Array]",
     [](const Arguments& a) -> Value {
       if (a.flag("permute_l")) return linalg::lu_permuted(a.array_like("a"));
       return linalg::lu(a.array_like("a"));
     },
     "The factors p, l and u of a = p l u."},
    {"lu_factor", "a, overwrite_a=False, check_finite=True -> tuple[Array, Array]",
     [](const Arguments& a) -> Value { return linalg::lu_factor(a.array_like("a")); },
     "Both factors in one matrix and the pivots, for lu_solve."},
    {"lu_solve", "lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True",
     [](const Arguments& a) -> Value {
       const auto [lu, pivots] = both(a, "lu_and_piv");
       const Array factors = array_of(lu, "lu_solve"), order = array_of(pivots, "lu_solve");
       return linalg::lu_solve({factors, order}, a.array_like("b"), a.integer("trans"));
     },
     "The solution x of a x = b, from the LU factors of a."},
    {"pascal", "n, kind: str = None",
     [](const Arguments& a) -> Value { return linalg::pascal(a.integer("n"), kind_of(a)); },
     "The matrix of binomial coefficients."},
    {"polar", "a, side='right', *, method='qdwh', eps=None, max_iterations=None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return linalg::polar(a.array_like("a"), {.side = a.text("side"),
                                                .method = a.text("method"),
                                                .eps = a.optional_real("eps"),
                                                .max_iterations = a.optional_integer("max_iterations")});
     },
     "The polar decomposition: a unitary and a positive factor."},
    {"qr", "a, overwrite_a=False, lwork=None, mode='full', pivoting=False, check_finite=True -> tuple[Array, ...]",
     [](const Arguments& a) -> Value {
       return Value::tuple_of(linalg::qr(a.array_like("a"), {.mode = a.text("mode"), .pivoting = a.flag("pivoting")}));
     },
     "The QR decomposition: full, economic or r."},
    {"qr_multiply",
     "a, c, mode='right', pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False -> tuple[Array, ...]",
     [](const Arguments& a) -> Value {
       const Array matrix = a.array_like("a"), c = a.array_like("c");
       return Value::tuple_of(linalg::qr_multiply(
           matrix, c, {.mode = a.text("mode"), .pivoting = a.flag("pivoting"), .conjugate = a.flag("conjugate")}));
     },
     "The product of c with the Q of a QR decomposition, and R."},
    {"rsf2csf", "T, Z, check_finite=True -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Array t = a.array_like("T"), z = a.array_like("Z");
       return linalg::rsf2csf(t, z);
     },
     "The complex Schur form of a real one."},
    {"schur", "a, output='real' -> list[Array]",
     [](const Arguments& a) -> Value { return Value::list_of(linalg::schur(a.array("a"), a.text("output"))); },
     "The Schur form and its vectors."},
    {"solve", "a, b, lower=False, overwrite_a=False, overwrite_b=False, debug=False, check_finite=True, assume_a='gen'",
     [](const Arguments& a) -> Value {
       const Array matrix = a.array_like("a"), b = a.array_like("b");
       return linalg::solve(matrix, b, {.lower = a.flag("lower"), .assume_a = a.text("assume_a")});
     },
     "The solution x of a x = b, for general, symmetric, Hermitian or positive definite a."},
    {"solve_sylvester", "A, B, C, *, method='schur', tol=1e-08",
     [](const Arguments& a) -> Value {
       const Array left = a.array_like("A"), right = a.array_like("B"), c = a.array_like("C");
       return linalg::solve_sylvester(left, right, c, {.method = a.text("method"), .tol = a.real("tol")});
     },
     "The solution X of A X + X B = C."},
    {"solve_triangular",
     "a, b, trans: int | str = 0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True",
     [](const Arguments& a) -> Value {
       const Array matrix = a.array_like("a"), b = a.array_like("b");
       return linalg::solve_triangular(
           matrix, b, {.trans = transposition(a), .lower = a.flag("lower"), .unit_diagonal = a.flag("unit_diagonal")});
     },
     "The solution x of a x = b for triangular a."},
    {"sqrtm", "A, blocksize=1",
     [](const Arguments& a) -> Value {
       if (a.integer("blocksize") > 1) throw NotImplementedError("sqrtm: only blocksize=1 is implemented");
       return linalg::sqrtm(a.array_like("A"));
     },
     "The square root of a matrix."},
    {"svd",
     "a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver='gesdd' -> "
     "tuple[Array, Array, Array] if compute_uv else Array",
     [](const Arguments& a) -> Value {
       const Array matrices = promote_inexact("svd", a.array_like("a"));
       const jax::lax::linalg::SvdOptions options = {.full_matrices = a.flag("full_matrices")};
       if (!a.flag("compute_uv")) return jax::lax::linalg::singular_values(matrices, options);
       return jax::lax::linalg::svd(matrices, options);
     },
     "The singular value decomposition u, s, vh."},
    {"toeplitz", "c, r=None",
     [](const Arguments& a) -> Value { return linalg::toeplitz(a.array("c"), a.optional_array("r")); },
     "The matrix with constant diagonals, by its first column and first row."},
};

}  // namespace

Family scipy_linalg() { return scipy_linalg_functions; }

}  // namespace capibara::library
