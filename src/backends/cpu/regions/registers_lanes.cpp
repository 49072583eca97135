// Long functions of small values, and scans of elementwise operations only: several elements at a time in lanes.
//
//   carry (9,)  for step: c[0] = f(c[0]); ...; c[8] = f(c[8])
//   becomes     for lane in 0, 1: for step: c[lane] = f(c[lane]); c[2 + lane] = f(c[2 + lane]); ...; c[8 + lane] =
//   f(c[8 + lane])
#include <algorithm>
#include <bit>

#include "backends/cpu/elements/number.h"
#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/regions/registers_writer.h"
#include "core/runtime/processor.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu::registers {

namespace {

constexpr int64_t min_in_lanes = 4;      // of values whose functions run in lanes
constexpr int64_t several_elements = 8;  // of values in scans without long functions

// Lanes for elements of the given size: one vector register of this machine, or the number that holds all elements.
int64_t lanes_for(int64_t size, int64_t bytes) {
  const int64_t vector_bytes = has_avx512() ? 64 : has_avx2() ? 32 : 16;
  return std::min(std::max<int64_t>(2, vector_bytes / bytes),
                  static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))));
}

// A function of one operand that takes dozens of operations per element.
bool is_long_function(const Equation& equation, DType dtype) {
  return (dtype == DType::float32 || dtype == DType::float64) && equation.inputs.size() == 1 &&
         equation.primitive->traits.cost == Cost::function;
}

}  // namespace

// Functions of dozens of operations: several elements at a time, through memory, beat one at a time in registers.
bool Writer::runs_in_lanes(const Equation& equation, const ArrayType& type) {
  return type.size() >= min_in_lanes && is_long_function(equation, type.dtype);
}

Slot Writer::function_in_lanes(const Equation& equation, const ArrayType& type, const Slot& input) {
  const int64_t width = lanes_for(type.size(), storage_size(type.dtype)), blocks = (type.size() + width - 1) / width;
  const Address from = in_blocks(input, blocks * width);
  const Address to{builder_.local(blocks * width * storage_size(type.dtype)), 0, {}};
  builder_.loop(width, {.lanes = true}, {}, [&](Value lane, std::span<const Value>) {
    const std::vector<DType> dtypes = {type.dtype};
    std::vector<Element> results;
    for (int64_t block = 0; block < blocks; ++block) {
      results.push_back(load_element(builder_, type.dtype, in_lane(from, block * width, lane)));
    }
    results = apply_in_blocks(equation, dtypes, type.dtype, {results}, at(blocks));
    for (int64_t block = 0; block < blocks; ++block)
      store_element(builder_, type.dtype, in_lane(to, block * width, lane), results[at(block)]);
    return std::vector<Value>();
  });
  return in_memory(type, to);
}

// A sine tests whether its argument is huge. One test for all blocks lets their computations run side by side.
Writer::Blocks Writer::apply_in_blocks(const Equation& equation, const std::vector<DType>& dtypes, DType dtype,
                                       const std::vector<Blocks>& operands, std::size_t count) {
  auto apply = [&] {
    Blocks results;
    for (std::size_t block = 0; block < count; ++block) {
      std::vector<Element> parts;
      for (const Blocks& operand : operands) parts.push_back(operand[operand.size() == 1 ? 0 : block]);
      results.push_back(apply_elementwise(builder_, equation.primitive, equation.attrs, dtypes, dtype, parts));
    }
    return results;
  };
  const bool sine = equation.primitive == prim::sin();
  if (count == 1 || operands[0].size() == 1 || !(sine || equation.primitive == prim::cos()) ||
      !is_long_function(equation, dtype))
    return apply();
  Value huge = no_value;
  for (const Element& element : operands[0]) {
    const Value here = math::in_lanes::detail::is_irreducible(Number{&builder_, element.parts[0]}).value;
    huge = huge == no_value ? here : builder_.compute(Op::bit_or, huge, here);
  }
  auto values_of = [](const Blocks& blocks) {
    std::vector<Value> values;
    for (const Element& element : blocks) values.push_back(element.parts[0]);
    return values;
  };
  Blocks results;
  for (Value value : builder_.branch(
           huge, [&] { return values_of(apply()); },
           [&] {
             Blocks near;
             for (const Element& element : operands[0]) {
               const Number x{&builder_, element.parts[0]};
               near.push_back(
                   Element((sine ? math::in_lanes::reducible_sin(x) : math::in_lanes::reducible_cos(x)).value));
             }
             return values_of(near);
           })) {
    results.push_back(Element(value));
  }
  return results;
}

