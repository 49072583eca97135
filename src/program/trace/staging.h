// StagingTrace: records every operation of a function as an equation of a program.
#pragma once

#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {

class StagedTracer final : public Tracer {
 public:
  Var var;
  Source source;   // of the equation that made it; unknown for inputs
  Array constant;  // for a known value represented by itself: it enters the program where it is read

  StagedTracer(ArrayType type, std::shared_ptr<Trace> trace, Var v, Source s)
      : Tracer(std::move(type), std::move(trace)), var(v), source(s) {}
  StagedTracer(Array value, std::shared_ptr<Trace> trace, Source s)
      : Tracer(value.type(), std::move(trace)), source(s), constant(std::move(value)) {}
};

class StagingTrace final : public Trace {
 public:
  explicit StagingTrace(std::shared_ptr<Trace> outer) { parent = std::move(outer); }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override;
  const char* kind() const override { return "jit"; }
  std::string origin(const ArrayBody& tracer) override;
  std::string line_of(const ArrayBody& tracer) const override;

  Array new_input(const ArrayType& type);
  Array new_constant(const Array& value);
  Staged finish(std::span<const Array> outputs, const std::string& name);

 private:
  Atom atom(const Array& array);
  Array tracer(Var var, Source source = {});

  ProgramBuilder builder_;
  std::vector<Var> captured_vars_;
  Arrays captured_;
  std::unordered_map<const ArrayBody*, Var> captured_var_of_;
};

// A rank-0 number is written into equations as a literal; anything else becomes a constant.
bool is_literal_value(const Array& array);

}  // namespace capibara
