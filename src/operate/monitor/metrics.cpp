// Metrics from counters of the process, the kernel and the arena.
#include "operate/monitor/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <capibara/profile.h>

#include "backends/backend.h"
#include "core/runtime/arena.h"
#include "core/runtime/counters.h"
#include "core/runtime/thread_pool.h"
#include "io/files/json.h"

namespace capibara {

namespace {

constexpr double giga = 1e9;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double resident_bytes() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// On the default device: the backend's statistics, else the arena's.
std::pair<double, double> device_memory() {
  const arena::Usage usage = arena::usage();
  double live = static_cast<double>(usage.in_use), peak = static_cast<double>(usage.peak_in_use);
  if (const std::optional<MemoryStats> stats = default_backend().memory_stats(0)) {
    live = static_cast<double>(stats->bytes_in_use);
    peak = static_cast<double>(stats->peak_bytes_in_use.value_or(stats->bytes_in_use));
  }
  return {live, std::max(live, peak)};
}

double count(const std::atomic<uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      corner = above;
    }
  }
  return row[b.size()];
}

}  // namespace

const std::vector<MetricRow>& metric_table() {
  static const std::vector<MetricRow> table = {
      {"steps", "Steps of training", true},
      {"steps_per_second", "Steps per second", false},
      {"tokens", "Tokens", true},
      {"tokens_per_second", "Tokens per second", false},
      {"loss", "The newest loss that is ready", false},
      {"current_tflops", "Operations per second, in units of 10^12", false},
      {"utilization", "Share of the rate that matmuls of the same types reach on this device", false},
      {"duty_cycle", "Share of the processors that this process keeps busy", false},
      {"memory_usage_gb", "Memory of arrays on the device, in units of 10^9 bytes", false},
      {"memory_peak_gb", "The most of it so far", false},
      {"resident_gb", "Memory of the process, in units of 10^9 bytes", false},
      {"executions", "Calls of jitted programs", true},
      {"compilations", "Compilations", true},
      {"compile_seconds", "Time spent compiling", true},
      {"cache_hits", "Calls of jitted programs that found them compiled", true},
      {"queue_depth", "Programs that are queued or running in the background", false},
      {"checkpoints", "Steps saved", true},
      {"checkpoint_gb", "Data in them, in units of 10^9 bytes", true},
      {"checkpoint_seconds", "Time spent saving", true},
      {"checkpoint_failures", "Saves that failed", true},
      {"checkpoint_read_gb", "Data read from checkpoints, in units of 10^9 bytes", true},
      {"uptime_seconds", "Time since the monitor was started", true},
  };
  return table;
}

namespace {

// Absent until something has been counted: a zero would mean that the device is idle.
void add_rates(const ProcessSample& before, const ProcessSample& now, double elapsed, Metrics& metrics) {
  double flops = 0, share = 0;
  bool counted = false, known = true;
  for (std::size_t i = 0; i < rate_type_count; ++i) {
    counted = counted || now.flops[i] > 0;
    if (now.flops[i] == before.flops[i]) continue;
    const double rate = static_cast<double>(now.flops[i] - before.flops[i]) / elapsed;
    const double peak = profile::peak_flops(static_cast<RateType>(i));
    flops += rate;
    if (peak > 0)
      share += rate / peak;
    else
      known = false;
  }
  if (!counted) return;
  metrics["current_tflops"] = flops / 1e12;
  if (known) metrics["utilization"] = share;
}

}  // namespace

ProcessSample take_sample(uint64_t steps, uint64_t tokens) {
  ProcessSample sample;
  sample.seconds = now_seconds();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  sample.processor_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  sample.steps = steps;
  sample.tokens = tokens;
  sample.flops = counted_flops();
  return sample;
}

Metrics metrics_between(const ProcessSample& before, const ProcessSample& now) {
  const double elapsed = std::max(now.seconds - before.seconds, 1e-6);
  auto rate = [&](uint64_t from, uint64_t to) { return static_cast<double>(to - from) / elapsed; };
  const auto [live, peak] = device_memory();
  const double executions = count(process_counters.executions), compilations = count(process_counters.compilations);
  Metrics metrics = {{"duty_cycle", (now.processor_seconds - before.processor_seconds) / elapsed / thread_count()},
                     {"memory_usage_gb", live / giga},
                     {"memory_peak_gb", peak / giga},
                     {"resident_gb", resident_bytes() / giga},
                     {"executions", executions},
                     {"compilations", compilations},
                     {"compile_seconds", count(process_counters.compile_nanoseconds) / giga},
                     {"cache_hits", std::max(0.0, executions - compilations)},
                     {"queue_depth", static_cast<double>(background_depth())},
                     {"checkpoints", count(process_counters.checkpoints)},
                     {"checkpoint_gb", count(process_counters.checkpoint_bytes) / giga},
                     {"checkpoint_seconds", count(process_counters.checkpoint_nanoseconds) / giga},
                     {"checkpoint_failures", count(process_counters.checkpoint_failures)},
                     {"checkpoint_read_gb", count(process_counters.checkpoint_read_bytes) / giga}};
  add_rates(before, now, elapsed, metrics);
  // Absent until a step is reported: a zero would mean that training is stalled.
  if (now.steps > 0) {
    metrics["steps"] = static_cast<double>(now.steps);
    metrics["steps_per_second"] = rate(before.steps, now.steps);
  }
  if (now.tokens > 0) {
    metrics["tokens"] = static_cast<double>(now.tokens);
    metrics["tokens_per_second"] = rate(before.tokens, now.tokens);
  }
  return metrics;
}

std::string metrics_json(const Metrics& metrics) {
  Json::Object members;
  for (const auto& [name, value] : metrics) members[name] = value;
  return Json(std::move(members)).dump();
}

// Prometheus expects base units: bytes.
std::string prometheus_text(const Metrics& metrics) {
  constexpr std::string_view in_gigabytes = "_gb", doc_unit = ", in units of 10^9 bytes";
  std::string text;
  for (const MetricRow& row : metric_table()) {
    const auto it = metrics.find(row.name);
    if (it == metrics.end()) continue;
    std::string name = concat("capibara_", row.name), doc = row.doc;
    double value = it->second;
    if (name.ends_with(in_gigabytes)) {
      name.replace(name.size() - in_gigabytes.size(), in_gigabytes.size(), "_bytes");
      value = std::round(value * giga);
    }
    if (doc.ends_with(doc_unit)) doc.resize(doc.size() - doc_unit.size());
    if (row.counter) name += "_total";
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    text += concat("# HELP ", name, " ", doc, ".\n# TYPE ", name, row.counter ? " counter\n" : " gauge\n", name, " ",
                   digits, "\n");
  }
  return text;
}

std::string nearest_metric(const std::string& name) {
  const std::vector<MetricRow>& table = metric_table();
  return std::min_element(table.begin(), table.end(),
                          [&](const MetricRow& a, const MetricRow& b) {
                            return edit_distance(a.name, name) < edit_distance(b.name, name);
                          })
      ->name;
}

}  // namespace capibara
