// Makes a profile of the logs of a session: slots and programs get their numbers, times begin at 0.
#include <capibara/error.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/profile/log.h"

namespace capibara::profile {

const char* to_string(EventKind kind) {
  static constexpr const char* names[] = {"span",    "step", "module execution", "operation",
                                          "compile", "wait", "transfer"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

class Assembly {
 public:
  Assembly(const Session& session, int64_t end, int64_t dropped) : begin_(session.begin) {
    profile_.start_wall = session.wall;
    profile_.duration = end - session.begin;
    profile_.dropped = dropped;
    profile_.device = "cpu";
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) == 0) profile_.host = host;
    for (const std::shared_ptr<ThreadLog>& log : session.logs) {
      thread_ = log->thread().id;
      profile_.threads.push_back(log->thread());
      log->read([this](const Record& record) { std::visit([this](const auto& own) { add(own); }, record); });
    }
    std::sort(profile_.threads.begin(), profile_.threads.end(),
              [](const Thread& a, const Thread& b) { return a.id < b.id; });
    std::stable_sort(profile_.events.begin(), profile_.events.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.thread, a.start, -a.duration) < std::tuple(b.thread, b.start, -b.duration);
    });
    replay(session.blocks);
  }
  Profile take() { return std::move(profile_); }

 private:
  void add(const Event& event) {
    Event own = event;
    own.thread = thread_;
    own.start -= begin_;
    profile_.events.push_back(std::move(own));
  }

  void add(const MemorySample& sample) {
    profile_.memory.push_back(sample);
    profile_.memory.back().thread = thread_;
    profile_.memory.back().time -= begin_;
  }

  void add(const Eager& eager) {
    const Slot& site = *eager.site;
    auto [it, fresh] = eager_.try_emplace(concat(site.text, "\n", site.file, ":", site.line, "\n", site.scope), 0);
    if (fresh) it->second = new_slot(site, -1);
    Event event = operation(it->second, eager.begin, eager.end - eager.begin, eager.step);
    charge(event, 1);
  }

  void add(const Run::Record& run) {
    auto [it, fresh] = programs_.try_emplace(run.table.get(), Numbers{});
    if (fresh) it->second = new_program(*run.table);
    const auto [program, first_slot] = it->second;
    Event event;
    event.kind = EventKind::module_execution;
    event.thread = thread_;
    event.start = run.begin - begin_;
    event.duration = run.end - run.begin;
    event.program = program;
    event.execution = executions_++;
    event.step = run.step;
    event.name = run.table->program;
    const int64_t execution = event.execution;
    profile_.events.push_back(std::move(event));

    const int64_t listed_end = run.folded.empty() ? run.end : run.folded_from;
    for (std::size_t i = 0; i < run.listed.size(); ++i) {
      const int64_t end = i + 1 < run.listed.size() ? run.listed[i + 1].time : listed_end;
      // The time before the first mark is spent entering the program.
      const int64_t start = i == 0 ? run.begin : run.listed[i].time;
      Event own = operation(first_slot + run.listed[i].site, start, end - start, run.step);
      own.program = program;
      own.execution = execution;
      charge(own, 1);
    }
    int64_t start = run.listed.empty() ? run.begin : run.folded_from;
    for (std::size_t site = 0; site < run.folded.size(); ++site) {
      const Run::Sum& sum = run.folded[site];
      if (sum.calls == 0) continue;
      Event own = operation(first_slot + static_cast<int32_t>(site), start, sum.nanoseconds, run.step);
      own.program = program;
      own.execution = execution;
      charge(own, sum.calls);
      start += sum.nanoseconds;
    }
  }

  struct Numbers {
    int32_t program = -1, first_slot = 0;
  };

  Numbers new_program(const SiteTable& table) {
    ProgramRow row;
    row.id = static_cast<int32_t>(profile_.programs.size());
    row.name = table.program;
    row.backend = table.backend;
    row.flops = table.flops;
    profile_.programs.push_back(row);
    const Numbers numbers{row.id, static_cast<int32_t>(profile_.slots.size())};
    for (const Slot& site : table.sites) new_slot(site, row.id);
    return numbers;
  }

  int32_t new_slot(const Slot& site, int32_t program) {
    Slot slot = site;
    slot.id = static_cast<int32_t>(profile_.slots.size());
    slot.program = program;
    profile_.slots.push_back(std::move(slot));
    return static_cast<int32_t>(profile_.slots.size()) - 1;
  }

  Event operation(int32_t slot, int64_t begin, int64_t duration, int64_t step) const {
    Event event;
    event.kind = EventKind::operation;
    event.thread = thread_;
    event.start = begin - begin_;
    event.duration = duration;
    event.slot = slot;
    event.step = step;
    event.name = profile_.slots[static_cast<std::size_t>(slot)].name;
    return event;
  }

  void charge(const Event& event, int64_t calls) {
    Slot& slot = profile_.slots[static_cast<std::size_t>(event.slot)];
    slot.calls += calls;
    slot.nanoseconds += event.duration;
    profile_.events.push_back(event);
    profile_.events.back().occurrences = calls;
  }

  // Finds the moment of peak memory use, and its live blocks.
  void replay(const std::vector<InitialBlock>& blocks) {
    std::vector<MemorySample>& samples = profile_.memory;
    std::stable_sort(samples.begin(), samples.end(),
                     [](const MemorySample& a, const MemorySample& b) { return a.time < b.time; });
    int64_t peak = 0;
    for (const InitialBlock& block : blocks) peak += block.bytes;
    std::size_t at_peak = 0;  // samples before the peak
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].live > peak) {
        peak = samples[i].live;
        at_peak = i + 1;
      }
      samples[i].peak = peak;
    }
    std::unordered_map<uint64_t, MemoryBlock> live;
    for (const InitialBlock& block : blocks) live[block.address] = {block.bytes, block.purpose};
    for (std::size_t i = 0; i < at_peak; ++i) {
      if (samples[i].bytes > 0)
        live[samples[i].address] = {samples[i].bytes, samples[i].purpose};
      else
        live.erase(samples[i].address);
    }
    for (auto& [address, block] : live) profile_.peak_blocks.push_back(std::move(block));
    std::sort(profile_.peak_blocks.begin(), profile_.peak_blocks.end(), [](const MemoryBlock& a, const MemoryBlock& b) {
      return std::tie(b.bytes, a.purpose) < std::tie(a.bytes, b.purpose);
    });
  }

  int64_t begin_, thread_ = 0, executions_ = 0;
  Profile profile_;
  std::unordered_map<const SiteTable*, Numbers> programs_;
  std::map<std::string, int32_t> eager_;
};

}  // namespace

Profile assemble(const Session& session, int64_t end, int64_t dropped) {
  return Assembly(session, end, dropped).take();
}

}  // namespace capibara::profile
