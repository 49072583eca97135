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
  m.def("current_trace", [] { return TraceHandle{current_trace()}; });
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
