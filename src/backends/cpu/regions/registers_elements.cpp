// The elements of small values, one by one: moved, reduced, multiplied, or computed.
#include <algorithm>

#include "backends/cpu/regions/registers_writer.h"
#include "program/ir/handles.h"

namespace capibara::cpu::registers {

Slot Writer::write_elements(const Program& program, const Equation& equation, int number,
                            const std::vector<Slot>& inputs) {
  const Primitive& primitive = equation.primitive;
  const ArrayType& type = program.type(equation.outputs[at(number)]);
  Slot slot{type, {}, {}};
  if (primitive == prim::dynamic_slice()) return dynamic_slice(type, inputs);
  if (primitive == prim::dynamic_update_slice()) return dynamic_update_slice(type, inputs);
  std::vector<DType> dtypes;
  for (const Slot& input : inputs) dtypes.push_back(input.type.dtype);
  if (runs_in_lanes(equation, type)) return function_in_lanes(equation, type, inputs[0]);
  for (int64_t k = 0; k < type.size(); ++k) {
    const Index index = constant_index(k, type.shape);
    if (primitive == prim::iota()) {
      const int64_t position = index[at(equation.attrs.integer("dimension"))].constant;
      slot.elements.push_back(convert_element(builder_, DType::int64, type.dtype, Element(builder_.index(position))));
    } else if (moves_elements(equation.primitive)) {
      // Only optimization_barrier has several results: each one is the corresponding operand.
      slot.elements.push_back(
          element(inputs[at(number)], *moved_index(equation, index, inputs[at(number)].type.shape, type.shape, {})));
    } else if (primitive == prim::concatenate()) {
      slot.elements.push_back(concatenated(equation, index, inputs));
    } else if (primitive == prim::split()) {
      slot.elements.push_back(part_of_split(equation, index, number, inputs[0]));
    } else if (primitive == prim::pad()) {
      slot.elements.push_back(padded(equation, index, inputs));
    } else if (is_reduction(equation.primitive)) {
      slot.elements.push_back(reduced(program, equation, index, inputs[0]));
    } else if (is_arg_reduction(equation.primitive)) {
      slot.elements.push_back(arg_reduced(program, equation, index, inputs[0]));
    } else if (primitive == prim::dot_general()) {
      slot.elements.push_back(dot(equation, index, inputs, type.dtype));
    } else {
      std::vector<Element> operands;
      for (const Slot& input : inputs) operands.push_back(element(input, stretched_index(index, input.type.shape)));
      slot.elements.push_back(
          apply_elementwise(builder_, equation.primitive, equation.attrs, dtypes, type.dtype, operands, number));
    }
  }
  return slot;
}

Element Writer::concatenated(const Equation& equation, Index index, const std::vector<Slot>& inputs) {
  Affine& position = index[at(equation.attrs.integer("dimension"))];
  std::size_t part = 0;
  while (position.constant >= inputs[part].type.shape[at(equation.attrs.integer("dimension"))]) {
    position.constant -= inputs[part++].type.shape[at(equation.attrs.integer("dimension"))];
  }
  return element(inputs[part], index);
}

Element Writer::part_of_split(const Equation& equation, Index index, int number, const Slot& input) {
  const Ints& sizes = equation.attrs.ints("sizes");
  for (int i = 0; i < number; ++i) index[at(equation.attrs.integer("axis"))].constant += sizes[at(i)];
  return element(input, index);
}

Element Writer::padded(const Equation& equation, const Index& index, const std::vector<Slot>& inputs) {
  const Attr::List& config = equation.attrs.list("padding_config");
  Index place = index;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const Ints& padding = *config[d].get_if<Ints>();
    const int64_t from_low = index[d].constant - padding[0], stride = padding[2] + 1;
    if (from_low < 0 || from_low % stride != 0 || from_low / stride >= inputs[0].type.shape[d])
      return inputs[1].elements[0];
    place[d] = Affine(from_low / stride);
  }
  return element(inputs[0], place);
}

// Every index of the operand that the output's element folds, in order.
template <class F>
void Writer::for_each_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input,
                              F&& visit) {
  const std::vector<bool> kept = kept_dimensions(program, equation);
  Shape folded;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (!kept[d]) folded.push_back(input.type.shape[d]);
  }
  for (int64_t k = 0; k < element_count(folded); ++k) {
    const Index inner = constant_index(k, folded);
    Index place(kept.size());
    std::size_t outer_next = 0, inner_next = 0;
    for (std::size_t d = 0; d < kept.size(); ++d) place[d] = kept[d] ? index[outer_next++] : inner[inner_next++];
    visit(k, element(input, place));
  }
}

