// Eigenvalues and singular values: eig, eigh, svd, and the reductions to Schur, Hessenberg and tridiagonal form.
#include <capibara/linalg.h>

#include "lax/linalg/linalg.h"

#include <algorithm>

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

const std::vector<Shape> square_shapes = {{3, 3}, {2, 2, 2}, {1, 1}};

void add_samples(std::vector<Sample>& samples, DType dtype, const std::vector<Shape>& shapes, const Attrs& attrs) {
  for (const Shape& shape : shapes) samples.push_back(sample(dtype, {shape}, attrs));
}

Array row_vectors(const Array& x) { return lax::expand_dims(x, {x.ndim() - 1}); }  // [..., 1, n]
Array column_vectors(const Array& x) { return lax::expand_dims(x, {x.ndim()}); }   // [..., n, 1]

// 1 / (w_j - w_i) off the diagonal, 0 on it.
Array inverse_differences(const Array& values, DType dtype) {
  int64_t n = values.shape(-1), rank = values.ndim() + 1;
  Array identity = eye(dtype, n, n), row = row_vectors(values);
  Array sum = lax::add(with_rank(identity, rank), row);
  Array inverse = lax::integer_pow(lax::sub(sum, column_vectors(values)), -1);
  return lax::sub(inverse, with_rank(identity, rank));
}

// ---- eig --------------------------------------------------------------------------------------------------------

// The tangents of eigenvalues and of eigenvectors of unit length whose largest component is real.
std::pair<Array, Array> eigenvector_tangents(const Array& values, const Array& vectors, const Array& tangent) {
  Array weights = inverse_differences(values, values.dtype());
  Array p = product(solve(vectors, tangent), vectors);
  Array value_tangents = diagonal(p);
  Array u = product(vectors, lax::mul(weights, p));
  int64_t axis = vectors.ndim() - 2;
  Array largest = lax::argmax(lax::abs(vectors), axis, DType::int32);
  Array index = lax::broadcasted_iota(DType::int32, vectors.shape(), axis);
  Array mask = lax::convert_element_type(lax::eq(index, lax::expand_dims(largest, {axis})), vectors.dtype(), false);
  auto sum = [axis](const Array& x) { return lax::reduce_sum(x, {.axes = {axis}}); };
  Array re = lax::neg(lax::real(sum(lax::mul(lax::conj(vectors), u))));
  Array im = lax::neg(lax::imag(sum(lax::mul(mask, u))));
  Array scale = lax::complex(re, lax::div(im, lax::real(sum(lax::mul(mask, vectors)))));
  return {value_tangents, lax::add(u, lax::mul(vectors, lax::expand_dims(scale, {axis})))};
}

JvpResult eig_jvp(const JvpArgs& args) {
  bool left = args.attrs.boolean("compute_left_eigenvectors"), right = args.attrs.boolean("compute_right_eigenvectors");
  if ((left || right) && !args.attrs.boolean("enable_eigvec_derivs")) {
    throw NotImplementedError(
        "eig: derivatives of non-symmetric eigenvectors hold only for distinct eigenvalues and a single largest "
        "component in "
        "each eigenvector, which cannot be checked here; pass enable_eigvec_derivs=True to accept this");
  }
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs.with("compute_right_eigenvectors", true));
  const Array &values = out.front(), &vectors = out.back();
  Array tangent = as_dtype(args.tangents[0], vectors.dtype());
  if (!left && !right) {
    Array solve_vectors = solve(vectors, tangent), terms = lax::mul(solve_vectors, transposed(vectors));
    return {{values}, {lax::reduce_sum(terms, {.axes = {terms.ndim() - 1}})}};
  }
  auto [value_tangents, vector_tangents] = eigenvector_tangents(values, vectors, tangent);
  JvpResult result{{values}, {value_tangents}};
  if (left) {
    result.primals.push_back(out[1]);
    Array conjugated = lax::conj(values);
    result.tangents.push_back(eigenvector_tangents(conjugated, out[1], adjoint(tangent)).second);
  }
  if (right) {
    result.primals.push_back(vectors);
    result.tangents.push_back(vector_tangents);
  }
  return result;
}

