// Writes small equations element by element: indices are constants, carries of loops are values.
#include "backends/cpu/registers.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "backends/cpu/builder.h"
#include "backends/cpu/element.h"

namespace capibara::cpu {

namespace {

constexpr int64_t most_elements = 64;       // of one value
constexpr int64_t most_elements_outside_of_loops = 16;
constexpr int64_t most_operations = 6000;   // of one body
constexpr int64_t most_memory_operands = 64;

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

bool is_call(const std::string& name) {
  return name == "jit" || name == "remat2" || name == "custom_jvp_call" || name == "custom_vjp_call" || name == "custom_vmap_call";
}
const Program& called(const Equation& equation) {
  const std::string& name = equation.primitive.name();
  return equation.attrs.program(name == "jit" || name == "remat2" ? "jaxpr" : "call_jaxpr");
}

bool small(const ArrayType& type) { return !type.ref && has_element(type.dtype) && type.size() <= most_elements; }

bool is_dot(const Program& program, const Equation& equation) {
  if (!equation.primitive.is("dot_general")) return false;
  const DType out = program.type(equation.outputs[0]).dtype;
  if (is_complex(out) || is_bool(out)) return false;
  for (Atom input : equation.inputs) {
    if (program.type(input).dtype != out) return false;
  }
  return true;
}

bool is_arg_reduction(const Primitive& primitive) { return primitive.is("argmax") || primitive.is("argmin"); }

// How many starts a dynamic slice of registers has to choose from.
int64_t choices(const Shape& whole, const Shape& part) {
  int64_t count = 1;
  for (std::size_t d = 0; d < whole.size(); ++d) count *= whole[d] - part[d] + 1;
  return count;
}


// What the equation costs, or nothing where it does not fit. Only an outer loop may stack large results: they have a
// place in memory.
std::optional<int64_t> cost_of(const Program& program, const Equation& equation, bool outer);

std::optional<int64_t> body_cost(const Program& body) {
  int64_t sum = 0;
  for (const Equation& equation : body.equations()) {
    std::optional<int64_t> cost = cost_of(body, equation, false);
    if (!cost) return std::nullopt;
    sum += *cost;
    if (sum > most_operations) return std::nullopt;
  }
  return sum;
}

// Inputs of a body may lie in memory where only slices of them are read.
bool reads_slices_only(const Program& body, Var input) {
  for (Atom output : body.outputs()) {
    if (output == Atom(input)) return false;
  }
  for (const Equation& equation : body.equations()) {
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      if (equation.inputs[i] != Atom(input)) continue;
      const bool slices = (equation.primitive.is("dynamic_slice") || equation.primitive.is("slice")) && i == 0;
      if (!slices) return false;
    }
  }
  return true;
}

bool inputs_fit(const Program& body, std::size_t first_carry, std::size_t carries) {
  for (std::size_t i = 0; i < body.invars().size(); ++i) {
    const ArrayType& type = body.type(body.invars()[i]);
    if (small(type)) continue;
    const bool carried = i >= first_carry && i < first_carry + carries;
    if (carried || type.ref || !has_element(type.dtype) || !reads_slices_only(body, body.invars()[i])) return false;
  }
  return true;
}

std::optional<int64_t> cost_of(const Program& program, const Equation& equation, bool outer) {
  const std::string& name = equation.primitive.name();
  if (!equation.effects.empty()) return std::nullopt;
  for (Var output : equation.outputs) {
    if (output.dropped()) continue;
    const bool stacked = name == "scan" && outer;  // written turn by turn
    if (!small(program.type(output)) && !stacked) return std::nullopt;
  }
  if (is_call(name)) return inputs_fit(called(equation), 0, 0) ? body_cost(called(equation)) : std::nullopt;
  if (name == "scan") {
    const Program& body = equation.attrs.program("jaxpr");
    const std::size_t consts = at(equation.attrs.integer("num_consts")), carry = at(equation.attrs.integer("num_carry"));
    if (!inputs_fit(body, consts, carry)) return std::nullopt;
    for (Atom output : body.outputs()) {
      if (!small(body.type(output))) return std::nullopt;
    }
    return body_cost(body);
  }
  if (name == "while") {
    const Program &condition = equation.attrs.program("cond_jaxpr"), &body = equation.attrs.program("body_jaxpr");
    const std::size_t carries = body.outputs().size();
    if (!inputs_fit(condition, condition.invars().size() - carries, carries)) return std::nullopt;
    if (!inputs_fit(body, body.invars().size() - carries, carries)) return std::nullopt;
    std::optional<int64_t> first = body_cost(condition), second = body_cost(body);
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
  if (name == "cond") {
    int64_t sum = 0;
    for (const Program& branch : equation.attrs.programs("branches")) {
      if (!inputs_fit(branch, 0, 0)) return std::nullopt;
      std::optional<int64_t> cost = body_cost(branch);
      if (!cost) return std::nullopt;
      sum += *cost;
    }
    return sum;
  }
  if (equation.outputs.empty() || equation.outputs[0].dropped()) {
    if (!(name == "threefry2x32" || name == "split")) return std::nullopt;
  }
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const bool sliced = (name == "dynamic_slice" || name == "slice") && i == 0;
    if (!has_element(program.type(equation.inputs[i]).dtype)) return std::nullopt;
    if (!small(program.type(equation.inputs[i])) && !sliced) return std::nullopt;
  }
  int64_t elements = 0;
  for (Var output : equation.outputs) {
    if (!output.dropped()) elements += program.type(output).size();
  }
  const Shape no_shape;
  const Shape& first = equation.inputs.empty() ? no_shape : program.type(equation.inputs[0]).shape;
  if (name == "dynamic_slice") {
    if (!small(program.type(equation.inputs[0]))) return elements;
    return elements * choices(first, program.type(equation.outputs[0]).shape);
  }
  if (name == "dynamic_update_slice") {
    return elements * choices(first, program.type(equation.inputs[1]).shape);
  }
  if (name == "reshape" && !equation.attrs["dimensions"].is_none()) return std::nullopt;
  if (moves_elements(equation.primitive) || name == "iota" || name == "concatenate" || name == "pad") return 0;
  if (name == "split") return 0;
  if (is_reduction(equation.primitive)) return program.type(equation.inputs[0]).size();
  if (is_arg_reduction(equation.primitive)) {
    return is_complex(program.type(equation.inputs[0]).dtype) ? std::nullopt : std::optional(3 * program.type(equation.inputs[0]).size());
  }
  if (is_dot(program, equation)) {
    int64_t terms = 1;
    for (int64_t d : equation.attrs.get<DotDimensionNumbers>("dimension_numbers").lhs_contracting) terms *= first[at(d)];
    return elements * terms;
  }
  std::vector<DType> dtypes;
  for (Atom input : equation.inputs) dtypes.push_back(program.type(input).dtype);
  Var typed = equation.outputs[0];
  for (Var output : equation.outputs) {
    if (!output.dropped()) typed = output;
  }
  if (typed.dropped() || !is_elementwise(equation.primitive, dtypes, program.type(typed).dtype)) return std::nullopt;
  return elements * (is_expensive(equation.primitive) ? 20 : 1);
}

// A value: its elements in row-major order, or a place in memory from which they are read when asked for.
struct Slot {
  ArrayType type;
  std::vector<Element> elements;
  std::optional<Address> memory;
};

class RegisterWriter {
 public:
  RegisterWriter() : builder_(region_.function) {}

