// Factorizations: cholesky, lu, qr, and the Householder pieces that qr is made of.
#include "lax/linalg.h"

#include <capibara/control.h>
#include <capibara/indexing.h>

#include <algorithm>
#include <cmath>

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

const std::vector<Shape> matrix_shapes = {{3, 3}, {4, 2}, {2, 4}, {2, 3, 2}, {1, 1}, {2, 0, 0}};

PrimitiveRecord decomposition(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.dtypes = lapack_dtypes;
  record.batch = batch_leading;
  return record;
}

std::vector<Sample> matrix_samples(DType dtype, const std::vector<Shape>& shapes, const Attrs& attrs = {}) {
  std::vector<Sample> samples;
  for (const Shape& shape : shapes) samples.push_back(sample(dtype, {shape}, attrs));
  return samples;
}

// ---- cholesky ---------------------------------------------------------------------------------------------------

// dL = L phi(L^-1 dA L^-H), where phi takes the lower triangle with half the diagonal.
JvpResult cholesky_jvp(const JvpArgs& args) {
  Array l = tril(capibara::bind(args.primitive, args.primals, args.attrs)[0]);
  Array right = triangular_solve(l, args.tangents[0], {.lower = true, .transpose_a = true, .conjugate_a = true});
  Array x = triangular_solve(l, right, {.left_side = true, .lower = true});
  int64_t n = x.shape(-1);
  Array lower = tril(x);
  Array weights = lax::add(scalar_of(x.dtype(), 1), eye(x.dtype(), n, n));
  Array phi = lax::div(lower, with_rank(weights, x.ndim()));
  return {{l}, {product(l, phi)}};
}

PrimitiveRecord cholesky_record() {
  PrimitiveRecord record = decomposition("cholesky", "The lower triangular L of A = L adjoint(L); NaN where A is not positive definite.");
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = inexact_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("cholesky", types, {.ranks = {2}});
    require_square("cholesky", operands.core[0]);
    return TypeResult(Types{types[0]});
  };
  record.jvp = cholesky_jvp;
  record.stablehlo = "stablehlo.cholesky";
  record.samples = [](DType dtype) {
    // Values near 1 with a single row are positive definite; larger random matrices show the failure.
    std::vector<Sample> samples = matrix_samples(dtype, {{1, 1}, {2, 1, 1}, {0, 2, 2}, {0, 0}});
    for (Sample& s : samples) s.low = 0.5;
    return samples;
  };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return static_cast<double>(types[0].size()) * static_cast<double>(types[0].shape.back()) / 3;
  };
  return record;
}

// ---- cholesky_update --------------------------------------------------------------------------------------------

// One Givens rotation that takes (x, y) to (r, 0): its cosine and minus its sine.
std::pair<Array, Array> rotation(const Array& x, const Array& y) {
  DType dtype = x.dtype();
  using Pair = std::pair<Array, Array>;
  auto nothing = [dtype](const Array&, const Array&) { return Pair(scalar_of(dtype, 1), scalar_of(dtype, 0)); };
  auto rotate = [dtype](const Array& a, const Array& b) {
    Array size_a = lax::abs(a), size_b = lax::abs(b);
    Array scale = lax::select(lax::gt(size_a, size_b), size_a, size_b);
    Array u = lax::div(a, scale), v = lax::div(b, scale);
    Array power = lax::integer_pow(u, 2);
    Array inverse = lax::div(scalar_of(dtype, 1), lax::sqrt(lax::add(power, lax::integer_pow(v, 2))));
    Array product = lax::mul(u, inverse);
    return Pair(product, lax::mul(lax::neg(v), inverse));
  };
  return lax::cond(lax::eq(y, scalar_of(dtype, 0)), nothing, rotate, x, y);
}

Arrays lower_cholesky_update(std::span<const Array> inputs, const Attrs&) {
  Array r = inputs[0], z = inputs[1];
  for (int64_t k = 0; k < z.shape(0); ++k) {
    Array r_k = r(k, k);
    auto [cosine, sine] = rotation(r_k, z(k));
    Array row = r(k, slice());
    Array product = lax::mul(cosine, row), new_row = lax::sub(product, lax::mul(sine, z));
    Array product_cosine = lax::mul(cosine, z);
    z = lax::add(product_cosine, lax::mul(sine, row));
    r = r.at(k, slice()).set(new_row);
  }
  return {r};
}

