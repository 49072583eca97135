// A thread that samples, checks alerts and writes the log; a server that shows the metrics.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include <capibara/profile.h>

#include "core/runtime/background.h"
#include "core/runtime/counters.h"
#include "core/runtime/warning.h"
#include "io/files/json.h"
#include "operate/monitor/capture.h"
#include "operate/monitor/dashboard.h"
#include "operate/monitor/metrics.h"
#include "operate/monitor/server.h"

namespace capibara {

namespace {

bool holds(const std::string& condition, double value, double threshold) {
  if (condition == "<") return value < threshold;
  if (condition == "<=") return value <= threshold;
  if (condition == ">") return value > threshold;
  if (condition == ">=") return value >= threshold;
  return condition == "==" ? value == threshold : value != threshold;
}

struct WatchedAlert {
  Alert alert;
  double holds_since = -1;  // seconds of the samples' clock; negative: the condition does not hold
  bool raised = false;
};

}  // namespace

struct Monitor::State {
  explicit State(MonitorOptions given) : options(std::move(given)) {}

  const MonitorOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool is_running = false, ending = false;
  uint64_t steps = 0, tokens = 0;                  // reported to `step`
  uint64_t trainer_steps = 0, trainer_tokens = 0;  // of the process, at the start
  std::optional<Array> pending_loss;
  std::optional<double> loss;
  ProcessSample first, before, last;
  std::vector<WatchedAlert> alerts;
  std::thread sampler;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<CaptureToken> token;  // exists while the server does
  std::FILE* log = nullptr;

  // With the mutex held: reads the pending loss if it is ready.
  void look_at_loss() {
    if (!pending_loss || !pending_loss->is_ready()) return;
    try {
      if (pending_loss->size() == 1) loss = pending_loss->item<double>();
    } catch (const Error&) {
      loss = std::nan("");  // its program failed; code that reads the loss itself gets the error
    }
    pending_loss.reset();
  }

  // With the mutex held. Steps are those reported to `step`, or those of the process's trainers since the start, the
  // larger of both: they only increase, and a program that reports the steps of its trainer counts them once.
  ProcessSample sample() const {
    const auto since = [](const std::atomic<uint64_t>& counter, uint64_t start) { return counter.load() - start; };
    return take_sample(std::max(steps, since(process_counters.training_steps, trainer_steps)),
                       std::max(tokens, since(process_counters.training_tokens, trainer_tokens)));
  }

  Metrics now() {
    std::unique_lock lock(mutex);
    look_at_loss();
    const ProcessSample current = sample(), from = before, begin = first;
    std::optional<double> known = loss;
    if (!known && process_counters.training_steps.load() > trainer_steps) known = process_counters.training_loss.load();
    lock.unlock();
    Metrics metrics = metrics_between(from, current);
    metrics["uptime_seconds"] = current.seconds - begin.seconds;
    if (known) metrics["loss"] = *known;
    return metrics;
  }

  void look_at_alerts(const Metrics& metrics) {
    std::vector<std::pair<std::string, std::function<void()>>> actions;
    {
      std::lock_guard lock(mutex);
      for (WatchedAlert& one : alerts) {
        const auto it = metrics.find(one.alert.metric);
        const bool now_holds = it != metrics.end() && holds(one.alert.condition, it->second, one.alert.threshold);
        if (!now_holds) {
          one.holds_since = -1;
          one.raised = false;
          continue;
        }
        if (one.holds_since < 0) one.holds_since = last.seconds;
        if (one.raised || last.seconds - one.holds_since < one.alert.for_seconds) continue;
        one.raised = true;
        actions.emplace_back(one.alert.metric, one.alert.action);
      }
    }
    for (const auto& [metric, action] : actions) {
      try {
        if (action) action();
      } catch (const std::exception& error) {
        try {
          warn(concat("monitor: the action of the alert on ", metric, " failed: ", error.what()), WarningKind::runtime);
        } catch (...) {  // warnings may be errors; training continues
        }
      }
    }
  }

  void sample_once() {
    {
      std::lock_guard lock(mutex);
      before = last;
      last = sample();
    }
    const Metrics metrics = now();
    look_at_alerts(metrics);
    if (log) {
      std::fprintf(log, "%s\n", metrics_json(metrics).c_str());
      std::fflush(log);
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, std::chrono::duration<double>(options.update_seconds), [&] { return ending; })) {
      lock.unlock();
      sample_once();
      lock.lock();
    }
  }

  std::vector<std::string> raised() const {
    std::lock_guard lock(mutex);
    std::vector<std::string> texts;
    for (const WatchedAlert& one : alerts) {
      if (one.raised) texts.push_back(concat(one.alert.metric, " ", one.alert.condition, " ", one.alert.threshold));
    }
    return texts;
  }

  void serve() {
    std::vector<std::string> hosts = options.hosts;
    if (const char* named = secure_getenv("CAPIBARA_MONITOR_HOSTS")) {
      std::stringstream list(named);
      for (std::string name; std::getline(list, name, ',');) hosts.push_back(name);
    }
    server = std::make_unique<HttpServer>(options.address, *options.port, HttpServerOptions{.hosts = std::move(hosts)});
    token = std::make_unique<CaptureToken>(server->port());
    server->start([this](const HttpCall& call) { return answer(call); });
  }

