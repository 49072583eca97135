// Control flow on flat array lists: stages bodies and binds scan, while and cond.
#include <capibara/config.h>
#include <capibara/control.h>

#include "array/promotion.h"
#include "program/derive.h"

#include <algorithm>

namespace capibara::jax::lax::detail {

namespace {

Types types_of(std::span<const Array> arrays) {
  Types types;
  for (const Array& array : arrays) types.push_back(array.type());
  return types;
}

bool all_concrete(std::initializer_list<const Arrays*> lists) {
  for (const Arrays* list : lists) {
    for (const Array& array : *list) {
      if (array.is_tracer()) return false;
    }
  }
  return true;
}

ScalarType scalar(const ArrayType& type) { return {type.dtype, type.weak_type}; }

// A weakly typed start value takes the dtype that the body gives it. True where one was changed.
bool strengthen(Arrays& init, std::span<const ArrayType> outputs) {
  bool changed = false;
  for (std::size_t i = 0; i < init.size(); ++i) {
    const ArrayType& in = init[i].type();
    const ArrayType& out = outputs[i];
    if (!in.weak_type || in.dtype == out.dtype) continue;  // weakness alone is no difference
    ScalarType joint = promote_types(scalar(in), scalar(out), capibara::config().enable_x64);
    if (joint.dtype != out.dtype) continue;
    init[i] = convert_element_type(init[i], out.dtype, out.weak_type);
    changed = true;
  }
  return changed;
}

void check_types(const char* name, std::span<const ArrayType> in, std::span<const ArrayType> out) {
  if (in.size() != out.size()) {
    throw TypeError(concat(name, " body function carry input and carry output must have the same number of leaves, but ",
                           "they differ: ", in.size(), " enter and ", out.size(), " leave"));
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].shape == out[i].shape && in[i].dtype == out[i].dtype) continue;
    throw TypeError(concat(name, " body function carry input and carry output must have equal types, but they differ: ",
                           "leaf ", i, " of the carry enters as ", to_string(in[i]), " and leaves as ", to_string(out[i])));
  }
}

Arrays joined(std::span<const Array> a, std::span<const Array> b) {
  Arrays all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

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

}  // namespace

void check_carry(const char* name, const TreeDef& in, const TreeDef& out) {
  if (in == out) return;
  if (std::string(name) == "cond") {
    throw TypeError(concat("cond branches must have the same structure: ", tree_difference(in, out)));
  }
  throw TypeError(concat(name, " body function carry input and carry output must have the same structure: ",
                         tree_difference(in, out)));
}

