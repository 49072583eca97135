// Makes mutants from samples and seeds: sizes, types and values of inputs, then changes of the program, then its
// calls.
#include "backends/cpu/mutants/mutants.h"

#include "compiler/optimise/passes.h"
#include "program/derive/derive.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/control.h>
#include <capibara/lax.h>

#include <cmath>
#include <limits>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

constexpr int max_tries = 60;  // for changes that may not fit a program

Array drawn(const Input& input, Dice& dice) {
  const DType dtype = input.type.dtype;
  std::vector<double> parts(static_cast<std::size_t>(input.type.size()) * (is_complex(dtype) ? 2 : 1));
  for (double& part : parts) {
    part = dice.real(input.low, input.high);
    if (is_integer(dtype))
      part = std::floor(part);
    else if (is_bool(dtype))
      part = part > (input.low + input.high) / 2 ? 1 : 0;
  }
  return random_programs::array_of(input.type, parts);
}

// Makes some elements, a range of them, or all, NaN, infinite, huge or zeros of either sign.
void spoil(Array& array, Dice& dice) {
  const DType dtype = array.dtype();
  if (!is_floating(dtype) || array.size() == 0) return;
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<double> values = {nan, infinity, -infinity, -0.0, 0.0};
  std::vector<double> parts(static_cast<std::size_t>(array.size()));
  const std::vector<double> given = lax::convert_element_type(array, DType::float64).to_vector<double>();
  const double value = dice.pick(values);
  const int64_t first = dice.below(array.size()), kind = dice.below(4);
  for (int64_t i = 0; i < array.size(); ++i) {
    const bool here = kind == 0   ? i == first
                      : kind == 1 ? i >= first && i < first + 70
                      : kind == 2 ? dice.chance(10)
                                  : true;
    parts[static_cast<std::size_t>(i)] = here ? value : given[static_cast<std::size_t>(i)];
  }
  array = random_programs::array_of(array.type(), parts);
}

Types types_of(const std::vector<Input>& inputs) {
  Types types;
  for (const Input& input : inputs) types.push_back(input.type);
  return types;
}

// The traced function, with calls inlined.
Program traced(const FlatFunction& function, const Types& types, const std::string& name) {
  const Program program = stage(function, types, name).program;
  return passes::inline_calls(passes::strengthen(program));
}

struct Draft {
  std::vector<Input> inputs;
  Program program;
  std::string changes;

  void note(const std::string& text) { changes += concat(changes.empty() ? "" : ", ", text); }
};

// Other sizes: zero, one, small, odd ones.
void resize(const Sample& sample, Draft& draft, Dice& dice) {
  Ints sizes = sample.sizes;
  const auto which = static_cast<std::size_t>(dice.below(static_cast<int64_t>(sizes.size())));
  static const std::vector<int64_t> small = {0, 0, 1, 1, 2, 3, 5};
  const int64_t before = sizes[which];
  sizes[which] = dice.chance(75) ? dice.pick(small) : before + dice.pick(std::vector<int64_t>{1, -1, 3});
  if (sizes[which] < 0 || sizes[which] == before) throw Unfit{};
  draft.inputs = sample.inputs(sizes);
  draft.program = traced(sample.function, types_of(draft.inputs), sample.name);
  draft.note(concat("size ", which, " = ", sizes[which]));
}

// Changes all inputs of one type to another, and the program with them.
void retype(Draft& draft, Dice& dice) {
  std::vector<DType> present;
  for (const Input& input : draft.inputs) present.push_back(input.type.dtype);
  const DType from = dice.pick(present);
  static const std::vector<DType> floats = {DType::float16, DType::bfloat16, DType::float64, DType::int32};
  static const std::vector<DType> integers = {DType::int8, DType::uint8, DType::uint32, DType::int64, DType::int16};
  if (!is_floating(from) && !is_integer(from)) throw Unfit{};
  const DType to = dice.pick(is_floating(from) ? floats : integers);
  if (to == from) throw Unfit{};
  for (Input& input : draft.inputs) {
    if (input.type.dtype == from) input.type.dtype = to;
    if (is_unsigned(to)) input.low = std::max(input.low, 0.0);
  }
  draft.program = changed(draft.program, types_of(draft.inputs), {});
  draft.note(concat(to_string(from), " as ", to_string(to)));
}

void change(const Sample& sample, Draft& draft, Dice& dice) {
  const std::string& name = dice.pick(change_names());
  if (sample.finite && (name == "poison" || name == "constant")) throw Unfit{};
  const int place = static_cast<int>(dice.below(std::max(1, random_programs::equation_count(draft.program))));
  const Change change{name, place, static_cast<uint64_t>(dice.below(1 << 30)), sample.keeps_regions};
  draft.program = changed(draft.program, types_of(draft.inputs), change);
  draft.note(concat(name, " at ", place));
}

