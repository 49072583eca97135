// Loops and branches whose carries are values in registers; sequences are read and written in memory.
#include <algorithm>

#include "backends/cpu/regions/registers_writer.h"
#include "program/ir/views.h"

namespace capibara::cpu::registers {

void Writer::flatten(std::span<const Slot> slots, std::vector<Value>& values) {
  for (const Slot& slot : slots) {
    for (const Element& element : slot.elements)
      values.insert(values.end(), element.parts, element.parts + element.count);
  }
}

Slot Writer::unflatten(const ArrayType& type, std::span<const Value> values, std::size_t& next) {
  Slot slot{type, {}, {}};
  for (int64_t k = 0; k < type.size(); ++k) {
    Element element;
    element.count = part_count(type.dtype);
    for (int part = 0; part < element.count; ++part) element.parts[part] = values[next++];
    slot.elements.push_back(element);
  }
  return slot;
}

std::vector<Slot> Writer::unflatten(const Types& types, std::span<const Value> values, std::span<const Slot> places) {
  std::vector<Slot> slots;
  std::size_t next = 0;
  for (std::size_t i = 0; i < types.size(); ++i)
    slots.push_back(!places.empty() && places[i].memory ? places[i] : unflatten(types[i], values, next));
  return slots;
}

std::vector<Slot> Writer::write_cond(const Equation& equation, const std::vector<Slot>& inputs) {
  const CondView view(equation);
  const std::vector<Slot> operands(inputs.begin() + 1, inputs.end());
  std::vector<Slot> places;
  const std::vector<Value> values = branch_from(view.branches(), 0, inputs[0].elements[0].parts[0], operands, places);
  return unflatten(view.branches()[0].output_types(), values, places);
}

std::vector<Value> Writer::branch_from(const std::vector<Program>& branches, std::size_t first, Value index,
                                       const std::vector<Slot>& operands, std::vector<Slot>& places) {
  auto write = [&](std::size_t branch) {
    std::vector<Value> values;
    places = write_body(branches[branch], operands);  // values in memory are in the same buffer after every branch
    flatten(places, values);
    return values;
  };
  if (first + 1 == branches.size()) return write(first);
  const Value here =
      builder_.compute(Op::le, index, builder_.constant_int(builder_.type(index), static_cast<int64_t>(first)));
  return builder_.branch(
      here, [&] { return write(first); }, [&] { return branch_from(branches, first + 1, index, operands, places); });
}

std::vector<Slot> Writer::write_while(const Equation& equation, const std::vector<Slot>& inputs) {
  const WhileView view(equation);
  const Types types = view.body().output_types();
  std::vector<Value> initial;
  flatten(view.carry(inputs), initial);
  auto with = [&](std::span<const Slot> consts, std::span<const Value> values) {
    std::vector<Slot> all(consts.begin(), consts.end());
    for (Slot& slot : unflatten(types, values, view.carry(inputs))) all.push_back(std::move(slot));
    return all;
  };
  return unflatten(types,
                   builder_.repeat(
                       initial, true,
                       [&](std::span<const Value> values) {
                         const std::vector<Slot> operands = with(view.cond_consts(inputs), values);
                         return write_body(view.condition(), operands)[0].elements[0].parts[0];
                       },
                       [&](std::span<const Value> values) {
                         std::vector<Value> next;
                         flatten(write_body(view.body(), with(view.body_consts(inputs), values)), next);
                         return next;
                       }),
                   view.carry(inputs));
}

std::vector<Slot> Writer::write_scan(const Equation& equation, const std::vector<Slot>& inputs,
                                     const std::map<int32_t, int32_t>* targets) {
  const ScanView view(equation);
  const Program& body = view.body();
  const std::size_t carry = view.carry();
  const int64_t length = view.length();
  const bool reverse = view.reverse();
  const std::span<const Slot> given = view.consts(inputs);
  Types types = body.output_types();
  types.resize(carry);
  std::vector<Builder::Initial> initial;
  std::vector<Value> first;
  flatten(view.carry(inputs), first);
  for (Value value : first) initial.push_back({value});

  // Sequences are read and written in memory, at an address that advances with the iteration.
  std::vector<Address> sequences, stacked;
  for (const Slot& slot : view.xs(inputs)) sequences.push_back(spilled(slot));
  std::vector<Slot> outputs(carry);
  for (std::size_t i = carry; i < equation.outputs.size(); ++i) {
    const Var output = equation.outputs[i];
    ArrayType type = body.type(body.outputs()[i]);
    type.shape.insert(type.shape.begin(), length);
    auto target =
        targets && !output.dropped() ? targets->find(output.id) : std::map<int32_t, int32_t>::const_iterator();
    const bool given_place = targets && !output.dropped() && target != targets->end();
    const int32_t buffer =
        given_place ? target->second : builder_.local(std::max<int64_t>(1, type.size() * storage_size(type.dtype)));
    stacked.push_back({buffer, 0, {}});
    outputs.push_back({type, {}, Address{buffer, 0, {}}});
  }
  std::vector<Slot> finished;
  if (const std::optional<Lanes> lanes = lanes_of(equation)) {
    finished = scan_in_lanes(equation, *lanes, inputs, sequences, stacked);
  } else {
    const std::vector<Value> last =
        builder_.loop(length, {.poll = true}, initial, [&](Value iteration, std::span<const Value> values) {
          auto slice = [&](Address whole, int64_t size) {
            if (reverse) whole.offset += (length - 1) * size;
            whole.terms.push_back({iteration, reverse ? -size : size});
            return whole;
          };
          std::vector<Slot> operands(given.begin(), given.end());
          std::size_t next = 0;
          for (const ArrayType& type : types) operands.push_back(unflatten(type, values, next));
          for (std::size_t i = 0; i < sequences.size(); ++i) {
            const ArrayType& type = body.type(view.xs(body.invars())[i]);
            operands.push_back(in_memory(type, slice(sequences[i], type.size())));
          }
          std::vector<Slot> results = write_body(body, std::move(operands));
          for (std::size_t i = carry; i < results.size(); ++i)
            store_all(results[i], slice(stacked[i - carry], results[i].type.size()));
          results.resize(carry);
          std::vector<Value> following;
          flatten(results, following);
          return following;
        });
    finished = unflatten(types, last);
  }
  std::move(finished.begin(), finished.end(), outputs.begin());
  // Small stacked results that are read again continue in registers; large ones stay where they were written.
  for (std::size_t i = carry; i < outputs.size(); ++i) {
    if (!equation.outputs[i].dropped() && small(outputs[i].type))
      outputs[i] = in_memory(outputs[i].type, *outputs[i].memory);
  }
  return outputs;
}

}  // namespace capibara::cpu::registers
