// The profiler: what this process did between start and stop, on a clock of nanoseconds, down to the loops of programs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara::profile {

// What a machine can do at best, measured; 0 where it was not.
struct Peaks {
  double flops_per_second = 0;  // of a float32 matmul on all threads
  double bytes_per_second = 0;  // from and to memory, on all threads
};

// A thread that recorded something.
struct Thread {
  int64_t id = 0;  // the system's
  std::string name;
};

// A place that time is charged to: one call in a compiled program's driver, or one kind of eager operation.
struct Slot {
  int32_t id = 0;         // its index in Profile::slots
  std::string name;       // short and unique in its program: "dot_general.3"
  std::string kind;       // "loop fusion", "matmul", "kernel", "copy", "driver", "eager", or "program" where no more is known
  std::string text;       // the equations as a jaxpr writes them
  int32_t program = -1;   // index in Profile::programs
  std::vector<std::string> equations;  // names of the primitives, in order
  std::string file;       // of the line in the user's code; empty where it is unknown
  int32_t line = 0;
  std::string scope;      // "layer1/attention"
  double flops = 0;       // of one call
  double bytes_read = 0, bytes_written = 0;  // by one call
  int64_t calls = 0;      // while the profile was taken
  int64_t nanoseconds = 0;  // in all of these calls
};

// A compiled program that ran.
struct ProgramRow {
  int32_t id = 0;  // its index in Profile::programs
  std::string name;
  std::string backend;
  double flops = 0;  // of one run, where it is known
};

enum class EventKind : uint8_t { span, step, module_execution, operation, compile, wait, transfer };
// "span", "step", "module execution", ...
const char* to_string(EventKind kind);

// Something that took time on one thread. Operations of one execution follow each other without gaps.
struct Event {
  EventKind kind = EventKind::span;
  int64_t thread = 0;       // Thread::id
  int64_t start = 0;        // nanoseconds since the start of the profile
  int64_t duration = 0;     // nanoseconds
  int32_t slot = -1;        // of an operation
  int32_t program = -1;     // of an operation or an execution
  int64_t execution = -1;   // of an operation or an execution: which run; the same for all its operations
  int64_t occurrences = 1;  // of an operation that was too frequent to list: calls that are drawn as one event
  int64_t step = -1;        // the number of the step that it belongs to
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;
};

// A block of memory that was allocated (bytes > 0) or freed (bytes < 0), and what is in use after that.
struct MemorySample {
  int64_t time = 0;  // nanoseconds since the start of the profile
  int64_t thread = 0;
  int64_t bytes = 0;
  int64_t live = 0, peak = 0;  // bytes in use; the most of them since the start of the profile
  uint64_t address = 0;
  int64_t step = -1;
  std::string purpose;  // "dot_general float32[8,8]"
};

// A block that was in use when most memory was.
struct MemoryBlock {
  int64_t bytes = 0;
  std::string purpose;
};

// All that was recorded. Events are ordered by thread, then by start, outer ones first.
struct Profile {
  std::string host;
  std::string device;           // "cpu"
  int64_t start_wall = 0;       // nanoseconds since 1970
  int64_t duration = 0;         // nanoseconds
  int threads_used = 1;         // of the pool
  Peaks peaks;
  std::vector<Thread> threads;
  std::vector<ProgramRow> programs;
  std::vector<Slot> slots;
  std::vector<Event> events;
  std::vector<MemorySample> memory;
  std::vector<MemoryBlock> peak_blocks;  // the largest first
  int64_t dropped = 0;          // records beyond what a profile holds
};

namespace detail {
extern std::atomic<bool> recording;
}  // namespace detail

// Whether a profile is being taken: one relaxed load.
inline bool active() { return detail::recording.load(std::memory_order_relaxed); }

// Begins to record. Raises RuntimeError where a profile is being taken already.
void start();
// Ends it and returns what was recorded. Raises RuntimeError where none is being taken.
Profile stop();

// A named stretch of time on this thread, from construction to destruction; nothing where no profile is being taken.
class Span {
 public:
  // Opens the span; the arguments appear beside its name.
  explicit Span(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments = {});
  // Closes it, after an exception too.
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // Adds an argument that is known only later.
  void argument(std::string_view name, std::string_view value);

 protected:
  Span(EventKind kind, std::string_view name, std::vector<std::pair<std::string, std::string>> arguments, int64_t step);

 private:
  std::optional<Event> event_;  // nothing where it is not recorded
  int64_t outer_step_ = -1;
  uint64_t session_ = 0;
};

// A step of training: everything that this thread starts while it lives carries its number.
class Step : public Span {
 public:
  explicit Step(int64_t number, std::string_view name = "train", std::vector<std::pair<std::string, std::string>> arguments = {});
};

// The number of the step that this thread is in; -1 outside of all.
int64_t current_step();
// Names this thread in profiles.
void name_thread(std::string_view name);

// ---- reports

// The peaks of this machine: measured once, in about a second, and kept in the cache folder.
Peaks machine_peaks();

// A line of the table: the calls of one site.
struct Row {
  std::string what;     // Slot::name
  std::string kind, program, source, text;  // source: "file:line", or the scope
  int64_t calls = 0, nanoseconds = 0;
  double share = 0;     // of the time of all sites; these sum to 1
  double flops = 0, bytes = 0;  // of all calls
  double gflops_per_second = 0, gbytes_per_second = 0;
  double roofline = 0;  // the least time that the machine's peaks allow, as a share of the time; above 1 in caches
  std::string bound;    // "compute", "memory" or "overhead"
};
struct Summary {
  std::vector<Row> rows;        // the longest first
  int64_t duration = 0;         // of the profile, nanoseconds
  int64_t nanoseconds = 0;      // in all sites
  Peaks peaks;
  int64_t peak_bytes = 0;
  std::vector<MemoryBlock> peak_blocks;  // the largest first
};
// The profile as a table.
Summary summarise(const Profile& profile);
// The table as text, with at most so many rows and blocks.
std::string to_string(const Summary& summary, std::size_t max_rows = 20);
// The table as one JSON object.
std::string to_json(const Summary& summary);

// A line of the user's code in two profiles; times are those of one execution of its program.
struct Change {
  std::string source, program, what;  // `what`: the longest site of the line in the newer profile
  double before = 0, after = 0;       // nanoseconds; 0 where the line is in one of them only
};
// Which lines became slower, by how much they did, and then which became faster.
std::vector<Change> compare(const Profile& before, const Profile& after);
// The changes as text.
std::string to_string(const std::vector<Change>& changes, std::size_t max_rows = 20);
// The changes as a JSON list.
std::string to_json(const std::vector<Change>& changes);

// Writes a profile to a file. Raises RuntimeError that names the file where it cannot.
void save(const Profile& profile, const std::string& file);
// Reads what save wrote. Raises ValueError that says what is wrong with the file.
Profile load(const std::string& file);

}  // namespace capibara::profile
