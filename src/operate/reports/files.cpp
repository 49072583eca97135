// Profile files: JSON, with events and samples as lists of their fields in the order of the header.
#include <capibara/error.h>
#include <capibara/profile.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "io/files/json.h"

namespace capibara::profile {

namespace {

constexpr const char* format_name = "capibara profile 1";

Json number(uint64_t value) { return Json(std::to_string(value)); }

Json pairs(const std::vector<std::pair<std::string, std::string>>& arguments) {
  Json::List list;
  for (const auto& [name, value] : arguments) list.push_back(Json::List{name, value});
  return list;
}

Json event_json(const Event& event) {
  return Json::List{static_cast<int>(event.kind),
                    event.thread,
                    event.start,
                    event.duration,
                    static_cast<int64_t>(event.slot),
                    static_cast<int64_t>(event.program),
                    event.execution,
                    event.occurrences,
                    event.step,
                    event.name,
                    pairs(event.arguments)};
}

// For types with known peaks other than float32.
Json peaks_json(const Peaks& peaks) {
  Json::Object known;
  for (std::size_t type = 0; type < rate_type_count; ++type) {
    if (peaks.by_type[type] > 0)
      known[std::string(dtype_name(element_type(static_cast<RateType>(type))))] = peaks.by_type[type];
  }
  return known;
}

Json slot_json(const Slot& slot) {
  Json::List equations(slot.equations.begin(), slot.equations.end());
  return Json::Object{{"name", slot.name},
                      {"kind", slot.kind},
                      {"text", slot.text},
                      {"program", static_cast<int64_t>(slot.program)},
                      {"equations", std::move(equations)},
                      {"file", slot.file},
                      {"line", static_cast<int64_t>(slot.line)},
                      {"scope", slot.scope},
                      {"flops", slot.flops},
                      {"rate_type", std::string(dtype_name(element_type(slot.rate_type)))},
                      {"bytes_read", slot.bytes_read},
                      {"bytes_written", slot.bytes_written},
                      {"calls", slot.calls},
                      {"nanoseconds", slot.nanoseconds}};
}

Json sample_json(const MemorySample& sample) {
  return Json::List{sample.time, sample.thread,          sample.bytes, sample.live,
                    sample.peak, number(sample.address), sample.step,  sample.purpose};
}

template <class List, class F>
void write_list(std::ostream& out, const char* name, const List& list, const F& json) {
  out << ",\n" << json_quoted(name) << ": [";
  bool first = true;
  for (const auto& one : list) {
    out << (first ? "\n" : ",\n") << json(one).dump();
    first = false;
  }
  out << "]";
}

// Parsing with errors that name the file, the position and what was expected.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& what) const { throw ValueError(concat("profile: ", file_, ": ", what)); }
  const Json& member(const Json& object, const char* name) const {
    const Json* found = object.find(name);
    if (!found) fail(concat("'", name, "' is missing"));
    return *found;
  }
  const Json::List& list(const Json& json, const char* name) const {
    if (const Json::List* found = json.list()) return *found;
    fail(concat("'", name, "' is not a list"));
  }
  int64_t integer(const Json& json, const char* name) const {
    if (const int64_t* found = json.integer()) return *found;
    fail(concat("'", name, "' is not an integer"));
  }
  double real(const Json& json, const char* name) const {
    if (const std::optional<double> found = json.number()) return *found;
    fail(concat("'", name, "' is not a number"));
  }
  const std::string& text(const Json& json, const char* name) const {
    if (const std::string* found = json.text()) return *found;
    fail(concat("'", name, "' is not a string"));
  }
  // An index into a list of `size`, or -1.
  int32_t index(const Json& json, const char* name, std::size_t size) const {
    const int64_t value = integer(json, name);
    if (value < -1 || value >= static_cast<int64_t>(size)) fail(concat("'", name, "' is ", value, ", of ", size));
    return static_cast<int32_t>(value);
  }
  const Json::List& fields(const Json& json, const char* name, std::size_t count) const {
    const Json::List& found = list(json, name);
    if (found.size() != count) fail(concat("an entry of '", name, "' has ", found.size(), " fields, not ", count));
    return found;
  }