// Puts the program inside a loop, a vmap, or a call.
void wrap(Draft& draft, Dice& dice) {
  const Program inner = draft.program;
  if (draft.inputs.empty() || is_key(draft.inputs[0].type.dtype)) throw Unfit{};
  const int64_t kind = dice.below(3);
  const auto with_first = [&](const Array& first, std::span<const Array> in) {
    Arrays all(in.begin(), in.end());
    all[0] = first;
    return evaluate_program(inner, all);
  };
  const auto twice = [](const Array& x) {
    return lax::concatenate({lax::expand_dims(x, {0}), lax::expand_dims(x, {0})}, 0);
  };
  const FlatFunction outer = [&](std::span<const Array> in) {
    if (kind == 0)
      return lax::detail::scan_flat([&](std::span<const Array> x) { return with_first(x[0], in); }, {}, {twice(in[0])},
                                    std::nullopt, false, 1);
    if (kind == 1) {
      const Ints dims = {0};
      return vmap_flat([&](std::span<const Array> x) { return with_first(x[0], in); }, Arrays{twice(in[0])}, dims, {},
                       {"", 2});
    }
    // A result of the first input's type becomes the next first input.
    return lax::detail::scan_flat(
        [&](std::span<const Array> x) {
          const Arrays results = with_first(x[0], in);
          Arrays next = {x[0]};
          for (const Array& result : results) {
            if (result.type().strong() == x[0].type().strong()) next[0] = result;
          }
          next.insert(next.end(), results.begin(), results.end());
          return next;
        },
        {in[0]}, {}, 2, false, 1);
  };
  draft.program = stage(outer, types_of(draft.inputs), inner.name()).program;
  static const char* names[] = {"in a loop", "in a batch", "carried by a loop"};
  draft.note(names[kind]);
}

Mutant finished(const Sample& sample, const Draft& draft, uint64_t seed, Dice& dice, bool varies) {
  Mutant mutant{seed, draft.changes, draft.program, draft.program, draft.program, {}, {}};
  if (sample.both) {
    try {
      std::tie(mutant.tried, mutant.trusted) = sample.both(draft.program);
    } catch (const Error&) {
      throw Unfit{};
    }
  }
  for (const Input& input : draft.inputs) mutant.inputs.push_back(drawn(input, dice));
  mutant.donated.assign(mutant.inputs.size(), false);
  if (!varies) return mutant;
  const auto count = static_cast<int64_t>(mutant.inputs.size());
  if (count > 0 && !sample.finite && dice.chance(35)) {
    spoil(mutant.inputs[static_cast<std::size_t>(dice.below(count))], dice);
    mutant.changes += "; special values";
  }
  // Donated memory must belong to a single input.
  const bool donates = sample.donates || dice.chance(25);
  if (count > 1 && !donates && dice.chance(25)) {
    const auto i = static_cast<std::size_t>(dice.below(count)), j = static_cast<std::size_t>(dice.below(count));
    if (i != j && draft.inputs[i].type == draft.inputs[j].type) {
      mutant.inputs[i] = mutant.inputs[j];
      mutant.changes += concat("; input ", i, " is input ", j);
    }
  }
  if (donates) {
    for (std::size_t i = 0; i < mutant.donated.size(); ++i)
      mutant.donated[i] = dice.chance(70) && !is_key(draft.inputs[i].type.dtype);
    mutant.changes += "; inputs donated";
  }
  return mutant;
}

Draft draft_of(const Sample& sample) {
  Draft draft;
  draft.inputs = sample.inputs(sample.sizes);
  draft.program = traced(sample.function, types_of(draft.inputs), sample.name);
  return draft;
}

}  // namespace

Input floats(Shape shape, DType dtype) { return {ArrayType{std::move(shape), dtype, false, false, {}}}; }
Input integers(Shape shape, double low, double high, DType dtype) {
  return {ArrayType{std::move(shape), dtype, false, false, {}}, low, high};
}
Input bools(Shape shape) { return {ArrayType{std::move(shape), DType::bool_, false, false, {}}, 0, 1}; }

Array number(const Array& like, double value) {
  return random_programs::array_of(ArrayType{{}, like.dtype(), false, false, {}}, {value, 0});
}
Array spread(const Array& like, double value) { return lax::broadcast(number(like, value), like.shape()); }

Mutant unchanged(const Sample& sample, uint64_t seed) {
  const ConfigScope x64 = jax::enable_x64();
  Dice dice(seed);
  return finished(sample, draft_of(sample), seed, dice, false);
}

Mutant make_mutant(const Sample& sample, uint64_t seed) {
  const ConfigScope x64 = jax::enable_x64();
  Dice dice(seed);
  Draft draft = draft_of(sample);
  int changes = static_cast<int>(dice.between(0, 2));
  auto attempt = [&](auto&& apply) {
    Draft next = draft;
    try {
      apply(next);
      verify(next.program);
    } catch (const Unfit&) {
      return false;
    } catch (const Error&) {
      return false;  // not a program any more
    }
    draft = std::move(next);
    return true;
  };
  if (dice.chance(25)) attempt([&](Draft& next) { resize(sample, next, dice); });
  if (dice.chance(15)) attempt([&](Draft& next) { retype(next, dice); });
  if (draft.changes.empty()) ++changes;
  for (int tries = 0; changes > 0 && tries < max_tries; ++tries) {
    if (attempt([&](Draft& next) { change(sample, next, dice); })) --changes;
  }
  if (dice.chance(15) && !sample.both) attempt([&](Draft& next) { wrap(next, dice); });
  if (draft.changes.empty()) throw Unfit{};
  return finished(sample, draft, seed, dice, true);
}

}  // namespace capibara::mutants
