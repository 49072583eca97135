// The log of one thread, and the session that holds all of them.
#pragma once

#include <array>
#include <variant>

#include "core/profile/recorder.h"

namespace capibara::profile {

struct Eager {
  int64_t begin = 0, end = 0, step = -1;
  std::unique_ptr<Slot> site;  // large: the other records are not
};

using Record = std::variant<Event, Run::Record, MemorySample, Eager>;

// Appended to by its thread, read by any.
class ThreadLog {
 public:
  explicit ThreadLog(Thread thread) : thread_(std::move(thread)), last_(&first_) {}
  ~ThreadLog();
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;

  void append(Record record);
  template <class F>
  void read(const F& visit) const {
    for (const Chunk* chunk = &first_; chunk; chunk = chunk->next.load(std::memory_order_acquire)) {
      const std::size_t count = chunk->count.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < count; ++i) visit(chunk->records[i]);
    }
  }
  const Thread& thread() const { return thread_; }

 private:
  struct Chunk {
    std::array<Record, 64> records;
    std::atomic<std::size_t> count{0};
    std::atomic<Chunk*> next{nullptr};
  };

  Thread thread_;
  Chunk first_;
  Chunk* last_;
};

struct Session {
  uint64_t id = 0;
  int64_t begin = 0, wall = 0;
  std::vector<InitialBlock> blocks;
  std::vector<std::shared_ptr<ThreadLog>> logs;  // guarded by the recorder's lock
};

// The profile of a session that ended at `end`; `dropped`: records that found no room.
Profile assemble(const Session& session, int64_t end, int64_t dropped);

}  // namespace capibara::profile
