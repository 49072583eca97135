// What an Array handle points to: a concrete value, or (in subclasses elsewhere) a tracer.
#pragma once

#include <capibara/array.h>

namespace capibara {

struct NamedSharding;

// What an Array points to.
class ArrayBody {
 public:
  ArrayType type;

  explicit ArrayBody(ArrayType t) : type(std::move(t)) {}
  virtual ~ArrayBody() = default;
  virtual Trace* trace() const { return nullptr; }  // null: a concrete value
  // For error messages about tracers: the kind of trace, and why the value is unknown (empty, or a line of its own).
  virtual const char* trace_kind() const { return ""; }
  virtual std::string origin_line() const { return {}; }
};

class ConcreteBody final : public ArrayBody {
 public:
  Buffer buffer;
  bool committed;
  // The host devices it is reported to be on; null: the device of its buffer. The buffer holds the whole array.
  std::shared_ptr<const NamedSharding> placement;

  ConcreteBody(ArrayType t, Buffer b, bool c, std::shared_ptr<const NamedSharding> p = nullptr)
      : ArrayBody(std::move(t)), buffer(std::move(b)), committed(c), placement(std::move(p)) {}
};

// The placement of an array in host memory; null for tracers, refs and arrays on the first device.
const std::shared_ptr<const NamedSharding>& host_placement(const Array& array);
// The same value, committed to devices of the host; null: to the first one.
Array placed_on_host(const Array& array, std::shared_ptr<const NamedSharding> placement);

}  // namespace capibara
