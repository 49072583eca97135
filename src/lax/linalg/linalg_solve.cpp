// Solvers: triangular_solve, tridiagonal_solve, symmetric_product, and linear systems by a pivoted factorization.
#include "lax/linalg/linalg.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

#include <capibara/indexing.h>
#include <capibara/linalg.h>
#include <capibara/solve.h>

#include "lax/call.h"
#include "program/derive/derive.h"

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

TriangularForm form_of(const Attrs& attrs) {
  return {attrs.boolean("left_side"), attrs.boolean("lower"), attrs.boolean("transpose_a"),
          attrs.boolean("conjugate_a"), attrs.boolean("unit_diagonal")};
}

// ---- triangular_solve -------------------------------------------------------------------------------------------

TypeResult triangular_solve_type(std::span<const ArrayType> types, const Attrs& attrs) {
  Operands operands = split_operands("triangular_solve", types, {.ranks = {2, 2}});
  const Shape& a = operands.core[0];
  if (a[0] != a[1]) {
    throw ValueError(
        concat("The first input to triangular_solve must be a square matrix. Got shape (", a[0], ", ", a[1], ")."));
  }
  const Shape& b = operands.core[1];
  if (a[1] != b[attrs.boolean("left_side") ? 0 : 1]) {
    throw ValueError(concat("Incompatible shapes for arguments to triangular_solve: ", to_string(types[0]), " and ",
                            to_string(types[1])));
  }
  ArrayType out = types[1];
  out.weak_type = operands.weak;
  return Types{out};
}

// d(A^-1 B) = A^-1 (-dA) X: the product and the solve in the cheaper order.
Array tangent_from_a(const TriangularForm& form, const Array& tangent, const Array& answer, const Array& a) {
  int64_t m = answer.shape(-2), n = answer.shape(-1), k = form.unit_diagonal ? 1 : 0;
  Array g = lax::neg(form.lower ? tril(tangent, -k) : triu(tangent, k));
  if (form.transpose_a) g = transposed(g);
  if (form.conjugate_a) g = lax::conj(g);
  auto inverse = [&](const Array& right) { return triangular_solve(a, right, form); };
  if (form.left_side) return m > n ? inverse(product(g, answer)) : product(inverse(g), answer);
  return m < n ? inverse(product(answer, g)) : product(answer, inverse(g));
}

