// Eigenvalues and singular values by Jacobi rotations, which orthogonalise pairs of columns until all are orthogonal.
#include <algorithm>
#include <limits>

#include "backends/cpu/routines/linalg.h"

namespace capibara::cpu::routines {

namespace {

constexpr int64_t max_sweeps = 40;  // about eight are needed

// The unitary transformation of two columns p and q that zeroes their inner product, |product| * phase:
//   p, q = c p - s conj(phase) q, s p + c conj(phase) q
struct Rotation {
  Value c, s, t, size;  // t = s / c
  Element phase;
};

class Jacobi {
 public:
  explicit Jacobi(Algebra& algebra) : x(algebra), b(algebra.builder()) {}

  // `low`, `high`: squared norms of the columns, or diagonal elements.
  Rotation rotation(const Element& product, Value low, Value high) {
    Rotation r;
    r.size = x.size(product);
    const Value one = x.number(1), tau = x.over(x.minus(high, low), x.times(x.number(2), r.size));
    const Value root = x.root(x.plus(one, x.times(tau, tau)));
    r.t = b.compute(Op::copysign, x.over(one, x.plus(x.absolute(tau), root)), tau);
    r.c = x.over(one, x.root(x.plus(one, x.times(r.t, r.t))));
    r.s = x.times(r.t, r.c);
    r.phase = x.scale(product, x.over(one, r.size));
    return r;
  }

  // Rotates rows p and q of a matrix that stores columns as rows.
  void rotate(const Matrix& rows, int64_t count, const Position& p, const Position& q, const Rotation& r,
              const Element& phase) {
    const Element left = x.negate(x.scale(phase, r.s)), right = x.scale(phase, r.c);
    x.lanes(0, count, [&](const Position& i) {
      const Element one = x.load(rows, p, i), other = x.load(rows, q, i);
      x.store(rows, p, i, x.add(x.scale(one, r.c), x.multiply(left, other)));
      x.store(rows, q, i, x.add(x.scale(one, r.s), x.multiply(right, other)));
    });
  }

  // Sweeps over all pairs until no rotation was needed. `rotates` returns whether a pair was rotated.
  void sweep(int64_t n, const std::function<Value(const Position& p, const Position& q)>& rotates) {
    const Value begin[] = {b.index(0), b.constant_int(Scalar::i1, 1)};
    b.repeat(
        begin, false,
        [&](std::span<const Value> state) {
          return b.compute(Op::bit_and, state[1], b.compute(Op::lt, state[0], b.index(max_sweeps)));
        },
        [&](std::span<const Value> state) {
          const Value none = b.constant_int(Scalar::i1, 0);
          const Value any = x.carry(0, n, {none}, [&](const Position& p, auto before) {
            return x.carry(p + 1, n, {before[0]}, [&](const Position& q, auto so_far) {
              return std::vector<Value>{b.compute(Op::bit_or, so_far[0], rotates(p, q))};
            });
          })[0];
          return std::vector<Value>{b.compute(Op::add, state[0], b.index(1)), any};
        });
  }

  // Runs `write` if the condition holds; returns the condition.
  Value where(Value condition, const std::function<void()>& write) {
    return b.branch(
        condition,
        [&] {
          write();
          return std::vector<Value>{b.constant_int(Scalar::i1, 1)};
        },
        [&] { return std::vector<Value>{b.constant_int(Scalar::i1, 0)}; })[0];
  }

  Value unit_where_zero(Value number) {
    return b.compute(Op::select, b.compute(Op::eq, number, x.number(0)), x.number(1), number);
  }
  // 0 for finite numbers, NaN for others.
  Value poison(Value number) { return x.times(number, x.number(0)); }
  Element poisoned(const Element& element, Value poison) {
    Element result = element;
    for (int part = 0; part < element.count; ++part) result.parts[part] = x.plus(element.parts[part], poison);
    return result;
  }
  Value largest_part(const Element& element, Value before) {
    for (int part = 0; part < element.count; ++part)
      before = b.compute(Op::maximum, before, x.absolute(element.parts[part]));
    return before;
  }

