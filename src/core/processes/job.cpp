// jax::distributed: joins the other processes, by MPI or at an address, and leaves them.
#include "core/processes/job.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/random.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <capibara/distributed.h>

#include "core/processes/job_secret.h"
#include "core/processes/key_value_store.h"
#include "core/processes/launch_environment.h"
#include "core/processes/launch_report.h"
#include "core/processes/mpi_exchange.h"
#include "core/runtime/warning.h"

namespace capibara::processes {

namespace {

std::atomic<bool> in_use{false};
constexpr int end_seconds = 20;  // for MPI to end, after all have met for the last time

struct Job {
  std::mutex mutex;
  std::shared_ptr<Watch> watch;
  std::unique_ptr<MpiExchange> exchange;
  int shutdown_seconds = 300;
};
Job& job() {
  static auto* instance = new Job;  // never freed: threads of it may run until the very end
  return *instance;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<int> number_in(const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ValueError(concat("distributed.initialize: ", name, " must be a number, got '", text, "'"));
  }
  return value;
}

// The first address of this machine that others can reach.
std::string own_address() {
  ifaddrs* all = nullptr;
  std::string found = "127.0.0.1";
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) ||
        !(one->ifa_flags & IFF_UP))
      continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    found = text;
    break;
  }
  freeifaddrs(all);
  return found;
}