  HttpAnswer answer(const HttpCall& call) {
    const std::string &method = call.method, &path = call.path;
    if (path == "/capture") return capture(call, token->text());
    if (method != "GET" && method != "HEAD") return {405, "text/plain; charset=utf-8", "only GET\n"};
    if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(now())};
    if (path == "/") return {200, "text/html; charset=utf-8", dashboard_page};
    if (path != "/metrics.json") return {404, "text/plain; charset=utf-8", "there are /, /metrics and /metrics.json\n"};
    const Metrics metrics = now();
    Json::List rows, texts;
    for (const MetricRow& row : metric_table()) {
      const auto it = metrics.find(row.name);
      if (it == metrics.end()) continue;
      Json::Object members{{"name", row.name}, {"doc", row.doc}};
      members["value"] = std::isfinite(it->second) ? Json(it->second) : Json();
      rows.emplace_back(std::move(members));
    }
    for (std::string& text : raised()) texts.emplace_back(std::move(text));
    return {200, "application/json",
            Json(Json::Object{{"metrics", std::move(rows)}, {"alerts", std::move(texts)}, {"capture", can_capture()}})
                .dump()};
  }
};

Monitor::Monitor(MonitorOptions options) {
  if (!(options.update_seconds >= 0.001 && options.update_seconds <= 1e6)) {
    throw ValueError(
        concat("Monitor: update_seconds is a time from 0.001 to 1000000 seconds, got ", options.update_seconds));
  }
  if (options.port && (*options.port < 0 || *options.port > 65535))
    throw ValueError(concat("Monitor: a port is from 0 to 65535, got ", *options.port));
  state_ = std::make_unique<State>(std::move(options));
}

Monitor::~Monitor() { stop(); }

void Monitor::start() {
  if (running()) throw RuntimeError("monitor: it runs already");
  State& state = *state_;
  profile::peak_flops(RateType::float32);  // the most common type: measured before the first sample
  if (!state.options.log_file.empty()) {
    state.log = std::fopen(state.options.log_file.c_str(), "ae");
    if (!state.log)
      throw RuntimeError(
          concat("monitor: the log ", state.options.log_file, " cannot be opened: ", std::strerror(errno)));
  }
  state.trainer_steps = process_counters.training_steps.load();
  state.trainer_tokens = process_counters.training_tokens.load();
  state.first = state.before = state.last = state.sample();
  if (state.options.port) {
    const Waiting waiting;
    try {
      state.serve();
    } catch (...) {
      if (state.log) std::fclose(std::exchange(state.log, nullptr));
      throw;
    }
  }
  std::lock_guard lock(state.mutex);
  state.is_running = true;
  state.ending = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state.sampler = std::thread([&state] { state.work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Monitor::stop() {
  State& state = *state_;
  {
    std::lock_guard lock(state.mutex);
    if (!state.is_running) return;
    state.is_running = false;
    state.ending = true;
  }
  state.changed.notify_all();
  const Waiting waiting;
  state.sampler.join();
  state.server.reset();
  state.token.reset();
  state.sample_once();
  if (state.log) std::fclose(std::exchange(state.log, nullptr));
}

bool Monitor::running() const {
  std::lock_guard lock(state_->mutex);
  return state_->is_running;
}

void Monitor::step(const std::optional<Array>& loss, std::optional<int64_t> tokens) {
  if (tokens && *tokens < 0) throw ValueError(concat("monitor step: tokens is a number from 0, got ", *tokens));
  std::lock_guard lock(state_->mutex);
  ++state_->steps;
  state_->tokens += static_cast<uint64_t>(tokens.value_or(0));
  if (!loss) return;
  state_->look_at_loss();  // the previous one
  if (!state_->pending_loss || loss->is_ready()) state_->pending_loss = *loss;
}

Metrics Monitor::metrics() const { return state_->now(); }

void Monitor::set_alert(Alert alert) {
  const std::vector<MetricRow>& table = metric_table();
  if (std::none_of(table.begin(), table.end(), [&](const MetricRow& row) { return row.name == alert.metric; })) {
    throw ValueError(concat("set_alert: there is no metric '", alert.metric, "' (argument 'metric'); did you mean '",
                            nearest_metric(alert.metric), "'?"));
  }
  static constexpr std::string_view conditions[] = {"<", "<=", ">", ">=", "==", "!="};
  if (std::find(std::begin(conditions), std::end(conditions), alert.condition) == std::end(conditions)) {
    throw ValueError(concat("set_alert: a condition is <, <=, >, >=, == or !=, got '", alert.condition, "'"));
  }
  if (!(alert.for_seconds >= 0))
    throw ValueError(concat("set_alert: for_seconds is a time from 0, got ", alert.for_seconds));
  std::lock_guard lock(state_->mutex);
  state_->alerts.push_back({std::move(alert)});
}

std::vector<std::string> Monitor::raised_alerts() const { return state_->raised(); }

int Monitor::port() const { return state_->server ? state_->server->port() : 0; }

std::string Monitor::link() const {
  if (!state_->server) return "";
  std::string host = state_->server->address();
  if (host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return concat("http://", host, ":", state_->server->port(), "/#", state_->token->text());
}

}  // namespace capibara