PrimitiveRecord cholesky_update_record() {
  PrimitiveRecord record;
  record.name = "cholesky_update";
  record.traits.matrix_nanoseconds = 1;
  record.doc = "The factor R of A + w transpose(w), given the upper triangular R of A = transpose(R) R and w.";
  record.dtypes = {DType::float32, DType::float64};
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("cholesky_update", types, {.ranks = {2, 1}, .batched = false, .real_only = true});
    const Shape &r = operands.core[0], &w = operands.core[1];
    if (r[0] != r[1] || w[0] != r[1]) {
      throw ValueError(concat("Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as ",
                              "input. Got ", to_string(types[0]), " and ", to_string(types[1]), " instead"));
    }
    ArrayType out = types[0];
    out.weak_type = operands.weak;
    return TypeResult(Types{out});
  };
  record.lower = lower_cholesky_update;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples = {sample(dtype, {{3, 3}, {3}}), sample(dtype, {{1, 1}, {1}})};
    for (Sample& s : samples) s.low = 0.5;
    return samples;
  };
  return record;
}

// ---- lu ---------------------------------------------------------------------------------------------------------

// d(LU) = L tril(X, -1) + triu(X) U with X = L^-1 dA U^-1, both factors made square.
Array lu_tangent(std::span<const Array> in) {
  const Array &lu = in[0], &tangent = in[1], &permutation = in[2];
  int64_t m = tangent.shape(0), n = tangent.shape(1), k = std::min(m, n);
  DType dtype = tangent.dtype();
  Array zero = scalar_of(dtype, 0);
  Array l = lax::pad(tril(cols(lu, 0, k), -1), zero, {{0, 0, 0}, {0, m - k, 0}});
  l = lax::add(l, eye(dtype, m, m));
  Array u_eye = lax::pad(eye(dtype, n - k, n - k), zero, {{k, 0, 0}, {k, 0, 0}});
  Array u = lax::add(lax::pad(triu(rows(lu, 0, k)), zero, {{0, n - k, 0}, {0, 0, 0}}), u_eye);
  Array x = triangular_solve(l, tangent(permutation), {.left_side = true, .lower = true, .unit_diagonal = true});
  x = triangular_solve(u, x, {});
  Array l_tangent = matmul(l, tril(x, -1), "highest");
  return lax::add(l_tangent, matmul(triu(x), u, "highest"));
}

PrimitiveRecord lu_record() {
  PrimitiveRecord record = decomposition("lu", "L and U of P A = L U in one matrix, the pivots, and the permutation.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = inexact_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("lu", types, {.ranks = {2}});
    int64_t m = operands.core[0][0], n = operands.core[0][1];
    operands.weak = false;
    return TypeResult(Types{types[0], operands.type(DType::int32, {std::min(m, n)}), operands.type(DType::int32, {m})});
  };
  record.jvp = [](const JvpArgs& args) {
    Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
    Array tangent = map_batch(lu_tangent, Arrays{out[0], args.tangents[0], out[2]}, out[0].ndim() - 2);
    return JvpResult{out, {tangent, Array(), Array()}};
  };
  record.samples = [](DType dtype) { return matrix_samples(dtype, matrix_shapes); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    const Shape& shape = types[0].shape;
    double m = static_cast<double>(shape[shape.size() - 2]), n = static_cast<double>(shape.back());
    return static_cast<double>(types[0].size()) * std::min(m, n) - static_cast<double>(types[0].size()) / std::max(1.0, m * n) * std::pow(std::min(m, n), 3) / 3;
  };
  return record;
}

// Swaps row i with row pivots[i], one after the other, in a loop over all matrices at once.
Arrays lower_permutation(std::span<const Array> inputs, const Attrs& attrs) {
  const Array& pivots = inputs[0];
  int64_t size = attrs.integer("permutation_size"), count = pivots.shape(-1), batch = pivots.ndim() - 1;
  Shape shape = pivots.shape();
  shape.back() = size;
  Array start = lax::broadcasted_iota(DType::int32, shape, batch);
  if (size == 0 || count == 0) return {start};
  int64_t flat_count = 1;
  for (int64_t i = 0; i < batch; ++i) flat_count *= shape[static_cast<std::size_t>(i)];
  Array swaps = lax::reshape(pivots, {flat_count, count}), lanes = lax::iota(DType::int32, flat_count);
  auto swap_row = [&](const Array& i, const std::pair<Array, Array>& state) {
    const auto& [permutation, all] = state;
    Array j = lax::dynamic_index_in_dim(all, i, 1, false);
    Array at_i = lax::dynamic_index_in_dim(permutation, i, 1, false), at_j = permutation(lanes, j);
    Array next = lax::dynamic_update_index_in_dim(permutation, at_j, i, 1);
    return std::pair(next.at(lanes, j).set(at_i), all);
  };
  auto end = lax::fori_loop(scalar_of(DType::int32, 0), scalar_of(DType::int32, static_cast<double>(count)), swap_row,
                            std::pair(lax::reshape(start, {flat_count, size}), swaps));
  return {lax::reshape(end.first, shape)};
}

