// Slices and updates of values in registers at starts known only at run time: a selection among all positions.
#include "backends/cpu/regions/registers_writer.h"

namespace capibara::cpu::registers {

Value Writer::start_of(const Slot& slot, int64_t last) {
  const bool is_signed_start = is_signed(slot.type.dtype);
  const Value wide =
      builder_.convert(is_signed_start ? Op::sign_extend : Op::zero_extend, Scalar::i64, slot.elements[0].parts[0]);
  const Value zero = builder_.index(0), limit = builder_.index(last);
  Value value = wide;
  if (is_signed_start) value = builder_.compute(Op::select, builder_.compute(Op::lt, wide, zero), zero, wide);
  return builder_.compute(Op::select, builder_.compute(is_signed_start ? Op::gt : Op::gt_unsigned, value, limit), limit,
                          value);
}

std::vector<Value> Writer::starts_of(const std::vector<Slot>& inputs, std::size_t first, const Shape& whole,
                                     const Shape& part) {
  std::vector<Value> starts;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    const int64_t last = whole[d] - part[d];
    starts.push_back(last == 0 ? builder_.index(0) : start_of(inputs[first + d], last));
  }
  return starts;
}

// The address of the element of a value in memory at these starts.
Address Writer::placed(Address address, const std::vector<Value>& starts, const Shape& whole) {
  int64_t stride = 1;
  for (std::size_t d = whole.size(); d-- > 0;) {
    address.terms.push_back({starts[d], stride});
    stride *= whole[d];
  }
  return address;
}

Slot Writer::dynamic_slice(const ArrayType& type, const std::vector<Slot>& inputs) {
  const Shape& whole = inputs[0].type.shape;
  const std::vector<Value> starts = starts_of(inputs, 1, whole, type.shape);
  Slot slot{type, {}, {}};
  if (inputs[0].memory) {
    const Address place = placed(*inputs[0].memory, starts, whole);
    for (int64_t k = 0; k < type.size(); ++k) {
      slot.elements.push_back(
          load_element(builder_, type.dtype, moved(place, linear(constant_index(k, type.shape), whole).constant)));
    }
    return slot;
  }
  Shape range;
  for (std::size_t d = 0; d < whole.size(); ++d) range.push_back(whole[d] - type.shape[d] + 1);
  for (int64_t k = 0; k < type.size(); ++k) {
    const Index index = constant_index(k, type.shape);
    std::optional<Element> chosen;
    for (int64_t choice = 0; choice < element_count(range); ++choice) {
      Index place = constant_index(choice, range);
      Value here = is_here(starts, place, range);
      for (std::size_t d = 0; d < place.size(); ++d) place[d].add(index[d]);
      const Element candidate = element(inputs[0], place);
      chosen = chosen ? select_element(builder_, here, candidate, *chosen) : candidate;
    }
    slot.elements.push_back(*chosen);
  }
  return slot;
}

Value Writer::is_here(const std::vector<Value>& starts, const Index& place, const Shape& range) {
  Value here = builder_.constant_int(Scalar::i1, 1);
  for (std::size_t d = 0; d < place.size(); ++d) {
    if (range[d] == 1) continue;
    here = builder_.compute(Op::bit_and, here, builder_.compute(Op::eq, starts[d], builder_.index(place[d].constant)));
  }
  return here;
}

Slot Writer::dynamic_update_slice(const ArrayType& type, const std::vector<Slot>& inputs) {
  const Shape &whole = type.shape, &part = inputs[1].type.shape;
  const std::vector<Value> starts = starts_of(inputs, 2, whole, part);
  if (inputs[0].memory) {
    for (int64_t k = 0; k < inputs[1].type.size(); ++k) {
      Address place = moved(placed(*inputs[0].memory, starts, whole), linear(constant_index(k, part), whole).constant);
      store_element(builder_, type.dtype, place, element(inputs[1], constant_index(k, part)));
    }
    return {type, {}, inputs[0].memory};
  }
  Slot slot{type, inputs[0].elements, {}};
  Shape range;
  for (std::size_t d = 0; d < whole.size(); ++d) range.push_back(whole[d] - part[d] + 1);
  if (inputs[1].type.size() == 0) return slot;
  for (int64_t choice = 0; choice < element_count(range); ++choice) {
    const Index start = constant_index(choice, range);
    const Value here = is_here(starts, start, range);
    for (int64_t k = 0; k < inputs[1].type.size(); ++k) {
      Index place = constant_index(k, part);
      const Element update = element(inputs[1], place);
      for (std::size_t d = 0; d < place.size(); ++d) place[d].add(start[d]);
      Element& old = slot.elements[at(linear(place, whole).constant)];
      old = select_element(builder_, here, update, old);
    }
  }
  return slot;
}

}  // namespace capibara::cpu::registers
