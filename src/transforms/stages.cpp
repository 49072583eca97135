// Traces functions to programs without running them; abstract arrays, and the scopes around tracing.
#include <capibara/jit.h>

#include "program/ir/source.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {

namespace {

// The trace that owns arrays with a type but no value: no operation accepts them.
class AbstractTrace final : public Trace {
 public:
  AbstractTrace() { ended = true; }
  const char* kind() const override { return "eval_shape or ShapeDtypeStruct (an array without a value)"; }
  Arrays bind(const Primitive& primitive, std::span<const Array>, const Attrs&) override {
    throw InternalError(concat(primitive.name(), ": bound under a trace that only owns types"));
  }
};

class AbstractBody final : public Tracer {
 public:
  explicit AbstractBody(ArrayType type) : Tracer(std::move(type), the_trace()) {}

 private:
  static std::shared_ptr<Trace> the_trace() {
    static const auto trace = std::make_shared<AbstractTrace>();
    return trace;
  }
};

}  // namespace

namespace detail {

void require_values(const char* operation, const TreeDef& structure, std::span<const Array> leaves) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].defined()) continue;
    throw TypeError(
        concat(operation, ": argument args", keystr(structure.paths()[i]),
               " is an empty array handle, which is not a valid JAX type; use std::optional for what may be absent"));
  }
}

Types leaf_types(const char* operation, const TreeDef& structure, std::span<const Array> leaves) {
  require_values(operation, structure, leaves);
  Types types;
  for (const Array& leaf : leaves) types.push_back(leaf.type());
  return types;
}

Program stage_program(const FlatFunction& function, const Types& types, const std::string& name) {
  require_tracing_allowed(name);
  return stage(function, types, name).program;
}

Arrays abstract_arrays(const Types& types) {
  Arrays arrays;
  for (const ArrayType& type : types) arrays.push_back(Array(std::make_shared<const AbstractBody>(type)));
  return arrays;
}

}  // namespace detail

namespace jax {

Array ShapeDtypeStruct(Shape shape, DType dtype, bool weak_type) {
  return detail::abstract_arrays({ArrayType{std::move(shape), dtype, weak_type, false, {}}})[0];
}

Scope ensure_compile_time_eval() { return Scope(std::make_shared<TraceScope>(evaluation_trace())); }

Scope named_scope(const std::string& name) {
  SourceInfo info = source_info(current_scope());
  info.name_scope = joined_scope(info.name_scope, name);
  return Scope(std::make_shared<SourceScope>(intern(info)));
}

}  // namespace jax
}  // namespace capibara
