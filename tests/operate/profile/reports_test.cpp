// Tables, comparisons and files of profiles, on profiles written by hand.
#include <capibara/error.h>
#include <capibara/profile.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace capibara {
namespace {

namespace profile = capibara::profile;

std::string scratch_file(const std::string& name) {
  return testing::TempDir() + "capibara_" + std::to_string(getpid()) + "_" + name;
}

profile::Slot site(const std::string& name, int line, double flops, double bytes, int64_t calls, int64_t nanoseconds) {
  profile::Slot slot;
  slot.name = name;
  slot.kind = "matmul";
  slot.text = "a \"text\"\nof two lines";
  slot.program = 0;
  slot.equations = {"dot_general", "tanh"};
  slot.file = "model.py";
  slot.line = line;
  slot.scope = "layer";
  slot.flops = flops;
  slot.bytes_read = bytes / 2;
  slot.bytes_written = bytes / 2;
  slot.calls = calls;
  slot.nanoseconds = nanoseconds;
  return slot;
}

// A machine of 100 GFLOP/s and 10 GB/s; two executions of a program.
profile::Profile written(int64_t second_line) {
  profile::Profile one;
  one.host = "host";
  one.device = "cpu";
  one.start_wall = 1'700'000'000'000'000'000;
  one.duration = 1'000'000;
  one.peaks = {100e9, 10e9};
  one.threads = {{11, "main"}};
  one.programs = {{0, "step", "cpu", 1e6}};
  one.slots = {site("dot_general.0", 1, 1e6, 1000, 2, 40'000), site("tanh.1", 2, 1000, 100'000, 2, second_line),
               site("iota.2", 3, 0, 10, 2, 20'000)};
  for (std::size_t i = 0; i < one.slots.size(); ++i) one.slots[i].id = static_cast<int32_t>(i);
  for (int64_t execution : {0, 1}) {
    profile::Event event;
    event.kind = profile::EventKind::module_execution;
    event.thread = 11;
    event.start = execution * 500'000;
    event.duration = 60'000;
    event.program = 0;
    event.execution = execution;
    event.step = execution + 3;
    event.name = "step";
    event.arguments = {{"key", "value"}};
    one.events.push_back(event);
  }
  one.memory = {{5, 11, 4096, 4096, 4096, 0xffff'ffff'ffff'fff0ULL, -1, "weights"}};
  one.peak_blocks = {{4096, "weights"}};
  one.dropped = 1;
  return one;
}

TEST(ProfileTable, RatesSharesAndBoundsFollowFromTheNumbers) {
  const profile::Summary summary = profile::summarise(written(40'000));
  ASSERT_EQ(summary.rows.size(), 3U);
  EXPECT_EQ(summary.nanoseconds, 100'000);
  const profile::Row& matmul = summary.rows[0];
  EXPECT_EQ(matmul.source, "model.py:1");
  EXPECT_DOUBLE_EQ(matmul.share, 0.4);
  EXPECT_DOUBLE_EQ(matmul.gflops_per_second, 2e6 / 40e3);  // operations per nanosecond
  EXPECT_DOUBLE_EQ(matmul.roofline, 0.5);                  // 20 us at 100 GFLOP/s, of 40
  EXPECT_EQ(matmul.bound, "compute");
  const profile::Row& moved = summary.rows[1];
  EXPECT_DOUBLE_EQ(moved.gbytes_per_second, 5);
  EXPECT_DOUBLE_EQ(moved.roofline, 0.5);
  EXPECT_EQ(moved.bound, "memory");
  EXPECT_EQ(summary.rows[2].bound, "overhead");
  EXPECT_EQ(summary.peak_bytes, 4096);
  const std::string text = to_string(summary);
  for (const char* word :
       {"model.py:1", "step: dot_general.0", "compute", "memory", "overhead", "4.0 KiB", "weights"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  EXPECT_NE(to_string(summary, 1).find("and 2 more"), std::string::npos);
}

TEST(ProfileTable, AnEmptyProfileIsAnEmptyTable) {
  const profile::Summary summary = profile::summarise({});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_NE(to_string(summary).find("0 sites"), std::string::npos);
}

TEST(ProfileComparison, TheSlowerLineComesFirstPerExecution) {
  profile::Profile after = written(90'000);
  after.slots[0].nanoseconds = 30'000;
  const std::vector<profile::Change> changes = profile::compare(written(40'000), after);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].source, "model.py:2");
  EXPECT_DOUBLE_EQ(changes[0].before, 20'000);
  EXPECT_DOUBLE_EQ(changes[0].after, 45'000);
  EXPECT_EQ(changes[2].source, "model.py:1");  // faster ones last
  EXPECT_NE(to_string(changes).find("2.25"), std::string::npos);
  after.slots[2].line = 4;
  const std::vector<profile::Change> moved = profile::compare(written(40'000), after);
  EXPECT_EQ(moved.size(), 4U);
  EXPECT_NE(to_string(moved).find("gone"), std::string::npos);
  EXPECT_NE(to_string(moved).find("new"), std::string::npos);
}

TEST(ProfileFiles, ReadBackWhatWasWritten) {
  const std::string file = scratch_file("profile.json");
  const profile::Profile one = written(40'000);
  profile::save(one, file);
  const profile::Profile two = profile::load(file);
  EXPECT_EQ(two.host, one.host);
  EXPECT_EQ(two.start_wall, one.start_wall);
  EXPECT_EQ(two.dropped, 1);
  EXPECT_EQ(two.threads[0].name, "main");
  EXPECT_EQ(two.slots[1].text, one.slots[1].text);
  EXPECT_EQ(two.slots[1].equations, one.slots[1].equations);
  EXPECT_EQ(two.events[1].step, 4);
  EXPECT_EQ(two.events[1].arguments, one.events[1].arguments);
  EXPECT_EQ(two.memory[0].address, one.memory[0].address);
  EXPECT_EQ(to_json(profile::summarise(two)), to_json(profile::summarise(one)));
  const std::string again = scratch_file("again.json");
  profile::save(two, again);
  std::stringstream first, second;
  first << std::ifstream(file).rdbuf();
  second << std::ifstream(again).rdbuf();
  EXPECT_EQ(first.str(), second.str());
  std::remove(file.c_str());
  std::remove(again.c_str());
}

TEST(ProfileFiles, DamagedOnesAreErrorsThatNameTheFile) {
  const std::string file = scratch_file("damaged.json");
  profile::save(written(40'000), file);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const std::string whole = text.str();
  auto refused = [&](const std::string& content) {
    std::ofstream(file) << content;
    try {
      profile::load(file);
    } catch (const ValueError& error) {
      return std::string(error.what()).find(file) != std::string::npos;
    }
    return false;
  };
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    const std::size_t position = changed.find(from);
    EXPECT_NE(position, std::string::npos) << from;
    return changed.replace(position, from.size(), to);
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("{}"));
  EXPECT_TRUE(refused("[1, 2]"));
  for (std::size_t cut = 1; cut < whole.size() - 2; cut += 97) EXPECT_TRUE(refused(whole.substr(0, cut))) << cut;
  EXPECT_TRUE(refused(replaced("\"program\": 0", "\"program\": 7")));
  EXPECT_TRUE(refused(replaced("\"host\": \"host\"", "\"host\": 3")));
  EXPECT_TRUE(refused(replaced("\"slots\"", "\"sites\"")));
  std::remove(file.c_str());
  EXPECT_THROW(profile::load(file), ValueError);
  EXPECT_THROW(profile::save({}, "/nowhere/at/all.json"), RuntimeError);
}

TEST(ProfileSummary, SaysWhatTheCompilerAndTheHostTook) {
  profile::Profile one = written(10'000);
  one.events.clear();
  const auto add = [&](profile::EventKind kind, int64_t start, int64_t duration) {
    profile::Event event;
    event.kind = kind;
    event.start = start;
    event.duration = duration;
    one.events.push_back(event);
  };
  add(profile::EventKind::span, 0, 1'000'000);  // the user's own spans do not count as work
  add(profile::EventKind::compile, 100'000, 300'000);
  add(profile::EventKind::compile, 200'000, 100'000);  // nested in it
  add(profile::EventKind::module_execution, 350'000, 150'000);
  add(profile::EventKind::transfer, 900'000, 200'000);  // continues past the end
  const profile::Summary summary = profile::summarise(one);
  EXPECT_EQ(summary.compile_nanoseconds, 300'000);
  EXPECT_EQ(summary.host_nanoseconds, 500'000);
  EXPECT_NE(profile::to_string(summary).find("\ncompiling: 300 us; neither programs nor the compiler: 500 us\n"),
            std::string::npos);
}

TEST(ProfileSummary, ComparesEachSiteWithThePeakOfItsType) {
  profile::Profile one = written(10'000);
  one.slots.resize(2);
  one.slots[1] = one.slots[0];
  one.slots[1].id = 1;
  one.slots[1].rate_type = RateType::bfloat16;
  EXPECT_EQ(profile::summarise(one).rows[1].bound, "overhead");  // no peak is known
  one.peaks.by_type[static_cast<std::size_t>(RateType::bfloat16)] = 400e9;
  const std::string file = scratch_file("types.json");
  profile::save(one, file);
  const profile::Summary read = profile::summarise(profile::load(file));
  std::remove(file.c_str());
  ASSERT_EQ(read.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(read.rows[0].roofline, 0.5);  // 2 x 1e6 of 100e9 a second in 40 us
  EXPECT_DOUBLE_EQ(read.rows[1].roofline, 0.125);
}

TEST(ProfilePeaks, AreMeasuredOnceAndPositive) {
  const profile::Peaks first = profile::machine_peaks(), second = profile::machine_peaks();
  EXPECT_GT(first.flops_per_second, 1e7);
  EXPECT_GT(first.bytes_per_second, 1e7);
  EXPECT_EQ(first.flops_per_second, second.flops_per_second);
}

}  // namespace
}  // namespace capibara
