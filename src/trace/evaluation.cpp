// Evaluation: the trace at the bottom, which runs each operation at once on the default backend.
#include "trace/trace.h"

#include <capibara/config.h>
#include <capibara/default_device.h>

#include "array/element.h"
#include "backends/backend.h"
#include "program/discharge.h"
#include "program/source.h"

#include <algorithm>

namespace capibara {

namespace {

enum class Bad { none, nan, inf };

Bad find_bad(const Array& array, bool nans, bool infs) {
  if (!is_inexact(array.dtype())) return Bad::none;
  int64_t parts = is_complex(array.dtype()) ? 2 : 1;
  DType part = real_dtype(array.dtype());
  const std::byte* data = array.raw_data();
  for (int64_t i = 0; i < array.size() * parts; ++i) {
    double value = load_as<double>(part, data, i);
    if (nans && value != value) return Bad::nan;
    if (infs && value - value != 0 && value == value) return Bad::inf;
  }
  return Bad::none;
}

class EvaluationTrace final : public Trace {
 public:
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    if (std::shared_ptr<Trace> trace = innermost(inputs)) {
      // Compile-time evaluation runs what is known; operations on traced values go on to their trace.
      TraceScope scope(trace);
      return trace->bind(primitive, inputs, attrs);
    }
    const bool takes_refs = std::any_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.type().ref; });
    if (takes_refs && holds_refs(attrs)) return bind_on_values(primitive, inputs, attrs);
    Arrays outputs = run(primitive, inputs, attrs);
    const Config& settings = config();
    if (settings.debug_nans || settings.debug_infs) check(primitive, outputs, settings);
    return outputs;
  }
  const char* kind() const override { return "evaluation"; }

 private:
  // Committed operands decide where, and their results are committed.
  static Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    bool committed = false;
    for (const Array& input : inputs) committed = committed || input.committed();
    if (!committed) return default_backend().run(primitive, inputs, attrs);
    const std::optional<Device> demanded = demanded_device(inputs);
    if (!demanded) return as_committed(default_backend().run(primitive, inputs, attrs));
    const DefaultDeviceScope scope(demanded);
    return as_committed(default_backend().run(primitive, inputs, attrs));
  }
  // The deepest trace that an operand belongs to; null where all are concrete.
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
      Bad bad = find_bad(output, settings.debug_nans, settings.debug_infs);
      if (bad == Bad::none) continue;
      std::string where = to_string(current_source());
      throw FloatingPointError(concat("invalid value (", bad == Bad::nan ? "nan" : "inf", ") encountered in ",
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
