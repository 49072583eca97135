// Profiles in other programs' file formats: their content, and how readers handle damaged files.
#include <gtest/gtest.h>

#include <capibara/error.h>
#include <capibara/profile_formats.h>

#include <random>

#include "io/files/json.h"
#include "io/files/protobuf.h"
#include "operate/reports/xspace.h"

namespace capibara::profile {
namespace {

// Two steps of one program with two operations each; the second operation is too frequent to be listed.
Profile small_profile() {
  Profile profile;
  profile.host = "host";
  profile.device = "cpu";
  profile.start_wall = 1000000000;
  profile.duration = 10000;
  profile.peaks = {2e12, 1e11};
  profile.threads = {{7, "main"}};
  profile.programs = {{0, "step", "cpu", 0}};
  profile.slots.resize(2);
  for (int32_t i = 0; i < 2; ++i) {
    Slot& slot = profile.slots[static_cast<std::size_t>(i)];
    slot.id = i;
    slot.program = 0;
    slot.name = i == 0 ? "dot_general.0" : "add.1";
    slot.kind = i == 0 ? "matmul" : "loop fusion";
    slot.equations = {i == 0 ? "dot_general" : "add"};
    slot.file = "train.py";
    slot.line = 10 + i;
    slot.flops = 1000;
    slot.bytes_read = 64;
    slot.calls = i == 0 ? 2 : 20;
  }
  for (int64_t step = 0; step < 2; ++step) {
    auto add = [&](EventKind kind, int64_t start, int64_t duration, int32_t slot, int64_t occurrences,
                   const char* name) {
      Event event;
      event.kind = kind;
      event.thread = 7;
      event.start = 4000 * step + start;
      event.duration = duration;
      event.slot = slot;
      event.program = slot >= 0 || kind == EventKind::module_execution ? 0 : -1;
      event.execution = step;
      event.occurrences = occurrences;
      event.step = 40 + step;
      event.name = name;
      profile.events.push_back(event);
    };
    add(EventKind::step, 0, 3000, -1, 1, "train");
    add(EventKind::span, 100, 50, -1, 1, "load");
    add(EventKind::module_execution, 1000, 1500, -1, 1, "step");
    add(EventKind::operation, 1000, 500, 0, 1, "");
    add(EventKind::operation, 1500, 1000, 1, 10, "");
  }
  profile.memory = {{500, 7, 4096, 4096, 4096, 64, 40, "dot_general float32[32,32]"}};
  return profile;
}

const XPlane& plane_named(const XSpace& space, std::string_view name) {
  for (const XPlane& plane : space.planes) {
    if (plane.name == name) return plane;
  }
  throw RuntimeError(concat("no plane ", name));
}

const XStat* stat_named(const XPlane& plane, const std::vector<XStat>& stats, const std::string& name) {
  for (const XStat& stat : stats) {
    if (const std::string* found = plane.stat_name(stat); found && *found == name) return &stat;
  }
  return nullptr;
}

TEST(XPlane, HasStepsModulesAndOperationsOfADevice) {
  const XSpace space = read_xspace(to_xspace(small_profile()));
  const XPlane& device = plane_named(space, "/device:TPU:0");
  ASSERT_EQ(device.lines.size(), 3u);
  EXPECT_EQ(device.lines[0].name, "Steps");
  EXPECT_EQ(device.lines[1].name, "XLA Modules");
  EXPECT_EQ(device.lines[2].name, "XLA Ops");
  EXPECT_EQ(device.lines[2].timestamp_ns, 1000000000);
  ASSERT_EQ(device.lines[0].events.size(), 2u);
  EXPECT_EQ(device.lines[0].events[1].offset_ps, 4000000);
  EXPECT_EQ(device.lines[0].events[1].duration_ps, 3000000);
  EXPECT_EQ(device.event_name(device.lines[0].events[1]), "41");
  ASSERT_EQ(device.lines[2].events.size(), 4u);
  const XEvent& last = device.lines[2].events[3];
  EXPECT_EQ(last.offset_ps, 5500000);
  EXPECT_EQ(stat_named(device, last.stats, "group_id")->value, XStat::Value(int64_t{41}));
}

TEST(XPlane, GivesAnEventOfManyCallsTheWorkOfAll) {
  const XSpace space = read_xspace(to_xspace(small_profile()));
  const XPlane& device = plane_named(space, "/device:TPU:0");
  const XEventMetadata& often = device.event_metadata.at(device.lines[2].events[1].metadata_id);
  EXPECT_EQ(often.display_name, "add.1");
  EXPECT_EQ(stat_named(device, often.stats, "flops")->value, XStat::Value(int64_t{10000}));
  EXPECT_EQ(stat_named(device, often.stats, "bytes_accessed")->value, XStat::Value(int64_t{640}));
  EXPECT_EQ(stat_named(device, often.stats, "source")->value, XStat::Value(std::string("train.py:11")));
}

TEST(XPlane, GivesWayToTheDevicesOfAPlugin) {
  XSpace other;
  other.planes.resize(2);
  other.planes[0].name = "/host:CPU";
  other.planes[1].name = "/device:GPU:0";
  const XSpace space = read_xspace(to_xspace(small_profile(), {write_xspace(other)}));
  EXPECT_THROW(plane_named(space, "/device:TPU:0"), RuntimeError);
  EXPECT_EQ(plane_named(space, "/device:GPU:0").name, "/device:GPU:0");
  EXPECT_EQ(plane_named(space, "/host:CPU").lines.size(), 1u);
  EXPECT_EQ(plane_named(space, "/host:plugin").lines.size(), 0u);
}

TEST(XSpace, IsReadAsItWasWritten) {
  const std::string bytes = to_xspace(small_profile());
  EXPECT_EQ(write_xspace(read_xspace(bytes)), bytes);
  // Two concatenated files are one file with all planes.
  EXPECT_EQ(read_xspace(bytes + bytes).planes.size(), 2 * read_xspace(bytes).planes.size());
}

std::string refusal(const std::string& bytes) {
  try {
    read_xspace(bytes);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(XSpace, RefusesMalformedBytes) {
  const auto field = [](int number, const std::string& content) {
    ProtobufWriter out;
    out.text(number, content);
    return out.take();
  };
  EXPECT_NE(refusal(std::string(11, '\xff')).find("XSpace ends too early or is malformed"), std::string::npos);
  EXPECT_NE(refusal(field(1, field(2, "\xff"))).find("XPlane holds text that is not UTF-8"), std::string::npos);
  EXPECT_NE(refusal(field(1, field(2, "\xed\xa0\x80"))).find("UTF-8"), std::string::npos);  // a surrogate
  EXPECT_NE(refusal(field(1, field(2, "\xc0\x80"))).find("UTF-8"), std::string::npos);      // an overlong encoding
  EXPECT_NE(refusal(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10)).find("XSpace"),
            std::string::npos);                                                    // a huge length
  EXPECT_NE(refusal(std::string("\0\0", 2)).find("XSpace"), std::string::npos);    // field 0
  EXPECT_NE(refusal(std::string(200, '\x4b')).find("XSpace"), std::string::npos);  // groups that never end
  EXPECT_EQ(refusal(std::string("\x4b\x4c", 2)), "");                              // an empty group
  EXPECT_EQ(refusal(""), "");
}

TEST(XSpace, SurvivesDamage) {
  const std::string whole = to_xspace(small_profile());
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) refused += refusal(whole.substr(0, size)).empty() ? 0 : 1;
  EXPECT_GT(refused, static_cast<int>(whole.size() * 9 / 10));
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
    if (!refusal(damaged).empty()) continue;
    const XSpace space = read_xspace(damaged);
    EXPECT_EQ(write_xspace(read_xspace(write_xspace(space))), write_xspace(space));
    EXPECT_NO_THROW(Json::parse(to_trace_json(damaged), "trace"));
  }
}

TEST(TraceJson, HoldsEveryEventInMicroseconds) {
  const Json trace = Json::parse(to_trace_json(to_xspace(small_profile())), "trace");
  int operations = 0;
  for (const Json& event : *trace.find("traceEvents")->list()) {
    if (const Json* name = event.find("name"); !name || *name->text() != "add.1") continue;
    ++operations;
    EXPECT_EQ(event.find("dur")->number(), 1.0);
    EXPECT_EQ(*event.find("args")->find("source")->text(), "train.py:11");
  }
  EXPECT_EQ(operations, 2);
}

TEST(TraceJson, TakesAnyNumber) {
  XSpace space;
  XPlane& plane = space.planes.emplace_back();
  plane.name = "p\"\n";
  for (const int64_t extreme : {INT64_MIN, INT64_MAX}) {
    XLine& line = plane.lines.emplace_back();
    line.timestamp_ns = extreme;
    line.events.push_back({1, extreme, extreme, {{2, XStat::Value(std::numeric_limits<double>::quiet_NaN())}}});
  }
  plane.stat_metadata[2] = "nan";
  EXPECT_NO_THROW(Json::parse(to_trace_json(write_xspace(space)), "trace"));
}

TEST(TraceJson, RefusesNamesThatAreRepeatedWithoutEnd) {
  XSpace space;
  XPlane& plane = space.planes.emplace_back();
  plane.event_metadata[1].name = std::string(100'000, 'n');
  plane.lines.emplace_back().events.assign(10'000, {1, 0, 0, {}});  // a gigabyte
  EXPECT_THROW(to_trace_json(write_xspace(space)), ValueError);
  plane.lines[0].events.resize(100);
  EXPECT_NO_THROW(Json::parse(to_trace_json(write_xspace(space)), "trace"));
}

TEST(Gzip, EndsWithTheChecksumOfTheStandard) {
  const std::string file = to_gzip("123456789");  // whose CRC-32 is 0xCBF43926 by definition
  EXPECT_EQ(file.substr(file.size() - 8), std::string("\x26\x39\xf4\xcb\x09\0\0\0", 8));
  EXPECT_EQ(to_gzip(std::string(100000, 'a')).size(), 100000u + 10 + 2 * 5 + 8);
  EXPECT_EQ(to_gzip("").size(), 10u + 5 + 8);
}

TEST(Pprof, CountsAllocationsAndBytes) {
  const std::string bytes =
      to_pprof({{"float32[2]", "buffer", "cpu:0", 3, 24}, {"float32[2]", "buffer", "cpu:1", 1, 8}});
  std::vector<std::string> texts;
  int samples = 0, functions = 0;
  ProtobufReader reader(bytes);
  while (reader.next()) {
    if (reader.is_text(2)) ++samples;
    if (reader.is_text(5)) ++functions;
    if (reader.is_text(6)) texts.emplace_back(reader.text());
  }
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(samples, 2);
  EXPECT_EQ(functions, 1);
  EXPECT_EQ(texts, (std::vector<std::string>{"", "allocations", "count", "space", "bytes", "kind", "buffer", "device",
                                             "cpu:0", "float32[2]", "cpu:1"}));
}

}  // namespace
}  // namespace capibara::profile
