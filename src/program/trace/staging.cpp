// Staging: converting a function to a program by running it on tracers.
#include "program/trace/staging.h"
#include "program/ir/handles.h"
#include "program/trace/known_values.h"

#include <capibara/config.h>

#include "program/ir/source.h"

#include <algorithm>
#include <set>

namespace capibara {

bool is_literal_value(const Array& array) {
  return !array.is_tracer() && array.ndim() == 0 && (is_numeric(array.dtype()) || is_bool(array.dtype())) &&
         !array.type().ref;
}

Array StagingTrace::tracer(Var var, Source source) {
  return Array(std::make_shared<const StagedTracer>(builder_.type(var), shared_from_this(), var, source));
}

std::string StagingTrace::line_of(const ArrayBody& tracer) const {
  Source source = static_cast<const StagedTracer&>(tracer).source;
  return source_info(source).file.empty() ? std::string() : to_string(source);
}

std::string StagingTrace::origin(const ArrayBody& tracer) {
  if (ended || !function.text) return {};
  // Walks back from the value to the inputs it depends on, and to operations that depend on nothing traced.
  const std::string tracing =
      concat("The error occurred while tracing the function ", function.text(), " for ", function.purpose, ".");
  if (static_cast<const StagedTracer&>(tracer).constant.defined()) return tracing;
  const Program::Body& body = builder_.body();
  std::set<int32_t> needed{static_cast<const StagedTracer&>(tracer).var.id};
  std::vector<const Equation*> roots;
  for (auto equation = body.equations.rbegin(); equation != body.equations.rend(); ++equation) {
    bool used = false, has_inputs = false;
    for (Var output : equation->outputs) used |= needed.count(output.id) != 0;
    if (!used) continue;
    for (Atom input : equation->inputs) {
      if (input.is_literal() || std::count(body.constvars.begin(), body.constvars.end(), input.var())) continue;
      needed.insert(input.var().id);
      has_inputs = true;
    }
    if (!has_inputs) roots.push_back(&*equation);
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < body.invars.size() && function.argument; ++i) {
    if (needed.count(body.invars[i].id)) names.push_back(function.argument(i));
  }
  std::string text = tracing;
  if (!names.empty()) {
    text += concat(" This concrete value was not available in Python because it depends on the value",
                   names.size() > 1 ? "s of the arguments " : " of the argument ");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) text += i + 1 < names.size() ? ", " : names.size() > 2 ? ", and " : " and ";
      text += names[i];
    }
    return text + ".";
  }
  constexpr std::size_t max_shown = 5;
  if (!roots.empty()) text += " This value became a tracer due to JAX operations on these lines:";
  for (std::size_t i = 0; i < roots.size() && i < max_shown; ++i) {
    const Equation& equation = *roots[roots.size() - 1 - i];
    text += concat("\n  operation ", equation.primitive.name(), " from line ", to_string(equation.source));
  }
  if (roots.size() > max_shown) text += concat("\n  and ", roots.size() - max_shown, " more");
  return text;
}

Array StagingTrace::new_input(const ArrayType& type) { return tracer(builder_.add_input(type)); }

Array StagingTrace::new_constant(const Array& value) {
  return Array(std::make_shared<const StagedTracer>(value, shared_from_this(), current_source()));
}

Atom StagingTrace::atom(const Array& array) {
  const ArrayBody* body = array.body().get();
  if (body->trace() == this) {
    const auto* own = static_cast<const StagedTracer*>(body);
    return own->constant.defined() ? atom(own->constant) : own->var;
  }
  // Constants are read when programs are compared and folded, under locks: their values must be ready.
  if (!body->trace() && !array.type().ref) array.block_until_ready();
  if (is_literal_value(array)) return builder_.add_literal(array);
  // A ref is never a constant: it is passed to the program at each call.
  if (!body->trace() && !array.type().ref) return builder_.add_constant(array);
  auto [it, added] = captured_var_of_.try_emplace(body);
  if (added) {
    it->second = builder_.new_var(array.type());
    captured_vars_.push_back(it->second);
    captured_.push_back(array);
  }
  return it->second;
}