Address Writer::in_lane(Address address, int64_t offset, Value lane) {
  address.offset += offset;
  address.terms.push_back({lane, 1});
  return address;
}

// A copy in memory, with the last element repeated until there are `count`.
Address Writer::in_blocks(const Slot& slot, int64_t count) {
  const Address place{builder_.local(count * static_cast<int64_t>(storage_size(slot.type.dtype))), 0, {}};
  store_all(slot, place);
  for (int64_t k = slot.type.size(); k < count; ++k)
    store_element(builder_, slot.type.dtype, moved(place, k), slot.elements.back());
  return place;
}

// ---- scans --------------------------------------------------------------------------------------------------------

// How elements of a scan are spread over lanes; nullopt if they depend on each other or are too few.
std::optional<Writer::Lanes> Writer::lanes_of(const Equation& scan) {
  const std::optional<ElementwiseScan> found = elementwise_scan(scan);
  if (!found) return std::nullopt;
  const ScanView view(scan);
  const Program& body = view.body();
  const bool is_long = std::any_of(body.equations().begin(), body.equations().end(), [&](const Equation& equation) {
    return is_long_function(equation, body.type(equation.outputs[0]).dtype);
  });
  const int64_t size = element_count(found->shape);
  if (size < (is_long ? min_in_lanes : several_elements)) return std::nullopt;
  // Sequences have no padding for lanes past the end to read and write.
  bool full = false;
  for (Var input : view.xs(body.invars())) full |= body.type(input).size() != 1;
  for (std::size_t i = view.carry(); i < body.outputs().size(); ++i) {
    if (body.type(body.outputs()[i]).size() == 1) return std::nullopt;
    full = true;
  }
  int64_t width = lanes_for(size, found->widest);
  while (full && width > 2 && size % width != 0) width /= 2;
  if (full && size % width != 0) return std::nullopt;
  return Lanes{width, (size + width - 1) / width};
}

// One step: the elements of each value that this lane holds, one per block; for a scalar just one.
std::vector<Writer::Blocks> Writer::step_in_lanes(const Program& body, const Lanes& lanes, std::vector<Blocks> inputs) {
  std::unordered_map<int32_t, Blocks> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) known[body.invars()[i].id] = std::move(inputs[i]);
  auto blocks_of = [&](Atom atom) -> Blocks {
    if (!atom.is_literal()) return known.at(atom.code);
    const Array& literal = body.literal(atom);
    return {constant_element(builder_, literal.dtype(), literal.raw_data())};
  };
  for (const Equation& equation : body.equations()) {
    const ArrayType& type = body.type(equation.outputs[0]);
    std::vector<Blocks> operands;
    std::vector<DType> dtypes;
    for (Atom input : equation.inputs) {
      operands.push_back(blocks_of(input));
      dtypes.push_back(body.type(input).dtype);
    }
    Blocks result;
    if (stretches(body, equation)) {
      result.assign(type.size() == 1 ? 1 : at(lanes.blocks), operands[0][0]);
    } else {
      result = apply_in_blocks(equation, dtypes, type.dtype, operands, type.size() == 1 ? 1 : at(lanes.blocks));
    }
    known[equation.outputs[0].id] = std::move(result);
  }
  std::vector<Blocks> outputs;
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    outputs.push_back(blocks_of(body.outputs()[i]));
    // A literal represents all blocks.
    const bool number = body.type(body.outputs()[i]).size() == 1;
    if (!number) outputs.back().resize(at(lanes.blocks), outputs.back()[0]);
  }
  return outputs;
}

