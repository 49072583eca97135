// A profile as XPlane: a host plane with a line per thread, and a plane per thread that ran programs as a device.
//
// xprof computes its tables only for planes named /device:TPU:N, from events that carry all their data. Integers
// must be int64 values, and every event of a step needs its group_id, or xprof looks for its own steps and finds none.
#include <capibara/profile_data.h>
#include <capibara/profile_formats.h>

#include <capibara/error.h>

#include <unistd.h>
#include <string>
#include <string_view>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/files/protobuf.h"
#include "operate/reports/xspace.h"

// Building the planes of an XSpace: names become numbers, the events of a step one group.

namespace capibara::profile {

inline constexpr int64_t picoseconds = 1000;  // in a nanosecond

// A plane under construction: names become numbers.
class PlaneBuilder {
 public:
  PlaneBuilder(int64_t id, std::string name) {
    plane_.id = id;
    plane_.name = std::move(name);
    stat_id("group_id");  // without it, xprof would consider the events ungrouped
  }

  XStat stat(std::string_view name, XStat::Value value) { return {stat_id(name), std::move(value)}; }
  XStat integer(std::string_view name, int64_t value) { return stat(name, XStat::Value(value)); }
  XStat text(std::string_view name, std::string value) { return stat(name, XStat::Value(std::move(value))); }

  // The number of the metadata with this key; new ones begin empty.
  int64_t event_id(const std::string& key) {
    const auto [it, is_new] = event_ids_.emplace(key, static_cast<int64_t>(event_ids_.size()) + 1);
    if (is_new) plane_.event_metadata[it->second].name = key;
    return it->second;
  }
  XEventMetadata& metadata(int64_t id) { return plane_.event_metadata[id]; }

  XLine& line(int64_t id, std::string name, int64_t timestamp) {
    XLine& made = plane_.lines.emplace_back();
    made.id = id;
    made.name = std::move(name);
    made.timestamp_ns = timestamp;
    return made;
  }
  void add(XStat stat) { plane_.stats.push_back(std::move(stat)); }
  XPlane take() { return std::move(plane_); }

 private:
  int64_t stat_id(std::string_view name) {
    const auto [it, is_new] = stat_ids_.emplace(std::string(name), static_cast<int64_t>(stat_ids_.size()) + 1);
    if (is_new) plane_.stat_metadata[it->second] = it->first;
    return it->second;
  }

  XPlane plane_;
  std::unordered_map<std::string, int64_t> event_ids_, stat_ids_;
};

// The steps of a profile in order of time. Each is a group; if step numbers are unique, they are the group numbers,
// which xprof displays as the step.
class Groups {
 public:
  explicit Groups(const Profile& profile) {
    for (const Event& event : profile.events) {
      if (event.kind == EventKind::step) steps_.push_back(&event);
    }
    std::stable_sort(steps_.begin(), steps_.end(), [](const Event* a, const Event* b) { return a->start < b->start; });
    for (std::size_t i = 0; i < steps_.size(); ++i) by_number_[steps_[i]->step].push_back(static_cast<int64_t>(i));
    unique_ = by_number_.size() == steps_.size();
  }

  const std::vector<const Event*>& steps() const { return steps_; }
  // The index of the step with this number that had begun at a time; -1 if there is none. Numbers may repeat:
  // then it is the last one before that time.
  int64_t of(int64_t number, int64_t time) const {
    const auto it = by_number_.find(number);
    if (it == by_number_.end()) return -1;
    int64_t group = it->second.front();
    for (const int64_t candidate : it->second) {
      if (steps_[static_cast<std::size_t>(candidate)]->start <= time) group = candidate;
    }
    return group;
  }
  int64_t shown(int64_t group) const { return unique_ ? steps_[static_cast<std::size_t>(group)]->step : group; }

