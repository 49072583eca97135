// The current trace of each thread, and the entry point of every operation.
#include "program/trace/trace.h"

#include <thread>

namespace capibara {

namespace {

thread_local std::shared_ptr<Trace> current;
thread_local const Trace* innermost = nullptr;  // the same, for every operation: reading a plain pointer is faster

}  // namespace

std::optional<int64_t> Trace::axis_size(const std::string& name) const {
  return parent ? parent->axis_size(name) : std::nullopt;
}

std::string Trace::origin(const ArrayBody&) { return {}; }
std::string Trace::line_of(const ArrayBody&) const { return {}; }

std::string Tracer::origin_line() const {
  std::string text = owner->origin(*this);
  return text.empty() ? text : concat("\n", text);
}

std::string origin_line(const Array& array) { return array.is_tracer() ? array.body()->origin_line() : std::string(); }

std::shared_ptr<Trace> current_trace() { return current ? current : evaluation_trace(); }

bool evaluating() { return !innermost || !innermost->parent; }

TraceScope::TraceScope(std::shared_ptr<Trace> trace) : previous_(std::move(current)) {
  current = std::move(trace);
  innermost = current.get();
}
TraceScope::~TraceScope() {
  current = std::move(previous_);
  innermost = current.get();
}

void check_leaks(const Primitive& primitive, std::span<const Array> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      throw TypeError(concat(primitive.name(), ": argument ", i, " is an empty array handle"));
    }
    const Trace* trace = inputs[i].body()->trace();
    if (!trace) continue;
    if (!trace->ended && trace->thread == std::this_thread::get_id()) continue;
    std::string text =
        concat("Encountered an unexpected tracer. ", primitive.name(), ": argument ", i, " is a leaked tracer of type ",
               to_string(inputs[i].type()), " from ", trace->kind(),
               trace->ended ? ", whose function has already returned." : ", which runs on another thread.");
    if (trace->function.text) {
      text += concat("\nThe function being traced when the value leaked was ", trace->function.text(), " traced for ",
                     trace->function.purpose, ".");
    }
    std::string line = trace->line_of(*inputs[i].body());
    if (!line.empty()) text += concat("\nThe leaked intermediate value was created on line ", line, ".");
    throw UnexpectedTracerError(text +
                                "\nHint: return traced values from the transformed function instead of storing them in "
                                "global state or elsewhere outside of it. " +
                                "The setting jax_check_tracer_leaks finds the leak where it happens.");
  }
}

Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  check_leaks(primitive, inputs);
  return current_trace()->bind(primitive, inputs, attrs);
}

Array bind1(const Primitive& primitive, std::initializer_list<Array> inputs, const Attrs& attrs) {
  return bind(primitive, std::span<const Array>(inputs.begin(), inputs.size()), attrs)[0];
}

}  // namespace capibara
