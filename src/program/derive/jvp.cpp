// Forward-mode differentiation: each operation on primals is followed by its tangent.
#include <capibara/config.h>
#include <capibara/lax.h>

#include "program/derive/custom.h"
#include "program/derive/derive.h"
#include "program/derive/tracer_parts.h"
#include "program/derive/values.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"

namespace capibara {

namespace {

class JvpTracer final : public Tracer {
 public:
  Array primal, tangent;

  JvpTracer(std::shared_ptr<Trace> trace, Array p, Array t)
      : Tracer(p.type(), std::move(trace)), primal(std::move(p)), tangent(std::move(t)) {}
};

class JvpTrace final : public Trace, public detail::CustomCallTrace {
 public:
  explicit JvpTrace(std::shared_ptr<Trace> outer) { parent = std::move(outer); }
  const char* kind() const override { return "jvp"; }

  // The pair behind a value; a value of an outer trace is its own primal with a zero tangent.
  std::pair<Array, Array> unpack(const Array& value) const {
    if (value.body()->trace() != this) return {value, Array()};
    const auto& tracer = static_cast<const JvpTracer&>(*value.body());
    return {tracer.primal, tracer.tangent};
  }

  Array pack(Array primal, Array tangent) {
    if (!tangent.defined() || !is_inexact(primal.dtype())) return primal;
    return Array(std::make_shared<const JvpTracer>(shared_from_this(), std::move(primal), std::move(tangent)));
  }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    Arrays primals, tangents;
    // A ref needs a tangent from the start: what is written to it later may have one.
    bool any = primitive == prim::new_ref() && is_inexact(inputs[0].dtype());
    for (const Array& input : inputs) {
      auto [primal, tangent] = unpack(input);
      any |= tangent.defined();
      primals.push_back(std::move(primal));
      tangents.push_back(std::move(tangent));
    }
    TraceScope scope(parent);
    if (!any) return parent->bind(primitive, primals, attrs);
    if (!primitive->jvp) {
      if (!primitive->differentiable) return parent->bind(primitive, primals, attrs);
      throw NotImplementedError(concat("Differentiation rule for '", primitive.name(), "' not implemented"));
    }
    JvpResult result = primitive->jvp({primitive, primals, tangents, attrs});
    Arrays outputs;
    for (std::size_t i = 0; i < result.primals.size(); ++i) {
      outputs.push_back(pack(std::move(result.primals[i]), std::move(result.tangents[i])));
    }
    return outputs;
  }

  std::optional<Arrays> call(const detail::CustomCall& call, std::span<const Array> inputs) override {
    Arrays primals, tangents;
    bool any = false;
    for (const Array& input : inputs) {
      auto [primal, tangent] = unpack(input);
      any |= tangent.defined();
      primals.push_back(std::move(primal));
      tangents.push_back(std::move(tangent));
    }
    // A program may capture values of this trace that the function closes over; only its equation shows which.
    if (!any && detail::is_staged(*this)) return std::nullopt;
    TraceScope scope(parent);
    if (!any) return detail::call_custom(call, primals);
    for (std::size_t i = 0; i < primals.size() && call.jvp && !call.symbolic_zeros; ++i)
      tangents[i] = instantiate(tangents[i], primals[i].type());
    JvpResult result =
        call.jvp ? call.jvp->rule(primals, tangents) : jvp_by_forward(call.vjp, call.symbolic_zeros, primals, tangents);
    Arrays outputs;
    for (std::size_t i = 0; i < result.primals.size(); ++i) {
      refuse_captured(call, result.primals[i]);
      refuse_captured(call, result.tangents[i]);
      outputs.push_back(pack(std::move(result.primals[i]), std::move(result.tangents[i])));
    }
    return outputs;
  }

 private:
  // A rule does not cover values that the function closes over.
  void refuse_captured(const detail::CustomCall& call, const Array& output) const {
    if (!output.defined() || output.body()->trace() != this) return;
    throw UnexpectedTracerError(concat(
        "Detected differentiation of a ", call.jvp ? "custom_jvp" : "custom_vjp",
        " function with respect to a closed-over ",
        "value. That's not supported because the custom rule only specifies how to differentiate with respect to its ",
        "arguments.\nHint: pass the closed-over value as an argument of ", call.names.function, "."));
  }
};

Memo<JvpProgram>& jvp_memo() {
  static Memo<JvpProgram> instance;
  return instance;
}

}  // namespace

std::optional<std::pair<Array, Array>> jvp_pair(const Array& value) {
  const auto* tracer = dynamic_cast<const JvpTracer*>(value.body().get());
  if (!tracer) return std::nullopt;
  return std::pair(tracer->primal, tracer->tangent);
}

JvpResult jvp_flat(const FlatFunction& function, std::span<const Array> primals, std::span<const Array> tangents) {
  auto trace = std::make_shared<JvpTrace>(current_trace());
  TraceEnd end(trace);
  Arrays inputs;
  for (std::size_t i = 0; i < primals.size(); ++i) inputs.push_back(trace->pack(primals[i], tangents[i]));
  Arrays outputs;
  {
    TraceScope scope(trace);
    outputs = function(inputs);
  }
  JvpResult result;
  for (const Array& output : outputs) {
    auto [primal, tangent] = trace->unpack(output);
    result.primals.push_back(std::move(primal));
    result.tangents.push_back(std::move(tangent));
  }
  return result;
}

JvpProgram jvp_program(const Program& program, const std::vector<bool>& nonzero,
                       const std::vector<bool>& instantiate_outputs) {
  return jvp_memo().get({program, nonzero, instantiate_outputs, 0, "", config().key()}, [&] {
    JvpProgram result;
    Types types = program.input_types();
    for (std::size_t i = 0; i < nonzero.size(); ++i) {
      if (nonzero[i]) types.push_back(tangent_type(program.type(program.invars()[i])));
    }
    std::size_t count = nonzero.size();
    Staged staged = stage(
        [&](std::span<const Array> inputs) {
          Arrays tangents(count);
          std::size_t next = count;
          for (std::size_t i = 0; i < count; ++i) {
            if (nonzero[i]) tangents[i] = inputs[next++];
          }
          JvpResult jvp = jvp_flat([&](std::span<const Array> xs) { return evaluate_program(program, xs); },
                                   inputs.first(count), tangents);
          Arrays outputs = jvp.primals;
          for (std::size_t i = 0; i < jvp.tangents.size(); ++i) {
            bool wanted = jvp.tangents[i].defined() || (!instantiate_outputs.empty() && instantiate_outputs[i]);
            result.nonzero_outputs.push_back(wanted);
            if (wanted) outputs.push_back(instantiate(jvp.tangents[i], jvp.primals[i].type()));
          }
          return outputs;
        },
        types, program.name());
    result.program = staged.program;
    return result;
  });
}

}  // namespace capibara
