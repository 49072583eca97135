// Evaluates programs on matrices of codes: their matmuls read the codes.
//
//   c = dot_general[([1], [0])] x w    with w as codes    ->    c = quantized_matmul x w.codes w.scale
#include "models/training/coded_program.h"

#include <capibara/lax.h>

#include <algorithm>
#include <optional>

#include "program/ir/build.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"
#include "program/ir/views.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

// A matrix of codes as it passes through a program: possibly transposed, possibly of another dtype.
struct Coded {
  kernels::QuantizedMatrix matrix;
  bool transposed = false;
  DType dtype = DType::float32;

  Array widened() const {
    const Array whole = kernels::dequantize(matrix, dtype);
    return transposed ? lax::transpose(whole, {1, 0}) : whole;
  }
};
using Value = std::variant<Array, Coded>;

Array array_of(const Value& value) {
  if (const Coded* coded = std::get_if<Coded>(&value)) return coded->widened();
  return std::get<Array>(value);
}

Array last_to_front(const Array& x) {
  Ints order = {x.ndim() - 1};
  for (int64_t dim = 0; dim + 1 < x.ndim(); ++dim) order.push_back(dim);
  return lax::transpose(x, order);
}

Array to_last(const Array& x, int64_t axis) {
  Ints order;
  for (int64_t dim = 0; dim < x.ndim(); ++dim) {
    if (dim != axis) order.push_back(dim);
  }
  order.push_back(axis);
  return axis == x.ndim() - 1 ? x : lax::transpose(x, order);
}

// A matmul by codes; absent unless the equation contracts exactly one dimension of each operand.
std::optional<Array> multiplied(const Equation& equation, const Value& left, const Value& right, DType result) {
  const Coded *of_left = std::get_if<Coded>(&left), *of_right = std::get_if<Coded>(&right);
  if (!of_left == !of_right) return std::nullopt;  // none, or both
  const auto numbers = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
  if (!numbers.lhs_batch.empty() || numbers.lhs_contracting.size() != 1) return std::nullopt;
  const Coded& coded = of_left ? *of_left : *of_right;
  const Array& other = std::get<Array>(of_left ? right : left);
  if (!is_floating(other.dtype()) || !is_floating(result)) return std::nullopt;
  const int64_t own = (of_left ? numbers.lhs_contracting : numbers.rhs_contracting)[0];
  const int64_t axis = (of_left ? numbers.rhs_contracting : numbers.lhs_contracting)[0];
  // Codes are [inputs, outputs]: summed over the inputs, or over the outputs with the transpose.
  const bool over_inputs = (own == 0) != coded.transposed;
  const Array x = lax::convert_element_type(to_last(other, axis), result);
  const Array product = kernels::quantized_matmul(x, coded.matrix, {.transposed = !over_inputs});
  return of_left ? last_to_front(product) : product;
}

std::vector<Value> evaluate(const Program& program, std::vector<Value> inputs);

// The results of an equation that reads codes.
std::vector<Value> apply(const Program& program, const Equation& equation, const std::vector<Value>& operands) {
  if (const Program* called = called_program(equation)) return evaluate(*called, operands);
  const Primitive& primitive = equation.primitive;
  const Coded* first = std::get_if<Coded>(&operands[0]);
  if (primitive == prim::transpose() && first) {
    Coded turned = *first;
    if (equation.attrs.ints("permutation") == Ints{1, 0}) turned.transposed = !turned.transposed;
    return {turned};
  }
  if (primitive == prim::convert_element_type() && first && is_floating(program.type(equation.outputs[0]).dtype)) {
    Coded other = *first;
    other.dtype = program.type(equation.outputs[0]).dtype;
    return {other};
  }
  if (primitive == prim::dot_general()) {
    const DType result = program.type(equation.outputs[0]).dtype;
    if (const auto product = multiplied(equation, operands[0], operands[1], result)) return {*product};
  }
  Arrays arrays;
  for (const Value& operand : operands) arrays.push_back(array_of(operand));
  std::vector<Value> results;
  for (Array& one : capibara::bind(primitive, arrays, equation.attrs)) results.push_back(std::move(one));
  return results;
}

std::vector<Value> evaluate(const Program& program, std::vector<Value> inputs) {
  std::vector<Value> values(static_cast<std::size_t>(program.var_count()));
  const auto read = [&](Atom atom) -> Value {
    return atom.is_literal() ? program.literal(atom) : values[static_cast<std::size_t>(atom.code)];
  };
  for (std::size_t i = 0; i < program.constvars().size(); ++i)
    values[static_cast<std::size_t>(program.constvars()[i].id)] = program.constants()[i];
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values[static_cast<std::size_t>(program.invars()[i].id)] = std::move(inputs[i]);
  for (const Equation& equation : program.equations()) {
    std::vector<Value> operands, results;
    for (Atom input : equation.inputs) operands.push_back(read(input));
    const bool coded = std::any_of(operands.begin(), operands.end(),
                                   [](const Value& one) { return std::holds_alternative<Coded>(one); });
    SourceScope scope(equation.source);
    if (coded) {
      results = apply(program, equation, operands);
    } else {
      Arrays arrays;
      for (const Value& operand : operands) arrays.push_back(std::get<Array>(operand));
      for (Array& one : capibara::bind(equation.primitive, arrays, equation.attrs)) results.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!equation.outputs[i].dropped())
        values[static_cast<std::size_t>(equation.outputs[i].id)] = std::move(results[i]);
    }
  }
  std::vector<Value> outputs;
  for (Atom output : program.outputs()) outputs.push_back(read(output));
  return outputs;
}

}  // namespace

Arrays evaluate_with_codes(const Program& program, std::span<const CodedInput> inputs) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const auto* matrix = std::get_if<kernels::QuantizedMatrix>(&inputs[i]))
      values.push_back(Coded{*matrix, false, program.type(program.invars()[i]).dtype});
    else
      values.push_back(std::get<Array>(inputs[i]));
  }
  Arrays results;
  for (const Value& value : evaluate(program, std::move(values))) results.push_back(array_of(value));
  return results;
}

}  // namespace capibara::training