PrimitiveRecord permutation_record() {
  PrimitiveRecord record = decomposition("lu_pivots_to_permutation", "The permutation that a sequence of row swaps amounts to.");
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = {DType::int32};
  record.differentiable = false;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("lu_pivots_to_permutation", types, 1);
    const ArrayType& pivots = types[0];
    if (pivots.dtype != DType::int32) {
      throw TypeError(concat("lu_pivots_to_permutation: pivots must be int32, got ", to_string(pivots)));
    }
    if (pivots.rank() < 1) {
      throw TypeError(concat("Input 0 to lu_pivots_to_permutation must have rank at least 1, but got ", to_string(pivots)));
    }
    int64_t size = attrs.integer("permutation_size");
    if (size < pivots.shape.back()) {
      throw ValueError(concat("lu_pivots_to_permutation: Output permutation size ", size, " has to exceed the trailing dimension of the pivots. Got pivots size ",
                              pivots.shape.back()));
    }
    ArrayType out = pivots;
    out.shape.back() = size;
    return TypeResult(Types{out});
  };
  record.lower = lower_permutation;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples = {sample(dtype, {{2}}, {{"permutation_size", 3}}), sample(dtype, {{2, 3}}, {{"permutation_size", 3}}),
                                   sample(dtype, {{0}}, {{"permutation_size", 2}})};
    for (Sample& s : samples) {
      s.low = 0;
      s.high = 2.99;
    }
    return samples;
  };
  return record;
}

// ---- Householder reflectors -------------------------------------------------------------------------------------

PrimitiveRecord geqrf_record() {
  PrimitiveRecord record = decomposition("geqrf", "R of A = Q R above the diagonal, Q below it as Householder reflectors with factors taus.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("geqrf", types, {.ranks = {2}});
    return TypeResult(Types{types[0], operands.type(types[0].dtype, {std::min(operands.core[0][0], operands.core[0][1])})});
  };
  record.samples = [](DType dtype) { return matrix_samples(dtype, matrix_shapes); };
  return record;
}

PrimitiveRecord geqp3_record() {
  PrimitiveRecord record = decomposition("geqp3", "The factorization of geqrf with columns exchanged; the pivots count from 1.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("geqp3", types, {.ranks = {2, 1}, .same_dtypes = false});
    if (!is_integer(types[1].dtype)) throw TypeError(concat("geqp3: jpvt must be integers, got ", to_string(types[1])));
    if (operands.core[1][0] != operands.core[0][1]) {
      throw ValueError(concat("geqp3: jpvt must have one entry per column, got ", to_string(types[0]), " and ", to_string(types[1])));
    }
    return TypeResult(Types{types[0].strong(), types[1].strong(),
                            operands.type(types[0].dtype, {std::min(operands.core[0][0], operands.core[0][1])}).strong()});
  };
  record.samples = [](DType dtype) {
    Sample s = sample(dtype, {{4, 3}}, {{"use_magma", Attr()}});
    ArrayType pivots;
    pivots.dtype = DType::int32;
    pivots.shape = {3};
    s.inputs.push_back(pivots);
    s.low = 0;
    s.high = 0.9;
    return std::vector<Sample>{s};
  };
  return record;
}

PrimitiveRecord householder_product_record() {
  PrimitiveRecord record = decomposition("householder_product", "The product of the reflectors that geqrf leaves: Q itself.");
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("householder_product", types, {.ranks = {2, 1}});
    int64_t m = operands.core[0][0], n = operands.core[0][1], k = operands.core[1][0];
    if (m < n) {
      throw ValueError(concat("The first argument to householder_product must have at least as many rows as columns, got ",
                              to_string(types[0])));
    }
    if (k > std::min(m, n)) {
      throw ValueError(concat("The second argument to householder_product must not have more rows than the minimum of the first ",
                              "argument's rows and columns, got ", to_string(types[0]), " and ", to_string(types[1])));
    }
    ArrayType out = types[0];
    out.weak_type = operands.weak;
    return TypeResult(Types{out});
  };
  record.samples = [](DType dtype) {
    return std::vector<Sample>{sample(dtype, {{4, 3}, {3}}), sample(dtype, {{2, 3, 3}, {2, 2}})};
  };
  return record;
}