  Region write(const Program& program, std::span<const int> equations, const std::vector<Var>& stored) {
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
      if (frame.at(id).memory) continue;  // written where it lies
      store_all(frame.at(id), {buffer, 0, {}});
    }
    return std::move(region_);
  }

 private:
  using Frame = std::unordered_map<int32_t, Slot>;  // by variable: a run of equations names few of a program's

  Slot in_memory(const ArrayType& type, Address address) {
    Slot slot{type, {}, std::move(address)};
    if (small(type)) {
      for (int64_t k = 0; k < type.size(); ++k) slot.elements.push_back(load_element(builder_, type.dtype, moved(*slot.memory, k)));
      slot.memory.reset();
    }
    return slot;
  }

  static Address moved(Address address, int64_t elements) {
    address.offset += elements;
    return address;
  }

  void store_all(const Slot& slot, const Address& target) {
    for (std::size_t k = 0; k < slot.elements.size(); ++k) {
      store_element(builder_, slot.type.dtype, moved(target, static_cast<int64_t>(k)), slot.elements[k]);
    }
  }

  Slot slot_of(const Program& program, Atom atom, const Frame& frame) {
    if (!atom.is_literal()) return frame.at(atom.code);
    const Array& literal = program.literal(atom);
    return {literal.type(), {constant_element(builder_, literal.dtype(), literal.raw_data())}, {}};
  }

