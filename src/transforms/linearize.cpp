// Linearisation: forward differentiation with unknown tangents, partially evaluated.
#include "program/derive/partial_eval.h"
#include "transforms/flat.h"

#include "lax/rules.h"

namespace capibara {

Linearized linearize_flat(const FlatFunction& function, std::span<const Array> primals,
                          const std::vector<bool>& differentiable) {
  auto trace = std::make_shared<PartialEvalTrace>(current_trace());
  TraceEnd end(trace);
  Arrays tangents(primals.size());
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (differentiable[i]) tangents[i] = trace->new_unknown(tangent_type(primals[i].type()));
  }
  JvpResult jvp;
  {
    TraceScope scope(trace);
    jvp = jvp_flat(function, primals, tangents);
  }
  Linearized result;
  Arrays nonzero;
  for (std::size_t i = 0; i < jvp.tangents.size(); ++i) {
    if (trace->unknown(jvp.primals[i])) {
      throw ValueError(
          concat("linearize: output ", i, " of type ", to_string(jvp.primals[i].type()),
                 " does not follow from its tangent: the function uses an operation that has no reverse-mode "
                 "derivative (a while loop, a general reduce_window)"));
    }
    result.nonzero_outputs.push_back(jvp.tangents[i].defined());
    if (jvp.tangents[i].defined()) nonzero.push_back(jvp.tangents[i]);
  }
  result.outputs = std::move(jvp.primals);
  PartialEvalTrace::Recorded recorded = trace->finish(nonzero, "linearized");
  result.linear = std::move(recorded.program);
  result.residuals = std::move(recorded.residuals);
  return result;
}

Arrays pull_back(const Linearized& linearized, std::span<const Array> cotangents) {
  std::size_t residuals = linearized.residuals.size();
  std::size_t inputs = linearized.linear.invars().size();
  std::vector<bool> is_linear(inputs, true);
  std::fill(is_linear.begin(), is_linear.begin() + static_cast<std::ptrdiff_t>(residuals), false);
  Arrays values = linearized.residuals;
  values.resize(inputs);
  Arrays nonzero;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (linearized.nonzero_outputs[i]) nonzero.push_back(cotangents[i]);
  }
  Arrays result = backward_pass(linearized.linear, is_linear, values, nonzero);
  return Arrays(result.begin() + static_cast<std::ptrdiff_t>(residuals), result.end());
}

}  // namespace capibara
