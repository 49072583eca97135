// Host functions that programs call: the opaque attribute of the callback primitives.
#pragma once

#include <capibara/primitive.h>

#include <functional>
#include <string>

namespace capibara {

class Callback final : public Opaque {
 public:
  using Function = std::function<Arrays(std::span<const Array>)>;

  std::string name;
  Function function;

  Callback(std::string n, Function f) : name(std::move(n)), function(std::move(f)) {}
  std::string print() const override { return name; }
};

}  // namespace capibara
