// The training monitor behind capibara.core.tpu.TPUMonitor.
#include "training_monitor.h"

#include <capibara/monitor.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "interpreter_lock.h"

namespace capibara::python {

namespace {

nb::dict python_metrics(const Metrics& metrics) {
  nb::dict result;
  for (const MetricRow& row : metric_table()) {
    if (const auto it = metrics.find(row.name); it != metrics.end()) result[row.name] = it->second;
  }
  return result;
}

}  // namespace

void bind_training_monitor(nb::module_& m) {
  nb::class_<Monitor>(m, "Monitor")
      .def(
          "__init__",
          [](Monitor* self, double update_seconds, std::optional<int> port, std::string address, std::string log_file,
             std::vector<std::string> hosts) {
            new (self) Monitor({update_seconds, port, std::move(address), std::move(log_file), std::move(hosts)});
          },
          nb::arg("update_seconds"), nb::arg("port").none(), nb::arg("address"), nb::arg("log_file"), nb::arg("hosts"))
      .def("start", &Monitor::start)
      .def("stop", &Monitor::stop)
      .def("running", &Monitor::running)
      .def("port", &Monitor::port)
      .def("link", &Monitor::link)
      .def("raised_alerts", &Monitor::raised_alerts)
      .def("metrics",
           [](const Monitor& self) {
             Metrics metrics;
             {
               nb::gil_scoped_release others;
               metrics = self.metrics();
             }
             return python_metrics(metrics);
           })
      .def(
          "step",
          [](Monitor& self, nb::handle loss, std::optional<int64_t> tokens) {
            std::optional<Array> value;
            if (!loss.is_none()) value = to_array(loss, "monitor.step");
            nb::gil_scoped_release others;
            self.step(value, tokens);
          },
          nb::arg("loss").none(), nb::arg("tokens").none())
      .def("set_alert", [](Monitor& self, std::string metric, std::string condition, double threshold,
                           nb::handle action, double for_seconds) {
        auto kept = std::make_shared<KeptObject>(action);
        auto call = [kept, metric] {
          if (!Py_IsInitialized()) return;
          const InterpreterLock lock;
          try {
            kept->get()();
          } catch (nb::python_error& error) {
            throw RuntimeError(error.what());
          }
        };
        self.set_alert({std::move(metric), std::move(condition), threshold, std::move(call), for_seconds});
      });
  m.def(
      "set_capture_hook",
      [](nb::handle hook) {
        if (hook.is_none()) return set_capture_hook({});
        set_capture_hook([kept = std::make_shared<KeptObject>(hook)](double seconds) -> std::string {
          if (!Py_IsInitialized()) return "";
          const InterpreterLock lock;
          try {
            return nb::cast<std::string>(nb::str(kept->get()(seconds)));
          } catch (nb::python_error& error) {
            throw RuntimeError(error.what());
          }
        });
      },
      nb::arg("hook").none());
  m.def("metric_names", [] {
    std::vector<std::string> names;
    for (const MetricRow& row : metric_table()) names.emplace_back(row.name);
    return names;
  });
}

}  // namespace capibara::python