PrimitiveRecord ormqr_record() {
  PrimitiveRecord record = decomposition("ormqr", "The product of a matrix and the Q that reflectors stand for.");
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("ormqr", types, {.ranks = {2, 1, 2}});
    bool left = attrs.boolean("left");
    const Shape &a = operands.core[0], &c = operands.core[2];
    if (c[left ? 0 : 1] != a[0]) {
      throw ValueError(concat("ormqr with left=", left ? "True" : "False", " expects c to have as many ", left ? "rows" : "columns",
                              " as the Householder matrix a has rows. Got a ", to_string(types[0]), " and c ", to_string(types[2])));
    }
    if (operands.core[1][0] > std::min(a[0], a[1])) {
      throw ValueError(concat("ormqr: taus must not be longer than the minimum of a's rows and columns, got ", to_string(types[0]),
                              " and ", to_string(types[1])));
    }
    ArrayType out = types[2];
    out.weak_type = operands.weak;
    return TypeResult(Types{out});
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool left : {true, false}) {
      for (bool transpose : {true, false}) {
        Attrs attrs = {{"left", left}, {"transpose", transpose}};
        samples.push_back(sample(dtype, {{4, 3}, {3}, left ? Shape{4, 2} : Shape{2, 4}}, attrs));
      }
    }
    return samples;
  };
  return record;
}

// ---- qr ---------------------------------------------------------------------------------------------------------

// The tangents of q [m, n] and r [n, n] for m >= n.
std::pair<Array, Array> thin_qr_tangents(const Array& q, const Array& r, const Array& tangent) {
  Array x = triangular_solve(r, tangent, {});
  Array projected = matmul(adjoint(q), x);
  Array lower = tril(projected, -1);
  Array skew = lax::sub(lower, adjoint(lower));
  int64_t n = r.shape(-1);
  Array identity = with_rank(eye(skew.dtype(), n, n), projected.ndim());
  Array imaginary = lax::sub(projected, as_dtype(real_part(projected), projected.dtype()));
  skew = lax::add(skew, lax::mul(identity, imaginary));
  Array q_tangent = lax::add(matmul(q, lax::sub(skew, projected)), x);
  return {q_tangent, matmul(lax::sub(projected, skew), r)};
}

Array take_columns(const Array& x, const Array& permutation) {
  return map_batch([](std::span<const Array> in) { return in[0](ellipsis, in[1]); }, Arrays{x, permutation}, x.ndim() - 2);
}

// The columns of the full q beyond the first n move so that q stays orthogonal (arXiv 2409.13374).
Array complement_tangent(const Array& q, const Array& thin, const Array& thin_tangent) {
  int64_t m = q.shape(-2), n = thin.shape(-1);
  Array head = rows(thin, 0, n), tail = rows(thin, n, m), rest = cols(q, n, m);
  Array head_tangent = rows(thin_tangent, 0, n), tail_tangent = rows(thin_tangent, n, m);
  Array identity = with_rank(eye(q.dtype(), n, n), q.ndim());
  static const Primitive lu = primitive("lu");
  Arrays factors = capibara::bind(lu, Arrays{lax::sub(head, identity)});
  Array z_adjoint = lu_solve(factors[0], factors[2], adjoint(tail), 2);
  Array z = adjoint(z_adjoint);
  Array first = matmul(thin_tangent, z_adjoint);
  Array basis = lax::add(thin, matmul(rest, z));
  return lax::sub(first, matmul(basis, adjoint(lax::sub(tail_tangent, matmul(z, head_tangent)))));
}

JvpResult qr_jvp(const JvpArgs& args) {
  const Array& x = args.primals[0];
  Array tangent = args.tangents[0];
  bool pivoting = args.attrs.boolean("pivoting"), full = args.attrs.boolean("full_matrices");
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
  const Array &q = out[0], &r = out[1];
  int64_t m = x.shape(-2), n = x.shape(-1), last = x.ndim() - 1;
  if (pivoting) tangent = take_columns(tangent, out[2]);
  Arrays tangents(out.size());
  if (m < n) {
    // The leading square block gives q; the rest of r follows from q.
    Array moved = pivoting ? take_columns(x, out[2]) : x;
    Array beyond = cols(moved, m, n), square = cols(tangent, 0, m), beyond_tangent = cols(tangent, m, n);
    auto [q_tangent, r_tangent] = thin_qr_tangents(q, cols(r, 0, m), square);
    Array matmul_q_tangent = matmul(adjoint(q_tangent), beyond);
    Array rest = lax::add(matmul_q_tangent, matmul(adjoint(q), beyond_tangent));
    tangents[0] = q_tangent;
    tangents[1] = lax::concatenate({r_tangent, rest}, last);
    return {out, tangents};
  }
  Array thin = full ? cols(q, 0, n) : q, square = full ? cols(rows(r, 0, n), 0, n) : r;
  auto [q_tangent, r_tangent] = thin_qr_tangents(thin, square, tangent);
  if (full && m != n) {
    q_tangent = lax::concatenate({q_tangent, complement_tangent(q, thin, q_tangent)}, last);
    ArrayType zeros = r_tangent.type();
    zeros.shape[static_cast<std::size_t>(last) - 1] = m - n;
    r_tangent = lax::concatenate({r_tangent, lax::zeros(zeros)}, last - 1);
  }
  tangents[0] = q_tangent;
  tangents[1] = r_tangent;
  return {out, tangents};
}