  void set_identity(const Matrix& matrix, int64_t n) {
    x.range(0, n, [&](const Position& i) {
      x.lanes(0, n, [&](const Position& j) { x.store(matrix, i, j, x.zero()); });
      x.store(matrix, i, i, x.element(x.number(1)));
    });
  }

  // Sorts real numbers, and rows along with them, by selection.
  void sort(const Matrix& numbers, int64_t n, bool descending, const std::vector<std::pair<Matrix, int64_t>>& along) {
    x.range(0, n, [&](const Position& i) {
      const Value own = x.load_real(numbers, i);
      const std::vector<Value> best = x.carry(i + 1, n, {own, x.value(i)}, [&](const Position& j, auto so_far) {
        const Value other = x.load_real(numbers, j);
        const Value better = b.compute(descending ? Op::gt : Op::lt, other, so_far[0]);
        return std::vector<Value>{b.compute(Op::select, better, other, so_far[0]),
                                  b.compute(Op::select, better, x.value(j), so_far[1])};
      });
      const Position chosen = Position::of(best[1]);
      x.store_real(numbers, chosen, 0, own);
      x.store_real(numbers, i, 0, best[0]);
      for (const auto& [rows, count] : along) {
        x.lanes(0, count, [&](const Position& k) {
          const Element upper = x.load(rows, i, k), lower = x.load(rows, chosen, k);
          x.store(rows, i, k, lower);
          x.store(rows, chosen, k, upper);
        });
      }
    });
  }

 private:
  Algebra& x;
  Builder& b;
};

int64_t element_bytes(DType dtype) { return part_count(dtype) * byte_size(stored_type(dtype)); }

}  // namespace

// The matrix is divided by its largest element, so that squares neither overflow nor underflow.
Function eigh(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  Jacobi jacobi(x);
  const bool lower = attrs.boolean("lower");
  const int64_t n = inputs[0].shape.back();
  const int32_t in = parameter_for(b, inputs[0], false), out_vectors = parameter_for(b, outputs[0], true),
                out_values = parameter_for(b, outputs[1], true),
                scratch = b.parameter(n * n * element_bytes(x.dtype()), true);
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    // v: eigenvectors, stored as rows until the end.
    const Matrix given = matrix_of(in, inputs[0], number), v = matrix_of(out_vectors, outputs[0], number),
                 values = matrix_of(out_values, outputs[1], number, 1), a = {scratch, 0, n, 1};
    const auto triangle = [&](const Position& i, const Position& j) {  // j <= i
      return lower ? x.load(given, i, j) : x.conjugate(x.load(given, j, i));
    };
    const Value largest = x.carry(0, n, {x.number(0)}, [&](const Position& i, auto before) {
      return x.carry(0, i + 1, {before[0]}, [&](const Position& j, auto so_far) {
        return std::vector<Value>{jacobi.largest_part(triangle(i, j), so_far[0])};
      });
    })[0];
    const Value unit = jacobi.unit_where_zero(largest);
    x.range(0, n, [&](const Position& i) {
      x.range(0, i, [&](const Position& j) {
        Element element = triangle(i, j);
        for (int part = 0; part < element.count; ++part) element.parts[part] = x.over(element.parts[part], unit);
        x.store(a, i, j, element);
        x.store(a, j, i, x.conjugate(element));
      });
      x.store(a, i, i, x.element(x.over(x.real(triangle(i, i)), unit)));
    });
    jacobi.set_identity(v, n);
    const Value norm = x.real_sum(0, n * n, true, x.number(0), [&](const Position& i) {
      return x.squared_size(x.load({scratch, 0, 1, 0}, i));
    });
    const double share = x.epsilon() / (2.0 * static_cast<double>(std::max<int64_t>(n, 1)));
    const Value allowed = x.times(norm, x.number(share * share));
    jacobi.sweep(n, [&](const Position& p, const Position& q) {
      const Element product = x.load(a, p, q);
      return jacobi.where(b.compute(Op::gt, x.squared_size(product), allowed), [&] {
        const Value low = x.real(x.load(a, p, p)), high = x.real(x.load(a, q, q));
        const Rotation r = jacobi.rotation(product, low, high);
        jacobi.rotate(a, n, p, q, r, r.phase);
        x.lanes(0, n, [&](const Position& i) {
          x.store(a, i, p, x.conjugate(x.load(a, p, i)));
          x.store(a, i, q, x.conjugate(x.load(a, q, i)));
        });
        const Value shift = x.times(r.t, r.size);
        x.store(a, p, p, x.element(x.minus(low, shift)));
        x.store(a, q, q, x.element(x.plus(high, shift)));
        x.store(a, p, q, x.zero());
        x.store(a, q, p, x.zero());
        jacobi.rotate(v, n, p, q, r, x.conjugate(r.phase));
      });
    });
    const Value poison = jacobi.poison(largest);
    x.range(0, n, [&](const Position& i) {
      const Value scaled = x.times(x.real(x.load(a, i, i)), unit);
      x.store_real(values, i, 0, x.plus(scaled, poison));
    });
    jacobi.sort(values, n, false, {{v, n}});
    x.range(0, n, [&](const Position& i) {
      x.range(0, i + 1, [&](const Position& j) {
        const Element one = x.load(v, i, j), other = x.load(v, j, i);
        x.store(v, i, j, jacobi.poisoned(other, poison));
        x.store(v, j, i, jacobi.poisoned(one, poison));
      });
    });
  });
  return function;
}

