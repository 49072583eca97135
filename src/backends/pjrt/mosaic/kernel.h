// Builds a TPU kernel and prints it as Mosaic text: its grid, the windows of its operands, its scratch, its body.
//
// A kernel runs its body once per point of the grid. Each operand is cut into windows: a map from the point to a
// block's index says which window the body finds in VMEM; the compiler moves windows, with two buffers each. The text
// is MLIR in generic form, which libtpu reads from the body of a custom call; nothing of MLIR is needed to write it.
#pragma once

#include <capibara/array.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capibara::mosaic {

// The tiles of 32-bit elements in VMEM.
inline constexpr int64_t lanes = 128, sublanes = 8;

enum class Element : std::uint8_t { f32, bf16, i32, i8, i1, index };
const char* name_of(Element element);
int64_t bytes_of(Element element);
std::optional<Element> element_of(DType dtype);  // nullopt: kernels have no such type

enum class Memory : std::uint8_t { vmem, smem };

class Kernel;

// A scalar, or a vector with a shape.
struct Value {
  Kernel* kernel;
  std::string name;
  Element element;
  std::optional<Shape> shape;  // nullopt: a scalar
};

// A window, a prefetched array of scalars, or scratch. Loads and stores are of all of it, without leading dimensions of
// size 1: a window of 1x1x128x64 is a matrix of 128x64.
struct Ref {
  std::string name;
  Element element;
  Shape shape;
  Memory memory;
};

// A point of the grid, from which the index of a block is computed, one i32 per dimension.
struct Point {
  Kernel& kernel;
  std::vector<Value> at;
  const std::vector<Ref>& prefetched;
};
using BlockIndex = std::function<std::vector<Value>(const Point&)>;

class Kernel {
 public:
  enum class Order : std::uint8_t { parallel, arbitrary };
  struct Dimension {
    int64_t size;
    Order order;  // arbitrary: steps follow one another and may accumulate
  };

  Kernel(std::string name, std::vector<Dimension> grid);
  Kernel(const Kernel&) = delete;

  // ---- operands, in the order of the call, then scratch; before the body ----
  Ref prefetch(const std::string& name, const ArrayType& type);  // int32, whole in SMEM before the first step
  Ref input(const std::string& name, const ArrayType& type, Shape block, BlockIndex index);
  Ref output(const std::string& name, const ArrayType& type, Shape block, BlockIndex index);
  Ref scratch(const std::string& name, Element element, Shape shape);

  // ---- the body ----
  Value point(std::size_t dimension);  // the index in a dimension of the grid
  Value constant(double value, Element element = Element::i32);
  Value filled(double value, Element element, Shape shape);
  Value iota(Shape shape, int64_t axis);
  Value load(const Ref& ref);
  Value load(const Ref& ref, const Value& index);  // of a prefetched vector
  void store(const Value& value, const Ref& ref);
  // The part of size 1 at an index of a dimension other than the last.
  Value load(const Ref& ref, std::size_t dimension, const Value& index);
  void store(const Value& value, const Ref& ref, std::size_t dimension, const Value& index);
  Value convert(const Value& value, Element element);
  Value broadcast(const Value& value, const Shape& shape);
  Value transpose(const Value& value);
  Value first_rows(const Value& value, int64_t rows);
  Value first_columns(const Value& value, int64_t columns);
  enum class Reduction : std::uint8_t { add, max };
  Value reduce(Reduction kind, const Value& value, int64_t axis);  // the axis stays, with size 1
  // Sums over the given dimension of each matrix, in float32; `exact`: with all bits of float32 operands.
  Value matmul(const Value& a, int64_t a_inner, const Value& b, int64_t b_inner, bool exact);
  Value select(const Value& condition, const Value& yes, const Value& no);
  void when(const Value& condition, const std::function<void()>& then);
  // Calls the body with the index of an iteration and the values of the previous one; returns the last values.
  using Body = std::function<std::vector<Value>(const Value& index, const std::vector<Value>& carry)>;
  std::vector<Value> loop(int64_t count, const std::vector<Value>& start, const Body& body);

  // Elementwise: scalars and dimensions of size 1 are broadcast.
  Value binary(const char* of_floats, const char* of_integers, Value a, Value b);
  Value unary(const char* operation, const Value& value);
  Value compare(int float_predicate, int integer_predicate, Value a, Value b);

  // ---- the finished kernel ----
  // Checks windows and memory; raises ValueError with the kernel, the operand and the limit.
  void finish();
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  int64_t vmem_bytes() const { return vmem_bytes_; }
  // The attributes of its custom call, without those of layouts: backend_config and kernel_name.
  std::string call_attributes() const;
  std::vector<ArrayType> results() const;