PrimitiveRecord triangular_solve_record() {
  PrimitiveRecord record;
  record.name = "triangular_solve";
  record.factors = leading_factors(2);
  record.splits = linalg_splits({2});
  record.traits.matrix_nanoseconds = 1;
  record.doc = "Solves op(A) X = B, or X op(A) = B, for a triangular A.";
  record.dtypes = inexact_dtypes;
  record.type = triangular_solve_type;
  record.jvp = [](const JvpArgs& args) {
    TriangularForm form = form_of(args.attrs);
    const Array &a = args.primals[0], &b = args.primals[1];
    Array answer = triangular_solve(a, b, form), sum;
    if (args.tangents[0].defined()) sum = tangent_from_a(form, args.tangents[0], answer, a);
    if (args.tangents[1].defined()) sum = add_tangents(sum, triangular_solve(a, args.tangents[1], form));
    return JvpResult{{answer}, {sum}};
  };
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array(), Array()};
    TriangularForm form = form_of(args.attrs);
    form.transpose_a = !form.transpose_a;
    return {Array(), triangular_solve(args.inputs[0], args.cotangents[0], form)};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    TriangularForm form = form_of(args.attrs);
    // Right-hand sides that types split cannot be columns of one matrix.
    if (args.mapped(0) || args.axis.split.is_explicit()) {
      Array a = batch_at(args.inputs[0], args.dims[0], args.axis),
            b = batch_at(args.inputs[1], args.dims[1], args.axis);
      return {{triangular_solve(a, b, form)}, {0}};
    }
    // One matrix for all: the mapped axis becomes more right-hand sides.
    int64_t rank = args.inputs[1].ndim();
    int64_t at = form.left_side ? rank - 1 : rank - 2;
    Array b = move_axis(args.inputs[1], args.dims[1], at);
    Shape shape = b.shape(), flat = shape;
    std::size_t other = static_cast<std::size_t>(form.left_side ? rank - 2 : rank - 3);
    flat[other] *= flat[static_cast<std::size_t>(at)];
    flat.erase(flat.begin() + at);
    Array x = triangular_solve(args.inputs[0], lax::reshape(b, flat), form);
    return {{lax::reshape(x, shape)}, {at}};
  };
  record.stablehlo = "stablehlo.triangular_solve";
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    TriangularForm form = form_of(attrs);
    if (!form.conjugate_a || form.transpose_a) return {};  // already in the subset
    form.conjugate_a = false;
    return {triangular_solve(lax::conj(inputs[0]), inputs[1], form)};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    auto add = [&](std::vector<Shape> shapes, TriangularForm form) {
      Sample s = sample(dtype, shapes,
                        {{"left_side", form.left_side},
                         {"lower", form.lower},
                         {"transpose_a", form.transpose_a},
                         {"conjugate_a", form.conjugate_a && is_complex(dtype)},
                         {"unit_diagonal", form.unit_diagonal}});
      s.low = 1;
      samples.push_back(std::move(s));
    };
    for (int bits = 0; bits < 32; ++bits) {
      TriangularForm form = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if (form.conjugate_a && !is_complex(dtype)) continue;
      add(form.left_side ? std::vector<Shape>{{3, 3}, {3, 2}} : std::vector<Shape>{{3, 3}, {2, 3}}, form);
    }
    add({{2, 2, 2}, {2, 2, 4}}, {.left_side = true, .lower = true});
    add({{2, 2, 2}, {2, 1, 2}}, {});
    add({{0, 0}, {0, 2}}, {.left_side = true});
    return samples;
  };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return static_cast<double>(types[1].size()) * static_cast<double>(types[0].shape.back());
  };
  return record;
}

// ---- tridiagonal_solve ------------------------------------------------------------------------------------------

TypeResult tridiagonal_solve_type(std::span<const ArrayType> types, const Attrs&) {
  Operands operands = split_operands("tridiagonal_solve", types, {.ranks = {1, 1, 1, 2}});
  for (std::size_t i = 1; i < 3; ++i) {
    if (operands.core[i] != operands.core[0]) {
      throw TypeError(concat("tridiagonal_solve requires that all diagonal arguments have the same shape, got ",
                             to_string(types[0]), " and ", to_string(types[i])));
    }
  }
  if (operands.core[0][0] != operands.core[3][0]) {
    throw TypeError(
        concat("tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the dimensions of the ",
               "diagonal arguments, got ", to_string(types[0]), " and b ", to_string(types[3])));
  }
  ArrayType out = types[3];
  out.weak_type = operands.weak;
  return Types{out};
}

Array tridiagonal_product(const Array& below, const Array& on, const Array& above, const Array& x) {
  Shape column = on.shape();
  column.push_back(1);
  Slice rest = slice(1, std::nullopt), most = slice(-1);
  Array y = lax::mul(lax::reshape(on, column), x);
  Array lower = below(ellipsis, rest, newaxis), from_below = lax::mul(lower, x(ellipsis, most, slice()));
  y = y.at(ellipsis, rest, slice()).add(from_below);
  Array upper = above(ellipsis, most, newaxis), from_above = lax::mul(upper, x(ellipsis, rest, slice()));
  return y.at(ellipsis, most, slice()).add(from_above);
}

Arrays bind_tridiagonal(const Arrays& inputs, const Attrs& attrs) {
  static const Primitive p = primitive("tridiagonal_solve");
  return capibara::bind(p, inputs, attrs);
}