std::vector<Slot> Writer::scan_in_lanes(const Equation& equation, const Lanes& lanes, const std::vector<Slot>& inputs,
                                        const std::vector<Address>& sequences, const std::vector<Address>& stacked) {
  const ScanView view(equation);
  const Program& body = view.body();
  const std::size_t consts = view.consts(), carry = view.carry();
  const int64_t length = view.length(), padded = lanes.width * lanes.blocks;
  const bool reverse = view.reverse();
  auto is_number = [](const ArrayType& type) { return type.size() == 1; };
  std::vector<Address> places, results;
  for (std::size_t i = 0; i < consts + carry; ++i) {
    places.push_back(is_number(inputs[i].type) ? Address{} : in_blocks(inputs[i], padded));
    if (i < consts) continue;
    const int64_t count = is_number(inputs[i].type) ? 1 : padded;
    results.push_back({builder_.local(count * static_cast<int64_t>(storage_size(inputs[i].type.dtype))), 0, {}});
  }
  builder_.loop(lanes.width, {.lanes = true}, {}, [&](Value lane, std::span<const Value>) {
    auto loaded = [&](const ArrayType& type, const Address& place) -> Blocks {
      if (is_number(type)) return {load_element(builder_, type.dtype, place)};
      Blocks blocks;
      for (int64_t block = 0; block < lanes.blocks; ++block) {
        blocks.push_back(load_element(builder_, type.dtype, in_lane(place, block * lanes.width, lane)));
      }
      return blocks;
    };
    auto stored = [&](const ArrayType& type, const Address& place, const Blocks& blocks) {
      if (is_number(type)) return store_element(builder_, type.dtype, place, blocks[0]);
      for (int64_t block = 0; block < lanes.blocks; ++block) {
        store_element(builder_, type.dtype, in_lane(place, block * lanes.width, lane), blocks[at(block)]);
      }
    };
    std::vector<Blocks> first;
    for (std::size_t i = 0; i < consts + carry; ++i) {
      first.push_back(is_number(inputs[i].type) ? Blocks{inputs[i].elements[0]} : loaded(inputs[i].type, places[i]));
    }
    std::vector<Builder::Initial> initial;
    for (std::size_t i = consts; i < consts + carry; ++i) {
      for (const Element& element : first[i]) initial.push_back({element.parts[0]});
    }
    auto carried = [&](std::span<const Value> values) {
      std::vector<Blocks> blocks(carry);
      std::size_t next = 0;
      for (std::size_t i = 0; i < carry; ++i) {
        for (std::size_t k = 0; k < first[consts + i].size(); ++k) blocks[i].push_back(Element(values[next++]));
      }
      return blocks;
    };
    const std::vector<Value> last =
        builder_.loop(length, {.poll = true}, initial, [&](Value iteration, std::span<const Value> values) {
          auto slice = [&](Address whole, int64_t size) {
            if (reverse) whole.offset += (length - 1) * size;
            whole.terms.push_back({iteration, reverse ? -size : size});
            return whole;
          };
          std::vector<Blocks> operands(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(consts));
          for (Blocks& blocks : carried(values)) operands.push_back(std::move(blocks));
          for (std::size_t i = 0; i < sequences.size(); ++i) {
            const ArrayType& type = body.type(body.invars()[consts + carry + i]);
            operands.push_back(loaded(type, slice(sequences[i], type.size())));
          }
          const std::vector<Blocks> outputs = step_in_lanes(body, lanes, std::move(operands));
          std::vector<Value> following;
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            const ArrayType& type = body.type(body.outputs()[i]);
            if (i >= carry) {
              stored(type, slice(stacked[i - carry], type.size()), outputs[i]);
              continue;
            }
            for (const Element& element : outputs[i]) following.push_back(element.parts[0]);
          }
          return following;
        });
    const std::vector<Blocks> finals = carried(last);
    for (std::size_t i = 0; i < carry; ++i) stored(inputs[consts + i].type, results[i], finals[i]);
    return std::vector<Value>();
  });
  std::vector<Slot> finished;
  for (std::size_t i = 0; i < carry; ++i) finished.push_back(in_memory(inputs[consts + i].type, results[i]));
  return finished;
}

}  // namespace capibara::cpu::registers
