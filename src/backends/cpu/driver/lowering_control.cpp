// Control flow in the driver: loops and branches, whose bodies are lowered inline.
#include <algorithm>

#include "backends/cpu/driver/lowering.h"
#include "backends/cpu/elements/element.h"
#include "backends/cpu/regions/registers.h"
#include "backends/cpu/regions/scan_blocks.h"
#include "program/ir/callback.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace {

Types types_of_scan(const Equation& equation) {
  const ScanView view(equation);
  Types types = view.body().output_types();
  for (std::size_t i = view.carry(); i < types.size(); ++i)
    types[i].shape.insert(types[i].shape.begin(), view.length());
  return types;
}

std::vector<Address> joined(std::vector<Address> first, const std::vector<Address>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void Lowering::mark(int32_t site) { driver_->host(first_mark - site, {}); }

void Lowering::mark_equations(const Frame& frame, const Analysis& known, std::vector<int> equations) {
  const auto leaves = [&](int e) { return calls_host(frame.program.equations()[at(e)].primitive); };
  if (whole_loop_ >= 0 && std::none_of(equations.begin(), equations.end(), leaves)) return;
  std::sort(equations.begin(), equations.end());
  mark(sites_->add(frame.program, known, equations));
}

void Lowering::mark_group(const Frame& frame, const Analysis& known, int g) {
  mark_equations(frame, known, known.fusion.members[at(g)]);
}

template <class F>
void Lowering::marked_loop(const Frame& frame, const Equation& equation, const Program& body, const F& lower_loop) {
  if (!sites_ || whole_loop_ >= 0 || !too_short_for_marks(body)) return lower_loop();
  whole_loop_ = sites_->add_loop(frame.program, equation);
  mark(whole_loop_);
  lower_loop();
  whole_loop_ = -1;
}

void Lowering::lower_control(Frame& frame, const Equation& equation) {
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::scan())
    lower_scan(frame, equation);
  else if (primitive == prim::while_())
    lower_while(frame, equation);
  else if (primitive == prim::cond())
    lower_cond(frame, equation);
  else
    lower_call(frame, equation, *called_program(equation));
}

std::vector<Address> Lowering::places_of(Frame& frame, std::span<const Atom> atoms) {
  std::vector<Address> places;
  for (Atom atom : atoms) places.push_back(address_of(frame, atom));
  return places;
}

void Lowering::lower_body(const Program& given, const std::vector<Address>& inputs, const std::vector<Address>& outputs,
                          const std::map<std::size_t, Var>& replaced) {
  const Program& body = analyses_.unshared(given);
  Frame frame(body);
  for (std::size_t i = 0; i < inputs.size(); ++i) frame.place[at(body.invars()[i].id)] = Place{inputs[i]};
  for (std::size_t i = 0; i < body.constvars().size(); ++i) {
    frame.place[at(body.constvars()[i].id)] = Place{{constant_buffer(body.constants()[i]), 0, {}}};
  }
  std::vector<std::pair<Atom, Address>> copies;
  const Analysis& known = analyses_.of(body);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Atom atom = body.outputs()[i];
    const bool computed = !atom.is_literal() && known.fusion.definition[at(atom.code)] >= 0;
    if (auto input = replaced.find(i); input != replaced.end()) frame.replaces[atom.code] = input->second.id;
    if (computed && frame.preferred.try_emplace(atom.code, outputs[i]).second) continue;
    copies.emplace_back(atom, outputs[i]);
  }
  lower(frame);
  for (const auto& [atom, target] : copies) {
    const Address source = address_of(frame, atom);
    if (!same(source, target)) copy(source, target, bytes_of(body.type(atom)));
  }
}

void Lowering::lower_call(Frame& frame, const Equation& equation, const Program& body) {
  const std::vector<Address> inputs = places_of(frame, equation.inputs);
  const Results results = make_results(frame, equation, body.output_types());
  lower_body(body, inputs, results.places);
  release(results);
}

void Lowering::lower_cond(Frame& frame, const Equation& equation) {
  const CondView view(equation);
  const DType dtype = frame.program.type(equation.inputs[0]).dtype;
  Address address = address_of(frame, equation.inputs[0]);
  const std::vector<Address> inputs = places_of(frame, view.operands(equation.inputs));
  const Results results = make_results(frame, equation, view.branches()[0].output_types());
  const Value index = loaded_scalar(dtype, address);
  branch_from(view.branches(), 0, index, inputs, results.places);
  release(results);
}

