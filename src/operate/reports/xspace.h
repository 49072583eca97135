// XSpace, the message of .xplane.pb files: planes of lines of events with named values, as xprof and jax.profiler read
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace capibara::profile {

// A named value; the name is that of the stat metadata under `metadata_id`.
struct XStat {
  struct Bytes {
    std::string bytes;
    friend bool operator==(const Bytes&, const Bytes&) = default;
  };
  struct Reference {  // to the name of stat metadata
    uint64_t metadata_id;
    friend bool operator==(const Reference&, const Reference&) = default;
  };
  using Value = std::variant<std::monostate, double, uint64_t, int64_t, std::string, Bytes, Reference>;

  int64_t metadata_id = 0;
  Value value;
  friend bool operator==(const XStat&, const XStat&) = default;
};

struct XEvent {
  int64_t metadata_id = 0;
  int64_t offset_ps = 0, duration_ps = 0;  // from the timestamp of the line
  std::vector<XStat> stats;
};

struct XLine {
  int64_t id = 0;
  std::string name, display_name;
  int64_t timestamp_ns = 0;
  std::vector<XEvent> events;
};

struct XEventMetadata {
  std::string name, display_name;
  std::vector<XStat> stats;
};

struct XPlane {
  int64_t id = 0;
  std::string name;
  std::vector<XLine> lines;
  std::unordered_map<int64_t, XEventMetadata> event_metadata;
  std::unordered_map<int64_t, std::string> stat_metadata;  // names
  std::vector<XStat> stats;

  // The name of an event; empty if the plane does not have it.
  std::string_view event_name(const XEvent& event) const;
  // The name of a stat; null if the plane does not have it.
  const std::string* stat_name(const XStat& stat) const;
};

struct XSpace {
  std::vector<XPlane> planes;
  std::vector<std::string> errors, warnings, hostnames;
};

// Parses a serialized XSpace; raises ValueError if the bytes are not one. Unknown fields are skipped.
XSpace read_xspace(std::string_view bytes);
// Serializes it; parsing the result gives the same.
std::string write_xspace(const XSpace& space);

}  // namespace capibara::profile
