// A channel: how the comm thread moves bytes within one group of processes, by MPI's messages or through shared memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/processes/mpi/table.h"
#include "core/processes/reduce.h"
#include "core/processes/watch.h"

namespace capibara::processes {

// How the comm thread waits: it spins where there are cores to spare, then yields, then sleeps longer and longer.
class Progress {
 public:
  explicit Progress(int processes_here);
  void set_watch(Watch* watch) { watch_ = watch; }
  // Raises DistributedError if the watch has found another process dead.
  template <class Ready>
  void until(const Ready& ready) const {
    for (int step = 0; !ready(); ++step) pause(step);
  }
  int spins() const { return spins_; }

 private:
  void pause(int step) const;
  int spins_ = 0;
  Watch* watch_ = nullptr;
};

// Position `position` of a group makes a different call than this process.
struct Mismatch {
  int position;
};

// All calls are on the comm thread, and return when the data has moved.
class Channel {
 public:
  virtual ~Channel() = default;
  int size() const { return size_; }
  int position() const { return position_; }

  // Announces the next call. Raises Mismatch if another process announces a different one; 0: nothing is compared.
  virtual void begin(uint64_t signature) = 0;
  virtual void all_gather(const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  virtual void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  virtual void broadcast(std::byte* data, std::size_t bytes, int root) = 0;
  virtual void permute(const std::byte* from, std::byte* to, std::size_t bytes, int source, int target) = 0;
  virtual void barrier() = 0;
  // Reduces one block of each position, `count` elements of dtype `wire`, into `count` elements of `dtype`.
  virtual void reduce(const Reduce& what, DType wire, const std::byte* from, std::byte* to) = 0;
  // The same, but position i keeps only part i.
  virtual void reduce_scatter(const Reduce& what, DType wire, const std::byte* from, std::byte* to) = 0;

 protected:
  Channel(int size, int position) : size_(size), position_(position) {}
  const int size_, position_;
};

std::unique_ptr<Channel> make_message_channel(const mpi::Table& mpi, mpi::Group* group, int size, int position,
                                              const Progress& progress);
// Null where memory cannot be shared.
std::unique_ptr<Channel> make_window_channel(const mpi::Table& mpi, mpi::Group* group, int size, int position,
                                             const Progress& progress);

void check_mpi(const char* wrong);  // raises RuntimeError with MPI's text

}  // namespace capibara::processes