PrimitiveRecord tridiagonal_solve_record() {
  PrimitiveRecord record;
  record.name = "tridiagonal_solve";
  record.factors = leading_factors(1);
  record.splits = linalg_splits({1, 1, 1, 2});
  record.doc = "Solves A X = B for a tridiagonal A given by its three diagonals.";
  record.dtypes = inexact_dtypes;
  record.type = tridiagonal_solve_type;
  record.jvp = [](const JvpArgs& args) {
    Arrays inputs(args.primals.begin(), args.primals.end());
    Array answer = bind_tridiagonal(inputs, args.attrs)[0];
    Array right = args.tangents[3];
    if (args.tangents[0].defined() || args.tangents[1].defined() || args.tangents[2].defined()) {
      Arrays diagonals;
      for (std::size_t i = 0; i < 3; ++i) diagonals.push_back(instantiate(args.tangents[i], args.primals[i].type()));
      right = add_tangents(right, lax::neg(tridiagonal_product(diagonals[0], diagonals[1], diagonals[2], answer)));
    }
    inputs[3] = right;
    return JvpResult{{answer}, bind_tridiagonal(inputs, args.attrs)};
  };
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    Arrays results(4);
    if (!args.cotangents[0].defined()) return results;
    const Array &below = args.inputs[0], &above = args.inputs[2];
    int64_t axis = above.ndim() - 1;
    Array last = above(ellipsis, slice(-1, std::nullopt));
    Array new_below = lax::concatenate({lax::zeros_like(last), above(ellipsis, slice(-1))}, axis);
    Array rest = below(ellipsis, slice(1, std::nullopt)), first = below(ellipsis, slice(1));
    Array new_above = lax::concatenate({rest, lax::zeros_like(first)}, axis);
    results[3] = bind_tridiagonal({new_below, args.inputs[1], new_above, args.cotangents[0]}, args.attrs)[0];
    return results;
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    if (args.mapped(0) || args.mapped(1) || args.mapped(2) || args.axis.split.is_explicit()) return batch_leading(args);
    int64_t rank = args.inputs[3].ndim(), at = rank - 2;
    Array b = move_axis(args.inputs[3], args.dims[3], at);
    Shape shape = b.shape(), flat = shape;
    flat[static_cast<std::size_t>(at)] *= flat.back();
    flat.pop_back();
    Array x = bind_tridiagonal({args.inputs[0], args.inputs[1], args.inputs[2], lax::reshape(b, flat)}, args.attrs)[0];
    return {{lax::reshape(x, shape)}, {at}};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool perturb : {false, true}) {
      Attrs attrs = {{"perturb_singular", perturb}};
      samples.push_back(sample(dtype, {{5}, {5}, {5}, {5, 2}}, attrs));
      samples.push_back(sample(dtype, {{1}, {1}, {1}, {1, 3}}, attrs));
      samples.push_back(sample(dtype, {{2, 4}, {2, 4}, {2, 4}, {2, 4, 1}}, attrs));
    }
    return samples;
  };
  return record;
}

// ---- symmetric_product ------------------------------------------------------------------------------------------

PrimitiveRecord symmetric_product_record() {
  PrimitiveRecord record;
  record.name = "symmetric_product";
  record.factors = leading_factors(2);
  record.splits = linalg_splits({2});
  record.doc = "alpha A transpose(A) + beta C for a symmetric C.";
  record.dtypes = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("symmetric_product", types, {.ranks = {2, 2}, .real_only = true});
    const Shape &a = operands.core[0], &c = operands.core[1];
    if (a[0] != c[1] || c[0] != c[1]) {
      throw ValueError(
          concat("symmetric_product expects a matrix of shape (m, n) and a square matrix of shape (m, m). Got ",
                 to_string(types[0]), " and ", to_string(types[1])));
    }
    ArrayType out = types[1];
    out.weak_type = operands.weak;
    return TypeResult(Types{out});
  };
  record.batch = batch_leading;
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    const Array &a = inputs[0], &c = inputs[1];
    Array scaled = lax::mul(scalar_of(a.dtype(), attrs.real("alpha")), product(a, transposed(a)));
    return {lax::add(scaled, lax::mul(scalar_of(c.dtype(), attrs.real("beta")), c))};
  };
  record.samples = [](DType dtype) {
    Attrs attrs = {{"alpha", 2.0}, {"beta", 0.5}};
    return std::vector<Sample>{sample(dtype, {{3, 2}, {3, 3}}, attrs), sample(dtype, {{2, 2, 4}, {2, 2, 2}}, attrs)};
  };
  return record;
}

