// Staging: turning a function into a program by running it on tracers.
#include "trace/staging.h"

#include <capibara/config.h>

#include "program/source.h"

namespace capibara {

bool is_literal_value(const Array& array) {
  return !array.is_tracer() && array.ndim() == 0 && (is_numeric(array.dtype()) || is_bool(array.dtype())) &&
         !array.type().ref;
}

Array StagingTrace::tracer(Var var) {
  return Array(std::make_shared<const StagedTracer>(builder_.type(var), shared_from_this(), var));
}

Array StagingTrace::new_input(const ArrayType& type) { return tracer(builder_.add_input(type)); }

Atom StagingTrace::atom(const Array& array) {
  const ArrayBody* body = array.body().get();
  if (body->trace() == this) return static_cast<const StagedTracer*>(body)->var;
  if (is_literal_value(array)) return builder_.add_literal(array);
  // A ref is never a constant: the program is given it at each call.
  if (!body->trace() && !array.type().ref) return builder_.add_constant(array);
  auto [place, added] = captured_var_of_.try_emplace(body);
  if (added) {
    place->second = builder_.new_var(array.type());
    captured_vars_.push_back(place->second);
    captured_.push_back(array);
  }
  return place->second;
}

Arrays StagingTrace::bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  // The conversion of a literal is a literal.
  if (primitive.is("convert_element_type") && is_literal_value(inputs[0])) {
    TraceScope scope(evaluation_trace());
    return evaluation_trace()->bind(primitive, inputs, attrs);
  }
  std::vector<Atom> atoms;
  atoms.reserve(inputs.size());
  for (const Array& input : inputs) atoms.push_back(atom(input));
  std::vector<Var> vars = builder_.add_equation(primitive, std::move(atoms), attrs, current_source());
  Arrays outputs;
  outputs.reserve(vars.size());
  for (Var var : vars) outputs.push_back(tracer(var));
  return outputs;
}

Staged StagingTrace::finish(std::span<const Array> outputs, const std::string& name) {
  std::vector<Atom> atoms;
  for (const Array& output : outputs) {
    if (!output.defined()) throw TypeError(concat(name, ": the function returned an empty array handle"));
    if (const Trace* trace = output.body()->trace(); trace && trace->ended) {
      throw UnexpectedTracerError(concat(name, ": the function returned a leaked tracer of type ", to_string(output.type())));
    }
    atoms.push_back(atom(output));
  }
  builder_.set_outputs(std::move(atoms));
  auto& invars = builder_.body().invars;
  invars.insert(invars.begin(), captured_vars_.begin(), captured_vars_.end());
  return {builder_.finish(name), std::move(captured_)};
}

Staged stage(const FlatFunction& function, std::span<const ArrayType> types, const std::string& name) {
  auto trace = std::make_shared<StagingTrace>(current_trace());
  TraceEnd end(trace);
  Arrays inputs;
  for (const ArrayType& type : types) inputs.push_back(trace->new_input(type));
  TraceScope scope(trace);
  Arrays outputs = function(inputs);
  Staged staged = trace->finish(outputs, name);
  if (config().check_tracer_leaks) {
    inputs.clear();
    outputs.clear();
    // Every tracer holds its trace; this function, the scope and the end marker hold it too.
    constexpr long own_holders = 3;
    if (trace.use_count() > own_holders) {
      throw UnexpectedTracerError(concat("checking_leaks: ", trace.use_count() - own_holders, " traced values of '", name,
                                         "' are still held after it returned.\nHint: return them instead of storing them outside."));
    }
  }
  return staged;
}

Staged stage_open(const FlatFunction& function, std::span<const ArrayType> types, const std::string& name) {
  return opened(stage(function, types, name));
}

Staged opened(const Staged& staged) {
  if (staged.program.constvars().empty()) return staged;
  std::size_t constants = staged.program.constvars().size();
  Arrays values = staged.program.constants();
  values.insert(values.end(), staged.captured.begin(), staged.captured.end());
  Program open = constants_to_inputs(staged.program);
  std::vector<int> order;
  std::vector<bool> placed(static_cast<std::size_t>(open.var_count()), false);
  auto visit = [&](Atom atom) {
    if (atom.is_literal() || placed[static_cast<std::size_t>(atom.code)]) return;
    for (std::size_t i = 0; i < constants + staged.captured.size(); ++i) {
      if (open.invars()[i] == atom.var()) order.push_back(static_cast<int>(i));
    }
    placed[static_cast<std::size_t>(atom.code)] = true;
  };
  for (const Equation& equation : open.equations()) {
    for (Atom input : equation.inputs) visit(input);
  }
  for (Atom output : open.outputs()) visit(output);
  for (std::size_t i = constants + staged.captured.size(); i < open.invars().size(); ++i) order.push_back(static_cast<int>(i));
  Staged result{reorder_inputs(open, order), {}};
  for (std::size_t i = 0; i < values.size(); ++i) result.captured.push_back(values[static_cast<std::size_t>(order[i])]);
  return result;
}

}  // namespace capibara
