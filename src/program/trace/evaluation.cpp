// Evaluation: the trace at the bottom, which runs each operation at once on the default backend.
#include "program/trace/trace.h"

#include <capibara/config.h>

#include "core/array/bad_value.h"
#include "program/ir/source.h"
#include "program/trace/discharge.h"
#include "program/trace/evaluator.h"

#include <algorithm>

namespace capibara {

namespace {

class EvaluationTrace final : public Trace {
 public:
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    if (std::shared_ptr<Trace> trace = innermost(inputs)) {
      // Compile-time evaluation runs what is known; operations on traced values are passed to their trace.
      TraceScope scope(trace);
      return trace->bind(primitive, inputs, attrs);
    }
    const bool takes_refs =
        std::any_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.type().ref; });
    if (takes_refs && holds_refs(attrs)) return bind_on_values(primitive, inputs, attrs);
    Arrays outputs = evaluate(primitive, inputs, attrs);
    const Config& settings = config();
    if (settings.debug_nans || settings.debug_infs) check(primitive, outputs, settings);
    return outputs;
  }
  const char* kind() const override { return "evaluation"; }

 private:
  // The deepest trace that an operand belongs to; null if all are concrete.
  static std::shared_ptr<Trace> innermost(std::span<const Array> inputs) {
    std::shared_ptr<Trace> found;
    int deepest = -1;
    for (const Array& input : inputs) {
      if (!input.is_tracer()) continue;
      std::shared_ptr<Trace> trace = input.body()->trace()->shared_from_this();
      int depth = 0;
      for (const Trace* outer = trace->parent.get(); outer; outer = outer->parent.get()) ++depth;
      if (depth > deepest) {
        deepest = depth;
        found = trace;
      }
    }
    return found;
  }
  static void check(const Primitive& primitive, const Arrays& outputs, const Config& settings) {
    for (const Array& output : outputs) {
      const BadValue bad = find_bad_value(output, settings.debug_nans, settings.debug_infs);
      if (bad == BadValue::none) continue;
      std::string where = to_string(current_source());
      throw FloatingPointError(concat("invalid value (", bad == BadValue::nan ? "nan" : "inf", ") encountered in ",
                                      primitive.name(), where.empty() ? "" : " at ", where));
    }
  }
};

}  // namespace

std::shared_ptr<Trace> evaluation_trace() {
  // One per thread, so that tracing threads share nothing.
  thread_local std::shared_ptr<Trace> trace = std::make_shared<EvaluationTrace>();
  return trace;
}

}  // namespace capibara
