// Householder reflectors: geqrf stores them below R, householder_product multiplies them. H = 1 - tau v adjoint(v).
#include <algorithm>

#include "backends/cpu/routines/linalg.h"

namespace capibara::cpu::routines {

namespace {

// H or adjoint(H) times the columns [begin, end) of a, where v is 1 at row k and a[k+1:m, k] below.
void reflect(Algebra& x, const Matrix& a, int64_t m, const Position& k, const Position& begin, const Position& end,
             const Element& tau) {
  x.lanes(begin, end, [&](const Position& j) {
    const Element inner = x.sum(k + 1, m, false, x.load(a, k, j), [&](const Position& i) {
      return x.multiply(x.conjugate(x.load(a, i, k)), x.load(a, i, j));
    });
    const Element part = x.multiply(tau, inner);
    x.store(a, k, j, x.subtract(x.load(a, k, j), part));
    x.range(k + 1, m, [&](const Position& i) {
      x.store(a, i, j, x.subtract(x.load(a, i, j), x.multiply(x.load(a, i, k), part)));
    });
  });
}

// The square root of |a[k+1:m, k]|^2 + more, summed in 64 bits, where squares of float32 cannot over- or underflow.
Value norm_below(Algebra& x, const Matrix& a, int64_t m, const Position& k, const Element* more) {
  Builder& b = x.builder();
  const auto wide = [&](Value part) { return b.convert(Op::float_convert, Scalar::f64, part); };
  const auto square = [&](const Element& element) {
    Value sum = no_value;
    for (int part = 0; part < element.count; ++part) {
      const Value own = x.times(wide(element.parts[part]), wide(element.parts[part]));
      sum = part == 0 ? own : x.plus(sum, own);
    }
    return sum;
  };
  const Value start = more ? square(*more) : b.constant(Scalar::f64, 0);
  const Value sum = x.real_sum(k + 1, m, false, start, [&](const Position& i) { return square(x.load(a, i, k)); });
  return b.convert(Op::float_convert, computed_type(x.real_dtype()), x.root(sum));
}

}  // namespace

// LAPACK's convention: beta has the opposite sign of alpha, tau = (beta - alpha) / beta, v = x / (alpha - beta).
Function geqrf(const Types& inputs, const Types& outputs, const Attrs&) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  const Shape& shape = inputs[0].shape;
  const int64_t m = shape[shape.size() - 2], n = shape.back(), steps = std::min(m, n);
  const int32_t in = parameter_for(b, inputs[0], false), out = parameter_for(b, outputs[0], true),
                out_taus = parameter_for(b, outputs[1], true);
  x.lanes(0, inputs[0].size(), [&](const Position& i) { x.store({out, 0, 1, 0}, i, 0, x.load({in, 0, 1, 0}, i)); });
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    const Matrix a = matrix_of(out, outputs[0], number), taus = matrix_of(out_taus, outputs[1], number, 1);
    x.range(0, steps, [&](const Position& k) {
      const Element alpha = x.load(a, k, k);
      const Value zero = x.number(0), one = x.number(1), below = norm_below(x, a, m, k, nullptr);
      Value is_done = b.compute(Op::eq, below, zero);
      if (x.is_complex()) is_done = b.compute(Op::bit_and, is_done, b.compute(Op::eq, alpha.parts[1], zero));
      const Value norm = norm_below(x, a, m, k, &alpha);
      const Value beta = b.compute(Op::neg, b.compute(Op::copysign, norm, alpha.parts[0]));
      const Value safe = b.compute(Op::select, is_done, one, beta);
      Element tau = x.element(b.compute(Op::select, is_done, zero, x.over(x.minus(beta, alpha.parts[0]), safe)));
      if (x.is_complex()) {
        const Value imaginary = b.compute(Op::neg, x.over(alpha.parts[1], safe));
        tau.parts[1] = b.compute(Op::select, is_done, zero, imaginary);
      }
      const Element difference = x.subtract(alpha, x.element(beta));
      const Element divisor = x.select(is_done, x.element(one), difference);
      const Element factor = x.divide(x.element(one), divisor);
      x.range(k + 1, m, [&](const Position& i) { x.store(a, i, k, x.multiply(x.load(a, i, k), factor)); });
      x.store(taus, k, 0, tau);
      x.store(a, k, k, x.select(is_done, alpha, x.element(beta)));
      reflect(x, a, m, k, k + 1, n, x.conjugate(tau));
    });
  });
  return function;
}

// Starts with the last reflector, so that earlier ones meet columns of the identity that are still unwritten.
Function householder_product(const Types& inputs, const Types& outputs, const Attrs&) {
  Function function;
  Builder b(function);
  Algebra x(b, inputs[0].dtype);
  const Shape& shape = inputs[0].shape;
  const int64_t m = shape[shape.size() - 2], n = shape.back(), reflectors = inputs[1].shape.back();
  const int32_t in = parameter_for(b, inputs[0], false), in_taus = parameter_for(b, inputs[1], false),
                out = parameter_for(b, outputs[0], true);
  each_matrix(b, matrix_count(inputs[0]), [&](const Position& number) {
    const Matrix a = matrix_of(in, inputs[0], number), q = matrix_of(out, outputs[0], number),
                 taus = matrix_of(in_taus, inputs[1], number, 1);
    const Element zero = x.zero(), one = x.element(x.number(1));
    x.range(0, m, [&](const Position& i) {
      x.lanes(0, reflectors, [&](const Position& j) { x.store(q, i, j, x.load(a, i, j)); });
      x.lanes(reflectors, n, [&](const Position& j) { x.store(q, i, j, zero); });
    });
    x.range(reflectors, n, [&](const Position& j) { x.store(q, j, j, one); });
    x.range(0, reflectors, [&](const Position& step) {
      const Position k = Position(reflectors - 1) - step;
      const Element tau = x.load(taus, k);
      reflect(x, q, m, k, k + 1, n, tau);
      x.range(0, k, [&](const Position& i) { x.store(q, i, k, zero); });
      x.store(q, k, k, x.subtract(one, tau));
      x.range(k + 1, m, [&](const Position& i) { x.store(q, i, k, x.negate(x.multiply(tau, x.load(q, i, k)))); });
    });
  });
  return function;
}

}  // namespace capibara::cpu::routines
