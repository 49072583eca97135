// This process as one of several that run one program: how they connect, and the values they exchange.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara {

// A process of the job died, did not reach a collective, or called another one.
class DistributedError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

namespace jax::distributed {

// Options not given are read from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, or from the launcher
// of the processes: `capibara launch`, mpirun, mpiexec or srun.
struct InitializeOptions {
  std::optional<std::string> coordinator_address;  // HOST:PORT of process 0
  std::optional<int> num_processes, process_id;
  std::string coordinator_bind_address;  // where process 0 listens; empty: the coordinator's address
  int initialization_timeout = 300;      // seconds
  int heartbeat_timeout_seconds = 10;    // of silence before a process counts as dead
  int shutdown_timeout_seconds = 300;    // to wait for the other processes at the end
  double collective_timeout_seconds =
      0;  // of waiting in a collective before it is an error; 0: CAPIBARA_COLLECTIVE_TIMEOUT, or never
};

// Connects to the other processes; call it once, before computing anything.
void initialize(const InitializeOptions& options = {});
// True if this process is connected to the others.
bool is_initialized();
// Waits for the other processes and disconnects.
void shutdown();

}  // namespace jax::distributed

namespace jax {
// The number of this process.
int process_index();
// The number of processes of this program.
int process_count();
}  // namespace jax

// Messages name the line of the call, which the last two parameters capture.
namespace jax::multihost_utils {

// The arrays of all processes, which have the same shape: stacked along a new first axis, or concatenated along the
// first axis if tiled.
Array process_allgather(const Array& x, bool tiled = false, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE());
// The array of the source: process 0 unless one process passes is_source = true.
Array broadcast_one_to_all(const Array& x, std::optional<bool> is_source = std::nullopt,
                           const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Returns once all processes have called it with this name.
void sync_global_devices(const std::string& name, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Raises ValueError if the values differ between processes.
void assert_equal(const Array& x, const std::string& fail_message = "", const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

}  // namespace jax::multihost_utils

}  // namespace capibara
