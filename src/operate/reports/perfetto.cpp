// An XSpace as Chrome trace events, which Perfetto reads: one process per plane, one thread per line.
#include <capibara/profile_formats.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <capibara/error.h>

#include "io/files/json.h"
#include "operate/reports/xspace.h"

namespace capibara::profile {

namespace {

// Microseconds with full picosecond precision.
std::string microseconds(int64_t picoseconds) {
  std::array<char, 40> text{};
  const bool negative = picoseconds < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(picoseconds) : static_cast<uint64_t>(picoseconds);
  std::snprintf(text.data(), text.size(), "%s%llu.%06llu", negative ? "-" : "",
                static_cast<unsigned long long>(size / 1000000), static_cast<unsigned long long>(size % 1000000));
  return text.data();
}

// Saturates, since files may contain any number.
int64_t added(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}
int64_t in_picoseconds(int64_t nanoseconds) {
  int64_t result = 0;
  if (!__builtin_mul_overflow(nanoseconds, int64_t{1000}, &result)) return result;
  return nanoseconds < 0 ? INT64_MIN : INT64_MAX;
}

Json shown_value(const XPlane& plane, const XStat& stat) {
  if (const auto* real = std::get_if<double>(&stat.value))
    return std::isfinite(*real) ? Json(*real) : Json(std::to_string(*real));
  if (const auto* natural = std::get_if<uint64_t>(&stat.value)) return Json(std::to_string(*natural));
  if (const auto* whole = std::get_if<int64_t>(&stat.value)) return Json(*whole);
  if (const auto* text = std::get_if<std::string>(&stat.value)) return Json(*text);
  if (const auto* reference = std::get_if<XStat::Reference>(&stat.value)) {
    const auto it = plane.stat_metadata.find(static_cast<int64_t>(reference->metadata_id));
    return Json(it == plane.stat_metadata.end() ? std::string() : it->second);
  }
  return Json(std::string("..."));  // opaque bytes
}

void add_arguments(const XPlane& plane, const std::vector<XStat>& stats, Json::Object& arguments) {
  for (const XStat& stat : stats) {
    const std::string* name = plane.stat_name(stat);
    if (name != nullptr && !std::holds_alternative<XStat::Bytes>(stat.value))
      arguments[*name] = shown_value(plane, stat);
  }
}

std::string name_record(const std::string& what, std::size_t process, const int64_t* thread, const std::string& name) {
  Json::Object record = {
      {"ph", "M"}, {"name", what}, {"pid", static_cast<int64_t>(process)}, {"args", Json::Object{{"name", name}}}};
  if (thread != nullptr) record["tid"] = *thread;
  return Json(std::move(record)).dump();
}

}  // namespace

std::string to_trace_json(std::string_view xspace) {
  const XSpace space = read_xspace(xspace);
  std::string out = R"({"displayTimeUnit": "ns", "traceEvents": [)";
  bool first = true;
  // Names occur once in the XSpace but in every event here.
  const std::size_t max_bytes = (std::size_t{1} << 26) + 1024 * xspace.size();
  auto append = [&](const std::string& record) {
    if (record.size() > max_bytes - out.size()) {
      throw ValueError(concat("profile: the trace of an XSpace of ", xspace.size(), " bytes would have more than ",
                              max_bytes, "; its names or statistics are too long"));
    }
    out += first ? "\n" : ",\n";
    out += record;
    first = false;
  };
  // Times are relative to the first line: in a double, microseconds since 1970 would lose the nanoseconds.
  int64_t origin = INT64_MAX;
  for (const XPlane& plane : space.planes) {
    for (const XLine& line : plane.lines) {
      if (!line.events.empty()) origin = std::min(origin, line.timestamp_ns);
    }
  }
  for (std::size_t p = 0; p < space.planes.size(); ++p) {
    const XPlane& plane = space.planes[p];
    if (plane.lines.empty()) continue;
    append(name_record("process_name", p + 1, nullptr, plane.name));
    for (std::size_t l = 0; l < plane.lines.size(); ++l) {
      const XLine& line = plane.lines[l];
      const auto thread = static_cast<int64_t>(l + 1);
      append(name_record("thread_name", p + 1, &thread, line.display_name.empty() ? line.name : line.display_name));
      const int64_t base = in_picoseconds(added(line.timestamp_ns, origin == INT64_MIN ? INT64_MAX : -origin));
      const std::string place = concat(R"({"ph": "X", "pid": )", p + 1, R"(, "tid": )", l + 1, R"(, "ts": )");
      for (const XEvent& event : line.events) {
        Json::Object arguments;
        std::string name(plane.event_name(event));
        if (const auto it = plane.event_metadata.find(event.metadata_id); it != plane.event_metadata.end()) {
          add_arguments(plane, it->second.stats, arguments);
          if (!it->second.display_name.empty()) {
            arguments["long_name"] = name;
            name = it->second.display_name;
          }
        }
        add_arguments(plane, event.stats, arguments);
        std::string record = place + microseconds(added(base, event.offset_ps)) + R"(, "dur": )" +
                             microseconds(event.duration_ps) + R"(, "name": )" + Json(std::move(name)).dump();
        if (!arguments.empty()) record += R"(, "args": )" + Json(std::move(arguments)).dump();
        append(record + "}");
      }
    }
  }
  return out + "\n]}\n";
}

}  // namespace capibara::profile
