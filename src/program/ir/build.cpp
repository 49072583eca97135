// Building and running programs.
#include "program/ir/build.h"

#include "core/sharding/explicit.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"
#include "program/ir/varying.h"
#include "program/ir/views.h"

namespace capibara {

Var ProgramBuilder::new_var(ArrayType type) {
  body_.var_types.push_back(std::move(type));
  return Var{static_cast<int32_t>(body_.var_types.size()) - 1};
}

Var ProgramBuilder::add_input(ArrayType type) {
  Var var = new_var(std::move(type));
  body_.invars.push_back(var);
  return var;
}

Var ProgramBuilder::add_constant(Array constant) {
  auto [it, added] = constant_of_.try_emplace(constant.body().get());
  if (added) {
    it->second = new_var(constant.type());
    body_.constvars.push_back(it->second);
    body_.constants.push_back(std::move(constant));
  }
  return it->second;
}

Atom ProgramBuilder::add_literal(Array scalar) {
  body_.literals.push_back(std::move(scalar));
  return Atom::literal(static_cast<int32_t>(body_.literals.size()) - 1);
}

const ArrayType& ProgramBuilder::type(Atom atom) const {
  return atom.is_literal() ? body_.literals[static_cast<std::size_t>(atom.literal_index())].type()
                           : body_.var_types[static_cast<std::size_t>(atom.code)];
}

std::vector<Var> ProgramBuilder::add_equation(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs,
                                              Source source) {
  Types types;
  types.reserve(inputs.size());
  bool sharded = explicit_types_exist() && requested_sharding(attrs);
  for (Atom input : inputs) {
    types.push_back(type(input));
    sharded = sharded || !types.back().sharding.single_device();
  }
  TypeResult result =
      sharded ? varying_types(*this, primitive, inputs, types, attrs, source) : primitive->type(types, attrs);
  std::vector<Var> outputs;
  outputs.reserve(result.types.size());
  for (ArrayType& output : result.types) outputs.push_back(new_var(std::move(output)));
  body_.effects.merge(result.effects);
  body_.equations.push_back({primitive, std::move(inputs), outputs, attrs, std::move(result.effects), source});
  return outputs;
}

void ProgramBuilder::add_equation(Equation equation) {
  body_.effects.merge(equation.effects);
  body_.equations.push_back(std::move(equation));
}

Program ProgramBuilder::finish(std::string name) {
  body_.name = std::move(name);
  return Program(std::move(body_));
}

Program constants_to_inputs(const Program& program) {
  if (program.constvars().empty()) return program;
  Program::Body body = program.body();
  body.invars.insert(body.invars.begin(), body.constvars.begin(), body.constvars.end());
  body.constvars.clear();
  body.constants.clear();
  return Program(std::move(body));
}

Program reorder_inputs(const Program& program, std::span<const int> order) {
  Program::Body body = program.body();
  for (std::size_t i = 0; i < order.size(); ++i) {
    body.invars[i] = program.invars()[static_cast<std::size_t>(order[i])];
  }
  return Program(std::move(body));
}

Program reorder_outputs(const Program& program, std::span<const int> order) {
  Program::Body body = program.body();
  body.outputs.clear();
  for (int i : order) body.outputs.push_back(program.outputs()[static_cast<std::size_t>(i)]);
  return Program(std::move(body));
}

Arrays evaluate_program(const Program& program, std::span<const Array> inputs) {
  if (inputs.size() != program.invars().size()) {
    throw InternalError(
        concat("program '", program.name(), "' takes ", program.invars().size(), " inputs, got ", inputs.size()));
  }
  std::size_t count = static_cast<std::size_t>(program.var_count());
  std::vector<Array> values(count);
  // Values are released after their last use, so that a long program does not hold all of them.
  std::vector<std::size_t> last_use(count, 0);
  std::size_t end = program.equations().size();
  for (std::size_t e = 0; e < end; ++e) {
    for (Atom input : program.equations()[e].inputs) {
      if (!input.is_literal()) last_use[static_cast<std::size_t>(input.code)] = e;
    }
  }
  for (Atom output : program.outputs()) {
    if (!output.is_literal()) last_use[static_cast<std::size_t>(output.code)] = end;
  }
  auto read = [&](Atom atom) -> const Array& {
    return atom.is_literal() ? program.literal(atom) : values[static_cast<std::size_t>(atom.code)];
  };
  for (std::size_t i = 0; i < program.constvars().size(); ++i) {
    values[static_cast<std::size_t>(program.constvars()[i].id)] = program.constants()[i];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(program.invars()[i].id)] = inputs[i];

  Arrays operands;
  for (std::size_t e = 0; e < end; ++e) {
    const Equation& equation = program.equations()[e];
    operands.clear();
    for (Atom input : equation.inputs) operands.push_back(read(input));
    for (Atom input : equation.inputs) {
      if (!input.is_literal() && last_use[static_cast<std::size_t>(input.code)] == e) {
        values[static_cast<std::size_t>(input.code)] = Array();
      }
    }
    SourceScope scope(equation.source);
    Arrays results = capibara::bind(equation.primitive, operands, equation.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!equation.outputs[i].dropped())
        values[static_cast<std::size_t>(equation.outputs[i].id)] = std::move(results[i]);
    }
  }
  Arrays outputs;
  for (Atom output : program.outputs()) outputs.push_back(read(output));
  return outputs;
}

Arrays bind_while(const Staged& condition, const Staged& body, std::span<const Array> carry) {
  Arrays operands = condition.captured;
  operands.insert(operands.end(), body.captured.begin(), body.captured.end());
  operands.insert(operands.end(), carry.begin(), carry.end());
  return capibara::bind(
      prim::while_(), operands,
      WhileView::attrs(condition.program, condition.captured.size(), body.program, body.captured.size()));
}

Arrays bind_scan(const Staged& body, std::size_t carry, int64_t length, std::span<const Array> operands, bool reverse,
                 int64_t unroll) {
  Arrays all = body.captured;
  all.insert(all.end(), operands.begin(), operands.end());
  return capibara::bind(prim::scan(), all,
                        {{"jaxpr", body.program},
                         {"length", length},
                         {"num_carry", carry},
                         {"num_consts", body.captured.size()},
                         {"reverse", reverse},
                         {"unroll", unroll}});
}

}  // namespace capibara
