// What an Array handle points to: a concrete value, or (in subclasses elsewhere) a tracer.
#pragma once

#include <capibara/array.h>

namespace capibara {

// What an Array points to.
class ArrayBody {
 public:
  ArrayType type;

  explicit ArrayBody(ArrayType t) : type(std::move(t)) {}
  virtual ~ArrayBody() = default;
  virtual Trace* trace() const { return nullptr; }  // null: a concrete value
};

class ConcreteBody final : public ArrayBody {
 public:
  Buffer buffer;
  bool committed;

  ConcreteBody(ArrayType t, Buffer b, bool c) : ArrayBody(std::move(t)), buffer(std::move(b)), committed(c) {}
};

}  // namespace capibara
