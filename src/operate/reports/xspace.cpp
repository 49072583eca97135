// One function per message of XSpace, in each direction.
#include "operate/reports/xspace.h"

#include <capibara/error.h>

#include <algorithm>

#include "io/files/protobuf.h"

namespace capibara::profile {

namespace {

// proto3 rejects texts that are not UTF-8, as does jax.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = first < 0x80 ? 0 : first < 0xC2 ? -1 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : -1;
    if (more < 0 || text.size() - i <= static_cast<std::size_t>(more)) return false;
    uint32_t point = more == 0 ? first : first & (0x3Fu >> more);
    for (int k = 1; k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if ((byte & 0xC0) != 0x80) return false;
      point = point << 6 | (byte & 0x3F);
    }
    if ((more == 2 && point < 0x800) || (more == 3 && (point < 0x10000 || point > 0x10FFFF)) ||
        (point >= 0xD800 && point < 0xE000)) {
      return false;
    }
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

[[noreturn]] void refuse(const char* message, const char* problem) {
  throw ValueError(concat("profile: the bytes are no XSpace: ", message, " ", problem,
                          "; expected the content of a file that ends in .xplane.pb"));
}

std::string read_text(const ProtobufReader& reader, const char* message) {
  if (!is_utf8(reader.text())) refuse(message, "holds text that is not UTF-8");
  return std::string(reader.text());
}

void check_end(const ProtobufReader& reader, const char* message) {
  if (reader.failed()) refuse(message, "ends too early or is malformed");
}

XStat read_stat(std::string_view bytes) {
  XStat stat;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_integer(1)) {
      stat.metadata_id = reader.signed_integer();
    } else if (reader.is_real(2)) {
      stat.value = reader.real();
    } else if (reader.is_integer(3)) {
      stat.value = reader.integer();
    } else if (reader.is_integer(4)) {
      stat.value = reader.signed_integer();
    } else if (reader.is_text(5)) {
      stat.value = read_text(reader, "XStat");
    } else if (reader.is_text(6)) {
      stat.value = XStat::Bytes{std::string(reader.text())};
    } else if (reader.is_integer(7)) {
      stat.value = XStat::Reference{reader.integer()};
    }
  }
  check_end(reader, "XStat");
  return stat;
}

XEvent read_event(std::string_view bytes) {
  XEvent event;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_integer(1)) {
      event.metadata_id = reader.signed_integer();
    } else if (reader.is_integer(2)) {
      event.offset_ps = reader.signed_integer();
    } else if (reader.is_integer(3)) {
      event.duration_ps = reader.signed_integer();
    } else if (reader.is_text(4)) {
      event.stats.push_back(read_stat(reader.text()));
    } else if (reader.is_integer(5)) {
      event.offset_ps = 0;  // the number of occurrences, which replaces the offset
    }
  }
  check_end(reader, "XEvent");
  return event;
}

XLine read_line(std::string_view bytes) {
  XLine line;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_integer(1)) {
      line.id = reader.signed_integer();
    } else if (reader.is_text(2)) {
      line.name = read_text(reader, "XLine");
    } else if (reader.is_integer(3)) {
      line.timestamp_ns = reader.signed_integer();
    } else if (reader.is_text(4)) {
      line.events.push_back(read_event(reader.text()));
    } else if (reader.is_text(11)) {
      line.display_name = read_text(reader, "XLine");
    }
  }
  check_end(reader, "XLine");
  return line;
}

void read_event_metadata(std::string_view bytes, XEventMetadata& metadata) {
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_text(2)) {
      metadata.name = read_text(reader, "XEventMetadata");
    } else if (reader.is_text(4)) {
      metadata.display_name = read_text(reader, "XEventMetadata");
    } else if (reader.is_text(5)) {
      metadata.stats.push_back(read_stat(reader.text()));
    }
  }
  check_end(reader, "XEventMetadata");
}

void read_stat_metadata(std::string_view bytes, std::string& name) {
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_text(2)) {
      name = read_text(reader, "XStatMetadata");
    } else if (reader.is_text(3)) {
      read_text(reader, "XStatMetadata");  // its description
    }
  }
  check_end(reader, "XStatMetadata");
}

// An entry of a map: {1: key, 2: value}. For a repeated key the last value applies.
template <class Value, class Read>
void read_entry(std::string_view bytes, std::unordered_map<int64_t, Value>& map, Read read) {
  int64_t key = 0;
  Value value;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_integer(1)) {
      key = reader.signed_integer();
    } else if (reader.is_text(2)) {
      read(reader.text(), value);
    }
  }
  check_end(reader, "an entry of metadata");
  map.insert_or_assign(key, std::move(value));
}

