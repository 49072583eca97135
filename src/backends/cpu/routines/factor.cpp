// Triangular factorizations and solves, in place and row by row: cholesky, lu, triangular_solve.
#include "backends/cpu/routines/linalg.h"

#include <algorithm>
#include <limits>

#include "core/array/byte_count.h"

namespace capibara::cpu::routines {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

int64_t last(const ArrayType& type, std::size_t from_end) { return type.shape[type.shape.size() - from_end]; }

}  // namespace

int32_t parameter_for(Builder& builder, const ArrayType& type, bool written) {
  return builder.parameter(static_cast<int64_t>(byte_count(type)), written);
}

int64_t matrix_count(const ArrayType& type, std::size_t rank) {
  int64_t count = 1;
  for (std::size_t d = 0; d + rank < type.shape.size(); ++d) count *= type.shape[d];
  return count;
}

Matrix matrix_of(int32_t buffer, const ArrayType& type, const Position& number, std::size_t rank) {
  if (rank == 1) return {buffer, number * last(type, 1), 1, 0};
  return {buffer, number * (last(type, 1) * last(type, 2)), last(type, 1), 1};
}

// Row by row: everything left of an element is final when the element is computed.
//   for i: for j < i: l[i, j] = (a[i, j] - l[i, :j] . conj(l[j, :j])) / l[j, j]
//          l[i, i] = sqrt(a[i, i] - |l[i, :i]|^2)
Function cholesky(const Types& inputs, const Types& outputs, const Attrs&) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  const int64_t n = last(inputs[0], 1);
  const int32_t in = parameter_for(b, inputs[0], false), out = parameter_for(b, outputs[0], true);
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    const Matrix a = matrix_of(in, inputs[0], number), l = matrix_of(out, outputs[0], number);
    const Value good = x.carry(0, n, {b.constant_int(Scalar::i1, 1)}, [&](const Position& i, auto all_good) {
      x.range(0, i, [&](const Position& j) {
        const Element rest = x.sum(0, j, true, x.negate(x.load(a, i, j)), [&](const Position& k) {
          return x.multiply(x.load(l, i, k), x.conjugate(x.load(l, j, k)));
        });
        x.store(l, i, j, x.scale(x.negate(rest), x.over(x.number(1), x.real(x.load(l, j, j)))));
      });
      const Value taken =
          x.real_sum(0, i, true, x.number(0), [&](const Position& k) { return x.squared_size(x.load(l, i, k)); });
      const Value pivot = x.minus(x.real(x.load(a, i, i)), taken);
      x.store(l, i, i, x.element(x.root(pivot)));
      x.lanes(i + 1, n, [&](const Position& j) { x.store(l, i, j, x.zero()); });
      return std::vector<Value>{b.compute(Op::bit_and, all_good[0], b.compute(Op::gt, pivot, x.number(0)))};
    })[0];
    b.branch(
        good, [] { return std::vector<Value>(); },
        [&] {
          Element failed = x.element(x.number(nan));
          if (x.is_complex()) failed = Element(x.number(nan), x.number(nan));
          x.lanes(0, n * n, [&](const Position& i) { x.store({out, l.base, 1, 0}, i, 0, failed); });
          return std::vector<Value>();
        });
  });
  return function;
}

// Gaussian elimination, pivoting on the largest element of each column; for complex ones |real| + |imag| counts.
Function lu(const Types& inputs, const Types& outputs, const Attrs&) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  const int64_t m = last(inputs[0], 2), n = last(inputs[0], 1), steps = std::min(m, n);
  const int32_t in = parameter_for(b, inputs[0], false), out = parameter_for(b, outputs[0], true),
                out_pivots = parameter_for(b, outputs[1], true), out_order = parameter_for(b, outputs[2], true);
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    const Matrix a = matrix_of(out, outputs[0], number), pivots = matrix_of(out_pivots, outputs[1], number, 1),
                 order = matrix_of(out_order, outputs[2], number, 1);
    x.lanes(0, m * n, [&](const Position& i) { x.store({out, a.base, 1, 0}, i, 0, x.load({in, a.base, 1, 0}, i)); });
    x.lanes(0, m, [&](const Position& i) { x.store_int32(order, i, 0, i); });
    x.range(0, steps, [&](const Position& k) {
      const auto weight = [&](const Position& i) {
        const Element element = x.load(a, i, k);
        const Value size = x.absolute(element.parts[0]);
        return x.is_complex() ? x.plus(size, x.absolute(element.parts[1])) : size;
      };
      const Value chosen = x.carry(k + 1, m, {weight(k), x.value(k)}, [&](const Position& i, auto best) {
        const Value own = weight(i), larger = b.compute(Op::gt, own, best[0]);
        return std::vector<Value>{b.compute(Op::select, larger, own, best[0]),
                                  b.compute(Op::select, larger, x.value(i), best[1])};
      })[1];
      const Position p = Position::of(chosen);
      x.store_int32(pivots, k, 0, p);
      x.lanes(0, n, [&](const Position& j) {
        const Element upper = x.load(a, k, j), lower = x.load(a, p, j);
        x.store(a, k, j, lower);
        x.store(a, p, j, upper);
      });
      const auto place = [&](const Position& i) {
        const Position at = order.base + i;
        return Address{out_order, at.offset, at.terms};
      };
      const Value first = b.load(Scalar::i32, place(k)), second = b.load(Scalar::i32, place(p));
      b.store(second, place(k));
      b.store(first, place(p));
      const Element pivot = x.load(a, k, k);
      Value is_zero = b.compute(Op::eq, pivot.parts[0], x.number(0));
      if (x.is_complex()) is_zero = b.compute(Op::bit_and, is_zero, b.compute(Op::eq, pivot.parts[1], x.number(0)));
      x.range(k + 1, m, [&](const Position& i) {
        const Element below = x.load(a, i, k);
        const Element factor = x.select(is_zero, below, x.divide(below, pivot));
        x.store(a, i, k, factor);
        x.lanes(k + 1, n, [&](const Position& j) {
          x.store(a, i, j, x.subtract(x.load(a, i, j), x.multiply(factor, x.load(a, k, j))));
        });
      });
    });
  });
  return function;
}

