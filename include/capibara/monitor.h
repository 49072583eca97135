// The monitor: metrics of a training run, sampled while it runs, for programs, Prometheus, a log and a browser page.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <capibara/array.h>

namespace capibara {

// A metric: its name, its description, and whether it only increases.
struct MetricRow {
  const char* name;
  const char* doc;
  bool counter;
};
// All metrics, in display order.
const std::vector<MetricRow>& metric_table();

// The values of metrics by name; those not known yet, such as the loss, are missing.
using Metrics = std::map<std::string, double>;

// How a monitor samples and who may read it.
struct MonitorOptions {
  double update_seconds = 10;         // between samples: the interval for rates and for checking alerts
  std::optional<int> port;            // of the server; 0: any free port; absent: no server
  std::string address = "127.0.0.1";  // that the server listens on
  std::string log_file;               // receives a JSON object per sample, one per line; empty: no log
  // Host names that the server accepts besides its address, localhost and those of CAPIBARA_MONITOR_HOSTS: requests for
  // other hosts are rejected.
  std::vector<std::string> hosts = {};
};

// When an alert is raised: the metric compares so with the threshold for this many seconds without interruption.
struct Alert {
  std::string metric;
  std::string condition = ">";  // <, <=, >, >=, == or !=
  double threshold = 0;
  std::function<void()> action;  // called once each time the alert is raised, by the monitor's thread
  double for_seconds = 0;
};

// Watches this process. Several monitors may run at once.
class Monitor {
 public:
  explicit Monitor(MonitorOptions options = {});
  // Stops.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Starts sampling, and serving if a port is given; raises RuntimeError if the port is taken.
  void start();
  // Stops sampling and serving; the last sample is written.
  void stop();
  // True while it samples.
  bool running() const;
  // Reports the end of a training step. The loss is read once it is ready; step never waits for it.
  void step(const std::optional<Array>& loss = std::nullopt, std::optional<int64_t> tokens = std::nullopt);
  // The current metrics; rates are measured since the sample before the last.
  Metrics metrics() const;
  // Adds an alert; raises ValueError that names the nearest metric if the name is unknown.
  void set_alert(Alert alert);
  // Descriptions of the alerts that are currently raised.
  std::vector<std::string> raised_alerts() const;
  // The port of the server; 0 if there is none.
  int port() const;
  // The address of the page, with the token of its button after '#'; empty if there is no server. Anyone who has it
  // may take profiles.
  std::string link() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The callback of the page's button: takes a profile of this many seconds and returns its location. The default is the
// profiler itself, which writes for xprof into $CAPIBARA_PROFILE_FOLDER (capibara-profiles); an empty hook removes the
// button.
using CaptureHook = std::function<std::string(double seconds)>;
// Sets the hook for all monitors of this process.
void set_capture_hook(CaptureHook hook);

// The metrics in Prometheus's text format.
std::string prometheus_text(const Metrics& metrics);

}  // namespace capibara