Arrays StagingTrace::bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  // The conversion of a literal is a literal.
  if (primitive == prim::convert_element_type()) {
    const ArrayBody* body = inputs[0].body().get();
    const bool is_staged = body->trace() == this;
    const Array value = is_staged ? static_cast<const StagedTracer*>(body)->constant : inputs[0];
    if (value.defined() && is_literal_value(value)) {
      TraceScope scope(evaluation_trace());
      Arrays converted = evaluation_trace()->bind(primitive, std::span(&value, 1), attrs);
      if (is_staged) converted[0] = new_constant(converted[0]);
      return converted;
    }
  }
  std::vector<Atom> atoms;
  atoms.reserve(inputs.size());
  for (const Array& input : inputs) atoms.push_back(atom(input));
  const Source source = current_source();
  std::vector<Var> vars = builder_.add_equation(primitive, std::move(atoms), attrs, source);
  Arrays outputs;
  outputs.reserve(vars.size());
  for (Var var : vars) outputs.push_back(tracer(var, source));
  return outputs;
}

Staged StagingTrace::finish(std::span<const Array> outputs, const std::string& name) {
  std::vector<Atom> atoms;
  for (const Array& output : outputs) {
    if (!output.defined()) throw TypeError(concat(name, ": the function returned an empty array handle"));
    if (const Trace* trace = output.body()->trace(); trace && trace->ended) {
      throw UnexpectedTracerError(concat("Encountered an unexpected tracer. ", name,
                                         ": the function returned a leaked tracer of type ", to_string(output.type())));
    }
    atoms.push_back(atom(output));
  }
  builder_.set_outputs(std::move(atoms));
  auto& invars = builder_.body().invars;
  invars.insert(invars.begin(), captured_vars_.begin(), captured_vars_.end());
  return {builder_.finish(name), std::move(captured_)};
}

Array stage_value(const Array& value) {
  if (evaluating() || !value.defined() || value.is_tracer() || value.type().ref) return value;
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) {
    if (auto* staging = dynamic_cast<StagingTrace*>(trace.get())) return staging->new_constant(value);
  }
  return value;
}

namespace {

std::function<void()>& cycle_collector() {
  static std::function<void()> collector;
  return collector;
}

}  // namespace

void set_cycle_collector(std::function<void()> collector) { cycle_collector() = std::move(collector); }

void require_tracing_allowed(const std::string& name) {
  if (config().no_tracing) {
    throw RuntimeError(concat("re-tracing function ", name, " for `jit`, but 'no_tracing' is set"));
  }
}

Staged stage(const FlatFunction& function, std::span<const ArrayType> types, const std::string& name) {
  auto trace = std::make_shared<StagingTrace>(current_trace());
  TraceEnd end(trace);
  Arrays inputs;
  for (const ArrayType& type : types) inputs.push_back(trace->new_input(type));
  TraceScope scope(trace);
  Arrays outputs = function(inputs);
  Staged staged = trace->finish(outputs, name);
  if (config().enable_checks) verify(staged.program);
  if (config().check_tracer_leaks) {
    inputs.clear();
    outputs.clear();
    // Every tracer holds its trace; this function, the scope and the end marker hold it too.
    constexpr long own_holders = 3;
    // Tracers held only by garbage cycles cannot reach the user: the host language frees them first.
    if (trace.use_count() > own_holders && cycle_collector()) cycle_collector()();
    if (trace.use_count() > own_holders) {
      throw UnexpectedTracerError(
          concat("Leaked trace DynamicJaxprTrace: ", trace.use_count() - own_holders, " traced values of '", name,
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
  for (std::size_t i = constants + staged.captured.size(); i < open.invars().size(); ++i)
    order.push_back(static_cast<int>(i));
  Staged result{reorder_inputs(open, order), {}};
  for (std::size_t i = 0; i < values.size(); ++i) result.captured.push_back(values[static_cast<std::size_t>(order[i])]);
  return result;
}

}  // namespace capibara
