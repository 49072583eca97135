// Discharge of refs: a program is run on tracers that represent the current values of its refs.
#include "program/trace/discharge.h"
#include "program/ir/handles.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/source.h"
#include "program/ir/views.h"
#include "program/trace/stage.h"

#include <algorithm>

namespace capibara {

namespace {

ArrayType value_type(ArrayType type) {
  type.ref = false;
  return type;
}

// A value in the type of a ref's content: loops carry it unchanged.
Array as_content(const Array& value, const ArrayType& ref) {
  if (value.weak_type() == ref.weak_type) return value;
  return jax::lax::convert_element_type(value, ref.dtype, ref.weak_type);
}

[[noreturn]] void refuse(const Primitive& primitive, const std::string& why) {
  throw NotImplementedError(concat(primitive.name(), ": ", why, "; read the ref before and write it afterwards"));
}

// Runs the equations of one program; each ref is represented by its current value.
class Interpreter {
 public:
  explicit Interpreter(const Program& program)
      : program_(program), values_(static_cast<std::size_t>(program.var_count())), written_(values_.size(), false) {}

  Arrays run(std::span<const Array> inputs) {
    for (std::size_t i = 0; i < program_.constvars().size(); ++i) set(program_.constvars()[i], program_.constants()[i]);
    for (std::size_t i = 0; i < inputs.size(); ++i) set(program_.invars()[i], inputs[i]);
    for (const Equation& equation : program_.equations()) {
      SourceScope scope(equation.source);
      step(equation);
    }
    Arrays outputs;
    for (Atom output : program_.outputs()) outputs.push_back(value(output));
    return outputs;
  }

  bool written(Var ref) const { return written_[static_cast<std::size_t>(ref.id)]; }
  const Array& content(Var ref) const { return values_[static_cast<std::size_t>(ref.id)]; }

 private:
  const Array& value(Atom atom) const {
    return atom.is_literal() ? program_.literal(atom) : values_[static_cast<std::size_t>(atom.code)];
  }
  void set(Var var, Array value) {
    if (!var.dropped()) values_[static_cast<std::size_t>(var.id)] = std::move(value);
  }
  void write(Var ref, const Array& content) {
    set(ref, as_content(content, program_.type(ref)));
    written_[static_cast<std::size_t>(ref.id)] = true;
  }

  void step(const Equation& equation) {
    const Primitive& primitive = equation.primitive;
    if (primitive == prim::new_ref()) {
      if (equation.outputs[0].dropped()) return;
      return set(equation.outputs[0], as_content(value(equation.inputs[0]), program_.type(equation.outputs[0])));
    }
    if (primitive == prim::get() || primitive == prim::freeze())
      return set(equation.outputs[0], value(equation.inputs[0]));
    if (primitive == prim::swap()) {
      Array old = value(equation.inputs[0]);
      write(equation.inputs[0].var(), value(equation.inputs[1]));
      return set(equation.outputs[0], std::move(old));
    }
    if (primitive == prim::addupdate()) {
      return write(equation.inputs[0].var(), jax::lax::add_any(value(equation.inputs[0]), value(equation.inputs[1])));
    }
    Arrays operands;
    if (!concerned(equation)) {
      for (Atom input : equation.inputs) operands.push_back(value(input));
      Arrays results = capibara::bind(primitive, operands, equation.attrs);
      for (std::size_t i = 0; i < results.size(); ++i) set(equation.outputs[i], results[i]);
      return;
    }
    Types types;
    std::vector<std::size_t> same_as;
    for (Atom input : equation.inputs) {
      auto first = std::find(equation.inputs.begin(), equation.inputs.end(), input);
      same_as.push_back(static_cast<std::size_t>(first - equation.inputs.begin()));
      types.push_back(program_.type(input));
      if (!types.back().ref) same_as.back() = same_as.size() - 1;
    }
    DischargedCall call = discharge_call(primitive, types, equation.attrs, same_as);
    for (std::size_t input : call.operands) operands.push_back(value(equation.inputs[input]));
    Arrays results = capibara::bind(call.primitive, operands, call.attrs);
    for (std::size_t i = 0; i < call.outputs.size(); ++i) set(equation.outputs[i], results[call.outputs[i]]);
    for (auto [input, result] : call.written) write(equation.inputs[input].var(), results[result]);
  }

