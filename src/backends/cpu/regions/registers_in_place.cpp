// Loops in registers that update large carries in memory: each iteration reads and writes small windows of them.
//
//   while: i, y, rows f32[4096,4]  ->  i + 1, sin(y), rows with row i = y
// Scalars stay in registers; `rows` is in one buffer, which the loop gets as a parameter. A value may be overwritten if
// nothing reads it afterwards: in the order of the equations, every reader precedes the update.
#include <algorithm>
#include <set>

#include "backends/cpu/regions/registers.h"
#include "backends/cpu/regions/registers_writer.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace registers {

namespace {

constexpr int64_t max_operations = 6000;  // per body
constexpr int unknown = -1;

bool is_large(const Program& program, Atom atom) { return !atom.is_literal() && !small(program.type(atom)); }

// The large values of a body: which buffer each is in, and whether the buffer still holds it.
class Buffers {
 public:
  explicit Buffers(const Program& body) : body_(body) {
    for (std::size_t i = 0; i < body.invars().size(); ++i) {
      if (is_large(body, body.invars()[i])) note(body.invars()[i], static_cast<int>(i));
    }
  }
  // The input whose memory holds the value; unknown if another value has overwritten it.
  int of(Atom atom) const {
    const auto found = buffer_.find(atom.code);
    return found != buffer_.end() && now_.at(found->second) == atom.code ? found->second : unknown;
  }
  void note(Var var, int buffer) {
    now_[buffer] = var.id;
    if (!var.dropped()) buffer_[var.id] = buffer;
  }
  bool is_untouched(std::size_t input) const { return of(body_.invars()[input]) == static_cast<int>(input); }

 private:
  const Program& body_;
  std::map<int32_t, int> buffer_;
  std::map<int, int32_t> now_;
};

// The operations of a body whose large values are inputs and their updates, and for each output the input whose memory
// it is in: unknown for small ones. nullopt if the body does not fit.
struct Checked {
  int64_t cost = 0;
  std::vector<int> outputs;
  std::vector<bool> untouched;  // one per input
};
std::optional<Checked> check(const Program& body);

// The buffers passed to an equation, one per operand; nullopt
// if one of them has been overwritten or is passed twice.
std::optional<std::vector<int>> buffers_given(const Program& body, const Equation& equation, const Buffers& buffers) {
  std::vector<int> given;
  std::set<int> seen;
  for (const Atom input : equation.inputs) {
    given.push_back(unknown);
    if (!is_large(body, input)) continue;
    given.back() = buffers.of(input);
    if (given.back() == unknown || !seen.insert(given.back()).second) return std::nullopt;
  }
  return given;
}

// Large results of a branch or a call are operands that it updates; it must not modify those that it does not return.
bool takes_over(const Checked& inner, const std::vector<int>& expected) {
  if (inner.outputs != expected) return false;
  for (std::size_t i = 0; i < inner.untouched.size(); ++i) {
    const bool returned =
        std::find(inner.outputs.begin(), inner.outputs.end(), static_cast<int>(i)) != inner.outputs.end();
    if (!inner.untouched[i] && !returned) return false;
  }
  return true;
}

std::optional<int64_t> check_while(const Equation& equation, const std::vector<int>& given, Buffers& buffers) {
  const WhileView view(equation);
  const std::optional<Checked> condition = check(view.condition()), body = check(view.body());
  if (!condition || !body || !takes_over(*condition, {unknown})) return std::nullopt;
  std::vector<int> expected;
  for (std::size_t i = 0; i < view.carry(); ++i) {
    const std::size_t input = view.body_consts() + i;
    expected.push_back(is_large(view.body(), view.body().invars()[input]) ? static_cast<int>(input) : unknown);
  }
  if (!takes_over(*body, expected)) return std::nullopt;
  for (std::size_t i = 0; i < view.carry(); ++i) {
    const int buffer = given[view.first_carry() + i];
    if (buffer != unknown) buffers.note(equation.outputs[i], buffer);
  }
  return condition->cost + body->cost;
}

std::optional<int64_t> check_branches(const Equation& equation, const std::vector<Program>& branches, std::size_t first,
                                      const std::vector<int>& given, Buffers& buffers) {
  int64_t cost = 0;
  std::vector<int> expected;
  for (const Program& branch : branches) {
    const std::optional<Checked> checked = check(branch);
    if (!checked) return std::nullopt;
    if (&branch == &branches.front()) expected = checked->outputs;
    if (!takes_over(*checked, expected)) return std::nullopt;
    cost += checked->cost;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != unknown) buffers.note(equation.outputs[i], given[first + static_cast<std::size_t>(expected[i])]);
  }
  return cost;
}

