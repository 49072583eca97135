// Merge sort between two scratch arrays, in O(n log n) comparisons by a region; always stable.
#include <unordered_map>

#include "backends/cpu/routines/linalg.h"
#include "backends/cpu/routines/routine.h"
#include "core/array/byte_count.h"
#include "lax/sort/sort.h"

namespace capibara::cpu::routines {

namespace {

// True if the region consists only of operations on single elements, without control flow.
bool is_straight(const Program& region) {
  for (const Equation& equation : region.equations()) {
    if (equation.outputs.size() != 1 || equation.outputs[0].dropped() || !equation.effects.empty()) return false;
    std::vector<DType> types;
    for (Atom input : equation.inputs) {
      if (region.type(input).rank() != 0) return false;
      types.push_back(region.type(input).dtype);
    }
    if (!is_elementwise(equation.primitive, types, region.type(equation.outputs[0]).dtype)) return false;
  }
  return region.constvars().empty();
}

Element evaluated(Builder& b, const Program& region, const std::vector<Element>& arguments) {
  std::unordered_map<int32_t, Element> known;
  for (std::size_t i = 0; i < arguments.size(); ++i) known[region.invars()[i].id] = arguments[i];
  const auto element = [&](Atom atom) {
    if (!atom.is_literal()) return known.at(atom.var().id);
    const Array& literal = region.literal(atom);
    return constant_element(b, literal.dtype(), literal.raw_data());
  };
  for (const Equation& equation : region.equations()) {
    std::vector<DType> types;
    std::vector<Element> inputs;
    for (Atom input : equation.inputs) {
      types.push_back(region.type(input).dtype);
      inputs.push_back(element(input));
    }
    const Var output = equation.outputs[0];
    known[output.id] =
        apply_elementwise(b, equation.primitive, equation.attrs, types, region.type(output).dtype, inputs);
  }
  return element(region.outputs()[0]);
}

// One of the arrays that are sorted together: its buffers, and two scratch copies of a line.
struct Operand {
  DType dtype;
  int32_t in, out, copies[2];
};

class MergeSort {
 public:
  MergeSort(Builder& builder, const Program& comparator, std::vector<Operand> operands, int64_t length)
      : b_(builder), x_(builder, DType::float32), comparator_(comparator), operands_(std::move(operands)), n_(length) {}

  // Sorts the line that starts at `base`, with elements `step` apart.
  void sort_line(const Position& base, int64_t step) {
    for (const Operand& each : operands_) {
      x_.lanes(0, n_, [&](const Position& i) { move(each.dtype, each.in, base + i * step, each.copies[0], i); });
    }
    const Value begin[] = {b_.index(1)};
    b_.repeat(
        begin, false, [&](std::span<const Value> width) { return b_.compute(Op::lt, width[0], b_.index(n_)); },
        [&](std::span<const Value> width) {
          const Value twice = b_.compute(Op::add, width[0], width[0]);
          merge_all(width[0], 0);
          merge_all(twice, 1);
          return std::vector<Value>{b_.compute(Op::add, twice, twice)};
        });
    for (const Operand& each : operands_) {
      x_.lanes(0, n_, [&](const Position& i) { move(each.dtype, each.copies[0], i, each.out, base + i * step); });
    }
  }

 private:
  void move(DType dtype, int32_t from, const Position& i, int32_t to, const Position& j) {
    store_element(b_, dtype, {to, j.offset, j.terms}, load_element(b_, dtype, {from, i.offset, i.terms}));
  }
  Value lesser(Value a, Value b) { return b_.compute(Op::select, b_.compute(Op::lt, a, b), a, b); }

  // Merges runs of `width` elements into runs of twice that.
  void merge_all(Value width, int from) {
    const Value begin[] = {b_.index(0)};
    b_.repeat(
        begin, false, [&](std::span<const Value> low) { return b_.compute(Op::lt, low[0], b_.index(n_)); },
        [&](std::span<const Value> low) {
          const Value middle = lesser(b_.compute(Op::add, low[0], width), b_.index(n_));
          const Value high = lesser(b_.compute(Op::add, middle, width), b_.index(n_));
          merge(low[0], middle, high, from);
          return std::vector<Value>{high};
        });
  }

  // Takes the element of the right run if it sorts strictly before that of the left one.
  void merge(Value low, Value middle, Value high, int from) {
    const Value one = b_.index(1), last_left = b_.compute(Op::sub, middle, one),
                last_right = b_.compute(Op::sub, high, one);
    x_.carry(Position::of(low), Position::of(high), {low, middle}, [&](const Position& to, auto next) {
      const Value i = next[0], j = next[1];
      const Value left_at = lesser(i, last_left), right_at = lesser(j, last_right);
      std::vector<Element> left, right, arguments;
      for (const Operand& each : operands_) {
        left.push_back(load_element(b_, each.dtype, {each.copies[from], 0, {{left_at, 1}}}));
        right.push_back(load_element(b_, each.dtype, {each.copies[from], 0, {{right_at, 1}}}));
        arguments.insert(arguments.end(), {right.back(), left.back()});
      }
      const Value before = evaluated(b_, comparator_, arguments).parts[0];
      const Value left_is_over = b_.compute(Op::ge, i, middle), right_is_there = b_.compute(Op::lt, j, high);
      const Value take = b_.compute(Op::bit_and, right_is_there, b_.compute(Op::bit_or, left_is_over, before));
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        const Operand& each = operands_[k];
        Element chosen = select_element(b_, take, right[k], left[k]);
        const bool kept = right[k].stored != no_value && left[k].stored != no_value;
        chosen.stored = kept ? b_.compute(Op::select, take, right[k].stored, left[k].stored) : no_value;
        store_element(b_, each.dtype, {each.copies[1 - from], to.offset, to.terms}, chosen);
      }
      const Value step = b_.convert(Op::zero_extend, Scalar::i64, take);
      return std::vector<Value>{b_.compute(Op::add, i, b_.compute(Op::sub, one, step)), b_.compute(Op::add, j, step)};
    });
  }

  Builder& b_;
  Algebra x_;
  const Program& comparator_;
  std::vector<Operand> operands_;
  int64_t n_;
};

}  // namespace

std::optional<Function> sort(const Types& inputs, const Program& comparator, int64_t dimension) {
  if (!is_straight(comparator)) return std::nullopt;
  for (const ArrayType& type : inputs) {
    if (!has_element(type.dtype)) return std::nullopt;
  }
  Function function;
  Builder b(function);
  const Shape& shape = inputs[0].shape;
  const int64_t length = shape[static_cast<std::size_t>(dimension)];
  int64_t outer = 1, step = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (d != dimension) (d < dimension ? outer : step) *= shape[static_cast<std::size_t>(d)];
  }
  std::vector<Operand> operands;
  for (const ArrayType& type : inputs) operands.push_back({type.dtype, parameter_for(b, type, false), -1, {-1, -1}});
  for (std::size_t i = 0; i < inputs.size(); ++i) operands[i].out = parameter_for(b, inputs[i], true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (int32_t& copy : operands[i].copies) copy = parameter_for(b, inputs[i].with_shape({length}), true);
  }
  if (inputs[0].size() == 0) return function;
  MergeSort lines(b, comparator, std::move(operands), length);
  each_matrix(b, outer, [&](const Position& block) {
    each_matrix(b, step, [&](const Position& inner) { lines.sort_line(block * (length * step) + inner, step); });
  });
  return function;
}

}  // namespace capibara::cpu::routines