  Element element(const Slot& slot, const Index& index) {
    const Affine place = linear(index, slot.type.shape);
    if (!slot.memory) return slot.elements[at(place.constant)];
    return load_element(builder_, slot.type.dtype, moved(*slot.memory, place.constant));
  }

  // ---- programs -------------------------------------------------------------------------------------------------

  std::vector<Slot> write_body(const Program& body, std::vector<Slot> inputs) {
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

  void write_equation(const Program& program, const Equation& equation, Frame& frame, const std::map<int32_t, int32_t>* targets) {
    const std::string& name = equation.primitive.name();
    std::vector<Slot> inputs;
    for (Atom input : equation.inputs) inputs.push_back(slot_of(program, input, frame));
    std::vector<Slot> outputs;
    if (is_call(name)) outputs = write_body(called(equation), inputs);
    else if (name == "cond") outputs = write_cond(equation, inputs);
    else if (name == "while") outputs = write_while(equation, inputs);
    else if (name == "scan") outputs = write_scan(equation, inputs, targets);
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

  // ---- control flow ---------------------------------------------------------------------------------------------

  static void flatten(const std::vector<Slot>& slots, std::vector<Value>& values) {
    for (const Slot& slot : slots) {
      for (const Element& element : slot.elements) values.insert(values.end(), element.parts, element.parts + element.count);
    }
  }

  static Slot unflatten(const ArrayType& type, std::span<const Value> values, std::size_t& next) {
    Slot slot{type, {}, {}};
    for (int64_t k = 0; k < type.size(); ++k) {
      Element element;
      element.count = part_count(type.dtype);
      for (int part = 0; part < element.count; ++part) element.parts[part] = values[next++];
      slot.elements.push_back(element);
    }
    return slot;
  }

  std::vector<Slot> unflatten(const Types& types, std::span<const Value> values) {
    std::vector<Slot> slots;
    std::size_t next = 0;
    for (const ArrayType& type : types) slots.push_back(unflatten(type, values, next));
    return slots;
  }

  std::vector<Slot> write_cond(const Equation& equation, const std::vector<Slot>& inputs) {
    const std::vector<Program> branches = equation.attrs.programs("branches");
    const std::vector<Slot> operands(inputs.begin() + 1, inputs.end());
    return unflatten(branches[0].output_types(), branch_from(branches, 0, inputs[0].elements[0].parts[0], operands));
  }

  std::vector<Value> branch_from(const std::vector<Program>& branches, std::size_t first, Value index, const std::vector<Slot>& operands) {
    auto write = [&](std::size_t branch) {
      std::vector<Value> values;
      flatten(write_body(branches[branch], operands), values);
      return values;
    };
    if (first + 1 == branches.size()) return write(first);
    const Value here = builder_.compute(Op::le, index, builder_.constant_int(builder_.type(index), static_cast<int64_t>(first)));
    return builder_.branch(here, [&] { return write(first); }, [&] { return branch_from(branches, first + 1, index, operands); });
  }

  std::vector<Slot> write_while(const Equation& equation, const std::vector<Slot>& inputs) {
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

  std::vector<Slot> write_scan(const Equation& equation, const std::vector<Slot>& inputs,
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
    std::vector<Slot> finished = unflatten(types, last);
    std::move(finished.begin(), finished.end(), outputs.begin());
    // Small stacks that are read again go on in registers; large ones stay where they were written.
    for (std::size_t i = at(carry); i < outputs.size(); ++i) {
      if (!equation.outputs[i].dropped() && small(outputs[i].type)) outputs[i] = in_memory(outputs[i].type, *outputs[i].memory);
    }
    return outputs;
  }

  // A place in memory for a value that is to be read at an index known only when the program runs.
  Address spilled(const Slot& slot) {
    if (slot.memory) return *slot.memory;
    const Address place{builder_.local(std::max<int64_t>(1, slot.type.size() * storage_size(slot.type.dtype))), 0, {}};
    store_all(slot, place);
    return place;
  }

  // ---- elements -------------------------------------------------------------------------------------------------

  Slot write_elements(const Program& program, const Equation& equation, int number, const std::vector<Slot>& inputs) {
    const std::string& name = equation.primitive.name();
    const ArrayType& type = program.type(equation.outputs[at(number)]);
    Slot slot{type, {}, {}};
    if (name == "dynamic_slice") return dynamic_slice(type, inputs);
    if (name == "dynamic_update_slice") return dynamic_update_slice(type, inputs);
    std::vector<DType> dtypes;
    for (const Slot& input : inputs) dtypes.push_back(input.type.dtype);
    if (inputs.size() == 1 && type.size() >= fewest_lanes && is_long_function(name, type.dtype)) {
      return function_in_lanes(equation, type, inputs[0]);
    }
    for (int64_t k = 0; k < type.size(); ++k) {
      const Index index = constant_index(k, type.shape);
      if (name == "iota") {
        const int64_t position = index[at(equation.attrs.integer("dimension"))].constant;
        slot.elements.push_back(convert_element(builder_, DType::int64, type.dtype, Element(builder_.index(position))));
      } else if (moves_elements(equation.primitive)) {
        // Only optimization_barrier has several results: each is its own operand.
        slot.elements.push_back(element(inputs[at(number)], *moved_index(equation, index, inputs[at(number)].type.shape, type.shape, {})));
      } else if (name == "concatenate") {
        slot.elements.push_back(concatenated(equation, index, inputs));
      } else if (name == "split") {
        slot.elements.push_back(part_of_split(equation, index, number, inputs[0]));
      } else if (name == "pad") {
        slot.elements.push_back(padded(equation, index, inputs));
      } else if (is_reduction(equation.primitive)) {
        slot.elements.push_back(reduced(program, equation, index, inputs[0]));
      } else if (is_arg_reduction(equation.primitive)) {
        slot.elements.push_back(arg_reduced(program, equation, index, inputs[0]));
      } else if (name == "dot_general") {
        slot.elements.push_back(dot(equation, index, inputs, type.dtype));
      } else {
        std::vector<Element> operands;
        for (const Slot& input : inputs) operands.push_back(element(input, stretched_index(index, input.type.shape)));
        slot.elements.push_back(apply_elementwise(builder_, equation.primitive, equation.attrs, dtypes, type.dtype, operands, number));
      }
    }
    return slot;
  }

  // Functions of dozens of operations: several elements at a time, through memory, beat one after another in registers.
  static constexpr int64_t fewest_lanes = 4;
  static bool is_long_function(const std::string& name, DType dtype) {
    static const std::set<std::string_view> names = {"exp",  "exp2",  "expm1", "log",  "log1p", "tanh",  "logistic", "sin",    "cos",
                                                     "tan",  "asin",  "acos",  "atan", "sinh",  "cosh",  "asinh",    "acosh",  "atanh",
                                                     "cbrt", "erf",   "erfc",  "erf_inv", "lgamma", "digamma"};
    return (dtype == DType::float32 || dtype == DType::float64) && names.contains(name);
  }

  Slot function_in_lanes(const Equation& equation, const ArrayType& type, const Slot& input) {
    const Address from = spilled(input);
    const Address to{builder_.local(type.size() * static_cast<int64_t>(storage_size(type.dtype))), 0, {}};
    builder_.loop(type.size(), {.lanes = true}, {}, [&](Value position, std::span<const Value>) {
      Address source = from, target = to;
      source.terms.push_back({position, 1});
      target.terms.push_back({position, 1});
      const std::vector<DType> dtypes = {type.dtype};
      const std::vector<Element> operands = {load_element(builder_, type.dtype, source)};
      store_element(builder_, type.dtype, target, apply_elementwise(builder_, equation.primitive, equation.attrs, dtypes, type.dtype, operands, 0));
      return std::vector<Value>();
    });
    return in_memory(type, to);
  }

  Element concatenated(const Equation& equation, Index index, const std::vector<Slot>& inputs) {
    Affine& position = index[at(equation.attrs.integer("dimension"))];
    std::size_t part = 0;
    while (position.constant >= inputs[part].type.shape[at(equation.attrs.integer("dimension"))]) {
      position.constant -= inputs[part++].type.shape[at(equation.attrs.integer("dimension"))];
    }
    return element(inputs[part], index);
  }

  Element part_of_split(const Equation& equation, Index index, int number, const Slot& input) {
    const Ints& sizes = equation.attrs.ints("sizes");
    for (int i = 0; i < number; ++i) index[at(equation.attrs.integer("axis"))].constant += sizes[at(i)];
    return element(input, index);
  }

  Element padded(const Equation& equation, const Index& index, const std::vector<Slot>& inputs) {
    const Attr::List& config = equation.attrs.list("padding_config");
    Index place = index;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const Ints& padding = *config[d].get_if<Ints>();
      const int64_t from_low = index[d].constant - padding[0], stride = padding[2] + 1;
      if (from_low < 0 || from_low % stride != 0 || from_low / stride >= inputs[0].type.shape[d]) return inputs[1].elements[0];
      place[d] = Affine(from_low / stride);
    }
    return element(inputs[0], place);
  }

  // Every index of the operand that the output's element folds, in order.
  template <class F>
  void for_each_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input, F&& visit) {
    const std::vector<bool> kept = kept_dimensions(program, equation);
    Shape folded;
    for (std::size_t d = 0; d < kept.size(); ++d) {
      if (!kept[d]) folded.push_back(input.type.shape[d]);
    }
    for (int64_t k = 0; k < element_count(folded); ++k) {
      const Index inner = constant_index(k, folded);
      Index place(kept.size());
      std::size_t outer_next = 0, inner_next = 0;
      for (std::size_t d = 0; d < kept.size(); ++d) place[d] = kept[d] ? index[outer_next++] : inner[inner_next++];
      visit(k, element(input, place));
    }
  }

  Element reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input) {
    const Monoid monoid = *monoid_of(equation.primitive);
    std::optional<Element> sum;
    for_each_reduced(program, equation, index, input, [&](int64_t, const Element& next) {
      sum = sum ? combine(builder_, monoid, input.type.dtype, *sum, next) : next;
    });
    if (!sum) return identity_element(builder_, monoid, input.type.dtype);
    return rounded_element(builder_, input.type.dtype, *sum);
  }