  bool concerned(const Equation& equation) const {
    return holds_refs(equation.attrs) || std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                                     [this](Atom input) { return program_.type(input).ref; });
  }

  const Program& program_;
  Arrays values_;
  std::vector<bool> written_;
};

std::vector<std::size_t> positions(std::size_t begin, std::size_t end) {
  std::vector<std::size_t> all;
  for (std::size_t i = begin; i < end; ++i) all.push_back(i);
  return all;
}

Types types_at(std::span<const ArrayType> types, std::span<const std::size_t> at) {
  Types chosen;
  for (std::size_t i : at) chosen.push_back(value_type(types[i]));
  return chosen;
}

// A program that calls another with inputs and results permuted: input k of the new one is passed to every
// input i with from[i] == k, and its outputs are the results `to`.
Program rearranged(const Program& program, const Types& types, const std::vector<std::size_t>& from,
                   const std::vector<std::size_t>& to) {
  return stage(
             [&](std::span<const Array> given) {
               Arrays inputs, outputs;
               for (std::size_t i : from) inputs.push_back(given[i]);
               Arrays results = evaluate_program(program, inputs);
               for (std::size_t i : to) outputs.push_back(results[i]);
               return outputs;
             },
             types, program.name())
      .program;
}

bool contains(std::span<const std::size_t> list, std::size_t entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

// A call of one program on all the inputs: jit, checkpoint, functions with custom rules.
DischargedCall call_of(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs,
                       const char* key) {
  const Program& program = attrs.program(key);
  Discharged inner = discharge(program);
  DischargedCall call{primitive,
                      attrs.with(key, inner.program),
                      positions(0, types.size()),
                      positions(0, program.outputs().size()),
                      {}};
  for (std::size_t i = 0; i < inner.written.size(); ++i)
    call.written.emplace_back(inner.written[i], program.outputs().size() + i);
  const bool takes_refs = std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.ref; });
  if (takes_refs && attrs.has("call_jaxpr")) {
    // A rule takes refs: on values the function is called directly.
    call.primitive = capibara::primitive("jit");
    call.attrs =
        Attrs{{"jaxpr", inner.program}, {"name", attrs.has("name") ? attrs.text("name") : std::string("custom")}};
  }
  return call;
}

// Written refs among the consts become carries, refs among the xs become xs and ys.
DischargedCall scan_of(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs) {
  const ScanView loop(attrs);
  const std::size_t consts = loop.consts(), carry = loop.carry(), outputs = loop.body().outputs().size();
  Discharged inner = discharge(loop.body());
  std::vector<std::size_t> carried;  // consts
  std::vector<std::size_t> sliced;   // xs
  for (std::size_t input : inner.written) (input < consts ? carried : sliced).push_back(input);
  DischargedCall call{primitive, attrs, {}, {}, {}};
  for (std::size_t i = 0; i < consts; ++i) {
    if (!contains(carried, i)) call.operands.push_back(i);
  }
  const std::size_t fixed = call.operands.size();
  for (std::size_t i = consts; i < loop.first_xs(); ++i) call.operands.push_back(i);
  call.operands.insert(call.operands.end(), carried.begin(), carried.end());
  for (std::size_t i = loop.first_xs(); i < types.size(); ++i) call.operands.push_back(i);

  std::vector<std::size_t> from(types.size());
  for (std::size_t k = 0; k < call.operands.size(); ++k) from[call.operands[k]] = k;
  // Results of the discharged body: carry, ys, then the written refs in the order of inner.written.
  auto place_of = [&](std::size_t input) {
    return outputs + static_cast<std::size_t>(std::find(inner.written.begin(), inner.written.end(), input) -
                                              inner.written.begin());
  };
  std::vector<std::size_t> to = positions(0, carry);
  for (std::size_t input : carried) {
    call.written.emplace_back(input, to.size());
    to.push_back(place_of(input));
  }
  for (std::size_t i = carry; i < outputs; ++i) to.push_back(i);
  for (std::size_t input : sliced) {
    call.written.emplace_back(input, to.size());
    to.push_back(place_of(input));
  }
  for (std::size_t i = 0; i < outputs; ++i) call.outputs.push_back(i < carry ? i : i + carried.size());
  const Types body_types = types_at(loop.body().input_types(), call.operands);
  call.attrs = loop.with(rearranged(inner.program, body_types, from, to), fixed, carry + carried.size());
  return call;
}

