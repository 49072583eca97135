// Traces: interpreters of the operations of the running function on this thread.
#pragma once

#include <capibara/primitive.h>

#include "core/array/body.h"
#include "program/ir/build.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

namespace capibara {

// The user's function that a trace runs, for error messages. The host language fills in what is available.
struct TracedFunction {
  std::function<std::string()> text;                 // "f at model.py:12"; null: unknown
  std::string purpose;                               // "jit", "scan"
  std::function<std::string(std::size_t)> argument;  // the name of an input, while the function runs
};

// An interpretation of operations. Tracers belong to one trace and keep it alive.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  virtual ~Trace() = default;
  virtual Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) = 0;
  virtual const char* kind() const = 0;  // "jit", "jvp", "vmap"... for error texts
  // The size of a named axis bound by this trace or an outer one; nullopt if unknown.
  virtual std::optional<int64_t> axis_size(const std::string& name) const;
  virtual std::string bound_axis() const { return {}; }  // the name of the axis this trace binds; empty: none
  // Why the value of a tracer is unknown, as a sentence; empty if there is no explanation.
  virtual std::string origin(const ArrayBody& tracer);
  // The line that made a tracer; empty if unknown.
  virtual std::string line_of(const ArrayBody& tracer) const;

  std::shared_ptr<Trace> parent;  // null: evaluation
  bool ended = false;
  TracedFunction function;
  std::thread::id thread = std::this_thread::get_id();
};

// A value of a trace.
class Tracer : public ArrayBody {
 public:
  Tracer(ArrayType type, std::shared_ptr<Trace> trace) : ArrayBody(std::move(type)), owner(std::move(trace)) {}
  Trace* trace() const final { return owner.get(); }
  const char* trace_kind() const final { return owner->kind(); }
  std::string origin_line() const final;

  const std::shared_ptr<Trace> owner;
};

std::shared_ptr<Trace> current_trace();
std::shared_ptr<Trace> evaluation_trace();
bool evaluating();  // true if the current trace is evaluation: operations run at once

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

// Ends a trace when the transform that opened it returns: tracers used from then on are leaks.
class TraceEnd {
 public:
  explicit TraceEnd(std::shared_ptr<Trace> trace) : trace_(std::move(trace)) {}
  ~TraceEnd() { trace_->ended = true; }

 private:
  std::shared_ptr<Trace> trace_;
};

// Why the value of a traced array is unknown, on a separate line for the end of an error message.
std::string origin_line(const Array& array);

// Raises UnexpectedTracerError when an operand is a tracer that is not valid under the current trace.
void check_leaks(const Primitive& primitive, std::span<const Array> inputs);

}  // namespace capibara