PrimitiveRecord eig_record() {
  PrimitiveRecord record =
      decomposition("eig", "Eigenvalues of a general matrix, and its left and right eigenvectors on demand.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 10;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("eig", types, {.ranks = {2}});
    require_square("eig", operands.core[0]);
    int64_t n = operands.core[0][0];
    DType dtype = complex_dtype(types[0].dtype);
    Types out = {operands.type(dtype, {n})};
    for (const char* side : {"compute_left_eigenvectors", "compute_right_eigenvectors"}) {
      if (attrs.boolean(side)) out.push_back(operands.type(dtype, {n, n}));
    }
    return TypeResult(std::move(out));
  };
  record.jvp = eig_jvp;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool left : {false, true}) {
      for (bool right : {false, true}) {
        add_samples(samples, dtype, square_shapes,
                    {{"compute_left_eigenvectors", left},
                     {"compute_right_eigenvectors", right},
                     {"enable_eigvec_derivs", true},
                     {"implementation", Attr()}});
      }
    }
    return samples;
  };
  return record;
}

// ---- eigh -------------------------------------------------------------------------------------------------------

bool is_whole(const Attr& subset, int64_t count) {
  const Ints* range = subset.get_if<Ints>();
  return !range || *range == Ints{0, count};
}

// The number of indices in a subset, checked; `count` without a subset.
int64_t subset_size(const char* op, const Attr& subset, int64_t count) {
  const Ints* range = subset.get_if<Ints>();
  if (!range) return count;
  if (range->size() != 2 || (*range)[0] < 0 || (*range)[1] < (*range)[0] || (*range)[1] > count) {
    throw ValueError(concat(op, ": subset_by_index must be a range within (0, ", count, ")"));
  }
  return (*range)[1] - (*range)[0];
}

JvpResult eigh_jvp(const JvpArgs& args) {
  const Array& a = args.primals[0];
  if (!is_whole(args.attrs["subset_by_index"], a.shape(-1))) {
    throw NotImplementedError(
        "eigh: derivatives are not defined for a part of the eigenvalues (argument 'subset_by_index')");
  }
  Arrays out = capibara::bind(args.primitive, Arrays{symmetrized(a)}, args.attrs);
  const Array& v = out[0];
  Array weights = inverse_differences(as_dtype(out[1], a.dtype()), a.dtype());
  Array rotated = product(product(adjoint(v), args.tangents[0]), v);
  Array v_tangent = product(v, lax::mul(weights, rotated));
  return {out, {v_tangent, diagonal(real_part(rotated))}};
}

PrimitiveRecord eigh_record() {
  PrimitiveRecord record =
      decomposition("eigh", "Eigenvectors and ascending eigenvalues of a symmetric or Hermitian matrix.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 10;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("eigh", types, {.ranks = {2}});
    if (operands.core[0][0] != operands.core[0][1]) {
      throw ValueError(concat("eigh: Argument to symmetric eigendecomposition must have shape [..., n, n], got ",
                              to_string(types[0])));
    }
    int64_t n = operands.core[0][0], d = subset_size("eigh", attrs["subset_by_index"], n);
    return TypeResult(Types{operands.type(types[0].dtype, {n, d}), operands.type(real_dtype(types[0].dtype), {d})});
  };
  record.jvp = eigh_jvp;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool lower : {true, false}) {
      add_samples(samples, dtype, {{3, 3}, {2, 2, 2}, {1, 1}, {0, 0}},
                  {{"lower", lower}, {"sort_eigenvalues", true}, {"subset_by_index", Attr()}, {"algorithm", Attr()}});
    }
    return samples;
  };
  return record;
}

// ---- svd --------------------------------------------------------------------------------------------------------

