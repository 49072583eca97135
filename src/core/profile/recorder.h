// The recorder below all rooms: logs of threads without locks, and marks of compiled programs' runs.
//
// Every thread appends to its own log, which the thread that stops the profile reads: a record counts as soon as the
// log's counter includes it. No one waits; what a thread appends after the stop belongs to no profile.
#pragma once

#include <capibara/profile.h>

#include <chrono>
#include <memory>
#include <mutex>

namespace capibara::profile {

// Nanoseconds of the clock that all records use.
inline int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// The call sites of one compiled program, numbered as its marks are.
struct SiteTable {
  std::string program, backend;
  double flops = 0;
  std::vector<Slot> sites;  // calls and nanoseconds stay 0, program is set by each profile
};

// One run of a marked program: when each call began. A mark ends the call before it, so that no time is lost.
class Run {
 public:
  explicit Run(std::shared_ptr<const SiteTable> table, int64_t step);
  void mark(int32_t site) {
    const int64_t time = now();
    if (listed_.size() < max_listed_)
      listed_.push_back({site, time});
    else
      fold(site, time);
  }
  // Ends the last call, and gives the run to the log of this thread.
  void finish();

  struct Mark {
    int32_t site;
    int64_t time;
  };
  struct Sum {
    int64_t calls = 0, nanoseconds = 0;
  };
  // The part of a run that a log keeps.
  struct Record {
    std::shared_ptr<const SiteTable> table;
    int64_t step = -1, begin = 0, end = 0;
    std::vector<Mark> listed;
    int64_t folded_from = 0;  // when the calls that are only counted begin
    std::vector<Sum> folded;  // by site; empty where all are listed
  };

 private:
  void fold(int32_t site, int64_t time);

  std::shared_ptr<const SiteTable> table_;
  int64_t step_, begin_;
  uint64_t session_;
  std::size_t max_listed_;
  std::vector<Mark> listed_;
  Mark last_{-1, 0};  // of the folded ones
  int64_t folded_from_ = 0;
  std::vector<Sum> folded_;
};

// Adds an event that has ended; its thread is set here, and its step where it has none.
void record(Event event);
// A block that was allocated (bytes > 0) or freed (bytes < 0); `live`: bytes in use after that.
void record_memory(int64_t bytes, int64_t live, const void* address, std::string_view purpose);
// One run of an operation outside of compiled programs. `site` describes it; equal ones become one slot.
void record_eager(int64_t begin, Slot site);

// Records the time until its end as an event of this kind, where a profile is being taken.
class Timed {
 public:
  Timed(EventKind kind, std::string_view name) : begin_(active() ? now() : -1), kind_(kind), name_(name) {}
  ~Timed() {
    if (begin_ >= 0) finish();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  bool on() const { return begin_ >= 0; }
  void argument(std::string_view name, std::string value) { arguments_.emplace_back(name, std::move(value)); }

 private:
  void finish();

  int64_t begin_;
  EventKind kind_;
  std::string_view name_;
  std::vector<std::pair<std::string, std::string>> arguments_;
};

// Notes that this thread called a compiled program, whichever thread runs it; and the number of these calls.
void note_program();
int64_t programs_called();

// While it lives, operations on this thread are part of something already timed.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};
bool inside();

// A program of a backend that marks nothing within it: each run is one call of one slot.
class WholeProgram {
 public:
  template <class F>
  auto run(const std::string& name, const char* backend, const F& work) {
    if (!active()) return work();
    note_program();
    struct Ended {
      Run own;
      ~Ended() { own.finish(); }
    } run{Run(table(name, backend), current_step())};
    const Inside parts;
    run.own.mark(0);
    return work();
  }

 private:
  std::shared_ptr<const SiteTable> table(const std::string& name, const char* backend);

  std::mutex mutex_;
  std::shared_ptr<const SiteTable> table_;
};

// A block in use when the profile began.
struct InitialBlock {
  uint64_t address = 0;
  int64_t bytes = 0;
  std::string purpose;
};

// The halves of start and stop; `blocks` are those in use now.
void begin_session(std::vector<InitialBlock> blocks);
Profile end_session();

}  // namespace capibara::profile