std::optional<int64_t> check_equation(const Program& body, const Equation& equation, Buffers& buffers) {
  const std::optional<std::vector<int>> given = buffers_given(body, equation, buffers);
  if (!given) return std::nullopt;
  const bool reads_large = std::any_of(given->begin(), given->end(), [](int buffer) { return buffer != unknown; });
  const bool writes_large = std::any_of(equation.outputs.begin(), equation.outputs.end(),
                                        [&](Var var) { return !var.dropped() && is_large(body, var); });
  if (!writes_large) {
    if (const std::optional<int64_t> cost = cost_inside(body, equation)) return cost;
  }
  if (!reads_large || !equation.effects.empty()) return std::nullopt;
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::dynamic_update_slice()) {
    if ((*given)[0] == unknown || is_large(body, equation.inputs[1])) return std::nullopt;
    buffers.note(equation.outputs[0], (*given)[0]);
    return 2 * body.type(equation.inputs[1]).size();
  }
  if (primitive == prim::while_()) return check_while(equation, *given, buffers);
  if (primitive == prim::cond()) return check_branches(equation, CondView(equation).branches(), 1, *given, buffers);
  if (const Program* called = called_program(equation)) return check_branches(equation, {*called}, 0, *given, buffers);
  return std::nullopt;
}

std::optional<Checked> check(const Program& body) {
  Buffers buffers(body);
  Checked checked;
  for (Var input : body.invars()) {
    const ArrayType& type = body.type(input);
    if (type.ref || !has_element(type.dtype)) return std::nullopt;
  }
  if (!body.constvars().empty()) return std::nullopt;
  for (const Equation& equation : body.equations()) {
    const std::optional<int64_t> cost = check_equation(body, equation, buffers);
    if (!cost) return std::nullopt;
    checked.cost += *cost;
    if (checked.cost > max_operations) return std::nullopt;
  }
  for (const Atom output : body.outputs()) {
    checked.outputs.push_back(is_large(body, output) ? buffers.of(output) : unknown);
    if (is_large(body, output) && checked.outputs.back() == unknown) return std::nullopt;
  }
  for (std::size_t i = 0; i < body.invars().size(); ++i)
    checked.untouched.push_back(!is_large(body, body.invars()[i]) || buffers.is_untouched(i));
  return checked;
}

}  // namespace

Function Writer::write_in_place(const Program& program, const Equation& loop, const std::vector<bool>& in_result) {
  const WhileView view(loop);
  const std::size_t first = view.first_carry();
  const Types types = view.body().output_types();
  const auto bytes = [](const ArrayType& type) { return std::max<int64_t>(1, type.size() * storage_size(type.dtype)); };
  std::vector<Slot> inputs;
  std::vector<std::optional<int32_t>> given;
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    const bool absent = loop.inputs[i].is_literal() || (i >= first && in_result[i - first]);
    given.push_back(absent ? std::nullopt
                           : std::optional(builder_.parameter(bytes(program.type(loop.inputs[i])), false)));
  }
  std::vector<Address> results;
  for (const ArrayType& type : types) results.push_back({builder_.parameter(bytes(type), true), 0, {}});
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    const ArrayType& type = program.type(loop.inputs[i]);
    if (loop.inputs[i].is_literal())
      inputs.push_back(slot_of(program, loop.inputs[i], {}));
    else
      inputs.push_back(in_memory(type, given[i] ? Address{*given[i], 0, {}} : results[i - first]));
  }
  const std::vector<Slot> outputs = write_while(loop, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].memory) store_all(outputs[i], results[i]);
  }
  return std::move(region_.function);
}

}  // namespace registers

bool updates_in_registers(const Equation& loop) {
  if (loop.primitive != prim::while_() || !loop.effects.empty()) return false;
  const WhileView view(loop);
  const std::vector<Var>& invars = view.body().invars();
  const auto is_large = [&](Var var) { return registers::is_large(view.body(), var); };
  if (std::none_of(invars.begin() + static_cast<std::ptrdiff_t>(view.body_consts()), invars.end(), is_large))
    return false;
  std::vector<int> given(loop.inputs.size());
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<int>(i);
  registers::Buffers none(view.body());
  return registers::check_while(loop, given, none).has_value();
}

Function write_loop_in_place(const Program& program, const Equation& loop, const std::vector<bool>& in_result) {
  return registers::Writer().write_in_place(program, loop, in_result);
}

}  // namespace capibara::cpu