  Element arg_reduced(const Program& program, const Equation& equation, const Index& index, const Slot& input) {
    const DType dtype = input.type.dtype, out = program.type(equation.outputs[0]).dtype;
    const bool greatest = equation.primitive.is("argmax");
    Element best;
    Value position = no_value;
    for_each_reduced(program, equation, index, input, [&](int64_t k, const Element& next) {
      if (k == 0) {
        best = next;
        position = builder_.index(0);
        return;
      }
      const Value a = next.parts[0], b = best.parts[0];
      const bool plain = is_signed(dtype) || is_floating(dtype);
      const Op op = greatest ? (plain ? Op::gt : Op::gt_unsigned) : (plain ? Op::lt : Op::lt_unsigned);
      Value better = builder_.compute(op, a, b);
      if (is_floating(dtype)) {  // NaN wins over numbers, the first one over others
        const Value a_nan = builder_.compute(Op::ne, a, a), b_number = builder_.compute(Op::eq, b, b);
        better = builder_.compute(Op::bit_or, better, builder_.compute(Op::bit_and, a_nan, b_number));
      }
      best = select_element(builder_, better, next, best);
      position = builder_.compute(Op::select, better, builder_.index(k), position);
    });
    return convert_element(builder_, DType::int64, out, Element(position));
  }