Element Writer::reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input) {
  const Monoid monoid = *equation.primitive->traits.monoid;
  std::optional<Element> sum;
  int64_t count = 0;
  for_each_reduced(program, equation, index, input, [&](int64_t k, const Element& next) {
    sum = sum ? combine(builder_, monoid, input.type.dtype, *sum, next) : next;
    count = k + 1;
  });
  if (!sum) return identity_element(builder_, monoid, input.type.dtype);
  // Sums start from zero, so that a sum of negative zeros is positive; a single element is its own sum.
  if (count > 1 && monoid == Monoid::add && is_inexact(input.type.dtype)) {
    sum = combine(builder_, monoid, input.type.dtype, identity_element(builder_, monoid, input.type.dtype), *sum);
  }
  return rounded_element(builder_, input.type.dtype, *sum);
}

Element Writer::arg_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input) {
  const DType dtype = input.type.dtype, out = program.type(equation.outputs[0]).dtype;
  const bool greatest = equation.primitive == prim::argmax();
  Element best;
  Value position = no_value;
  for_each_reduced(program, equation, index, input, [&](int64_t k, const Element& next) {
    if (k == 0) {
      best = next;
      position = builder_.index(0);
      return;
    }
    const Value a = next.parts[0], b = best.parts[0];
    const bool plain = is_signed(dtype) || is_floating(dtype);
    const Op op = greatest ? (plain ? Op::gt : Op::gt_unsigned) : (plain ? Op::lt : Op::lt_unsigned);
    Value better = builder_.compute(op, a, b);
    if (is_floating(dtype)) {  // NaN wins over numbers, and the first NaN over later ones
      const Value a_nan = builder_.compute(Op::ne, a, a), b_number = builder_.compute(Op::eq, b, b);
      better = builder_.compute(Op::bit_or, better, builder_.compute(Op::bit_and, a_nan, b_number));
    }
    best = select_element(builder_, better, next, best);
    position = builder_.compute(Op::select, better, builder_.index(k), position);
  });
  return convert_element(builder_, DType::int64, out, Element(position));
}

Element Writer::dot(const Equation& equation, const Index& index, const std::vector<Slot>& inputs, DType dtype) {
  const auto& numbers = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const Shape &left = inputs[0].type.shape, &right = inputs[1].type.shape;
  Index a(left.size()), b(right.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < numbers.lhs_batch.size(); ++i) {
    a[at(numbers.lhs_batch[i])] = b[at(numbers.rhs_batch[i])] = index[next++];
  }
  auto free_dimensions = [&](Index& place, const Ints& batch, const Ints& contracting) {
    for (std::size_t d = 0; d < place.size(); ++d) {
      const int64_t dimension = static_cast<int64_t>(d);
      if (std::count(batch.begin(), batch.end(), dimension) ||
          std::count(contracting.begin(), contracting.end(), dimension))
        continue;
      place[d] = index[next++];
    }
  };
  free_dimensions(a, numbers.lhs_batch, numbers.lhs_contracting);
  free_dimensions(b, numbers.rhs_batch, numbers.rhs_contracting);
  Shape summed;
  for (int64_t d : numbers.lhs_contracting) summed.push_back(left[at(d)]);
  Value sum = no_value;
  for (int64_t k = 0; k < element_count(summed); ++k) {
    const Index inner = constant_index(k, summed);
    for (std::size_t i = 0; i < inner.size(); ++i) {
      a[at(numbers.lhs_contracting[i])] = inner[i];
      b[at(numbers.rhs_contracting[i])] = inner[i];
    }
    const Value x = element(inputs[0], a).parts[0], y = element(inputs[1], b).parts[0];
    if (sum == no_value)
      sum = builder_.compute(Op::mul, x, y);
    else if (is_floating(dtype))
      sum = builder_.compute(Op::fma, x, y, sum);
    else
      sum = builder_.compute(Op::add, sum, builder_.compute(Op::mul, x, y));
  }
  if (sum == no_value) return convert_element(builder_, DType::int64, dtype, Element(builder_.index(0)));
  return rounded_element(builder_, dtype, Element(sum));
}

}  // namespace capibara::cpu::registers