XPlane read_plane(std::string_view bytes) {
  XPlane plane;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_integer(1)) {
      plane.id = reader.signed_integer();
    } else if (reader.is_text(2)) {
      plane.name = read_text(reader, "XPlane");
    } else if (reader.is_text(3)) {
      plane.lines.push_back(read_line(reader.text()));
    } else if (reader.is_text(4)) {
      read_entry(reader.text(), plane.event_metadata, read_event_metadata);
    } else if (reader.is_text(5)) {
      read_entry(reader.text(), plane.stat_metadata, read_stat_metadata);
    } else if (reader.is_text(6)) {
      plane.stats.push_back(read_stat(reader.text()));
    }
  }
  check_end(reader, "XPlane");
  return plane;
}

// ---- writing ------------------------------------------------------------------------------------------------------

ProtobufWriter stat_message(const XStat& stat) {
  ProtobufWriter out;
  out.integer(1, static_cast<uint64_t>(stat.metadata_id));
  if (const auto* real = std::get_if<double>(&stat.value)) out.real(2, *real);
  if (const auto* natural = std::get_if<uint64_t>(&stat.value)) out.integer(3, *natural);
  if (const auto* whole = std::get_if<int64_t>(&stat.value)) out.integer(4, static_cast<uint64_t>(*whole));
  if (const auto* text = std::get_if<std::string>(&stat.value)) out.text(5, *text);
  if (const auto* bytes = std::get_if<XStat::Bytes>(&stat.value)) out.text(6, bytes->bytes);
  if (const auto* reference = std::get_if<XStat::Reference>(&stat.value)) out.integer(7, reference->metadata_id);
  return out;
}

ProtobufWriter line_message(const XLine& line) {
  ProtobufWriter out;
  out.integer(1, static_cast<uint64_t>(line.id));
  out.text(2, line.name);
  out.integer(3, static_cast<uint64_t>(line.timestamp_ns));
  for (const XEvent& event : line.events) {
    ProtobufWriter part;
    part.integer(1, static_cast<uint64_t>(event.metadata_id));
    part.integer(2, static_cast<uint64_t>(event.offset_ps));
    part.integer(3, static_cast<uint64_t>(event.duration_ps));
    for (const XStat& stat : event.stats) part.message(4, stat_message(stat));
    out.message(4, part);
  }
  if (!line.display_name.empty()) out.text(11, line.display_name);
  return out;
}

// Keys in ascending order, so that equal spaces give equal files.
template <class Value>
std::vector<int64_t> sorted_keys(const std::unordered_map<int64_t, Value>& map) {
  std::vector<int64_t> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

ProtobufWriter plane_message(const XPlane& plane) {
  ProtobufWriter out;
  out.integer(1, static_cast<uint64_t>(plane.id));
  out.text(2, plane.name);
  for (const XLine& line : plane.lines) out.message(3, line_message(line));
  for (const int64_t key : sorted_keys(plane.event_metadata)) {
    const XEventMetadata& metadata = plane.event_metadata.at(key);
    ProtobufWriter value, entry;
    value.integer(1, static_cast<uint64_t>(key));
    value.text(2, metadata.name);
    if (!metadata.display_name.empty()) value.text(4, metadata.display_name);
    for (const XStat& stat : metadata.stats) value.message(5, stat_message(stat));
    entry.integer(1, static_cast<uint64_t>(key));
    entry.message(2, value);
    out.message(4, entry);
  }
  for (const int64_t key : sorted_keys(plane.stat_metadata)) {
    ProtobufWriter value, entry;
    value.integer(1, static_cast<uint64_t>(key));
    value.text(2, plane.stat_metadata.at(key));
    entry.integer(1, static_cast<uint64_t>(key));
    entry.message(2, value);
    out.message(5, entry);
  }
  for (const XStat& stat : plane.stats) out.message(6, stat_message(stat));
  return out;
}

}  // namespace

std::string_view XPlane::event_name(const XEvent& event) const {
  const auto it = event_metadata.find(event.metadata_id);
  return it == event_metadata.end() ? std::string_view() : std::string_view(it->second.name);
}

const std::string* XPlane::stat_name(const XStat& stat) const {
  const auto it = stat_metadata.find(stat.metadata_id);
  return it == stat_metadata.end() ? nullptr : &it->second;
}

XSpace read_xspace(std::string_view bytes) {
  XSpace space;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_text(1)) {
      space.planes.push_back(read_plane(reader.text()));
    } else if (reader.is_text(2)) {
      space.errors.push_back(read_text(reader, "XSpace"));
    } else if (reader.is_text(3)) {
      space.warnings.push_back(read_text(reader, "XSpace"));
    } else if (reader.is_text(4)) {
      space.hostnames.push_back(read_text(reader, "XSpace"));
    }
  }
  check_end(reader, "XSpace");
  return space;
}

std::string write_xspace(const XSpace& space) {
  ProtobufWriter out;
  for (const XPlane& plane : space.planes) out.message(1, plane_message(plane));
  for (const std::string& text : space.errors) out.text(2, text);
  for (const std::string& text : space.warnings) out.text(3, text);
  for (const std::string& text : space.hostnames) out.text(4, text);
  return out.take();
}

}  // namespace capibara::profile