Arrays scan_flat(const FlatFunction& body, const Arrays& given_init, const Arrays& xs, std::optional<int64_t> length,
                 bool reverse, int64_t unroll) {
  for (const Array& x : xs) {
    if (x.ndim() == 0) throw ValueError(concat("scan: xs must have a leading axis to scan over, got ", to_string(x.type())));
    if (length && *length != x.shape(0)) {
      throw ValueError(concat("scan got `length` argument of ", *length, " which disagrees with leading axis sizes: ",
                              to_string(x.type())));
    }
    if (x.shape(0) != xs[0].shape(0)) {
      throw ValueError(concat("scan got values with different leading axis sizes: ", xs[0].shape(0), ", ", x.shape(0)));
    }
  }
  if (xs.empty() && !length) throw ValueError("scan: `length` is needed where there are no xs");
  int64_t steps = xs.empty() ? *length : xs[0].shape(0);
  if (steps < 0) throw ValueError(concat("scan: length must not be negative, got ", steps));
  if (unroll < 1) throw ValueError(concat("scan: unroll must be positive, got ", unroll));
  if (capibara::config().disable_jit && steps > 0 && all_concrete({&given_init, &xs})) {
    return scan_eagerly(body, given_init, xs, steps, reverse);
  }

  Arrays init = given_init;
  Types slices;
  for (const Array& x : xs) {
    slices.push_back(x.type());
    slices.back().shape.erase(slices.back().shape.begin());
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
  check_types("scan", types_of(init), std::span(outputs).first(init.size()));

  // Inputs of the body: captured, carry, slices. A carry that the body hands on unchanged becomes a constant of the
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
      if (program.outputs()[carries + y] == Atom(program.invars()[captured + carries + i])) forwarded[y] = static_cast<int>(i);
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

Arrays while_flat(const FlatFunction& condition, const FlatFunction& body, const Arrays& given_init) {
  Arrays init = given_init;
  if (capibara::config().disable_jit && all_concrete({&init})) {
    while (condition(init)[0].item<bool>()) init = body(init);
    return init;
  }
  require_tracing_allowed("body");
  Staged body_staged = stage_open(body, types_of(init), "body");
  Types outputs = body_staged.program.output_types();
  if (outputs.size() == init.size() && strengthen(init, outputs)) {
    body_staged = stage_open(body, types_of(init), "body");
    outputs = body_staged.program.output_types();
  }
  check_types("while_loop", types_of(init), outputs);
  Staged condition_staged = stage_open(condition, types_of(init), "cond");
  const ArrayType predicate = condition_staged.program.output_types()[0];
  if (predicate.rank() != 0 || predicate.dtype != DType::bool_) {
    throw TypeError(concat("while_loop: cond_fun must return a boolean scalar, got ", to_string(predicate)));
  }
  static const Primitive loop = primitive("while");
  Arrays operands = joined(joined(condition_staged.captured, body_staged.captured), init);
  return capibara::bind(loop, operands,
                        {{"body_jaxpr", body_staged.program},
                         {"body_nconsts", static_cast<int64_t>(body_staged.captured.size())},
                         {"cond_jaxpr", condition_staged.program},
                         {"cond_nconsts", static_cast<int64_t>(condition_staged.captured.size())}});
}

Array predicate_index(const Array& predicate) {
  if (predicate.ndim() != 0) {
    throw TypeError(concat("Pred must be a scalar, got ", to_string(predicate.type()), " (argument 'pred' of cond)"));
  }
  Array truth = predicate;
  if (predicate.dtype() != DType::bool_) truth = ne(predicate, zeros(predicate.type()));
  return convert_element_type(truth, DType::int32);
}

Array branch_index(const Array& index, std::size_t count) {
  if (index.ndim() != 0) {
    throw TypeError(concat("Branch index must be a scalar, got ", to_string(index.type()), " (argument 'index' of switch)"));
  }
  if (!is_integer(index.dtype())) {
    throw TypeError(concat("Index type must be an integer, got ", to_string(index.type()), " (argument 'index' of switch)"));
  }
  Array as_int = convert_element_type(index, DType::int32);
  int32_t last = static_cast<int32_t>(count) - 1;
  return clamp(Array::from_host(DType::int32, {}, std::vector<int32_t>{0}.data()), as_int,
               Array::from_host(DType::int32, {}, &last));
}

Arrays cond_flat(const Array& index, const std::vector<FlatFunction>& branches, const Arrays& operands) {
  if (capibara::config().disable_jit && !index.is_tracer()) {
    return branches[static_cast<std::size_t>(index.item<int64_t>())](operands);
  }
  if (branches.size() == 1) return branches[0](operands);
  std::vector<Staged> staged;
  require_tracing_allowed("branch");
  for (const FlatFunction& branch : branches) staged.push_back(stage_open(branch, types_of(operands), "branch"));

  // All branches take the union of what they captured.
  Arrays captured;
  auto position = [&](const Array& value) {
    for (std::size_t i = 0; i < captured.size(); ++i) {
      if (captured[i].same_as(value)) return i;
    }
    captured.push_back(value);
    return captured.size() - 1;
  };
  std::vector<std::vector<std::size_t>> places;
  for (const Staged& one : staged) {
    places.emplace_back();
    for (const Array& value : one.captured) places.back().push_back(position(value));
  }
  Types types = types_of(captured);
  Types operand_types = types_of(operands);
  types.insert(types.end(), operand_types.begin(), operand_types.end());
  std::vector<Program> programs;
  Types outputs = staged[0].program.output_types();
  for (std::size_t b = 0; b < staged.size(); ++b) {
    Types own = staged[b].program.output_types();
    for (std::size_t i = 0; i < std::min(own.size(), outputs.size()); ++i) {
      if (own[i].shape == outputs[i].shape && own[i].dtype == outputs[i].dtype) continue;
      throw TypeError(concat("cond branches must have identical types, got branch 0 output ", i, " ", to_string(outputs[i]),
                             " and branch ", b, " output ", i, " ", to_string(own[i])));
    }
    Program::Body body = staged[b].program.body();
    std::vector<Var> own_inputs = body.invars;
    body.invars.clear();
    for (std::size_t i = 0; i < captured.size(); ++i) {
      auto place = std::find(places[b].begin(), places[b].end(), i);
      if (place != places[b].end()) {
        body.invars.push_back(own_inputs[static_cast<std::size_t>(place - places[b].begin())]);
      } else {
        body.var_types.push_back(captured[i].type());
        body.invars.push_back(Var{static_cast<int32_t>(body.var_types.size()) - 1});
      }
    }
    body.invars.insert(body.invars.end(), own_inputs.begin() + static_cast<std::ptrdiff_t>(places[b].size()), own_inputs.end());
    programs.push_back(Program(std::move(body)));
  }
  static const Primitive cond = primitive("cond");
  Arrays all = {index};
  all = joined(all, joined(captured, operands));
  return capibara::bind(cond, all, {{"branches", Attr::programs(programs)}});
}

namespace {

// even and odd positions woven into one array.
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

}  // namespace

Arrays associative_scan_flat(const Combine& combine, Arrays elements, int64_t axis, bool reverse) {
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