 private:
  std::vector<const Event*> steps_;
  bool unique_ = true;
  std::unordered_map<int64_t, std::vector<int64_t>> by_number_;
};

inline XEvent timed(int64_t id, int64_t start, int64_t duration) {
  return {id, start * picoseconds, duration * picoseconds, {}};
}

namespace {

// ---- the host -----------------------------------------------------------------------------------------------------

int64_t physical_memory() {
  return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
}

// The parts of "dot_general float32[8,8]", which xprof shows in separate columns.
struct Purpose {
  std::string operation, type, shape;
};
Purpose split_purpose(const std::string& text) {
  const std::size_t space = text.rfind(' '), bracket = text.find('[', space == std::string::npos ? 0 : space);
  if (bracket == std::string::npos) return {text, "", ""};
  const std::size_t first = space == std::string::npos ? 0 : space + 1;
  return {space == std::string::npos ? text : text.substr(0, space), text.substr(first, bracket - first),
          text.substr(bracket)};
}

// xprof's type numbers, from TensorFlow's enumeration; 0 is none.
int64_t type_number(const std::string& name) {
  static const std::unordered_map<std::string, int64_t> numbers = {
      {"float32", 1}, {"float64", 2},     {"int32", 3},    {"uint8", 4},   {"int16", 5},
      {"int8", 6},    {"complex64", 8},   {"int64", 9},    {"bool", 10},   {"bfloat16", 14},
      {"uint16", 17}, {"complex128", 18}, {"float16", 19}, {"uint32", 22}, {"uint64", 23}};
  const auto it = numbers.find(name);
  return it == numbers.end() ? 0 : it->second;
}

void add_memory(const Profile& profile, const MemorySample& sample, const Groups& groups, PlaneBuilder& plane,
                XLine& line) {
  static const int64_t all = physical_memory();
  XEvent event = timed(plane.event_id(sample.bytes >= 0 ? "MemoryAllocation" : "MemoryDeallocation"), sample.time, 0);
  const Purpose purpose = split_purpose(sample.purpose);
  const int64_t bytes = sample.bytes < 0 ? -sample.bytes : sample.bytes;
  event.stats = {plane.text("allocator_name", profile.device),
                 plane.integer("bytes_reserved", 0),
                 plane.integer("bytes_allocated", sample.live),
                 plane.integer("bytes_available", std::max<int64_t>(0, all - sample.live)),
                 plane.stat("fragmentation", 0.0),
                 plane.integer("peak_bytes_in_use", sample.peak),
                 plane.integer("requested_bytes", bytes),
                 plane.integer("allocation_bytes", bytes),
                 plane.integer("addr", static_cast<int64_t>(sample.address)),
                 plane.text("tf_op", purpose.operation),
                 plane.text("region_type", "output"),
                 plane.integer("data_type", type_number(purpose.type)),
                 plane.text("shape", purpose.shape)};
  if (const int64_t group = groups.of(sample.step, sample.time); group >= 0)
    event.stats.push_back(plane.integer("group_id", groups.shown(group)));
  line.events.push_back(std::move(event));
}

XEvent host_event(const Event& event, const Groups& groups, PlaneBuilder& plane) {
  const bool plain = event.kind == EventKind::span || event.kind == EventKind::step;
  std::string name = plain || event.name.empty() ? event.name : std::string(to_string(event.kind)) + " " + event.name;
  if (name.empty()) name = to_string(event.kind);
  XEvent result = timed(plane.event_id(name), event.start, event.duration);
  const int64_t group = groups.of(event.step, event.start);
  if (event.kind == EventKind::step) {
    result.stats = {plane.integer("step_num", event.step), plane.integer("_r", 1),
                    plane.text("step_name", std::to_string(event.step))};
  }
  if (group >= 0) result.stats.push_back(plane.integer("group_id", groups.shown(group)));
  for (const auto& [key, value] : event.arguments) {
    if (key != "step_num" && key != "_r" && key != "group_id") result.stats.push_back(plane.text(key, value));
  }
  return result;
}

XPlane host_plane(const Profile& profile, const Groups& groups, bool spans) {
  PlaneBuilder plane(0, "/host:CPU");
  std::map<int64_t, std::vector<const Event*>> events;
  std::map<int64_t, std::vector<const MemorySample*>> memory;
  for (const Event& event : profile.events) {
    const bool of_device = event.kind == EventKind::operation || event.kind == EventKind::module_execution;
    if (!of_device && (spans || event.kind == EventKind::step)) events[event.thread].push_back(&event);
  }
  for (const MemorySample& sample : profile.memory) memory[sample.thread].push_back(&sample);
  for (const Thread& thread : profile.threads) {
    if (events[thread.id].empty() && memory[thread.id].empty()) continue;
    XLine& line =
        plane.line(thread.id, thread.name.empty() ? std::to_string(thread.id) : thread.name, profile.start_wall);
    for (const Event* event : events[thread.id]) line.events.push_back(host_event(*event, groups, plane));
    for (const MemorySample* sample : memory[thread.id]) add_memory(profile, *sample, groups, plane, line);
    std::stable_sort(line.events.begin(), line.events.end(), [](const XEvent& a, const XEvent& b) {
      return a.offset_ps != b.offset_ps ? a.offset_ps < b.offset_ps : a.duration_ps > b.duration_ps;
    });
  }
  return plane.take();
}

// ---- devices ------------------------------------------------------------------------------------------------------

// {1: hostname, 2: ordinal, 3: core, 4 and 5: chip, 6: core}
std::string core_details(const Profile& profile, int64_t ordinal) {
  ProtobufWriter out;
  out.text(1, profile.host);
  for (const int field : {2, 3, 4, 5, 6}) out.integer(field, field == 3 ? 0 : static_cast<uint64_t>(ordinal));
  return out.take();
}

// Repeated {1: 1 read or 2 write, 2: 1 main memory, 3: bytes}.
std::string memory_access(double read, double written) {
  ProtobufWriter out;
  for (const auto& [direction, bytes] : {std::pair<uint64_t, double>{1, read}, {2, written}}) {
    if (bytes <= 0) continue;
    ProtobufWriter access;
    access.integer(1, direction);
    access.integer(2, 1);
    access.integer(3, static_cast<uint64_t>(bytes));
    out.message(1, access);
  }
  return out.take();
}

std::string program_name(const Profile& profile, int32_t program) {
  return program >= 0 && static_cast<std::size_t>(program) < profile.programs.size()
             ? profile.programs[static_cast<std::size_t>(program)].name
             : std::string("eager");
}

// The plane of a thread that ran programs.
class DevicePlane {
 public:
  DevicePlane(const Profile& profile, const Groups& groups, int64_t ordinal, int64_t thread)
      : profile_(profile),
        groups_(groups),
        thread_(thread),
        plane_(ordinal + 1, "/device:TPU:" + std::to_string(ordinal)) {
    plane_.add(plane_.text("device_type_string", profile.device));
    plane_.add(plane_.stat("peak_teraflops_per_second", profile.peaks.flops_per_second / 1e12));
    plane_.add(plane_.stat("peak_hbm_bw_gigabytes_per_second", profile.peaks.bytes_per_second / 1e9));
    for (const char* direction : {"peak_sram_rd_bw_gigabytes_per_second", "peak_sram_wr_bw_gigabytes_per_second"})
      plane_.add(plane_.stat(direction, profile.peaks.bytes_per_second / 1e9));
    plane_.add(plane_.integer("has_megacore", 0));
    plane_.add(plane_.integer("has_merged_vmem", 0));
    plane_.add(plane_.stat("core_details", XStat::Bytes{core_details(profile, ordinal)}));
  }

