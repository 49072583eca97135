// The factorization into an orthonormal and a triangular matrix: qr, and its Householder primitives.
#include <capibara/linalg.h>

#include "lax/linalg/linalg.h"
#include "lax/sharding/splits.h"

#include <algorithm>

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

// ---- Householder reflectors -------------------------------------------------------------------------------------

PrimitiveRecord geqrf_record() {
  PrimitiveRecord record = decomposition(
      "geqrf", "R of A = Q R above the diagonal, Q below it as Householder reflectors with factors taus.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("geqrf", types, {.ranks = {2}});
    return TypeResult(
        Types{types[0], operands.type(types[0].dtype, {std::min(operands.core[0][0], operands.core[0][1])})});
  };
  record.samples = [](DType dtype) { return matrix_samples(dtype, matrix_shapes); };
  return record;
}

PrimitiveRecord geqp3_record() {
  PrimitiveRecord record =
      decomposition("geqp3", "The factorization of geqrf with columns exchanged; the pivots count from 1.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("geqp3", types, {.ranks = {2, 1}, .same_dtypes = false});
    if (!is_integer(types[1].dtype)) throw TypeError(concat("geqp3: jpvt must be integers, got ", to_string(types[1])));
    if (operands.core[1][0] != operands.core[0][1]) {
      throw ValueError(concat("geqp3: jpvt must have one entry per column, got ", to_string(types[0]), " and ",
                              to_string(types[1])));
    }
    return TypeResult(
        Types{types[0].strong(), types[1].strong(),
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
  PrimitiveRecord record =
      decomposition("householder_product", "The product of the reflectors that geqrf leaves: Q itself.");
  record.splits = linalg_splits({2, 1});
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("householder_product", types, {.ranks = {2, 1}});
    int64_t m = operands.core[0][0], n = operands.core[0][1], k = operands.core[1][0];
    if (m < n) {
      throw ValueError(
          concat("The first argument to householder_product must have at least as many rows as columns, got ",
                 to_string(types[0])));
    }
    if (k > std::min(m, n)) {
      throw ValueError(
          concat("The second argument to householder_product must not have more rows than the minimum of the first ",
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
  PrimitiveRecord record = decomposition("ormqr", "The product of a matrix and the Q given by reflectors.");
  record.splits = linalg_splits({2, 1, 2});
  record.traits.matrix_nanoseconds = 2;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    Operands operands = split_operands("ormqr", types, {.ranks = {2, 1, 2}});
    bool left = attrs.boolean("left");
    const Shape &a = operands.core[0], &c = operands.core[2];
    if (c[left ? 0 : 1] != a[0]) {
      throw ValueError(concat("ormqr with left=", left ? "True" : "False", " expects c to have as many ",
                              left ? "rows" : "columns", " as the Householder matrix a has rows. Got a ",
                              to_string(types[0]), " and c ", to_string(types[2])));
    }
    if (operands.core[1][0] > std::min(a[0], a[1])) {
      throw ValueError(concat("ormqr: taus must not be longer than the minimum of a's rows and columns, got ",
                              to_string(types[0]), " and ", to_string(types[1])));
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
  return map_batch([](std::span<const Array> in) { return in[0](ellipsis, in[1]); }, Arrays{x, permutation},
                   x.ndim() - 2);
}

// The tangent of the full q's columns beyond the first n, which keeps q orthogonal (arXiv 2409.13374).
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
  static const Primitive geqrf = primitive("geqrf"), geqp3 = primitive("geqp3"),
                         product = primitive("householder_product");
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
    Arrays out =
        capibara::bind(geqp3, Arrays{a, lax::zeros(typed(DType::int32, {n}))}, {{"use_magma", attrs["use_magma"]}});
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
  PrimitiveRecord record = decomposition(
      "qr", "A = Q R with orthonormal columns in Q and an upper triangular R, columns exchanged on demand.");
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

std::vector<PrimitiveRecord> orthogonal_records() {
  using namespace linalg;
  return {geqrf_record(), geqp3_record(), householder_product_record(), ormqr_record(), qr_record()};
}

}  // namespace capibara

namespace capibara::jax::lax::linalg {

namespace {

Arrays bind_qr(const Array& x, bool pivoting, bool full_matrices) {
  static const Primitive p = primitive("qr");
  return capibara::bind(p, Arrays{x},
                        {{"pivoting", pivoting}, {"full_matrices", full_matrices}, {"use_magma", Attr()}});
}

}  // namespace

Array householder_product(const Array& a, const Array& taus) {
  static const Primitive p = primitive("householder_product");
  return bind1(p, {a, taus});
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

}  // namespace capibara::jax::lax::linalg