  Element dot(const Equation& equation, const Index& index, const std::vector<Slot>& inputs, DType dtype) {
    const auto& numbers = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
    const Shape &left = inputs[0].type.shape, &right = inputs[1].type.shape;
    Index a(left.size()), b(right.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < numbers.lhs_batch.size(); ++i) {
      a[at(numbers.lhs_batch[i])] = b[at(numbers.rhs_batch[i])] = index[next++];
    }
    auto free_dimensions = [&](Index& place, const Ints& batch, const Ints& contracting) {
      for (std::size_t d = 0; d < place.size(); ++d) {
        const int64_t dimension = static_cast<int64_t>(d);
        if (std::count(batch.begin(), batch.end(), dimension) || std::count(contracting.begin(), contracting.end(), dimension)) continue;
        place[d] = index[next++];
      }
    };
    free_dimensions(a, numbers.lhs_batch, numbers.lhs_contracting);
    free_dimensions(b, numbers.rhs_batch, numbers.rhs_contracting);
    Shape summed;
    for (int64_t d : numbers.lhs_contracting) summed.push_back(left[at(d)]);
    Value sum = no_value;
    for (int64_t k = 0; k < element_count(summed); ++k) {
      const Index inner = constant_index(k, summed);
      for (std::size_t i = 0; i < inner.size(); ++i) {
        a[at(numbers.lhs_contracting[i])] = inner[i];
        b[at(numbers.rhs_contracting[i])] = inner[i];
      }
      const Value x = element(inputs[0], a).parts[0], y = element(inputs[1], b).parts[0];
      if (sum == no_value) sum = builder_.compute(Op::mul, x, y);
      else if (is_floating(dtype)) sum = builder_.compute(Op::fma, x, y, sum);
      else sum = builder_.compute(Op::add, sum, builder_.compute(Op::mul, x, y));
    }
    if (sum == no_value) return convert_element(builder_, DType::int64, dtype, Element(builder_.index(0)));
    return rounded_element(builder_, dtype, Element(sum));
  }

