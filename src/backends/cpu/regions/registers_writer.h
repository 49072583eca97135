// The writer of small equations: values element by element in registers; the registers_*.cpp files are split by kind of
// equation.
#pragma once

#include <map>
#include <unordered_map>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/loops/builder.h"
#include "backends/cpu/regions/registers.h"

namespace capibara::cpu::registers {

inline constexpr int64_t max_elements = max_register_elements;

bool small(const ArrayType& type);
bool is_dot(const Program& program, const Equation& equation);
bool is_arg_reduction(const Primitive& primitive);
// The cost of an equation inside a body; nullopt if it does not fit.
std::optional<int64_t> cost_inside(const Program& program, const Equation& equation);

// A value: its elements in row-major order, or an address in memory from which they are loaded on demand.
struct Slot {
  ArrayType type;
  std::vector<Element> elements;
  std::optional<Address> memory;
};

class Writer {
 public:
  Writer() : builder_(region_.function) {}
  Region write(const Program& program, std::span<const int> equations, const std::vector<Var>& stored);
  Function write_in_place(const Program& program, const Equation& loop, const std::vector<bool>& in_result);

 private:
  using Frame = std::unordered_map<int32_t, Slot>;  // by variable: a run of equations uses few of a program's

  // ---- programs (registers.cpp) ----------------------------------------------------------------------------------
  Slot in_memory(const ArrayType& type, Address address);
  static Address moved(Address address, int64_t elements);
  void store_all(const Slot& slot, const Address& target);
  Slot slot_of(const Program& program, Atom atom, const Frame& frame);
  Element element(const Slot& slot, const Index& index);
  std::vector<Slot> write_body(const Program& body, std::vector<Slot> inputs);
  void write_equation(const Program& program, const Equation& equation, Frame& frame,
                      const std::map<int32_t, int32_t>* targets);
  Address spilled(const Slot& slot);

  // ---- control flow (registers_control.cpp) ----------------------------------------------------------------------
  static void flatten(std::span<const Slot> slots, std::vector<Value>& values);
  static Slot unflatten(const ArrayType& type, std::span<const Value> values, std::size_t& next);
  // `places`: one per type, for values in memory; empty if all are in registers.
  std::vector<Slot> unflatten(const Types& types, std::span<const Value> values, std::span<const Slot> places = {});
  std::vector<Slot> write_cond(const Equation& equation, const std::vector<Slot>& inputs);
  std::vector<Value> branch_from(const std::vector<Program>& branches, std::size_t first, Value index,
                                 const std::vector<Slot>& operands, std::vector<Slot>& places);
  std::vector<Slot> write_while(const Equation& equation, const std::vector<Slot>& inputs);
  std::vector<Slot> write_scan(const Equation& equation, const std::vector<Slot>& inputs,
                               const std::map<int32_t, int32_t>* targets);

  // ---- elements (registers_elements.cpp) -------------------------------------------------------------------------
  Slot write_elements(const Program& program, const Equation& equation, int number, const std::vector<Slot>& inputs);
  Element concatenated(const Equation& equation, Index index, const std::vector<Slot>& inputs);
  Element part_of_split(const Equation& equation, Index index, int number, const Slot& input);
  Element padded(const Equation& equation, const Index& index, const std::vector<Slot>& inputs);
  template <class F>
  void for_each_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input,
                        F&& visit);
  Element reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input);
  Element arg_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input);
  Element dot(const Equation& equation, const Index& index, const std::vector<Slot>& inputs, DType dtype);

  // ---- several elements at a time (registers_lanes.cpp) ----------------------------------------------------------
  using Blocks = std::vector<Element>;  // the elements of a value that one lane holds
  struct Lanes {
    int64_t width, blocks;
  };
  static bool runs_in_lanes(const Equation& equation, const ArrayType& type);
  Slot function_in_lanes(const Equation& equation, const ArrayType& type, const Slot& input);
  Blocks apply_in_blocks(const Equation& equation, const std::vector<DType>& dtypes, DType dtype,
                         const std::vector<Blocks>& operands, std::size_t count);
  static Address in_lane(Address address, int64_t offset, Value lane);
  Address in_blocks(const Slot& slot, int64_t count);
  static std::optional<Lanes> lanes_of(const Equation& scan);
  std::vector<Blocks> step_in_lanes(const Program& body, const Lanes& lanes, std::vector<Blocks> inputs);
  std::vector<Slot> scan_in_lanes(const Equation& equation, const Lanes& lanes, const std::vector<Slot>& inputs,
                                  const std::vector<Address>& sequences, const std::vector<Address>& stacked);

  // ---- slices at starts known only at run time (registers_slices.cpp) --------------------------------------------
  Value start_of(const Slot& slot, int64_t last);
  std::vector<Value> starts_of(const std::vector<Slot>& inputs, std::size_t first, const Shape& whole,
                               const Shape& part);
  static Address placed(Address address, const std::vector<Value>& starts, const Shape& whole);
  Slot dynamic_slice(const ArrayType& type, const std::vector<Slot>& inputs);
  Value is_here(const std::vector<Value>& starts, const Index& place, const Shape& range);
  Slot dynamic_update_slice(const ArrayType& type, const std::vector<Slot>& inputs);

  Region region_;
  Builder builder_;
};

}  // namespace capibara::cpu::registers
