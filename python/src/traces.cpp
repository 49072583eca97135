// Traces in Python: which functions are being traced on this thread, and running operations under another trace.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "program/derive/tracer_parts.h"
#include "program/trace/known_values.h"
#include "program/trace/trace.h"

#include <algorithm>

namespace capibara::python {

namespace {

// Identifies a trace for later comparison without keeping it alive.
struct TraceState {
  std::weak_ptr<Trace> trace;
  bool same_as(const TraceState& other) const {
    return !trace.owner_before(other.trace) && !other.trace.owner_before(trace);
  }
};

// Makes a trace current between __enter__ and __exit__; __enter__ returns the previous one.
struct TraceSwitch {
  std::shared_ptr<Trace> trace;
  std::unique_ptr<TraceScope> open;
};

// Only binds the name of an axis: operations are forwarded to the parent trace.
class AxisTrace final : public Trace {
 public:
  AxisTrace(std::string name, int64_t size) : name_(std::move(name)), size_(size) { parent = current_trace(); }
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    return parent->bind(primitive, inputs, attrs);
  }
  const char* kind() const override { return "axis"; }
  std::optional<int64_t> axis_size(const std::string& name) const override {
    return name == name_ ? size_ : Trace::axis_size(name);
  }
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
  // A trace is one Python object for as long as Python holds it, so `is` distinguishes traces.
  nb::class_<Trace>(m, "Trace", nb::is_weak_referenceable())
      .def_prop_ro("parent_trace", [](const Trace& self) { return self.parent; })
      .def_prop_ro("main", [](Trace& self) { return self.parent ? self.shared_from_this() : nullptr; })
      .def_prop_ro("kind", [](const Trace& self) { return std::string(self.kind()); })
      .def("is_valid", [](const Trace& self) { return !self.ended; })
      .def("__repr__", [](const Trace& self) { return concat("Trace(", self.kind(), ")"); });
  nb::class_<TraceState>(m, "TraceState")
      .def(
          "__eq__",
          [](const TraceState& self, nb::handle other) {
            return nb::isinstance<TraceState>(other) && self.same_as(nb::cast<const TraceState&>(other));
          },
          nb::arg().none())
      .def("__hash__",
           [](const TraceState&) { return 0; });  // a constant, since a trace that has ended can only be compared
  m.def("trace_state", [] { return TraceState{current_trace()}; });
  nb::class_<TraceSwitch>(m, "TraceSwitch")
      .def("__init__",
           [](TraceSwitch* self, std::shared_ptr<Trace> trace) {
             new (self) TraceSwitch{std::move(trace), nullptr};
           })
      .def("__enter__",
           [](TraceSwitch& self) {
             std::shared_ptr<Trace> previous = current_trace();
             self.open = std::make_unique<TraceScope>(self.trace);
             return previous;
           })
      .def("__exit__", [](TraceSwitch& self, nb::args) { self.open.reset(); });
  nb::class_<NamedAxis>(m, "NamedAxis")
      .def("__init__",
           [](NamedAxis* self, const std::string& name, int64_t size) {
             new (self) NamedAxis{name, size, nullptr};
           })
      .def("__enter__",
           [](NamedAxis& self) {
             self.open = std::make_unique<TraceScope>(std::make_shared<AxisTrace>(self.name, self.size));
           })
      .def("__exit__", [](NamedAxis& self, nb::args) { self.open.reset(); });
  m.def("current_trace", [] { return current_trace(); });
  m.def("evaluation_trace", [] { return evaluation_trace(); });
  m.def("tracer_trace", [](const Array& tracer) { return tracer.body()->trace()->shared_from_this(); });
  m.def("jvp_pair", [](const Array& tracer) -> nb::object {
    std::optional<std::pair<Array, Array>> pair = jvp_pair(tracer);
    return pair ? nb::object(nb::make_tuple(wrap(pair->first), wrap(pair->second))) : nb::none();
  });
  m.def("batch_of", [](const Array& tracer) -> nb::object {
    std::optional<Array> batch = batch_of(tracer);
    return batch ? wrap(std::move(*batch)) : nb::none();
  });
  set_cycle_collector([] {
    nb::gil_scoped_acquire lock;
    nb::module_::import_("gc").attr("collect")();  // PyGC_Collect does nothing if the program disabled collection
  });
  // A concrete array as a value of the program being traced; the array itself when not tracing.
  m.def("stage_value", [](const Array& value) { return wrap(stage_value(value)); });
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
