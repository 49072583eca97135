// The exchange over MPI: one thread that owns MPI, and its queue of calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "core/processes/channel.h"
#include "core/processes/exchange.h"

namespace capibara::processes {

class MpiExchange final : public Exchange {
 public:
  // Starts MPI on the comm thread. Raises RuntimeError if it does not start within the time, or MPI is absent.
  explicit MpiExchange(int timeout_seconds);
  // Only after shut_down: otherwise the comm thread may be inside of MPI.
  ~MpiExchange() override;

  int process_id() const override { return process_id_; }
  int process_count() const override { return process_count_; }
  std::string description() const override;
  bool lets_go_of_memory(const std::vector<int>& group) const override;

  Pending all_gather(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) override;
  Pending all_to_all(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) override;
  Pending reduce(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) override;
  Pending reduce_scatter(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) override;
  Pending broadcast(const Call& call, std::byte* data, std::size_t bytes, int root) override;
  Pending permute(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes, int source,
                  int target) override;
  Pending barrier(const Call& call) override;
  void agree(const Call& call, const std::string& fingerprint, const std::string& description) override;

  // True if all processes are on this machine.
  bool on_one_node() const { return on_one_node_; }
  // Broadcasts process 0's text of at most 1000 bytes, before the watch exists. Raises RuntimeError on timeout.
  std::string tell_all(const std::string& text, int timeout_seconds);
  void set_watch(std::shared_ptr<Watch> watch);
  // Finalizes MPI if nothing failed and the others do so too. False: the comm thread is abandoned.
  bool shut_down(int timeout_seconds);

 private:
  using Work = std::function<void(Channel&)>;
  Pending post(const Call& call, uint64_t signature, Work work);
  void check(const Call& call, int root) const;
  void run();
  void work_off(Pending::State& job, const Work& work, uint64_t signature);
  void start_mpi();
  Channel& channel(const std::vector<int>& group);
  std::unique_ptr<Channel> make_channel(const std::vector<int>& members);
  std::vector<int> members_of(const Call& call) const;

  const mpi::Table& mpi_;
  int process_id_ = 0, process_count_ = 1;
  bool on_one_node_ = false, windows_ = false;
  std::unique_ptr<Progress> progress_;
  std::shared_ptr<Watch> watch_;
  std::map<std::vector<int>, std::unique_ptr<Channel>> channels_;  // of the comm thread

  mutable std::mutex mutex_;
  std::set<std::vector<int>> in_windows_;  // groups whose channel is shared memory
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace capibara::processes