// One-sided: the columns of a tall matrix, a or its adjoint, become orthogonal; their norms are the singular values.
Function svd(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  Jacobi jacobi(x);
  const Shape& shape = inputs[0].shape;
  const int64_t m = shape[shape.size() - 2], n = shape.back(), length = std::max(m, n), rank = std::min(m, n);
  const bool vectors = attrs.boolean("compute_uv"), wide = m < n;
  const int64_t basis = vectors && attrs.boolean("full_matrices") ? length : rank;
  const int32_t in = parameter_for(b, inputs[0], false), out_values = parameter_for(b, outputs[0], true);
  const int32_t out_u = vectors ? parameter_for(b, outputs[1], true) : -1,
                out_vt = vectors ? parameter_for(b, outputs[2], true) : -1;
  const int64_t bytes = element_bytes(x.dtype());
  const int32_t scratch = b.parameter(basis * length * bytes, true),
                scratch_right = vectors ? b.parameter(rank * rank * bytes, true) : -1;
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    const Matrix given = matrix_of(in, inputs[0], number), values = matrix_of(out_values, outputs[0], number, 1);
    const Matrix columns = {scratch, 0, length, 1}, right = {scratch_right, 0, rank, 1};  // stored as rows
    const Value largest = x.carry(0, m, {x.number(0)}, [&](const Position& i, auto before) {
      return x.carry(0, n, {before[0]}, [&](const Position& j, auto so_far) {
        return std::vector<Value>{jacobi.largest_part(x.load(given, i, j), so_far[0])};
      });
    })[0];
    const Value unit = jacobi.unit_where_zero(largest);
    x.range(0, rank, [&](const Position& j) {
      x.lanes(0, length, [&](const Position& i) {
        Element element = wide ? x.conjugate(x.load(given, j, i)) : x.load(given, i, j);
        for (int part = 0; part < element.count; ++part) element.parts[part] = x.over(element.parts[part], unit);
        x.store(columns, j, i, element);
      });
    });
    if (vectors) jacobi.set_identity(right, rank);
    const auto square = [&](const Position& j) {
      return x.real_sum(0, length, true, x.number(0),
                        [&](const Position& i) { return x.squared_size(x.load(columns, j, i)); });
    };
    const auto inner = [&](const Position& p, const Position& q) {
      return x.sum(0, length, true, x.zero(), [&](const Position& i) {
        return x.multiply(x.conjugate(x.load(columns, p, i)), x.load(columns, q, i));
      });
    };
    const Value allowed = x.number(x.epsilon() * x.epsilon() * static_cast<double>(length));
    jacobi.sweep(rank, [&](const Position& p, const Position& q) {
      const Value low = square(p), high = square(q);
      const Element product = inner(p, q);
      const Value limit = x.times(allowed, x.times(low, high));
      return jacobi.where(b.compute(Op::gt, x.squared_size(product), limit), [&] {
        const Rotation r = jacobi.rotation(product, low, high);
        jacobi.rotate(columns, length, p, q, r, x.conjugate(r.phase));
        if (vectors) jacobi.rotate(right, rank, p, q, r, x.conjugate(r.phase));
      });
    });
    x.range(0, rank, [&](const Position& j) { x.store_real(values, j, 0, x.root(square(j))); });
    std::vector<std::pair<Matrix, int64_t>> along = {{columns, length}};
    if (vectors) along.emplace_back(right, rank);
    jacobi.sort(values, rank, true, along);

    const Value poison = jacobi.poison(largest);
    if (vectors && basis > 0) {
      // Columns with a norm of 0 or rounding error, and those beyond the rank: made orthogonal to all earlier ones.
      const Value smallest = rank > 0 ? x.times(x.load_real(values, 0), x.number(x.epsilon())) : x.number(0);
      const auto normalize = [&](const Position& j) {
        const Value factor = x.over(x.number(1), jacobi.unit_where_zero(x.root(square(j))));
        x.lanes(0, length, [&](const Position& i) { x.store(columns, j, i, x.scale(x.load(columns, j, i), factor)); });
      };
      const auto complete = [&](const Position& j) {
        const auto weight = [&](const Position& i) {
          return x.real_sum(0, j, false, x.number(0),
                            [&](const Position& k) { return x.squared_size(x.load(columns, k, i)); });
        };
        const Value chosen = x.carry(0, length, {x.number(std::numeric_limits<double>::infinity()), b.index(0)},
                                     [&](const Position& i, auto best) {
                                       const Value own = weight(i), less = b.compute(Op::lt, own, best[0]);
                                       return std::vector<Value>{b.compute(Op::select, less, own, best[0]),
                                                                 b.compute(Op::select, less, x.value(i), best[1])};
                                     })[1];
        x.lanes(0, length, [&](const Position& i) { x.store(columns, j, i, x.zero()); });
        x.store(columns, j, Position::of(chosen), x.element(x.number(1)));
        x.range(0, 2, [&](const Position&) {
          x.range(0, j, [&](const Position& k) {
            const Element along_k = inner(k, j);
            x.lanes(0, length, [&](const Position& i) {
              x.store(columns, j, i, x.subtract(x.load(columns, j, i), x.multiply(along_k, x.load(columns, k, i))));
            });
          });
          normalize(j);
        });
      };
      x.range(0, rank, [&](const Position& j) {
        b.branch(
            b.compute(Op::gt, x.load_real(values, j), smallest),
            [&] {
              normalize(j);
              return std::vector<Value>();
            },
            [&] {
              complete(j);
              return std::vector<Value>();
            });
      });
      x.range(rank, basis, complete);
      const Matrix u = matrix_of(out_u, outputs[1], number), vt = matrix_of(out_vt, outputs[2], number);
      const auto write = [&](const Matrix& rows, int64_t count, int64_t size, bool to_u) {
        x.range(0, count, [&](const Position& j) {
          x.range(0, size, [&](const Position& i) {
            const Element element = jacobi.poisoned(x.load(rows, j, i), poison);
            if (to_u)
              x.store(u, i, j, element);
            else
              x.store(vt, j, i, x.conjugate(element));
          });
        });
      };
      write(columns, basis, length, !wide);
      write(right, rank, rank, wide);
    }
    x.range(0, rank, [&](const Position& j) {
      const Value scaled = x.times(x.load_real(values, j), unit);
      x.store_real(values, j, 0, x.plus(scaled, poison));
    });
  });
  return function;
}

}  // namespace capibara::cpu::routines
