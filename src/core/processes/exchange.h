// Exchange: moves and sums host memory between the processes of one job. Collectives across processes run
// on it.
//
// A dedicated thread (comm thread) makes all calls, in the order in which they were started, while the program
// computes. Every process of a group must start the same calls in the same order. A call starts at once and returns a
// Pending; buffers belong to the exchange until the wait returns. Sums add in a fixed balanced tree over the positions
// (process of the group, lane), so their bits do not depend on how positions are spread over processes.
#pragma once

#include <capibara/dtype.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capibara::processes {

// The description of a call for errors and the watch, and its participants.
struct Call {
  std::string operation;        // "psum over 'data'"
  std::string line = {};        // of the user's program: "train.py:41"
  std::vector<int> group = {};  // processes, in the order of their positions; empty: all
  // True unless the processes have agreed on the program: each round announces what it moves; a mismatch is refused.
  bool checked = true;
  // Keeps the buffers alive: after a failure the network may still write into them.
  std::shared_ptr<const void> owner = nullptr;
};

// A call in flight.
class Pending {
 public:
  struct State;
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Raises DistributedError if a process died, does not arrive, or makes a different call.
  void wait() const;
  // Returns or raises only once the exchange no longer touches the buffers: for groups with lets_go_of_memory.
  // An interruption takes effect after the others have had a second to arrive; then the whole job has failed.
  void wait_out() const;
  bool is_ready() const;

 private:
  std::shared_ptr<State> state_;
};

enum class Reduction : uint8_t { sum, min, max };

// Element-wise over all positions: `lanes` arrays of `count` elements in each process, one after the other.
struct Reduce {
  Reduction kind = Reduction::sum;
  DType dtype = DType::float32;
  int64_t count = 0;
  int lanes = 1;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int process_id() const = 0;
  virtual int process_count() const = 0;
  // In words: "Open MPI v4.1.4, shared windows".
  virtual std::string description() const = 0;
  // True if calls over this group end soon after any failure, so that their buffers can be freed: not over a network,
  // nor before the group's first call has ended.
  virtual bool lets_go_of_memory(const std::vector<int>& group) const = 0;

  // `to` gets `bytes` of every process, in the order of the group.
  virtual Pending all_gather(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  // Block i of `from`, of `bytes` each, goes to position i of the group, which stores it in `to` at the sender's
  // position.
  virtual Pending all_to_all(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  // All positions get the reduced array. Floats narrower than 32 bits are summed in float32 and rounded once.
  virtual Pending reduce(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) = 0;
  // Position i of the group gets block i of the reduced array; count must be a multiple of the group's size.
  virtual Pending reduce_scatter(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) = 0;
  virtual Pending broadcast(const Call& call, std::byte* data, std::size_t bytes, int root) = 0;
  // Sends to position `target` of the group, receives from `source`; -1: no one. Without a source, `to` is filled with
  // zeros.
  virtual Pending permute(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes, int source,
                          int target) = 0;
  virtual Pending barrier(const Call& call) = 0;

  // Returns if all processes pass the same fingerprint; otherwise raises DistributedError with the process that differs
  // and both descriptions. For programs: at their first run.
  virtual void agree(const Call& call, const std::string& fingerprint, const std::string& description) = 0;
};

// The exchange of this process. Raises RuntimeError if jax.distributed.initialize was not called, or the processes
// were not started by MPI.
Exchange& exchange();

}  // namespace capibara::processes
