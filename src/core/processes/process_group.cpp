// The group of processes: process 0 serves, and all meet.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include <capibara/error.h>

#include "core/processes/job_secret.h"
#include "core/processes/key_value_store.h"

namespace capibara::distributed {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds max_wait(10);

struct Current {
  std::mutex mutex;
  std::unique_ptr<LeftJobSecret> left_secret;
  std::unique_ptr<KeyValueServer> server;
  ProcessGroup group;
};
Current& current() {
  static auto* instance = new Current;  // never freed: a plugin's client may query it until the process exits
  return *instance;
}

// The secret that process 0 leaves may appear later, and one of an earlier job may still be there: retries until the
// store accepts it.
std::shared_ptr<KeyValueStore> meet_with_left_secret(const std::string& address, int process_id, int timeout_seconds,
                                                     std::optional<std::string>& used) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(timeout_seconds);
  for (;;) {
    const std::optional<std::string> secret = LeftJobSecret::find(address);
    try {
      used = secret;
      if (secret) return KeyValueStore::connect(address, 0, {*secret, process_id});
    } catch (const RuntimeError&) {
      if (Clock::now() >= end) throw;
    }
    if (Clock::now() >= end) {
      throw RuntimeError(
          concat("DEADLINE_EXCEEDED: process 0 left no secret for the job at ", address, " within ", timeout_seconds,
                 " s\nHint: processes that share no home folder or use different addresses need CAPIBARA_JOB_SECRET or "
                 "CAPIBARA_JOB_SECRET_FILE"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Waits until every living process has reported twice more, and so has read the current roll.
void serve_until_all_know(const KeyValueServer& server) {
  const std::map<int, uint64_t> before = server.reports();
  const Clock::time_point end = Clock::now() + max_wait;
  auto knows = [&](const auto& one) {
    const auto it = before.find(one.first);
    return one.second >= (it == before.end() ? 0 : it->second) + 2;
  };
  for (;;) {
    const std::map<int, uint64_t> reports = server.reports();
    if (std::all_of(reports.begin(), reports.end(), knows) || Clock::now() >= end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

void initialize(const std::string& coordinator_address, int process_count, int process_id,
                const InitializeOptions& options) {
  if (process_count < 1)
    throw ValueError(concat("distributed.initialize: num_processes must be positive, got ", process_count));
  if (process_id < 0 || process_id >= process_count) {
    throw ValueError(concat("distributed.initialize: process_id must be at least 0 and below num_processes = ",
                            process_count, ", got ", process_id));
  }
  Current& now = current();
  std::lock_guard lock(now.mutex);
  if (now.group.store) throw RuntimeError("distributed.initialize should only be called once.");
  std::optional<std::string> secret = given_job_secret();
  std::unique_ptr<LeftJobSecret> left;
  std::unique_ptr<KeyValueServer> server;
  if (process_id == 0) {
    if (!secret) {
      left = std::make_unique<LeftJobSecret>(coordinator_address);
      secret = left->secret();
    }
    server = std::make_unique<KeyValueServer>(options.bind_address.empty() ? coordinator_address : options.bind_address,
                                              *secret);
  }
  std::shared_ptr<KeyValueStore> store =
      secret ? KeyValueStore::connect(coordinator_address, options.timeout_seconds, {*secret, process_id})
             : meet_with_left_secret(coordinator_address, process_id, options.timeout_seconds, secret);
  store->barrier("capibara/start", process_count, int64_t{1000} * options.timeout_seconds);
  now.left_secret = std::move(left);
  now.server = std::move(server);
  now.group = {process_id, process_count, std::move(store), coordinator_address, *secret};
}

void adopt(ProcessGroup group, std::unique_ptr<KeyValueServer> server) {
  Current& now = current();
  std::lock_guard lock(now.mutex);
  if (now.group.store) throw RuntimeError("distributed.initialize should only be called once.");
  now.server = std::move(server);
  now.group = std::move(group);
}

void leave() {
  Current& now = current();
  std::lock_guard lock(now.mutex);
  now.group = {};
  if (now.server) serve_until_all_know(*now.server);
  now.server.reset();
  now.left_secret.reset();
}

bool is_initialized() { return group().store != nullptr; }

ProcessGroup group() {
  Current& now = current();
  std::lock_guard lock(now.mutex);
  return now.group;
}

}  // namespace capibara::distributed
