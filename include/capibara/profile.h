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

#include <capibara/profile_data.h>

namespace capibara::profile {

namespace detail {
extern std::atomic<bool> recording;
}  // namespace detail

// Whether a profile is being taken: one relaxed load.
inline bool active() { return detail::recording.load(std::memory_order_relaxed); }

// Begins to record. Raises RuntimeError where a profile is being taken already.
void start();
// Ends it and returns what was recorded, once the programs that were called before have ended; without `wait` what they
// have done so far. Raises RuntimeError where none is being taken.
Profile stop(bool wait = true);

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
  explicit Step(int64_t number, std::string_view name = "train",
                std::vector<std::pair<std::string, std::string>> arguments = {});
};

// The number of the step that this thread is in; -1 outside of all.
int64_t current_step();
// Names this thread in profiles.
void name_thread(std::string_view name);

// ---- reports

// The peaks of the default device for float32: measured once, in about a second, and kept in the cache folder.
Peaks machine_peaks();
// Operations per second of a matmul of elements of this type on the default device, measured once and kept too; 0 where
// the device has no matmul of them.
double peak_flops(RateType type);

// A line of the table: the calls of one site.
struct Row {
  std::string what;                         // Slot::name
  std::string kind, program, source, text;  // source: "file:line", or the scope
  int64_t calls = 0, nanoseconds = 0;
  double share = 0;             // of the time of all sites; these sum to 1
  double flops = 0, bytes = 0;  // of all calls
  double gflops_per_second = 0, gbytes_per_second = 0;
  double roofline = 0;  // the least time that the machine's peaks allow, as a share of the time; above 1 in caches
  std::string bound;    // "compute", "memory" or "overhead"
};
struct Summary {
  std::vector<Row> rows;    // the longest first
  int64_t duration = 0;     // of the profile, nanoseconds
  int64_t nanoseconds = 0;  // in all sites
  int64_t compile_nanoseconds = 0, host_nanoseconds = 0;  // compiling; with neither a program nor the compiler at work
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