  XPlane build() {
    for (const Event& event : profile_.events) {
      if (event.thread != thread_) continue;
      if (event.kind == EventKind::operation && event.slot >= 0) ++drawn_[event.slot];
      if (event.kind == EventKind::operation || event.kind == EventKind::module_execution) reach(event);
    }
    add_steps();
    add_modules();
    add_operations();
    return plane_.take();
  }

 private:
  // On a device a step lasts from its start on the host until both are done.
  void reach(const Event& event) {
    if (const int64_t group = groups_.of(event.step, event.start); group >= 0) {
      int64_t& end = ends_.emplace(group, 0).first->second;
      end = std::max(end, event.start + event.duration);
    }
  }

  void add_steps() {
    XLine& line = plane_.line(1, "Steps", profile_.start_wall);
    for (auto it = ends_.begin(); it != ends_.end(); ++it) {
      const Event& step = *groups_.steps()[static_cast<std::size_t>(it->first)];
      int64_t end = std::max(it->second, step.start + step.duration);
      if (const auto next = std::next(it); next != ends_.end())
        end = std::max(step.start, std::min(end, groups_.steps()[static_cast<std::size_t>(next->first)]->start));
      XEvent event = timed(plane_.event_id(std::to_string(step.step)), step.start, end - step.start);
      event.stats = {plane_.integer("group_id", groups_.shown(it->first)),
                     plane_.text("step_name", std::to_string(step.step)), plane_.integer("step_num", step.step)};
      line.events.push_back(std::move(event));
    }
  }