void Lowering::branch_from(const std::vector<Program>& branches, std::size_t first, Value index,
                           const std::vector<Address>& inputs, const std::vector<Address>& outputs) {
  if (first + 1 == branches.size()) {
    lower_body(branches[first], inputs, outputs);
    return;
  }
  const Value here =
      driver_->compute(Op::le, index, driver_->constant_int(driver_->type(index), static_cast<int64_t>(first)));
  driver_->branch(
      here,
      [&] {
        lower_body(branches[first], inputs, outputs);
        return std::vector<Value>();
      },
      [&] {
        branch_from(branches, first + 1, index, inputs, outputs);
        return std::vector<Value>();
      });
}

// Loads an element of rank 0 in the driver, whose addresses count bytes.
Value Lowering::loaded_scalar(DType dtype, Address address) {
  const int64_t size = storage_size(dtype);
  address.offset /= size;
  for (Term& term : address.terms) term.factor /= size;
  return load_element(*driver_, dtype, address).parts[0];
}

// Copies the initial values of carries into the memory of the results, which the loop then updates.
void Lowering::start_carries(Frame& frame, std::span<const Atom> initial, const std::vector<Address>& carries,
                             const Program& body, std::size_t first) {
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const Address from = address_of(frame, initial[i]);
    if (!same(from, carries[i])) copy(from, carries[i], bytes_of(body.type(body.invars()[first + i])));
  }
}

void Lowering::lower_iteration(const Program& body, std::vector<Address> inputs, const std::vector<Address>& carries,
                               std::size_t first_carry, const std::vector<Address>& further_outputs) {
  std::vector<Address> outputs;
  std::vector<std::pair<std::size_t, Place>> beside;
  std::map<std::size_t, Var> replaced;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const Var old = body.invars()[first_carry + i];
    const ArrayType& type = body.type(old);
    if (body.outputs()[i] == Atom(old)) {
      outputs.push_back(carries[i]);
      continue;
    }
    if (may_replace(analyses_.of(analyses_.unshared(body)), old, i)) {
      replaced.emplace(i, old);
      outputs.push_back(carries[i]);
      continue;
    }
    Place place = in_arena(bytes_of(type));
    beside.emplace_back(i, place);
    outputs.push_back(place.address);
  }
  outputs.insert(outputs.end(), further_outputs.begin(), further_outputs.end());
  lower_body(body, inputs, outputs, replaced);
  for (const auto& [i, place] : beside) {
    const int64_t bytes = bytes_of(body.type(body.invars()[first_carry + i]));
    copy(place.address, carries[i], bytes);
    arena_.release(place.arena_offset, bytes);
  }
}

// One call: large carries are updated in the results, all others stay in registers. False if memory overlaps.
bool Lowering::lower_while_in_place(Frame& frame, const Equation& equation, const std::vector<Address>& results) {
  const WhileView view(equation);
  const Types types = view.body().output_types();
  const std::size_t first = view.first_carry();
  std::vector<Argument> arguments;
  std::vector<bool> in_result;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const Address from = address_of(frame, equation.inputs[i]);
    const bool carried = i >= first;
    if (carried) in_result.push_back(types[i - first].size() > max_register_elements || same(from, results[i - first]));
    if (equation.inputs[i].is_literal() || (carried && in_result.back())) continue;
    const int64_t bytes = bytes_of(frame.program.type(equation.inputs[i]));
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (from.buffer != results[k].buffer) continue;
      if (!from.terms.empty() || !results[k].terms.empty()) return false;
      if (from.offset < results[k].offset + bytes_of(types[k]) && results[k].offset < from.offset + bytes) return false;
    }
    arguments.push_back({from});
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Address from = address_of(frame, equation.inputs[first + i]);
    if (in_result[i] && !same(from, results[i])) copy(from, results[i], bytes_of(types[i]));
    arguments.push_back({results[i]});
  }
  if (sites_ && whole_loop_ < 0) mark(sites_->add_loop(frame.program, equation));
  driver_->invoke(function_number(write_loop_in_place(frame.program, equation, in_result)), std::move(arguments));
  return true;
}

