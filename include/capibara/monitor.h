// The monitor: what a training does, sampled while it runs, for programs, Prometheus, a log and a page in the browser.
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

// A metric: its name, its sentence, and whether it only grows.
struct MetricRow {
  const char* name;
  const char* doc;
  bool counter;
};
// All metrics in the order in which they are shown.
const std::vector<MetricRow>& metric_table();

// The values of metrics by name; without those that are not known yet, such as the loss.
using Metrics = std::map<std::string, double>;

// How a monitor samples and who may read it.
struct MonitorOptions {
  double update_seconds = 10;         // between samples: what rates are taken over, and when alerts are looked at
  std::optional<int> port;            // of the server; 0: any that is free; none where empty
  std::string address = "127.0.0.1";  // that the server listens on
  std::string log_file;               // gets a JSON object per sample, one per line; none where empty
  // Names that the server answers to besides its address, localhost and those of CAPIBARA_MONITOR_HOSTS: requests for
  // others are refused.
  std::vector<std::string> hosts = {};
};

// When an alert is raised: the metric compared with the threshold, for so many seconds without a break.
struct Alert {
  std::string metric;
  std::string condition = ">";  // <, <=, >, >=, == or !=
  double threshold = 0;
  std::function<void()> action;  // called once each time the alert is raised, by the monitor's thread
  double for_seconds = 0;
};

// Watches this process. Several may watch at once.
class Monitor {
 public:
  explicit Monitor(MonitorOptions options = {});
  // Stops.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Begins to sample, and to serve where a port is given; raises RuntimeError where the port is taken.
  void start();
  // Ends sampling and serving; the last sample is written.
  void stop();
  // Whether it samples.
  bool running() const;
  // Tells that a step of training has ended. The loss is read when it is ready, never waited for.
  void step(const std::optional<Array>& loss = std::nullopt, std::optional<int64_t> tokens = std::nullopt);
  // The metrics now; rates are those since the sample before the last.
  Metrics metrics() const;
  // Adds an alert; raises ValueError that names the nearest metric where there is none of that name.
  void set_alert(Alert alert);
  // The alerts that are raised now, in words.
  std::vector<std::string> raised_alerts() const;
  // The port of the server; 0 where there is none.
  int port() const;
  // The address of the page with the token of its button behind '#'; empty where there is no server. Whoever knows it
  // may take profiles.
  std::string link() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the page's button calls: takes a profile of so many seconds and says where it is. Until a hook is set, it is the
// profiler itself, which writes for xprof into $CAPIBARA_PROFILE_FOLDER (capibara-profiles); an empty hook removes the
// button.
using CaptureHook = std::function<std::string(double seconds)>;
// Sets the hook of all monitors of this process.
void set_capture_hook(CaptureHook hook);

// The metrics as Prometheus reads them.
std::string prometheus_text(const Metrics& metrics);

}  // namespace capibara