  struct Cost {
    int64_t flops = 0, transcendentals = 0, bytes = 0;
  };
  Cost cost;  // the compiler's scheduler reads it

 private:
  struct Window {
    Ref ref;
    ArrayType type;
    BlockIndex index;
  };

  std::string fresh() { return "%" + std::to_string(next_++); }
  void line(const std::string& text);
  Value emit(const std::string& operation, const std::vector<Value>& inputs, Element element,
             std::optional<Shape> shape, const std::string& attributes = "");
  Value shape_cast(const Value& value, const Shape& shape);
  struct Access {
    Shape shape;
    std::string indices, types;  // after the reference
  };
  Access access(const Ref& ref, std::optional<std::size_t> dimension, const Value* index);
  Value load_part(const Ref& ref, const Access& part);
  void store_part(const Value& value, const Ref& ref, const Access& part);
  Value integer(int64_t value, Element element);
  void align(Value& a, Value& b, const char* operation);
  [[noreturn]] void refuse(const std::string& what) const;
  Ref window(const std::string& name, const ArrayType& type, Shape block, BlockIndex index, bool is_output);
  std::vector<Ref> arguments() const;
  std::string transform(const Window& window, std::size_t number);
  void check();

  std::string name_;
  std::vector<Dimension> grid_;
  std::vector<Ref> prefetched_, scratch_;
  std::vector<ArrayType> prefetched_types_;
  std::vector<Window> inputs_, outputs_;
  std::string body_, text_;
  int indent_ = 2;
  int64_t next_ = 0, vmem_bytes_ = 0;
};

// The memory of VMEM that kernels may use unless an option of the compiler says otherwise.
inline constexpr int64_t vmem_limit = 16 << 20;

std::string to_string(const Value& value);

// A C++ number takes the element type of the other operand.
Value like(const Value& value, double number);
inline Value operator+(const Value& a, const Value& b) { return a.kernel->binary("addf", "addi", a, b); }
inline Value operator-(const Value& a, const Value& b) { return a.kernel->binary("subf", "subi", a, b); }
inline Value operator*(const Value& a, const Value& b) { return a.kernel->binary("mulf", "muli", a, b); }
inline Value operator/(const Value& a, const Value& b) { return a.kernel->binary("divf", "divsi", a, b); }
inline Value operator+(const Value& a, double b) { return a + like(a, b); }
inline Value operator-(const Value& a, double b) { return a - like(a, b); }
inline Value operator*(const Value& a, double b) { return a * like(a, b); }
inline Value operator/(const Value& a, double b) { return a / like(a, b); }
inline Value max(const Value& a, const Value& b) { return a.kernel->binary("maximumf", "maxsi", a, b); }
inline Value min(const Value& a, const Value& b) { return a.kernel->binary("minimumf", "minsi", a, b); }
inline Value operator&(const Value& a, const Value& b) { return a.kernel->binary("", "andi", a, b); }
inline Value operator|(const Value& a, const Value& b) { return a.kernel->binary("", "ori", a, b); }
inline Value operator^(const Value& a, const Value& b) { return a.kernel->binary("", "xori", a, b); }
inline Value shift_left(const Value& a, int bits) { return a.kernel->binary("", "shli", a, like(a, bits)); }
inline Value shift_right(const Value& a, int bits) {
  return a.kernel->binary("", "shrui", a, like(a, bits));
}  // fills with zeros
// The numbers of MLIR's predicates; those of floats are ordered, false for NaN.
inline Value equal(const Value& a, const Value& b) { return a.kernel->compare(1, 0, a, b); }
inline Value less(const Value& a, const Value& b) { return a.kernel->compare(4, 2, a, b); }
inline Value less_equal(const Value& a, const Value& b) { return a.kernel->compare(5, 3, a, b); }
inline Value abs(const Value& x) { return x.kernel->unary("math.absf", x); }
inline Value tanh(const Value& x) { return x.kernel->unary("math.tanh", x); }
inline Value log1p(const Value& x) { return x.kernel->unary("math.log1p", x); }
inline Value exp(const Value& x) { return x.kernel->unary("math.exp", x); }
inline Value log(const Value& x) { return x.kernel->unary("math.log", x); }
inline Value logistic(const Value& x) { return like(x, 1) / (exp(like(x, 0) - x) + like(x, 1)); }
// log(1 + exp(x)) without overflow.
inline Value softplus(const Value& x) { return max(x, like(x, 0)) + log1p(exp(like(x, 0) - abs(x))); }
inline Value rsqrt(const Value& x) { return x.kernel->unary("math.rsqrt", x); }

}  // namespace capibara::mosaic