JvpResult svd_jvp(const JvpArgs& args) {
  const Array &a = args.primals[0], &tangent = args.tangents[0];
  int64_t m = a.shape(-2), n = a.shape(-1);
  bool vectors = args.attrs.boolean("compute_uv"), full = args.attrs.boolean("full_matrices");
  auto times = [](const Array& x, const Array& y) { return matmul(x, y, "highest"); };
  Arrays out =
      capibara::bind(args.primitive, args.primals, args.attrs.with("full_matrices", false).with("compute_uv", true));
  if (vectors && full && m != n) {
    throw NotImplementedError("Singular value decomposition JVP not implemented for full matrices");
  }
  const Array &s = out[0], &u = out[1], &vt = out[2];
  Array ut = adjoint(u), v = adjoint(vt), row = row_vectors(s);
  Array ds_full = times(times(ut, tangent), v);
  Array ds = diagonal(real_part(ds_full));
  if (!vectors) return {{s}, {ds}};

  DType dtype = a.dtype(), real = s.dtype();
  Array one = scalar_of(real, 1);
  Array sums = lax::add(row, transposed(row)), differences = lax::sub(row, transposed(row));
  Array squares = lax::mul(sums, differences);
  Array identity = with_rank(eye(real, s.shape(-1), s.shape(-1)), squares.ndim());
  Array f = lax::sub(lax::div(one, lax::add(squares, identity)), identity);
  Array right = lax::mul(as_dtype(row, dtype), ds_full);
  Array left = lax::mul(transposed(as_dtype(row, dtype)), ds_full);
  Array zeros = lax::convert_element_type(lax::eq(s, scalar_of(real, 0)), real, false);
  Array inverse = lax::sub(lax::div(one, lax::add(s, zeros)), zeros);
  Array inverse_matrix = diagonal_matrix(inverse);
  Array skew = lax::mul(scalar_of(dtype, 0.5), lax::sub(ds_full, adjoint(ds_full)));
  Array phase = lax::mul(skew, as_dtype(inverse_matrix, dtype));
  Array converted = as_dtype(f, dtype);
  Array du = times(u, lax::add(lax::mul(converted, lax::add(right, adjoint(right))), phase));
  Array converted_f = as_dtype(f, dtype), dv = times(v, lax::mul(converted_f, lax::add(left, adjoint(left))));
  if (m > n) {
    Array along = times(tangent, v);
    Array difference = lax::sub(along, times(u, times(ut, along)));
    du = lax::add(du, lax::div(difference, as_dtype(row, dtype)));
  }
  if (n > m) {
    Array along = times(adjoint(tangent), u);
    Array difference_along = lax::sub(along, times(v, times(vt, along)));
    dv = lax::add(dv, lax::div(difference_along, as_dtype(row, dtype)));
  }
  return {out, {ds, du, adjoint(dv)}};
}

PrimitiveRecord svd_record() {
  PrimitiveRecord record = decomposition("svd", "Singular values in descending order, and U and V adjoint on demand.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 10;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("svd", types, {.ranks = {2}});
    int64_t m = operands.core[0][0], n = operands.core[0][1], least = std::min(m, n);
    bool full = attrs.boolean("full_matrices");
    const Attr& subset = attrs["subset_by_index"];
    if (full && !is_whole(subset, least)) throw ValueError("svd: full_matrices and subset_by_index cannot both be set");
    int64_t rank = std::min(least, subset_size("svd", subset, least));
    DType dtype = types[0].dtype;
    Types out = {operands.type(real_dtype(dtype), {rank})};
    if (attrs.boolean("compute_uv")) {
      out.push_back(operands.type(dtype, {m, full ? m : rank}));
      out.push_back(operands.type(dtype, {full ? n : rank, n}));
    }
    return TypeResult(std::move(out));
  };
  record.jvp = svd_jvp;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool vectors : {true, false}) {
      for (bool full : {false, true}) {
        std::vector<Shape> shapes = {{3, 3}, {2, 2, 2}};
        if (!full || !vectors) shapes.insert(shapes.end(), {{4, 2}, {2, 4}, {2, 3, 2}});
        add_samples(
            samples, dtype, shapes,
            {{"full_matrices", full}, {"compute_uv", vectors}, {"subset_by_index", Attr()}, {"algorithm", Attr()}});
      }
    }
    return samples;
  };
  return record;
}

// ---- reductions -------------------------------------------------------------------------------------------------

