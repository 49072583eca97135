// Sorting by a region: by keys if it is a comparison of keys, else by a network of exchanges on whole rows.
#include <capibara/control.h>

#include <numeric>

#include "backends/cpu/rewrites/compose_regions.h"
#include "backends/reference/sort.h"
#include "program/ir/handles.h"

namespace capibara::cpu::regions {

namespace lax = jax::lax;

namespace {

Array number(int64_t value) { return exact_scalar(DType::int32, value); }

// For a comparator of one comparison: the operand that it compares, and whether the greater element comes first.
struct Comparison {
  std::size_t operand;
  bool descending;
};
std::optional<Comparison> as_comparison(const Program& comparator, std::span<const Array> operands) {
  if (comparator.equations().size() != 1) return std::nullopt;
  const Equation& equation = comparator.equations()[0];
  if (!(equation.primitive == prim::lt() || equation.primitive == prim::gt()) ||
      comparator.outputs()[0] != Atom(equation.outputs[0]))
    return std::nullopt;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Atom left = comparator.invars()[2 * i], right = comparator.invars()[2 * i + 1];
    const bool straight = equation.inputs[0] == left && equation.inputs[1] == right;
    const bool swapped = equation.inputs[0] == right && equation.inputs[1] == left;
    if ((straight || swapped) && !is_complex(operands[i].dtype()))
      return Comparison{i, (equation.primitive == prim::gt()) == straight};
  }
  return std::nullopt;
}

// Equal elements keep their order: for a descending order, rows are reversed both before and after sorting.
Arrays sort_by_one(Arrays operands, Comparison comparison, int64_t axis) {
  std::swap(operands[0], operands[comparison.operand]);
  const auto reversed = [&] {
    for (Array& x : operands) x = comparison.descending ? lax::rev(x, {axis}) : x;
  };
  reversed();
  operands = lax::sort(operands, {.dimension = axis, .is_stable = true, .num_keys = 1});
  reversed();
  std::swap(operands[0], operands[comparison.operand]);
  return operands;
}

// The layers of Batcher's odd-even merge network for rows of `length`, as two int32[layers]: the sizes of sorted runs,
// and the distances between the elements of a pair.
std::pair<Array, Array> layers(int64_t length) {
  Arrays sizes, distances;
  for (int64_t size = 1; size < length; size *= 2) {
    for (int64_t distance = size; distance >= 1; distance /= 2) {
      sizes.push_back(number(size));
      distances.push_back(number(distance));
    }
  }
  return {lax::stack(sizes), lax::stack(distances)};
}

// True where a position is the first of a pair.
Array begins_pair(const Array& place, const Array& size, const Array& distance, int64_t length) {
  const Array begin = lax::rem(distance, size), twice = lax::mul(size, number(2));
  const Array from_begin = lax::sub(place, begin), other = lax::add(place, distance);
  const Array in_first_half = lax::lt(lax::rem(from_begin, lax::mul(distance, number(2))), distance);
  const Array is_inside = lax::bitwise_and(lax::ge(from_begin, number(0)), lax::lt(other, number(length)));
  const Array in_one_run = lax::eq(lax::div(place, twice), lax::div(other, twice));
  return lax::bitwise_and(lax::bitwise_and(in_first_half, is_inside), in_one_run);
}

// Operands [length, rows]; ties are broken by position, so that the order is that of a stable sort.
Arrays sort_by_network(const Program& comparator, const Arrays& operands) {
  const int64_t length = operands[0].shape(0), rows = operands[0].shape(1);
  const std::size_t count = operands.size();
  const auto step = [&](std::span<const Array> both) {
    const Array &size = both[count + 1], &distance = both[count + 2];
    const Array place = lax::iota(DType::int32, length);
    const Array is_first = begins_pair(place, size, distance, length);
    const Array before = lax::sub(place, distance);
    const Array is_second = lax::bitwise_and(lax::ge(before, number(0)), begins_pair(before, size, distance, length));
    const Array partner = lax::select(is_first, lax::add(place, distance), lax::select(is_second, before, place));
    const Array first = lax::broadcast_in_dim(is_first, {length, rows}, {0});
    Arrays others, forward, backward;
    for (std::size_t i = 0; i <= count; ++i) {
      others.push_back(lax::gather(both[i], lax::reshape(partner, {length, 1}), {{1}, {0}, {0}, {}, {}}, {1, rows},
                                   {.mode = lax::GatherScatterMode::promise_in_bounds}));
      const Array left = lax::select(first, both[i], others[i]), right = lax::select(first, others[i], both[i]);
      forward.insert(forward.end(), {left, right});
      backward.insert(backward.end(), {right, left});
    }
    const Array is_later = lax::gt(forward[2 * count], forward[2 * count + 1]);
    forward.resize(2 * count);
    backward.resize(2 * count);
    const Array less = apply_each(comparator, forward)[0], more = apply_each(comparator, backward)[0];
    const Array swaps = lax::select(lax::ne(less, more), more, is_later);
    Arrays next;
    for (std::size_t i = 0; i <= count; ++i) next.push_back(lax::select(swaps, others[i], both[i]));
    return next;
  };
  Arrays carry = operands;
  carry.push_back(lax::broadcasted_iota(DType::int32, {length, rows}, 0));
  const auto [sizes, distances] = layers(length);
  carry = lax::detail::scan_flat(step, carry, {sizes, distances}, std::nullopt, false, 1);
  carry.pop_back();
  return carry;
}

}  // namespace

Arrays sort(std::span<const Array> inputs, const Attrs& attrs) {
  const Program comparator = attrs.program("comparator");
  const int64_t axis = attrs.integer("dimension");
  Arrays operands(inputs.begin(), inputs.end());
  if (inputs[0].size() == 0 || inputs[0].shape(axis) == 1) return operands;
  if (const std::optional<Comparison> comparison = as_comparison(comparator, inputs))
    return sort_by_one(operands, *comparison, axis);
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  if (const std::optional<int64_t> keys = reference::lexicographic_keys(comparator, types)) {
    return lax::sort(operands, {.dimension = axis, .is_stable = true, .num_keys = *keys});
  }
  return sort_by_exchanges(comparator, operands, axis);
}

Arrays sort_by_exchanges(const Program& comparator, std::span<const Array> inputs, int64_t axis) {
  Arrays operands(inputs.begin(), inputs.end());
  if (inputs[0].size() == 0 || inputs[0].shape(axis) == 1) return operands;
  Ints swapped(static_cast<std::size_t>(inputs[0].ndim()));
  std::iota(swapped.begin(), swapped.end(), int64_t{0});
  std::swap(swapped[0], swapped[static_cast<std::size_t>(axis)]);
  Shape moved;
  for (Array& x : operands) {
    x = lax::transpose(x, swapped);
    moved = x.shape();
    x = lax::reshape(x, {moved[0], x.size() / moved[0]});
  }
  operands = sort_by_network(comparator, operands);
  for (Array& x : operands) x = lax::transpose(lax::reshape(x, moved), swapped);
  return operands;
}

}  // namespace capibara::cpu::regions
