// Host functions that programs call: the opaque attribute of the callback primitives.
#pragma once

#include <capibara/primitive.h>

#include <functional>
#include <string>

namespace capibara {

// True if compiled code calls back to evaluate a primitive: only its evaluation rule defines it.
inline bool calls_host(const Primitive& primitive) { return primitive->evaluate && !primitive->lower; }

class Callback final : public Opaque {
 public:
  using Function = std::function<Arrays(std::span<const Array>)>;

  std::string name;
  Function function;

  Callback(std::string n, Function f) : name(std::move(n)), function(std::move(f)) {}
  std::string print() const override { return name; }
};

// The name of an equation for readers: the primitive and, if it is a callback, the user's function.
inline std::string call_name(const Equation& equation) {
  const std::string& primitive = equation.primitive.name();
  if (!equation.attrs.has("callback")) return primitive;
  return concat(primitive, "(", equation.attrs.opaque<Callback>("callback")->name, ")");
}

}  // namespace capibara
