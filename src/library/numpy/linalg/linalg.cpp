// jax.numpy.linalg: decompositions, solvers and products of matrices.
#include <capibara/custom_derivatives.h>
#include <capibara/linalg.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include <algorithm>
#include <limits>

#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"
#include "library/numpy/linalg/linalg_vectorize.h"

namespace capibara::jax::numpy::linalg {

namespace matrix = capibara::linalg;
using capibara::Arrays;

// ---- decompositions ----------------------------------------------------------------------------------------------

Array cholesky(const Array& a, const CholeskyOptions& options) {
  const Array lower = lax::linalg::cholesky(promote_inexact("cholesky", a), options.symmetrize_input);
  return options.upper ? matrix::adjoint(lower) : lower;
}

EigResult eig(const Array& a) {
  const Arrays parts = lax::linalg::eig(promote_inexact("eig", a), {.compute_left_eigenvectors = false});
  return {parts[0], parts[1]};
}

Array eigvals(const Array& a) {
  return lax::linalg::eig(promote_inexact("eigvals", a),
                          {.compute_left_eigenvectors = false, .compute_right_eigenvectors = false})[0];
}

EighResult eigh(const Array& a, const EighOptions& options) {
  if (options.UPLO != "L" && options.UPLO != "U") {
    throw ValueError(concat("eigh: UPLO must be one of None, 'L', or 'U', got ", options.UPLO));
  }
  const auto [v, w] = lax::linalg::eigh(promote_inexact("eigh", a),
                                        {.lower = options.UPLO == "L", .symmetrize_input = options.symmetrize_input});
  return {w, v};
}

Array eigvalsh(const Array& a, const EighOptions& options) { return eigh(a, options).eigenvalues; }

QrResult qr(const Array& matrices, const std::string& mode) {
  const Array a = promote_inexact("qr", matrices);
  if (mode == "raw") {
    static const Primitive geqrf = primitive("geqrf");
    const Arrays parts = capibara::bind(geqrf, Arrays{a});
    return {matrix::transposed(parts[0]), parts[1]};
  }
  if (mode != "reduced" && mode != "full" && mode != "complete") {
    throw ValueError(concat("Unsupported QR decomposition mode '", mode, "'"));
  }
  const auto [q, r] = lax::linalg::qr(a, mode == "complete");
  return {q, r};
}

Array qr_r(const Array& a) { return lax::linalg::qr(promote_inexact("qr", a), false).second; }

namespace {

// For a Hermitian matrix: the absolute eigenvalues, largest first; U are its eigenvectors, V the same with their signs.
SvdResult hermitian_svd(const Array& a, const SvdOptions& options) {
  const auto [vectors, values] = lax::linalg::eigh(a, {.subset_by_index = options.subset_by_index});
  const int64_t last = values.ndim() - 1;
  const Array place = lax::broadcasted_iota(DType::int32, values.shape(), last);
  const Arrays sorted =
      lax::sort(Arrays{lax::abs(values), place, lax::sign(values)}, {.dimension = last, .num_keys = 1});
  const auto descending = [&](const Array& x) { return lax::rev(x, {last}); };
  const Array order = lax::expand_dims(descending(sorted[1]), {last});
  const Array sign = lax::expand_dims(descending(sorted[2]), {last});
  const Array u = numpy::take_along_axis(vectors, order, {.axis = -1});
  return {u, descending(sorted[0]), matrix::adjoint(u * lax::convert_element_type(sign, u.dtype()))};
}

lax::linalg::SvdOptions general(const SvdOptions& options) {
  return {.full_matrices = options.full_matrices, .subset_by_index = options.subset_by_index};
}

}  // namespace

SvdResult svd(const Array& matrices, const SvdOptions& options) {
  const Array a = promote_inexact("svd", matrices);
  if (options.hermitian) return hermitian_svd(a, options);
  const auto [u, s, vh] = lax::linalg::svd(a, general(options));
  return {u, s, vh};
}

Array singular_values(const Array& matrices, const SvdOptions& options) {
  const Array a = promote_inexact("svd", matrices);
  if (!options.hermitian) return lax::linalg::singular_values(a, general(options));
  const Array values = lax::linalg::eigh(a, {.subset_by_index = options.subset_by_index}).second;
  return lax::rev(lax::sort(lax::abs(values), {.dimension = -1}), {values.ndim() - 1});
}

Array svdvals(const Array& x) { return singular_values(x); }

// ---- solutions ---------------------------------------------------------------------------------------------------

Array solve(const Array& left, const Array& right) {
  const Arrays both = promote_dtypes_inexact({left, right});
  const Array &a = both[0], &b = both[1];
  if (a.ndim() < 2)
    throw ValueError(concat("solve: the left hand array must be at least two dimensional, got ", to_string(a.type())));
  const int64_t core = b.ndim() <= 1 ? 1 : 2;
  if (b.ndim() > 1 && a.ndim() == b.ndim() + 1 && a.shape(-1) == b.shape(-1) && a.shape(-1) != b.shape(-2)) {
    throw ValueError(concat("solve: invalid shapes ", to_string(a.type()), " and ", to_string(b.type()),
                            "; for a batch of vectors use solve(a, b[..., None]).squeeze(-1)"));
  }
  if (b.ndim() == 0 || a.shape(-1) != a.shape(-2) || b.shape(-core) != a.shape(-1)) {
    throw ValueError(concat("solve: the shapes must be [..., m, m] and [m] or [..., m, k], got ", to_string(a.type()),
                            " and ", to_string(b.type())));
  }
  return vectorize("solve", [](std::span<const Array> in) { return Arrays{matrix::solve(in[0], in[1])}; }, {a, b},
                   {2, core})[0];
}

Array inv(const Array& a) {
  if (a.ndim() < 2 || a.shape(-1) != a.shape(-2)) {
    throw ValueError(concat("Argument to inv must have shape [..., n, n], got ", to_string(a.type())));
  }
  const Array identity = matrix::eye(a.dtype(), a.shape(-1), a.shape(-1));
  return solve(a, lax::broadcast(identity, Shape(a.shape().begin(), a.shape().end() - 2)));
}

namespace {

Array pinv_value(const Array& matrices, const PinvOptions& options) {
  Array a = promote_inexact("pinv", matrices);
  if (a.ndim() < 2)
    throw ValueError(concat("pinv: the input must be at least two dimensional, got ", to_string(a.type())));
  const int64_t m = a.shape(-2), n = a.shape(-1);
  if (m == 0 || n == 0) {
    Shape shape = a.shape();
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return lax::empty(shape, a.dtype());
  }
  a = numpy::conj(a);
  const Array rtol = options.rtol
                         ? *options.rtol
                         : lax::full({}, Array(10.0 * static_cast<double>(std::max(m, n)) * finfo(a.dtype()).eps),
                                     real_dtype(a.dtype()));
  const auto [u, s, vh] = svd(a, {.full_matrices = false, .hermitian = options.hermitian});
  Array limit = lax::expand_dims(rtol, {rtol.ndim()});
  Array broadcast_to_rank_limit = lax::broadcast_to_rank(limit, s.ndim());
  limit = broadcast_to_rank_limit * s(ellipsis, slice(0, 1));
  const Array kept =
      lax::convert_element_type(numpy::where(s > limit, s, std::numeric_limits<double>::infinity()), u.dtype());
  const Array transposed = matrix::transposed(u);
  const Array scaled = transposed / lax::expand_dims(kept, {kept.ndim()});
  return lax::convert_element_type(numpy::matmul(matrix::transposed(vh), scaled, {.precision = "highest"}), a.dtype());
}

// The tangent of the pseudo-inverse p of a, after Golub and Pereyra (1973).
Array pinv_tangent(const Array& a, const Array& t, const Array& p) {
  const auto mul = [](const Array& x, const Array& y) { return numpy::matmul(x, y, {.precision = "highest"}); };
  const auto adjoint = [](const Array& x) { return matrix::adjoint(x); };
  if (a.shape(-2) >= a.shape(-1)) {
    const Array square = mul(p, adjoint(p)), s = mul(square, adjoint(t));
    const Array adjoint_t = adjoint(t), r = mul(mul(adjoint_t, adjoint(p)), p);
    Array sum = -mul(mul(p, t), p) + s, sum_p = sum - mul(mul(s, a), p) + r;
    return sum_p - mul(mul(p, a), r);
  }
  const Array adjoint_p = adjoint(p), s = mul(p, mul(adjoint_p, adjoint(t)));
  const Array adjoint_t = adjoint(t), r = mul(adjoint_t, mul(adjoint(p), p));
  Array first_sum = -mul(p, mul(t, p)) + s, second_sum = first_sum - mul(s, mul(a, p)) + r;
  return second_sum - mul(p, mul(a, r));
}

}  // namespace

Array pinv(const Array& a, const PinvOptions& options) {
  auto function = custom_jvp([options](Array x) -> Array { return pinv_value(x, options); }, "_pinv");
  function.defjvp(
      [options](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
        const Array &x = std::get<0>(primals), &t = std::get<0>(tangents);
        const Array p = pinv(x, options);
        if (!options.hermitian) return std::tuple(p, pinv_tangent(x, t, p));
        const Array symmetric = matrix::symmetrized(x);
        return std::tuple(p, pinv_tangent(symmetric, matrix::symmetrized(t), p));
      },
      "_pinv_jvp");
  return function(a);
}

LstsqResult lstsq(const Array& left, const Array& right, const LstsqOptions& options) {
  const Arrays both = promote_dtypes_inexact({left, right});
  const Array& a = both[0];
  Array b = both[1];
  if (a.ndim() == 0 || b.ndim() == 0 || a.shape(0) != b.shape(0)) {
    throw ValueError(concat("lstsq: leading dimensions of input arrays must match, got ", to_string(a.type()), " and ",
                            to_string(b.type())));
  }
  const bool vector = b.ndim() == 1;
  if (vector) b = lax::expand_dims(b, {1});
  if (a.ndim() != 2 || b.ndim() != 2) {
    throw TypeError(concat("lstsq: a must have two dimensions and b one or two, got ", to_string(a.type()), " and ",
                           to_string(both[1].type())));
  }
  const int64_t m = a.shape(0), n = a.shape(1);
  Array s = lax::empty({0}, a.dtype()), rank = lax::full({}, Array(0), default_int());
  Array x = lax::full({n, b.shape(1)}, Array(0), a.dtype());
  if (a.size() > 0) {
    const double eps = finfo(a.dtype()).eps;
    const Array rcond = options.rcond ? numpy::where(*options.rcond < 0, eps, *options.rcond)
                                      : Array(eps * static_cast<double>(std::max(m, n)));
    const auto [u, values, vh] = svd(a, {.full_matrices = false});
    s = values;
    const Array is_greater = s > 0, converted = lax::convert_element_type(rcond, s.dtype(), false);
    const Array mask = is_greater & (s >= converted * s(0));
    rank = numpy::sum(mask);
    const Array safe = lax::convert_element_type(numpy::where(mask, s, 1), a.dtype());
    const Array inverse = lax::expand_dims(numpy::where(mask, 1 / safe, 0), {1});
    const Array projected = numpy::matmul(matrix::adjoint(u), b, {.precision = "highest"});
    const Array v = matrix::adjoint(vh);
    x = numpy::matmul(v, inverse * projected, {.precision = "highest"});
  }
  Array residuals;
  if (options.numpy_resid && (static_cast<bool>(rank < n) || m <= n)) {
    residuals = lax::empty({0}, default_float());
  } else {
    const Array estimate = numpy::matmul(a, x, {.precision = "highest"});
    residuals = lax::square(norm(b - estimate, {.axis = 0}));
  }
  return {vector ? x.flatten() : x, residuals, rank, s};
}

Array tensorinv(const Array& a, int64_t ind) {
  if (ind <= 0) throw ValueError(concat("tensorinv: ind must be a positive integer; got ", ind));
  const auto split = a.shape().begin() + std::min(ind, a.ndim());
  const Shape contracted(a.shape().begin(), split), batch(split, a.shape().end());
  const int64_t rows = element_count(contracted), columns = element_count(batch);
  if (rows != columns) {
    throw ValueError(concat("tensorinv: the product of the first ", ind,
                            " dimensions must equal that of the others, got ", to_string(a.type())));
  }
  Shape shape = batch;
  shape.insert(shape.end(), contracted.begin(), contracted.end());
  return inv(a.reshape({rows, columns})).reshape(shape);
}

Array tensorsolve(const Array& left, const Array& b, const std::optional<Ints>& axes) {
  Array a = left;
  if (axes) {
    Ints order, moved = Axis(*axes).resolve("tensorsolve", a.ndim());
    std::sort(moved.begin(), moved.end());
    for (int64_t i = 0; i < a.ndim(); ++i) {
      if (std::find(moved.begin(), moved.end(), i) == moved.end()) order.push_back(i);
    }
    order.insert(order.end(), moved.begin(), moved.end());
    a = lax::transpose(a, order);
  }
  const auto split = a.shape().begin() + std::min(b.ndim(), a.ndim());
  const Shape front(a.shape().begin(), split), out(split, a.shape().end());
  if (front != b.shape()) {
    throw ValueError(concat("tensorsolve: after moving axes to the end, the leading shape of a must be that of b, got ",
                            to_string(a.type()), " and ", to_string(b.type())));
  }
  if (b.size() != element_count(out)) {
    throw ValueError(concat("tensorsolve: prod(a.shape[:b.ndim]) must equal prod(a.shape[b.ndim:]), got ",
                            to_string(a.type()), " and ", to_string(b.type())));
  }
  Array reshaped = a.reshape({b.size(), element_count(out)});
  return solve(reshaped, b.flatten()).reshape(out);
}

// ---- products ----------------------------------------------------------------------------------------------------

Array matrix_power(const Array& matrices, int64_t n) {
  Array a = matrices;
  if (a.ndim() < 2 || a.shape(-1) != a.shape(-2)) {
    throw TypeError(concat("matrix_power: the last two dimensions must be square, got ", to_string(a.type())));
  }
  if (n == 0) {
    return broadcast_to("matrix_power", matrix::eye(a.dtype(), a.shape(-1), a.shape(-1)), a.shape());
  }
  if (n < 0) {
    a = inv(a);
    n = -n;
  }
  if (n == 3) return numpy::matmul(numpy::matmul(a, a), a);
  Array power = a, result;
  for (;; power = numpy::matmul(power, power)) {
    if (n % 2 == 1) result = result.defined() ? numpy::matmul(result, power) : power;
    n /= 2;
    if (n == 0) return result;
  }
}

Array multi_dot(const std::vector<Array>& arrays, const std::string& precision) {
  if (arrays.size() < 2) throw ValueError(concat("multi_dot requires at least two arrays; got ", arrays.size()));
  std::string subscripts;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    const bool end = i == 0 || i + 1 == arrays.size();
    if (a.ndim() != 2 && !(end && a.ndim() == 1)) {
      throw ValueError(
          concat("multi_dot: all arrays must have two dimensions, the first and the last may have one; got ",
                 to_string(a.type()), " at position ", i));
    }
    if (i > 0 && arrays[i - 1].shape(-1) != a.shape(0)) {
      throw ValueError(concat("multi_dot: the last dimension of each array must match the first of the next, got ",
                              to_string(arrays[i - 1].type()), " and ", to_string(a.type())));
    }
    const auto letter = [](std::size_t k) { return static_cast<char>(k < 26 ? 'a' + k : 'A' + (k - 26)); };
    if (i > 0) subscripts += ',';
    if (!(i == 0 && a.ndim() == 1)) subscripts += letter(i);
    if (!(i + 1 == arrays.size() && i > 0 && a.ndim() == 1)) subscripts += letter(i + 1);
  }
  const char first = arrays.front().ndim() == 2 ? 'a' : 0;
  subscripts += "->";
  if (first) subscripts += first;
  if (arrays.back().ndim() == 2) {
    const std::size_t k = arrays.size();
    subscripts += static_cast<char>(k < 26 ? 'a' + k : 'A' + (k - 26));
  }
  return numpy::einsum(subscripts, arrays, {.precision = precision});
}