void Lowering::lower_while(Frame& frame, const Equation& equation) {
  const WhileView view(equation);
  const std::vector<Address> for_condition = places_of(frame, view.cond_consts(equation.inputs));
  const std::vector<Address> for_body = places_of(frame, view.body_consts(equation.inputs));
  const Results results = make_results(frame, equation, view.body().output_types());
  const std::vector<Address>& carries = results.places;
  if (updates_in_registers(equation) && lower_while_in_place(frame, equation, carries)) return release(results);
  start_carries(frame, view.carry(equation.inputs), carries, view.body(), view.body_consts());
  const Place answer = in_arena(1);
  marked_loop(frame, equation, view.body(), [&] {
    driver_->repeat(
        {}, true,
        [&](std::span<const Value>) {
          lower_body(view.condition(), joined(for_condition, carries), {answer.address});
          return loaded_scalar(DType::bool_, answer.address);
        },
        [&](std::span<const Value>) {
          lower_iteration(view.body(), joined(for_body, carries), carries, view.body_consts(), {});
          return std::vector<Value>();
        });
  });
  arena_.release(answer.arena_offset, 1);
  release(results);
}

// One call that passes blocks of elements through all steps.
void Lowering::lower_scan_blocks(Frame& frame, const Equation& equation) {
  const ScanView view(equation);
  const Program& body = view.body();
  const Types types = types_of_scan(equation);
  const Results results = make_results(frame, equation, types);
  std::vector<Argument> arguments, written;
  for (const Address& place : results.places) written.push_back({place});
  std::vector<std::pair<int64_t, int64_t>> copies;  // offset and size in the arena
  auto apart = [&](const Address& from, int64_t bytes) {
    const bool overlaps = std::any_of(results.places.begin(), results.places.end(), [&](const Address& place) {
      const int64_t size = bytes_of(types[static_cast<std::size_t>(&place - results.places.data())]);
      if (from.buffer != place.buffer) return false;
      if (!from.terms.empty() || !place.terms.empty()) return same(from, place);
      return from.offset < place.offset + size && place.offset < from.offset + bytes;
    });
    if (!overlaps) return from;
    const Place other = in_arena(bytes);
    copies.emplace_back(other.arena_offset, bytes);
    copy(from, other.address, bytes);
    return other.address;
  };
  std::vector<bool> in_place(view.carry(), false);
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const ArrayType& step = body.type(body.invars()[i]);
    const Address from = address_of(frame, equation.inputs[i]);
    const std::size_t carry = i - view.consts();
    const bool carried = i >= view.consts() && i < view.first_xs();
    // A scalar is read by every block, when an earlier block may already have overwritten it.
    if (carried && step.size() > 1 && same(from, results.places[carry])) {
      in_place[carry] = true;
      continue;
    }
    arguments.push_back({apart(from, (i < view.first_xs() ? 1 : view.length()) * bytes_of(step))});
  }
  arguments.insert(arguments.end(), written.begin(), written.end());
  if (sites_ && whole_loop_ < 0) mark(sites_->add_loop(frame.program, equation));
  driver_->invoke(function_number(write_scan_blocks(equation, in_place)), std::move(arguments));
  for (const auto& [offset, bytes] : copies) arena_.release(offset, bytes);
  release(results);
}

void Lowering::lower_scan(Frame& frame, const Equation& equation) {
  if (runs_in_blocks(equation)) return lower_scan_blocks(frame, equation);
  const ScanView view(equation);
  const Program& body = view.body();
  const std::size_t carry = view.carry();
  const int64_t length = view.length();
  const bool reverse = view.reverse();
  const std::vector<Address> given = places_of(frame, view.consts(equation.inputs));
  const std::vector<Address> sequences = places_of(frame, view.xs(equation.inputs));
  const Results results = make_results(frame, equation, types_of_scan(equation));
  const std::vector<Address> carries(results.places.begin(),
                                     results.places.begin() + static_cast<std::ptrdiff_t>(carry));
  start_carries(frame, view.carry(equation.inputs), carries, body, view.consts());
  marked_loop(frame, equation, body, [&] {
    driver_->loop(length, {.poll = true}, {}, [&](Value iteration, std::span<const Value>) {
      auto slice = [&](Address whole, const ArrayType& type) {
        const int64_t bytes = bytes_of(type);
        if (reverse) whole.offset += (length - 1) * bytes;
        whole.terms.push_back({iteration, reverse ? -bytes : bytes});
        return whole;
      };
      std::vector<Address> inputs = joined(given, carries), further;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        inputs.push_back(slice(sequences[i], body.type(view.xs(body.invars())[i])));
      }
      for (std::size_t i = carry; i < results.places.size(); ++i)
        further.push_back(slice(results.places[i], body.type(body.outputs()[i])));
      lower_iteration(body, inputs, carries, view.consts(), further);
      return std::vector<Value>();
    });
  });
  release(results);
}

}  // namespace capibara::cpu
