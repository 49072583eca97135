// Contents of a profile: threads, programs, the sites that time is charged to, events, samples of memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <capibara/analysis.h>

namespace capibara::profile {

// Peak rates of a device, measured; 0 if not measured.
struct Peaks {
  double flops_per_second = 0;                       // of a float32 matmul on the whole device
  double bytes_per_second = 0;                       // from and to its memory
  std::array<double, rate_type_count> by_type = {};  // of matmuls by RateType; float32's is flops_per_second

  double flops_of(RateType type) const {
    return type == RateType::float32 ? flops_per_second : by_type[static_cast<std::size_t>(type)];
  }
};

// A thread that recorded something.
struct Thread {
  int64_t id = 0;  // the system's thread id
  std::string name;
};

// A site that time is charged to: one call in a compiled program's driver, or one kind of eager operation.
struct Slot {
  int32_t id = 0;    // its index in Profile::slots
  std::string name;  // short and unique in its program: "dot_general.3"
  std::string kind;  // "loop fusion", "matmul", "kernel", "callback", "copy", "driver", "eager", or "program" when no
                     // more is known
  std::string text;  // the equations in jaxpr syntax
  int32_t program = -1;                // index in Profile::programs
  std::vector<std::string> equations;  // names of the primitives, in order
  std::string file;                    // of the line in the user's code; empty if unknown
  int32_t line = 0;
  std::string scope;                         // "layer1/attention"
  double flops = 0;                          // of one call
  RateType rate_type = RateType::float32;    // of its costliest equation: determines the peak to compare with
  double bytes_read = 0, bytes_written = 0;  // by one call
  int64_t calls = 0;                         // during the profile
  int64_t nanoseconds = 0;                   // in all of these calls
};

// A compiled program that ran.
struct ProgramRow {
  int32_t id = 0;  // its index in Profile::programs
  std::string name;
  std::string backend;
  double flops = 0;  // of one run, if known
};

enum class EventKind : uint8_t { span, step, module_execution, operation, compile, wait, transfer };
// "span", "step", "module execution", ...
const char* to_string(EventKind kind);

// An event that took time on one thread. Operations of one execution follow each other without gaps.
struct Event {
  EventKind kind = EventKind::span;
  int64_t thread = 0;       // Thread::id
  int64_t start = 0;        // nanoseconds since the start of the profile
  int64_t duration = 0;     // nanoseconds
  int32_t slot = -1;        // of an operation
  int32_t program = -1;     // of an operation or an execution
  int64_t execution = -1;   // of an operation or an execution: the id of the run, shared by all its operations
  int64_t occurrences = 1;  // of an operation that was too frequent to list: calls merged into one event
  int64_t step = -1;        // the number of the enclosing step
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;
};

// A block of memory that was allocated (bytes > 0) or freed (bytes < 0), and the memory in use afterwards.
struct MemorySample {
  int64_t time = 0;  // nanoseconds since the start of the profile
  int64_t thread = 0;
  int64_t bytes = 0;
  int64_t live = 0, peak = 0;  // bytes in use; their maximum since the start of the profile
  uint64_t address = 0;
  int64_t step = -1;
  std::string purpose;  // "dot_general float32[8,8]"
};

// A block that was in use at peak memory.
struct MemoryBlock {
  int64_t bytes = 0;
  std::string purpose;
};

// Everything recorded. Events are ordered by thread, then by start, outer ones first.
struct Profile {
  std::string host;
  std::string device;      // "cpu"
  int64_t start_wall = 0;  // nanoseconds since 1970
  int64_t duration = 0;    // nanoseconds
  int threads_used = 1;    // of the pool
  Peaks peaks;
  std::vector<Thread> threads;
  std::vector<ProgramRow> programs;
  std::vector<Slot> slots;
  std::vector<Event> events;
  std::vector<MemorySample> memory;
  std::vector<MemoryBlock> peak_blocks;  // largest first
  int64_t dropped = 0;                   // records beyond the capacity of a profile
  // Device profiles recorded by plugins, as serialized XSpaces, and the errors of plugins that failed. Not saved.
  std::vector<std::string> device_spaces, refusals;
};

}  // namespace capibara::profile
