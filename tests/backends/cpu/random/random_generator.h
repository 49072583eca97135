// The generator of random programs: values with bounds on their size and error, and the operations it draws from.
//
// Comparing two backends needs values whose error is known. Each value has a bound on its elements and a bound on the
// difference between two correct implementations, and every operation propagates both:
//   - identical bits: integers, booleans, data movement, and operations that IEEE 754 rounds correctly (add, sub, mul,
//     div, sqrt, comparisons, conversions, ...) of operands with identical bits; a sum with a product may be fused,
//     which saves one rounding;
//   - transcendental functions differ by 8 units in the last place (special functions by 64) of the largest result,
//     plus the operand's error times the largest derivative; below 32 bits, where float32 is rounded, by 1.2 units;
//   - sums and products of n terms by 2 + n / 4 units of the sum's bound; 16-bit floats accumulate in float32.
// Discontinuous operations (comparison, rounding, conversion to integers, argmax, sorting with values) only take
// operands with identical bits. Inputs are moved away from poles; growing values are scaled down. A loop's carry has a
// gain, the factor by which an iteration propagates its error; if it is above one the carry is scaled down.
#pragma once

#include "backends/cpu/random/random_programs.h"
#include "backends/cpu/random/random_value.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include <optional>

namespace capibara::random_programs {

namespace lax = capibara::jax::lax;

class Generator {
 public:
  Generator(uint64_t seed, Kind kind);
  RandomProgram make();

 private:
  // The state of one body: the values made so far, and how often it runs.
  struct Scope {
    std::vector<Value> pool;
    std::vector<int> uses;
    int depth = 0;
    int64_t repeats = 1;
  };
  using Operation = Value (Generator::*)(const Value&);
  struct Entry {
    int weight;     // in programs of any kind
    int on_meshes;  // weight in programs for meshes
    Operation operation;
  };

  // values (random_values.cpp)
  Value made(const Array& array, double bound, const Error& error, double units = 0);
  Value moved(const Array& array, const Value& from);
  // The result of a correctly rounded operation of IEEE 754.
  Value rounds(const Array& array, double bound, const Error& error) {
    return made(array, bound, error, error.none() ? 0 : 1);
  }
  Value summed(const Array& array, const Value& x, const Value& y);
  Value joined(const Array& array, std::initializer_list<Value> parts);  // every element comes from one of the parts
  Array number(DType dtype, double value);
  Value constant(DType dtype, const Shape& shape);
  Value pick();
  Value pick_exact();
  Value pick_of(DType dtype, bool exact);
  Value tame(const Value& x, double limit);
  Value converted(const Value& x, DType dtype);
  Value shaped(const Value& x, const Shape& shape);
  Value repeated(const Value& flat, int64_t count);
  Value like(const Shape& shape, DType dtype, bool exact = false);
  Value index_number();  // int32[], small, exact
  int64_t axis_of(const Value& x);
  bool fits(const Shape& shape) const;
  void require(bool condition) const {
    if (!condition) throw Unfit{};
  }
  void keep(const Value& value);
  DType any_dtype() { return dice_.pick(dtypes_); }
  Shape any_shape(int64_t max_rank);
  void steps(int count);
  Value step(const Value& x);

  // elementwise (random_elementwise.cpp)
  Value unary(const Value& x);
  Value binary(const Value& x);
  Value choice(const Value& x);
  Value conversion(const Value& x);
  Value creation(const Value& x);
  Value smooth(const Value& x);
  Value stepped(const Value& x);
  Value complex_unary(const Value& x);
  Value integer_unary(const Value& x);
  Value compared(const Value& x, const Value& y);
  Value divided(const Value& x, const Value& y);

  // movement (random_movement.cpp)
  Value movement(const Value& x);
  Value indexed(const Value& x);
  Value slice(const Value& x);
  Value pad(const Value& x);
  Value concatenate(const Value& x);
  Value broadcast(const Value& x);
  Value reshape(const Value& x);
  Value dynamic_slice(const Value& x);
  Value dynamic_update(const Value& x);
  Value gather(const Value& x);
  Value scatter(const Value& x);

  // along axes (random_reductions.cpp)
  // True if the order of products cannot matter: in another order, a zero may or may not be multiplied by an infinity.
  bool has_order() const { return kind_ == Kind::any || !wild_; }
  Value reduction(const Value& x);
  Value row_pattern(const Value& x);
  Value cumulative(const Value& x);
  Value sorted(const Value& x);
  Value contraction(const Value& x);
  Value window(const Value& x);
  Value sum(const Value& x, const Ints& axes);
  Value mean(const Value& x, const Ints& axes);

  // operations that the partitioner treats specially (random_divided.cpp)
  struct Slides {
    Ints windows, strides, dilations;
    lax::Padding padding;
  };
  Slides slides(const Shape& shape);
  struct Places {
    Array indices;          // [..., n]
    Ints counts;            // its leading dimensions
    Ints slices;            // of the operand
    Ints single, batches;   // dimensions of the operand: size-one slices, and batching dimensions
    Ints indexed, batched;  // dimension of each index component; batch dimensions in `counts`
    Ints windows;           // positions of the other dimensions in the slices
  };
  Places places(const Value& x);
  Value sliding_window(const Value& x);
  Value convolution(const Value& x);
  Value gather_places(const Value& x);
  Value scatter_places(const Value& x);
  Value extreme_place(const Value& x);
  Value draws(const Value& x);
  Value copies(const Value& x);

  // control flow (random_control.cpp)
  Value control(const Value& x);
  struct Carry {
    Value init;
    double bound;
    bool exact;
  };
  std::vector<Carry> carries(const Value& x);
  Value carried(const Carry& carry, const Array& array) const;
  Value next_carry(const Carry& carry, const Value& now);
  void enter(Scope& inner, Scope& outer, int64_t repeats);
  std::vector<Value> after_loop(const std::vector<Carry>& carries, const std::vector<Value>& next, const Arrays& arrays,
                                int64_t trips, Error& greatest_carry);
  Value scan(const Value& x);
  Value while_loop(const Value& x);
  Value branches(const Value& x);
  Value buffer_loop(const Value& x);
  Value call(const Value& x);

  uint64_t seed_;
  Kind kind_;
  Dice dice_;
  std::vector<DType> dtypes_;
  Ints sizes_;
  int64_t max_elements_ = 0;
  int equations_ = 0, max_equations_ = 0;
  bool wild_ = false;  // inputs hold NaN, infinities, zeros of both signs
  Scope* scope_ = nullptr;
};

}  // namespace capibara::random_programs