// ---- linear systems ---------------------------------------------------------------------------------------------

Array lu_solve_one(const Array& lu, const Array& permutation, const Array& b, int trans) {
  Array x = b;
  if (trans == 0) {
    x = x(permutation, slice());
    x = triangular_solve(lu, x, {.left_side = true, .lower = true, .unit_diagonal = true});
    return triangular_solve(lu, x, {.left_side = true});
  }
  bool conjugate = trans == 2;
  x = triangular_solve(lu, x, {.left_side = true, .transpose_a = true, .conjugate_a = conjugate});
  x = triangular_solve(
      lu, x, {.left_side = true, .lower = true, .transpose_a = true, .conjugate_a = conjugate, .unit_diagonal = true});
  Array inverse = lax::sort_key_val(permutation, lax::iota(DType::int32, permutation.shape(0))).second;
  return x(inverse, slice());
}

Array broadcast_batch(const Array& x, const Shape& batch, int64_t core_rank) {
  Shape shape = batch;
  shape.insert(shape.end(), x.shape().end() - core_rank, x.shape().end());
  if (shape == x.shape()) return x;
  Ints dims;
  for (int64_t i = 0; i < x.ndim(); ++i) dims.push_back(static_cast<int64_t>(shape.size()) - x.ndim() + i);
  return lax::broadcast_in_dim(x, shape, dims);
}

Shape batch_of(const Array& x, int64_t core_rank) { return Shape(x.shape().begin(), x.shape().end() - core_rank); }

Array lu_solve_batch(const Array& lu, const Array& permutation, const Array& b, int trans) {
  bool vector = lu.ndim() == b.ndim() + 1;
  Array right = vector ? lax::expand_dims(b, {b.ndim()}) : b;
  Shape batch = lax::broadcast_shapes({batch_of(lu, 2), batch_of(permutation, 1), batch_of(right, 2)});
  Arrays inputs = {broadcast_batch(lu, batch, 2), broadcast_batch(permutation, batch, 1),
                   broadcast_batch(right, batch, 2)};
  Array x = map_batch([&](std::span<const Array> in) { return lu_solve_one(in[0], in[1], in[2], trans); }, inputs,
                      static_cast<int64_t>(batch.size()));
  return vector ? lax::squeeze(x, {x.ndim() - 1}) : x;
}

Array matvec(const Array& a, const Array& x) {
  Shape batch = lax::broadcast_shapes({batch_of(a, 2), batch_of(x, 1)});
  Array left = broadcast_batch(a, batch, 2), right = broadcast_batch(x, batch, 1);
  Ints dims;
  for (std::size_t i = 0; i < batch.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  return lax::dot_general(left, right, {{left.ndim() - 1}, {right.ndim() - 1}, dims, dims}, {.precision = "highest"});
}

}  // namespace

Array lu_solve(const Array& lu, const Array& permutation, const Array& b, int trans) {
  if (lu.ndim() < 2 || lu.shape(-1) != lu.shape(-2)) {
    throw ValueError(concat("last two dimensions of LU decomposition must be equal, got ", to_string(lu.type())));
  }
  if (b.ndim() < 1) throw ValueError(concat("b matrix must have rank >= 1, got ", to_string(b.type())));
  if (trans < 0 || trans > 2) throw ValueError(concat("'trans' value must be 0, 1, or 2, got ", trans));
  if (b.shape(lu.ndim() == b.ndim() + 1 ? -1 : -2) != lu.shape(-1)) {
    throw ValueError(concat("lu_solve: the rows of b must match the LU decomposition, got ", to_string(lu.type()),
                            " and b ", to_string(b.type())));
  }
  FlatFunction body = [&](std::span<const Array> in) { return Arrays{lu_solve_batch(in[0], in[1], in[2], trans)}; };
  Arrays inputs = {lu, permutation, b};
  Types types = {lu.type(), permutation.type(), b.type()};
  return call_program(stage(body, types, "_lu_solve").program, inputs, "_lu_solve")[0];
}