DischargedCall while_of(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs,
                        std::span<const std::size_t> same_as) {
  const WhileView loop(attrs);
  const std::size_t first = loop.cond_consts(), first_carry = loop.first_carry(), carry = loop.carry();
  Discharged of_condition = discharge(loop.condition()), of_body = discharge(loop.body());
  if (!of_condition.written.empty()) refuse(primitive, "the condition writes a ref");
  std::vector<std::size_t> carried;  // consts of the body that are written, as inputs of the loop
  for (std::size_t input : of_body.written) carried.push_back(same_as[first + input]);
  DischargedCall call{primitive, attrs, {}, positions(0, carry), {}};
  auto add_consts = [&](std::size_t begin, std::size_t end) {
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (contains(carried, same_as[i])) continue;
      call.operands.push_back(i);
      ++count;
    }
    return count;
  };
  const std::size_t condition_consts = add_consts(0, first), body_consts = add_consts(first, first_carry);
  for (std::size_t i = first_carry; i < types.size(); ++i) call.operands.push_back(i);
  call.operands.insert(call.operands.end(), carried.begin(), carried.end());
  for (std::size_t k = 0; k < carried.size(); ++k) call.written.emplace_back(carried[k], carry + k);

  // The positions of inputs [begin, end) and of the loop's carry among the inputs of a program with `consts` remaining
  // consts.
  auto sources = [&](std::size_t begin, std::size_t end, std::size_t consts) {
    std::vector<std::size_t> from;
    std::size_t next = 0;
    for (std::size_t i = begin; i < end; ++i) {
      auto it = std::find(carried.begin(), carried.end(), same_as[i]);
      from.push_back(it == carried.end() ? next++ : consts + carry + static_cast<std::size_t>(it - carried.begin()));
    }
    for (std::size_t i = 0; i < carry; ++i) from.push_back(consts + i);
    return from;
  };
  auto types_of = [&](std::size_t begin, std::size_t consts) {
    std::vector<std::size_t> at(call.operands.begin() + static_cast<std::ptrdiff_t>(begin),
                                call.operands.begin() + static_cast<std::ptrdiff_t>(begin + consts));
    at.insert(at.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(condition_consts + body_consts),
              call.operands.end());
    return types_at(types, at);
  };
  const Program condition =
      rearranged(of_condition.program, types_of(0, condition_consts), sources(0, first, condition_consts), {0});
  const Program body = rearranged(of_body.program, types_of(condition_consts, body_consts),
                                  sources(first, first_carry, body_consts), positions(0, carry + carried.size()));
  call.attrs = WhileView::attrs(condition, condition_consts, body, body_consts);
  return call;
}

// Every branch yields the last value of a ref that one of them writes.
DischargedCall cond_of(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs) {
  std::vector<Discharged> inner;
  std::vector<std::size_t> written;
  const std::vector<Program> branches = attrs.programs("branches");
  for (const Program& branch : branches) {
    inner.push_back(discharge(branch));
    for (std::size_t input : inner.back().written) {
      if (!contains(written, input)) written.push_back(input);
    }
  }
  std::sort(written.begin(), written.end());
  const std::size_t outputs = branches[0].outputs().size();
  std::vector<Program> derived;
  for (const Discharged& branch : inner) {
    derived.push_back(stage(
                          [&](std::span<const Array> inputs) {
                            Arrays results = evaluate_program(branch.program, inputs),
                                   all(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(outputs));
                            for (std::size_t input : written) {
                              auto it = std::find(branch.written.begin(), branch.written.end(), input);
                              all.push_back(
                                  it == branch.written.end()
                                      ? inputs[input]
                                      : results[outputs + static_cast<std::size_t>(it - branch.written.begin())]);
                            }
                            return all;
                          },
                          branch.program.input_types(), branch.program.name())
                          .program);
  }
  DischargedCall call{primitive,
                      attrs.with("branches", Attr::programs(derived)),
                      positions(0, types.size()),
                      positions(0, outputs),
                      {}};
  for (std::size_t i = 0; i < written.size(); ++i) call.written.emplace_back(written[i] + 1, outputs + i);
  return call;
}