  RateType rate_type_of(const Json& json) const {
    const std::string& given = text(json, "rate_type");
    for (std::size_t type = 0; type < rate_type_count; ++type) {
      if (given == dtype_name(element_type(static_cast<RateType>(type)))) return static_cast<RateType>(type);
    }
    fail(concat("'rate_type' is '", given, "'"));
  }

 private:
  std::string file_;
};

Slot read_slot(const Reader& read, const Json& json, std::size_t programs) {
  Slot slot;
  auto text = [&](const char* name) { return read.text(read.member(json, name), name); };
  auto real = [&](const char* name) { return read.real(read.member(json, name), name); };
  slot.name = text("name");
  slot.kind = text("kind");
  slot.text = text("text");
  slot.program = read.index(read.member(json, "program"), "program", programs);
  for (const Json& one : read.list(read.member(json, "equations"), "equations"))
    slot.equations.push_back(read.text(one, "equations"));
  slot.file = text("file");
  slot.line = static_cast<int32_t>(read.integer(read.member(json, "line"), "line"));
  slot.scope = text("scope");
  slot.flops = real("flops");
  if (const Json* type = json.find("rate_type")) slot.rate_type = read.rate_type_of(*type);
  slot.bytes_read = real("bytes_read");
  slot.bytes_written = real("bytes_written");
  slot.calls = read.integer(read.member(json, "calls"), "calls");
  slot.nanoseconds = read.integer(read.member(json, "nanoseconds"), "nanoseconds");
  return slot;
}

Event read_event(const Reader& read, const Json& json, const Profile& profile) {
  const Json::List& fields = read.fields(json, "events", 11);
  Event event;
  const int64_t kind = read.integer(fields[0], "kind");
  if (kind < 0 || kind > static_cast<int64_t>(EventKind::transfer))
    read.fail(concat("there is no kind of event ", kind));
  event.kind = static_cast<EventKind>(kind);
  event.thread = read.integer(fields[1], "thread");
  event.start = read.integer(fields[2], "start");
  event.duration = read.integer(fields[3], "duration");
  event.slot = read.index(fields[4], "slot", profile.slots.size());
  event.program = read.index(fields[5], "program", profile.programs.size());
  if ((event.kind == EventKind::operation && event.slot < 0) ||
      (event.kind == EventKind::module_execution && event.program < 0)) {
    read.fail("an operation has no slot, or an execution no program");
  }
  event.execution = read.integer(fields[6], "execution");
  event.occurrences = read.integer(fields[7], "occurrences");
  event.step = read.integer(fields[8], "step");
  event.name = read.text(fields[9], "name");
  for (const Json& pair : read.list(fields[10], "arguments")) {
    const Json::List& both = read.fields(pair, "arguments", 2);
    event.arguments.emplace_back(read.text(both[0], "arguments"), read.text(both[1], "arguments"));
  }
  return event;
}

MemorySample read_sample(const Reader& read, const Json& json) {
  const Json::List& fields = read.fields(json, "memory", 8);
  MemorySample sample;
  sample.time = read.integer(fields[0], "time");
  sample.thread = read.integer(fields[1], "thread");
  sample.bytes = read.integer(fields[2], "bytes");
  sample.live = read.integer(fields[3], "live");
  sample.peak = read.integer(fields[4], "peak");
  sample.address = std::strtoull(read.text(fields[5], "address").c_str(), nullptr, 10);
  sample.step = read.integer(fields[6], "step");
  sample.purpose = read.text(fields[7], "purpose");
  return sample;
}

}  // namespace