Array solve(const Array& a, const Array& b) {
  bool fits = a.ndim() >= 2 && (b.ndim() == a.ndim() || b.ndim() == a.ndim() - 1) && a.shape(-1) == a.shape(-2) &&
              a.shape(-1) == b.shape(a.ndim() - 2);
  if (!fits) {
    throw ValueError(
        concat("The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got a=",
               to_string(a.type()), " and b=", to_string(b.type())));
  }
  Shape shape = b.shape();
  Ints dims;
  for (int64_t i = 0; i < b.ndim(); ++i) {
    std::size_t at = static_cast<std::size_t>(i);
    if (shape[at] == 1 && i < a.ndim() - 1) shape[at] = a.shape()[at];
    dims.push_back(i);
  }
  Array right = shape == b.shape() ? b : lax::broadcast_in_dim(b, shape, dims);
  static const Primitive lu = primitive("lu");
  Arrays factors = capibara::bind(lu, Arrays{lax::stop_gradient(a)});
  auto apply = [a](std::span<const Array> x) { return Arrays{matvec(a, x[0])}; };
  auto by_lu = [factors](int trans) {
    return [factors, trans](const lax::detail::FlatFunction&, std::span<const Array> x) {
      return Arrays{lu_solve(factors[0], factors[2], x[0], trans)};
    };
  };
  auto one = [&](const Array& x) {
    return lax::detail::linear_solve_flat(apply, {x}, by_lu(0), lax::detail::FlatSolver(by_lu(1)), {})[0];
  };
  if (a.ndim() == b.ndim() + 1) return one(right);
  FlatFunction column = [&](std::span<const Array> x) { return Arrays{one(x[0])}; };
  int64_t last = b.ndim() - 1;
  return vmap_flat(column, Arrays{right}, std::vector<int64_t>{last}, {last}, {"", right.shape(-1)})[0];
}

}  // namespace linalg

std::vector<PrimitiveRecord> solver_records() {
  return {linalg::triangular_solve_record(), linalg::tridiagonal_solve_record(), linalg::symmetric_product_record()};
}

}  // namespace capibara

namespace capibara::jax::lax::linalg {

namespace matrix = capibara::linalg;

Array symmetric_product(const Array& a_matrix, const Array& c_matrix, const SymmetricProductOptions& options) {
  static const Primitive p = primitive("symmetric_product");
  Array result = bind1(p, {a_matrix, c_matrix}, {{"alpha", options.alpha}, {"beta", options.beta}});
  if (!options.symmetrize_output) return result;
  Array upper = matrix::transposed(matrix::tril(result, -1));
  return add(matrix::tril(result), upper);
}

Array triangular_solve(const Array& a, const Array& b, const TriangularSolveOptions& options) {
  matrix::TriangularForm form = {options.left_side, options.lower, options.transpose_a, options.conjugate_a,
                                 options.unit_diagonal};
  if (b.ndim() != a.ndim() - 1) return matrix::triangular_solve(a, b, form);
  // A vector: one column on the left side, one row on the right.
  int64_t axis = options.left_side ? b.ndim() : b.ndim() - 1;
  return squeeze(matrix::triangular_solve(a, expand_dims(b, {axis}), form), {axis});
}

Array tridiagonal_solve(const Array& dl, const Array& d, const Array& du, const Array& b, bool perturb_singular) {
  static const Primitive p = primitive("tridiagonal_solve");
  return bind1(p, {dl, d, du, b}, {{"perturb_singular", perturb_singular}});
}

}  // namespace capibara::jax::lax::linalg