bool rule_holds_ref(const Program& program) {
  return std::any_of(program.equations().begin(), program.equations().end(), [&](const Equation& equation) {
    if (equation.primitive != prim::custom_lin()) return any_program(equation.attrs, rule_holds_ref);
    return std::any_of(equation.inputs.begin(), equation.inputs.end(),
                       [&](Atom input) { return program.type(input).ref; });
  });
}

}  // namespace

bool holds_refs(const Attrs& attrs) {
  return any_program(attrs, [](const Program& program) { return holds_refs(program); });
}
bool can_discharge(const Attrs& attrs) { return !any_program(attrs, rule_holds_ref); }

bool holds_refs(const Program& program) {
  const std::vector<ArrayType>& types = program.body().var_types;
  if (std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.ref; })) return true;
  return std::any_of(program.equations().begin(), program.equations().end(),
                     [](const Equation& equation) { return holds_refs(equation.attrs); });
}

Discharged discharge(const Program& program) {
  if (!holds_refs(program)) return {program, {}};
  static Memo<Discharged> memo;
  return memo.get({program, {}, {}, 0, "", config().key()}, [&] {
    Types types;
    for (const ArrayType& type : program.input_types()) types.push_back(value_type(type));
    Discharged result;
    Staged staged = stage(
        [&](std::span<const Array> inputs) {
          Interpreter interpreter(program);
          Arrays outputs = interpreter.run(inputs);
          for (std::size_t i = 0; i < program.invars().size(); ++i) {
            Var var = program.invars()[i];
            if (!program.type(var).ref || !interpreter.written(var)) continue;
            result.written.push_back(i);
            outputs.push_back(interpreter.content(var));
          }
          return outputs;
        },
        types, program.name());
    result.program = staged.program;
    return result;
  });
}

DischargedCall discharge_call(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs,
                              std::span<const std::size_t> same_as) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    // The condition and the body of a loop may read the same ref; any other program takes it only once.
    if (same_as[i] != i && primitive != prim::while_()) {
      throw ValueError(concat("only one reference to a mutable array may be passed to a function, but ",
                              primitive.name(), " got the same ", to_string(types[i]), " twice: as arguments ",
                              same_as[i], " and ", i));
    }
  }
  if (primitive == prim::scan()) return scan_of(primitive, types, attrs);
  if (primitive == prim::while_()) return while_of(primitive, types, attrs, same_as);
  if (primitive == prim::cond()) return cond_of(primitive, types, attrs);
  for (const char* key : {"jaxpr", "call_jaxpr"}) {
    if (attrs.has(key) && attrs.program(key).invars().size() == types.size())
      return call_of(primitive, types, attrs, key);
  }
  if (std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.ref; }))
    refuse(primitive, "takes a ref");
  Attrs changed = rewrite_programs(attrs, [](const Program& program) { return discharge(program).program; });
  const std::size_t outputs = primitive->type(types, attrs).types.size();
  return {primitive, changed, positions(0, types.size()), positions(0, outputs), {}};
}

Arrays bind_on_values(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  static const Primitive get = capibara::primitive("get"), swap = capibara::primitive("swap");
  Types types;
  std::vector<std::size_t> same_as;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(inputs[i].type());
    same_as.push_back(i);
    for (std::size_t k = 0; k < i && types[i].ref; ++k) {
      if (!inputs[k].same_as(inputs[i])) continue;
      same_as[i] = k;
      break;
    }
  }
  DischargedCall call = discharge_call(primitive, types, attrs, same_as);
  Arrays operands, outputs;
  for (std::size_t input : call.operands) {
    operands.push_back(types[input].ref ? capibara::bind(get, inputs.subspan(input, 1), {})[0] : inputs[input]);
  }
  Arrays results = capibara::bind(call.primitive, operands, call.attrs);
  for (std::size_t result : call.outputs) outputs.push_back(results[result]);
  for (auto [input, result] : call.written) {
    const Array pair[] = {inputs[input], results[result]};
    capibara::bind(swap, pair, {});
  }
  return outputs;
}

}  // namespace capibara
