// Traces: who interprets the operations of the running function on this thread.
#pragma once

#include <capibara/primitive.h>

#include "array/body.h"
#include "program/build.h"

#include <memory>
#include <span>
#include <thread>

namespace capibara {

// An interpretation of operations. Tracers belong to one trace and keep it alive.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  virtual ~Trace() = default;
  virtual Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) = 0;
  virtual const char* kind() const = 0;  // "jit", "jvp", "vmap"... for error texts
  // The size of a named axis bound by this trace or an outer one; nullopt where unknown.
  virtual std::optional<int64_t> axis_size(const std::string& name) const;

  std::shared_ptr<Trace> parent;  // null: evaluation
  bool ended = false;
  std::thread::id thread = std::this_thread::get_id();
};

std::shared_ptr<Trace> current_trace();
std::shared_ptr<Trace> evaluation_trace();

// Makes a trace current on this thread until the end of the scope.
class TraceScope {
 public:
  explicit TraceScope(std::shared_ptr<Trace> trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  std::shared_ptr<Trace> previous_;
};

// Ends a trace when the transform that opened it returns: its tracers are leaks from then on.
class TraceEnd {
 public:
  explicit TraceEnd(std::shared_ptr<Trace> trace) : trace_(std::move(trace)) {}
  ~TraceEnd() { trace_->ended = true; }

 private:
  std::shared_ptr<Trace> trace_;
};

// Raises UnexpectedTracerError when an operand is a tracer that is not valid under the current trace.
void check_leaks(const Primitive& primitive, std::span<const Array> inputs);

}  // namespace capibara