  void add_modules() {
    XLine& line = plane_.line(2, "XLA Modules", profile_.start_wall);
    for (const Event& event : profile_.events) {
      if (event.thread != thread_ || event.kind != EventKind::module_execution) continue;
      const std::string name = program_name(profile_, event.program) + "(" + std::to_string(event.program + 1) + ")";
      XEvent result = timed(plane_.event_id(name), event.start, event.duration);
      result.stats = identity(event);
      line.events.push_back(std::move(result));
    }
  }

  void add_operations() {
    XLine& line = plane_.line(3, "XLA Ops", profile_.start_wall);
    for (const Event& event : profile_.events) {
      if (event.thread != thread_ || event.kind != EventKind::operation || event.slot < 0) continue;
      XEvent result =
          timed(slot_metadata(profile_.slots[static_cast<std::size_t>(event.slot)]), event.start, event.duration);
      result.stats = identity(event);
      line.events.push_back(std::move(result));
    }
  }

  std::vector<XStat> identity(const Event& event) {
    std::vector<XStat> stats = {plane_.integer("run_id", event.execution + 1),
                                plane_.integer("program_id", event.program + 1)};
    if (const int64_t group = groups_.of(event.step, event.start); group >= 0)
      stats.push_back(plane_.integer("group_id", groups_.shown(group)));
    return stats;
  }

  // Properties shared by all events of a slot.
  int64_t slot_metadata(const Slot& slot) {
    const std::string module = program_name(profile_, slot.program);
    const std::string key = module + "/" + std::to_string(slot.program) + "/" + std::to_string(slot.id);
    const int64_t id = plane_.event_id(key);
    if (!described_.insert(slot.id).second) return id;
    XEventMetadata& metadata = plane_.metadata(id);
    metadata.name = "%" + slot.name + " = " + (slot.text.empty() ? slot.name : slot.text);
    metadata.display_name = slot.name;
    // Calls drawn as one event count as one in xprof: its sums over calls are right if each event has the work of its
    // share of the calls.
    const double share = static_cast<double>(slot.calls) / static_cast<double>(std::max<int64_t>(1, drawn_[slot.id]));
    const double scale = slot.calls > 0 ? share : 1;
    const auto flops = static_cast<int64_t>(slot.flops * scale);
    const double read = slot.bytes_read * scale, written = slot.bytes_written * scale;
    std::string operation = slot.equations.empty() ? slot.kind : slot.equations.back();
    std::replace(operation.begin(), operation.end(), ' ', '_');  // xprof expects a single word for the type
    const std::string path =
        "jit(" + module + ")/" + (slot.scope.empty() ? "" : slot.scope + "/") + slot.name + ":" + operation;
    metadata.stats = {plane_.text("hlo_category", slot.kind),
                      plane_.integer("flops", flops),
                      plane_.integer("model_flops", flops),
                      plane_.integer("bytes_accessed", static_cast<int64_t>(read + written)),
                      plane_.text("tf_op", path),
                      plane_.integer("program_id", slot.program + 1),
                      plane_.integer("symbol_id", slot.id + 1),
                      plane_.text("deduplicated_name", slot.name),
                      plane_.stat("memory_access_breakdown", XStat::Bytes{memory_access(read, written)})};
    if (!slot.file.empty())
      metadata.stats.push_back(plane_.text("source", slot.file + ":" + std::to_string(slot.line)));
    return id;
  }