std::string random_secret() {
  std::string bytes(16, '\0'), text;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw RuntimeError("distributed.initialize: no random numbers");
  for (const char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4 & 15];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

WatchOptions watch_options(const jax::distributed::InitializeOptions& options) {
  WatchOptions made;
  made.heartbeat_seconds = options.heartbeat_timeout_seconds;
  made.collective_seconds = options.collective_timeout_seconds;
  if (made.collective_seconds == 0) made.collective_seconds = number_in("CAPIBARA_COLLECTIVE_TIMEOUT").value_or(0);
  if (made.heartbeat_seconds < 1 || made.collective_seconds < 0) {
    throw ValueError(
        "distributed.initialize: heartbeat_timeout_seconds must be at least 1 and collective_timeout_seconds not "
        "negative");
  }
  return made;
}

void start_watch(Job& now, const WatchOptions& options) {
  const ProcessGroup group = distributed::group();
  auto heartbeat = Heartbeat::connect(group.address, {group.secret, group.process_id}, options.heartbeat_seconds);
  now.watch = std::make_shared<Watch>(std::move(heartbeat), group.process_id, group.process_count, options);
  group.store->barrier("capibara/watch", group.process_count,
                       300000);  // all are on the roll before any can be missing
  now.watch->refresh();          // so that even a process that dies at once is known by host and pid
}

// Process 0 serves at a free port; its address and the job's secret travel by MPI.
void meet_by_mpi(Job& now, const Launched& launched, const jax::distributed::InitializeOptions& options) {
  auto exchange = std::make_unique<MpiExchange>(options.initialization_timeout);
  const int own = exchange->process_id(), count = exchange->process_count();
  if (launched.process_count && *launched.process_count != count) {
    throw RuntimeError(concat("distributed.initialize: ", launched.by, " started ", *launched.process_count,
                              " processes, but MPI sees ", count,
                              "\nHint: the launcher must be that of the MPI library (", exchange->description(),
                              "); with srun, choose it by --mpi (srun --mpi=list)"));
  }
  std::unique_ptr<KeyValueServer> server;
  std::string text;
  if (own == 0) {
    const std::string secret = given_job_secret().value_or(random_secret());
    const std::string host = exchange->on_one_node() ? "127.0.0.1" : own_address();
    server = std::make_unique<KeyValueServer>(exchange->on_one_node() ? "127.0.0.1:0" : "0.0.0.0:0", secret);
    text = concat(host, ":", server->port(), " ", secret);
  }
  text = exchange->tell_all(text, options.initialization_timeout);
  const std::string address = text.substr(0, text.find(' ')), secret = text.substr(text.find(' ') + 1);
  auto store = KeyValueStore::connect(address, options.initialization_timeout, {secret, own});
  store->barrier("capibara/start", count, int64_t{1000} * options.initialization_timeout);
  distributed::adopt({own, count, std::move(store), address, secret}, std::move(server));
  now.exchange = std::move(exchange);
}

void leave_at_exit() {
  try {
    jax::distributed::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void meet_at_address(const std::optional<std::string>& address, std::optional<int> count, std::optional<int> id,
                     const jax::distributed::InitializeOptions& options) {
  if (!address) throw ValueError("coordinator_address should be defined.");
  if (!count) throw ValueError("Number of processes must be defined.");
  if (!id) throw ValueError("The process id of the current process must be defined.");
  const std::string bind = options.coordinator_bind_address.empty() ? environment("JAX_COORDINATOR_BIND_ADDRESS")
                                                                    : options.coordinator_bind_address;
  distributed::initialize(*address, *count, *id, {options.initialization_timeout, bind});
}

}  // namespace

Exchange& exchange() {
  Job& now = job();
  std::lock_guard lock(now.mutex);
  if (now.exchange) return *now.exchange;
  if (!distributed::is_initialized())
    throw RuntimeError("collectives between processes: jax.distributed.initialize() must be called first");
  throw RuntimeError(
      "collectives between processes: these processes were not started by MPI\nHint: start them by `capibara launch -n "
      "4 -- program`, "
      "mpirun or srun, and call jax.distributed.initialize() without arguments");
}

Exchanging exchanging() {
  Job& now = job();
  std::lock_guard lock(now.mutex);
  return now.exchange ? Exchanging{now.exchange->process_id(), now.exchange->process_count()} : Exchanging{};
}

void note_use() {
  if (in_use.load(std::memory_order_relaxed) || in_use.exchange(true)) return;
  if (launched_by_us() && !distributed::is_initialized()) {
    warn(
        "this process was started by `capibara launch`, but has not called jax.distributed.initialize(): it computes "
        "alone",
        WarningKind::runtime);
  }
}

void set_where(const std::string& where) {
  Job& now = job();
  std::lock_guard lock(now.mutex);
  if (now.watch) now.watch->set_where(where);
}

void set_ending(const std::string& ending) {
  Job& now = job();
  std::lock_guard lock(now.mutex);
  if (now.watch) now.watch->set_ending(ending);
}

}  // namespace capibara::processes

namespace capibara::jax {

namespace distributed {

void initialize(const InitializeOptions& options) {
  using namespace capibara::processes;
  Job& now = job();
  std::lock_guard lock(now.mutex);
  if (capibara::distributed::is_initialized()) throw RuntimeError("distributed.initialize should only be called once.");
  if (in_use) {
    throw RuntimeError(
        "jax.distributed.initialize() must be called before any JAX calls that might initialise the XLA backend. "
        "This includes any computation, but also calls to jax.devices, jax.device_put, and others.");
  }
  const WatchOptions watch = watch_options(options);
  auto address = options.coordinator_address;
  if (!address && !environment("JAX_COORDINATOR_ADDRESS").empty()) address = environment("JAX_COORDINATOR_ADDRESS");
  const auto count = options.num_processes ? options.num_processes : number_in("JAX_NUM_PROCESSES");
  const auto id = options.process_id ? options.process_id : number_in("JAX_PROCESS_ID");
  const std::optional<Launched> launched = find_launch();
  now.shutdown_seconds = options.shutdown_timeout_seconds;
  if (launched && !address && !count && !id)
    meet_by_mpi(now, *launched, options);
  else
    meet_at_address(address, count, id, options);
  start_watch(now, watch);
  static const bool at_exit = std::atexit(leave_at_exit) == 0;  // a program that returns has not died
  (void)at_exit;
  if (now.exchange) now.exchange->set_watch(now.watch);
  report_meeting();
}

bool is_initialized() { return capibara::distributed::is_initialized(); }

void shutdown() {
  using namespace capibara::processes;
  Job& now = job();
  std::unique_lock lock(now.mutex);
  const std::shared_ptr<Watch> watch = std::move(now.watch);
  std::unique_ptr<MpiExchange> exchange = std::move(now.exchange);
  now.watch = nullptr;
  lock.unlock();
  if (!watch) return;
  const bool in_time = watch->leave(now.shutdown_seconds), failed = watch->ends_by_failure();
  capibara::distributed::leave();
  if (exchange && (failed || !in_time || !exchange->shut_down(end_seconds))) {
    (void)exchange.release();  // its thread may be inside of MPI for ever
  }
  if (!in_time)
    throw RuntimeError(
        concat("DEADLINE_EXCEEDED: distributed.shutdown: not all processes came within ", now.shutdown_seconds, " s"));
}

}  // namespace distributed

int process_index() { return capibara::distributed::group().process_id; }
int process_count() { return capibara::distributed::group().process_count; }

}  // namespace capibara::jax
