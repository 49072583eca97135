// Loops and branches whose carries are values in registers; sequences are read and written in memory.
#include <algorithm>

#include "backends/cpu/regions/registers_writer.h"

namespace capibara::cpu::registers {

void Writer::flatten(const std::vector<Slot>& slots, std::vector<Value>& values) {
  for (const Slot& slot : slots) {
    for (const Element& element : slot.elements) values.insert(values.end(), element.parts, element.parts + element.count);
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

std::vector<Slot> Writer::unflatten(const Types& types, std::span<const Value> values) {
  std::vector<Slot> slots;
  std::size_t next = 0;
  for (const ArrayType& type : types) slots.push_back(unflatten(type, values, next));
  return slots;
}

std::vector<Slot> Writer::write_cond(const Equation& equation, const std::vector<Slot>& inputs) {
  const std::vector<Program> branches = equation.attrs.programs("branches");
  const std::vector<Slot> operands(inputs.begin() + 1, inputs.end());
  return unflatten(branches[0].output_types(), branch_from(branches, 0, inputs[0].elements[0].parts[0], operands));
}

std::vector<Value> Writer::branch_from(const std::vector<Program>& branches, std::size_t first, Value index, const std::vector<Slot>& operands) {
  auto write = [&](std::size_t branch) {
    std::vector<Value> values;
    flatten(write_body(branches[branch], operands), values);
    return values;
  };
  if (first + 1 == branches.size()) return write(first);
  const Value here = builder_.compute(Op::le, index, builder_.constant_int(builder_.type(index), static_cast<int64_t>(first)));
  return builder_.branch(here, [&] { return write(first); }, [&] { return branch_from(branches, first + 1, index, operands); });
}

std::vector<Slot> Writer::write_while(const Equation& equation, const std::vector<Slot>& inputs) {
  const Program &condition = equation.attrs.program("cond_jaxpr"), &body = equation.attrs.program("body_jaxpr");
  const auto condition_consts = equation.attrs.integer("cond_nconsts"), body_consts = equation.attrs.integer("body_nconsts");
  const std::vector<Slot> for_condition(inputs.begin(), inputs.begin() + condition_consts);
  const std::vector<Slot> for_body(inputs.begin() + condition_consts, inputs.begin() + condition_consts + body_consts);
  const std::vector<Slot> carries(inputs.begin() + condition_consts + body_consts, inputs.end());
  const Types types = body.output_types();
  std::vector<Value> initial;
  flatten(carries, initial);
  auto with = [&](std::vector<Slot> first, std::span<const Value> values) {
    for (Slot& slot : unflatten(types, values)) first.push_back(std::move(slot));
    return first;
  };
  return unflatten(types, builder_.repeat(
                              initial, true,
                              [&](std::span<const Value> values) {
                                return write_body(condition, with(for_condition, values))[0].elements[0].parts[0];
                              },
                              [&](std::span<const Value> values) {
                                std::vector<Value> next;
                                flatten(write_body(body, with(for_body, values)), next);
                                return next;
                              }));
}

std::vector<Slot> Writer::write_scan(const Equation& equation, const std::vector<Slot>& inputs,
                             const std::map<int32_t, int32_t>* targets) {
  const Program& body = equation.attrs.program("jaxpr");
  const auto consts = equation.attrs.integer("num_consts"), carry = equation.attrs.integer("num_carry");
  const int64_t length = equation.attrs.integer("length");
  const bool reverse = equation.attrs.boolean("reverse");
  const std::vector<Slot> given(inputs.begin(), inputs.begin() + consts);
  const std::vector<Slot> carries(inputs.begin() + consts, inputs.begin() + consts + carry);
  Types types = body.output_types();
  types.resize(at(carry));
  std::vector<Builder::Initial> initial;
  std::vector<Value> first;
  flatten(carries, first);
  for (Value value : first) initial.push_back({value});

  // Sequences are read and written in memory, at a place that moves with the turn.
  std::vector<Address> sequences, stacked;
  for (std::size_t i = at(consts + carry); i < inputs.size(); ++i) sequences.push_back(spilled(inputs[i]));
  std::vector<Slot> outputs(at(carry));
  for (std::size_t i = at(carry); i < equation.outputs.size(); ++i) {
    const Var output = equation.outputs[i];
    ArrayType type = body.type(body.outputs()[i]);
    type.shape.insert(type.shape.begin(), length);
    auto target = targets && !output.dropped() ? targets->find(output.id) : std::map<int32_t, int32_t>::const_iterator();
    const bool given_place = targets && !output.dropped() && target != targets->end();
    const int32_t buffer = given_place ? target->second : builder_.local(std::max<int64_t>(1, type.size() * storage_size(type.dtype)));
    stacked.push_back({buffer, 0, {}});
    outputs.push_back({type, {}, Address{buffer, 0, {}}});
  }
  std::vector<Slot> finished;
  if (const std::optional<Lanes> lanes = lanes_of(equation)) {
    finished = scan_in_lanes(equation, *lanes, inputs, sequences, stacked);
  } else {
    const std::vector<Value> last = builder_.loop(length, {.poll = true}, initial, [&](Value turn, std::span<const Value> values) {
      auto slice = [&](Address whole, int64_t size) {
        if (reverse) whole.offset += (length - 1) * size;
        whole.terms.push_back({turn, reverse ? -size : size});
        return whole;
      };
      std::vector<Slot> operands = given;
      std::size_t next = 0;
      for (const ArrayType& type : types) operands.push_back(unflatten(type, values, next));
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        const ArrayType& type = body.type(body.invars()[at(consts + carry) + i]);
        operands.push_back(in_memory(type, slice(sequences[i], type.size())));
      }
      std::vector<Slot> results = write_body(body, std::move(operands));
      for (std::size_t i = at(carry); i < results.size(); ++i) store_all(results[i], slice(stacked[i - at(carry)], results[i].type.size()));
      results.resize(at(carry));
      std::vector<Value> following;
      flatten(results, following);
      return following;
    });
    finished = unflatten(types, last);
  }
  std::move(finished.begin(), finished.end(), outputs.begin());
  // Small stacks that are read again go on in registers; large ones stay where they were written.
  for (std::size_t i = at(carry); i < outputs.size(); ++i) {
    if (!equation.outputs[i].dropped() && small(outputs[i].type)) outputs[i] = in_memory(outputs[i].type, *outputs[i].memory);
  }
  return outputs;
}

}  // namespace capibara::cpu::registers
