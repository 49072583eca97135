// A scan over blocks of steps, and straight-line code for the remaining steps that do not fill a block.
#include "backends/cpu/rewrites/unroll.h"

#include <capibara/control.h>

#include "lax/control/control.h"
#include "program/ir/handles.h"
#include "program/trace/trace.h"

namespace capibara::cpu {

namespace lax = jax::lax;

namespace {

// Elements [first, first + count) of the leading dimension of each sequence.
Arrays steps(std::span<const Array> sequences, int64_t first, int64_t count) {
  Arrays parts;
  for (const Array& x : sequences) parts.push_back(lax::slice_in_dim(x, first, first + count));
  return parts;
}

Array reshaped_front(const Array& x, std::size_t replaced, const Shape& front) {
  Shape shape = front;
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(replaced), x.shape().end());
  return lax::reshape(x, shape);
}

Arrays unrolled(std::span<const Array> inputs, const Attrs& attrs) {
  const ScanView view(attrs);
  const int64_t length = view.length(), unroll = view.unroll();
  const bool reverse = view.reverse();
  const std::size_t carries = view.carry();
  const Arrays given = part(inputs, 0, view.consts()), init = part(inputs, view.consts(), view.first_xs());
  const std::span<const Array> sequences = view.xs(inputs);
  const int64_t blocks = length / unroll, rest = length % unroll, looped = blocks * unroll;

  Arrays blocked = steps(sequences, reverse ? rest : 0, looped);
  for (Array& x : blocked) x = reshaped_front(x, 1, {blocks, unroll});
  const auto step = [&](std::span<const Array> both) {
    Arrays carry = part(both, 0, carries);
    std::vector<Arrays> stacks(view.ys());
    for (int64_t i = 0; i < unroll; ++i) {
      Arrays operands = given;
      append(operands, carry);
      for (const Array& x : both.subspan(carries))
        operands.push_back(lax::index_in_dim(x, reverse ? unroll - 1 - i : i, 0, false));
      const Arrays results = evaluate_program(view.body(), operands);
      carry = part(results, 0, carries);
      for (std::size_t k = 0; k < stacks.size(); ++k)
        stacks[k].insert(reverse ? stacks[k].begin() : stacks[k].end(), results[carries + k]);
    }
    for (const Arrays& stack : stacks) carry.push_back(lax::stack(stack));
    return carry;
  };
  Arrays results = lax::detail::scan_flat(step, init, blocked, blocks, reverse, 1);
  for (std::size_t k = carries; k < results.size(); ++k) results[k] = reshaped_front(results[k], 2, {looped});
  if (rest == 0) return results;

  Arrays operands = given;
  append(operands, part(results, 0, carries));
  append(operands, steps(sequences, reverse ? 0 : looped, rest));
  const Arrays last = capibara::bind(prim::scan(), operands, attrs.with("length", rest).with("unroll", rest));
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (k < carries)
      results[k] = last[k];
    else
      results[k] = lax::concatenate(reverse ? Arrays{last[k], results[k]} : Arrays{results[k], last[k]}, 0);
  }
  return results;
}

}  // namespace

LowerRule unroll_rule(const Program&, const Equation& equation) {
  if (equation.primitive != prim::scan() || !equation.effects.empty()) return {};
  const int64_t unroll = equation.attrs.integer("unroll");
  return unroll > 1 && unroll < equation.attrs.integer("length") ? LowerRule(unrolled) : LowerRule();
}

}  // namespace capibara::cpu
