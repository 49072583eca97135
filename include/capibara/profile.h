// The profiler: activity of this process between start and stop, timed in nanoseconds, down to the loops of programs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <capibara/profile_data.h>

namespace capibara::profile {

namespace detail {
extern std::atomic<bool> recording;
}  // namespace detail

// True while a profile is being taken: one relaxed load.
inline bool active() { return detail::recording.load(std::memory_order_relaxed); }

// Starts recording. Raises RuntimeError if a profile is already being taken.
void start();
// Stops recording and returns the profile, once the programs called before have finished; without `wait`, what they
// have done so far. Raises RuntimeError if none is being taken.
Profile stop(bool wait = true);

// A named time span on this thread, from construction to destruction; does nothing unless a profile is being taken.
class Span {
 public:
  // Opens the span; the arguments are shown next to its name.
  explicit Span(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments = {});
  // Closes it, even after an exception.
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // Adds an argument that is known only later.
  void argument(std::string_view name, std::string_view value);

 protected:
  Span(EventKind kind, std::string_view name, std::vector<std::pair<std::string, std::string>> arguments, int64_t step);

 private:
  std::optional<Event> event_;  // empty if it is not recorded
  int64_t outer_step_ = -1;
  uint64_t session_ = 0;
};

// A training step: everything that this thread starts during its lifetime is labelled with its number.
class Step : public Span {
 public:
  explicit Step(int64_t number, std::string_view name = "train",
                std::vector<std::pair<std::string, std::string>> arguments = {});
};

// The number of this thread's current step; -1 outside of steps.
int64_t current_step();
// Names this thread in profiles.
void name_thread(std::string_view name);

// ---- reports

// The peaks of the default device for float32: measured once, in about a second, and stored in the cache folder.
Peaks machine_peaks();
// Operations per second of a matmul of elements of this type on the default device, measured once and cached too; 0 if
// the device does not support it.
double peak_flops(RateType type);

// A row of the table: the calls of one site.
struct Row {
  std::string what;                         // Slot::name
  std::string kind, program, source, text;  // source: "file:line", or the scope
  int64_t calls = 0, nanoseconds = 0;
  double share = 0;             // of the time of all sites; these sum to 1
  double flops = 0, bytes = 0;  // of all calls
  double gflops_per_second = 0, gbytes_per_second = 0;
  double roofline = 0;  // the minimum time at the machine's peaks, as a fraction of the time; above 1 in caches
  std::string bound;    // "compute", "memory" or "overhead"
};
struct Summary {
  std::vector<Row> rows;    // longest first
  int64_t duration = 0;     // of the profile, nanoseconds
  int64_t nanoseconds = 0;  // in all sites
  int64_t compile_nanoseconds = 0, host_nanoseconds = 0;  // compiling; neither a program nor the compiler running
  Peaks peaks;
  int64_t peak_bytes = 0;
  std::vector<MemoryBlock> peak_blocks;  // largest first
};
// The profile as a table.
Summary summarise(const Profile& profile);
// The table as text, with at most this many rows and blocks.
std::string to_string(const Summary& summary, std::size_t max_rows = 20);
// The table as one JSON object.
std::string to_json(const Summary& summary);

// A line of the user's code in two profiles; times are those of one execution of its program.
struct Change {
  std::string source, program, what;  // `what`: the longest site of the line in the newer profile
  double before = 0, after = 0;       // nanoseconds; 0 if the line is in only one of them
};
// The lines that became slower, by how much, then those that became faster.
std::vector<Change> compare(const Profile& before, const Profile& after);
// The changes as text.
std::string to_string(const std::vector<Change>& changes, std::size_t max_rows = 20);
// The changes as a JSON list.
std::string to_json(const std::vector<Change>& changes);

// Writes a profile to a file. Raises RuntimeError that names the file if it cannot.
void save(const Profile& profile, const std::string& file);
// Reads a file written by save. Raises ValueError that describes the fault in the file.
Profile load(const std::string& file);

}  // namespace capibara::profile
