// The function scan: stages its body, takes constants out of the carry and binds the primitive of scan.cpp.
#include <capibara/config.h>
#include <capibara/control.h>

#include "lax/control/control.h"
#include "program/ir/explicit_types.h"

namespace capibara::jax::lax::detail {

namespace {

Arrays scan_eagerly(const FlatFunction& body, Arrays carry, const Arrays& xs, int64_t length, bool reverse) {
  std::vector<Arrays> stacks;
  std::size_t carries = carry.size();
  for (int64_t step = 0; step < length; ++step) {
    int64_t position = reverse ? length - 1 - step : step;
    Arrays slices;
    for (const Array& x : xs) slices.push_back(index_in_dim(x, position, 0, false));
    Arrays out = body(joined(carry, slices));
    carry.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(carries));
    stacks.resize(out.size() - carries);
    for (std::size_t i = carries; i < out.size(); ++i) {
      Array row = expand_dims(out[i], {0});
      stacks[i - carries].insert(reverse ? stacks[i - carries].begin() : stacks[i - carries].end(), row);
    }
  }
  Arrays result = carry;
  for (const Arrays& rows : stacks) result.push_back(concatenate(rows, 0));
  return result;
}

// Iterations are sequential: their dimension must not be split.
void check_leading_axes(const Arrays& xs) {
  for (const Array& x : xs) {
    if (split_axes(x.type(), 0).empty()) continue;
    std::string specs;
    for (const Array& one : xs) {
      PartitionSpec spec;
      for (std::size_t d = 0; d < one.shape().size(); ++d) spec.dims.push_back(split_axes(one.type(), d));
      specs += concat(specs.empty() ? "P" : ", P", partitions_text(spec));
    }
    throw ValueError(concat("0th dimension of all xs should be replicated. Got ", specs));
  }
}

}  // namespace

Arrays scan_flat(const FlatFunction& body, const Arrays& given_init, const Arrays& xs, std::optional<int64_t> length,
                 bool reverse, int64_t unroll) {
  for (const Array& x : xs) {
    if (x.ndim() == 0)
      throw ValueError(concat("scan: xs must have a leading axis to scan over, got ", to_string(x.type())));
    if (length && *length != x.shape(0)) {
      throw ValueError(concat("scan got `length` argument of ", *length,
                              " which disagrees with leading axis sizes: ", to_string(x.type())));
    }
    if (x.shape(0) != xs[0].shape(0)) {
      throw ValueError(concat("scan got values with different leading axis sizes: ", xs[0].shape(0), ", ", x.shape(0)));
    }
  }
  check_leading_axes(xs);
  if (xs.empty() && !length) throw ValueError("scan got no values to scan over and `length` not provided.");
  int64_t steps = xs.empty() ? *length : xs[0].shape(0);
  if (steps < 0) throw ValueError(concat("scan: length must not be negative, got ", steps));
  if (unroll < 1) throw ValueError(concat("scan: unroll must be positive, got ", unroll));
  if (capibara::config().disable_jit && steps > 0 && all_concrete({&given_init, &xs})) {
    return scan_eagerly(body, given_init, xs, steps, reverse);
  }

  Arrays init = given_init;
  Types slices;
  for (const Array& x : xs) {
    slices.push_back(without_dimension(x.type(), 0));
  }
  auto stage_body = [&] {
    Types types = types_of(init);
    types.insert(types.end(), slices.begin(), slices.end());
    require_tracing_allowed("body");
    return stage_open(body, types, "body");
  };
  Staged staged = stage_body();
  Types outputs = staged.program.output_types();
  if (outputs.size() >= init.size() && strengthen(init, std::span(outputs).first(init.size()))) {
    staged = stage_body();
    outputs = staged.program.output_types();
  }
  if (outputs.size() < init.size()) throw TypeError("scan: the body must return its carry and one tree of outputs");
  check_carry_types("scan", types_of(init), std::span(outputs).first(init.size()));

  // Inputs of the body: captured, carry, slices. A carry that the body returns unchanged becomes a constant of the
  // loop, and outputs that are slices of xs are not stacked again.
  Program program = staged.program;
  std::size_t captured = staged.captured.size(), carries = init.size();
  std::vector<bool> invariant(carries);
  for (std::size_t i = 0; i < carries; ++i) {
    invariant[i] = program.outputs()[i] == Atom(program.invars()[captured + i]);
  }
  std::vector<int> forwarded(outputs.size() - carries, -1);
  for (std::size_t y = 0; y < forwarded.size(); ++y) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (program.outputs()[carries + y] == Atom(program.invars()[captured + carries + i]))
        forwarded[y] = static_cast<int>(i);
    }
  }
  std::vector<int> input_order, output_order;
  Arrays operands;
  int64_t consts = 0, carry_count = 0;
  auto take_input = [&](std::size_t index, const Array& value) {
    input_order.push_back(static_cast<int>(index));
    operands.push_back(value);
  };
  for (std::size_t i = 0; i < carries; ++i) {
    if (invariant[i]) take_input(captured + i, init[i]), ++consts;
  }
  for (std::size_t i = 0; i < captured; ++i) take_input(i, staged.captured[i]), ++consts;
  for (std::size_t i = 0; i < carries; ++i) {
    if (!invariant[i]) take_input(captured + i, init[i]), ++carry_count;
  }
  for (std::size_t i = 0; i < xs.size(); ++i) take_input(captured + carries + i, xs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    bool kept = i < carries ? !invariant[i] : forwarded[i - carries] < 0;
    if (kept) output_order.push_back(static_cast<int>(i));
  }
  program = reorder_outputs(reorder_inputs(program, input_order), output_order);

  static const Primitive scan = primitive("scan");
  Arrays results = capibara::bind(scan, operands,
                                  {{"jaxpr", program},
                                   {"length", steps},
                                   {"num_carry", carry_count},
                                   {"num_consts", consts},
                                   {"reverse", reverse},
                                   {"unroll", unroll}});
  Arrays all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i < carries && invariant[i]) {
      all.push_back(init[i]);
    } else if (i >= carries && forwarded[i - carries] >= 0) {
      all.push_back(xs[static_cast<std::size_t>(forwarded[i - carries])]);
    } else {
      all.push_back(results[next++]);
    }
  }
  return all;
}

}  // namespace capibara::jax::lax::detail
