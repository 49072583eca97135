// A profile as a table: where the time was spent, and the limits of the machine.
#include <capibara/error.h>
#include <capibara/profile.h>

#include <algorithm>
#include <cstdio>

#include "core/runtime/arena.h"
#include "io/files/json.h"
#include "operate/reports/text.h"

namespace capibara::profile {

namespace {

constexpr double overhead_roofline = 0.1;  // below it neither operations nor bytes explain the time

void rate(Row& row, const Peaks& peaks, RateType type) {
  const auto nanoseconds = static_cast<double>(std::max<int64_t>(row.nanoseconds, 1));
  row.gflops_per_second = row.flops / nanoseconds;
  row.gbytes_per_second = row.bytes / nanoseconds;
  row.bound = "overhead";
  const double peak = peaks.flops_of(type);
  if ((peak <= 0 && row.flops > 0) || peaks.bytes_per_second <= 0) return;
  const double computing = row.flops > 0 ? row.flops / peak * 1e9 : 0,
               moving = row.bytes / peaks.bytes_per_second * 1e9;
  row.roofline = std::max(computing, moving) / nanoseconds;
  if (row.roofline >= overhead_roofline) row.bound = computing > moving ? "compute" : "memory";
}

using Interval = std::pair<int64_t, int64_t>;

// The time covered by possibly overlapping intervals.
int64_t covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t sum = 0, end = 0;
  for (const auto& [first, last] : intervals) {
    sum += std::max<int64_t>(0, last - std::max(first, end));
    end = std::max(end, last);
  }
  return sum;
}

// Times that the rows do not show: the compiler, and the host (such as Python) while nothing else runs.
void add_host_times(const Profile& profile, Summary& summary) {
  std::vector<Interval> compiling, working;
  for (const Event& event : profile.events) {
    const Interval time{std::max<int64_t>(event.start, 0), std::min(event.start + event.duration, profile.duration)};
    if (event.kind == EventKind::compile) compiling.push_back(time);
    if (event.kind != EventKind::span && event.kind != EventKind::step && event.kind != EventKind::wait)
      working.push_back(time);
  }
  summary.compile_nanoseconds = covered(std::move(compiling));
  summary.host_nanoseconds = profile.duration - covered(std::move(working));
}

}  // namespace

std::string source_of(const Slot& slot) { return slot.file.empty() ? slot.scope : concat(slot.file, ":", slot.line); }

std::string readable_time(double nanoseconds) {
  static constexpr const char* units[] = {"ns", "us", "ms", "s"};
  std::size_t unit = 0;
  for (; nanoseconds >= 1000 && unit + 1 < std::size(units); ++unit) nanoseconds /= 1000;
  return formatted("%.3g %s", nanoseconds, units[unit]);
}

std::string tail_of(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : concat("...", text.substr(text.size() - (width - 3)));
}

Summary summarise(const Profile& profile) {
  Summary summary;
  summary.duration = profile.duration;
  summary.peaks = profile.peaks;
  for (const Slot& slot : profile.slots) {
    if (slot.calls == 0) continue;
    Row row;
    row.what = slot.name;
    row.kind = slot.kind;
    row.text = slot.text;
    row.source = source_of(slot);
    if (slot.program >= 0) row.program = profile.programs[static_cast<std::size_t>(slot.program)].name;
    row.calls = slot.calls;
    row.nanoseconds = slot.nanoseconds;
    row.flops = slot.flops * static_cast<double>(slot.calls);
    row.bytes = (slot.bytes_read + slot.bytes_written) * static_cast<double>(slot.calls);
    rate(row, profile.peaks, slot.rate_type);
    summary.nanoseconds += row.nanoseconds;
    summary.rows.push_back(std::move(row));
  }
  for (Row& row : summary.rows) {
    row.share = static_cast<double>(row.nanoseconds) / static_cast<double>(std::max<int64_t>(summary.nanoseconds, 1));
  }
  std::stable_sort(summary.rows.begin(), summary.rows.end(),
                   [](const Row& a, const Row& b) { return a.nanoseconds > b.nanoseconds; });
  add_host_times(profile, summary);
  summary.peak_blocks = profile.peak_blocks;
  for (const MemoryBlock& block : profile.peak_blocks) summary.peak_bytes += block.bytes;
  return summary;
}

