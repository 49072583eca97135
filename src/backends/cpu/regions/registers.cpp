// Emits small equations element by element: indices are constants, carries of loops are values.
#include "backends/cpu/regions/registers.h"

#include <set>

#include "backends/cpu/regions/registers_writer.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace registers {

Region Writer::write(const Program& program, std::span<const int> equations, const std::vector<Var>& stored) {
  Frame frame;
  std::set<int32_t> computed;
  for (int e : equations) {
    const Equation& equation = program.equations()[at(e)];
    for (Atom input : equation.inputs) {
      if (input.is_literal() || computed.count(input.code) || frame.count(input.code)) continue;
      const ArrayType& type = program.type(input);
      const int32_t buffer = builder_.parameter(type.size() * storage_size(type.dtype), false);
      region_.parameters.push_back(input.var());
      frame[input.code] = in_memory(type, {buffer, 0, {}});
    }
    for (Var output : equation.outputs) {
      if (!output.dropped()) computed.insert(output.id);
    }
  }
  std::map<int32_t, int32_t> targets;
  for (Var var : stored) {
    const ArrayType& type = program.type(var);
    targets[var.id] = builder_.parameter(type.size() * storage_size(type.dtype), true);
    region_.parameters.push_back(var);
  }
  for (int e : equations) write_equation(program, program.equations()[at(e)], frame, &targets);
  for (const auto& [id, buffer] : targets) {
    if (frame.at(id).memory) continue;  // written in place
    store_all(frame.at(id), {buffer, 0, {}});
  }
  return std::move(region_);
}

Slot Writer::in_memory(const ArrayType& type, Address address) {
  Slot slot{type, {}, std::move(address)};
  if (small(type)) {
    for (int64_t k = 0; k < type.size(); ++k)
      slot.elements.push_back(load_element(builder_, type.dtype, moved(*slot.memory, k)));
    slot.memory.reset();
  }
  return slot;
}

Address Writer::moved(Address address, int64_t elements) {
  address.offset += elements;
  return address;
}

void Writer::store_all(const Slot& slot, const Address& target) {
  for (std::size_t k = 0; k < slot.elements.size(); ++k) {
    store_element(builder_, slot.type.dtype, moved(target, static_cast<int64_t>(k)), slot.elements[k]);
  }
}

Slot Writer::slot_of(const Program& program, Atom atom, const Frame& frame) {
  if (!atom.is_literal()) return frame.at(atom.code);
  const Array& literal = program.literal(atom);
  return {literal.type(), {constant_element(builder_, literal.dtype(), literal.raw_data())}, {}};
}

Element Writer::element(const Slot& slot, const Index& index) {
  const Affine place = linear(index, slot.type.shape);
  if (!slot.memory) return slot.elements[at(place.constant)];
  return load_element(builder_, slot.type.dtype, moved(*slot.memory, place.constant));
}

std::vector<Slot> Writer::write_body(const Program& body, std::vector<Slot> inputs) {
  Frame frame;
  for (std::size_t i = 0; i < inputs.size(); ++i) frame[body.invars()[i].id] = std::move(inputs[i]);
  for (std::size_t i = 0; i < body.constvars().size(); ++i) {
    const Array& constant = body.constants()[i];
    Slot slot{constant.type(), {}, {}};
    const int64_t size = storage_size(constant.dtype());
    for (int64_t k = 0; k < constant.size(); ++k) {
      slot.elements.push_back(constant_element(builder_, constant.dtype(), constant.raw_data() + k * size));
    }
    frame[body.constvars()[i].id] = std::move(slot);
  }
  for (const Equation& equation : body.equations()) write_equation(body, equation, frame, nullptr);
  std::vector<Slot> outputs;
  for (Atom output : body.outputs()) outputs.push_back(slot_of(body, output, frame));
  return outputs;
}

void Writer::write_equation(const Program& program, const Equation& equation, Frame& frame,
                            const std::map<int32_t, int32_t>* targets) {
  const Primitive& primitive = equation.primitive;
  std::vector<Slot> inputs;
  for (Atom input : equation.inputs) inputs.push_back(slot_of(program, input, frame));
  std::vector<Slot> outputs;
  if (const Program* called = called_program(equation))
    outputs = write_body(*called, inputs);
  else if (primitive == prim::cond())
    outputs = write_cond(equation, inputs);
  else if (primitive == prim::while_())
    outputs = write_while(equation, inputs);
  else if (primitive == prim::scan())
    outputs = write_scan(equation, inputs, targets);
  else {
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      Slot slot;
      if (!equation.outputs[i].dropped()) slot = write_elements(program, equation, static_cast<int>(i), inputs);
      outputs.push_back(std::move(slot));
    }
  }
  for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
    const Var output = equation.outputs[i];
    if (output.dropped()) continue;
    outputs[i].type = program.type(output);
    frame[output.id] = std::move(outputs[i]);
  }
}

// Memory for a value that will be read at an index known only at run time.
Address Writer::spilled(const Slot& slot) {
  if (slot.memory) return *slot.memory;
  const Address place{builder_.local(std::max<int64_t>(1, slot.type.size() * storage_size(slot.type.dtype))), 0, {}};
  store_all(slot, place);
  return place;
}

}  // namespace registers

Region write_registers(const Program& program, std::span<const int> equations, const std::vector<Var>& stored) {
  return registers::Writer().write(program, equations, stored);
}

}  // namespace capibara::cpu
