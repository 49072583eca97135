// PartialEvalTrace: operations on known values run now, those that touch an unknown value are recorded for later.
#pragma once

#include "program/derive/custom.h"
#include "program/derive/derive.h"
#include "program/trace/trace.h"

#include <map>

namespace capibara {

class UnknownTracer final : public Tracer {
 public:
  Var var;

  UnknownTracer(ArrayType type, std::shared_ptr<Trace> trace, Var v)
      : Tracer(std::move(type), std::move(trace)), var(v) {}
};

class PartialEvalTrace final : public Trace, public detail::CustomCallTrace {
 public:
  explicit PartialEvalTrace(std::shared_ptr<Trace> outer) { parent = std::move(outer); }
  const char* kind() const override { return "linearize"; }

  Array new_unknown(const ArrayType& type);
  bool unknown(const Array& array) const {
    return array.body()->trace() == this || unknown_refs_.count(array.body().get()) != 0;
  }
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override;
  // Calls on known values run now; those on unknown ones are recorded as programs.
  std::optional<Arrays> call(const detail::CustomCall& call, std::span<const Array> inputs) override;

  // The recorded program from the unknowns to `outputs`; its leading inputs are the known values it needs.
  struct Recorded {
    Program program;
    Arrays residuals;
  };
  Recorded finish(std::span<const Array> outputs, const std::string& name);

 private:
  Atom atom(const Array& array);
  Array value(Atom atom);
  Arrays record(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs);

  ProgramBuilder builder_;
  std::vector<Var> residual_vars_;
  Arrays residuals_;
  std::unordered_map<const ArrayBody*, Var> residual_var_of_;
  // Known refs to which an unknown value was written; kept alive, so that no other array reuses their address.
  std::map<const ArrayBody*, Array> unknown_refs_;
};

}  // namespace capibara