PrimitiveRecord schur_record() {
  PrimitiveRecord record =
      decomposition("schur", "A = Q T adjoint(Q) with T upper triangular, or block triangular where A is real.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 10;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("schur", types, {.ranks = {2}});
    require_square("schur", operands.core[0]);
    Types out = {types[0]};
    if (attrs.boolean("compute_schur_vectors")) out.push_back(types[0]);
    return TypeResult(std::move(out));
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool vectors : {true, false}) {
      add_samples(samples, dtype, square_shapes,
                  {{"compute_schur_vectors", vectors}, {"sort_eig_vals", false}, {"select_callable", Attr()}});
    }
    return samples;
  };
  return record;
}

PrimitiveRecord hessenberg_record() {
  PrimitiveRecord record =
      decomposition("hessenberg", "A reduced to upper Hessenberg form, the reflectors below it, and their factors.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 10;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("hessenberg", types, {.ranks = {2}});
    const Shape& core = operands.core[0];
    if (core[0] != core[1] || core[0] == 0) {
      throw ValueError(
          concat("Argument to Hessenberg reduction must have shape [..., n, n] with n > 0, got ", to_string(types[0])));
    }
    return TypeResult(Types{types[0], operands.type(types[0].dtype, {core[0] - 1})});
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    add_samples(samples, dtype, square_shapes, {});
    return samples;
  };
  return record;
}

PrimitiveRecord tridiagonal_record() {
  PrimitiveRecord record = decomposition(
      "tridiagonal", "A symmetric or Hermitian matrix reduced to tridiagonal form, and the reflectors that do it.");
  record.traits.multiple_results = true;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("tridiagonal", types, {.ranks = {2}});
    require_square("tridiagonal", operands.core[0]);
    int64_t n = operands.core[0][0];
    if (n == 0) throw ValueError(concat("The input to tridiagonal must not be empty. Got ", to_string(types[0])));
    DType dtype = types[0].dtype, real = real_dtype(dtype);
    return TypeResult(
        Types{types[0], operands.type(real, {n}), operands.type(real, {n - 1}), operands.type(dtype, {n - 1})});
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool lower : {true, false}) add_samples(samples, dtype, square_shapes, {{"lower", lower}});
    return samples;
  };
  return record;
}

}  // namespace

}  // namespace linalg

std::vector<PrimitiveRecord> spectral_records() {
  using namespace linalg;
  return {eig_record(), eigh_record(), svd_record(), schur_record(), hessenberg_record(), tridiagonal_record()};
}

}  // namespace capibara

namespace capibara::jax::lax::linalg {

namespace matrix = capibara::linalg;

namespace {

Attr range_attr(const std::optional<IndexRange>& range) {
  return range ? Attr(Ints{range->first, range->second}) : Attr();
}

// Formatted as Python prints enumeration members.
template <class Enum, std::size_t count>
Attr enum_attr(const std::optional<Enum>& value, const char* const (&names)[count]) {
  return value ? Attr(names[static_cast<std::size_t>(*value)]) : Attr();
}
const char* const eig_names[] = {"EigImplementation.CUSOLVER", "EigImplementation.MAGMA", "EigImplementation.LAPACK"};
const char* const eigh_names[] = {"EighImplementation.QR", "EighImplementation.JACOBI", "EighImplementation.QDWH"};
const char* const svd_names[] = {"SvdAlgorithm.DEFAULT", "SvdAlgorithm.QR", "SvdAlgorithm.JACOBI", "SvdAlgorithm.POLAR",
                                 "SvdAlgorithm.DIVIDE_AND_CONQUER"};

Arrays bind_svd(const Array& x, const SvdOptions& options, bool compute_uv) {
  static const Primitive p = primitive("svd");
  return capibara::bind(p, Arrays{x},
                        {{"full_matrices", options.full_matrices},
                         {"compute_uv", compute_uv},
                         {"subset_by_index", range_attr(options.subset_by_index)},
                         {"algorithm", enum_attr(options.algorithm, svd_names)}});
}

}  // namespace

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
  matrix::require_matrices("eigh", x);
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

std::tuple<Array, Array, Array, Array> tridiagonal(const Array& a, bool lower) {
  static const Primitive p = primitive("tridiagonal");
  Arrays out = capibara::bind(p, Arrays{a}, {{"lower", lower}});
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace capibara::jax::lax::linalg