  const Profile& profile_;
  const Groups& groups_;
  const int64_t thread_;
  PlaneBuilder plane_;
  std::map<int64_t, int64_t> ends_;  // of the groups, as far as known to this thread
  std::unordered_map<int32_t, int64_t> drawn_;
  std::set<int32_t> described_;
};

// Threads that ran programs, busiest first.
std::vector<int64_t> device_threads(const Profile& profile) {
  std::map<int64_t, int64_t> busy;
  for (const Event& event : profile.events) {
    if (event.kind == EventKind::operation || event.kind == EventKind::module_execution)
      busy[event.thread] += event.duration;
  }
  std::vector<int64_t> threads;
  for (const auto& [thread, time] : busy) threads.push_back(thread);
  std::stable_sort(threads.begin(), threads.end(), [&](int64_t a, int64_t b) { return busy[a] > busy[b]; });
  return threads;
}

XPlane environment_plane(const Profile& profile, int64_t id) {
  PlaneBuilder plane(id, "Task Environment");
  plane.add(plane.integer("profile_start_time", profile.start_wall));
  plane.add(plane.integer("profile_stop_time", profile.start_wall + profile.duration));
  return plane.take();
}

}  // namespace

std::string to_xspace(const Profile& profile, const std::vector<std::string>& spaces, bool host_spans) {
  XSpace result;
  bool have_devices = false;
  std::vector<XPlane> others;
  auto take = [&](const std::string& bytes) {
    XSpace space = read_xspace(bytes);
    for (XPlane& plane : space.planes) {
      have_devices = have_devices || plane.name.rfind("/device:", 0) == 0;
      // xprof reads only the first host plane; the plugin's events are kept under a separate name.
      if (plane.name == "/host:CPU") plane.name = "/host:plugin";
      others.push_back(std::move(plane));
    }
    for (std::string& text : space.errors) result.errors.push_back(std::move(text));
    for (std::string& text : space.warnings) result.warnings.push_back(std::move(text));
  };
  for (const std::string& space : profile.device_spaces) {
    try {
      take(space);
    } catch (const ValueError& error) {  // a faulty plugin loses its planes, not the profile
      result.warnings.push_back(error.what());
    }
  }
  std::for_each(spaces.begin(), spaces.end(), take);
  result.warnings.insert(result.warnings.end(), profile.refusals.begin(), profile.refusals.end());
  const Groups groups(profile);
  result.planes.push_back(host_plane(profile, groups, host_spans));
  int64_t ordinal = 0;
  if (!have_devices) {
    for (const int64_t thread : device_threads(profile)) {
      result.planes.push_back(DevicePlane(profile, groups, ordinal, thread).build());
      ++ordinal;
    }
  }
  result.planes.push_back(environment_plane(profile, ordinal + 1));
  for (XPlane& plane : others) result.planes.push_back(std::move(plane));
  result.hostnames.push_back(profile.host);
  if (profile.dropped > 0)
    result.warnings.push_back(std::to_string(profile.dropped) +
                              " records were beyond what a profile holds and are missing");
  return write_xspace(result);
}

std::string host_planes(std::string_view xspace, const std::string& name) {
  XSpace space = read_xspace(xspace), result;
  for (XPlane& plane : space.planes) {
    if (plane.name != "/host:CPU") continue;
    plane.name = name;
    result.planes.push_back(std::move(plane));
  }
  return write_xspace(result);
}

}  // namespace capibara::profile