namespace {

// Solves t X = B by substitution, X in place of B: t is triangular, treated as lower if `forward`.
struct Substitution {
  Algebra& x;
  Matrix t, right;
  int64_t n, columns;
  bool forward, conjugate, unit;

  // Row i, counted from the end for an upper triangle.
  Position row(const Position& i) const { return forward ? i : Position(n - 1) - i; }
  Element element(const Position& i, const Position& j) const {
    const Element own = x.load(t, i, j);
    return conjugate ? x.conjugate(own) : own;
  }
  Element divided(const Element& sum, const Position& i) const { return unit ? sum : x.divide(sum, element(i, i)); }

  void run() const {
    if (right.column == 1 && columns > 1) return in_vectors_of_columns();
    if (t.column == 1) return by_inner_products();
    by_updates();
  }
  void in_vectors_of_columns() const {
    x.lanes(0, columns, [&](const Position& j) {
      x.range(0, n, [&](const Position& step) {
        const Position i = row(step);
        const Element rest = x.sum(0, step, false, x.negate(x.load(right, i, j)), [&](const Position& before) {
          const Position k = row(before);
          return x.multiply(element(i, k), x.load(right, k, j));
        });
        x.store(right, i, j, divided(x.negate(rest), i));
      });
    });
  }
  void by_inner_products() const {
    x.range(0, columns, [&](const Position& j) {
      x.range(0, n, [&](const Position& step) {
        const Position i = row(step), begin = forward ? Position(0) : i + 1, end = forward ? i : Position(n);
        const Element rest = x.sum(begin, end, true, x.negate(x.load(right, i, j)),
                                   [&](const Position& k) { return x.multiply(element(i, k), x.load(right, k, j)); });
        x.store(right, i, j, divided(x.negate(rest), i));
      });
    });
  }
  void by_updates() const {
    x.range(0, columns, [&](const Position& j) {
      x.range(0, n, [&](const Position& step) {
        const Position k = row(step), begin = forward ? k + 1 : Position(0), end = forward ? Position(n) : k;
        const Element known = divided(x.load(right, k, j), k);
        x.store(right, k, j, known);
        x.lanes(begin, end, [&](const Position& i) {
          x.store(right, i, j, x.subtract(x.load(right, i, j), x.multiply(element(i, k), known)));
        });
      });
    });
  }
};

}  // namespace

Function triangular_solve(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[1].dtype);
  const bool left = attrs.boolean("left_side"), transposes = attrs.boolean("transpose_a");
  const int64_t n = last(inputs[0], 1), rows = last(inputs[1], 2), columns = last(inputs[1], 1);
  const int32_t in_a = parameter_for(b, inputs[0], false), in_b = parameter_for(b, inputs[1], false),
                out = parameter_for(b, outputs[0], true);
  x.lanes(0, inputs[1].size(), [&](const Position& i) { x.store({out, 0, 1, 0}, i, 0, x.load({in_b, 0, 1, 0}, i)); });
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    Matrix t = matrix_of(in_a, inputs[0], number), right = matrix_of(out, outputs[0], number);
    bool lower = attrs.boolean("lower");
    // X t = B is transpose(t) transpose(X) = transpose(B).
    if (transposes == left) {
      t = t.transposed();
      lower = !lower;
    }
    if (!left) right = right.transposed();
    Substitution{
        x, t, right, n, left ? columns : rows, lower, attrs.boolean("conjugate_a"), attrs.boolean("unit_diagonal")}
        .run();
  });
  return function;
}

}  // namespace capibara::cpu::routines
