// Prefixes by a balanced tree of slices, and the blocks of map: compositions without their own primitive.
#include <capibara/control.h>
#include <capibara/kernels/recurrence.h>

#include "lax/control/control.h"
#include "program/ir/copy.h"
#include "program/ir/handles.h"

namespace capibara::jax::lax::detail {

namespace {

// Interleaves even and odd positions.
Array interleave(const Array& even, const Array& odd, int64_t axis) {
  std::vector<PadDim> even_pad(static_cast<std::size_t>(even.ndim())), odd_pad = even_pad;
  bool same = even.shape(axis) == odd.shape(axis);
  even_pad[static_cast<std::size_t>(axis)] = {0, same ? 1 : 0, 1};
  odd_pad[static_cast<std::size_t>(axis)] = {1, same ? 0 : 1, 1};
  Array zero = full({}, Array(0), even.dtype());
  Array a = pad(even, zero, even_pad), b = pad(odd, zero, odd_pad);
  return even.dtype() == DType::bool_ ? bitwise_or(a, b) : add(a, b);
}

Arrays scan_prefixes(const Combine& combine, const Arrays& elements, int64_t axis) {
  int64_t count = elements[0].shape(axis);
  if (count < 2) return elements;
  auto slices = [axis](const Arrays& list, std::optional<int64_t> start, std::optional<int64_t> limit, int64_t stride) {
    Arrays out;
    for (const Array& x : list) out.push_back(slice_in_dim(x, start, limit, stride, axis));
    return out;
  };
  Arrays first = slices(elements, 0, -1, 2), second = slices(elements, 1, std::nullopt, 2);
  Arrays odd = scan_prefixes(combine, combine(first, second), axis);
  Arrays before = count % 2 == 0 ? slices(odd, 0, -1, 1) : odd;
  Arrays later = combine(before, slices(elements, 2, std::nullopt, 2));
  Arrays result;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Array even = concatenate({slice_in_dim(elements[i], 0, 1, 1, axis), later[i]}, axis);
    result.push_back(interleave(even, odd[i], axis));
  }
  return result;
}

// The equation that computes an output, if it is of this primitive with two operands.
const Equation* made_by(const Program& program, const Atom& atom, const Primitive& primitive) {
  if (atom.is_literal()) return nullptr;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == primitive && equation.inputs.size() == 2 && equation.outputs[0] == atom.var())
      return &equation;
  }
  return nullptr;
}

// Recognises the combine function of a linear recurrence, (a1 * a2, a2 * b1 + b2) up to the order of operands: returns
// which of the two elements is a; nullopt for any other function.
std::optional<std::size_t> linear_recurrence_factor(const Combine& combine, const Arrays& elements, int64_t axis) {
  if (elements.size() != 2 || elements[0].shape() != elements[1].shape()) return std::nullopt;
  if (elements[0].dtype() != elements[1].dtype() || !is_inexact(elements[0].dtype())) return std::nullopt;
  const int64_t count = elements[0].shape(axis);
  if (count < 2) return std::nullopt;
  Types types;
  for (std::size_t i = 0; i < 4; ++i) {  // two neighbours, as in the first call of combine
    Shape shape = elements[i % 2].shape();
    shape[static_cast<std::size_t>(axis)] = count / 2;
    types.push_back(elements[i % 2].type().with_shape(shape));
  }
  const Staged staged = stage(
      [&](std::span<const Array> in) {
        return combine(Arrays(in.begin(), in.begin() + 2), Arrays(in.begin() + 2, in.end()));
      },
      types, "associative_scan");
  if (!staged.captured.empty()) return std::nullopt;
  const Program program = inline_jit_calls(staged.program);
  if (program.outputs().size() != 2 || program.equations().size() != 3) return std::nullopt;
  const std::vector<Var>& in = program.invars();
  auto is_pair = [](const Equation* equation, Atom x, Atom y) {
    if (!equation) return false;
    const Atom &first = equation->inputs[0], &second = equation->inputs[1];
    return (first == x && second == y) || (first == y && second == x);
  };
  for (std::size_t a : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t b = 1 - a;
    const Equation *product = made_by(program, program.outputs()[a], prim::mul()),
                   *sum = made_by(program, program.outputs()[b], prim::add());
    if (!sum || !is_pair(product, in[a], in[2 + a])) continue;
    for (std::size_t i : {0, 1}) {
      const Equation* carried = made_by(program, sum->inputs[i], prim::mul());
      if (sum->inputs[1 - i] == Atom(in[2 + b]) && is_pair(carried, in[2 + a], in[b])) return a;
    }
  }
  return std::nullopt;
}

}  // namespace

Arrays associative_scan_flat(const Combine& combine, Arrays elements, int64_t axis, bool reverse, bool tpu_optimized) {
  if (elements.empty()) return elements;
  int64_t rank = elements[0].ndim();
  if (axis < -rank || axis >= rank) {
    throw ValueError(concat("associative_scan: axis ", axis, " is out of range for ", to_string(elements[0].type()),
                            " (argument 'axis')"));
  }
  if (axis < 0) axis += rank;
  for (const Array& element : elements) {
    if (element.ndim() <= axis || element.shape(axis) != elements[0].shape(axis)) {
      throw ValueError(concat("Array inputs to associative_scan must have the same first dimension: got ",
                              to_string(elements[0].type()), " and ", to_string(element.type())));
    }
  }
  if (tpu_optimized) {
    if (const std::optional<std::size_t> a = linear_recurrence_factor(combine, elements, axis)) {
      Arrays result(2);
      result[*a] = cumprod(elements[*a], {.axis = axis, .reverse = reverse});
      result[1 - *a] = kernels::linear_recurrence(elements[*a], elements[1 - *a], {.axis = axis, .reverse = reverse});
      return result;
    }
  }
  auto reversed = [axis](Arrays list) {
    for (Array& x : list) x = rev(x, {axis});
    return list;
  };
  if (reverse) elements = reversed(elements);
  Arrays result = scan_prefixes(combine, elements, axis);
  return reverse ? reversed(result) : result;
}

std::pair<Arrays, Arrays> split_in_blocks(const Arrays& xs, int64_t batch_size) {
  if (batch_size < 1) throw ValueError(concat("map: batch_size must be positive, got ", batch_size));
  std::pair<Arrays, Arrays> result;
  for (const Array& x : xs) {
    int64_t blocks = x.shape(0) / batch_size, rest = x.shape(0) % batch_size;
    Shape shape = x.shape();
    shape[0] = batch_size;
    shape.insert(shape.begin(), blocks);
    result.first.push_back(jax::lax::reshape(slice_in_dim(x, 0, blocks * batch_size), shape));
    if (rest) result.second.push_back(slice_in_dim(x, blocks * batch_size, std::nullopt));
  }
  return result;
}

Arrays join_blocks(const Arrays& blocks, const Arrays& rest) {
  if (blocks.empty()) return rest;
  Arrays result;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Shape shape(blocks[i].shape().begin() + 1, blocks[i].shape().end());
    shape[0] = blocks[i].shape(0) * blocks[i].shape(1);
    Array flat = jax::lax::reshape(blocks[i], shape);
    result.push_back(rest.empty() ? flat : concatenate({flat, rest[i]}, 0));
  }
  return result;
}

Arrays vmap_over_front(const FlatFunction& function, const Arrays& xs) {
  return vmap_flat(function, xs, std::vector<int64_t>(xs.size(), 0), {}, {"", xs[0].shape(0)});
}

}  // namespace capibara::jax::lax::detail
