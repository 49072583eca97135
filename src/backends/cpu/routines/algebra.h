// Matrices in memory and arithmetic on their elements, real and complex: the vocabulary in which routines of linear
// algebra and Fourier transforms are written.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/cpu/elements/element.h"

namespace capibara::cpu::routines {

// A position along one dimension: a sum of loop indices and a number.
struct Position {
  std::vector<Term> terms;
  int64_t offset = 0;

  Position(int64_t number = 0) : offset(number) {}  // NOLINT: numbers are positions
  static Position of(Value index) {
    Position result;
    result.terms.push_back({index, 1});
    return result;
  }
  Position operator+(const Position& other) const;
  Position operator-(const Position& other) const { return *this + other * -1; }
  Position operator*(int64_t factor) const;
};

// Rows and columns with their strides, in elements; `base` is the offset of the first element.
struct Matrix {
  int32_t buffer = 0;
  Position base = {};
  int64_t row = 0, column = 1;

  Matrix transposed() const { return {buffer, base, column, row}; }
};

class Algebra {
 public:
  // `dtype`: of the elements, float32, float64 or the complex numbers of these.
  Algebra(Builder& builder, DType dtype);

  // ---- elements; a real number of the same width is a Value -------------------------------------------------------
  bool is_complex() const { return complex_; }
  DType dtype() const { return dtype_; }
  DType real_dtype() const { return real_; }
  Value number(double value) { return b_.constant(scalar_, value); }
  double epsilon() const { return scalar_ == Scalar::f64 ? 0x1p-52 : 0x1p-23; }
  Element element(Value real);  // without an imaginary part
  Element zero() { return element(number(0)); }
  Element add(const Element& a, const Element& b);
  Element subtract(const Element& a, const Element& b);
  Element multiply(const Element& a, const Element& b);
  Element scale(const Element& a, Value real);
  Element divide(const Element& a, const Element& b);
  Element conjugate(const Element& a);
  Element negate(const Element& a);
  Element select(Value condition, const Element& a, const Element& b) { return select_element(b_, condition, a, b); }
  Value real(const Element& a) { return a.parts[0]; }
  Value squared_size(const Element& a);
  Value size(const Element& a) { return complex_ ? root(squared_size(a)) : absolute(a.parts[0]); }
  Value root(Value a) { return b_.compute(Op::sqrt, a); }
  Value absolute(Value a) { return b_.compute(Op::abs, a); }
  Value plus(Value a, Value b) { return b_.compute(Op::add, a, b); }
  Value minus(Value a, Value b) { return b_.compute(Op::sub, a, b); }
  Value times(Value a, Value b) { return b_.compute(Op::mul, a, b); }
  Value over(Value a, Value b) { return b_.compute(Op::div, a, b); }
  Value is_nan(Value a) { return b_.compute(Op::ne, a, a); }

  // ---- memory -----------------------------------------------------------------------------------------------------
  Element load(const Matrix& matrix, const Position& i, const Position& j = 0);
  void store(const Matrix& matrix, const Position& i, const Position& j, const Element& element);
  // Real numbers in separate arrays.
  Value load_real(const Matrix& matrix, const Position& i, const Position& j = 0);
  void store_real(const Matrix& matrix, const Position& i, const Position& j, Value value);
  void store_int32(const Matrix& matrix, const Position& i, const Position& j, const Position& value);

  // ---- loops over [begin, end) ------------------------------------------------------------------------------------
  using Body = std::function<void(const Position&)>;
  void range(const Position& begin, const Position& end, const Body& body) { loop(begin, end, false, body); }
  // Independent iterations: they may be vectorised.
  void lanes(const Position& begin, const Position& end, const Body& body) { loop(begin, end, true, body); }
  // start + term(begin) + term(begin + 1) + ...
  Element sum(const Position& begin, const Position& end, bool lanes, const Element& start,
              const std::function<Element(const Position&)>& term);
  Value real_sum(const Position& begin, const Position& end, bool lanes, Value start,
                 const std::function<Value(const Position&)>& term);
  // Values of any type carried from one iteration to the next.
  using Step = std::function<std::vector<Value>(const Position&, std::span<const Value>)>;
  std::vector<Value> carry(const Position& begin, const Position& end, const std::vector<Value>& initial,
                           const Step& step);
  void when(Value condition, const std::function<void()>& yes);

  Value value(const Position& position);  // as a 64-bit integer
  Builder& builder() { return b_; }

 private:
  Address address(const Matrix& matrix, const Position& i, const Position& j) const;
  std::vector<Value> counted(const Position& begin, const Position& end, bool lanes,
                             std::span<const Builder::Initial> initial, const Step& step);
  void loop(const Position& begin, const Position& end, bool lanes, const Body& body);

  Builder& b_;
  DType dtype_, real_;
  Scalar scalar_;
  bool complex_;
};

// Calls body for each of `count` matrices, numbered in row-major order of the leading dimensions.
void each_matrix(Builder& builder, int64_t count, const std::function<void(const Position& number)>& body);

}  // namespace capibara::cpu::routines