std::string to_string(const Summary& summary, std::size_t max_rows) {
  std::string text = concat(readable_time(static_cast<double>(summary.nanoseconds)), " in ", summary.rows.size(),
                            " sites, of ", readable_time(static_cast<double>(summary.duration)), " recorded");
  if (summary.peaks.flops_per_second > 0) {
    text += formatted("; this machine: %.1f GFLOP/s, %.1f GB/s", summary.peaks.flops_per_second / 1e9,
                      summary.peaks.bytes_per_second / 1e9);
  }
  text += concat("\ncompiling: ", readable_time(static_cast<double>(summary.compile_nanoseconds)),
                 "; neither programs nor the compiler: ", readable_time(static_cast<double>(summary.host_nanoseconds)),
                 "\n\n");
  text += formatted("%10s %6s %8s %9s %8s %9s %-9s %-34s %s\n", "time", "share", "calls", "GFLOP/s", "GB/s", "roofline",
                    "bound by", "what", "source");
  std::size_t shown = 0;
  for (const Row& row : summary.rows) {
    if (shown++ == max_rows) {
      text += concat("... and ", summary.rows.size() - max_rows, " more\n");
      break;
    }
    const std::string what = row.program.empty() ? row.what : concat(row.program, ": ", row.what);
    text +=
        formatted("%10s %5.1f%% %8lld %9.2f %8.2f %8.0f%% %-9s %-34s %s\n",
                  readable_time(static_cast<double>(row.nanoseconds)).c_str(), 100 * row.share,
                  static_cast<long long>(row.calls), row.gflops_per_second, row.gbytes_per_second, 100 * row.roofline,
                  row.bound.c_str(), tail_of(what, 34).c_str(), tail_of(row.source, 60).c_str());
  }
  if (summary.peak_blocks.empty()) return text;
  text += concat("\nLargest blocks when most memory was in use (",
                 arena::readable_bytes(static_cast<double>(summary.peak_bytes)), " in ", summary.peak_blocks.size(),
                 " blocks):\n");
  for (std::size_t i = 0; i < std::min(summary.peak_blocks.size(), max_rows / 2); ++i) {
    const MemoryBlock& block = summary.peak_blocks[i];
    text +=
        formatted("%12s  %s\n", arena::readable_bytes(static_cast<double>(block.bytes)).c_str(), block.purpose.c_str());
  }
  return text;
}

std::string to_json(const Summary& summary) {
  Json::List rows, blocks;
  for (const Row& row : summary.rows) {
    rows.push_back(Json::Object{{"what", row.what},
                                {"kind", row.kind},
                                {"program", row.program},
                                {"source", row.source},
                                {"text", row.text},
                                {"calls", row.calls},
                                {"nanoseconds", row.nanoseconds},
                                {"share", row.share},
                                {"flops", row.flops},
                                {"bytes", row.bytes},
                                {"gflops_per_second", row.gflops_per_second},
                                {"gbytes_per_second", row.gbytes_per_second},
                                {"roofline", row.roofline},
                                {"bound", row.bound}});
  }
  for (const MemoryBlock& block : summary.peak_blocks)
    blocks.push_back(Json::Object{{"bytes", block.bytes}, {"purpose", block.purpose}});
  return Json(Json::Object{{"rows", std::move(rows)},
                           {"duration", summary.duration},
                           {"nanoseconds", summary.nanoseconds},
                           {"compile_nanoseconds", summary.compile_nanoseconds},
                           {"host_nanoseconds", summary.host_nanoseconds},
                           {"peak_flops_per_second", summary.peaks.flops_per_second},
                           {"peak_bytes_per_second", summary.peaks.bytes_per_second},
                           {"peak_bytes", summary.peak_bytes},
                           {"peak_blocks", std::move(blocks)}})
      .dump();
}

}  // namespace capibara::profile