void save(const Profile& profile, const std::string& file) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (!out) throw RuntimeError(concat("profile: cannot write ", file, ": ", std::strerror(errno)));
  out << "{\"format\": " << json_quoted(format_name) << ",\n\"host\": " << json_quoted(profile.host)
      << ", \"device\": " << json_quoted(profile.device) << ", \"start_wall\": " << profile.start_wall
      << ", \"duration\": " << profile.duration << ", \"threads_used\": " << profile.threads_used
      << ", \"dropped\": " << profile.dropped
      << ", \"peak_flops_per_second\": " << Json(profile.peaks.flops_per_second).dump()
      << ", \"peak_bytes_per_second\": " << Json(profile.peaks.bytes_per_second).dump()
      << ", \"peaks_by_type\": " << peaks_json(profile.peaks).dump();
  write_list(out, "threads", profile.threads, [](const Thread& one) { return Json(Json::List{one.id, one.name}); });
  write_list(out, "programs", profile.programs, [](const ProgramRow& one) {
    return Json(Json::List{one.name, one.backend, one.flops});
  });
  write_list(out, "slots", profile.slots, slot_json);
  write_list(out, "events", profile.events, event_json);
  write_list(out, "memory", profile.memory, sample_json);
  write_list(out, "peak_blocks", profile.peak_blocks, [](const MemoryBlock& one) {
    return Json(Json::List{one.bytes, one.purpose});
  });
  out << "}\n";
  out.close();
  if (!out) throw RuntimeError(concat("profile: cannot write ", file, ": ", std::strerror(errno)));
}

Profile load(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ValueError(concat("profile: cannot read ", file, ": ", std::strerror(errno)));
  std::stringstream text;
  text << in.rdbuf();
  const Reader read(file);
  const Json json = Json::parse(text.str(), concat("profile: ", file));
  const Json* format = json.find("format");
  if (!format || !format->text() || *format->text() != format_name)
    read.fail(concat("not a profile: its format is not '", format_name, "'"));
  Profile profile;
  auto integer = [&](const char* name) { return read.integer(read.member(json, name), name); };
  profile.host = read.text(read.member(json, "host"), "host");
  profile.device = read.text(read.member(json, "device"), "device");
  profile.start_wall = integer("start_wall");
  profile.duration = integer("duration");
  profile.threads_used = static_cast<int>(integer("threads_used"));
  profile.dropped = integer("dropped");
  profile.peaks = {read.real(read.member(json, "peak_flops_per_second"), "peak_flops_per_second"),
                   read.real(read.member(json, "peak_bytes_per_second"), "peak_bytes_per_second"),
                   {}};
  if (const Json* peaks = json.find("peaks_by_type")) {  // missing in files of older versions
    for (std::size_t type = 0; type < rate_type_count; ++type) {
      const std::string_view of = dtype_name(element_type(static_cast<RateType>(type)));
      if (const Json* peak = peaks->find(of)) profile.peaks.by_type[type] = read.real(*peak, "peaks_by_type");
    }
  }
  for (const Json& one : read.list(read.member(json, "threads"), "threads")) {
    const Json::List& fields = read.fields(one, "threads", 2);
    profile.threads.push_back({read.integer(fields[0], "threads"), read.text(fields[1], "threads")});
  }
  for (const Json& one : read.list(read.member(json, "programs"), "programs")) {
    const Json::List& fields = read.fields(one, "programs", 3);
    profile.programs.push_back({static_cast<int32_t>(profile.programs.size()), read.text(fields[0], "programs"),
                                read.text(fields[1], "programs"), read.real(fields[2], "programs")});
  }
  for (const Json& one : read.list(read.member(json, "slots"), "slots")) {
    profile.slots.push_back(read_slot(read, one, profile.programs.size()));
    profile.slots.back().id = static_cast<int32_t>(profile.slots.size()) - 1;
  }
  for (const Json& one : read.list(read.member(json, "events"), "events"))
    profile.events.push_back(read_event(read, one, profile));
  for (const Json& one : read.list(read.member(json, "memory"), "memory"))
    profile.memory.push_back(read_sample(read, one));
  for (const Json& one : read.list(read.member(json, "peak_blocks"), "peak_blocks")) {
    const Json::List& fields = read.fields(one, "peak_blocks", 2);
    profile.peak_blocks.push_back({read.integer(fields[0], "peak_blocks"), read.text(fields[1], "peak_blocks")});
  }
  return profile;
}

}  // namespace capibara::profile