  // ---- slices at starts that the program finds ------------------------------------------------------------------

  Value start_of(const Slot& slot, int64_t last) {
    const bool is_signed_start = is_signed(slot.type.dtype);
    const Value wide = builder_.convert(is_signed_start ? Op::sign_extend : Op::zero_extend, Scalar::i64, slot.elements[0].parts[0]);
    const Value zero = builder_.index(0), limit = builder_.index(last);
    Value value = wide;
    if (is_signed_start) value = builder_.compute(Op::select, builder_.compute(Op::lt, wide, zero), zero, wide);
    return builder_.compute(Op::select, builder_.compute(is_signed_start ? Op::gt : Op::gt_unsigned, value, limit), limit, value);
  }

  std::vector<Value> starts_of(const std::vector<Slot>& inputs, std::size_t first, const Shape& whole, const Shape& part) {
    std::vector<Value> starts;
    for (std::size_t d = 0; d < whole.size(); ++d) {
      const int64_t last = whole[d] - part[d];
      starts.push_back(last == 0 ? builder_.index(0) : start_of(inputs[first + d], last));
    }
    return starts;
  }

  Slot dynamic_slice(const ArrayType& type, const std::vector<Slot>& inputs) {
    const Shape& whole = inputs[0].type.shape;
    const std::vector<Value> starts = starts_of(inputs, 1, whole, type.shape);
    Slot slot{type, {}, {}};
    if (inputs[0].memory) {
      Address place = *inputs[0].memory;
      int64_t stride = 1;
      for (std::size_t d = whole.size(); d-- > 0;) {
        place.terms.push_back({starts[d], stride});
        stride *= whole[d];
      }
      for (int64_t k = 0; k < type.size(); ++k) {
        slot.elements.push_back(load_element(builder_, type.dtype, moved(place, linear(constant_index(k, type.shape), whole).constant)));
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

  Value is_here(const std::vector<Value>& starts, const Index& place, const Shape& range) {
    Value here = builder_.constant_int(Scalar::i1, 1);
    for (std::size_t d = 0; d < place.size(); ++d) {
      if (range[d] == 1) continue;
      here = builder_.compute(Op::bit_and, here, builder_.compute(Op::eq, starts[d], builder_.index(place[d].constant)));
    }
    return here;
  }

  Slot dynamic_update_slice(const ArrayType& type, const std::vector<Slot>& inputs) {
    const Shape &whole = type.shape, &part = inputs[1].type.shape;
    const std::vector<Value> starts = starts_of(inputs, 2, whole, part);
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

  Region region_;
  Builder builder_;
};

}  // namespace

bool fits_registers(const Program& program, const Equation& equation) {
  if (equation.inputs.size() > at(most_memory_operands) * 4) return false;
  // Lanes serve longer values better, where no loop holds them.
  const std::string& name = equation.primitive.name();
  const bool holds_loops = is_call(name) || name == "scan" || name == "while" || name == "cond";
  for (Var output : equation.outputs) {
    if (!holds_loops && !output.dropped() && program.type(output).size() > most_elements_outside_of_loops) return false;
  }
  return cost_of(program, equation, true).has_value();
}

int64_t register_cost(const Program& program, const Equation& equation) {
  int64_t moved = 0;  // what is loaded and stored counts as well
  for (Atom input : equation.inputs) moved += std::min(most_elements, program.type(input).size());
  for (Var output : equation.outputs) moved += output.dropped() ? 0 : std::min(most_elements, program.type(output).size());
  return cost_of(program, equation, true).value_or(0) + moved;
}

Region write_registers(const Program& program, std::span<const int> equations, const std::vector<Var>& stored) {
  return RegisterWriter().write(program, equations, stored);
}

}  // namespace capibara::cpu
