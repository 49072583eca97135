// Arithmetic on elements, addresses of matrices, and loops over positions.
#include "backends/cpu/routines/algebra.h"

#include "program/ir/handles.h"

namespace capibara::cpu::routines {

Position Position::operator+(const Position& other) const {
  Position result = *this;
  result.offset += other.offset;
  for (const Term& term : other.terms) {
    bool known = false;
    for (Term& own : result.terms) {
      if (own.index != term.index) continue;
      own.factor += term.factor;
      known = true;
    }
    if (!known) result.terms.push_back(term);
  }
  std::erase_if(result.terms, [](const Term& term) { return term.factor == 0; });
  return result;
}

Position Position::operator*(int64_t factor) const {
  Position result;
  result.offset = offset * factor;
  if (factor == 0) return result;
  for (const Term& term : terms) result.terms.push_back({term.index, term.factor * factor});
  return result;
}

Algebra::Algebra(Builder& builder, DType dtype)
    : b_(builder),
      dtype_(dtype),
      real_(capibara::real_dtype(dtype)),
      scalar_(computed_type(real_)),
      complex_(capibara::is_complex(dtype)) {}

Element Algebra::element(Value real) { return complex_ ? Element(real, number(0)) : Element(real); }

Element Algebra::add(const Element& a, const Element& b) {
  Element result = a;
  for (int part = 0; part < a.count; ++part) result.parts[part] = plus(a.parts[part], b.parts[part]);
  return result;
}

Element Algebra::subtract(const Element& a, const Element& b) {
  Element result = a;
  for (int part = 0; part < a.count; ++part) result.parts[part] = minus(a.parts[part], b.parts[part]);
  return result;
}

Element Algebra::multiply(const Element& a, const Element& b) {
  if (!complex_) return Element(times(a.parts[0], b.parts[0]));
  return {minus(times(a.parts[0], b.parts[0]), times(a.parts[1], b.parts[1])),
          plus(times(a.parts[0], b.parts[1]), times(a.parts[1], b.parts[0]))};
}

Element Algebra::scale(const Element& a, Value real) {
  Element result = a;
  for (int part = 0; part < a.count; ++part) result.parts[part] = times(a.parts[part], real);
  return result;
}

Element Algebra::divide(const Element& a, const Element& b) {
  if (!complex_) return Element(over(a.parts[0], b.parts[0]));
  const DType types[] = {dtype_, dtype_};
  const Element both[] = {a, b};
  return apply_elementwise(b_, prim::div(), {}, types, dtype_, both);
}

Element Algebra::conjugate(const Element& a) {
  return complex_ ? Element(a.parts[0], b_.compute(Op::neg, a.parts[1])) : a;
}

Element Algebra::negate(const Element& a) {
  Element result = a;
  for (int part = 0; part < a.count; ++part) result.parts[part] = b_.compute(Op::neg, a.parts[part]);
  return result;
}

Value Algebra::squared_size(const Element& a) {
  const Value square = times(a.parts[0], a.parts[0]);
  return complex_ ? plus(square, times(a.parts[1], a.parts[1])) : square;
}

Address Algebra::address(const Matrix& matrix, const Position& i, const Position& j) const {
  const Position place = matrix.base + i * matrix.row + j * matrix.column;
  return {matrix.buffer, place.offset, place.terms};
}

Element Algebra::load(const Matrix& matrix, const Position& i, const Position& j) {
  Element element = load_element(b_, dtype_, address(matrix, i, j));
  element.stored = no_value;
  return element;
}

void Algebra::store(const Matrix& matrix, const Position& i, const Position& j, const Element& element) {
  Element plain = element;
  plain.stored = no_value;
  store_element(b_, dtype_, address(matrix, i, j), plain);
}

Value Algebra::load_real(const Matrix& matrix, const Position& i, const Position& j) {
  return load_element(b_, real_, address(matrix, i, j)).parts[0];
}

void Algebra::store_real(const Matrix& matrix, const Position& i, const Position& j, Value value) {
  store_element(b_, real_, address(matrix, i, j), Element(value));
}

void Algebra::store_int32(const Matrix& matrix, const Position& i, const Position& j, const Position& value) {
  b_.store(b_.convert(Op::narrow, Scalar::i32, this->value(value)), address(matrix, i, j));
}

Value Algebra::value(const Position& position) {
  Value sum = b_.index(position.offset);
  for (const Term& term : position.terms)
    sum = b_.compute(Op::add, sum, b_.compute(Op::mul, term.index, b_.index(term.factor)));
  return sum;
}

std::vector<Value> Algebra::counted(const Position& begin, const Position& end, bool lanes,
                                    std::span<const Builder::Initial> initial, const Step& step) {
  const Position extent = end - begin;
  Builder::LoopOptions options{.lanes = lanes};
  if (!extent.terms.empty()) options.extent_value = value(extent);
  return b_.loop(
      extent.terms.empty() ? std::max<int64_t>(0, extent.offset) : 0, options, initial,
      [&](Value index, std::span<const Value> carried) { return step(begin + Position::of(index), carried); });
}

void Algebra::loop(const Position& begin, const Position& end, bool lanes, const Body& body) {
  counted(begin, end, lanes, {}, [&](const Position& at, std::span<const Value>) {
    body(at);
    return std::vector<Value>();
  });
}

Value Algebra::real_sum(const Position& begin, const Position& end, bool lanes, Value start,
                        const std::function<Value(const Position&)>& term) {
  const Builder::Initial initial[] = {{start, Op::add, b_.constant(b_.type(start), 0)}};
  return counted(begin, end, lanes, initial, [&](const Position& at, std::span<const Value> sums) {
    return std::vector<Value>{plus(sums[0], term(at))};
  })[0];
}

Element Algebra::sum(const Position& begin, const Position& end, bool lanes, const Element& start,
                     const std::function<Element(const Position&)>& term) {
  std::vector<Builder::Initial> initial;
  for (int part = 0; part < start.count; ++part) initial.push_back({start.parts[part], Op::add, number(0)});
  const std::vector<Value> sums =
      counted(begin, end, lanes, initial, [&](const Position& at, std::span<const Value> carried) {
        const Element more = term(at);
        std::vector<Value> next;
        for (int part = 0; part < start.count; ++part)
          next.push_back(plus(carried[static_cast<std::size_t>(part)], more.parts[part]));
        return next;
      });
  Element result = start;
  for (int part = 0; part < start.count; ++part) result.parts[part] = sums[static_cast<std::size_t>(part)];
  return result;
}

std::vector<Value> Algebra::carry(const Position& begin, const Position& end, const std::vector<Value>& initial,
                                  const Step& step) {
  std::vector<Builder::Initial> list;
  for (Value value : initial) list.push_back({value});
  return counted(begin, end, false, list, step);
}

void Algebra::when(Value condition, const std::function<void()>& yes) {
  b_.branch(
      condition,
      [&] {
        yes();
        return std::vector<Value>();
      },
      [] { return std::vector<Value>(); });
}

void each_matrix(Builder& builder, int64_t count, const std::function<void(const Position& number)>& body) {
  builder.loop(count, {}, {}, [&](Value index, std::span<const Value>) {
    body(Position::of(index));
    return std::vector<Value>();
  });
}

}  // namespace capibara::cpu::routines
