// Traces in Python: which functions are being traced on this thread, and running operations under another trace.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "trace/trace.h"

#include <algorithm>

namespace capibara::python {

namespace {

struct TraceHandle {
  std::shared_ptr<Trace> trace;
};

// Makes a trace current between __enter__ and __exit__; entering gives the one that was current before.
struct TraceSwitch {
  std::shared_ptr<Trace> trace;
  std::unique_ptr<TraceScope> open;
};

// Binds the name of an axis and nothing else: operations go on to the trace below.
class AxisTrace final : public Trace {
 public:
  AxisTrace(std::string name, int64_t size) : name_(std::move(name)), size_(size) { parent = current_trace(); }
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    return parent->bind(primitive, inputs, attrs);
  }
  const char* kind() const override { return "axis"; }
  std::optional<int64_t> axis_size(const std::string& name) const override { return name == name_ ? size_ : Trace::axis_size(name); }
  std::string bound_axis() const override { return name_; }

 private:
  const std::string name_;
  const int64_t size_;
};

struct NamedAxis {
  std::string name;
  int64_t size;
  std::unique_ptr<TraceScope> open;
};

std::vector<std::shared_ptr<Trace>> stack_from_outermost() {
  std::vector<std::shared_ptr<Trace>> stack;
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) stack.push_back(trace);
  std::reverse(stack.begin(), stack.end());
  return stack;
}

}  // namespace

void bind_traces(nb::module_& m) {
  nb::class_<TraceHandle>(m, "Trace")
      .def_prop_ro("parent_trace",
                   [](const TraceHandle& self) {
                     return self.trace->parent ? nb::cast(TraceHandle{self.trace->parent}) : nb::none();
                   })
      .def(
          "__eq__",
          [](const TraceHandle& self, nb::handle other) {
            return nb::isinstance<TraceHandle>(other) && nb::cast<const TraceHandle&>(other).trace == self.trace;
          },
          nb::arg().none())
      .def("__hash__", [](const TraceHandle& self) { return std::hash<const void*>()(self.trace.get()); })
      .def("__repr__", [](const TraceHandle& self) { return concat("Trace(", self.trace->kind(), ")"); });
  nb::class_<TraceSwitch>(m, "TraceSwitch")
      .def("__init__",
           [](TraceSwitch* self, const TraceHandle& handle) {
             new (self) TraceSwitch{handle.trace, nullptr};
           })
      .def("__enter__",
           [](TraceSwitch& self) {
             TraceHandle previous{current_trace()};
             self.open = std::make_unique<TraceScope>(self.trace);
             return previous;
           })
      .def("__exit__", [](TraceSwitch& self, nb::args) { self.open.reset(); });
  nb::class_<NamedAxis>(m, "NamedAxis")
      .def("__init__", [](NamedAxis* self, const std::string& name, int64_t size) { new (self) NamedAxis{name, size, nullptr}; })
      .def("__enter__", [](NamedAxis& self) { self.open = std::make_unique<TraceScope>(std::make_shared<AxisTrace>(self.name, self.size)); })
      .def("__exit__", [](NamedAxis& self, nb::args) { self.open.reset(); });
  m.def("current_trace", [] { return TraceHandle{current_trace()}; });
  // The current trace, unless it evaluates: then the deepest trace that a value belongs to.
  m.def("top_trace", [](const std::vector<Array>& values) {
    std::shared_ptr<Trace> top = current_trace();
    if (top != evaluation_trace()) return TraceHandle{top};
    std::size_t deepest = 0;
    for (const Array& value : values) {
      std::size_t depth = 0;
      for (const Trace* trace = value.body()->trace(); trace; trace = trace->parent.get()) ++depth;
      if (depth > deepest) top = value.body()->trace()->shared_from_this();
      deepest = std::max(deepest, depth);
    }
    return TraceHandle{top};
  });
  m.def("evaluation_trace", [] { return TraceHandle{evaluation_trace()}; });
  m.def("is_tracing", [] { return current_trace() != evaluation_trace(); });
  m.def("trace_kinds", [] {
    std::vector<std::string> kinds;
    for (const auto& trace : stack_from_outermost()) kinds.emplace_back(trace->kind());
    return kinds;
  });
  m.def("axis_names", [] {
    std::vector<std::string> names;
    for (const auto& trace : stack_from_outermost()) {
      if (std::string name = trace->bound_axis(); !name.empty()) names.push_back(name);
    }
    return names;
  });
}

}  // namespace capibara::python
