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
  // Of a tracer, for error texts: the kind of its trace, and why its value is not known (empty, or a line of its own).
  virtual const char* trace_kind() const { return ""; }
  virtual std::string origin_line() const { return {}; }
};

class ConcreteBody final : public ArrayBody {
 public:
  Buffer buffer;
  bool committed;

  ConcreteBody(ArrayType t, Buffer b, bool c) : ArrayBody(std::move(t)), buffer(std::move(b)), committed(c) {}
};

}  // namespace capibara
