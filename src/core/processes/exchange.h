// Exchange: how the processes of one job move and sum host memory. What a program's collectives across processes run
// on.
//
// One thread of its own (comm thread) does all calls, in the order in which they were started, while the program
// computes. Every process of a group must start the same calls in the same order. A call starts at once and returns a
// Pending; buffers belong to the exchange until it is waited for. Sums add in a fixed balanced tree over the positions
// (process of the group, lane), so they are the same bits however positions are spread over processes.
#pragma once

#include <capibara/dtype.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capibara::processes {

// What errors and the watch say of a call, and who takes part.
struct Call {
  std::string operation;        // "psum over 'data'"
  std::string line = {};        // of the user's program: "train.py:41"
  std::vector<int> group = {};  // processes, in the order of their positions; empty: all
  // Where the processes have not agreed on the program before: each round says what it moves, and others are refused.
  bool checked = true;
  // Keeps the buffers alive: after a failure the network may still write into them.
  std::shared_ptr<const void> owner = nullptr;
};

// A call under way.
class Pending {
 public:
  struct State;
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Raises DistributedError where a process died, does not come, or calls something else.
  void wait() const;
  // Returns, and raises, only when the exchange does not touch the buffers any more: for groups that let go of memory.
  // An interruption counts once the others have had a second to come; then the whole job has failed.
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
  // Whether calls over this group end soon after any failure, so that their buffers may go then: not over a network,
  // nor before the group's first call has ended.
  virtual bool lets_go_of_memory(const std::vector<int>& group) const = 0;

  // `to` gets `bytes` of every process, in the order of the group.
  virtual Pending all_gather(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  // Block i of `from`, of `bytes` each, goes to position i of the group, and comes to lie there as the sender's block
  // of `to`.
  virtual Pending all_to_all(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  // Everybody gets the reduced array. Floats narrower than 32 bits are summed in float32 and rounded once.
  virtual Pending reduce(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) = 0;
  // Position i of the group gets block i of the reduced array; count must be a multiple of the group's size.
  virtual Pending reduce_scatter(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) = 0;
  virtual Pending broadcast(const Call& call, std::byte* data, std::size_t bytes, int root) = 0;
  // Sends to position `target` of the group, receives from `source`; -1: no one. Where no one sends, `to` becomes
  // zeros.
  virtual Pending permute(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes, int source,
                          int target) = 0;
  virtual Pending barrier(const Call& call) = 0;

  // Returns where all processes give the same fingerprint; raises DistributedError that names who differs, and both
  // descriptions. For programs: at their first run.
  virtual void agree(const Call& call, const std::string& fingerprint, const std::string& description) = 0;
};

// The exchange of this process. Raises RuntimeError where jax.distributed.initialize was not called, or the processes
// were not started by MPI.
Exchange& exchange();

}  // namespace capibara::processes