Arrays lower_qr(std::span<const Array> inputs, const Attrs& attrs) {
  static const Primitive geqrf = primitive("geqrf"), geqp3 = primitive("geqp3"), product = primitive("householder_product");
  const Array& a = inputs[0];
  bool pivoting = attrs.boolean("pivoting"), full = attrs.boolean("full_matrices");
  int64_t m = a.shape(-2), n = a.shape(-1), rank = a.ndim();
  ArrayType type = a.type().strong();
  auto typed = [&](DType dtype, std::initializer_list<int64_t> core) {
    ArrayType t = type.with_dtype(dtype);
    t.shape.resize(static_cast<std::size_t>(rank - 2));
    t.shape.insert(t.shape.end(), core.begin(), core.end());
    return t;
  };
  if (m == 0 || n == 0) {
    int64_t k = full ? m : std::min(m, n);
    Array q = lax::broadcast_in_dim(eye(a.dtype(), m, k), typed(a.dtype(), {m, k}).shape, {rank - 2, rank - 1});
    Arrays out = {q, lax::zeros(typed(a.dtype(), {k, n}))};
    if (pivoting) out.push_back(lax::zeros(typed(DType::int32, {n})));
    return out;
  }
  Array r, taus, permutation;
  if (pivoting) {
    Arrays out = capibara::bind(geqp3, Arrays{a, lax::zeros(typed(DType::int32, {n}))}, {{"use_magma", attrs["use_magma"]}});
    r = out[0];
    permutation = lax::sub(out[1], scalar_of(DType::int32, 1));
    taus = out[2];
  } else {
    Arrays out = capibara::bind(geqrf, Arrays{a});
    r = out[0];
    taus = out[1];
  }
  Array q = r;
  if (m < n) {
    q = cols(r, 0, m);
  } else if (full) {
    std::vector<lax::PadDim> config(static_cast<std::size_t>(rank));
    config.back().high = m - n;
    q = lax::pad(r, scalar_of(r.dtype(), 0), config);
  } else {
    r = cols(rows(r, 0, n), 0, n);
  }
  Arrays result = {capibara::bind(product, Arrays{q, taus})[0], triu(r)};
  if (pivoting) result.push_back(permutation);
  return result;
}

PrimitiveRecord qr_record() {
  PrimitiveRecord record = decomposition("qr", "A = Q R with orthonormal columns in Q and an upper triangular R, columns exchanged on demand.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("qr", types, {.ranks = {2}});
    int64_t m = operands.core[0][0], n = operands.core[0][1], k = attrs.boolean("full_matrices") ? m : std::min(m, n);
    DType dtype = types[0].dtype;
    Types out = {operands.type(dtype, {m, k}), operands.type(dtype, {k, n})};
    if (attrs.boolean("pivoting")) out.push_back(operands.type(DType::int32, {n}).strong());
    return TypeResult(std::move(out));
  };
  record.jvp = qr_jvp;
  record.lower = lower_qr;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool full : {false, true}) {
      for (bool pivoting : {false, true}) {
        Attrs attrs = {{"pivoting", pivoting}, {"full_matrices", full}, {"use_magma", Attr()}};
        for (Sample& s : matrix_samples(dtype, matrix_shapes, attrs)) samples.push_back(std::move(s));
      }
    }
    return samples;
  };
  return record;
}

}  // namespace

}  // namespace linalg

std::vector<PrimitiveRecord> factor_records() {
  using namespace linalg;
  return {cholesky_record(), cholesky_update_record(), lu_record(),    permutation_record(), geqrf_record(),
          geqp3_record(),    householder_product_record(), ormqr_record(), qr_record()};
}

}  // namespace capibara