Array cross(const Array& x1, const Array& x2, int64_t axis) {
  for (const Array& x : {x1, x2}) {
    if (axis < -x.ndim() || axis >= x.ndim())
      throw IndexError(concat("cross: axis ", axis, " is out of range for ", to_string(x.type())));
    if (x.shape(axis) != 3) {
      throw ValueError(concat("cross: both inputs must be arrays of vectors with 3 components, got ",
                              to_string(x1.type()), " and ", to_string(x2.type())));
    }
  }
  return numpy::cross(x1, x2, {.axis = axis});
}

Array outer(const Array& x1, const Array& x2) {
  if (x1.ndim() != 1 || x2.ndim() != 1) {
    throw ValueError(
        concat("outer: the inputs must be one-dimensional, got ", to_string(x1.type()), " and ", to_string(x2.type())));
  }
  Array expanded = lax::expand_dims(x1, {1});
  return expanded * lax::expand_dims(x2, {0});
}

Array matrix_transpose(const Array& x) {
  if (x.ndim() < 2)
    throw ValueError(concat("matrix_transpose requires at least 2 dimensions, got ", to_string(x.type())));
  return matrix::transposed(x);
}

Array diagonal(const Array& x, int64_t offset) {
  return numpy::diagonal(x, {.offset = offset, .axis1 = -2, .axis2 = -1});
}

}  // namespace capibara::jax::numpy::linalg
