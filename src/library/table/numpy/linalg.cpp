// Table rows for jax.numpy.linalg.
#include <capibara/numpy/linalg.h>

#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace linalg = jax::numpy::linalg;

namespace {

linalg::NormOrder order(const Arguments& a, std::string_view name) {
  const Value& value = a[name];
  if (value.is_none()) return {};
  if (const std::string* text = value.get_if<std::string>()) return *text;
  return a.real(name);
}

std::optional<std::pair<int64_t, int64_t>> subset(const Arguments& a) {
  if (!a.given("subset_by_index")) return std::nullopt;
  const Ints range = a.ints("subset_by_index");
  if (range.size() != 2)
    throw ValueError(concat(a.function(), ": subset_by_index must hold two numbers, got ", range.size()));
  return std::pair(range[0], range[1]);
}

// A tolerance under either of its names.
std::optional<Array> tolerance(const Arguments& a, std::string_view other) {
  if (a.given("rtol") && a.given(other)) {
    throw ValueError(concat(a.function(), ": only one of ", other, " or rtol may be specified."));
  }
  return a.given(other) ? a.optional_array(other) : a.optional_array("rtol");
}

Value eigen_tuple(const char* type, const Array& values, const Array& vectors) {
  return Value::named_tuple(type, {"eigenvalues", "eigenvectors"}, {values, vectors});
}

const Function numpy_linalg_functions[] = {
    {"cholesky", "a, *, upper=False, symmetrize_input=True",
     [](const Arguments& a) -> Value {
       return linalg::cholesky(a.array("a"),
                               {.upper = a.flag("upper"), .symmetrize_input = a.flag("symmetrize_input")});
     },
     "The Cholesky factor of positive definite matrices; NaN where a matrix is not."},
    {"cond", "x, p: float | str = None",
     [](const Arguments& a) -> Value { return linalg::cond(a.array("x"), order(a, "p")); },
     "The condition number in one of the norms."},
    {"cross", "x1, x2, /, *, axis=-1",
     [](const Arguments& a) -> Value { return linalg::cross(a.array("x1"), a.array("x2"), a.integer("axis")); },
     "The cross product of vectors with three components."},
    {"det", "a", [](const Arguments& a) -> Value { return linalg::det(a.array("a")); }, "The determinant."},
    {"diagonal", "x, /, *, offset=0",
     [](const Arguments& a) -> Value { return linalg::diagonal(a.array("x"), a.integer("offset")); },
     "A diagonal of the matrices in the last two dimensions."},
    {"eig", "a -> EigResult(eigenvalues, eigenvectors)",
     [](const Arguments& a) -> Value {
       const linalg::EigResult result = linalg::eig(a.array("a"));
       return eigen_tuple("EigResult", result.eigenvalues, result.eigenvectors);
     },
     "Eigenvalues and right eigenvectors of general matrices."},
    {"eigh", "a, UPLO=None, symmetrize_input=True -> EighResult(eigenvalues, eigenvectors)",
     [](const Arguments& a) -> Value {
       const linalg::EighResult result = linalg::eigh(a.array("a"), {.UPLO = a.given("UPLO") ? a.text("UPLO") : "L",
                                                                     .symmetrize_input = a.flag("symmetrize_input")});
       return eigen_tuple("EighResult", result.eigenvalues, result.eigenvectors);
     },
     "Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."},
    {"eigvals", "a", [](const Arguments& a) -> Value { return linalg::eigvals(a.array("a")); },
     "Eigenvalues of general matrices."},
    {"eigvalsh", "a, UPLO: str | None = 'L', *, symmetrize_input=True",
     [](const Arguments& a) -> Value {
       return linalg::eigvalsh(a.array("a"), {.UPLO = a.given("UPLO") ? a.text("UPLO") : "L",
                                              .symmetrize_input = a.flag("symmetrize_input")});
     },
     "Ascending eigenvalues of symmetric or Hermitian matrices."},
    {"inv", "a", [](const Arguments& a) -> Value { return linalg::inv(a.array("a")); }, "The inverse matrices."},
    {"lstsq", "a, b, rcond=None, *, numpy_resid=False -> tuple[Array, Array, Array, Array]",
     [](const Arguments& a) -> Value {
       const linalg::LstsqResult result = linalg::lstsq(
           a.array("a"), a.array("b"), {.rcond = a.optional_array("rcond"), .numpy_resid = a.flag("numpy_resid")});
       return Value::tuple_of(Arrays{result.x, result.residuals, result.rank, result.s});
     },
     "The least squares solution of a x = b, residuals, rank and singular values."},
    {"matmul", "x1, x2, /, *, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value {
       return linalg::matmul(a.array("x1"), a.array("x2"),
                             {.precision = precision_text(a, "precision"),
                              .preferred_element_type = a.optional_dtype("preferred_element_type")});
     },
     "The matrix product."},
    {"matrix_norm", "x, /, *, keepdims=False, ord='fro'",
     [](const Arguments& a) -> Value {
       return linalg::matrix_norm(a.array("x"), {.keepdims = a.flag("keepdims"), .ord = order(a, "ord")});
     },
     "The norm of the matrices in the last two dimensions."},
    {"matrix_power", "a, n",
     [](const Arguments& a) -> Value { return linalg::matrix_power(a.array("a"), a.integer("n")); },
     "The nth power of a square matrix, of its inverse for negative n."},
    {"matrix_rank", "M: ArrayLike, rtol=None, *, hermitian=False, tol: ArrayLike = None",
     [](const Arguments& a) -> Value {
       return linalg::matrix_rank(a.array("M"), {.rtol = tolerance(a, "tol"), .hermitian = a.flag("hermitian")});
     },
     "The number of singular values above a tolerance."},
    {"matrix_transpose", "x, /", [](const Arguments& a) -> Value { return linalg::matrix_transpose(a.array("x")); },
     "The array with its last two dimensions exchanged."},
    {"multi_dot", "arrays, *, precision=None",
     [](const Arguments& a) -> Value {
       Arrays arrays = a.arrays("arrays");
       if (arrays.size() == 1 && arrays[0].ndim() > 0) arrays = jax::lax::unstack(arrays[0]);  // as jax unpacks it
       return linalg::multi_dot(arrays, precision_text(a, "precision"));
     },
     "The product of several matrices in the cheapest order."},
    {"norm", "x, ord=None, axis=None, keepdims=False",
     [](const Arguments& a) -> Value {
       if (const Sequence* axes = a["axis"].sequence(); axes && axes->is_list) {
         throw ValueError("norm: axis must be an integer or a tuple of them, got a list, which cannot be hashed");
       }
       return linalg::norm(a.array("x"),
                           {.ord = order(a, "ord"), .axis = a.axis("axis"), .keepdims = a.flag("keepdims")});
     },
     "The norm of vectors along one axis, or of matrices along two."},
    {"outer", "x1, x2, /", [](const Arguments& a) -> Value { return linalg::outer(a.array("x1"), a.array("x2")); },
     "The outer product of two vectors."},
    {"pinv", "a, rtol=None, hermitian=False, *, rcond: ArrayLike = None",
     [](const Arguments& a) -> Value {
       return linalg::pinv(a.array("a"), {.rtol = tolerance(a, "rcond"), .hermitian = a.flag("hermitian")});
     },
     "The Moore-Penrose pseudo-inverse."},
    {"qr",
     "a, mode: Literal['reduced', 'complete', 'full', 'raw', 'r'] = 'reduced' -> Array if mode == 'r' else QRResult(Q, "
     "R)",
     [](const Arguments& a) -> Value {
       if (a.text("mode") == "r") return linalg::qr_r(a.array("a"));
       const linalg::QrResult result = linalg::qr(a.array("a"), a.text("mode"));
       return Value::named_tuple("QRResult", {"Q", "R"}, {result.Q, result.R});
     },
     "The QR decomposition: reduced, complete, r or raw."},
    {"slogdet", "a, *, method=None -> SlogdetResult(sign, logabsdet)",
     [](const Arguments& a) -> Value {
       const linalg::SlogdetResult result = linalg::slogdet(a.array("a"), a.given("method") ? a.text("method") : "lu");
       return Value::named_tuple("SlogdetResult", {"sign", "logabsdet"}, {result.sign, result.logabsdet});
     },
     "The sign of the determinant and the logarithm of its absolute value."},
    {"solve", "a, b", [](const Arguments& a) -> Value { return linalg::solve(a.array("a"), a.array("b")); },
     "The solution x of a x = b."},
    {"svd",
     "a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None -> SVDResult(U, S, Vh) if "
     "compute_uv else Array",
     [](const Arguments& a) -> Value {
       const linalg::SvdOptions options = {
           .full_matrices = a.flag("full_matrices"), .hermitian = a.flag("hermitian"), .subset_by_index = subset(a)};
       if (!a.flag("compute_uv")) return linalg::singular_values(a.array("a"), options);
       const linalg::SvdResult result = linalg::svd(a.array("a"), options);
       return Value::named_tuple("SVDResult", {"U", "S", "Vh"}, {result.U, result.S, result.Vh});
     },
     "The singular value decomposition."},
    {"svdvals", "x, /", [](const Arguments& a) -> Value { return linalg::svdvals(a.array("x")); },
     "The singular values, largest first."},
    {"tensordot",
     "x1, x2, /, *, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, precision=None, "
     "preferred_element_type=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       jax::numpy::TensordotOptions options = {.precision = precision_text(a, "precision"),
                                               .preferred_element_type = a.optional_dtype("preferred_element_type")};
       if (a["axes"].sequence()) {
         const std::vector<Ints> axes = integer_tuples(a, "axes", 2, 2);
         options.axes = std::pair(axes[0], axes[1]);
       } else {
         options.count = a.integer("axes");
       }
       return linalg::tensordot(a.array("x1"), a.array("x2"), options);
     },
     "The sum of products over the given axes."},
    {"tensorinv", "a, ind: int = 2",
     [](const Arguments& a) -> Value { return linalg::tensorinv(a.array("a"), a.integer("ind")); },
     "The inverse of a tensor as a map between its last and its first dimensions."},
    {"tensorsolve", "a, b, axes=None",
     [](const Arguments& a) -> Value {
       return linalg::tensorsolve(a.array("a"), a.array("b"), a.optional_ints("axes"));
     },
     "The solution x of tensordot(a, x) = b."},
    {"trace", "x, /, *, offset: ArrayLike = 0, dtype=None",
     [](const Arguments& a) -> Value {
       return linalg::trace(a.array("x"), {.offset = a.integer("offset"), .dtype = a.optional_dtype("dtype")});
     },
     "The sum of a diagonal of the matrices in the last two dimensions."},
    {"vecdot", "x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value {
       return linalg::vecdot(a.array("x1"), a.array("x2"),
                             {.axis = a.integer("axis"),
                              .precision = precision_text(a, "precision"),
                              .preferred_element_type = a.optional_dtype("preferred_element_type")});
     },
     "The dot product of vectors along one axis, x1 conjugated."},
    {"vector_norm", "x, /, *, axis=None, keepdims=False, ord=2",
     [](const Arguments& a) -> Value {
       return linalg::vector_norm(a.array("x"),
                                  {.axis = a.axis("axis"), .keepdims = a.flag("keepdims"), .ord = order(a, "ord")});
     },
     "The norm of vectors along some axes, by default of all elements."},
};

}  // namespace

Family numpy_linalg() { return numpy_linalg_functions; }

}  // namespace capibara::library
